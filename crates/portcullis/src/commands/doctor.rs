//! `portcullis doctor`: is everything as it should be, and what to do where it is not.

mod agents;
mod companions;
mod containment;
mod folders;
mod in_force;

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, Mode};
use portcullis_core::id::Digest;
use portcullis_core::principal::CredentialKind;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::client::{Client, ClientError};
use portcullis_gateway::daemon::mark;
use portcullis_gateway::home::{APPROVER_TOKEN_VARIABLE, Home};
use portcullis_gateway::home_bundle;
use portcullis_ledger::clock::now;
use portcullis_ledger::log::{LogError, LogReader, check_standing};
use portcullis_ledger::{FreezeFilter, LedgerError, RunFilter};
use portcullis_session::configuration;
use portcullis_session::credentials::{CredentialError, read_made_token, read_token};
use serde::Serialize;

use crate::advice::advice;
use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line, count};

/// 2024-01-01, in microseconds since the epoch: a clock before it was never set.
const CLOCK_MIN: i64 = 1_704_067_200_000_000;
/// How far the last event may be ahead of the clock, in microseconds: clocks are corrected.
const CLOCK_SLACK: i64 = 5_000_000;
/// The latest runs whose last events are held against the clock.
const RUNS_LOOKED_AT: usize = 20;
/// Permission bits with which others may write.
const WRITABLE: u32 = 0o022;
/// How deep the folder of a bundle is looked into.
const DEPTH_MAX: usize = 4;
/// Problems of the store that are shown.
const PROBLEMS_SHOWN_MAX: usize = 10;

const EXAMPLES: &str = "\
Examples:
  portcullis doctor
  portcullis doctor --bundle my-bundle --json

Reads every event of the store and computes every link again: on a large store that takes a while. \
Less than 1 GiB of free space is a warning, less than 32 MiB is wrong.
Exit codes: 0 all is well (there may be warnings), 1 something is wrong.";

/// Check state folder, disk, credentials, bundle, daemon, store, log, clock, programs and agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    record: &'static str,
    name: &'static str,
    result: Health,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn new(name: &'static str, result: Health, detail: impl ToString) -> Self {
        Self { record: "check", name, result, detail: detail.to_string(), remedy: None }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    let mut failed = 0_usize;
    let mut tell = |check: Check| {
        failed += usize::from(check.result == Health::Fail);
        show(&mut out, &check, global)
    };
    match global.home() {
        Err(failure) => {
            // The message says what to give instead.
            tell(Check::new("home", Health::Fail, failure.message()))?;
            tell(bundle(args, None).0)?;
        }
        Ok(home) if let Some(check) = folders::unusable(&home) => {
            tell(check)?;
            tell(bundle(args, None).0)?;
        }
        Ok(home) => {
            tell(folder(&home))?;
            folders::unreadable(&home).into_iter().try_for_each(&mut tell)?;
            tell(folders::space(&home))?;
            for kind in [CredentialKind::Agent, CredentialKind::Approver] {
                tell(credential(&home, kind))?;
            }
            let (check, loaded) = bundle(args, Some(&home));
            tell(check)?;
            in_force::issuers(loaded.as_deref())?.into_iter().try_for_each(&mut tell)?;
            tell(daemon(&home, loaded.map(|bundle| bundle.digest()))?)?;
            tell(tools(&home))?;
            let (store, last) = store(&home);
            store.into_iter().try_for_each(&mut tell)?;
            tell(freezes(&home))?;
            tell(log(&home))?;
            tell(clock(now(), last))?;
        }
    }
    tell(companions::check())?;
    tell(containment::check())?;
    agents::check().into_iter().try_for_each(&mut tell)?;
    out.finish()?;
    Ok(if failed == 0 { exit::YES } else { exit::NO })
}

fn show(out: &mut Out, check: &Check, global: &Global) -> Result<(), Failure> {
    if global.json {
        return out.json(check);
    }
    let (word, style) = match check.result {
        Health::Ok => ("ok", out::GOOD),
        Health::Warn => ("warn", out::NOTICE),
        Health::Fail => ("FAIL", out::BAD),
    };
    let detail = clean(&advice(&check.detail)).replace('\n', "\n                      ");
    out.line(format_args!("{style}{word:<4}{style:#}  {:<14}  {detail}", check.name))?;
    match &check.remedy {
        Some(remedy) => out.line(format_args!("      {:<14}  -> {}", "", clean_line(&advice(remedy)))),
        None => Ok(()),
    }
}

