//! Streams that the client opens without a request: the server's own messages, and the rest of a stream that broke (up to
//! 2025-11-25).

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::answer::{Kind, Pending, kind};
use super::connections::Answered;
use super::failure::Failure;
use super::{Sent, Shared};

/// How long to wait before a stream is opened again, where the server does not say, and within which bounds it may.
const RETRY_MS: u64 = 1000;
const RETRY_MS_MIN: u64 = 50;
const RETRY_MS_MAX: u64 = 30_000;
/// Attempts in a row that bring nothing.
const ATTEMPTS_MAX: u32 = 5;

/// Passes on what the server says of its own accord, for as long as the session lasts. Tells when the first attempt to
/// open the stream has an outcome.
pub(super) async fn listen(shared: Arc<Shared>, told: oneshot::Sender<()>) {
    let mut pending = Pending::new(Vec::new(), None, false);
    let mut attempts = 0;
    let mut told = Some(told);
    while attempts < ATTEMPTS_MAX {
        let seen = pending.last_event.clone();
        let generation = shared.session().generation;
        // Apart, because the stream is open for long.
        let opened = Box::pin(open(&shared, pending.last_event.as_deref())).await;
        drop(told.take());
        match opened {
            Ok(Some(answered)) => {
                let mut body = answered.response.into_body();
                if let Err(failure) = shared.read_stream(&mut body, &mut pending, None).await {
                    tracing::debug!("the stream of the server's own messages ended: the server {failure}");
                }
                attempts = if pending.last_event == seen { attempts + 1 } else { 0 };
            }
            // It has no such stream.
            Ok(None) => return,
            Err(Failure::SessionUnknown) => {
                shared.reopened_since(generation).await;
                (pending, attempts) = (Pending::new(Vec::new(), None, false), 0);
            }
            Err(failure) => {
                tracing::debug!(
                    "the stream of the server's own messages cannot be opened: the server {failure}"
                );
                attempts += 1;
            }
        }
        pause(pending.retry_ms, attempts).await;
    }
    tracing::warn!(
        "the server's own messages are no longer received: its stream broke {ATTEMPTS_MAX} times in a row"
    );
}

/// Reads the rest of an answer whose stream broke.
pub(super) async fn take_up(shared: &Arc<Shared>, pending: &mut Pending) -> Result<(), Failure> {
    let mut attempts = 0;
    let mut failure = Failure::NoResponse;
    while attempts < ATTEMPTS_MAX {
        pause(pending.retry_ms, attempts).await;
        let seen = pending.last_event.clone();
        match open(shared, pending.last_event.as_deref()).await {
            Ok(Some(answered)) => {
                let mut body = answered.response.into_body();
                let read = shared.read_stream(&mut body, pending, Some(shared.patience)).await;
                if pending.asked.is_empty() {
                    return Ok(());
                }
                failure = read.err().unwrap_or(Failure::NoResponse);
            }
            Ok(None) | Err(Failure::SessionUnknown) => return Err(Failure::NoResponse),
            Err(other) => failure = other,
        }
        attempts = if pending.last_event == seen { attempts + 1 } else { 0 };
    }
    Err(failure)
}

/// Opens a stream, from behind an event on. `None`: the server has none.
async fn open(shared: &Shared, after: Option<&str>) -> Result<Option<Answered>, Failure> {
    let nothing = Sent { body: Bytes::new(), mirrored: None, asked: Vec::new(), method: None };
    let after = after.and_then(|id| HeaderValue::from_str(id).ok());
    let after: Vec<_> = after.map(|id| (HeaderName::from_static("last-event-id"), id)).into_iter().collect();
    let answered = shared.send_once(Method::GET, None, &after, &nothing).await?;
    match answered.response.status() {
        StatusCode::OK if kind(answered.response.headers())? == Kind::Stream => Ok(Some(answered)),
        StatusCode::OK => Err(Failure::ContentType),
        StatusCode::NOT_FOUND if shared.session().id.is_some() => Err(Failure::SessionUnknown),
        status if status.is_client_error() => Ok(None),
        status => Err(Failure::Status(status.as_u16())),
    }
}

async fn pause(retry_ms: Option<u64>, attempts: u32) {
    let wait = retry_ms.unwrap_or(RETRY_MS).clamp(RETRY_MS_MIN, RETRY_MS_MAX);
    sleep(Duration::from_millis(wait * u64::from(attempts.max(1)))).await;
}
