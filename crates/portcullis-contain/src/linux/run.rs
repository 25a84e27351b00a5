//! The supervisor's side: the order for the helper, waiting for it, and what was observed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::files;
use super::git::{self as gits, Fetched};
use super::keep::{Keep, Work};
use super::order::{BYTES_MAX, Order, PROTOCOL, Report};
use super::place::Place;
use super::proxy::{self, Handover, Proxy};
use super::relay::Relay;
use super::sockets;
use super::wait;
use crate::companion::Companion;
use crate::error::ContainError;
use crate::git;
use crate::learn::Did;
use crate::network::{Names, SystemNames};
use crate::profile::{Invocation, Output};
use crate::protected::{guarded, unless_named};
use crate::step::Step;
use portcullis_core::observed::{Attempt, Ended, Files, Limit, Observed, Program, Programs, Refused, Seen};
use portcullis_core::profile::{Background, Git, Level, Network, Profile, Sockets, Watch};

/// Lines of a report that are read: more than the helper's counts have entries.
const LINES_MAX: usize = 32 << 10;
/// Variables that the loader obeys; it would do so in the helper, before anything is confined.
const LOADER: [&str; 2] = ["LD_", "GLIBC_"];

/// Runs commands under profiles.
#[derive(Debug)]
pub struct Contained {
    helper: Companion,
    names: Arc<dyn Names>,
    landlock: Option<u32>,
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

/// The helper's name, beside the program.
const HELPER: &str = "portcullis-contain";

/// A command that was run.
pub(super) struct Ran {
    pub(super) observed: Observed,
    /// Landlock's ABI.
    pub(super) landlock: u32,
    /// What it did, where all is looked at.
    done: Vec<Attempt>,
}

impl Contained {
    /// With the helper beside the running program.
    ///
    /// # Errors
    /// It is missing, others can write it, or it is not the one whose digest was recorded.
    pub fn new() -> Result<Self, ContainError> {
        Ok(Self { helper: Companion::beside_program(HELPER)?, names: Arc::new(SystemNames), landlock: None })
    }

    /// With the helper at this path.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_helper(path: &Path) -> Result<Self, ContainError> {
        Ok(Self { helper: Companion::open(path)?, names: Arc::new(SystemNames), landlock: None })
    }

    /// Has the proxy look names up here rather than with the machine's name servers.
    #[must_use]
    pub fn with_names(self, names: impl Names + 'static) -> Self {
        Self { names: Arc::new(names), ..self }
    }

