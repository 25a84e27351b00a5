//! What runs programs: an executable that speaks the worker protocol, how its workers are started, and what they have.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use portcullis_contain::{Companion, CompanionError, Missing, settle};
use portcullis_core::bundle::EngineSettings;
use portcullis_core::profile::{Places, Profile};

use crate::worker::Worker;

/// The engine's name, beside the program.
const NAME: &str = "portcullis-starlark";
/// Workers of the engine of guard programs. Each is idle nearly always, and has some 9 MB.
const WORKERS: usize = 4;
/// How long one has for all programs of a bundle.
const CHECK_WAIT: Duration = Duration::from_millis(200);
/// After a check that took longer it is looked at how much memory a worker has.
const STRAINED: Duration = Duration::from_millis(20);
/// One that has so much more than when it was started is replaced: its memory is in pieces, and the next check may lack it.
const GROWN_BYTES: u64 = 16 << 20;

/// Most bytes of the toolbox's manual that are read.
const MANUAL_BYTES_MAX: u64 = 256 << 10;

/// The engine cannot be used.
pub type EngineError = CompanionError;

/// An engine, open: what was checked is what is executed.
#[derive(Debug)]
pub struct Engine {
    executable: Companion,
    runs: Runs,
}

#[derive(Debug)]
enum Runs {
    /// It takes its powers away itself.
    Itself,
    /// `portcullis run` takes them away before it starts.
    Contained(Contained),
}

#[derive(Debug)]
struct Contained {
    portcullis: PathBuf,
    /// As JSON.
    profile: String,
    arguments: Vec<String>,
    workers: usize,
    wait: Duration,
}

impl Engine {
    /// The engine of guard programs beside the running program.
    ///
    /// # Errors
    /// It is not there, others can write it, or it has another digest than was recorded when it was installed.
    pub fn beside_program() -> Result<Self, EngineError> {
        Ok(Self { executable: Companion::beside_program(NAME)?, runs: Runs::Itself })
    }

    /// The engine of guard programs at this path.
    ///
    /// # Errors
    /// As [`Self::beside_program`].
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        Ok(Self { executable: Companion::open(path)?, runs: Runs::Itself })
    }

    /// An engine that a bundle names, which `portcullis` at this path runs under a profile.
    ///
    /// # Errors
    /// As [`Self::beside_program`], or the profile cannot be had.
    pub fn of_bundle(
        settings: &EngineSettings,
        profile: Profile,
        portcullis: PathBuf,
    ) -> Result<Self, EngineError> {
        let executable = Companion::with_digest(&settings.command, &settings.sha256)?;
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let folder = settings.command.parent();
        let places = Places { workspace: folder, home: home.as_deref(), here: folder };
        let of_profile = |why: String| executable.wrong(format!("its profile `{}`: {why}", settings.profile));
        let placed = profile.at(&places).map_err(of_profile)?;
        let settled = settle(placed, home.as_deref(), Missing::Refused);
        let settled = settled.map_err(|error| of_profile(error.to_string()))?;
        let profile = serde_json::to_string(&settled).map_err(|error| of_profile(error.to_string()))?;
        let runs = Runs::Contained(Contained {
            portcullis,
            profile,
            arguments: settings.arguments.clone(),
            workers: settings.workers,
            wait: Duration::from_millis(settings.wait_ms.into()),
        });
        Ok(Self { executable, runs })
    }

    /// What programs may call, as the engine itself describes it, in Markdown. It is the one description that people and
    /// models get.
    ///
    /// # Errors
    /// The engine does not print it.
    pub fn toolbox(&self) -> Result<String, EngineError> {
        let mut child = Command::new(self.executable.executable())
            .arg("toolbox")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| self.wrong(format!("it cannot be started: {error}")))?;
        let mut manual = String::new();
        let read = match child.stdout.take() {
            Some(out) => out.take(MANUAL_BYTES_MAX).read_to_string(&mut manual).map(|_| ()),
            None => Ok(()),
        };
        // One that has more to say is not waited for.
        let _gone = child.kill();
        let _waited = child.wait();
        read.map_err(|error| self.wrong(format!("it does not say what programs may call: {error}")))?;
        if manual.trim().is_empty() {
            return Err(self.wrong("it does not say what programs may call; install it again".to_owned()));
        }
        Ok(manual)
    }

    /// The command of a worker.
    pub(crate) fn worker(&self) -> Command {
        match &self.runs {
            Runs::Itself => {
                let mut command = Command::new(self.executable.executable());
                // Each further arena would reserve the address space that a worker has.
                command.arg("worker").env_clear().env("MALLOC_ARENA_MAX", "1");
                command
            }
            Runs::Contained(Contained { portcullis, profile, arguments, .. }) => {
                let mut command = Command::new(portcullis);
                command.args(["run", "--profile-json", profile, "--"]);
                command.arg(self.executable.path()).args(arguments).arg("worker");
                command
            }
        }
    }

    /// How many workers it has.
    pub(crate) fn workers(&self) -> usize {
        match &self.runs {
            Runs::Itself => WORKERS,
            Runs::Contained(contained) => contained.workers,
        }
    }

    /// How long a worker has for an answer.
    pub(crate) fn wait(&self) -> Duration {
        match &self.runs {
            Runs::Itself => CHECK_WAIT,
            Runs::Contained(contained) => contained.wait,
        }
    }

    /// Whether a worker is to be replaced after an answer that took so long.
    pub(crate) fn has_worn(&self, worker: &Worker, took: Duration) -> bool {
        // What an engine of the bundle does with its memory is its own affair.
        matches!(self.runs, Runs::Itself)
            && took > STRAINED
            && worker.grown_bytes().is_none_or(|grown| grown > GROWN_BYTES)
    }

    /// The same engine with another problem.
    pub(crate) fn wrong(&self, problem: String) -> EngineError {
        self.executable.wrong(problem)
    }
}
