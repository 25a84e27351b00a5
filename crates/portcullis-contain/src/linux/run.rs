//! The supervisor's side: the order for the helper, waiting for it, and what was observed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use super::files;
use super::keep::Keep;
use super::locate::Helper;
use super::order::{BYTES_MAX, Order, PROTOCOL, Report};
use super::relay::Relay;
use super::wait;
use crate::error::ContainError;
use crate::learn::Did;
use crate::profile::{Invocation, Output};
use crate::protected::guarded;
use crate::step::Step;
use portcullis_core::observed::{Attempt, Ended, Limit, Observed, Program, Programs, Refused, Seen};
use portcullis_core::profile::Level;
use portcullis_core::profile::{Background, Network, Profile, Watch};

/// Lines of a report that are read: more than the helper's counts have entries.
const LINES_MAX: usize = 32 << 10;
/// Variables that the loader obeys; it would do so in the helper, before anything is confined.
const LOADER: [&str; 2] = ["LD_", "GLIBC_"];

/// Runs commands under profiles.
#[derive(Debug)]
pub struct Contained {
    helper: Helper,
}

/// What the helper told.
#[derive(Debug, Default)]
struct Told {
    started: bool,
    failed: Option<Step>,
    not_started: Option<i32>,
    landlock: u32,
    ended: Option<(Ended, u64, u64)>,
    limits: Vec<Limit>,
    programs: Programs,
    refused: Refused,
    done: Vec<Attempt>,
}

/// A command that was run.
pub(super) struct Ran {
    pub(super) observed: Observed,
    /// Landlock's ABI.
    pub(super) landlock: u32,
    /// What it did, where all is looked at.
    done: Vec<Attempt>,
}

/// The folder of one run. It is removed with all that is in it.
struct Place {
    folder: TempDir,
}

impl Contained {
    /// With the helper beside the running program.
    ///
    /// # Errors
    /// It is missing, others can write it, or it is not the one whose digest was recorded.
    pub fn new() -> Result<Self, ContainError> {
        Ok(Self { helper: Helper::beside_program()? })
    }

    /// With the helper at this path.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_helper(path: &Path) -> Result<Self, ContainError> {
        Ok(Self { helper: Helper::open(path)? })
    }

    /// Runs a command under a profile, and waits for it. The calling thread has to live as long.
    ///
    /// # Errors
    /// The command was not run: the profile is wrong, the level is not reached, or it cannot be started.
    pub fn run(&self, profile: &Profile, command: &Invocation) -> Result<Observed, ContainError> {
        self.run_at_a_level(profile, command).map(|ran| ran.observed)
    }

    /// The same, with what the command did besides what was refused; the profile has to say that all is looked at.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn learn(&self, profile: &Profile, command: &Invocation) -> Result<(Observed, Did), ContainError> {
        self.run_at_a_level(profile, command).map(|ran| (ran.observed, Did(ran.done)))
    }

    fn run_at_a_level(&self, profile: &Profile, command: &Invocation) -> Result<Ran, ContainError> {
        profile.check().map_err(ContainError::Profile)?;
        if matches!(profile.network, Network::Hosts(_)) {
            let why = format!("`{}` names hosts, which cannot be reached yet", profile.name);
            return Err(ContainError::Profile(why));
        }
        if profile.background == Background::Keep && profile.limits.output_bytes.is_some() {
            let why = "`output_bytes` counts what passes through the caller, and what `background = \"keep\"` leaves running outlasts it: give one of them";
            return Err(ContainError::Profile(why.to_owned()));
        }
        match command.level {
            Some(level) if level < profile.level => Err(ContainError::Profile(format!(
                "`{}` requires the level `{}`, and `{level}` is below it",
                profile.name, profile.level
            ))),
            Some(level) => self.run_and_tell(profile, command, level),
            None => match self.run_and_tell(profile, command, Level::Namespace) {
                Err(ContainError::Level { .. }) if profile.level < Level::Namespace => {
                    self.run_and_tell(profile, command, Level::Process)
                }
                other => other,
            },
        }
    }

    /// The same at one level.
    pub(super) fn run_and_tell(
        &self,
        profile: &Profile,
        command: &Invocation,
        level: Level,
    ) -> Result<Ran, ContainError> {
        if command.output == Output::Kept && profile.limits.output_bytes.is_none() {
            return Err(ContainError::Profile("output that is kept needs `output_bytes`".to_owned()));
        }
        let place = Place::make(command.user)?;
        let environment = environment(profile, command, &place, level)?;
        let (order, write, keep) = order(profile, command, &place, level, &environment)?;
        let before = match profile.watch {
            Watch::Nothing => None,
            _ => Some(files::Before::begin(&write, place.gate()?)?),
        };
        let begun = Instant::now();
        let waiting = wait::Waiting::begin(command.forward_signals)?;
        let mut child = self.spawn(profile, command, level, &order, &environment)?;
        let relay = Relay::begin(&mut child, profile.limits.output_bytes, command.output)?;
        let status = waiting.wait(&mut child)?;
        let (stdout, stderr, too_much) = relay.finish();
        let put_back = keep.put_back();
        let mut files = before.map(files::Before::finish).unwrap_or_default();
        let mut told = told(&place.report())?;
        if profile.background == Background::Keep {
            place.leave();
        }
        told.check(command, level)?;
        if too_much {
            told.limits.push(Limit::Output);
        }
        let wall_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (ended, cpu_ms, survivors) = told.ended.unwrap_or((status, 0, 0));
        if profile.background == Background::Keep && survivors > 0 && files.seen == Seen::All {
            // They go on changing them.
            files.seen = Seen::Some;
        }
        let limits = told.limits;
        let profile = profile.name.clone();
        let observed = Observed {
            level,
            profile,
            ended,
            wall_ms,
            cpu_ms,
            survivors,
            limits,
            put_back,
            programs: told.programs,
            files,
            connections: Vec::new(),
            refused: told.refused,
            stdout,
            stderr,
        };
        Ok(Ran { observed, landlock: told.landlock, done: told.done })
    }

    fn spawn(
        &self,
        profile: &Profile,
        command: &Invocation,
        level: Level,
        order: &str,
        environment: &Environment,
    ) -> Result<Child, ContainError> {
        let stage = if level == Level::Namespace { "enter" } else { "supervise" };
        let mut helper = Command::new(self.helper.executable());
        helper.arg0("portcullis-contain").arg(stage).arg(order).arg("--");
        helper.arg(&command.program).args(&command.arguments);
        helper.env_clear().envs(&environment.now);
        if let Some(folder) = &command.folder {
            helper.current_dir(folder);
        }
        if let Some((user, group)) = command.user {
            helper.uid(user).gid(group);
        }
        if command.output == Output::Kept {
            helper.stdin(Stdio::null());
        }
        if command.output == Output::ToErrors {
            let errors = std::io::stderr().as_fd().try_clone_to_owned();
            helper.stdout(errors.map_err(ContainError::io("standard error"))?);
        }
        if profile.limits.output_bytes.is_some() {
            helper.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let failed = ContainError::io(format!("start the helper `{}`", self.helper.path().display()));
        helper.spawn().map_err(failed)
    }
}

