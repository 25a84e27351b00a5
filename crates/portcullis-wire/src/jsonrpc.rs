//! JSON-RPC 2.0, read without being rewritten.
//!
//! [`peek`] finds out what one message is and where its parts lie; the parts stay raw slices of the line, so that
//! forwarding the line forwards exactly what was received, with every unknown field. It refuses messages that two
//! peers could understand differently (a field twice, `method` beside `result`).

use crate::fields::{self, FieldError};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Largest message, in bytes, without its newline: 16 MiB.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most messages in one batch.
pub const BATCH_MESSAGES_MAX: usize = 1024;

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is JSON but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// The identity of a request, for matching a response to it.
///
/// A number and a string are different ids even where they look alike; `1` and `1.0` are the same number, and
/// strings compare after decoding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// `null`, or absent from a response: the peer could not read which request it answers.
    Null,
    /// An integer that 64 bits hold, however it is written.
    Integer(i128),
    /// Any other number, by its literal text.
    Number(Box<str>),
    /// A string.
    String(Box<str>),
}

impl Id {
    /// The id in `raw`; `None` if it is neither string, number nor `null`.
    #[must_use]
    pub fn of(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        match text.bytes().next()? {
            b'n' => Some(Self::Null),
            b'"' => Some(Self::String(fields::string(raw)?.into())),
            b'-' | b'0'..=b'9' => {
                Some(integer(text).map_or_else(|| Self::Number(text.into()), Self::Integer))
            }
            _ => None,
        }
    }

    /// Whether every reader of the id takes it for the same, and can send it back: a string, or an integer
    /// within ±(2^53 − 1). Many readers round other numbers, or turn them into `null`, and then answer another
    /// request than the one that was asked.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self {
            Self::String(_) => true,
            Self::Integer(number) => number.abs() <= SAFE_INTEGER_MAX,
            Self::Null | Self::Number(_) => false,
        }
    }
}

/// Largest integer that every JSON reader keeps exactly, 2^53 − 1 (RFC 8259, section 6).
const SAFE_INTEGER_MAX: i128 = (1 << 53) - 1;

/// The integer value of a number literal, if it is certain: floats only up to 2^53.
fn integer(literal: &str) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(number) = literal.parse::<i128>() {
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        return range.contains(&number).then_some(number);
    }
    let number = literal.parse::<f64>().ok()?;
    if number.fract() != 0.0 || number.abs() > EXACT {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Number(literal) => f.write_str(literal),
            Self::String(text) => write!(f, "{text:?}"),
        }
    }
}

/// The outline of one message; slices borrow from the line.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// Expects a response. An explicit `"id":null` makes a request with [`Id::Null`], not a notification.
    Request {
        /// For matching.
        id: Id,
        /// As sent, for answering.
        id_raw: &'a RawValue,
        /// The method's name, decoded.
        method: Cow<'a, str>,
        /// The parameters; an explicit `null` is kept.
        params: Option<&'a RawValue>,
    },
    /// Expects no response.
    Notification {
        /// The method's name, decoded.
        method: Cow<'a, str>,
        /// The parameters; an explicit `null` is kept.
        params: Option<&'a RawValue>,
    },
    /// Answers a request of the other side. Exactly one of `result` and `error` is there.
    Response {
        /// Which request.
        id: Id,
        /// The outcome of it.
        result: Option<&'a RawValue>,
        /// Or why nothing did.
        error: Option<&'a RawValue>,
    },
    /// Several messages (protocol 2025-03-26 only), each to be peeked at by itself.
    Batch(Vec<&'a RawValue>),
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeekError {
    /// The line is longer than [`MESSAGE_BYTES_MAX`].
    #[error(
        "the message has {0} bytes, more than the limit of {MESSAGE_BYTES_MAX}; send it in smaller parts"
    )]
    TooLarge(usize),
    /// The line is not UTF-8; the offset of the first bad byte.
    #[error("the message is not UTF-8 at byte {0}")]
    InvalidUtf8(usize),
    /// A carriage return before the end of the line, with its offset.
    #[error("the message has a carriage return at byte {0}, which some readers treat as its end; remove it")]
    CarriageReturn(usize),
    /// The line is not an object or array of JSON, or says a field twice.
    #[error("the message cannot be read: {0}")]
    Field(#[from] FieldError),
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("field `jsonrpc` must be \"2.0\"")]
    Version,
    /// `id` is neither string, number nor `null`.
    #[error("field `id` must be a string or a number")]
    Id,
    /// `method` is not a string.
    #[error("field `method` must be a string")]
    Method,
    /// Not exactly one of `method`, `result` and `error`.
    #[error("a message has exactly one of `method`, `result` and `error`; this one has {0}")]
    Shape(&'static str),
}