fn folder(home: &Home) -> Check {
    /// Others may look.
    const OPEN: u32 = 0o077;
    let path = home.path();
    let shown = path.display();
    let remedy = format!("chmod 700 {shown}");
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::new("home", Health::Warn, format!("{shown} is not there yet; the first start makes it"))
        }
        Err(error) => Check::new("home", Health::Fail, format!("{shown}: {error}"))
            .remedy("give --home DIR with a folder of this user"),
        Ok(meta) if !meta.is_dir() => Check::new("home", Health::Fail, format!("{shown} is not a folder"))
            .remedy("give --home DIR with a folder"),
        Ok(meta) if meta.permissions().mode() & WRITABLE != 0 => {
            Check::new("home", Health::Fail, format!("others can write into {shown}")).remedy(remedy)
        }
        Ok(meta) if meta.permissions().mode() & OPEN != 0 => {
            Check::new("home", Health::Warn, format!("others can look into {shown}")).remedy(remedy)
        }
        Ok(_) => Check::new("home", Health::Ok, shown),
    }
}

fn credential(home: &Home, kind: CredentialKind) -> Check {
    let name = match kind {
        CredentialKind::Agent => "agent token",
        CredentialKind::Approver => "approver token",
    };
    let path = home.token(kind);
    let elsewhere = std::env::var_os(APPROVER_TOKEN_VARIABLE).filter(|path| !path.is_empty());
    // One that is kept elsewhere may be the operator's own, which the bundle maps.
    let read = match (kind, &elsewhere) {
        (CredentialKind::Approver, Some(_)) => read_token(&path),
        _ => read_made_token(&path, kind),
    };
    match read {
        Ok(_) if kind == CredentialKind::Approver => {
            let detail = format!("{} (any process of this user can read it)", path.display());
            Check::new(name, Health::Ok, detail)
        }
        Ok(_) => Check::new(name, Health::Ok, path.display()),
        Err(CredentialError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            match elsewhere {
                Some(_) if kind == CredentialKind::Approver => {
                    let detail = format!("{} does not exist", path.display());
                    Check::new(name, Health::Warn, detail).remedy(format!(
                        "{APPROVER_TOKEN_VARIABLE} names that file: correct it, or unset it for the token of the state folder"
                    ))
                }
                _ if is_held(home) => {
                    let detail = format!("{} is gone", path.display());
                    Check::new(name, Health::Fail, detail)
                        .remedy("put it back, or end the daemon: the next one makes another")
                }
                _ => Check::new(name, Health::Warn, "not there yet; the first start makes it"),
            }
        }
        // The message says what to run.
        Err(error) => Check::new(name, Health::Fail, error),
    }
}

/// The bundle that is named, or the one with which the state folder is served; with its digest where it loads.
fn bundle(args: &Args, home: Option<&Home>) -> (Check, Option<Arc<Bundle>>) {
    let chosen = match (args.bundle.folder(), home) {
        (None, Some(home)) => match home_bundle::chosen(home) {
            Ok(chosen) => chosen,
            // The message says what to do.
            Err(error) => return (Check::new("bundle", Health::Fail, error), None),
        },
        (folder, _) => folder.map(Path::to_owned),
    };
    let place = chosen.as_ref().map_or_else(|| "shipped".to_owned(), |path| path.display().to_string());
    let opened = match &chosen {
        Some(folder) => crate::bundle::open(folder),
        None => crate::bundle::open_shipped(),
    };
    match opened {
        Ok(opened) => {
            let bundle = opened.bundle;
            let tools = count(bundle.registry.iter().count(), "tool", "tools");
            let policies = count(bundle.policies().len(), "policy", "policies");
            let check = Check::new(
                "bundle",
                Health::Ok,
                format!(
                    "{place}: {tools}, {policies}, default {}\nbundle {}\nconfiguration {}",
                    bundle.default_policy(),
                    bundle.digest(),
                    configuration::digest(bundle.digest())
                ),
            );
            let check = match weaknesses(&bundle, chosen.as_deref()) {
                weak if weak.is_empty() => check,
                weak => Check {
                    result: Health::Warn,
                    detail: format!("{}\n{}", check.detail, weak.join("\n")),
                    ..check
                }
                .remedy("change it unless it is meant; docs/bundle.md says what each setting does"),
            };
            (check, Some(bundle))
        }
        Err(failure) => {
            let remedy = match failure.help_text() {
                Some(help) if !failure.has_places() => help.to_owned(),
                _ => format!("`portcullis policy test --bundle {place}` shows every place"),
            };
            (Check::new("bundle", Health::Fail, failure.message()).remedy(remedy), None)
        }
    }
}

