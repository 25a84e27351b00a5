//! Changes single values in a TOML text and leaves all else as it is: comments, order, spelling.
//!
//! A text is parsed for the places of its values; what is put there are bytes. The loader judges what comes out, like a
//! text that somebody typed.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest list that stands on one line, in characters.
const LINE_CHARS: usize = 96;

/// An entry of `[[TABLE]]` in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Entry {
    /// Where its values stand, by key. Keys of tables below it are dotted.
    values: Vec<(String, Range<usize>)>,
    /// Where its lines end.
    end: usize,
}

/// The entry of `[[table]]` in which one of `keys` has that value.
pub(in super::super) fn find(text: &str, table: &str, keys: &[&str], value: &str) -> Option<Entry> {
    let parsed = DeTable::parse(text).ok()?;
    let list = match parsed.get_ref().get(table)?.get_ref() {
        DeValue::Array(list) => list,
        _ => return None,
    };
    let of = |entry: &Spanned<DeValue<'_>>| match entry.get_ref() {
        DeValue::Table(fields) => keys.iter().any(|key| {
            let found = fields.get(*key).map(Spanned::get_ref);
            matches!(found, Some(DeValue::String(text)) if text == value)
        }),
        _ => false,
    };
    let entry = list.iter().find(|entry| of(entry))?;
    let DeValue::Table(fields) = entry.get_ref() else { return None };
    let (mut values, mut end) = (Vec::new(), entry.span().end);
    places(fields, "", &mut values, &mut end);
    // To the end of the line on which its last value ends.
    let end =
        text.get(end..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| end + newline + 1);
    Some(Entry { values, end })
}

fn places(fields: &DeTable<'_>, above: &str, values: &mut Vec<(String, Range<usize>)>, end: &mut usize) {
    for (key, value) in fields.iter() {
        let name = format!("{above}{}", key.get_ref());
        *end = (*end).max(value.span().end);
        if let DeValue::Table(inner) = value.get_ref() {
            places(inner, &format!("{name}."), values, end);
        }
        values.push((name, value.span()));
    }
}

impl Entry {
    /// The text with that value in the entry. One that is not there yet is put behind the last of those in `after`, or
    /// at the entry's end.
    pub(in super::super) fn set(&self, text: &str, key: &str, value: &str, after: &[&str]) -> String {
        let mut changed = text.to_owned();
        if let Some((_, span)) = self.values.iter().find(|(name, _)| name == key) {
            changed.replace_range(span.clone(), value);
            return changed;
        }
        let behind = self.values.iter().filter(|(name, _)| after.contains(&name.as_str()));
        let last = behind.map(|(_, span)| span.end).max();
        let at = last.map_or(self.end, |end| {
            text.get(end..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| end + newline + 1)
        });
        let newline = if at > 0 && !text.get(..at).unwrap_or_default().ends_with('\n') { "\n" } else { "" };
        changed.insert_str(at, &format!("{newline}{key} = {value}\n"));
        changed
    }

    /// Whether the entry has a value of its own there.
    pub(in super::super) fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(name, _)| name == key || name.starts_with(&format!("{key}.")))
    }

    /// The text without what the entry says at `key` and below it: the lines of these values alone.
    pub(in super::super) fn without(&self, text: &str, key: &str) -> String {
        let below = format!("{key}.");
        let mut lines: Vec<Range<usize>> = self
            .values
            .iter()
            .filter(|(name, _)| name == key || name.starts_with(&below))
            .map(|(_, span)| {
                let start =
                    text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
                let end = text.get(span.end..).and_then(|rest| rest.find('\n'));
                start..end.map_or(text.len(), |newline| span.end + newline + 1)
            })
            .collect();
        lines.sort_by_key(|line| (line.start, line.end));
        let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
        for line in lines {
            kept.push_str(text.get(at..line.start.max(at)).unwrap_or_default());
            at = at.max(line.end);
        }
        kept.push_str(text.get(at..).unwrap_or_default());
        kept
    }
}

/// The text with another entry in the place of one of `[[table]]`, from its header to the next header of its kind.
pub(in super::super) fn with_entry(
    text: &str,
    table: &str,
    key: &str,
    name: &str,
    entry: &str,
) -> Option<String> {
    let header = format!("[[{table}]]");
    let starts: Vec<usize> = text
        .match_indices(&header)
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || text.get(..*at).is_some_and(|before| before.ends_with('\n')))
        .collect();
    let whole = |at: usize, place: usize| starts.get(place + 1).copied().unwrap_or(text.len()).max(at);
    let (place, start) = starts
        .iter()
        .enumerate()
        .find(|(place, at)| {
            text.get(**at..whole(**at, *place)).is_some_and(|own| find(own, table, &[key], name).is_some())
        })
        .map(|(place, at)| (place, *at))?;
    let own = text.get(start..whole(start, place))?;
    // Comments before the next header are about what follows.
    let kept = own
        .trim_end_matches('\n')
        .rsplit('\n')
        .take_while(|line| line.starts_with('#'))
        .map(|line| line.len() + 1);
    let end = start + own.trim_end_matches('\n').len() + 1 - kept.sum::<usize>();
    let changed = format!(
        "{}{entry}{}",
        text.get(..start)?,
        text.get(end.min(text.len())..).map(|rest| if rest.is_empty() {
            String::new()
        } else {
            format!("\n{rest}")
        })?
    );
    toml::from_str::<toml::Table>(&changed).is_ok().then_some(changed)
}

