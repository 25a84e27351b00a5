//! `tools/call`: reading what is asked, putting other arguments in its place, and refusing it.

use crate::fields::{self, FieldError};
use crate::jsonrpc::{self, MESSAGE_BYTES_MAX, PeekError};
use crate::strict::{self, StrictError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Longest tool name, in bytes. The protocol recommends at most 128 characters.
pub const TOOL_NAME_BYTES_MAX: usize = 1024;

/// One call, as asked for.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    /// Which tool.
    pub name: String,
    /// The arguments: always an object, read strictly; empty if the call has none.
    pub arguments: Value,
    /// The arguments as sent; absent if the call has none.
    pub arguments_raw: Option<&'a RawValue>,
    /// Metadata as sent.
    pub meta: Option<&'a RawValue>,
    /// What the call carries besides its arguments when it answers an earlier `input_required` result (from
    /// 2026-07-28): an object of `inputResponses` and `requestState`, if present, read strictly because the tool sees
    /// them as well.
    pub continuation: Option<Value>,
    /// The call asks to run as a task, whose result is fetched later (2025-11-25).
    pub task: bool,
}

/// Why a call cannot be judged; it must not reach the tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No parameters.
    #[error("a tool call needs `params` with a `name`")]
    NoParams,
    /// The parameters are no object, or say a field twice.
    #[error("the parameters cannot be read: {0}")]
    Field(#[from] FieldError),
    /// `name` is missing, empty, or no string.
    #[error("`params.name` must be the name of a tool")]
    Name,
    /// `name` is longer than [`TOOL_NAME_BYTES_MAX`].
    #[error("`params.name` has {0} bytes, more than the limit of {TOOL_NAME_BYTES_MAX}")]
    NameTooLong(usize),
    /// `arguments` is something other than an object.
    #[error("`params.arguments` must be an object; omit it if there are none")]
    NotAnObject,
    /// The arguments are ambiguous.
    #[error("`params.arguments` cannot be read: {0} of the arguments")]
    Arguments(#[from] StrictError),
    /// What the call carries besides its arguments is ambiguous.
    #[error("`params.{field}` cannot be read: {source} of it")]
    Continuation {
        /// Which parameter.
        field: &'static str,
        /// Why.
        source: StrictError,
    },
    /// The line around the call cannot be read.
    #[error(transparent)]
    Message(#[from] PeekError),
    /// Replaced arguments would make the message longer than [`MESSAGE_BYTES_MAX`].
    #[error("the call would have {0} bytes, more than the limit of {MESSAGE_BYTES_MAX}")]
    TooLarge(usize),
}

/// Reads the parameters of a `tools/call` request.
///
/// # Errors
/// [`CallError`] if they cannot be read, or two peers could read them differently.
pub fn parse_tool_call(params: Option<&RawValue>) -> Result<ToolCall<'_>, CallError> {
    let params = fields::present(params).ok_or(CallError::NoParams)?;
    let [name, arguments_raw, meta, input_responses, request_state, task] = fields::read(
        params.get(),
        &["name", "arguments", "_meta", "inputResponses", "requestState", "task"],
    )?;
    let name = name.and_then(fields::string).filter(|name| !name.is_empty()).ok_or(CallError::Name)?;
    if name.len() > TOOL_NAME_BYTES_MAX {
        return Err(CallError::NameTooLong(name.len()));
    }
    let arguments = match arguments_raw {
        None => Value::Object(Map::new()),
        Some(raw) if raw.get().starts_with('{') => strict::parse_str(raw.get(), MESSAGE_BYTES_MAX)?,
        Some(_) => return Err(CallError::NotAnObject),
    };
    let continuation = continuation([("inputResponses", input_responses), ("requestState", request_state)])?;
    Ok(ToolCall {
        name: name.into_owned(),
        arguments,
        arguments_raw,
        meta,
        continuation,
        task: fields::present(task).is_some(),
    })
}

/// An object of the `parts` that are there, or `None` if none is.
fn continuation(parts: [(&'static str, Option<&RawValue>); 2]) -> Result<Option<Value>, CallError> {
    let mut object = Map::new();
    for (field, raw) in parts {
        if let Some(raw) = fields::present(raw) {
            let value = strict::parse_str(raw.get(), MESSAGE_BYTES_MAX)
                .map_err(|source| CallError::Continuation { field, source })?;
            object.insert(field.to_owned(), value);
        }
    }
    Ok((!object.is_empty()).then_some(Value::Object(object)))
}

/// The same `tools/call` line with other arguments; every byte outside `params.arguments` stays. A call
/// without arguments gets them as its first parameter.
///
/// # Errors
/// [`CallError`] if the line is not a message with parameters, or would become too large.
pub fn replace_arguments(line: &[u8], arguments: &Value) -> Result<Vec<u8>, CallError> {
    let text = jsonrpc::check(line)?;
    let [params] = fields::read(text, &["params"])?;
    let params = fields::present(params).ok_or(CallError::NoParams)?;
    let [old] = fields::read(params.get(), &["arguments"])?;
    let place = match old {
        Some(old) => fields::span(text, old),
        None => fields::span(text, params).map(|params| params.start + 1..params.start + 1),
    };
    let place = place.ok_or(CallError::NoParams)?;
    let new = match old {
        Some(_) => arguments.to_string(),
        None if is_empty_object(params) => format!(r#""arguments":{arguments}"#),
        None => format!(r#""arguments":{arguments},"#),
    };
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    let replaced = [before, &new, after].concat();
    if replaced.len() > MESSAGE_BYTES_MAX {
        return Err(CallError::TooLarge(replaced.len()));
    }
    Ok(replaced.into_bytes())
}

/// The same `tools/call` line with another `inputResponses` and `requestState`, or without: those of `continuation`. The
/// parameters are written again, each value with the bytes it had; what is around them stays.
///
/// # Errors
/// [`CallError`] if the line is not a message with parameters, or would become too large.
pub fn replace_continuation(line: &[u8], continuation: Option<&Value>) -> Result<Vec<u8>, CallError> {
    let text = jsonrpc::check(line)?;
    let [params] = fields::read(text, &["params"])?;
    let params = fields::present(params).ok_or(CallError::NoParams)?;
    let ([_, _], rest) = fields::read_with_rest(params.get(), &["inputResponses", "requestState"])?;
    let kept = rest.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()));
    let carried = continuation.and_then(Value::as_object).into_iter().flatten();
    let carried = carried.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
    let written = kept.chain(carried).collect::<Vec<_>>().join(",");
    let place = fields::span(text, params).ok_or(CallError::NoParams)?;
    let before = text.get(..place.start).unwrap_or_default();
    let after = text.get(place.end..).unwrap_or_default();
    let replaced = format!("{before}{{{written}}}{after}");
    if replaced.len() > MESSAGE_BYTES_MAX {
        return Err(CallError::TooLarge(replaced.len()));
    }
    Ok(replaced.into_bytes())
}

fn is_empty_object(raw: &RawValue) -> bool {
    raw.get().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('}'))
}

/// The result that a client gets in place of a refused call: a tool result with `isError`, so that the model
/// sees it, with `text` for the model to read and `structured` for programs. Without newline.
/// `with_result_type` adds what a client of 2026-07-28 requires.
#[must_use]
pub fn denial_result(id: &RawValue, text: &str, structured: &Value, with_result_type: bool) -> Vec<u8> {
    let mut result = json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": true,
    });
    if with_result_type && let Some(result) = result.as_object_mut() {
        result.insert("resultType".to_owned(), "complete".into());
    }
    jsonrpc::result_response(id, &result)
}

