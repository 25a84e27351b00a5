//! `tools/list`: what a server offers, and a list that is shorter than the server's.

use std::borrow::Cow;
use std::collections::HashMap;

use super::call::TOOL_NAME_BYTES_MAX;
use super::text::Told;
use crate::fields::{self, FieldError};
use crate::jsonrpc::{self, PeekError};
use crate::strict::DEPTH_MAX;
pub use portcullis_core::infer::Hints;
use serde_json::Value;
use serde_json::value::RawValue;

/// Most tools in one page of a list.
pub const TOOLS_MAX: usize = 4096;
/// Most names of one entry that cannot be read.
const NAMES_MAX: usize = 8;
/// What the instructions of a server are called among its tools: no tool can have this name.
pub const INSTRUCTIONS: &str = "(instructions)";

/// One tool as a server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name to call it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, in the server's words; empty where it says nothing.
    pub description: String,
    /// The schema of its arguments; an empty object if there is none.
    pub input_schema: Value,
    /// What the server claims about it.
    pub hints: Hints,
    /// All else that the entry says: title, output schema, annotations, metadata and fields of unknown kind.
    pub rest: Value,
}

/// An entry that could not be read with certainty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its place in the page, from 0.
    pub position: usize,
    /// Every name that a reader might take for its own.
    pub names: Vec<String>,
    /// Why, in words that are not the server's.
    pub why: String,
    /// The entry as sent.
    pub raw: Box<str>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    /// The tools that could be read, in the server's order.
    pub tools: Vec<ListedTool>,
    /// The entries that could not. No client should be shown them.
    pub unreadable: Vec<Unreadable>,
    /// There are more pages.
    pub has_more: bool,
    /// What is said beside the entries: metadata, and fields of unknown kind.
    pub besides: Told,
}

/// Why a list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The result is not an object with an array `tools`, or says a field twice.
    #[error("the list of tools cannot be read: {0}")]
    Field(#[from] FieldError),
    /// `tools` is missing.
    #[error("the result has no field `tools`")]
    NoTools,
    /// The line around the result cannot be read.
    #[error(transparent)]
    Message(#[from] PeekError),
}

/// Reads the result of a `tools/list` request.
///
/// # Errors
/// [`ListError`] if the result as a whole cannot be read; single entries that cannot be in
/// [`ToolList::unreadable`].
pub fn listed_tools(result: &RawValue) -> Result<ToolList, ListError> {
    let ([tools, cursor], rest) = fields::read_with_rest(result.get(), &["tools", "nextCursor"])?;
    let entries = fields::read_array(tools.ok_or(ListError::NoTools)?.get(), "tools", TOOLS_MAX)?;
    let mut list = ToolList { has_more: fields::present(cursor).is_some(), ..ToolList::default() };
    list.besides.push_unless_terse(cursor)?;
    list.besides.push_rest_unless_terse(&rest)?;
    for (position, (entry, read)) in entries.iter().zip(read_entries(&entries)).enumerate() {
        match read {
            Ok(tool) => list.tools.push(tool),
            Err(why) => list.unreadable.push(Unreadable {
                position,
                names: names(entry),
                why,
                raw: entry.get().into(),
            }),
        }
    }
    Ok(list)
}

/// Reads each entry, or says why it cannot be read with certainty. A name that is in a page twice is of neither.
fn read_entries(entries: &[&RawValue]) -> Vec<Result<ListedTool, String>> {
    let mut read: Vec<_> = entries.iter().map(|entry| listed_tool(entry)).collect();
    let mut times: HashMap<String, usize> = HashMap::new();
    for tool in read.iter().flatten() {
        *times.entry(tool.name.clone()).or_default() += 1;
    }
    for entry in &mut read {
        if entry.as_ref().is_ok_and(|tool| times.get(&tool.name).is_some_and(|times| *times > 1)) {
            *entry = Err("another tool in the list has the same name".to_owned());
        }
    }
    read
}

fn listed_tool(entry: &RawValue) -> Result<ListedTool, String> {
    let [name, title, description, input_schema, annotations] =
        fields::read(entry.get(), &["name", "title", "description", "inputSchema", "annotations"])
            .map_err(|error| error.to_string())?;
    let text = |raw: Option<&RawValue>, what: &str| match fields::present(raw) {
        None => Ok(None),
        Some(raw) => match fields::string(raw) {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(format!("field `{what}` must be a string")),
        },
    };
    let name = text(name, "name")?.ok_or("field `name` must be a string")?;
    check_name(&name)?;
    if has_half_pairs(entry.get()) {
        return Err("it has half of a surrogate pair".to_owned());
    }
    let mut rest = fields::value(entry).map_err(|error| error.to_string())?;
    if depth(&rest) > DEPTH_MAX {
        return Err(format!("it nests deeper than {DEPTH_MAX} levels"));
    }
    if let Some(rest) = rest.as_object_mut() {
        for read in ["name", "description", "inputSchema"] {
            rest.shift_remove(read);
        }
    }
    let no_schema = || Value::Object(serde_json::Map::new());
    let input_schema = input_schema.map(fields::value).transpose();
    Ok(ListedTool {
        name,
        title: text(title, "title")?,
        description: text(description, "description")?.unwrap_or_default(),
        input_schema: input_schema
            .map_err(|error| format!("`inputSchema`: {error}"))?
            .unwrap_or_else(no_schema),
        hints: hints(annotations).map_err(|error| format!("`annotations`: {error}"))?,
        rest,
    })
}

/// Levels of arrays and objects. The value was read from a text, so they are few.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX {
        return Err(format!("its name must have 1 to {TOOL_NAME_BYTES_MAX} bytes"));
    }
    if name.chars().any(char::is_control) || name.trim() != name || name == INSTRUCTIONS {
        return Err("its name is not a valid tool name".to_owned());
    }
    Ok(())
}

