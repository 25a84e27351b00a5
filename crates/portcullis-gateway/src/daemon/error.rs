//! Failures of the daemon itself, and how failures of requests look on the wire.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use portcullis_ledger::{LedgerError, Refusal};
use portcullis_session::bundle_dir::BundleError;
use portcullis_session::credentials::CredentialError;
use portcullis_session::engine::{AnswerError, ReportError};
use portcullis_session::error::SessionError;
use portcullis_session::gate::OpenError;
use portcullis_session::listings::ListingsError;
use portcullis_session::surface::SurfaceError;

use crate::api::{ErrorBody, ErrorInfo, code};
use crate::home_bundle::HomeBundleError;

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another daemon holds the state folder.
    #[error("another daemon already serves `{}`", .0.display())]
    AlreadyRunning(PathBuf),
    /// Another daemon holds the state folder, and serves another bundle than the one that was asked for.
    #[error(
        "another daemon already serves `{}`, with {}; stop it (process {process}) and start this one again, or choose another state folder with --home", home.display(), named(serves.as_deref())
    )]
    OtherBundle {
        /// The state folder.
        home: PathBuf,
        /// The folder of the bundle that is served, or `None` for the shipped one.
        serves: Option<PathBuf>,
        /// The daemon's process, as it wrote it down.
        process: String,
    },
    /// Another daemon holds the state folder, and does not listen where this one was asked to.
    #[error(
        "another daemon already serves `{}`, and not {wanted}: {}; stop it (process {process}) and start this one again, or choose another state folder with --home", home.display(), listening(listens)
    )]
    OtherAddress {
        /// The state folder.
        home: PathBuf,
        /// What was asked for, and is not there.
        wanted: String,
        /// What is there, each in a few words.
        listens: Vec<String>,
        /// The daemon's process.
        process: String,
    },
    /// The process cannot be told when to stop.
    #[error("cannot listen for signals: {0}; without them, runs would not be closed when the daemon stops")]
    Signals(#[source] io::Error),
    /// Which bundle the state folder is served with is not known.
    #[error(transparent)]
    HomeBundle(#[from] HomeBundleError),
    /// The bundle that was chosen for the state folder cannot be served.
    #[error(
        "this state folder is served with the bundle that `{}` names, but {error}; fix it, choose another with `portcullis serve --bundle DIR`, or delete the file to serve the shipped one", file.display()
    )]
    Chosen {
        /// The file with the choice.
        file: PathBuf,
        /// What is wrong with the bundle.
        error: BundleError,
    },
    /// A file or folder of the state folder.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The TCP address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// An address that others can reach, and no credential made for that.
    #[error(
        "refusing to listen on {0}, which other machines can reach, without a configured credential; add a [[credential]] to the bundle's portcullis.toml, or listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// A console that others can reach, and that nothing protects on the way.
    #[error(
        "refusing to serve the console on {0}, which other machines can reach, as plain HTTP; listen on 127.0.0.1, put something that speaks TLS in front of it, and name it with --console-origin https://HOST"
    )]
    ConsoleExposed(SocketAddr),
    /// The origin of the console.
    #[error("`{0}` is not an origin; give --console-origin as https://HOST or https://HOST:PORT")]
    ConsoleOrigin(String),
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Mappings of controls.
    #[error(transparent)]
    Controls(#[from] crate::governance::OwnControlsError),
    /// The thread of the transparency log.
    #[error(transparent)]
    Log(#[from] portcullis_ledger::log::LogError),
    /// The credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The store.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What is frozen is not known.
    #[error("cannot tell what is frozen: {0}")]
    Freezes(#[source] SessionError),
    /// The store is not the one that was kept here.
    #[error(transparent)]
    Mark(#[from] super::mark::MarkError),
}

/// A bundle in a sentence.
fn named(folder: Option<&Path>) -> String {
    folder.map_or_else(
        || "the shipped bundle".to_owned(),
        |folder| format!("the bundle `{}`", folder.display()),
    )
}

/// Where a daemon listens, in a sentence.
fn listening(places: &[String]) -> String {
    match places {
        [] => "it listens on its socket alone".to_owned(),
        places => format!("it serves {}", places.join(" and ")),
    }
}

/// A failed request.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The code and the message.
    pub(super) fn told(self) -> (String, String) {
        (self.code.to_owned(), self.message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code::NOT_FOUND, message)
    }

    pub(super) fn not_an_approver() -> Self {
        let message = "this needs an approver's credential; an agent's credential cannot decide";
        Self::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message)
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = ErrorInfo { code: self.code.to_owned(), message: self.message };
        (self.status, Json(ErrorBody { error })).into_response()
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let (status, code) = match &error {
            SessionError::Ledger(ledger) => return Self::from(ledger.clone()),
            SessionError::Answer(AnswerError::Unknown(_)) => (StatusCode::NOT_FOUND, code::NOT_FOUND),
            SessionError::Answer(AnswerError::Changed(_)) => (StatusCode::CONFLICT, code::CHANGED),
            SessionError::Answer(_) => (StatusCode::CONFLICT, "conflict"),
            SessionError::Report(error) => match error {
                ReportError::NotContained(_) => (StatusCode::CONFLICT, "not_contained"),
                ReportError::NoTicket(_) | ReportError::WrongTicket(_) => {
                    (StatusCode::FORBIDDEN, code::FORBIDDEN)
                }
                ReportError::TicketUsed(_) => (StatusCode::CONFLICT, "ticket_used"),
                ReportError::OtherProfile { .. } => (StatusCode::CONFLICT, "other_profile"),
                ReportError::TooManyConnections(_) => (StatusCode::CONFLICT, "too_many_connections"),
                ReportError::TooManyServers => (StatusCode::CONFLICT, "too_many_servers"),
            },
            SessionError::Work(error) => return super::work::refused(error),
            SessionError::Kept(error) => return super::kept::refused(error),
            SessionError::Policy(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_policy"),
            SessionError::Closed(_) | SessionError::UnknownRun(_) => {
                (StatusCode::CONFLICT, code::RUN_NOT_LIVE)
            }
            SessionError::NoChild { .. } => (StatusCode::CONFLICT, "no_child"),
            SessionError::OtherParent { .. } => (StatusCode::CONFLICT, "other_parent"),
            SessionError::NotExecuting(_) | SessionError::NoSuchCall(_) => {
                (StatusCode::CONFLICT, code::NOT_EXECUTING)
            }
            SessionError::PolicyGone { .. } | SessionError::Mismatch { .. } => {
                (StatusCode::CONFLICT, code::BUNDLE_MISMATCH)
            }
            SessionError::NotAsked(_) => (StatusCode::CONFLICT, code::NOT_ASKED),
            SessionError::DocumentsNotTaken => (StatusCode::UNPROCESSABLE_ENTITY, "documents_not_taken"),
            SessionError::Bound { .. } | SessionError::ForeignBundle => {
                (StatusCode::FORBIDDEN, code::FORBIDDEN)
            }
            SessionError::ControlOfFreeze => (StatusCode::BAD_REQUEST, "bad_request"),
            SessionError::NotFrozen { .. } => (StatusCode::NOT_FOUND, code::NOT_FROZEN),
            SessionError::TooManyFreezes { .. } => (StatusCode::CONFLICT, "too_many_freezes"),
            SessionError::FreezeNotStored(_) => (StatusCode::INTERNAL_SERVER_ERROR, "not_durable"),
            SessionError::NotLogged(_) => (StatusCode::SERVICE_UNAVAILABLE, "not_logged"),
            SessionError::OutOfStep(_) => (StatusCode::INTERNAL_SERVER_ERROR, "out_of_step"),
            SessionError::TooManyAttached { .. } => (StatusCode::SERVICE_UNAVAILABLE, "too_many_attached"),
            SessionError::TooManyBundles { .. } => (StatusCode::SERVICE_UNAVAILABLE, "too_many_bundles"),
            SessionError::NameTooLong { .. } => (StatusCode::BAD_REQUEST, "bad_request"),
            SessionError::TooManyRuns { .. } | SessionError::TooManyOfPrincipal { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "too_many_runs")
            }
            SessionError::Randomness(_) | SessionError::CutShort => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<ListingsError> for Failure {
    fn from(error: ListingsError) -> Self {
        let (status, code) = match &error {
            ListingsError::Io { .. } | ListingsError::Damaged { .. } | ListingsError::Randomness(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "listings_unusable")
            }
            ListingsError::NoChange(_) => (StatusCode::NOT_FOUND, code::NOT_FOUND),
            ListingsError::Ambiguous(_) => (StatusCode::CONFLICT, "ambiguous"),
            ListingsError::ChangedAgain(_) | ListingsError::OtherList => {
                (StatusCode::CONFLICT, "changed_again")
            }
            ListingsError::Unreadable { .. } => (StatusCode::CONFLICT, "unreadable"),
            ListingsError::TooMany(_) => (StatusCode::SERVICE_UNAVAILABLE, "too_many_servers"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<SurfaceError> for Failure {
    fn from(error: SurfaceError) -> Self {
        let message = error.to_string();
        match error {
            SurfaceError::Invalid(_) => Self::bad_request(message),
            SurfaceError::TooLong { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_long", message)
            }
            SurfaceError::NoSuchTicket => Self::new(StatusCode::CONFLICT, "no_such_ticket", message),
            SurfaceError::NotTheOperator => Self::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message),
            SurfaceError::Session(error) => error.into(),
            SurfaceError::Open(error) => error.into(),
            SurfaceError::Listings(error) => error.into(),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let (status, code) = match &error {
            LedgerError::Refused(Refusal::RunUnknown(_)) => (StatusCode::NOT_FOUND, code::NOT_FOUND),
            LedgerError::Refused(Refusal::RunAmbiguous { .. }) => (StatusCode::CONFLICT, "ambiguous"),
            LedgerError::Refused(Refusal::PayloadTooLong { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_long")
            }
            LedgerError::Gone { .. } | LedgerError::Cut { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "store_gone")
            }
            LedgerError::DiskFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
            LedgerError::QueueFull { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "not_durable"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Session(error) => error.into(),
            OpenError::Bundle(BundleError::Mistakes { diagnostics, folder, .. }) => {
                let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
                let message =
                    format!("the bundle at `{}` has errors:\n{}", folder.display(), lines.join("\n"));
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code::BUNDLE_INVALID, message)
            }
            OpenError::Bundle(error) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code::BUNDLE_INVALID, error.to_string())
            }
        }
    }
}
