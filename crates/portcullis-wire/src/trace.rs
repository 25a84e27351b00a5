//! Recorded traces: JSON or JSON Lines, one run a record.
//!
//! A record is an array of messages, or an object with `messages` and, where the recorder kept them, `tools`
//! and `metadata`. A record without messages describes the file rather than a run, and is reported as that.

use crate::mcp::list::ListedTool;
use crate::openai::{self, MessageError, TraceStep};
use crate::strict::{self, StrictError};
use serde_json::Value;

/// Longest record, in bytes: 64 MiB.
pub const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceRecord {
    /// What happened, in order.
    pub steps: Vec<TraceStep>,
    /// The tools that the agent was offered, where the record has them.
    pub tools: Vec<ListedTool>,
    /// The run's name, where the record has one: `name` or `id`, of the record or of its metadata.
    pub name: Option<String>,
    /// The field `metadata`, as it is.
    pub metadata: Option<Value>,
}

/// What a record is.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A run.
    Trace(TraceRecord),
    /// An object without messages: what it says.
    Metadata(Value),
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not JSON, or ambiguous.
    #[error("the record cannot be read: {0}")]
    Json(#[from] StrictError),
    /// Neither an object nor an array.
    #[error("a record is an object with `messages` or an array of messages")]
    Shape,
    /// `messages` is not an array.
    #[error("field `messages` must be an array")]
    Messages,
    /// A message cannot be read.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// Reads one record: an object with `messages`, an array of messages, or metadata.
///
/// # Errors
/// [`TraceError`] if it is none of these or longer than [`RECORD_BYTES_MAX`].
pub fn read_record(bytes: &[u8]) -> Result<Record, TraceError> {
    record(strict::parse_recorded(bytes, RECORD_BYTES_MAX)?)
}

fn record(value: Value) -> Result<Record, TraceError> {
    match value {
        Value::Array(messages) => {
            let steps = openai::steps(&messages)?;
            Ok(Record::Trace(TraceRecord { steps, tools: Vec::new(), name: None, metadata: None }))
        }
        Value::Object(mut fields) => {
            let messages = match fields.remove("messages") {
                None | Some(Value::Null) => return Ok(Record::Metadata(Value::Object(fields))),
                Some(Value::Array(messages)) => messages,
                Some(_) => return Err(TraceError::Messages),
            };
            let metadata = fields.remove("metadata").filter(|metadata| !metadata.is_null());
            let tools = fields.get("tools").or_else(|| fields.get("functions")).and_then(Value::as_array);
            let name = ["name", "id"].iter().find_map(|field| {
                let own = fields.get(*field);
                own.or_else(|| metadata.as_ref()?.get(*field)).and_then(Value::as_str).map(str::to_owned)
            });
            let tools = tools.map(|tools| openai::tools(tools)).unwrap_or_default();
            Ok(Record::Trace(TraceRecord { steps: openai::steps(&messages)?, tools, name, metadata }))
        }
        _ => Err(TraceError::Shape),
    }
}

/// The records of a whole file, each with the line it starts on, from 1: JSON Lines where the first line that
/// is not blank is a value by itself and more follows, else the file is one value, which is one record or an
/// array of them. A record that cannot be read is an error in its place; the others follow.
pub fn records(bytes: &[u8]) -> Vec<(usize, Result<Record, TraceError>)> {
    let lines: Vec<(usize, &[u8])> = bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if let [(_, first), _, ..] = lines.as_slice()
        && serde_json::from_slice::<serde::de::IgnoredAny>(first).is_ok()
    {
        return lines.into_iter().map(|(number, line)| (number, read_record(line))).collect();
    }
    let Some((start, _)) = lines.first().copied() else {
        return Vec::new();
    };
    match strict::parse_recorded(bytes, RECORD_BYTES_MAX) {
        Ok(Value::Array(values)) if !values.is_empty() && values.iter().all(is_record) => {
            values.into_iter().map(|value| (start, record(value))).collect()
        }
        Ok(value) => vec![(start, record(value))],
        Err(error) => vec![(start, Err(error.into()))],
    }
}

/// Whether an element of a file's array is a record by itself rather than a message.
fn is_record(value: &Value) -> bool {
    value.is_array() || (value.is_object() && value.get("role").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn trace(bytes: &[u8]) -> TraceRecord {
        match read_record(bytes).unwrap() {
            Record::Trace(trace) => trace,
            Record::Metadata(value) => panic!("metadata {value}"),
        }
    }

    #[test]
    fn a_record_is_an_object_or_an_array() {
        let bare = trace(br#"[{"role":"user","content":"hi"}]"#);
        assert_eq!((bare.steps.len(), bare.name, bare.metadata), (1, None, None));
        let full = trace(
            br#"{"messages":[],"tools":[{"function":{"name":"f"}}],"metadata":{"name":"run 1","success":true}}"#,
        );
        assert_eq!((full.tools.len(), full.name.as_deref()), (1, Some("run 1")));
        assert_eq!(full.metadata, Some(json!({"name": "run 1", "success": true})));
        let metadata = read_record(br#"{"metadata":{"name":"set"}}"#).unwrap();
        assert_eq!(metadata, Record::Metadata(json!({"metadata": {"name": "set"}})));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert_eq!(read_record(b"7"), Err(TraceError::Shape));
        assert_eq!(read_record(br#"{"messages":{}}"#), Err(TraceError::Messages));
        assert!(matches!(read_record(br#"{"a":1,"a":2}"#), Err(TraceError::Json(_))));
        assert!(matches!(read_record(br#"[{"role":"x"}]"#), Err(TraceError::Message(_))));
    }

    #[test]
    fn files_of_every_layout() {
        let layouts: [(&str, &[usize]); 6] = [
            ("{\"a\":1}\n\n{\"messages\":[]}\n[]\n", &[1, 3, 4]),
            ("\n{\n\"messages\": []\n}\n", &[2]),
            ("[\n{\"messages\":[]},\n{\"messages\":[]}]", &[1, 1]),
            ("[{\"role\":\"user\",\n\"content\":\"x\"}]", &[1]),
            ("[{\"role\":\"user\"}]\n[{\"role\":\"user\"}]", &[1, 2]),
            ("\n\n", &[]),
        ];
        for (file, expected) in layouts {
            let records = records(file.as_bytes());
            assert!(records.iter().all(|(_, record)| record.is_ok()), "{file}: {records:?}");
            assert_eq!(records.iter().map(|(line, _)| *line).collect::<Vec<_>>(), expected, "{file}");
        }
        let broken = records(b"{\"messages\":[]}\n{\"messages\":\n[]");
        assert_eq!(broken.iter().map(|(_, record)| record.is_ok()).collect::<Vec<_>>(), [true, false, true]);
    }
}