/// A text as a TOML string.
pub(in super::super) fn string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A list of texts: on one line where it fits, otherwise one a line.
pub(in super::super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    let line = format!("[{}]", texts.join(", "));
    if line.chars().count() <= LINE_CHARS {
        return line;
    }
    let lines: Vec<String> = texts.iter().map(|text| format!("  {text},\n")).collect();
    format!("[\n{}]", lines.concat())
}

/// A JSON value as an inline TOML value, or nothing where TOML has no such value.
pub(in super::super) fn value(json: &Value) -> Option<String> {
    Some(match json {
        Value::Null => return None,
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => string(text),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(value).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(fields) => table(fields)?,
    })
}

fn table(fields: &Map<String, Value>) -> Option<String> {
    if fields.is_empty() {
        return Some("{}".to_owned());
    }
    let field = |(key, inner): (&String, &Value)| Some(format!("{} = {}", self::key(key), value(inner)?));
    Some(format!("{{ {} }}", fields.iter().map(field).collect::<Option<Vec<_>>>()?.join(", ")))
}

/// A key, in quotes where it needs them.
pub(in super::super) fn key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { string(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Reads.\n[[policy]]\nname = \"a\" # first\nmax_steps = 5\n\n# The other.\n[[policy]]\nname = \"b\"\nallowed_types = [\n  \"X\", # why\n]\nmax_steps = 7 # days\n";

    #[test]
    fn a_value_is_changed_and_all_else_stays() {
        let entry = find(TEXT, "policy", &["name"], "b").unwrap();
        let changed = entry.set(TEXT, "max_steps", "8", &[]);
        assert_eq!(changed, TEXT.replace("7 # days", "8 # days"));
        let first = find(TEXT, "policy", &["name"], "a").unwrap();
        let added = first.set(TEXT, "max_cost", "2.5", &["max_steps", "name"]);
        assert_eq!(added, TEXT.replace("max_steps = 5\n", "max_steps = 5\nmax_cost = 2.5\n"));
        let typed = entry.set(TEXT, "allowed_types", &strings(["X", "Y"]), &[]);
        assert!(typed.contains("allowed_types = [\"X\", \"Y\"]\nmax_steps = 7"), "{typed}");
        assert_eq!(first.without(TEXT, "max_steps"), TEXT.replace("max_steps = 5\n", ""));
        assert_eq!(find(TEXT, "policy", &["name"], "c"), None);
    }

    #[test]
    fn tables_below_an_entry_are_its_own() {
        let text = "[[tool]]\nname = \"t\"\nargs.query = { type = \"string\" }\nargs.to = { type = \"string\" }\nrisk = 0.5\n";
        let entry = find(text, "tool", &["id", "name"], "t").unwrap();
        assert!(entry.has("args") && !entry.has("effects"));
        let without = entry.without(text, "args");
        assert_eq!(without, "[[tool]]\nname = \"t\"\nrisk = 0.5\n");
        let again = find(&without, "tool", &["name"], "t").unwrap();
        let json =
            serde_json::json!({"type": "object", "properties": {"a b": {"type": "string"}}, "required": []});
        let set = again.set(&without, "args", &value(&json).unwrap(), &["name"]);
        // In which order the keys of a JSON object come is another's choice.
        let read: toml::Table = toml::from_str(&set).unwrap();
        let args = read["tool"][0]["args"].clone();
        assert_eq!(serde_json::to_value(args).unwrap(), json);
        assert!(
            set.starts_with("[[tool]]\nname = \"t\"\nargs = {") && set.ends_with("}\nrisk = 0.5\n"),
            "{set}"
        );
    }

    #[test]
    fn an_entry_is_replaced_and_its_neighbours_stay() {
        let text = "# All.\n[[plan]]\nname = \"a\"\n\n[[plan.step]]\naction = \"x\"\n\n# About b.\n[[plan]]\nname = \"b\"\n";
        let changed =
            with_entry(text, "plan", "name", "a", "[[plan]]\nname = \"a\"\nprompt = \"p\"\n").unwrap();
        assert_eq!(
            changed,
            "# All.\n[[plan]]\nname = \"a\"\nprompt = \"p\"\n\n# About b.\n[[plan]]\nname = \"b\"\n"
        );
        let changed =
            with_entry(text, "plan", "name", "b", "[[plan]]\nname = \"b\"\nprompt = \"p\"\n").unwrap();
        assert!(changed.ends_with("# About b.\n[[plan]]\nname = \"b\"\nprompt = \"p\"\n"), "{changed}");
        assert_eq!(with_entry(text, "plan", "name", "c", ""), None);
    }

    #[test]
    fn long_lists_have_a_line_for_each() {
        let long = ["delete financial records"; 6];
        assert!(strings(long).starts_with("[\n  \"delete financial records\",\n"));
        assert_eq!(strings(["a\"b", "\u{1b}"]), "['a\"b', \"\\u001B\"]");
        assert_eq!(value(&Value::Null), None);
    }
}
