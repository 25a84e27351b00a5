//! Why the log cannot continue. Each variant needs a different action by the operator.

use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::id::RunId;
use portcullis_proof::log::KeyId;

use super::confirm::LogWait;
use crate::error::LedgerError;

/// Why the log did not do what it was asked. What was signed before stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The store of runs failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The database of the log failed.
    #[error("the log's database `{}`: {detail}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// The operating system refused.
    #[error("could not {action} `{}`: {detail}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        detail: String,
    },
    /// Another process has the log.
    #[error("another process is writing the log of `{}`; a log has one sequencer at a time", folder.display())]
    Busy {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// There is no log beside the store yet.
    #[error("there is no log in `{}` yet; the daemon creates one when it starts, and so does an export to an archive", folder.display())]
    NoLog {
        /// Where it would be.
        folder: PathBuf,
    },
    /// The log was published, and what it remembers of its last signature is gone.
    #[error(
        "`{}` is missing, but `{}` shows a log that was published: the log would sign a second history; \
         restore the newest copy of it, or freeze this store and start another one",
        database.display(), checkpoint.display()
    )]
    StateLost {
        /// The database of the log.
        database: PathBuf,
        /// The published checkpoint.
        checkpoint: PathBuf,
    },
    /// The log's memory is older than what it published, or than what a witness saw.
    #[error(
        "the log remembers {known} leaves, but {seen_by} shows {seen}: it was restored from an old copy and \
         would sign a second history; restore the newest copy, or freeze this store and start another one"
    )]
    RolledBack {
        /// The leaves that it remembers.
        known: u64,
        /// The leaves that were seen.
        seen: u64,
        /// Who saw them.
        seen_by: String,
    },
    /// The published tree is another one than the log remembers.
    #[error(
        "the published checkpoint is of a different tree of {size} leaves than the log remembers: two histories were signed; keep both, notify everyone who relies on the log, and start a new store"
    )]
    Forked {
        /// The leaves of both.
        size: u64,
    },
    /// Its witnesses have not confirmed yet that it is not an old copy.
    #[error("{0}")]
    Unconfirmed(LogWait),
    /// Someone else signed since this process looked.
    #[error("another sequencer signed a checkpoint in the meantime; this one published nothing")]
    LockMoved,
    /// The store of runs is older than its log.
    #[error(
        "the log has {logged} events of run {run}, the store has {stored}: the store was restored from an old \
         copy; restore the newest copy of it, or, to begin a new record, move the state folder's `ledger`, `log` and \
         `keys` aside and keep them"
    )]
    LedgerBehind {
        /// The run.
        run: RunId,
        /// The events that the log knows of.
        logged: u64,
        /// The events of the store.
        stored: u64,
    },
    /// A key file is missing.
    #[error("the key `{}` is missing; restore it, or see docs/transparency-log.md for what a lost key means", path.display())]
    KeyMissing {
        /// The file.
        path: PathBuf,
    },
    /// A key file is malformed.
    #[error("`{}` is not a key of this log: {message}", path.display())]
    KeyMalformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The policy of the log's witnesses is invalid.
    #[error("`{}` is not a valid witness policy: {message}; nothing is logged until it is fixed", path.display())]
    WitnessPolicy {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A leaf that waits may not enter the log.
    #[error(
        "a leaf that waits is not signed by an enrolled writer: {message}; the log's database was changed by hand"
    )]
    LeafRefused {
        /// What is wrong with it.
        message: String,
    },
    /// A writer of whom the log does not know.
    #[error("the log has no writer `{0}`; `portcullis log status` lists them")]
    WriterUnknown(KeyId),
    /// A tile that was published does not fit.
    #[error("the published tiles do not match the log: {message}; `portcullis fsck` shows which")]
    Tiles {
        /// What is wrong.
        message: String,
    },
    /// The log is frozen.
    #[error("the log is frozen: {reason}; `portcullis log rotate` starts a new store")]
    Frozen {
        /// Why.
        reason: String,
    },
    /// The log, or something in it, has reached its limit.
    #[error("{what}: at most {limit}")]
    OverLimit {
        /// What.
        what: &'static str,
        /// How many.
        limit: u64,
    },
}

impl LogError {
    pub(super) fn io(path: &Path, action: &'static str, error: &io::Error) -> LogError {
        LogError::Io { path: path.to_owned(), action, detail: error.to_string() }
    }

    pub(super) fn database(path: &Path, error: &rusqlite::Error) -> LogError {
        LogError::Database { path: path.to_owned(), detail: error.to_string() }
    }

    pub(super) fn tiles(error: impl std::fmt::Display) -> LogError {
        LogError::Tiles { message: error.to_string() }
    }

    /// Whether trying again later may help, without anyone doing anything.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            LogError::Io { .. }
            | LogError::Database { .. }
            | LogError::LockMoved
            | LogError::Busy { .. }
            | LogError::Unconfirmed(_) => true,
            LogError::Ledger(error) => !matches!(
                error,
                LedgerError::Corrupt { .. } | LedgerError::RunDamaged { .. } | LedgerError::NotALedger { .. }
            ),
            _ => false,
        }
    }
}
