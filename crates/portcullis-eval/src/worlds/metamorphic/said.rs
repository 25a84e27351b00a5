//! Users who say outright what the agent then does, and other names of tools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::{calls, messages, role, text, with_text};
use super::wordings::synonym;

/// Calls of one turn that the user says: nobody dictates more at once.
const SAID_MAX: usize = 6;
/// Longest arguments of a call that a user says, in characters.
const ARGUMENTS_CHARS_MAX: usize = 240;

/// Ways to say a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// A polite sentence.
    Please,
    /// A line that begins with the verb.
    Imperative,
    /// A sentence that says what is wanted.
    Wanted,
}

impl Wording {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Please, Self::Imperative, Self::Wanted];

    /// The call in this wording; none where nobody would say it.
    pub fn say(self, tool: &str, arguments: &Value) -> Option<String> {
        let tool = words(tool);
        let mut given = Vec::new();
        for (name, value) in arguments.as_object()? {
            given.push((words(name), spoken(value)?));
        }
        let chars: usize = given.iter().map(|(_, value)| value.chars().count()).sum();
        if tool.is_empty() || chars > ARGUMENTS_CHARS_MAX {
            return None;
        }
        let list = |between: &str, join: &str| {
            let parts = given.iter().map(|(name, value)| format!("{name}{between}{value}"));
            parts.collect::<Vec<_>>().join(join)
        };
        let with = |words: &str, list: String| {
            if given.is_empty() { String::new() } else { format!("{words}{list}") }
        };
        Some(match self {
            Self::Please => format!("Please {tool}{}.", with(" with ", list(" ", " and "))),
            Self::Imperative => {
                let mut chars = tool.chars();
                let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
                format!("{first}{}{}", chars.as_str(), with(": ", list(": ", ", ")))
            }
            Self::Wanted => {
                format!("I want you to {tool} for me{}.", with(", that is, ", list(" = ", ", ")))
            }
        })
    }
}

/// The words of a name: `sendMail`, `mail.send_mail`.
fn words(name: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for c in name.chars() {
        let boundary = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if boundary && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        before = c;
    }
    words.trim_end().to_owned()
}

/// A value as a person says it; none of objects.
fn spoken(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(spoken).collect::<Option<Vec<_>>>()?.join(", "),
        Value::Object(_) => return None,
    })
}

/// The record with calls said at the end of the turn that they follow, and the numbers of those calls. None where no
/// call can be said.
pub fn said(record: &Value, wording: Wording) -> Option<(Value, Vec<usize>)> {
    let mut turns: Vec<(usize, Vec<String>)> = Vec::new();
    let mut numbers = Vec::new();
    let mut number = 0;
    for (at, message) in messages(record).iter().enumerate() {
        if role(message) == "user" && text(message).is_some() {
            turns.push((at, Vec::new()));
        }
        for (tool, arguments) in calls(message) {
            if let Some((_, sentences)) = turns.last_mut().filter(|(_, sentences)| sentences.len() < SAID_MAX)
                && let Some(sentence) = wording.say(tool, &arguments)
            {
                sentences.push(sentence);
                numbers.push(number);
            }
            number += 1;
        }
    }
    if numbers.is_empty() {
        return None;
    }
    let mut said = record.clone();
    for (at, sentences) in turns.into_iter().filter(|(_, sentences)| !sentences.is_empty()) {
        let before = messages(record).get(at).and_then(text)?;
        said = with_text(&said, at, format!("{before}\n\n{}", sentences.join("\n")))?;
    }
    Some((said, numbers))
}

/// Other names of tools, the same for a tool in all records.
#[derive(Debug)]
pub struct Renaming {
    names: BTreeMap<String, String>,
    name: fn(&str, usize) -> String,
}

impl Renaming {
    /// Names that say nothing.
    pub const fn opaque() -> Self {
        Self { names: BTreeMap::new(), name: |_, number| format!("op_a{number}") }
    }