impl PeekError {
    /// The JSON-RPC error code for an answer to such a line.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::InvalidUtf8(_) | Self::CarriageReturn(_) | Self::Field(FieldError::Json(_)) => PARSE_ERROR,
            _ => INVALID_REQUEST,
        }
    }
}

/// The members that a message may have (JSON-RPC 2.0, sections 4 and 5).
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The message without members that JSON-RPC does not have, where there are some: no reader of the protocol looks at them,
/// but other programs may show them. `None`: there are none. A batch is left alone.
///
/// # Errors
/// [`PeekError`], as [`peek`]; or there are more members than anybody reads.
pub fn without_other_members(line: &[u8]) -> Result<Option<Vec<u8>>, PeekError> {
    let text = check(line)?;
    if text.trim_start().starts_with('[') {
        return Ok(None);
    }
    let (members, rest) = fields::read_with_rest(text, &MEMBERS)?;
    if rest.is_empty() {
        return Ok(None);
    }
    let kept = MEMBERS.iter().zip(members);
    let kept = kept.filter_map(|(name, value)| Some(format!(r#""{name}":{}"#, value?.get())));
    Ok(Some(format!("{{{}}}", kept.collect::<Vec<_>>().join(",")).into_bytes()))
}

/// Finds out what one message is. Costs one pass over the line and allocates only for escaped names.
///
/// # Errors
/// [`PeekError`] if the line is not a JSON-RPC 2.0 message or could be taken for two.
pub fn peek(line: &[u8]) -> Result<Message<'_>, PeekError> {
    let text = check(line)?;
    if text.trim_start().starts_with('[') {
        let elements = fields::read_array(text, "batch", BATCH_MESSAGES_MAX)?;
        return Ok(Message::Batch(elements));
    }
    let [version, id_raw, method, params, result, error] = fields::read(text, &MEMBERS)?;
    if version.and_then(fields::string).as_deref() != Some("2.0") {
        return Err(PeekError::Version);
    }
    let id = id_raw.map_or(Some(Id::Null), Id::of).ok_or(PeekError::Id)?;
    if let Some(method) = method {
        if result.is_some() || error.is_some() {
            return Err(PeekError::Shape("`method` and an answer"));
        }
        let method = fields::string(method).ok_or(PeekError::Method)?;
        return Ok(match id_raw {
            Some(id_raw) => Message::Request { id, id_raw, method, params },
            None => Message::Notification { method, params },
        });
    }
    // Older peers write `"error":null` beside a result: that is one answer, not two.
    match (result, fields::present(error)) {
        (Some(_), Some(_)) => Err(PeekError::Shape("both `result` and `error`")),
        (None, None) => Err(PeekError::Shape("none")),
        (result, error) => Ok(Message::Response { id, result, error }),
    }
}

/// A message as one line: line ends between the tokens of JSON become spaces. Whoever reads lines would take the parts for
/// messages of their own. Within strings JSON has no line ends.
///
/// # Errors
/// [`PeekError`]: it is not UTF-8, or not one value of JSON.
pub fn one_line(body: &[u8]) -> Result<Cow<'_, [u8]>, PeekError> {
    if !body.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Ok(Cow::Borrowed(body));
    }
    let text = std::str::from_utf8(body).map_err(|error| PeekError::InvalidUtf8(error.valid_up_to()))?;
    // Refuses a line end within a string, which the replacement would hide.
    serde_json::from_str::<&RawValue>(text)
        .map_err(|_| PeekError::Field(FieldError::Json("it is no JSON".to_owned())))?;
    let spaced = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    Ok(Cow::Owned(body.iter().map(spaced).collect()))
}

/// The line as text, where its size and encoding are in order, and it is one line to every reader.
///
/// JSON takes a raw carriage return for white space, universal newlines take it for the end of a line: what is
/// one message here would be several there. Other line breaks (U+0085, U+2028, U+2029) are left alone. JSON has
/// them within strings only, and a message that began or ended there would have to close its own quotes with
/// ours.
pub(crate) fn check(line: &[u8]) -> Result<&str, PeekError> {
    if line.len() > MESSAGE_BYTES_MAX {
        return Err(PeekError::TooLarge(line.len()));
    }
    let without_end = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(at) = without_end.iter().position(|byte| *byte == b'\r') {
        return Err(PeekError::CarriageReturn(at));
    }
    std::str::from_utf8(line).map_err(|error| PeekError::InvalidUtf8(error.valid_up_to()))
}

