//! The result of a tool call: what kind it is, and the text in it that a model will read.

use crate::fields::{self, FieldError, Named};
use serde_json::value::RawValue;

pub use super::text::{
    CONTENT_BLOCKS_MAX, RESULT_TEXT_BYTES_MAX, Told, asked, error_text, is_standard_error, told,
};

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    /// The tool did it.
    Complete,
    /// The tool ran and failed (`isError`).
    Error,
    /// The server asks for something first; the client will call again (from 2026-07-28).
    InputRequired,
    /// The call continues as a task, whose result is fetched later.
    TaskCreated,
    /// A `resultType` that this gate does not know.
    Other(String),
}

/// The parts of a result that matter to a gate.
#[derive(Debug, Clone)]
pub struct ToolResult<'a> {
    /// The outcome of the call.
    pub kind: ResultKind,
    /// All text that a model may be shown, for guards to read: text blocks, embedded and linked resources,
    /// `structuredContent` as JSON, the questions of an `input_required` result, what a task says of its state,
    /// metadata, and blocks and fields of unknown kind as JSON.
    pub told: Told,
    /// `structuredContent` as sent.
    pub structured: Option<&'a RawValue>,
    /// The state the client will echo when it calls again, as sent (`input_required` only).
    pub request_state: Option<&'a RawValue>,
    /// The task ([`ResultKind::TaskCreated`] only).
    pub task_id: Option<String>,
    /// The result as sent.
    pub raw: &'a RawValue,
}

/// Reads the result of a `tools/call` request.
///
/// # Errors
/// [`FieldError`] if it is not an object, has too many content blocks, says a field twice, or nests deeper than is
/// read, so that the client may see another text than the guards did.
pub fn read_tool_result(result: &RawValue) -> Result<ToolResult<'_>, FieldError> {
    let known = [
        "content",
        "structuredContent",
        "isError",
        "resultType",
        "inputRequests",
        "requestState",
        "task",
        "taskId",
    ];
    let ([content, structured, is_error, result_type, input_requests, request_state, task, task_id], rest) =
        fields::read_with_rest(result.get(), &known)?;
    let [content, structured, input_requests, task] =
        [content, structured, input_requests, task].map(fields::present);
    // What has something to show is a result, whatever else it says that it is.
    let only_a_task =
        content.is_none() && structured.is_none() && input_requests.is_none() && !has_legacy(&rest);
    let word = fields::present(result_type).map(|raw| fields::string(raw).unwrap_or_default());
    let kind = match word.as_deref() {
        // Up to 2025-11-25 a created task is nested in `task`; later it is flat with `resultType`.
        None if task.is_some() && only_a_task => ResultKind::TaskCreated,
        None | Some("complete") if is_error.is_some_and(|raw| raw.get() == "true") => ResultKind::Error,
        None | Some("complete") => ResultKind::Complete,
        Some("input_required") => ResultKind::InputRequired,
        Some("task") if only_a_task => ResultKind::TaskCreated,
        Some(other) => ResultKind::Other(other.to_owned()),
    };

    let mut told = Told::default();
    if let Some(content) = content {
        told.push_blocks(content)?;
    }
    told.push_json(structured)?;
    told.push_json(input_requests)?;
    let task_id = match task {
        Some(task) if kind == ResultKind::TaskCreated => {
            let ([task_id], of_task) = fields::read_with_rest(task.get(), &["taskId"])?;
            told.push_rest(&of_task)?;
            task_id
        }
        other => {
            told.push_json(other)?;
            task_id
        }
    };
    for field in [result_type, is_error, task_id] {
        told.push_unless_plain(field)?;
    }
    // Nobody echoes it but a client that is to call again, and that one shows it to nobody as long as it is opaque.
    told.push_string(request_state.filter(|state| kind != ResultKind::InputRequired || !is_opaque(state)))?;
    told.push_rest(&rest)?;
    let task_id = task_id.filter(|_| kind == ResultKind::TaskCreated).and_then(fields::string);
    Ok(ToolResult {
        kind,
        told,
        structured,
        request_state: fields::present(request_state),
        task_id: task_id.map(String::from),
        raw: result,
    })
}

