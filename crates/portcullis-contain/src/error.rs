//! Why a command was not run under its profile.

use std::io;
use std::path::PathBuf;

use crate::step::Step;
use portcullis_core::profile::Level;

/// Why a command was not run under its profile. It was not run at all then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainError {
    /// This system has no confinement that the crate knows.
    #[error("containment is not supported on this system: it needs Linux")]
    NotSupported,
    /// The profile says something that cannot be meant.
    #[error("the profile: {0}")]
    Profile(String),
    /// The level that is required cannot be reached.
    #[error("the level `{required}` is not reached on this machine: the step `{}` failed: {}", failed.name, failed.error.as_deref().unwrap_or("no reason given"))]
    Level {
        /// The level that the profile or the caller requires.
        required: Level,
        /// The step that failed.
        failed: Step,
    },
    /// The helper is missing, or not the one that belongs to this program.
    #[error("the helper `{}`: {problem}", path.display())]
    Helper {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The command could not be started under the profile.
    #[error("cannot start `{command}`: {problem}")]
    Start {
        /// The command's first word.
        command: String,
        /// Why, and what to do.
        problem: String,
        /// Whether there is no such program; otherwise it may not be executed.
        missing: bool,
    },
    /// A file could not be read or written.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

#[cfg(unix)]
impl From<crate::companion::CompanionError> for ContainError {
    fn from(crate::companion::CompanionError { path, problem }: crate::companion::CompanionError) -> Self {
        Self::Helper { path, problem }
    }
}

impl ContainError {
    #[cfg(target_os = "linux")]
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
