//! What the headers of a request must say, and that they say no other than its body.

use axum::http::{HeaderMap, StatusCode, header};
use portcullis_wire::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST, Message};
use portcullis_wire::mcp::call::parse_tool_call;
use portcullis_wire::mcp::headers::{HEADER_MISMATCH, METHOD, NAME, PROTOCOL_VERSION, decode, name_of};
use portcullis_wire::mcp::{
    META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, TOOLS_CALL, V_2026_07_28, request_meta,
};

use serde_json::value::RawValue;

use super::answers::{Refusal, refusal};
use crate::mcp::endpoint::Session;
use crate::mcp::stateless_version;

/// The generation of the protocol that a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// From 2026-07-28.
    Stateless,
    /// Up to 2025-11-25.
    OfSession,
}

/// Longest value of a header that is read, in bytes.
const VALUE_BYTES_MAX: usize = 16 * 1024;

/// The one value of a header. `None` if it is not there, is there twice, or is no text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().filter(|text| text.len() <= VALUE_BYTES_MAX),
        _ => None,
    }
}

/// Whether an answer of this type is accepted.
pub(super) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types =
        values.flat_map(|value| value.split(',')).map(|value| value.split(';').next().unwrap_or_default());
    let (kind, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    types.any(|one| {
        let one = one.trim();
        one.eq_ignore_ascii_case(wanted) || one == "*/*" || one.strip_suffix("/*") == Some(kind)
    })
}

/// Whether the body is JSON, and both kinds of answers are accepted.
pub(super) fn check_kinds(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let why = "send `Content-Type: application/json`";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, INVALID_REQUEST, why));
    }
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        let why = "send `Accept: application/json, text/event-stream`";
        return Err(refusal(StatusCode::NOT_ACCEPTABLE, None, INVALID_REQUEST, why));
    }
    Ok(())
}

/// The generation of a message. One whose headers and body differ in it is refused.
pub(super) fn kind(headers: &HeaderMap, message: &Message<'_>) -> Result<Kind, Refusal> {
    let id = match message {
        Message::Request { id_raw, .. } => Some(*id_raw),
        _ => None,
    };
    let mismatch = |why: &str| Err(refusal(StatusCode::BAD_REQUEST, id, HEADER_MISMATCH, why));
    let said = text(headers, PROTOCOL_VERSION);
    if headers.contains_key(PROTOCOL_VERSION) && said.is_none() {
        return mismatch("`MCP-Protocol-Version` is said twice, or is no text");
    }
    match (said, stateless_version(message)) {
        (Some(said), Some(version)) if said == version => check_names(headers, message),
        (Some(said), None) if said < V_2026_07_28 => match is_revision(said) {
            true => Ok(Kind::OfSession),
            false => Err(refusal(
                StatusCode::BAD_REQUEST,
                id,
                INVALID_REQUEST,
                "`MCP-Protocol-Version` is no revision",
            )),
        },
        // A notification of this generation need not say its revision in the body.
        (Some(_), None) if matches!(message, Message::Notification { .. }) => Ok(Kind::Stateless),
        (Some(_), None) if !says_revision(message) => Err(lacking(id, META_PROTOCOL_VERSION)),
        (Some(_), _) => mismatch("`MCP-Protocol-Version` differs from the revision in the body's `_meta`"),
        (None, Some(_)) => mismatch("`MCP-Protocol-Version` is missing"),
        (None, None) => Ok(Kind::OfSession),
    }
}

/// Whether the body says any revision at all.
fn says_revision(message: &Message<'_>) -> bool {
    let Message::Request { params, .. } = message else { return false };
    request_meta(*params).is_ok_and(|meta| meta.protocol_version.is_some())
}

/// Every request of a revision without sessions has to say this of itself.
fn lacking(id: Option<&RawValue>, key: &str) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, id, INVALID_PARAMS, &format!("`params._meta` has to have `{key}`"))
}

/// Revisions are dates.
fn is_revision(text: &str) -> bool {
    let digit =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(digit)
}

