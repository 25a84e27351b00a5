//! The result of a tool call: what kind it is, and the text in it that a model will read.

use std::ops::Range;

use crate::fields::{self, FieldError};
use serde_json::Value;
use serde_json::value::RawValue;

use super::excise::Piece;

/// Most text taken out of one result, in bytes: 1 MiB. The result itself passes whole.
pub const RESULT_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most content blocks in one result.
pub const CONTENT_BLOCKS_MAX: usize = 16 * 1024;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    /// The tool did it.
    Complete,
    /// The tool ran and failed (`isError`).
    Error,
    /// The server asks for something first; the client will call again (from 2026-07-28).
    InputRequired,
    /// The call goes on as a task, whose result is fetched later.
    TaskCreated,
    /// A `resultType` that this gate does not know.
    Other(String),
}

/// One result, as far as it matters to a gate.
#[derive(Debug, Clone)]
pub struct ToolResult<'a> {
    /// What came of the call.
    pub kind: ResultKind,
    /// All text that a model may be shown, for guards to read: text blocks, embedded and linked resources,
    /// `structuredContent` as JSON, the questions of an `input_required` result, blocks of unknown type as
    /// JSON. One piece a line, at most [`RESULT_TEXT_BYTES_MAX`].
    pub text: String,
    /// What the text was put together from, in its order.
    pub pieces: Vec<Piece>,
    /// Text was left out because of the limit: what is in [`text`](Self::text) is not all.
    pub text_truncated: bool,
    /// `structuredContent` as sent.
    pub structured: Option<&'a RawValue>,
    /// The state the client will echo when it calls again, as sent (`input_required` only).
    pub request_state: Option<&'a RawValue>,
    /// The task that goes on ([`ResultKind::TaskCreated`] only).
    pub task_id: Option<String>,
    /// The result as sent.
    pub raw: &'a RawValue,
}

/// Reads the result of a `tools/call` request.
///
/// # Errors
/// [`FieldError`] where it is no object, has too many content blocks, or says a field twice, so that the
/// client may see another text than the guards did.
pub fn read_tool_result(result: &RawValue) -> Result<ToolResult<'_>, FieldError> {
    let [content, structured, is_error, result_type, input_requests, request_state, task, task_id, status] =
        fields::read(
            result.get(),
            &[
                "content",
                "structuredContent",
                "isError",
                "resultType",
                "inputRequests",
                "requestState",
                "task",
                "taskId",
                "statusMessage",
            ],
        )?;
    let content = fields::present(content);
    // Up to 2025-11-25 a created task is nested in `task`; later it is flat with `resultType`.
    let task = fields::present(task).filter(|_| result_type.is_none() && content.is_none());
    let (task_id, status) = match task {
        Some(task) => {
            let [task_id, status] = fields::read(task.get(), &["taskId", "statusMessage"])?;
            (task_id, status)
        }
        None => (task_id, status),
    };
    let failed = is_error.is_some_and(|raw| raw.get() == "true");
    let kind =
        match fields::present(result_type).map(|raw| fields::string(raw).unwrap_or_default()).as_deref() {
            None if task.is_some() => ResultKind::TaskCreated,
            None | Some("complete") if failed => ResultKind::Error,
            None | Some("complete") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired,
            Some("task") => ResultKind::TaskCreated,
            Some(other) => ResultKind::Other(other.to_owned()),
        };

    let mut text = Text::default();
    if let Some(content) = content {
        for block in fields::read_array(content.get(), "content", CONTENT_BLOCKS_MAX)? {
            text.push_block(block)?;
        }
    }
    text.push_json(fields::present(structured));
    text.push_json(fields::present(input_requests));
    text.push_string(status);
    let task_id = task_id.filter(|_| kind == ResultKind::TaskCreated).and_then(fields::string);
    Ok(ToolResult {
        kind,
        text: text.text,
        pieces: text.pieces,
        text_truncated: text.truncated,
        structured,
        request_state: fields::present(request_state),
        task_id: task_id.map(String::from),
        raw: result,
    })
}

/// The text of a JSON-RPC error, `message` and `data`: a model may be shown it like a result. The flag says
/// that it was cut at [`RESULT_TEXT_BYTES_MAX`].
#[must_use]
pub fn error_text(error: &RawValue) -> (String, bool) {
    let mut text = Text::default();
    match fields::read(error.get(), &["message", "data"]) {
        Ok([message, data]) => {
            text.push_string(message);
            text.push_json(fields::present(data));
        }
        Err(_) => {
            text.push(error.get());
        }
    }
    (text.text, text.truncated)
}

#[derive(Default)]
struct Text {
    text: String,
    pieces: Vec<Piece>,
    truncated: bool,
}

impl Text {
    /// Adds a piece; returns its place.
    fn push(&mut self, piece: &str) -> Range<usize> {
        if piece.is_empty() {
            return self.text.len()..self.text.len();
        }
        let gap = usize::from(!self.text.is_empty());
        let room = RESULT_TEXT_BYTES_MAX.saturating_sub(self.text.len() + gap);
        let end = piece.floor_char_boundary(room);
        self.truncated |= end < piece.len();
        if end > 0 {
            if gap > 0 {
                self.text.push('\n');
            }
            self.text.push_str(piece.get(..end).unwrap_or_default());
        }
        self.text.len().saturating_sub(end)..self.text.len()
    }