impl Place {
    fn make(user: Option<(u32, u32)>) -> Result<Self, ContainError> {
        let failed = || ContainError::io("make a private folder for temporary files");
        let within = std::env::temp_dir().canonicalize().map_err(failed())?;
        let folder =
            tempfile::Builder::new().prefix("portcullis-run-").tempdir_in(within).map_err(failed())?;
        let place = Self { folder };
        File::create_new(place.report()).map_err(failed())?;
        std::fs::create_dir(place.temporary()).map_err(failed())?;
        if let Some((user, group)) = user {
            for path in [place.folder.path(), &place.report(), &place.temporary()] {
                std::os::unix::fs::chown(path, Some(user), Some(group)).map_err(failed())?;
            }
        }
        Ok(place)
    }

    /// Leaves it to what was left running, and to the helper, which removes it when that has ended.
    fn leave(self) {
        let _gone = std::fs::remove_file(self.report());
        let folder = self.folder.keep();
        // That has ended already where this works.
        let _used = std::fs::remove_dir(folder);
    }

    /// Where the helper reports. The command has no way to it.
    fn report(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// The same, to be locked: the helper starts the command when it is not locked any more.
    fn gate(&self) -> Result<File, ContainError> {
        File::open(self.report()).map_err(ContainError::io("open the report"))
    }

    /// The command's own folder for temporary files.
    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// Variables of the helper, which it leaves to the command, and those for the command alone.
struct Environment {
    now: BTreeMap<OsString, OsString>,
    late: Vec<(String, String)>,
}

fn environment(
    profile: &Profile,
    command: &Invocation,
    place: &Place,
    level: Level,
) -> Result<Environment, ContainError> {
    let all = command.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
    let (mut now, mut late) = (BTreeMap::new(), Vec::new());
    for (name, value) in all {
        let Some(known) = name.to_str().filter(|name| profile.shows(name)) else { continue };
        if LOADER.iter().any(|start| known.starts_with(start)) {
            let value = value
                .into_string()
                .map_err(|_| ContainError::Profile(format!("the value of `{known}` is not UTF-8")))?;
            late.push((known.to_owned(), value));
        } else {
            now.insert(name, value);
        }
    }
    let temporary = match level {
        Level::Namespace => PathBuf::from("/tmp"),
        _ => place.temporary(),
    };
    now.insert("TMPDIR".into(), temporary.into());
    Ok(Environment { now, late })
}

/// The order, as the helper's argument, and what is protected, as it is.
fn order(
    profile: &Profile,
    command: &Invocation,
    place: &Place,
    level: Level,
    environment: &Environment,
) -> Result<(String, Vec<PathBuf>, Keep), ContainError> {
    let folder = match &command.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(ContainError::io("the folder this runs in"))?,
    };
    let real = |path: &PathBuf| {
        path.canonicalize().map_err(ContainError::io(format!("the profile's folder `{}`", path.display())))
    };
    let folder = real(&folder)?;
    // What is not there cannot be read; but a folder to write in that is missing is a mistake.
    let there = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let write = profile.write.iter().map(real).collect::<Result<Vec<_>, _>>()?;
    if let Some(file) = write.iter().find(|path| !path.is_dir()) {
        return Err(ContainError::Profile(format!("`write`: `{}` is no folder", file.display())));
    }
    let keep = Keep::new(guarded(&write, &folder))?;
    let (shut, pinned) = keep.existing();
    let order = Order {
        protocol: PROTOCOL,
        level,
        supervisor: std::process::id(),
        read: there(&profile.read),
        execute: there(&profile.execute),
        write,
        shut,
        pinned,
        temporary: place.temporary(),
        folder,
        network: profile.network.clone(),
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
        background: profile.background,
        watch: profile.watch,
        late: environment.late.clone(),
        report: place.report(),
    };
    let text = serde_json::to_string(&order)
        .map_err(|error| ContainError::Profile(format!("a path that is not UTF-8: {error}")))?;
    if text.len() > BYTES_MAX {
        return Err(ContainError::Profile(format!(
            "its paths and variables take more than {} KiB; name folders above them",
            BYTES_MAX >> 10
        )));
    }
    Ok((text, order.write, keep))
}

fn told(report: &Path) -> Result<Told, ContainError> {
    let failed = || ContainError::io("read what the helper reports");
    let mut told = Told::default();
    for line in BufReader::new(File::open(report).map_err(failed())?).lines().take(LINES_MAX) {
        match serde_json::from_str(&line.map_err(failed())?) {
            Ok(Report::Done(_)) => {}
            Ok(Report::Failed(name, why)) => {
                told.failed = told.failed.or(Some(Step { name, error: Some(why) }));
            }
            Ok(Report::Landlock(abi)) => told.landlock = abi,
            Ok(Report::NotStarted(error)) => told.not_started = Some(error),
            Ok(Report::Started) => told.started = true,
            Ok(Report::Reached(limit)) => told.limits.push(limit),
            Ok(Report::Program { path, times }) => {
                told.programs.started.push(Program { path: path.into(), times });
            }
            Ok(Report::Refused { what, target, times }) => {
                told.refused.attempts.push(Attempt { what, target, times });
            }
            Ok(Report::Did { what, target, times }) => told.done.push(Attempt { what, target, times }),
            Ok(Report::Watched { programs, refused }) => {
                (told.programs.seen, told.refused.seen) = (programs, refused);
            }
            Ok(Report::Ended { ended, cpu_ms, survivors }) => told.ended = Some((ended, cpu_ms, survivors)),
            Err(error) => return Err(failed()(error.into())),
        }
    }
    Ok(told)
}

impl Told {
    /// Whether the command was run.
    fn check(&self, command: &Invocation, level: Level) -> Result<(), ContainError> {
        if let Some(number) = self.not_started {
            return Err(not_started(command, number));
        }
        match &self.failed {
            Some(failed) if !self.started => {
                Err(ContainError::Level { required: level, failed: failed.clone() })
            }
            None if !self.started => {
                let why =
                    "it left without a word; install `portcullis` and `portcullis-contain` again, together";
                let failed = Step { name: "helper".to_owned(), error: Some(why.to_owned()) };
                Err(ContainError::Level { required: level, failed })
            }
            _ => Ok(()),
        }
    }
}

fn not_started(command: &Invocation, number: i32) -> ContainError {
    let error = std::io::Error::from_raw_os_error(number);
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    let next = if missing {
        "it is looked for on the PATH that the profile shows"
    } else {
        "the profile lets programs be executed below its `execute` folders only: `--read DIR` adds one"
    };
    let program = command.program.to_string_lossy().into_owned();
    ContainError::Start { command: program, problem: format!("{error}; {next}"), missing }
}
