//! Systems that the crate knows no confinement for.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::{ContainError, Did, Invocation, Level, Observed, Probe, Profile, Step};

/// Runs commands under profiles. Not on this system.
#[derive(Debug)]
pub struct Contained;

impl Contained {
    /// # Errors
    /// Always: this system is not supported.
    pub fn new() -> Result<Self, ContainError> {
        Err(ContainError::NotSupported)
    }

    /// # Errors
    /// Always: this system is not supported.
    pub fn run(&self, _profile: &Profile, _command: &Invocation) -> Result<Observed, ContainError> {
        Err(ContainError::NotSupported)
    }

    /// # Errors
    /// Always: this system is not supported.
    pub fn learn(&self, _profile: &Profile, _command: &Invocation) -> Result<(Observed, Did), ContainError> {
        Err(ContainError::NotSupported)
    }
}

/// # Errors
/// Never here.
pub fn probe(_contained: &Contained) -> Result<Probe, ContainError> {
    let failed = Step { name: "system".to_owned(), error: Some("this is not Linux".to_owned()) };
    Ok(Probe { reached: Level::None, landlock: 0, watched: false, failed: Some(failed) })
}

/// The helper program: there is nothing for it to do here.
pub fn helper(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(64)
}
