//! A witness: remembers one tree of every log that it watches, and cosigns another only when nothing before it changed
//! (C2SP `tlog-witness`).
//!
//! The point of a witness is that someone else runs it: an auditor, on another machine. It needs one key, one file of
//! state and no trust in the log. What decides is `portcullis_proof::log::witness`; this is the server and the state.
//!
//! The order is everything. Under one lock: the old size is compared, the proof verified, the new tree made durable,
//! and only then is the cosignature handed out. A witness that forgets would cosign a second history, so one whose key
//! is there and whose state is not refuses to start.

mod state;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use portcullis_ledger::log::{LogError, put, witness_key};
use portcullis_proof::log::note::NoteSignature;
use portcullis_proof::log::witness::{
    ADD_CHECKPOINT_BYTES_MAX, AddCheckpoint, CONFLICT_MEDIA_TYPE, Refusal, answer,
};
use portcullis_proof::log::{KeyError, KeyKind, Note, NoteSigner, VerifierKey};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tracing::{error, info, warn};

use self::state::Remembered;
use crate::kept::KeptError;
use crate::monitor::ForkProof;

/// Requests that are processed at a time; further ones are told to try again.
pub const REQUESTS_AT_ONCE: usize = 64;
/// How long a request may take to arrive.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// The most logs of one witness.
pub const LOGS_MAX: usize = 256;

/// What a witness is.
#[derive(Debug, Clone)]
pub struct WitnessOptions {
    /// The file of its key; made at the first start.
    pub key: PathBuf,
    /// Its name, as it appears in its signature lines.
    pub name: String,
    /// The keys of the logs that it watches.
    pub logs: Vec<VerifierKey>,
    /// The file of its state; made at the first start.
    pub state: PathBuf,
}

/// Why a witness does not start.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// Its key or its lock.
    #[error(transparent)]
    Files(#[from] LogError),
    /// Its state.
    #[error(transparent)]
    State(#[from] KeptError),
    /// Its key is there and its state is gone.
    #[error(
        "the key `{}` exists but its state `{}` does not: without it, the witness could cosign a second history; restore the newest state, or start with a new key", key.display(), state.display()
    )]
    StateLost {
        /// The key.
        key: PathBuf,
        /// The state.
        state: PathBuf,
    },
    /// Its state is there and its key is gone.
    #[error(
        "the state `{}` exists but its key `{}` does not; restore the key, or start with a new state as well",
        state.display(), key.display()
    )]
    KeyLost {
        /// The key.
        key: PathBuf,
        /// The state.
        state: PathBuf,
    },
    /// A key that is not a log's.
    #[error("`{0}` is the key of a witness; name the keys of logs")]
    NotALog(String),
    /// Too many logs.
    #[error("a witness watches at most {LOGS_MAX} logs")]
    TooManyLogs,
    /// Its name.
    #[error(transparent)]
    Name(#[from] KeyError),
    /// Its address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// A witness with its state.
#[derive(Debug)]
pub struct Witness {
    signer: NoteSigner,
    logs: Vec<VerifierKey>,
    /// What it remembers. Holding it is deciding: one request at a time.
    remembered: Mutex<Remembered>,
    room: Semaphore,
}

/// An answer to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body: a signature line, a size, or why not.
    pub body: String,
}

impl Witness {
    /// Opens a witness, making its key and its state where there is neither.
    ///
    /// # Errors
    /// Why it must not start.
    pub fn open(options: &WitnessOptions) -> Result<Witness, WitnessError> {
        let WitnessOptions { key, name, logs, state } = options;
        if logs.len() > LOGS_MAX {
            return Err(WitnessError::TooManyLogs);
        }
        if let Some(wrong) = logs.iter().find(|log| log.kind() != KeyKind::Ed25519) {
            return Err(WitnessError::NotALog(wrong.to_string()));
        }
        // A name that cannot be used must not leave a state behind.
        NoteSigner::from_seed(name, KeyKind::Cosignature, &[1; 32])?;
        let (key_there, state_there) = (key.exists(), state.exists());
        if key_there && !state_there {
            return Err(WitnessError::StateLost { key: key.clone(), state: state.clone() });
        }
        // The state comes first: a crash between the two leaves what the next start goes on from.
        let remembered = Remembered::open(state, logs)?;
        if !key_there && !remembered.is_empty() {
            return Err(WitnessError::KeyLost { key: key.clone(), state: state.clone() });
        }
        let signer = witness_key(key, name)?;
        Ok(Witness {
            signer,
            logs: logs.clone(),
            remembered: Mutex::new(remembered),
            room: Semaphore::new(REQUESTS_AT_ONCE),
        })
    }