/// Whether readers would stop at the text, or replace something in it.
fn has_half_pairs(text: &str) -> bool {
    matches!(fields::mended(text), Cow::Owned(_))
}

/// Whatever a reader might take for the name of an entry, at most [`NAMES_MAX`].
fn names(entry: &RawValue) -> Vec<String> {
    let Ok(([], rest)) = fields::read_with_rest(entry.get(), &[]) else { return Vec::new() };
    let names = rest.iter().filter(|(field, _)| fields::is_variant(field, "name"));
    names.filter_map(|(_, raw)| fields::lossy_string(raw)).take(NAMES_MAX).map(Cow::into_owned).collect()
}

fn hints(annotations: Option<&RawValue>) -> Result<Hints, FieldError> {
    let Some(annotations) = fields::present(annotations) else {
        return Ok(Hints::default());
    };
    let [read_only, destructive, idempotent, open_world] = fields::read(
        annotations.get(),
        &["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"],
    )?;
    let flag = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse().ok());
    Ok(Hints {
        read_only: flag(read_only),
        destructive: flag(destructive),
        idempotent: flag(idempotent),
        open_world: flag(open_world),
    })
}

/// The same `tools/list` response without the tools that `hidden` names; all other bytes stay. Entries that cannot be
/// read with certainty are hidden too. `None`: nothing to hide, forward the line itself.
///
/// # Errors
/// [`ListError`] if the line is no response with a list of tools.
pub fn hide_tools(line: &[u8], hidden: impl Fn(&str) -> bool) -> Result<Option<Vec<u8>>, ListError> {
    let text = jsonrpc::check(line)?;
    let [result] = fields::read(text, &["result"])?;
    let result = result.ok_or(ListError::NoTools)?;
    let [tools] = fields::read(result.get(), &["tools"])?;
    let entries = fields::read_array(tools.ok_or(ListError::NoTools)?.get(), "tools", TOOLS_MAX)?;

    let kept: Vec<bool> = read_entries(&entries)
        .iter()
        .map(|read| read.as_ref().is_ok_and(|tool| !hidden(&tool.name)))
        .collect();
    if kept.iter().all(|kept| *kept) {
        return Ok(None);
    }

    // Each entry goes together with what separates it from the one before, so that exactly one comma stands
    // between those that stay; what stands before the first and after the last entry stays.
    let mut output = String::with_capacity(text.len());
    let mut end_of_last = 0;
    let mut any_kept = false;
    for (position, (entry, kept)) in entries.iter().zip(&kept).enumerate() {
        let place = fields::span(text, entry).ok_or(ListError::NoTools)?;
        let separator = text.get(end_of_last..place.start).unwrap_or_default();
        if position == 0 || (*kept && any_kept) {
            output.push_str(separator);
        }
        if *kept {
            output.push_str(entry.get());
            any_kept = true;
        }
        end_of_last = place.end;
    }
    output.push_str(text.get(end_of_last..).unwrap_or_default());
    Ok(Some(output.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn tools_are_read_with_hints_and_bytes() {
        let result = r#"{"nextCursor":"2","tools":[
            {"name":"read","title":"Read","description":"Reads \"x\"","inputSchema":{"type":"object"},
             "annotations":{"readOnlyHint":true,"destructiveHint":false,"title":"T","openWorldHint":"no"},"new":1},
            {"name":"bare"}, {"name":"a","name":"b"}, 7]}"#;
        let list = listed_tools(&RawValue::from_string(result.to_owned()).unwrap()).unwrap();
        let read = &list.tools[0];
        assert_eq!((read.name.as_str(), read.title.as_deref()), ("read", Some("Read")));
        assert_eq!(
            (read.description.as_str(), &read.input_schema),
            ("Reads \"x\"", &json!({"type": "object"}))
        );
        let hints = Hints { read_only: Some(true), destructive: Some(false), ..Hints::default() };
        assert_eq!(read.hints, hints);
        let rest = json!({"title": "Read", "new": 1, "annotations":
            {"readOnlyHint": true, "destructiveHint": false, "title": "T", "openWorldHint": "no"}});
        assert_eq!(read.rest, rest);
        assert_eq!((list.tools.len(), list.tools[1].input_schema.clone()), (2, json!({})));
        let unreadable: Vec<_> =
            list.unreadable.iter().map(|entry| (entry.position, entry.names.len())).collect();
        assert_eq!(unreadable, [(2, 2), (3, 0)]);
        assert!(list.has_more);
    }

    #[test]
    fn an_entry_that_readers_may_read_differently_is_unreadable_and_hidden() {
        let nested = |levels| format!("{}1{}", r#"{"x":"#.repeat(levels), "}".repeat(levels));
        let (deep, deeper) = (nested(64), nested(130));
        for (entry, names) in [
            (r#"{"name":"t","title":"a","title":"b"}"#, &["t"][..]),
            (r#"{"name":"t","description":"a","description":"b"}"#, &["t"]),
            (r#"{"name":"t","Description":"x","description":"a"}"#, &["t"]),
            (r#"{"name":"t","description":{"x":"a"}}"#, &["t"]),
            (r#"{"name":"t","annotations":{"readOnlyHint":true,"readOnlyHint":true}}"#, &["t"]),
            (r#"{"name":"t","annotations":[]}"#, &["t"]),
            (r#"{"name":"t","description":"\ud800 a"}"#, &["t"]),
            (r#"{"name":"t","inputSchema":{"type":"object","x":"\ud800"}}"#, &["t"]),
            (r#"{"name":"t","inputSchema":{"a":1,"a":2}}"#, &["t"]),
            (r#"{"name":"t","_meta":{"a":1,"a":2}}"#, &["t"]),
            (r#"{"name":"t","outputSchema":{},"outputSchema":{}}"#, &["t"]),
            (&format!(r#"{{"name":"t","inputSchema":{deep}}}"#), &["t"]),
            (&format!(r#"{{"name":"t","_meta":{deeper}}}"#), &["t"]),
            (r#"{"name":"t","name":"u"}"#, &["t", "u"]),
            (r#"{"name":"t","NAME":"u"}"#, &["t", "u"]),
            (r#"{"name":"t\ud800"}"#, &["t\u{fffd}"]),
            (r#"{"name":"t\nu"}"#, &["t\nu"]),
            (r#"{"name":"t "}"#, &["t "]),
            (r#"{"name":"(instructions)"}"#, &["(instructions)"]),
            (r#"{"name":""}"#, &[""]),
            ("7", &[]),
        ] {
            let result = format!(r#"{{"tools":[{{"name":"ok"}},{entry}]}}"#);
            let list = listed_tools(&RawValue::from_string(result.clone()).unwrap()).unwrap();
            assert_eq!((list.tools.len(), list.unreadable.len()), (1, 1), "{entry}");
            assert_eq!(list.unreadable[0].names, names, "{entry}");
            let shorter = hide(&format!(r#"{{"result":{result}}}"#), &[]);
            assert_eq!(shorter.as_deref(), Some(r#"{"result":{"tools":[{"name":"ok"}]}}"#), "{entry}");
        }
    }

    #[test]
    fn a_name_that_is_listed_twice_is_of_neither() {
        let result = r#"{"tools":[{"name":"t"},{"name":"t","description":"a"},{"name":"u"}]}"#;
        let list = listed_tools(&RawValue::from_string(result.to_owned()).unwrap()).unwrap();
        assert_eq!((list.tools.len(), list.unreadable.len()), (1, 2));
        assert_eq!(
            hide(&format!(r#"{{"result":{result}}}"#), &[]).unwrap(),
            r#"{"result":{"tools":[{"name":"u"}]}}"#
        );
    }

    #[test]
    fn a_result_without_tools_is_refused() {
        for (result, words) in
            [("{}", "no field"), ("[]", "expected an object"), (r#"{"tools":{}}"#, "an array")]
        {
            let error = listed_tools(&RawValue::from_string(result.to_owned()).unwrap()).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(hide_tools(br#"{"error":{}}"#, |_| true).is_err());
    }

    fn hide(line: &str, names: &[&str]) -> Option<String> {
        let hidden = hide_tools(line.as_bytes(), |name| names.contains(&name)).unwrap();
        hidden.map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn hiding_splices_and_keeps_every_other_byte() {
        let line = r#"{"id":1.0, "result" :{"tools":[ {"name":"a", "x":1.50} , {"n\u0061me":"b"},{"name":"c"} ],"y":"\u00e9"}}"#;
        for (names, tools) in [
            (&["b"][..], r#"[ {"name":"a", "x":1.50},{"name":"c"} ]"#),
            (&["a"], r#"[ {"n\u0061me":"b"},{"name":"c"} ]"#),
            (&["c"], r#"[ {"name":"a", "x":1.50} , {"n\u0061me":"b"} ]"#),
            (&["a", "c"], r#"[ {"n\u0061me":"b"} ]"#),
            (&["a", "b", "c"], r#"[  ]"#),
        ] {
            let expected = format!(r#"{{"id":1.0, "result" :{{"tools":{tools},"y":"\u00e9"}}}}"#);
            assert_eq!(hide(line, names), Some(expected));
        }
        assert_eq!(hide(line, &["d"]), None);
        assert_eq!(hide(r#"{"result":{"tools":[]}}"#, &["d"]), None);
    }

    #[test]
    fn a_name_said_twice_is_hidden() {
        let line =
            r#"{"result":{"tools":[{"name":"ok"},{"name":"ok","name":"rm"},{"name":"ok","Name":"rm"},{}]}}"#;
        assert_eq!(hide(line, &["rm"]).as_deref(), Some(r#"{"result":{"tools":[{"name":"ok"}]}}"#));
    }

    proptest! {
        #[test]
        fn hiding_leaves_the_rest_equal(
            tools in prop::collection::vec(("[a-d\"\\\\,\\]]{0,3}", "[ \t]{0,2}", "[ \t]{0,2}"), 0..8),
            hidden in prop::collection::hash_set("[a-d\"\\\\,\\]]{0,3}", 0..6),
        ) {
            let list: Vec<String> = tools
                .iter()
                .map(|(name, before, after)| format!("{before}{}{after}", json!({"name": name, "tools": [name]})))
                .collect();
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}],"z":[1 , 2]}}}}"#, list.join(","));
            let shown = hide_tools(line.as_bytes(), |name| hidden.contains(name)).unwrap();
            let mut expected: Value = serde_json::from_str(&line).unwrap();
            let entries = expected["result"]["tools"].as_array_mut().unwrap();
            let before = entries.len();
            let names: Vec<String> =
                entries.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
            let readable = |name: &str| !name.is_empty() && names.iter().filter(|other| *other == name).count() == 1;
            entries.retain(|tool| {
                let name = tool["name"].as_str().unwrap();
                readable(name) && !hidden.contains(name)
            });
            prop_assert_eq!(shown.is_none(), entries.len() == before);
            if let Some(shown) = shown {
                prop_assert_eq!(serde_json::from_slice::<Value>(&shown).unwrap(), expected);
                prop_assert!(shown.ends_with(br#","z":[1 , 2]}}"#));
            }
        }
    }
}
