//! Putting other values in the place of some of a message; every other byte stays.

use serde_json::value::RawValue;

use crate::fields::{self, FieldError};
use crate::jsonrpc::{self, PeekError};

/// Where a value is in a message: the names of fields from the message down to it.
pub type Path = &'static [&'static str];

/// The id of a request or a response.
pub const ID: Path = &["id"];
/// The token for progress notifications, in a request.
pub const PROGRESS_TOKEN: Path = &["params", "_meta", "progressToken"];
/// The token, in a progress notification.
pub const PROGRESS_OF: Path = &["params", "progressToken"];
/// The request that a notification is about that it is given up.
pub const CANCELLED_ID: Path = &["params", "requestId"];
/// The request that opened the stream that a notification is of (from 2026-07-28).
pub const SUBSCRIPTION: Path = &["params", "_meta", "io.modelcontextprotocol/subscriptionId"];
/// The name of a tool or prompt, in a request.
pub const NAME: Path = &["params", "name"];
/// The address of a resource, in a request.
pub const URI: Path = &["params", "uri"];
/// A task, in a request.
pub const TASK: Path = &["params", "taskId"];
/// The name of a prompt, in a request for completions.
pub const PROMPT_REFERENCE: Path = &["params", "ref", "name"];
/// The address of a resource or its template, in a request for completions.
pub const RESOURCE_REFERENCE: Path = &["params", "ref", "uri"];

/// Why values cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// The line is no message.
    #[error(transparent)]
    Message(#[from] PeekError),
    /// What a path leads through is no object, or has a field twice.
    #[error("the message cannot be read: {0}")]
    Field(#[from] FieldError),
}

/// The value at a path, as it is written. `None`: there is none, or it is `null`.
///
/// # Errors
/// [`ReplaceError`]: two readers could find different ones.
pub fn value_at(line: &[u8], path: Path) -> Result<Option<&RawValue>, ReplaceError> {
    Ok(find(jsonrpc::check(line)?, path)?)
}

fn find<'l>(text: &'l str, path: Path) -> Result<Option<&'l RawValue>, FieldError> {
    let mut at: Option<&'l RawValue> = None;
    for (depth, name) in path.iter().enumerate() {
        let whole = at.map_or(text, RawValue::get);
        // Parameters by position have no names.
        if depth > 0 && !whole.starts_with('{') {
            return Ok(None);
        }
        let [value] = fields::read(whole, &[*name])?;
        match fields::present(value) {
            None => return Ok(None),
            found => at = found,
        }
    }
    Ok(at)
}

/// The line with other values at some paths; where there is none, none is put.
///
/// # Errors
/// [`ReplaceError`]: two readers could find different ones.
pub fn replace_at(line: &[u8], changes: &[(Path, &str)]) -> Result<Vec<u8>, ReplaceError> {
    let text = jsonrpc::check(line)?;
    let mut places = Vec::with_capacity(changes.len());
    for (path, new) in changes {
        if let Some(place) = find(text, path)?.and_then(|value| fields::span(text, value)) {
            places.push((place, *new));
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    let mut written = Vec::with_capacity(line.len() + 64);
    let mut end = 0;
    for (place, new) in places {
        written.extend_from_slice(line.get(end..place.start).unwrap_or_default());
        written.extend_from_slice(new.as_bytes());
        end = place.end;
    }
    written.extend_from_slice(line.get(end..).unwrap_or_default());
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_and_nothing_else() {
        let line = br#"{ "jsonrpc":"2.0","id" : "a\u0062", "params":{"_meta":{"progressToken":1.0 ,"x":{}},"name":"p_t"} ,"method":"m"}"#;
        let changed =
            replace_at(line, &[(NAME, "\"t\""), (ID, "7"), (PROGRESS_TOKEN, "7"), (URI, "\"u\"")]).unwrap();
        assert_eq!(
            String::from_utf8(changed).unwrap(),
            r#"{ "jsonrpc":"2.0","id" : 7, "params":{"_meta":{"progressToken":7 ,"x":{}},"name":"t"} ,"method":"m"}"#
        );
        assert_eq!(value_at(line, ID).unwrap().unwrap().get(), r#""a\u0062""#);
        assert_eq!(value_at(line, TASK).unwrap().map(RawValue::get), None);
        assert_eq!(value_at(br#"{"params":[1],"id":null}"#, NAME).unwrap().map(RawValue::get), None);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for line in [
            br#"{"id":1,"id":2}"#.as_slice(),
            br#"{"id":1,"params":{"name":"a","Name":"b"}}"#,
            br#"{"id":1,"params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
            b"{",
            b"[]",
        ] {
            assert!(replace_at(line, &[(ID, "7"), (NAME, "1"), (PROGRESS_TOKEN, "7")]).is_err());
        }
    }
}
