//! Starting a server under the profile that the bundle gives it.
//!
//! `portcullis run` stands between the gate and the server and passes its standard input and output untouched. What was
//! observed lies in a file when it has ended. Where the server cannot run under its profile it is not started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use portcullis_contain::{Contained, Missing, Observed, Profile, probe, settle};
use portcullis_core::event::Place;
use portcullis_core::id::Digest;
use portcullis_session::engine::{Contain, Ticket};
use tempfile::TempDir;

use super::GateError;
use super::gated_run::GatedRun;
use crate::api::ReportObserved;

/// Most bytes of what was observed.
const OBSERVED_BYTES_MAX: u64 = 16 << 20;

/// The command that runs a server under its profile.
#[derive(Debug)]
pub(super) struct Confined {
    program: PathBuf,
    profile: String,
    /// What the record has of it.
    digest: Digest,
    ticket: Ticket,
    /// The folder for what is observed.
    folder: TempDir,
}

impl Confined {
    /// Prepares what the daemon gave the server.
    ///
    /// # Errors
    /// [`GateError::Contain`]: the profile cannot be had here.
    pub(super) fn new(contain: &Contain, gate_program: Option<&Path>) -> Result<Self, GateError> {
        let wrong = |why: String| GateError::Contain { profile: contain.profile.name.clone(), why };
        let io = |error: std::io::Error| wrong(error.to_string());
        let settled = settle(contain.profile.clone(), home().as_deref(), Missing::Refused);
        let settled = settled.map_err(|error| wrong(error.to_string()))?;
        check(&settled, gate_program).map_err(wrong)?;
        let program = match gate_program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().map_err(io)?,
        };
        Ok(Self {
            program,
            profile: serde_json::to_string(&settled).map_err(|error| wrong(error.to_string()))?,
            digest: contain.profile.digest(),
            ticket: contain.ticket,
            folder: tempfile::tempdir().map_err(io)?,
        })
    }

    /// Reports what was observed, once it has ended. Nothing was, where it was killed or never ran.
    pub(super) async fn report(&self, run: &GatedRun, command: &str) {
        let Some(observed) = read(&self.observed_file()) else {
            tracing::warn!("what the server did while it ran contained is not known");
            return;
        };
        let report = ReportObserved {
            action: None,
            call: None,
            server: Some(command.to_owned()),
            ticket: Some(self.ticket),
            profile_digest: self.digest,
            observed: Some(observed),
            connection: None,
        };
        if let Err(error) = run.observed(report).await {
            tracing::warn!("what the server did could not be recorded: {error}");
        }
    }

    /// The program to start instead of the server's.
    pub(super) fn program(&self) -> &OsStr {
        self.program.as_os_str()
    }

    /// Its arguments, with the server's command.
    pub(super) fn arguments(&self, command: &[OsString]) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["run", "--profile-json", self.profile.as_str(), "--json"].map(OsString::from).to_vec();
        words.push(self.observed_file().into());
        words.push("--".into());
        words.extend(command.iter().cloned());
        words
    }

    fn observed_file(&self) -> PathBuf {
        self.folder.path().join("observed")
    }
}

/// Whether the server can run so: its client is answered before anything else is begun.
fn check(profile: &Profile, gate_program: Option<&Path>) -> Result<(), String> {
    if let Some(missing) = profile.write.iter().find(|path| !path.exists()) {
        return Err(format!("`{}` does not exist", missing.display()));
    }
    let contained = match gate_program.and_then(Path::parent) {
        Some(folder) => Contained::with_helper(&folder.join("portcullis-contain")),
        None => Contained::new(),
    };
    let found = contained.and_then(|contained| probe(&contained)).map_err(|error| error.to_string())?;
    let (level, reached) = (profile.least_level(), found.reached);
    match level <= reached {
        true => Ok(()),
        false => Err(format!(
            "it needs the level `{level}`, and `{reached}` is reached: `portcullis doctor` says which step fails"
        )),
    }
}

/// Where the gate is started, which is also the server's folder.
pub(super) fn place() -> Place {
    let text = |path: PathBuf| path.to_str().map(str::to_owned);
    Place { workspace: std::env::current_dir().ok().and_then(text), home: home().and_then(text), gate: None }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn read(path: &Path) -> Option<Observed> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(OBSERVED_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