    /// Names with another verb of the same meaning. A name that has none stays.
    pub const fn synonyms() -> Self {
        Self { names: BTreeMap::new(), name: |name, _| synonym(name).unwrap_or_else(|| name.to_owned()) }
    }

    fn rename_value(&mut self, value: &mut Value) {
        if let Value::String(name) = value {
            let next = self.names.len();
            let other = self.names.entry(name.clone()).or_insert_with_key(|name| (self.name)(name, next));
            name.clone_from(other);
        }
    }

    /// The record with other names of tools: where they are offered, called and answer.
    pub fn rename(&mut self, record: &Value) -> Value {
        let mut record = record.clone();
        for tool in record.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
            self.within(tool);
        }
        for message in record.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
            if role(message) == "tool" {
                self.within(message);
            }
            for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
                self.within(call);
            }
        }
        record
    }

    /// `name`, or `function.name`.
    fn within(&mut self, value: &mut Value) {
        let function = value.get("function").is_some_and(Value::is_object);
        let named = if function { value.pointer_mut("/function/name") } else { value.get_mut("name") };
        if let Some(name) = named {
            self.rename_value(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_said_in_three_ways() {
        let arguments = json!({"toAddress": "ida@fen.example", "copies": 2});
        let said = Wording::ALL.map(|wording| wording.say("mail.sendLetter", &arguments).unwrap());
        assert_eq!(
            said,
            [
                "Please mail send letter with to address ida@fen.example and copies 2.",
                "Mail send letter: to address: ida@fen.example, copies: 2",
                "I want you to mail send letter for me, that is, to address = ida@fen.example, copies = 2.",
            ]
        );
        assert_eq!(Wording::Please.say("list_rooms", &json!({})).unwrap(), "Please list rooms.");
        assert_eq!(Wording::Please.say("f", &json!({"a": {"b": 1}})), None, "nobody says objects");
        assert_eq!(Wording::Please.say("f", &json!({"a": "x".repeat(ARGUMENTS_CHARS_MAX + 1)})), None);
    }

    fn record() -> Value {
        let call = |name: &str| json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": name, "arguments": "{\"n\": 1}"}}]});
        json!({
            "tools": [{"type": "function", "function": {"name": "open_door"}}, {"name": "close_door"}],
            "messages": [
                {"role": "user", "content": "Hello"},
                call("open_door"), {"role": "tool", "name": "open_door", "content": "ok"},
                {"role": "user", "content": "And now?"},
                call("close_door"), call("open_door"),
            ],
        })
    }

    #[test]
    fn calls_are_said_in_the_turn_that_they_follow() {
        let (said, calls) = said(&record(), Wording::Please).unwrap();
        assert_eq!(calls, [0, 1, 2]);
        assert_eq!(text(&messages(&said)[0]).unwrap(), "Hello\n\nPlease open door with n 1.");
        assert_eq!(
            text(&messages(&said)[3]).unwrap(),
            "And now?\n\nPlease close door with n 1.\nPlease open door with n 1."
        );
        assert_eq!(super::said(&json!({"messages": []}), Wording::Please), None);
    }

    #[test]
    fn a_tool_has_one_opaque_name_wherever_it_stands() {
        let mut opaque = Renaming::opaque();
        let renamed = opaque.rename(&record());
        let at = |pointer: &str| renamed.pointer(pointer).and_then(Value::as_str).unwrap();
        assert_eq!((at("/tools/0/function/name"), at("/tools/1/name")), ("op_a0", "op_a1"));
        assert_eq!(
            (at("/messages/1/tool_calls/0/function/name"), at("/messages/2/name")),
            ("op_a0", "op_a0")
        );
        assert_eq!(at("/messages/4/tool_calls/0/function/name"), "op_a1");
        assert_eq!(opaque.rename(&record()), renamed, "the same in every record");
        assert_eq!(at("/messages/0/content"), "Hello");
        assert_eq!(Renaming::synonyms().rename(&record()), record(), "no verb of these names is known");
    }
}
