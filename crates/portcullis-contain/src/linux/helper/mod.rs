//! The helper: a process that gives up its powers in stages, and then starts the command.
//!
//! `portcullis-contain STAGE ORDER -- PROGRAM ARGUMENTS`. At the process level `supervise` waits for `confine`, which
//! gives up everything and becomes the command. At the namespace level `enter` makes the namespaces and their mounts,
//! and waits for `first`, which is process 1 in them, gives up the rest, starts the command and collects what it
//! leaves. Each stage is a new execution of this program, since a process cannot fork here without `unsafe` code.

mod background;
mod confine;
mod enter;
mod filter;
mod mounts;
mod proxy;
pub(super) mod reap;
mod report;
mod watch;

use std::ffi::OsString;
use std::io::{self, PipeWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use nix::sys::signal::Signal;

use super::order::{Order, PROTOCOL, Report};
use background::Notice;
use portcullis_core::profile::Background;
use report::{Reporter, Word, hand_on};
use watch::Watcher;

/// The command line is not one of ours.
const USAGE: u8 = 64;
/// A step failed: the report says which.
const FAILED: u8 = 125;

/// Why a stage gives up: the step, and what it answered.
#[derive(Debug)]
struct Failed {
    step: &'static str,
    why: String,
}

/// Names the step that an error belongs to.
fn at<E: std::fmt::Display>(step: &'static str) -> impl Fn(E) -> Failed {
    move |error| Failed { step, why: error.to_string() }
}

/// Runs one stage.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().skip(1).collect();
    let [stage, order, dashes, command @ ..] = arguments.as_slice() else { return ExitCode::from(USAGE) };
    let order: Option<Order> = order.to_str().and_then(|text| serde_json::from_str(text).ok());
    let (Some(stage), Some(order)) = (stage.to_str(), order) else { return ExitCode::from(USAGE) };
    if dashes != "--" || command.is_empty() || order.protocol != PROTOCOL {
        return ExitCode::from(USAGE);
    }
    let mut words = stage.split(':');
    let stage = words.next().unwrap_or_default();
    let numbers: Vec<i32> = words.filter_map(|word| word.parse().ok()).collect();
    match run_stage(stage, &numbers, &order, command) {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::from(USAGE),
    }
}

/// Runs a stage with the descriptors that it inherited.
fn run_stage(stage: &str, numbers: &[i32], order: &Order, command: &[OsString]) -> io::Result<u8> {
    let (reporter, numbers) = match (stage, numbers) {
        ("first", [report, others @ ..]) => (Reporter::at_descriptor(*report), others),
        _ => (Reporter::at_path(&order.report), numbers),
    };
    let mut reporter = reporter?;
    let keeps = order.background == Background::Keep;
    let done = match (stage, numbers) {
        ("supervise" | "enter", []) if keeps => background::front(order, stage, command, &reporter),
        ("keeper-supervise" | "keeper-enter", [notice]) => {
            let notice = Notice::at_descriptor(*notice)?;
            background::keeper(order, stage.trim_start_matches("keeper-"), command, notice, &reporter)
        }
        ("supervise" | "enter", notice @ ([] | [_])) => {
            let notice = notice.first().copied().map_or(Ok(Notice::none()), Notice::at_descriptor)?;
            let run = if stage == "enter" { enter::enter } else { reap::supervise };
            run(order, command, notice, &mut reporter)
        }
        ("confine", [word]) => become_command(order, command, Word::at_descriptor(*word)?, &mut reporter),
        ("first", [word, notice @ ..]) => {
            let word = Word::at_descriptor(*word)?;
            let notice = notice.first().copied().map_or(Ok(Notice::none()), Notice::at_descriptor)?;
            reap::first(order, command, word, notice, &mut reporter)
        }
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    Ok(done.unwrap_or_else(|Failed { step, why }| {
        reporter.tell(&Report::Failed(step.to_owned(), why));
        FAILED
    }))
}

/// Gives up everything, and becomes the command.
fn become_command(
    order: &Order,
    command: &[OsString],
    word: Word,
    reporter: &mut Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[word.file()]).map_err(at("descriptors"))?;
    die_with_parent(None)?;
    let has_tracer = word.wait().map_err(at("parent"))?;
    confine::confine(order, has_tracer, reporter)?;
    reporter.wait_for_gate().map_err(at("files"))?;
    reporter.tell(&Report::Started);
    reap::unblock_signals()?;
    let error = prepared(order, command).exec();
    reporter.tell(&Report::NotStarted(error.raw_os_error().unwrap_or(0)));
    Ok(FAILED)
}

/// The command, with the variables that only it may see.
fn prepared(order: &Order, command: &[OsString]) -> Command {
    let mut words = command.iter();
    let mut prepared = Command::new(words.next().cloned().unwrap_or_default());
    prepared.args(words).envs(order.late.iter().map(|(name, value)| (name, value)));
    prepared
}

/// Another stage of this program, with the same order.
fn stage(stage: &str, command: &[OsString]) -> Command {
    let order = std::env::args_os().nth(2).unwrap_or_default();
    let mut next = Command::new("/proc/self/exe");
    next.arg0("portcullis-contain").arg(stage).arg(order).arg("--").args(command);
    next
}

/// Starts the next stage, and watches it where that can be done. `notice`: where it tells that the command has ended.
fn next(
    name: &str,
    order: &Order,
    command: &[OsString],
    notice: Option<PipeWriter>,
) -> io::Result<(u32, Watcher)> {
    let (word, mut told) = io::pipe()?;
    let mut name = format!("{name}:{}", hand_on(&word)?);
    if let Some(notice) = &notice {
        name = format!("{name}:{}", hand_on(notice)?);
    }
    let prepared = Watcher::prepare(order);
    let child = stage(&name, command).spawn()?.id();
    let watcher = Watcher::begin(order, prepared, child);
    // Where it is gone already, that is seen when it is waited for.
    let _gone = told.write_all(Word::of(watcher.is_watching()));
    Ok((child, watcher))
}

/// Has this process killed when its parent dies. `parent` is the process that should be it.
fn die_with_parent(parent: Option<u32>) -> Result<(), Failed> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(at("parent"))?;
    let now = std::os::unix::process::parent_id();
    match parent {
        Some(parent) if parent != now => Err(at("parent")("the supervisor is gone")),
        _ => Ok(()),
    }
}
