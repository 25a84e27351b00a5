//! Answers as HTTP: one message, or a stream of events.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use portcullis_wire::jsonrpc::{Id, METHOD_NOT_FOUND, Message, error_response, peek};
use portcullis_wire::mcp::V_2025_11_25;
use portcullis_wire::mcp::headers::{HEADER_MISMATCH, SESSION_ID, UNSUPPORTED_VERSION};
use portcullis_wire::sse::write_event;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::super::streamed;
use crate::mcp::endpoint::{Event, Reading, Said, Session};

/// How long an answer is waited for before it becomes a stream, on which something can be said meanwhile.
const ALONE_WITHIN: Duration = Duration::from_secs(5);
/// How often something is said on a stream that has nothing to tell.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How messages of one session are answered.
pub(super) struct Answer<'a> {
    pub(super) session: &'a Arc<Session>,
    /// The id of a session that was opened by the message.
    pub(super) opened: Option<&'a str>,
    pub(super) stateless: bool,
}

impl Answer<'_> {
    pub(super) async fn to(&self, said: Said) -> Response {
        match said {
            Said::Accepted => StatusCode::ACCEPTED.into_response(),
            Said::Refused(line) => {
                let status = self.status(&line).unwrap_or_else(|| refused_with(&line));
                json(status, line)
            }
            Said::Answered(mut reading) => {
                let leaves =
                    Leaves { session: Arc::clone(self.session), stream: reading.stream, done: false };
                let first = match timeout(ALONE_WITHIN, reading.events.recv()).await {
                    Ok(Some(event)) if event.last => {
                        leaves.done();
                        let status = self.status(&event.line).unwrap_or(StatusCode::OK);
                        return self.in_session(json(status, event.line));
                    }
                    Ok(Some(event)) => Some(event),
                    // It was given up meanwhile, and nobody waits for an answer.
                    Ok(None) => {
                        leaves.done();
                        return ([(header::CONTENT_TYPE, "text/event-stream")], "").into_response();
                    }
                    Err(_) => None,
                };
                self.in_session(stream(self.session, reading, first, Some(leaves)))
            }
        }
    }

    /// Errors that this generation of the protocol has a status for.
    fn status(&self, line: &[u8]) -> Option<StatusCode> {
        if !self.stateless {
            return None;
        }
        match code(line)? {
            METHOD_NOT_FOUND => Some(StatusCode::NOT_FOUND),
            UNSUPPORTED_VERSION..=HEADER_MISMATCH => Some(StatusCode::BAD_REQUEST),
            _ => None,
        }
    }

    fn in_session(&self, mut response: Response) -> Response {
        if let Some(id) = self.opened.and_then(|id| HeaderValue::from_str(id).ok()) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }
}

/// A request that could be read is answered as by a server, since clients read no messages in errors of HTTP. Anything else
/// has no answer.
fn refused_with(line: &[u8]) -> StatusCode {
    match peek(line) {
        Ok(Message::Response { id, .. }) if id != Id::Null => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// The code of an error.
fn code(line: &[u8]) -> Option<i64> {
    #[derive(Deserialize)]
    struct Coded {
        code: i64,
    }
    let Ok(Message::Response { error: Some(error), .. }) = peek(line) else { return None };
    Some(serde_json::from_str::<Coded>(error.get()).ok()?.code)
}

/// A message as the whole body.
pub(super) fn json(status: StatusCode, line: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], line).into_response()
}

/// An HTTP error with an error of the protocol as its body.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    line: Vec<u8>,
}

pub(super) fn refusal(status: StatusCode, id: Option<&RawValue>, code: i64, why: &str) -> Refusal {
    Refusal { status, line: error_response(id, code, why, None) }
}

#[cfg(test)]
impl Refusal {
    pub(super) fn code(&self) -> i64 {
        code(&self.line).unwrap()
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        json(refusal.status, refusal.line)
    }
}

/// Tells a session that a stream is no longer read.
pub(super) struct Leaves {
    session: Arc<Session>,
    stream: u64,
    done: bool,
}

impl Leaves {
    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        if self.done || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (session, stream) = (Arc::clone(&self.session), self.stream);
        tokio::spawn(async move { session.left(stream).await });
    }
}

/// A stream as the body, with what was already read of it.
pub(super) fn stream(
    session: &Arc<Session>,
    reading: Reading,
    first: Option<Event>,
    leaves: Option<Leaves>,
) -> Response {
    let with_ids = !session.stateless;
    let mut begin = Vec::new();
    if with_ids {
        let start = session.has_ids(reading.stream);
        // Older clients take an event without data for a message.
        if session.version().is_some_and(|version| version.as_str() >= V_2025_11_25) {
            begin = write_event(b"", Some(&start.to_string()));
        }
    }
    if let Some(first) = &first {
        begin.extend(written(first, with_ids));
    }
    let mut keep_alive = interval(KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keep_alive.reset();
    let mut events = Events { reading, begin: Some(begin), with_ids, ended: false, keep_alive, leaves };
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Proxies that buffer would hold back what is said.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (StatusCode::OK, headers, streamed::sure_pieces(move |context| events.next(context))).into_response()
}

fn written(event: &Event, with_ids: bool) -> Vec<u8> {
    let id = with_ids.then(|| event.id.to_string());
    write_event(&event.line, id.as_deref())
}

/// The pieces of a stream. Dropped before its end, it tells the session.
struct Events {
    reading: Reading,
    begin: Option<Vec<u8>>,
    with_ids: bool,
    ended: bool,
    keep_alive: Interval,
    leaves: Option<Leaves>,
}

impl Events {
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(begin) = self.begin.take().filter(|begin| !begin.is_empty()) {
            return Poll::Ready(Some(begin.into()));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.reading.events.poll_recv(context) {
            Poll::Ready(Some(event)) => {
                if event.last {
                    self.ended = true;
                    if let Some(leaves) = self.leaves.take() {
                        leaves.done();
                    }
                }
                self.keep_alive.reset();
                return Poll::Ready(Some(written(&event, self.with_ids).into()));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        self.keep_alive.poll_tick(context).map(|_| Some(Bytes::from_static(b":\n\n")))
    }
}