    /// The key that its cosignatures are checked with.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        self.signer.verifier()
    }

    /// Decides on a request body; `time` is what a cosignature states, in seconds since 1970. The new tree is durable
    /// before this returns a signature.
    #[must_use]
    pub fn add_checkpoint(&self, body: &[u8], time: u64) -> Answer {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let request = match answer(body, &self.logs, |origin| remembered.head(origin)) {
            Ok(request) => request,
            Err(refusal) => {
                if let Refusal::Inconsistent(_) = refusal {
                    keep_fork(&remembered, body, &self.logs);
                }
                return Answer { status: refusal.status(), body: refusal.body() };
            }
        };
        let failed = |message: String| {
            error!("no cosignature: {message}");
            Answer { status: 500, body: format!("{message}\n") }
        };
        let line = match self.signer.sign(request.note.text(), time) {
            Ok(line) => line,
            Err(error) => return failed(error.to_string()),
        };
        let (origin, size) = (request.checkpoint.origin().to_owned(), request.checkpoint.size());
        if let Err(error) = remembered.put(&request.checkpoint, &signed_by_log(&request.note, &self.logs)) {
            return failed(format!("the new tree could not be made durable: {error}"));
        }
        info!(log = origin, size, "cosigned");
        Answer { status: 200, body: line }
    }

    /// Serves until `stop` is done.
    ///
    /// # Errors
    /// When the address cannot be listened on any more.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let router = Router::new().route("/add-checkpoint", post(add_checkpoint)).with_state(self);
        axum::serve(listener, router).with_graceful_shutdown(stop).await
    }
}

/// The note with the signatures of known logs alone: whatever else is on it is anyone's and of any length.
fn signed_by_log(note: &Note<'_>, logs: &[VerifierKey]) -> String {
    let known = |name: &str, id: u32| logs.iter().any(|key| key.name() == name && key.id() == id);
    let lines = note.signatures().iter().filter(|line| known(line.name, line.key_id));
    format!("{}\n{}", note.text(), lines.take(1).map(NoteSignature::line).collect::<String>())
}

/// Two trees of one size that the log signed are kept: they are a proof for everybody.
fn keep_fork(remembered: &Remembered, body: &[u8], logs: &[VerifierKey]) {
    let Ok(request) = AddCheckpoint::parse(body) else { return };
    let Some(known) = remembered.note(request.checkpoint.origin(), request.checkpoint.size()) else { return };
    let proof =
        ForkProof::new(known, &signed_by_log(&request.note, logs), request.checkpoint.root(), Vec::new());
    let path = remembered.fork_path();
    if path.exists() {
        return;
    }
    match put(&path, &proof.to_bytes(), 0o600) {
        Ok(()) => warn!(proof = %path.display(), "the log signed two trees of one size"),
        Err(error) => error!("the proof of a fork could not be kept: {error}"),
    }
}

async fn add_checkpoint(State(witness): State<Arc<Witness>>, body: Body) -> Response {
    let plain = |status: StatusCode, text: &str| (status, format!("{text}\n")).into_response();
    let Ok(_room) = witness.room.try_acquire() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "this witness is busy; ask again later");
    };
    let read = tokio::time::timeout(REQUEST_TIME_MAX, to_bytes(body, ADD_CHECKPOINT_BYTES_MAX));
    let body = match read.await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let text = format!("a request has at most {ADD_CHECKPOINT_BYTES_MAX} bytes, and arrives whole");
            return plain(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
    };
    let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the clock of this witness is wrong");
    };
    let deciding = Arc::clone(&witness);
    let decided = tokio::task::spawn_blocking(move || deciding.add_checkpoint(&body, now.as_secs())).await;
    let Ok(Answer { status, body }) = decided else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the request was not decided");
    };
    let media = if status == 409 { CONFLICT_MEDIA_TYPE } else { "text/plain; charset=utf-8" };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, media)], body).into_response()
}
