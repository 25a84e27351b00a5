//! Starting a server under the profile that the bundle gives it.
//!
//! `portcullis run` stands between the gate and the server and passes its standard input and output untouched. What was
//! observed lies in a file when it has ended. Where the server cannot run under its profile it is not started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use portcullis_contain::{Missing, Observed, Places, Profile, settle};
use tempfile::TempDir;

use super::{GateError, GateOptions};

/// Most bytes of what was observed.
const OBSERVED_BYTES_MAX: u64 = 16 << 20;

/// The command that runs a server under its profile.
#[derive(Debug)]
pub(super) struct Confined {
    program: PathBuf,
    profile: String,
    /// The folder for what is observed.
    folder: TempDir,
}

impl Confined {
    /// Prepares a profile for the folder that the gate was started in, which is also the server's.
    ///
    /// # Errors
    /// [`GateError::Contain`]: the profile cannot be had here.
    pub(super) fn new(profile: &Profile, options: &GateOptions) -> Result<Self, GateError> {
        let wrong = |why: String| GateError::Contain { profile: profile.name.clone(), why };
        let io = |error: std::io::Error| wrong(error.to_string());
        let here = std::env::current_dir().map_err(io)?;
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let places = Places { workspace: Some(&here), home: home.as_deref(), here: Some(&here) };
        let placed = profile.at(&places).map_err(wrong)?;
        let settled =
            settle(placed, home.as_deref(), Missing::Refused).map_err(|error| wrong(error.to_string()))?;
        let profile = serde_json::to_string(&settled).map_err(|error| wrong(error.to_string()))?;
        let program = match &options.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(io)?,
        };
        Ok(Self { program, profile, folder: tempfile::tempdir().map_err(io)? })
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

    /// What was observed, once it has ended. `None` if it was killed, or never ran.
    pub(super) fn observed(&self) -> Option<Observed> {
        read(&self.observed_file())
    }
}

fn read(path: &Path) -> Option<Observed> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(OBSERVED_BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