    fn push_string(&mut self, raw: Option<&RawValue>) {
        match raw.map(|raw| (fields::string(raw), raw)) {
            Some((Some(text), raw)) => {
                let place = self.push(&text);
                self.pieces.push(Piece::of_string(place, raw));
            }
            Some((None, raw)) => self.push_json(fields::present(Some(raw))),
            None => {}
        }
    }

    /// Written anew, so that no letter hides behind an escape; what is too deep for that is taken as sent.
    fn push_json(&mut self, raw: Option<&RawValue>) {
        if let Some(raw) = raw {
            let place = match serde_json::from_str::<Value>(raw.get()) {
                Ok(value) => self.push(&value.to_string()),
                Err(_) => self.push(raw.get()),
            };
            self.pieces.push(Piece::of_json(place, raw));
        }
    }

    fn push_block(&mut self, block: &RawValue) -> Result<(), FieldError> {
        let [kind, text, resource, uri, name, title, description] =
            fields::read(block.get(), &["type", "text", "resource", "uri", "name", "title", "description"])?;
        match kind.and_then(fields::string).as_deref() {
            Some("text") => self.push_string(text),
            Some("image" | "audio") => {}
            Some("resource") => {
                let resource = resource.map_or("{}", RawValue::get);
                let [uri, text] = fields::read(resource, &["uri", "text"])?;
                self.push_string(uri);
                self.push_string(text);
            }
            Some("resource_link") => {
                for piece in [uri, name, title, description] {
                    self.push_string(piece);
                }
            }
            _ => self.push_json(Some(block)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn kinds_of_both_generations() {
        for (result, kind) in [
            (r#"{"content":[]}"#, ResultKind::Complete),
            (r#"{"content":[],"isError":false,"resultType":"complete"}"#, ResultKind::Complete),
            (r#"{"content":[],"isError":true}"#, ResultKind::Error),
            (r#"{"resultType":"input_required","requestState":"s"}"#, ResultKind::InputRequired),
            (r#"{"resultType":"task","taskId":"t","status":"working"}"#, ResultKind::TaskCreated),
            (r#"{"task":{"taskId":"t","status":"working"}}"#, ResultKind::TaskCreated),
            (r#"{"resultType":"later"}"#, ResultKind::Other("later".to_owned())),
        ] {
            let result = raw(result);
            let read = read_tool_result(&result).unwrap();
            assert_eq!(read.kind, kind, "{result}");
            assert_eq!(read.task_id.as_deref(), (kind == ResultKind::TaskCreated).then_some("t"));
        }
        let waiting = raw(
            r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"m":"\u0041sk"}}}"#,
        );
        let read = read_tool_result(&waiting).unwrap();
        assert_eq!(
            (read.request_state.unwrap().get(), read.text.as_str()),
            ("\"s\"", r#"{"a":{"m":"Ask"}}"#)
        );
    }

    #[test]
    fn all_text_that_a_model_may_read_is_taken() {
        let result = raw(r#"{"content":[{"type":"text","text":"one\ntwo"},{"type":"image","data":"AAAA"},
              {"type":"resource","resource":{"uri":"file:///a","text":"three"}},
              {"type":"resource_link","uri":"u","name":"n","description":"four"},
              {"type":"novel","payload":"f\u0069ve"}],"structuredContent":{"s":"s\u0069x"}}"#);
        let read = read_tool_result(&result).unwrap();
        let expected = "one\ntwo\nfile:///a\nthree\nu\nn\nfour\n{\"type\":\"novel\",\"payload\":\"five\"}\n{\"s\":\"six\"}";
        assert_eq!((read.text.as_str(), read.text_truncated), (expected, false));
        assert_eq!(read.structured.unwrap().get(), r#"{"s":"s\u0069x"}"#);
        assert_eq!(read.raw.get(), result.get());
        assert_eq!(error_text(&raw(r#"{"code":1,"message":"m","data":[1]}"#)), ("m\n[1]".to_owned(), false));
    }

    #[test]
    fn text_is_bounded_at_a_character() {
        let long =
            format!(r#"{{"content":[{{"type":"text","text":"x{}"}}]}}"#, "é".repeat(RESULT_TEXT_BYTES_MAX));
        let long = raw(&long);
        let read = read_tool_result(&long).unwrap();
        assert_eq!((read.text.len(), read.text_truncated), (RESULT_TEXT_BYTES_MAX - 1, true));
    }

    #[test]
    fn a_result_that_says_two_things_is_refused() {
        for result in [
            r#"{"content":[],"content":[{"type":"text","text":"b"}]}"#,
            r#"{"isError":true,"iserror":false}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":{}}"#,
            "[]",
        ] {
            assert!(read_tool_result(&raw(result)).is_err(), "{result}");
        }
    }
}
