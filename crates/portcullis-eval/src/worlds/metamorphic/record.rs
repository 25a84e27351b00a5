//! Changing a record of chat messages in one place.

use serde_json::Value;

/// Fewest characters of a result that counts as long.
pub const LONG_CHARS_MIN: usize = 200;

/// The messages of a record.
pub fn messages(record: &Value) -> &[Value] {
    record.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The role of a message.
pub fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The text of a message, where it is one text.
pub fn text(message: &Value) -> Option<&str> {
    message.get("content").and_then(Value::as_str)
}

/// The results of tools: places of the messages, with their texts.
pub fn results(record: &Value) -> impl Iterator<Item = (usize, &str)> {
    let all = messages(record).iter().enumerate();
    all.filter(|(_, message)| role(message) == "tool").filter_map(|(at, message)| Some((at, text(message)?)))
}

/// The first long result.
pub fn first_long(record: &Value) -> Option<(usize, &str)> {
    results(record).find(|(_, text)| text.chars().count() >= LONG_CHARS_MIN)
}

/// The record with another text of a message.
pub fn with_text(record: &Value, at: usize, text: String) -> Option<Value> {
    let mut record = record.clone();
    *record.get_mut("messages")?.get_mut(at)?.get_mut("content")? = Value::String(text);
    Some(record)
}

/// The calls of a message: names and arguments.
pub fn calls(message: &Value) -> impl Iterator<Item = (&str, Value)> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    calls.map(|call| {
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            other => other.cloned().unwrap_or_default(),
        };
        (name, arguments)
    })
}