/// `Mcp-Method` and `Mcp-Name` of a request.
fn check_names(headers: &HeaderMap, message: &Message<'_>) -> Result<Kind, Refusal> {
    let Message::Request { id_raw, method, params, .. } = message else { return Ok(Kind::Stateless) };
    let mismatch = |why: String| Err(refusal(StatusCode::BAD_REQUEST, Some(id_raw), HEADER_MISMATCH, &why));
    if text(headers, METHOD) != Some(method) {
        return mismatch("`Mcp-Method` is missing, or differs from the body's `method`".to_owned());
    }
    let capabilities = request_meta(*params).ok().and_then(|meta| meta.client_capabilities);
    if !capabilities.is_some_and(|capabilities| capabilities.get().starts_with('{')) {
        return Err(lacking(Some(id_raw), META_CLIENT_CAPABILITIES));
    }
    let name = match name_of(method, *params) {
        Ok(name) => name,
        Err(error) => return mismatch(error.to_string()),
    };
    if let Some(name) = name {
        let said = text(headers, NAME).and_then(|said| decode(said.as_bytes()));
        if said.as_deref() != Some(name.as_str()) {
            return mismatch("`Mcp-Name` is missing, or differs from the body".to_owned());
        }
    }
    Ok(Kind::Stateless)
}

/// Whether headers that repeat arguments of a call say what the arguments say.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    message: &Message<'_>,
    session: &Session,
) -> Result<(), String> {
    let Message::Request { method, params, .. } = message else { return Ok(()) };
    if method != TOOLS_CALL {
        return Ok(());
    }
    // What cannot be read is refused by the gate, in its own words.
    let Ok(call) = parse_tool_call(*params) else { return Ok(()) };
    for repeated in session.repeated(&call.name) {
        let name = &repeated.header;
        let said = match headers.contains_key(name) {
            false => None,
            true => Some(text(headers, name).and_then(|said| decode(said.as_bytes()))),
        };
        match (said, repeated.value(&call.arguments)) {
            (None, None) => {}
            (Some(Some(said)), Some(_)) if repeated.agrees(&said, &call.arguments) => {}
            _ => return Err(format!("`{name}` is missing, or differs from the argument that it repeats")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use portcullis_wire::jsonrpc::peek;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn kind_of(all: &[(&'static str, &'static str)], body: &str) -> Result<Kind, StatusCode> {
        kind(&headers(all), &peek(body.as_bytes()).unwrap()).map_err(|refused| refused.status)
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

    #[test]
    fn headers_and_body_must_say_the_same() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let (method, name) = (("mcp-method", "tools/call"), ("mcp-name", "=?base64?w6k=?="));
        assert_eq!(kind_of(&[version, method, name], CALL), Ok(Kind::Stateless));
        for wrong in [
            &[method, name][..],
            &[("mcp-protocol-version", "2025-11-25"), method, name],
            &[version, version, method, name],
            &[version, name],
            &[version, ("mcp-method", "tools/list"), name],
            &[version, method],
            &[version, method, ("mcp-name", "e")],
            &[version, method, name, name],
        ] {
            assert_eq!(kind_of(wrong, CALL), Err(StatusCode::BAD_REQUEST), "{wrong:?}");
        }
        let old = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert_eq!(kind_of(&[], old), Ok(Kind::OfSession));
        assert_eq!(kind_of(&[("mcp-protocol-version", "2025-06-18")], old), Ok(Kind::OfSession));
        assert_eq!(kind_of(&[("mcp-protocol-version", "1.0")], old), Err(StatusCode::BAD_REQUEST));
        assert_eq!(kind_of(&[version], old), Err(StatusCode::BAD_REQUEST));
        for lacking in ["protocolVersion", "clientCapabilities"] {
            let body = CALL.replace(lacking, "other");
            let refused =
                kind(&headers(&[version, method, name]), &peek(body.as_bytes()).unwrap()).unwrap_err();
            assert_eq!(
                (refused.status, refused.code()),
                (StatusCode::BAD_REQUEST, INVALID_PARAMS),
                "{lacking}"
            );
        }
        let other = CALL.replace("2026-07-28", "2025-11-25");
        let refused = kind(&headers(&[version, method, name]), &peek(other.as_bytes()).unwrap()).unwrap_err();
        assert_eq!(refused.code(), HEADER_MISMATCH, "two revisions");
    }

    #[test]
    fn what_is_accepted_may_be_said_in_many_ways() {
        let both = |value: &'static str| {
            let headers = headers(&[("accept", value)]);
            accepts(&headers, "application/json") && accepts(&headers, "text/event-stream")
        };
        assert!(both("application/json, text/event-stream"));
        assert!(both("text/*;q=0.5, Application/JSON"));
        assert!(both("*/*"));
        assert!(!both("application/json") && !both("text/html, */json") && !both(""));
    }
}