/// Settings under which less is held than most expect, and whether others can change them.
fn weaknesses(bundle: &Bundle, folder: Option<&Path>) -> Vec<String> {
    let mut weak = Vec::new();
    if bundle.mode == Mode::Observe {
        weak.push("mode = \"observe\": verdicts are recorded and nothing is stopped".to_owned());
    }
    if bundle.unknown_tools == Verdict::Allow {
        weak.push("unknown_tools = \"allow\": tools that the bundle does not list are not held".to_owned());
    }
    if bundle.trust_hints {
        weak.push("trust_hints = true: a server's own word that a tool only reads is believed".to_owned());
    }
    if let Some(writable) = folder.and_then(|folder| writable_by_others(folder, DEPTH_MAX)) {
        weak.push(format!("others can write to {}", writable.display()));
    }
    weak
}

/// The first file or folder of a bundle that others than its owner can write to.
fn writable_by_others(path: &Path, depth: usize) -> Option<PathBuf> {
    let meta = fs::metadata(path).ok()?;
    if meta.permissions().mode() & WRITABLE != 0 {
        return Some(path.to_owned());
    }
    let below = depth.checked_sub(1)?;
    fs::read_dir(path).ok()?.filter_map(Result::ok).find_map(|entry| writable_by_others(&entry.path(), below))
}

/// The daemon, and whether the bundle that was looked at is the one in force.
fn daemon(home: &Home, digest: Option<Digest>) -> Result<Check, Failure> {
    let client = Client::new(home.clone(), CredentialKind::Agent);
    let health = match runtime()?.block_on(client.health()) {
        Ok(health) => health,
        Err(ClientError::NotRunning { .. }) => {
            return Ok(not_running(home));
        }
        Err(ClientError::Credential { .. }) => {
            return Ok(Check::new("daemon", Health::Warn, "skipped: there is no agent token yet"));
        }
        Err(error) => {
            let detail = match error {
                ClientError::Timeout { seconds, .. } => format!("it did not answer within {seconds} s"),
                error => error.to_string(),
            };
            let process = fs::read_to_string(home.pid()).unwrap_or_default();
            let process = match process.trim() {
                "" => "the daemon".to_owned(),
                id => format!("the daemon, process {id},"),
            };
            let log = home.log();
            return Ok(Check::new("daemon", Health::Fail, detail)
                .remedy(format!("{} says more; end {process} to have a new one started", log.display())));
        }
    };
    let own = env!("PORTCULLIS_VERSION");
    // One that says nothing of its build is of an earlier release.
    let build = health.build.clone().unwrap_or(health.version);
    let who = format!("version {build}, process {}", health.pid);
    let serves = match &health.bundle_folder {
        Some(folder) => format!("in force: the bundle `{folder}`"),
        None => "in force: the shipped bundle".to_owned(),
    };
    let in_force = format!("{serves} ({}){}", health.bundle, in_force::other_bundles(home, health.bundle)?);
    let check = |result, detail: String| Check::new("daemon", result, format!("{who}: {detail}\n{in_force}"));
    Ok(if health.store != "ok" {
        check(Health::Fail, health.store)
    } else if health.log != "ok" {
        check(Health::Warn, health.log)
            .remedy("docs/transparency-log.md says what to do when it does not go on")
    } else if let Some(error) = health.reload_error {
        check(Health::Warn, format!("the bundle before stays in force, because {error}"))
            .remedy("mend the bundle; it is read again by itself")
    } else if !health.servers_amiss.is_empty() {
        check(Health::Warn, health.servers_amiss.join("\n")).remedy(
            "mend the server, or its `[server.NAME]` in the bundle; clients then have to open their sessions again",
        )
    } else if build != own {
        check(Health::Warn, format!("this program is version {own}"))
            .remedy("end the daemon (SIGTERM); the new version is started when needed")
    } else if digest.is_some_and(|digest| digest != health.bundle) {
        check(Health::Warn, "the bundle in force is not the one above".to_owned()).remedy(format!(
            "end the daemon (process {}) and start `portcullis serve --bundle DIR` with the one that is meant",
            health.pid
        ))
    } else {
        check(Health::Ok, count(health.runs_live, "live run", "live runs"))
    })
}

