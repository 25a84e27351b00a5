//! What happens, told to browsers: ids and counts over one stream a browser, never words of others.
//!
//! A page that is told something fetches the part of it that changed from the server, so that texts are escaped in one
//! place. Streams end before the daemon closes its runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use portcullis_console::frame::Waits;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock;
use portcullis_session::commits::{COMMITS_KEPT, Commit, Missed};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, watch};
use tracing::debug;

use super::super::approvals::{bears_on_approvals, waiting};
use super::super::error::Failure;
use super::super::streamed;
use super::Seen;
use super::visitor::Visitor;
use crate::api;

/// How long a list of what waits is taken for the present one, while nothing happens: requests lapse in silence.
const FRESH: Duration = Duration::from_secs(2);
/// Pause between two messages of a stream, in which what happens is gathered.
const GATHER: Duration = Duration::from_millis(250);
/// How long a stream may say nothing.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Runs that a message names; beyond them it says that there are more.
const RUNS_MAX: usize = 64;
/// Messages that wait for a slow browser.
const MESSAGES: usize = 8;

/// What waits for a person, looked up once for all pages.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// How often a list was forgotten: one that was being looked up meanwhile is not kept.
    forgotten: u64,
    list: Option<(Instant, Arc<api::Approvals>)>,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was known no longer holds.
    pub(super) fn forget(&self) {
        let mut known = self.lock();
        known.forgotten += 1;
        known.list = None;
    }

    /// What waits.
    pub(super) async fn list(&self, seen: &Seen) -> Result<Arc<api::Approvals>, Failure> {
        let before = {
            let known = self.lock();
            if let Some((_, list)) = known.list.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
                return Ok(Arc::clone(list));
            }
            known.forgotten
        };
        let at = Instant::now();
        let list = Arc::new(waiting(&seen.shared).await?);
        let mut known = self.lock();
        if known.forgotten == before {
            known.list = Some((at, Arc::clone(&list)));
        }
        Ok(list)
    }

    /// How many wait, and for how long the oldest has.
    pub(super) async fn now(&self, seen: &Seen) -> Waits {
        match self.list(seen).await {
            Ok(list) => waits(&list, clock::now()),
            Err(_) => Waits::default(),
        }
    }
}

fn waits(list: &api::Approvals, now: Timestamp) -> Waits {
    let oldest = list.approvals.iter().map(|info| info.requested_at).min();
    Waits { count: list.approvals.len(), oldest_s: oldest.map_or(0, |at| now.micros_since(at) / 1_000_000) }
}

/// Forgets what waits whenever that may have changed.
pub(super) async fn keep_counting(seen: Seen) {
    let mut commits = seen.shared.gate.watch();
    let mut closing = seen.console.closing.clone();
    loop {
        tokio::select! {
            () = bears_on_approvals(&mut commits) => seen.console.waits.forget(),
            () = closed(&mut closing) => return,
        }
    }
}

/// `GET /live/now`: the same as the stream says, once.
pub(super) async fn now(State(seen): State<Seen>, _visitor: Visitor) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(message(&seen, &[], false).await)).into_response()
}

/// `GET /live`: a stream of server-sent events.
pub(super) async fn stream(State(seen): State<Seen>, _visitor: Visitor) -> Response {
    let (sender, mut messages) = mpsc::channel(MESSAGES);
    tokio::spawn(async move {
        tell(&seen, &sender).await;
        debug!("a stream of the console ended");
    });
    let body = streamed::sure_pieces(move |context| messages.poll_recv(context));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// What all streams are told. One task looks at what becomes durable and makes the messages, so that a decision costs
/// the same however many browsers are open.
#[derive(Debug)]
pub(super) struct Hub(broadcast::Sender<Bytes>);

impl Default for Hub {
    fn default() -> Self {
        Self(broadcast::Sender::new(MESSAGES))
    }
}

/// Tells all streams what happens, gathered, until the daemon ends.
pub(super) async fn keep_telling(seen: Seen) {
    let mut commits = seen.shared.gate.watch();
    let mut closing = seen.console.closing.clone();
    loop {
        let first = tokio::select! {
            commit = commits.next() => commit,
            () = closed(&mut closing) => return,
        };
        let (mut runs, mut more) = (Vec::new(), false);
        if !take(first, &mut runs, &mut more) {
            return;
        }
        // Meanwhile nobody is woken for each commit.
        tokio::time::sleep(GATHER).await;
        for _ in 0..COMMITS_KEPT {
            let Some(commit) = commits.ready() else { break };
            if !take(commit, &mut runs, &mut more) {
                return;
            }
        }
        let hub = &seen.console.hub.0;
        if hub.receiver_count() > 0 {
            let _nobody_is_left = hub.send(line(&message(&seen, &runs, more).await));
        }
    }
}

/// Notes what became durable. False where nothing more will.
fn take(commit: Result<Commit, Missed>, runs: &mut Vec<String>, more: &mut bool) -> bool {
    match commit {
        Ok(commit) => note(runs, more, commit.run.to_string()),
        Err(Missed::Lagged(_)) => *more = true,
        Err(Missed::Closed) => return false,
    }
    true
}

fn line(message: &Value) -> Bytes {
    Bytes::from(format!("data: {message}\n\n"))
}

/// Tells one browser until it is gone, or the daemon ends.
async fn tell(seen: &Seen, sender: &mpsc::Sender<Bytes>) {
    let mut messages = seen.console.hub.0.subscribe();
    let mut closing = seen.console.closing.clone();
    // What happened before it listened is not known to it, nor what it was too slow for.
    let mut next = line(&message(seen, &[], true).await);
    loop {
        if sender.send(next).await.is_err() {
            return;
        }
        next = tokio::select! {
            told = messages.recv() => match told {
                Ok(told) => told,
                Err(broadcast::error::RecvError::Lagged(_)) => line(&message(seen, &[], true).await),
                Err(broadcast::error::RecvError::Closed) => return,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": \n\n"),
            () = sender.closed() => return,
            () = closed(&mut closing) => return,
        };
    }
}

/// Waits until the daemon is about to end.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means that it ends.
    let _ = closing.wait_for(|closing| *closing).await;
}

fn note(runs: &mut Vec<String>, more: &mut bool, run: String) {
    match () {
        () if runs.contains(&run) => {}
        () if runs.len() < RUNS_MAX => runs.push(run),
        () => *more = true,
    }
}

/// Counts and ids. `more`: runs that are not named may have gone on.
async fn message(seen: &Seen, runs: &[String], more: bool) -> Value {
    let list = seen.console.waits.list(seen).await.ok();
    let waits = list.as_ref().map(|list| waits(list, clock::now())).unwrap_or_default();
    let version = list.and_then(|list| list.version).map(|version| version.to_string());
    json!({ "waiting": waits.count, "oldest_s": waits.oldest_s, "version": version, "runs": runs, "more": more })
}