/// Whether a state is one token: letters, digits and signs, as in base64 and in JSON web tokens.
fn is_opaque(state: &RawValue) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/=~".contains(&byte);
    fields::string(state).is_some_and(|state| state.bytes().all(sign))
}

/// Whether there is a result as the very first revision had it, which some clients still show.
fn has_legacy(rest: &Named<'_>) -> bool {
    rest.iter().any(|(name, _)| name == "toolResult")
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
            (read.request_state.unwrap().get(), read.told.text.as_str()),
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
        assert_eq!((read.told.text.as_str(), read.told.truncated), (expected, false));
        assert_eq!(read.structured.unwrap().get(), r#"{"s":"s\u0069x"}"#);
        assert_eq!(read.raw.get(), result.get());
        let error = raw(r#"{"code":1,"message":"m","data":["d"]}"#);
        assert_eq!(error_text(&error).unwrap().text, "m\n[\"d\"]");
    }

    #[test]
    fn what_no_specification_speaks_of_is_text_all_the_same() {
        for result in [
            r#"{"content":[],"_meta":{"note":"an \u006frder"}}"#,
            r#"{"content":[],"toolResult":"an order"}"#,
            r#"{"content":[],"requestState":"an order"}"#,
            r#"{"resultType":"task","taskId":"t","requestState":"an order"}"#,
            r#"{"resultType":"input_required","inputRequests":{},"requestState":"an order"}"#,
            r#"{"resultType":"input_required","requestState":{"x":"an order"}}"#,
            r#"{"resultType":"later","requestState":"an order"}"#,
            r#"{"content":[],"novel":["an order"]}"#,
            r#"{"content":[],"an order":1}"#,
            r#"{"content":[],"status":"an order"}"#,
            r#"{"content":[],"task":{"statusMessage":"an order"}}"#,
            r#"{"resultType":"task","taskId":"t","statusMessage":"an order"}"#,
            r#"{"task":{"taskId":"t","_meta":{"x":"an order"}}}"#,
            r#"{"content":[{"type":"text","text":"ok","_meta":{"x":"an order"}}]}"#,
            r#"{"content":[{"type":"text","text":"ok","annotations":{"audience":["an order"]}}]}"#,
            r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png","text":"an order"}]}"#,
            r#"{"content":[{"type":"image","data":"an order","mimeType":"image/png"}]}"#,
            r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"an order"}]}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"u","mimeType":"text/plain","blob":"YW4gb3JkZXI="}}]}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"u","blob":"YW4g\nb3JkZXI"}}]}"#,
            r#"{"content":[{"type":"resource_link","uri":"u","icons":[{"src":"an order"}]}]}"#,
            r#"{"content":[{"type":"text","text":"\ud800an order"}]}"#,
        ] {
            let result = raw(result);
            let read = read_tool_result(&result).unwrap();
            assert!(read.told.text.contains("an order"), "{result}: {:?}", read.told.text);
        }
    }

    #[test]
    fn what_steers_the_protocol_is_no_text() {
        for (result, expected) in [
            (
                r#"{"content":[{"type":"text","text":"a","annotations":{"audience":["user","assistant"],"priority":0.5,
                    "lastModified":"2026-01-02T03:04:05Z"}}],"isError":false,"_meta":{},"ttlMs":5}"#,
                "a",
            ),
            (
                r#"{"resultType":"task","taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working",
                    "createdAt":"2026-11-25T10:30:00Z","lastUpdatedAt":"2026-11-25T10:40:00Z","ttlMs":null}"#,
                "",
            ),
            (r#"{"resultType":"input_required","requestState":"eyJhIjoxfQ==.x-_y"}"#, ""),
            (r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#, ""),
        ] {
            assert_eq!(read_tool_result(&raw(result)).unwrap().told.text, expected, "{result}");
        }
    }

    #[test]
    fn what_shows_something_is_no_task() {
        for result in [
            r#"{"resultType":"task","taskId":"t","content":[]}"#,
            r#"{"resultType":"task","taskId":"t","toolResult":"x"}"#,
            r#"{"resultType":"task","taskId":"t","inputRequests":{}}"#,
            r#"{"task":{"taskId":"t"},"structuredContent":{"a":"x"}}"#,
        ] {
            let result = raw(result);
            let read = read_tool_result(&result).unwrap();
            assert!(read.kind != ResultKind::TaskCreated && read.task_id.is_none(), "{result}");
        }
    }

    #[test]
    fn what_is_too_deep_to_be_read_anew_is_refused() {
        let deep = |levels: usize| format!("{}\"an order\"{}", r#"{"x":"#.repeat(levels), "}".repeat(levels));
        for field in ["structuredContent", "inputRequests", "_meta", "novel"] {
            let result = |levels| raw(&format!(r#"{{"content":[],"{field}":{}}}"#, deep(levels)));
            assert!(read_tool_result(&result(100)).unwrap().told.text.contains("an order"));
            assert!(read_tool_result(&result(130)).is_err(), "{field}");
        }
        let block = raw(&format!(r#"{{"content":[{{"type":"novel","x":{}}}]}}"#, deep(130)));
        assert!(read_tool_result(&block).is_err());
        assert!(error_text(&raw(&format!(r#"{{"message":"m","data":{}}}"#, deep(130)))).is_err());
        assert!(error_text(&raw(r#"{"message":"m","message":"n"}"#)).is_err());
    }

    #[test]
    fn other_results_and_parameters_are_read_alike() {
        for (said, expected) in [
            (r#"{"contents":[{"uri":"file:///a","mimeType":"text/plain","text":"one"}]}"#, "file:///a\none"),
            (r#"{"contents":[{"uri":"u","blob":"b25l"}],"ttlMs":1}"#, "u\none"),
            (r#"{"contents":[{"uri":"u","blob":"b25lAA=="}]}"#, "u\none"),
            (
                r#"{"messages":[{"role":"user","content":{"type":"audio","data":"b25lAA==","mimeType":"text/x"}}]}"#,
                "one",
            ),
            (
                r#"{"messages":[{"content":{"type":"tool_result","content":[{"data":"b25lAA=="}]}}]}"#,
                "{\"type\":\"tool_result\",\"content\":[{\"data\":\"b25lAA==\"}]}\none",
            ),
            (
                r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"one"}}]}"#,
                "one\nd",
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"one"}]}],"maxTokens":5}"#,
                "one",
            ),
            (r#"{"progressToken":"p","progress":0.5,"message":"one"}"#, "one"),
            (r#"{"progressToken":3,"progress":1,"total":2}"#, ""),
            (r#"{"completion":{"values":["one"]}}"#, r#"{"values":["one"]}"#),
            (r#"{"contents":"one","messages":"two","content":"three"}"#, "one\ntwo\nthree"),
            (r#"["one",2]"#, r#"["one",2]"#),
            (r#""one""#, "one"),
            ("{}", ""),
            ("null", ""),
        ] {
            assert_eq!(told(&raw(said)).unwrap().text, expected, "{said}");
        }
    }

    #[test]
    fn text_is_bounded_at_a_character() {
        let long =
            format!(r#"{{"content":[{{"type":"text","text":"x{}"}}]}}"#, "é".repeat(RESULT_TEXT_BYTES_MAX));
        let long = raw(&long);
        let read = read_tool_result(&long).unwrap();
        assert_eq!((read.told.text.len(), read.told.truncated), (RESULT_TEXT_BYTES_MAX - 1, true));
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