    /// As on a kernel whose Landlock has this ABI and no newer one: for tests of what a level holds there. Nothing that
    /// a profile, a command line or the environment says leads here.
    #[must_use]
    pub fn as_with_landlock(mut self, abi: u32) -> Self {
        self.landlock = Some(abi);
        self
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
        if profile.background == Background::Keep && matches!(profile.network, Network::Hosts(_)) {
            let why = "hosts are reached through the caller, and what `background = \"keep\"` leaves running outlasts it: give one of them".to_owned();
            return Err(ContainError::Profile(why));
        }
        if profile.background == Background::Keep && profile.limits.output_bytes.is_some() {
            let why = "`output_bytes` counts what passes through the caller, and what `background = \"keep\"` leaves running outlasts it: give one of them";
            return Err(ContainError::Profile(why.to_owned()));
        }
        match command.level {
            Some(level) if level < profile.least_level() => Err(below(profile, level)),
            Some(level) => self.run_and_tell(profile, command, level),
            None => match self.run_and_tell(profile, command, Level::Namespace) {
                Err(ContainError::Level { .. }) if profile.least_level() < Level::Namespace => {
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
        let place = Place::make(command.user, &profile.write)?;
        let write = writable(&profile.write)?;
        let (work, fetched) = works(profile, command, &place, &write)?;
        let reading = Profile { read: [&profile.read[..], &fetched.read].concat(), ..profile.clone() };
        let profile = &reading;
        let mut environment = environment(profile, command, &place, level)?;
        environment.now.extend(fetched.environment);
        let before = match profile.watch {
            Watch::Nothing => None,
            _ => Some(files::Before::begin(&write, place.gate()?)?),
        };
        let (order, keep) = self.order(profile, command, &place, level, &environment, write)?;
        let begun = Instant::now();
        let handover = place.handover_for(profile, command)?;
        let waiting = wait::Waiting::begin(command.forward_signals)?;
        let mut child = self.spawn(profile, command, level, &order, &environment)?;
        let proxy =
            handover.map(|handover| self.proxy(profile, command, handover, child.id())).transpose()?;
        let relay = Relay::begin(&mut child, profile.limits.output_bytes, command.output)?;
        let status = waiting.wait(&mut child)?;
        let (stdout, stderr, too_much) = relay.finish();
        let (connections, connections_left_out) = proxy.map(Proxy::finish).unwrap_or_default();
        let mut put_back = Vec::new();
        let mend = || {
            put_back = keep.put_back(&work);
            !put_back.is_empty()
        };
        let mut files = match before {
            Some(before) => before.finish(mend),
            None => {
                mend();
                Files::default()
            }
        };
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
            connections,
            connections_left_out,
            refused: told.refused,
            stdout,
            stderr,
        };
        Ok(Ran { observed, landlock: told.landlock, done: told.done })
    }

    /// Begins to serve the command's connections.
    fn proxy(
        &self,
        profile: &Profile,
        command: &Invocation,
        handover: Handover,
        helper: u32,
    ) -> Result<Proxy, ContainError> {
        let (names, told) = (Arc::clone(&self.names), command.on_connection.clone());
        Proxy::begin(profile, names, told, handover, helper).map_err(ContainError::io("start the proxy"))
    }

    /// The order, as the helper's argument, and what is protected, as it is.
    fn order(
        &self,
        profile: &Profile,
        command: &Invocation,
        place: &Place,
        level: Level,
        environment: &Environment,
        write: Vec<PathBuf>,
    ) -> Result<(String, Keep), ContainError> {
        let (start, folder) = starts(command)?;
        let sockets = profile.sockets.paths();
        for path in profile.read.iter().chain(&profile.execute).chain(&profile.write).chain(sockets) {
            stays_within(path, &start, &folder)?;
        }
        // What is not there cannot be read; but a folder to write in that is missing is a mistake.
        let there = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let listed = match &profile.sockets {
            Sockets::Paths(paths) => Sockets::Paths(there(paths)),
            others => others.clone(),
        };
        let folders: Vec<PathBuf> = write.iter().filter(|path| path.is_dir()).cloned().collect();
        let keep = Keep::new(unless_named(guarded(&folders, &folder), &named(&profile.write)))?;
        let (shut, pinned) = keep.existing(profile.git);
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
            handover: matches!(profile.network, Network::Hosts(_)).then(|| place.handover()),
            hidden: sockets::to_hide(&listed)?,
            sockets: listed,
            limits: profile.limits,
            background: profile.background,
            watch: profile.watch,
            late: environment.late.clone(),
            landlock: self.landlock,
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
        Ok((text, keep))
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

/// Where a command starts, as it is named and as it is.
fn starts(command: &Invocation) -> Result<(PathBuf, PathBuf), ContainError> {
    let start = match &command.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(ContainError::io("the folder this runs in"))?,
    };
    let what = format!("the folder `{}`", start.display());
    let folder = start.canonicalize().map_err(ContainError::io(what))?;
    Ok((start, folder))
}

/// What git may change, and what was fetched for it.
fn works(
    profile: &Profile,
    command: &Invocation,
    place: &Place,
    write: &[PathBuf],
) -> Result<(Work, Fetched), ContainError> {
    let is_needed = profile.git == Git::Works || !profile.remotes.is_empty();
    let (_, folder) = starts(command)?;
    let Some(git) = is_needed.then(|| gits::Git::find(command, &folder, write)).flatten() else {
        return Ok((Work::default(), Fetched::default()));
    };
    let works = profile.git == Git::Works;
    let mut work = Work { settings: works, brought: None };
    if works {
        work.brought = gits::Before::look(&git);
    }
    let fetched = Fetched::from(&git, &profile.remotes, command, &place.fetched());
    if let Some(before) = &mut work.brought {
        before.also(fetched.tips.iter().cloned());
    }
    Ok((work, fetched))
}

/// At each start npm would look for a newer version of itself, since it cannot note outside the project when it did.
const NPM_NOTIFIER: (&str, &str) = ("npm_config_update_notifier", "false");

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
    now.entry(NPM_NOTIFIER.0.into()).or_insert_with(|| NPM_NOTIFIER.1.into());
    now.extend(proxy::variables(profile));
    Ok(Environment { now, late })
}

/// Refuses a path below the folder that a command starts in when a link leads it out: a command before may have made
/// the link.
fn stays_within(path: &Path, start: &Path, folder: &Path) -> Result<(), ContainError> {
    let is_below =
        git::plain(path).starts_with(start) && !path.components().any(|part| part == Component::ParentDir);
    match path.canonicalize() {
        Ok(real) if is_below && !real.starts_with(folder) => Err(ContainError::Profile(format!(
            "`{}`: a link leads it to `{}`; name that if it is meant",
            path.display(),
            real.display()
        ))),
        _ => Ok(()),
    }
}

/// Why a level that was asked for is none for this profile.
fn below(profile: &Profile, level: Level) -> ContainError {
    let (name, least) = (&profile.name, profile.least_level());
    let why = match (&profile.network, &profile.sockets) {
        _ if profile.level == least => "",
        (Network::Hosts(_), _) => {
            "; its `network` names hosts, and only a network of its own holds a command to them"
        }
        _ => "; its `sockets` are not \"none\", and only mounts of its own hide those of others",
    };
    ContainError::Profile(format!("`{name}` requires the level `{least}`, and `{level}` is below it{why}"))
}

/// The folders and files to write. A file in one of the folders is left out: it is written there, and can be replaced.
fn writable(stated: &[PathBuf]) -> Result<Vec<PathBuf>, ContainError> {
    let (mut real, mut missing) = (Vec::new(), Vec::new());
    for path in stated {
        match path.canonicalize() {
            Ok(path) => real.push(path),
            Err(error) => missing.push((path, error)),
        }
    }
    let folders: Vec<PathBuf> = real.iter().filter(|path| path.is_dir()).cloned().collect();
    let is_below = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    for (path, error) in missing {
        // What is to be made, or no longer to be protected, lies in a folder that is written.
        let above = path.ancestors().skip(1).find_map(|above| above.canonicalize().ok());
        if !above.is_some_and(|above| is_below(&above)) {
            return Err(ContainError::io(format!("the profile's folder `{}`", path.display()))(error));
        }
    }
    real.retain(|path| path.is_dir() || !is_below(path));
    Ok(real)
}

/// What a profile names to be written, under each name that it has.
fn named(stated: &[PathBuf]) -> Vec<PathBuf> {
    let real =
        stated.iter().filter_map(|path| match (path.canonicalize(), path.parent(), path.file_name()) {
            (Ok(path), ..) => Some(path),
            (Err(_), Some(above), Some(name)) => above.canonicalize().ok().map(|above| above.join(name)),
            _ => None,
        });
    stated.iter().cloned().chain(real).collect()
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
    let is_path = command.program.as_encoded_bytes().contains(&b'/');
    let next = if missing && is_path {
        "what is in `/tmp` and `/run` is hidden from it unless the profile names it"
    } else if missing {
        "it is looked for on the PATH that the profile shows"
    } else {
        "the profile lets programs be executed below its `execute` folders only: `--read DIR` adds one"
    };
    let program = command.program.to_string_lossy().into_owned();
    ContainError::Start { command: program, problem: format!("{error}; {next}"), missing }
}