/// The result that a client of 2026-07-28 gets while its call is held: it retries the call with `state`. `meta` is for
/// programs. Without newline.
#[must_use]
pub fn input_required_result(id: &RawValue, state: &str, meta: &Value) -> Vec<u8> {
    jsonrpc::result_response(
        id,
        &json!({"resultType": "input_required", "requestState": state, "_meta": meta}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Message, peek};
    use crate::strict::StrictErrorKind;
    use proptest::prelude::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_call_is_read() {
        let params =
            raw(r#"{"name":"write\u005ffile","arguments":{ "path":"/a" },"_meta":{"k":1},"task":{"ttl":5}}"#);
        let call = parse_tool_call(Some(&params)).unwrap();
        assert_eq!((call.name.as_str(), call.arguments), ("write_file", json!({"path": "/a"})));
        assert_eq!(call.arguments_raw.unwrap().get(), r#"{ "path":"/a" }"#);
        assert_eq!((call.meta.unwrap().get(), call.task, call.continuation), (r#"{"k":1}"#, true, None));

        let params = raw(r#"{"name":"t"}"#);
        let call = parse_tool_call(Some(&params)).unwrap();
        assert_eq!((call.arguments, call.arguments_raw.is_none(), call.task), (json!({}), true, false));
    }

    #[test]
    fn a_retry_with_answers_is_a_continuation() {
        for (params, expected) in [
            (r#"{"name":"t","requestState":"\u0073"}"#, Some(json!({"requestState": "s"}))),
            (
                r#"{"inputResponses":{"a":[1]},"name":"t","requestState":{}}"#,
                Some(json!({"inputResponses": {"a": [1]}, "requestState": {}})),
            ),
            (r#"{"name":"t","inputResponses":null,"requestState":null}"#, None),
        ] {
            assert_eq!(parse_tool_call(Some(&raw(params))).unwrap().continuation, expected, "{params}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        assert_eq!(parse_tool_call(None).unwrap_err(), CallError::NoParams);
        for (params, words) in [
            ("null", "needs `params`"),
            ("[]", "expected an object"),
            ("{}", "`params.name`"),
            (r#"{"name":""}"#, "`params.name`"),
            (r#"{"name":1}"#, "`params.name`"),
            (r#"{"name":"a","name":"b"}"#, "`name` occurs twice"),
            (r#"{"name":"a","NAME":"b"}"#, "only in case"),
            (r#"{"name":"a","arguments":{},"arguments":{}}"#, "`arguments` occurs twice"),
            (r#"{"name":"a","arguments":null}"#, "must be an object"),
            (r#"{"name":"a","arguments":"{}"}"#, "must be an object"),
            (r#"{"name":"a","arguments":{"x":{"y":1,"y":2}}}"#, "duplicate key `y`"),
            (
                r#"{"name":"a","inputResponses":{"y":1,"y":2}}"#,
                "`params.inputResponses` cannot be read: duplicate",
            ),
            (r#"{"name":"a","requestState":1e999}"#, "`params.requestState` cannot be read: number"),
            (r#"{"name":"a","inputRe\u017fponses":{}}"#, "only in case"),
        ] {
            let error = parse_tool_call(Some(&raw(params))).unwrap_err().to_string();
            assert!(error.contains(words), "{params}: {error}");
        }
        let error = parse_tool_call(Some(&raw(r#"{"name":"a","arguments":{"n":1e999}}"#))).unwrap_err();
        let CallError::Arguments(error) = error else { panic!("{error}") };
        assert_eq!((error.kind, error.offset), (StrictErrorKind::NumberOutOfRange("1e999".to_owned()), 5));
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(TOOL_NAME_BYTES_MAX + 1));
        assert!(matches!(parse_tool_call(Some(&raw(&long))), Err(CallError::NameTooLong(_))));
    }

    #[test]
    fn arguments_are_replaced_and_nothing_else() {
        for (line, expected) in [
            (
                r#" {"id" : 1.0,"params":{ "arguments" : {"a": 1}  ,"name":"n","é":"\u00e9"} , "x":1e5}"#,
                r#" {"id" : 1.0,"params":{ "arguments" : {"b":"\""}  ,"name":"n","é":"\u00e9"} , "x":1e5}"#,
            ),
            (r#"{"params":{ "name":"n"}}"#, r#"{"params":{"arguments":{"b":"\""}, "name":"n"}}"#),
            (r#"{"params":{ }}"#, r#"{"params":{"arguments":{"b":"\""} }}"#),
        ] {
            let replaced = replace_arguments(line.as_bytes(), &json!({"b": "\""})).unwrap();
            assert_eq!(String::from_utf8(replaced).unwrap(), expected);
        }
        for line in ["{}", "[]", r#"{"params":[1]}"#, r#"{"params":{"arguments":1,"arguments":2}}"#] {
            assert!(replace_arguments(line.as_bytes(), &json!({})).is_err(), "{line}");
        }
        let huge = Value::String("x".repeat(MESSAGE_BYTES_MAX));
        assert!(matches!(replace_arguments(br#"{"params":{}}"#, &huge), Err(CallError::TooLarge(_))));
    }

    #[test]
    fn what_a_call_carries_is_replaced_and_nothing_else() {
        let line = r#" {"id":1,"params":{ "name":"n","requestState":"ours","arguments" : {"a": 1.0} ,"inputResponses":{"x":1},"_meta":{"p":"\u00e9"}} ,"x":1e5}"#;
        for (continuation, expected) in [
            (
                None,
                r#" {"id":1,"params":{"name":"n","arguments":{"a": 1.0},"_meta":{"p":"\u00e9"}} ,"x":1e5}"#,
            ),
            (
                Some(json!({"inputResponses": {"y": [2]}, "requestState": "theirs"})),
                r#" {"id":1,"params":{"name":"n","arguments":{"a": 1.0},"_meta":{"p":"\u00e9"},"inputResponses":{"y":[2]},"requestState":"theirs"} ,"x":1e5}"#,
            ),
        ] {
            let replaced = replace_continuation(line.as_bytes(), continuation.as_ref()).unwrap();
            assert_eq!(String::from_utf8(replaced).unwrap(), expected);
        }
        for line in ["{}", "[]", r#"{"params":[1]}"#, r#"{"params":{"requestState":1,"requestState":2}}"#] {
            assert!(replace_continuation(line.as_bytes(), None).is_err(), "{line}");
        }
        let huge = json!({"requestState": "x".repeat(MESSAGE_BYTES_MAX)});
        let replaced = replace_continuation(br#"{"params":{}}"#, Some(&huge));
        assert!(matches!(replaced, Err(CallError::TooLarge(_))));
    }

    #[test]
    fn a_denial_is_a_tool_result() {
        let line = denial_result(&raw("\"7\""), "denied: no", &json!({"rule": "r"}), true);
        let Ok(Message::Response { result: Some(result), .. }) = peek(&line) else { panic!("no response") };
        let result: Value = serde_json::from_str(result.get()).unwrap();
        assert_eq!(
            result,
            json!({"resultType": "complete", "isError": true, "structuredContent": {"rule": "r"},
                   "content": [{"type": "text", "text": "denied: no"}]})
        );
        let older = denial_result(&raw("7"), "t", &json!({}), false);
        assert!(!String::from_utf8(older).unwrap().contains("resultType"));
    }

    proptest! {
        #[test]
        fn replacing_changes_the_arguments_alone(
            before in "[ \t]{0,3}", inner in "[a-z\\n\"é{}]{0,20}", after in "[ \t]{0,3}", new in "[a-z\"\\\\]{0,20}", has: bool
        ) {
            let (inner, new) = (json!({"v": inner}), json!({"w": new}));
            let arguments = if has { format!(r#","arguments":{before}{inner}{after}"#) } else { String::new() };
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{before}{{"name":"n"{arguments}}}{after},"z":{inner}}}"#);
            let replaced = replace_arguments(line.as_bytes(), &new).unwrap();
            let mut expected: Value = serde_json::from_str(&line).unwrap();
            expected["params"]["arguments"] = new.clone();
            prop_assert_eq!(serde_json::from_slice::<Value>(&replaced).unwrap(), expected);
            if has {
                let text = line.replacen(&format!("{before}{inner}{after}}}"), &format!("{before}{new}{after}}}"), 1);
                prop_assert_eq!(String::from_utf8(replaced).unwrap(), text);
            }
        }
    }
}
