//! What a remote server answers, as lines for the gate.
//!
//! An answer is one JSON message, or a stream of events each of which is one. A message that comes where it must not come is
//! dropped, and an answer that lacks what was asked for is a [`Failure`].

use std::borrow::Cow;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper::{Response, StatusCode};
use portcullis_wire::jsonrpc::{Id, MESSAGE_BYTES_MAX, Message, one_line, peek};
use portcullis_wire::mcp::headers::HEADER_MISMATCH;
use portcullis_wire::mcp::hello::read_hello;
use portcullis_wire::mcp::replace::value_at;
use portcullis_wire::mcp::{INITIALIZE, SUBSCRIPTIONS_LISTEN, TOOLS_CALL, TOOLS_LIST};
use portcullis_wire::sse::{Event, EventDecoder};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Shared;
use super::connections::Answered;
use super::failure::Failure;
use super::session::Opened;
use crate::mcp::gate::shown;

/// Longest body of an HTTP error that is read, in bytes, and for how long.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const ERROR_READ_MAX: Duration = Duration::from_secs(5);
/// The code with which the official SDKs' transports refuse a request before anybody has read it.
const REFUSED: i64 = -32000;
/// How long a stream that has told its response may take to end; later its connection is not kept.
const STREAM_ENDS_MAX: Duration = Duration::from_millis(200);

/// What an answer has to bring.
#[derive(Debug)]
pub(super) struct Pending {
    /// The requests without a response.
    pub(super) asked: Vec<Id>,
    /// The method, where there is one request.
    pub(super) method: Option<String>,
    /// It is of a revision without sessions, in which servers ask nothing.
    pub(super) stateless: bool,
    /// The gate has read the list of tools for it.
    pub(super) listed: bool,
    /// Where what comes goes: to the gate, or, where the gate itself asked, the response here and all else nowhere.
    pub(super) kept: Option<Vec<u8>>,
    /// The session that is opened again, which no other request uses before the server was told that it is known.
    pub(super) again: Option<Opened>,
    /// The last id of the stream, by which it can be taken up again.
    pub(super) last_event: Option<String>,
    /// How long to wait before.
    pub(super) retry_ms: Option<u64>,
}

impl Pending {
    pub(super) fn new(asked: Vec<Id>, method: Option<String>, stateless: bool) -> Self {
        Self {
            asked,
            method,
            stateless,
            listed: false,
            kept: None,
            again: None,
            last_event: None,
            retry_ms: None,
        }
    }
}

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Stream,
}

