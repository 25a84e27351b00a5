//! What can go wrong between a client and its daemon.

use std::io;
use std::path::{Path, PathBuf};

use portcullis_hook::folder::owned_by_another;

use crate::api::{REQUEST_BYTES_MAX, code};
use crate::home::HomeError;

/// Why a request has no answer, or a refusal for one.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no usable state folder.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Nobody listens.
    #[error("no daemon listens on `{}`: {source}; start one with `portcullis serve`", socket.display())]
    NotRunning {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Someone else listens.
    #[error("`{}` is not the socket of this user's daemon: {source}", socket.display())]
    Listener {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection broke before the answer was complete: the request may have been carried out.
    #[error("the connection to the daemon broke: {0}")]
    Lost(String),
    /// The daemon did not answer in time.
    #[error("the daemon did not answer `{request}` within {seconds} s; run `portcullis doctor`")]
    Timeout {
        /// The request.
        request: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The token cannot be read.
    #[error("cannot read the credential `{}`: {why}", path.display())]
    Credential {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The token cannot be read any more.
    #[error(
        "cannot read the credential `{}`: {why}; the daemon that runs knows its token: put the file back, or end the daemon, and the next one makes a token where none is", path.display()
    )]
    CredentialGone {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The daemon said no.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// One of [`code`], or another.
        code: String,
        /// For people.
        message: String,
    },
    /// The daemon answered something else than it should.
    #[error(
        "the daemon's answer to `{request}` cannot be read: {why}; client and daemon may be of different versions"
    )]
    Answer {
        /// The request.
        request: String,
        /// Why.
        why: String,
    },
    /// The request is larger than the daemon takes.
    #[error("the request has {0} bytes; the limit is {REQUEST_BYTES_MAX}")]
    TooLarge(usize),
    /// Not the prefix of an id.
    #[error("`{0}` is not an id: give 6 to 32 lower-case hex digits")]
    Id(String),
    /// The daemon could not be started.
    #[error("cannot start the daemon `{}`: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The daemon was started and does not answer.
    #[error("the daemon did not start: {why}; the last lines of `{}`:\n{tail}", log.display())]
    NotUp {
        /// What was seen.
        why: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A file of the state folder cannot be used.
    #[error("cannot use `{}`: {source}{}", path.display(), owners(path, source))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The run was lost again and again.
    #[error("the connection to the run was lost {0} times in a row; run `portcullis doctor`")]
    GivenUp(u32),
}

/// Whose a file or its folder is, where that is why it cannot be used.
fn owners(path: &Path, error: &io::Error) -> String {
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    // A file that is there may be this user's in a folder of another.
    let folder = path.parent().unwrap_or(path);
    match owned_by_another(folder).filter(|_| denied) {
        Some((owner, own)) => format!(
            "; its folder belongs to user {owner}, and this is user {own}: choose one of this user's with --home, or \
             PORTCULLIS_HOME"
        ),
        None => String::new(),
    }
}

impl ClientError {
    /// The daemon is gone, or has forgotten the run: start it, resume, and try again.
    #[must_use]
    pub fn calls_for_resuming(&self) -> bool {
        match self {
            Self::NotRunning { .. } | Self::Lost(_) => true,
            Self::Refused { code, .. } => code == code::RUN_NOT_LIVE,
            _ => false,
        }
    }

    /// Nobody is there, or someone who is just coming or going: starting the daemon may help.
    #[must_use]
    pub fn calls_for_starting(&self) -> bool {
        matches!(self, Self::NotRunning { .. } | Self::Lost(_) | Self::Credential { .. })
    }

    /// The daemon has no such route: it is older than this program.
    #[must_use]
    pub fn is_unknown_route(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code == code::NOT_FOUND)
    }

    /// The error's code, where the daemon gave one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}
