//! What this machine can do: every step is run.

use std::ffi::OsString;

use super::run::{Contained, Ran};
use crate::error::ContainError;
use crate::profile::{Invocation, Output};
use crate::step::{Probe, Step};
use portcullis_core::observed::Seen;
use portcullis_core::profile::{Background, Git, Level, Limits, Network, Profile, Sockets, VERSION, Watch};

/// Runs a command that does nothing at each level, from the highest.
///
/// # Errors
/// The helper is missing, or a file that it needs cannot be made. A step that fails is an answer, not an error.
pub fn probe(contained: &Contained) -> Result<Probe, ContainError> {
    let mut first = None;
    for level in [Level::Namespace, Level::Process] {
        match attempt(contained, level) {
            Ok((landlock, watched)) => return Ok(Probe { reached: level, landlock, watched, failed: first }),
            Err(ContainError::Level { failed, .. }) => first = Some(first.unwrap_or(failed)),
            Err(error) => return Err(error),
        }
    }
    Ok(Probe { reached: Level::None, landlock: 0, watched: false, failed: first })
}

/// Landlock's ABI and whether the command was watched, where everything worked.
fn attempt(contained: &Contained, level: Level) -> Result<(u32, bool), ContainError> {
    let profile = Profile {
        name: "probe".to_owned(),
        version: VERSION,
        level,
        read: Vec::new(),
        execute: ["/usr", "/bin", "/lib", "/lib64", "/nix/store"].map(Into::into).to_vec(),
        write: Vec::new(),
        network: Network::Loopback(Vec::new()),
        sockets: Sockets::None,
        background: Background::End,
        git: Git::Held,
        remotes: Vec::new(),
        watch: Watch::default(),
        environment: vec!["PATH".to_owned()],
        limits: Limits { output_bytes: Some(1 << 10), wall_seconds: Some(10), ..Limits::default() },
    };
    let nothing = Invocation {
        program: OsString::from("true"),
        folder: Some("/".into()),
        level: Some(level),
        output: Output::Kept,
        ..Invocation::default()
    };
    let Ran { observed, landlock, .. } = contained.run_and_tell(&profile, &nothing, level)?;
    match observed.ended.code() {
        0 => Ok((landlock, observed.programs.seen != Seen::Nothing)),
        code => {
            let failed = Step { name: "command".to_owned(), error: Some(format!("`true` left with {code}")) };
            Err(ContainError::Level { required: level, failed })
        }
    }
}