/// A response that carries an error; without newline. `id` as the request sent it, `None` if it could not
/// be read.
#[must_use]
pub fn error_response(id: Option<&RawValue>, code: i64, message: &str, data: Option<&Value>) -> Vec<u8> {
    let mut error = serde_json::Map::new();
    error.insert("code".to_owned(), code.into());
    error.insert("message".to_owned(), message.into());
    if let Some(data) = data {
        error.insert("data".to_owned(), data.clone());
    }
    response(id, "error", &Value::Object(error))
}

/// A response that carries a result; without newline. `id` as the request sent it.
#[must_use]
pub fn result_response(id: &RawValue, result: &Value) -> Vec<u8> {
    response(Some(id), "result", result)
}

fn response(id: Option<&RawValue>, field: &str, value: &Value) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{field}":{value}}}"#).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn id(text: &str) -> Id {
        Id::of(&RawValue::from_string(text.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn ids_compare_by_value_and_kind() {
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("10"), id("1e1"));
        assert_eq!(id("-0"), id("0.0"));
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("null"), id("\"null\""));
        assert_ne!(id("9007199254740993"), id("9007199254740992"));
        assert_ne!(id("9007199254740993"), id("9007199254740993.0"));
        assert_ne!(id("1e30"), id("1e31"));
        assert_eq!(id("18446744073709551615"), Id::Integer(i128::from(u64::MAX)));
        assert_eq!(id("1.5"), Id::Number("1.5".into()));
    }

    #[test]
    fn messages_are_told_apart() {
        let line = br#"{"params": {"x" : 1},"id":"a\n","method":"tools\/call","jsonrpc":"2.0","extra":0}"#;
        let Ok(Message::Request { id, id_raw, method, params }) = peek(line) else { panic!("no request") };
        assert_eq!((id, id_raw.get()), (Id::String("a\n".into()), r#""a\n""#));
        assert_eq!((method.as_ref(), params.unwrap().get()), ("tools/call", r#"{"x" : 1}"#));

        let Ok(Message::Notification { method, params }) = peek(br#"{"jsonrpc":"2.0","method":"m"}"#) else {
            panic!("no notification")
        };
        assert_eq!((method.as_ref(), params.is_none()), ("m", true));

        let line = br#"{"jsonrpc":"2.0","id":7,"result":null,"error":null}"#;
        let Ok(Message::Response { id, result, error }) = peek(line) else { panic!("no response") };
        assert_eq!((id, result.unwrap().get(), error.is_none()), (Id::Integer(7), "null", true));

        let Ok(Message::Response { id, error, .. }) = peek(br#"{"jsonrpc":"2.0","error":{"code":1}}"#) else {
            panic!("no error response")
        };
        assert_eq!((id, error.unwrap().get()), (Id::Null, "{\"code\":1}"));

        let Ok(Message::Request { id: Id::Null, .. }) = peek(br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#)
        else {
            panic!("a null id is still an id")
        };
        let Ok(Message::Batch(elements)) = peek(br#" [{"a":1}, 2]"#) else { panic!("no batch") };
        assert_eq!(elements.iter().map(|raw| raw.get()).collect::<Vec<_>>(), ["{\"a\":1}", "2"]);
    }

    #[test]
    fn a_message_becomes_one_line() {
        assert_eq!(one_line(b"{\"a\":1}").unwrap(), Cow::Borrowed(b"{\"a\":1}"));
        assert_eq!(one_line(b"{\n\"a\":\r\n1}\n").unwrap().as_ref(), b"{ \"a\":  1} ");
        for wrong in [&b"{\"a\":\"\n\"}"[..], b"{}\n{}", b"\xff\n"] {
            assert!(one_line(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn members_that_the_protocol_does_not_have_are_taken_out() {
        let line = br#"{"note":"x","jsonrpc":"2.0","id":1,"result":{"note":"y"},"\u006eote2":["z"]}"#;
        let alone = without_other_members(line).unwrap().unwrap();
        assert_eq!(alone, br#"{"jsonrpc":"2.0","id":1,"result":{"note":"y"}}"#);
        for whole in [&br#"{"jsonrpc":"2.0","method":"m","params":{}}"#[..], b" [{\"note\":1}]"] {
            assert_eq!(without_other_members(whole).unwrap(), None);
        }
        assert!(without_other_members(b"{").is_err());
    }

    #[test]
    fn what_could_be_taken_for_two_messages_is_refused() {
        for (line, words) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, "occurs twice"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#, "only in case"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"para\u006ds":{}}"#, "occurs twice"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "occurs twice"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, "exactly one"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "exactly one"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "exactly one"),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, "`method` must be"),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, "`id` must be"),
            (r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#, "`id` must be"),
            (r#"{"id":1,"method":"m"}"#, "`jsonrpc` must be"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "`jsonrpc` must be"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#, "trailing"),
            ("7", "expected an object"),
            ("", "EOF"),
        ] {
            let error = peek(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
        assert_eq!(peek(b"{\"a\xff\":1}").unwrap_err(), PeekError::InvalidUtf8(3));
    }

    #[test]
    fn what_some_readers_take_for_several_lines_is_refused() {
        let inner = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#;
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\r{inner}\r}}}}");
        let error = peek(line.as_bytes()).unwrap_err();
        assert_eq!((&error, error.code()), (&PeekError::CarriageReturn(54), PARSE_ERROR));
        let one = r#"{"jsonrpc":"2.0","method":"m"}"#;
        for line in [format!("\r{one}"), format!("{one}\r\r"), format!("{one} \r "), " \r ".to_owned()] {
            assert!(matches!(peek(line.as_bytes()), Err(PeekError::CarriageReturn(_))), "{line:?}");
        }
        assert!(peek(format!("{one}\r").as_bytes()).is_ok(), "the newline of some systems");
        // Escaped it is not a line break, and these stand within strings only.
        for text in ["\\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":"{text}"}}}}"#);
            assert!(peek(line.as_bytes()).is_ok(), "{line:?}");
        }
        for space in ["\u{b}", "\u{c}", "\u{1c}", "\u{85}", "\u{2028}"] {
            let outside = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":{space}1}}}}"#);
            assert!(peek(outside.as_bytes()).is_err(), "{outside:?}");
        }
        for control in ["\u{b}", "\u{c}", "\u{1c}"] {
            let within = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"x":"{control}"}}}}"#);
            assert!(peek(within.as_bytes()).is_err(), "{within:?}");
        }
    }

    #[test]
    fn ids_that_readers_round_are_not_exact() {
        for exact in ["0", "-0", "1.0", "9007199254740991", "-9007199254740991", r#""1e400""#] {
            assert!(id(exact).is_exact(), "{exact}");
        }
        for other in ["null", "1.5", "1e400", "9007199254740992", "-9007199254740993", "9007199254740993.0"] {
            assert!(!id(other).is_exact(), "{other}");
        }
    }

    #[test]
    fn limits_hold() {
        let long = vec![b' '; MESSAGE_BYTES_MAX + 1];
        assert_eq!(peek(&long).unwrap_err(), PeekError::TooLarge(MESSAGE_BYTES_MAX + 1));
        let batch = format!("[{}0]", "0,".repeat(BATCH_MESSAGES_MAX));
        assert!(matches!(peek(batch.as_bytes()), Err(PeekError::Field(FieldError::TooMany { .. }))));
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{}"#, "[".repeat(1_000_000));
        assert_eq!(peek(deep.as_bytes()).unwrap_err().code(), PARSE_ERROR);
    }

    #[test]
    fn built_responses_read_back() {
        let raw = RawValue::from_string("1.0".to_owned()).unwrap();
        let line = result_response(&raw, &json!({"a": "line\nbreak"}));
        assert_eq!(line, br#"{"jsonrpc":"2.0","id":1.0,"result":{"a":"line\nbreak"}}"#);
        let line = error_response(None, PARSE_ERROR, "no \"JSON\"", Some(&json!(1)));
        let Ok(Message::Response { id: Id::Null, error: Some(error), .. }) = peek(&line) else { panic!() };
        let error: Value = serde_json::from_str(error.get()).unwrap();
        assert_eq!(error, json!({"code": -32700, "message": "no \"JSON\"", "data": 1}));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = peek(&bytes);
        }

        #[test]
        fn message_like_bytes_never_panic(
            line in r#"\{("(jsonrpc|id|method|params|result|error|x)":("2\.0"|-?[0-9]{1,25}(\.0|e9)?|null|"\\u00[0-9a-f]{2}"|\{\}|\[.{0,3}),?){0,6}\}?"#
        ) {
            let _ = peek(line.as_bytes());
        }
    }
}