/// The kind that the headers of an answer say.
pub(super) fn kind(headers: &HeaderMap) -> Result<Kind, Failure> {
    let identity = |value: &hyper::header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(identity) {
        return Err(Failure::ContentEncoding);
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else { return Err(Failure::ContentType) };
    let text = value.to_str().map_err(|_| Failure::ContentType)?.to_ascii_lowercase();
    let (essence, parameters) = text.split_once(';').unwrap_or((&text, ""));
    let charset = parameters.split(';').filter_map(|parameter| parameter.trim().strip_prefix("charset="));
    if charset.into_iter().any(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8")) {
        return Err(Failure::ContentType);
    }
    match essence.trim() {
        "application/json" => Ok(Kind::Json),
        "text/event-stream" => Ok(Kind::Stream),
        _ => Err(Failure::ContentType),
    }
}

impl Shared {
    /// Reads the answer to a request until everything that was asked for was told.
    pub(super) async fn read_answer(&self, answered: Answered, pending: &mut Pending) -> Result<(), Failure> {
        let Answered { response, sender } = answered;
        let patience = self.patience;
        match kind(response.headers())? {
            Kind::Json => {
                let body = timeout(patience, collect(response, MESSAGE_BYTES_MAX)).await;
                let body = body.map_err(|_| Failure::Silent(patience))??;
                self.connections.keep(sender);
                self.deliver(&body, pending, Kind::Json).await?;
            }
            Kind::Stream => {
                let mut body = response.into_body();
                // Who listens for changes hears nothing for as long as nothing changes.
                let listens = pending.method.as_deref() == Some(SUBSCRIPTIONS_LISTEN);
                self.read_stream(&mut body, pending, (!listens).then_some(patience)).await?;
                if pending.asked.is_empty() {
                    let connections = std::sync::Arc::clone(&self.connections);
                    tokio::spawn(async move {
                        let ends = async { while let Some(Ok(_)) = body.frame().await {} };
                        if timeout(STREAM_ENDS_MAX, ends).await.is_ok() {
                            connections.keep(sender);
                        }
                    });
                }
            }
        }
        match pending.asked.is_empty() {
            true => Ok(()),
            false => Err(Failure::NoResponse),
        }
    }

    /// Reads a stream of events until everything that was asked for was told, or it ends. Without `patience`, it may say
    /// nothing for any length of time.
    pub(super) async fn read_stream(
        &self,
        body: &mut Incoming,
        pending: &mut Pending,
        patience: Option<Duration>,
    ) -> Result<(), Failure> {
        let listens = pending.asked.is_empty();
        let mut decoder = EventDecoder::new(MESSAGE_BYTES_MAX);
        loop {
            let frame = match patience {
                Some(patience) => {
                    timeout(patience, body.frame()).await.map_err(|_| Failure::Silent(patience))?
                }
                None => body.frame().await,
            };
            let Some(frame) = frame else { return Ok(()) };
            let frame = frame.map_err(|error| Failure::broken(&error))?;
            let Ok(bytes) = frame.into_data() else { continue };
            decoder.feed(&bytes);
            while let Some(event) =
                decoder.next_event().map_err(|error| Failure::Broken(error.to_string()))?
            {
                pending.last_event.clone_from(&event.id);
                Box::pin(self.event(event, pending)).await?;
                if pending.asked.is_empty() && !listens {
                    return Ok(());
                }
            }
            pending.retry_ms = decoder.retry_ms();
        }
    }

    async fn event(&self, event: Event, pending: &mut Pending) -> Result<(), Failure> {
        match event.kind.as_deref() {
            None | Some("message") if event.data.is_empty() => Ok(()),
            None | Some("message") => self.deliver(&event.data, pending, Kind::Stream).await,
            Some(kind) => {
                tracing::warn!("an event of the server was dropped: its kind is `{}`", kind.escape_debug());
                Ok(())
            }
        }
    }

    /// Gives a message to the gate, which judges it, or keeps it where the gate itself asked.
    async fn deliver(&self, body: &[u8], pending: &mut Pending, from: Kind) -> Result<(), Failure> {
        let line = line_of(body)?;
        let message = peek(&line).map_err(|error| Failure::NotAResponse(error.to_string()))?;
        let mut changed = None;
        match &message {
            Message::Response { id, result, .. } => {
                let Some(at) = pending.asked.iter().position(|asked| asked == id) else {
                    tracing::warn!(
                        "a response from the server was dropped: it answers another request than this stream is for"
                    );
                    return Ok(());
                };
                if let (Some(result), Some(method)) = (result, pending.method.as_deref()) {
                    changed = self.noted(method, &line, result, &mut pending.again)?;
                }
                pending.asked.remove(at);
            }
            Message::Batch(elements) => {
                for element in elements {
                    if let Ok(Message::Response { id, .. }) = peek(element.get().as_bytes()) {
                        pending.asked.retain(|asked| *asked != id);
                    }
                }
            }
            Message::Request { .. } if pending.stateless => {
                tracing::warn!(
                    "a request from the server was dropped: this revision has none: {}",
                    shown(&line)
                );
                return Ok(());
            }
            Message::Request { .. } | Message::Notification { .. } if from == Kind::Json => {
                return Err(Failure::NotAResponse("it is a message of its own".to_owned()));
            }
            Message::Request { .. } | Message::Notification { .. } => {}
        }
        let line = changed.as_deref().unwrap_or(&line);
        match &mut pending.kept {
            Some(kept) if pending.asked.is_empty() => *kept = line.to_vec(),
            Some(_) => {}
            None => {
                if self.to_gate.line(line).await.is_err() {
                    tracing::debug!("the gate has closed before a message of the server came");
                }
            }
        }
        Ok(())
    }

    /// Notes what a result says that later requests need. Returns the line that goes on in its place.
    fn noted(
        &self,
        method: &str,
        line: &[u8],
        result: &RawValue,
        again: &mut Option<Opened>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        match method {
            INITIALIZE => {
                let hello = read_hello(result).map_err(|error| Failure::NotAResponse(error.to_string()))?;
                let version = hello.version.map(std::borrow::Cow::into_owned);
                match again {
                    Some(again) => again.version = version,
                    None => self.session().version = version,
                }
                Ok(None)
            }
            TOOLS_LIST => Ok(self.arguments.learn(line, result)),
            _ => Ok(None),
        }
    }

    /// Passes on the response of the protocol that an HTTP error brings. Without one, the error is the status.
    pub(super) async fn read_error(&self, answered: Answered, pending: &mut Pending) -> Result<(), Failure> {
        let Answered { response, sender } = answered;
        let status = response.status();
        let failure = Failure::Status(status.as_u16());
        if kind(response.headers()) != Ok(Kind::Json) {
            return Err(failure);
        }
        let Ok(Ok(body)) = timeout(ERROR_READ_MAX, collect(response, ERROR_BYTES_MAX)).await else {
            return Err(failure);
        };
        self.connections.keep(sender);
        if status == StatusCode::BAD_REQUEST && is_unknown_session(&body) {
            return Err(Failure::SessionUnknown);
        }
        let (Ok(line), [id]) = (line_of(&body), pending.asked.as_slice()) else { return Err(failure) };
        match peek(&line) {
            Ok(Message::Response { id: answers, error: Some(_), .. }) if answers == *id => {}
            _ => return Err(failure),
        }
        let calls = pending.stateless && pending.method.as_deref() == Some(TOOLS_CALL);
        if calls && !pending.listed && misses_headers(&line) {
            return Err(Failure::HeadersMissing);
        }
        if failure.is_refusal() {
            self.gate.to_server.translation.refused(id);
        }
        match self.deliver(&body, pending, Kind::Json).await {
            Ok(()) if pending.asked.is_empty() => Ok(()),
            _ => Err(failure),
        }
    }
}

/// Whether an error says that headers differ from the body, or are missing.
fn misses_headers(line: &[u8]) -> bool {
    let code = value_at(line, &["error", "code"]).ok().flatten();
    code.is_some_and(|code| code.get() == HEADER_MISMATCH.to_string())
}

/// Whether this is how servers on the official SDKs' examples say, with status 400, that they do not know a session. It
/// answers no request, so none was given to anybody; a refusal of a request's own content has the request's id.
fn is_unknown_session(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Refusal {
        id: Option<serde::de::IgnoredAny>,
        error: Refused,
    }
    #[derive(Deserialize)]
    struct Refused {
        code: i64,
        message: String,
    }
    serde_json::from_slice(body).is_ok_and(|Refusal { id, error }| {
        id.is_none() && error.code == REFUSED && error.message.to_ascii_lowercase().contains("session")
    })
}

fn line_of(body: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
    one_line(body).map_err(|error| Failure::NotAResponse(error.to_string()))
}

async fn collect(response: Response<Incoming>, bytes_max: usize) -> Result<Bytes, Failure> {
    let body = Limited::new(response.into_body(), bytes_max).collect().await;
    let body = body.map_err(|error| match error.downcast::<http_body_util::LengthLimitError>() {
        Ok(_) => Failure::TooLong(bytes_max),
        Err(error) => Failure::Broken(error.to_string()),
    })?;
    Ok(body.to_bytes())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_session_is_unknown_only_where_no_request_was_read() {
        let of = |id: &str, code: i64, message: &str| {
            let id = if id.is_empty() { String::new() } else { format!(r#""id":{id},"#) };
            let body = format!(r#"{{{id}"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}"}}}}"#);
            is_unknown_session(body.as_bytes())
        };
        assert!(of("null", -32000, "Bad Request: No valid session ID provided"));
        assert!(of("", -32000, "Invalid or missing Session id"));
        assert!(!of("1", -32000, "Bad Request: No valid session ID provided"), "it answers a request");
        assert!(!of("\"server-error\"", -32600, "Bad Request: No valid session ID provided"));
        assert!(!of("null", -32000, "Bad Request: Unsupported protocol version"));
        assert!(!is_unknown_session(b"no session") && !is_unknown_session(b"[]"));
    }

    #[test]
    fn the_kind_of_a_body_is_certain_or_it_is_refused() {
        let of = |types: &[&'static str], encoding: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            for value in types {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(value));
            }
            encoding.map(|encoding| headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding)));
            kind(&headers)
        };
        assert_eq!(of(&["application/json"], None), Ok(Kind::Json));
        assert_eq!(of(&["Application/JSON; charset=\"UTF-8\""], Some("identity")), Ok(Kind::Json));
        assert_eq!(of(&["text/event-stream;charset=utf-8"], None), Ok(Kind::Stream));
        for wrong in [
            &["text/html"][..],
            &[],
            &["application/json", "text/event-stream"],
            &["application/json; charset=utf-16"],
            &["application/jsonp"],
        ] {
            assert_eq!(of(wrong, None), Err(Failure::ContentType), "{wrong:?}");
        }
        assert_eq!(of(&["application/json"], Some("gzip")), Err(Failure::ContentEncoding));
    }
}