/// Whether a daemon holds the folder.
fn is_held(home: &Home) -> bool {
    fs::File::open(home.lock()).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Which bundle the daemon will serve once it is needed.
fn not_running(home: &Home) -> Check {
    if is_held(home) {
        let process = fs::read_to_string(home.pid()).unwrap_or_default();
        let detail = format!("process {} holds the folder, and its socket is gone", process.trim());
        return Check::new("daemon", Health::Fail, detail)
            .remedy(format!("end process {}; a new one is started when needed", process.trim()));
    }
    let served = match home_bundle::chosen(home) {
        Ok(Some(folder)) => format!("with the bundle `{}`", folder.display()),
        Ok(None) => "with the shipped bundle".to_owned(),
        // The check of the bundle says more.
        Err(_) => "but its bundle is not known".to_owned(),
    };
    Check::new("daemon", Health::Ok, format!("not running; it is started when needed, {served}"))
}

/// Tools that changed since a person accepted them, which no agent sees.
fn tools(home: &Home) -> Check {
    let changed = match portcullis_gateway::daemon::changed_tools(home) {
        Ok(changed) => changed,
        Err(error) => return Check::new("tools", Health::Fail, error),
    };
    if changed.is_empty() {
        return Check::new("tools", Health::Ok, "none changed since it was accepted");
    }
    let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
    for change in &changed {
        *servers.entry(&change.server).or_default() += 1;
    }
    let of = |(server, tools): (&&str, &usize)| {
        format!("{} of `{}`", count(*tools, "tool", "tools"), clean_line(server))
    };
    let shown: Vec<String> = servers.iter().take(PROBLEMS_SHOWN_MAX).map(of).collect();
    let detail =
        format!("hidden and held, because they are not as a person accepted them: {}", shown.join(", "));
    Check::new("tools", Health::Warn, detail)
        .remedy("`portcullis tools changed` shows and accepts the changes")
}

/// What is frozen. Where the store cannot be read, its own check says so.
fn freezes(home: &Home) -> Check {
    let store = home.store();
    let in_force = match store.exists() {
        true => store.reader().and_then(|reader| reader.freezes(&FreezeFilter::InForce)),
        false => Ok(Vec::new()),
    };
    let in_force = match in_force {
        Ok(in_force) if in_force.is_empty() => return Check::new("freezes", Health::Ok, "nothing is frozen"),
        Ok(in_force) => in_force,
        Err(_) => return Check::new("freezes", Health::Warn, "not known, since the store cannot be read"),
    };
    let scopes: Vec<String> =
        in_force.iter().take(PROBLEMS_SHOWN_MAX).map(|one| one.scope.to_string()).collect();
    let detail = format!(
        "{}: {}",
        count(in_force.len(), "freeze is in force", "freezes are in force"),
        scopes.join(", ")
    );
    Check::new("freezes", Health::Warn, clean_line(&detail))
        .remedy("`portcullis freeze list` says who froze and why; `portcullis freeze release` ends it")
}

/// The store, and when its last event happened.
fn store(home: &Home) -> (Vec<Check>, Option<Timestamp>) {
    let folder = home.ledger();
    if let Err(error) = mark::check_there(&home.store_mark(), &folder) {
        return (vec![Check::new("store", Health::Fail, error)], None);
    }
    if !folder.exists() {
        return (vec![Check::new("store", Health::Ok, "empty; the first run makes it")], None);
    }
    if let Err(error) = home.store().check_writable() {
        let remedy = "give this user the right to write it (chmod 600); nothing is decided while it cannot be recorded";
        return (vec![Check::new("store", Health::Fail, error).remedy(remedy)], None);
    }
    if let Err(error @ LogError::LedgerBehind { .. }) = check_standing(&home.store().log()) {
        // The message says what to do.
        return (vec![Check::new("store", Health::Fail, error)], None);
    }
    match look_into(home) {
        Ok(found) => found,
        Err(error) => {
            let check = Check::new("store", Health::Fail, error);
            (vec![check.remedy("keep a copy of the folder before anything else is tried")], None)
        }
    }
}

/// What the transparency log waits for.
fn log(home: &Home) -> Check {
    let places = home.store().log();
    let status = match LogReader::open(&places).and_then(|log| log.status()) {
        Ok(status) => status,
        Err(LogError::NoLog { .. }) => {
            return Check::new("log", Health::Ok, "none yet; the daemon makes it when it starts");
        }
        Err(error) => {
            let check = Check::new("log", Health::Fail, error);
            return check.remedy("docs/transparency-log.md says what to do when it does not go on");
        }
    };
    let leaves = count(status.size, "leaf", "leaves");
    let leaves = format!("{} in {}\n{leaves}", clean_line(&status.origin), places.public.display());
    match (status.waits, status.frozen) {
        (None, None) => Check::new("log", Health::Ok, leaves),
        (_, Some(reason)) => Check::new("log", Health::Warn, format!("{leaves}, frozen: {reason}"))
            .remedy("`portcullis log rotate` begins a new one"),
        (Some(wait), None) if wait.contradicted => {
            Check::new("log", Health::Warn, format!("{leaves}; {wait}"))
                .remedy("it must not sign any more: keep everything, and `portcullis log rotate`")
        }
        (Some(wait), None) => Check::new("log", Health::Warn, format!("{leaves}; {wait}")).remedy(
            "it goes on by itself; take witnesses that are gone for good out of `log/witnesses.policy`",
        ),
    }
}

fn look_into(home: &Home) -> Result<(Vec<Check>, Option<Timestamp>), LedgerError> {
    let reader = home.store().reader()?;
    if let Err(error) = mark::check_same(&home.store_mark(), &home.ledger(), &reader.origin()?) {
        return Ok((vec![Check::new("store", Health::Fail, error)], None));
    }
    let integrity = reader.integrity_check()?;
    if !integrity.problems.is_empty() {
        let problem = |problem: &String| Check::new("store", Health::Fail, problem);
        let mut checks: Vec<Check> =
            integrity.problems.iter().take(PROBLEMS_SHOWN_MAX).map(problem).collect();
        let remedy = "keep a copy of the folder; `portcullis export` and `verify` show which runs are sound";
        if let Some(last) = checks.pop() {
            checks.push(last.remedy(remedy));
        }
        return Ok((checks, None));
    }
    let filter = RunFilter { limit: Some(RUNS_LOOKED_AT), ..RunFilter::default() };
    let mut last = None;
    for run in reader.runs(&filter)? {
        for stored in reader.events(run.run, run.events.saturating_sub(1), 1)? {
            last = last.max(Event::from_line(&stored.line).ok().map(|event| event.t));
        }
    }
    let runs = count(integrity.runs, "run", "runs");
    let events = count(integrity.events, "event", "events");
    let detail = format!("{runs}, {events}, every link holds");
    Ok((vec![Check::new("store", Health::Ok, detail)], last))
}

fn clock(now: Timestamp, last: Option<Timestamp>) -> Check {
    let remedy = "set the clock; times in the record are what the clock says";
    if now.as_micros() < CLOCK_MIN {
        return Check::new("clock", Health::Fail, format!("{now} is in the past")).remedy(remedy);
    }
    match last {
        Some(last) if last.as_micros() > now.as_micros().saturating_add(CLOCK_SLACK) => {
            let detail = format!("{now}, but the last event is of {last}");
            Check::new("clock", Health::Fail, detail).remedy(remedy)
        }
        _ => Check::new("clock", Health::Ok, out::seconds(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_under_which_little_is_held_is_warned_of() {
        let load = |text: &str| {
            let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 1\n";
            let files = [("portcullis.toml", text), ("policies/p.toml", policy)];
            let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
            Bundle::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
        };
        let folder = tempfile::tempdir().unwrap();
        let strict = load("version = 1\n");
        assert_eq!(weaknesses(&strict, Some(folder.path())), Vec::<String>::new());
        let loose = "version = 1\nmode = 'observe'\nunknown_tools = 'allow'\ntrust_hints = true\n";
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(weaknesses(&load(loose), Some(folder.path())).len(), 4);
    }

    #[test]
    fn a_clock_is_held_against_the_calendar_and_the_record() {
        let at = Timestamp::from_micros;
        let good = CLOCK_MIN + 10 * CLOCK_SLACK;
        assert_eq!(clock(at(CLOCK_MIN - 1), None).result, Health::Fail);
        assert_eq!(clock(at(good), None).result, Health::Ok);
        assert_eq!(clock(at(good), Some(at(good + CLOCK_SLACK))).result, Health::Ok);
        assert_eq!(clock(at(good), Some(at(good + CLOCK_SLACK + 1))).result, Health::Fail);
    }
}
