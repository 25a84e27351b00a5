//! `tools/list`: what a server offers, and a list that is shorter than the server's.

use crate::fields::{self, FieldError};
use crate::jsonrpc::{self, PeekError};
pub use portcullis_core::infer::Hints;
use serde_json::Value;
use serde_json::value::RawValue;

/// Most tools in one page of a list.
pub const TOOLS_MAX: usize = 4096;

/// One tool as a server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name to call it by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, in the server's words; empty where it says nothing.
    pub description: String,
    /// The schema of its arguments; an empty object where there is none.
    pub input_schema: Value,
    /// What the server claims about it.
    pub hints: Hints,
    /// The whole entry as sent: what a digest of the tool covers.
    pub raw: Box<str>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    /// The tools that could be read, in the server's order.
    pub tools: Vec<ListedTool>,
    /// The entries that could not: position in the page, from 0, and why.
    pub unreadable: Vec<(usize, String)>,
    /// There are more pages.
    pub has_more: bool,
}

/// Why a list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The result is no object with an array `tools`, or says a field twice.
    #[error("the list of tools cannot be read: {0}")]
    Field(#[from] FieldError),
    /// `tools` is missing.
    #[error("the result has no field `tools`")]
    NoTools,
    /// The line around the result cannot be read.
    #[error(transparent)]
    Message(#[from] PeekError),
}

/// Reads the result of a `tools/list` request. Unknown fields are ignored.
///
/// # Errors
/// [`ListError`] where the result as a whole cannot be read; single entries that cannot are in
/// [`ToolList::unreadable`].
pub fn listed_tools(result: &RawValue) -> Result<ToolList, ListError> {
    let [tools, cursor] = fields::read(result.get(), &["tools", "nextCursor"])?;
    let entries = fields::read_array(tools.ok_or(ListError::NoTools)?.get(), "tools", TOOLS_MAX)?;
    let mut list = ToolList { has_more: fields::present(cursor).is_some(), ..ToolList::default() };
    for (position, entry) in entries.into_iter().enumerate() {
        match listed_tool(entry) {
            Ok(tool) => list.tools.push(tool),
            Err(reason) => list.unreadable.push((position, reason)),
        }
    }
    Ok(list)
}

fn listed_tool(entry: &RawValue) -> Result<ListedTool, String> {
    let [name, title, description, input_schema, annotations] =
        fields::read(entry.get(), &["name", "title", "description", "inputSchema", "annotations"])
            .map_err(|error| error.to_string())?;
    let text = |raw: Option<&RawValue>| raw.and_then(fields::string).map(String::from);
    let schema = input_schema.map_or("{}", RawValue::get);
    Ok(ListedTool {
        name: text(name).ok_or("field `name` must be a string")?,
        title: text(title),
        description: text(description).unwrap_or_default(),
        input_schema: serde_json::from_str(schema).map_err(|error| format!("`inputSchema`: {error}"))?,
        hints: hints(annotations).map_err(|error| format!("`annotations`: {error}"))?,
        raw: entry.get().into(),
    })
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

/// The same `tools/list` response without the tools that `hidden` names; all other bytes stay. Entries whose
/// name cannot be read with certainty are hidden too. `None`: nothing to hide, forward the line itself.
///
/// # Errors
/// [`ListError`] where the line is no response with a list of tools.
pub fn hide_tools(line: &[u8], hidden: impl Fn(&str) -> bool) -> Result<Option<Vec<u8>>, ListError> {
    let text = jsonrpc::check(line)?;
    let [result] = fields::read(text, &["result"])?;
    let result = result.ok_or(ListError::NoTools)?;
    let [tools] = fields::read(result.get(), &["tools"])?;
    let entries = fields::read_array(tools.ok_or(ListError::NoTools)?.get(), "tools", TOOLS_MAX)?;

    let kept: Vec<bool> = entries
        .iter()
        .map(|entry| {
            let name = fields::read(entry.get(), &["name"]).ok().and_then(|[name]| fields::string(name?));
            name.is_some_and(|name| !hidden(&name))
        })
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
        assert!(read.raw.starts_with(r#"{"name":"read""#) && read.raw.ends_with(r#""new":1}"#));
        assert_eq!((list.tools.len(), list.tools[1].input_schema.clone()), (2, json!({})));
        assert_eq!(list.unreadable.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2, 3]);
        assert!(list.has_more);
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
            entries.retain(|tool| !hidden.contains(tool["name"].as_str().unwrap()));
            prop_assert_eq!(shown.is_none(), entries.len() == before);
            if let Some(shown) = shown {
                prop_assert_eq!(serde_json::from_slice::<Value>(&shown).unwrap(), expected);
                prop_assert!(shown.ends_with(br#","z":[1 , 2]}}"#));
            }
        }
    }
}
