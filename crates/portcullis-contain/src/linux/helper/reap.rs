//! The process that waits: signals are handed on, what is left is collected, time is held.

use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{WaitOptions, WaitStatus};

use super::background::Notice;
use super::report::{Reporter, Word};
use super::watch::{WAIT_ALL, Watcher};
use super::{FAILED, Failed, at, confine, die_with_parent, next, prepared};
use crate::linux::order::{Order, Report};
use portcullis_core::observed::{Ended, Limit};
use portcullis_core::profile::Background;

/// In the `si_code` of a signal: the kernel sent it.
const FROM_KERNEL: i32 = 0x80;
/// How often stopped processes are looked after, where there are any.
const LOOK_AFTER: Duration = Duration::from_millis(20);
/// Rounds of killing what a command left: it may start more meanwhile.
const ROUNDS_MAX: u32 = 1000;

/// What waiting came to.
#[derive(Debug)]
pub(super) enum Waited {
    Ended(Ended),
    TimeUp,
    /// The supervisor wants everything ended.
    Told,
    /// A notice can be read.
    Spoken,
}

/// Signals that are handed on to the command rather than obeyed.
const HANDED_ON: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// The signal with which the supervisor has everything ended.
pub(in crate::linux) const END: Signal = Signal::SIGALRM;

/// Has them read from a descriptor, together with the end of children.
pub(super) fn block_signals() -> Result<SignalFd, Failed> {
    let mut set = SigSet::empty();
    for signal in HANDED_ON.into_iter().chain([END, Signal::SIGCHLD, Signal::SIGTSTP]) {
        set.add(signal);
    }
    set.thread_block().map_err(at("signals"))?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(at("signals"))
}

/// The command begins with all signals unblocked, as from a shell.
pub(super) fn unblock_signals() -> Result<(), Failed> {
    SigSet::all().thread_unblock().map_err(at("signals"))
}

/// Process level: waits for the confined command, and kills what it leaves.
pub(super) fn supervise(
    order: &Order,
    command: &[OsString],
    mut notice: Notice,
    reporter: &mut Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[notice.file()]).map_err(at("descriptors"))?;
    die_with_parent(notice.file().is_none().then_some(order.supervisor))?;
    // The command is of the same user: it must not read or write this process.
    nix::sys::prctl::set_child_subreaper(true).map_err(at("subreaper"))?;
    let can_end_at_once = confine::signal_own_only(order);
    let signals = block_signals()?;
    let (child, mut watcher) = next("confine", order, command, None).map_err(at("confine"))?;
    nix::sys::prctl::set_dumpable(false).map_err(at("dumpable"))?;
    let waited = wait_for(child, &signals, deadline(order), &mut watcher, None)?;
    if let (Waited::Ended(_), Background::Keep) = (&waited, order.background) {
        let left = u64::try_from(children().len()).unwrap_or(u64::MAX);
        watcher.tell(reporter);
        let ended = conclude(waited, None, reporter);
        tell_end(ended, left, reporter);
        notice.tell(ended.code());
        outlast(order, &signals, &mut watcher)?;
        end_all(raw(child), can_end_at_once);
        return Ok(ended.code());
    }
    let (survivors, last) = end_all(raw(child), can_end_at_once);
    watcher.tell(reporter);
    let ended = conclude(waited, last, reporter);
    tell_end(ended, survivors, reporter);
    Ok(ended.code())
}

/// Waits until everything that was left running has ended, its time is over, or it is told to end.
fn outlast(order: &Order, signals: &SignalFd, watcher: &mut Watcher) -> Result<(), Failed> {
    let seconds = order.limits.background_seconds.map(Duration::from_secs);
    let until = seconds.and_then(|seconds| Instant::now().checked_add(seconds));
    loop {
        loop {
            match rustix::process::wait(WaitOptions::from_bits_retain(WAIT_ALL) | WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => watcher.changed(pid.as_raw_nonzero().get(), status),
                Ok(None) => break,
                Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(at("wait")(error)),
            }
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Ok(());
        }
        wait_for_signal(signals, until, watcher, None)?;
        while let Ok(Some(signal)) = signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
            let ends = [END, Signal::SIGTERM, Signal::SIGHUP];
            if signal.ssi_code != FROM_KERNEL && ends.iter().any(|end| *end as i32 == number) {
                return Ok(());
            }
        }
    }
}

/// Kills what is left, and what that starts meanwhile: how many there were, and how this child ended.
fn end_all(child: i32, at_once: bool) -> (u64, Option<Ended>) {
    let (mut survivors, mut last) = (0, None);
    for _ in 0..ROUNDS_MAX {
        if at_once {
            // Nothing that starts meanwhile escapes this, and nothing outside can be signalled.
            let _none = kill(Pid::from_raw(-1), Signal::SIGKILL);
        }
        let mut left = children();
        if left.is_empty() {
            break;
        }
        for pid in &left {
            let _gone = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        // Threads that are watched end one by one, and each has to be waited for.
        while !left.is_empty() {
            let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::from_bits_retain(WAIT_ALL))
            else {
                break;
            };
            let pid = pid.as_raw_nonzero().get();
            let Some(ended) = ended_of(status) else { continue };
            left.retain(|other| *other != pid);
            if pid == child {
                last = Some(ended);
            } else if ended == KILLED {
                survivors += 1;
            }
        }
    }
    (survivors, last)
}

/// Namespace level: process 1. When it leaves, the kernel kills everything else.
pub(super) fn first(
    order: &Order,
    command: &[OsString],
    word: Word,
    mut notice: Notice,
    reporter: &mut Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[word.file(), notice.file()]).map_err(at("descriptors"))?;
    die_with_parent(None)?;
    let none: Option<&str> = None;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none).map_err(at("/proc"))?;
    reporter.done("namespaces");
    let signals = block_signals()?;
    nix::sys::prctl::set_dumpable(false).map_err(at("dumpable"))?;
    // It cannot be opened later.
    let mut left = File::open("/proc/thread-self/children").map_err(at("/proc"))?;
    let has_tracer = word.wait().map_err(at("parent"))?;
    confine::confine(order, has_tracer, reporter)?;
    reporter.wait_for_gate().map_err(at("files"))?;
    // What arrives just now is lost on process 1, which has no handlers.
    unblock_signals()?;
    let started = prepared(order, command).spawn();
    block_signals()?;
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            reporter.tell(&Report::NotStarted(error.raw_os_error().unwrap_or(0)));
            return Ok(FAILED);
        }
    };
    reporter.tell(&Report::Started);
    let child = raw(child.id());
    let waited = wait_for(child.unsigned_abs(), &signals, deadline(order), &mut Watcher::none(), None)?;
    if let (Waited::Ended(_), Background::Keep) = (&waited, order.background) {
        let ended = conclude(waited, None, reporter);
        tell_end(ended, count(&mut left), reporter);
        notice.tell(ended.code());
        outlast(order, &signals, &mut Watcher::none())?;
        return Ok(ended.code());
    }
    let mut last = None;
    if !matches!(waited, Waited::Ended(_)) {
        let _gone = kill(Pid::from_raw(-1), Signal::SIGKILL);
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::empty()) {
            last = ended_of(status).filter(|_| pid.as_raw_nonzero().get() == child).or(last);
        }
    }
    let ended = conclude(waited, last, reporter);
    tell_end(ended, 0, reporter);
    Ok(ended.code())
}

const KILLED: Ended = Ended::Signal(9);

fn conclude(waited: Waited, last: Option<Ended>, reporter: &mut Reporter) -> Ended {
    match waited {
        Waited::Ended(ended) => {
            let limit = match ended.code() {
                152 => Some(Limit::Cpu),
                153 => Some(Limit::FileSize),
                _ => None,
            };
            if let Some(limit) = limit {
                reporter.tell(&Report::Reached(limit));
            }
            ended
        }
        Waited::TimeUp => {
            reporter.tell(&Report::Reached(Limit::Wall));
            last.unwrap_or(KILLED)
        }
        Waited::Told | Waited::Spoken => last.unwrap_or(KILLED),
    }
}

fn tell_end(ended: Ended, survivors: u64, reporter: &mut Reporter) {
    let time = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(0, |usage| usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds());
    let cpu_ms = u64::try_from(time).unwrap_or(0);
    reporter.tell(&Report::Ended { ended, cpu_ms, survivors });
}

fn deadline(order: &Order) -> Option<Instant> {
    order.limits.wall_seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)))
}

/// Waits for one child, collecting all, and hands signals on to it.
pub(super) fn wait_for(
    child: u32,
    signals: &SignalFd,
    until: Option<Instant>,
    watcher: &mut Watcher,
    told: Option<&PipeReader>,
) -> Result<Waited, Failed> {
    let child = raw(child);
    loop {
        while let Some((pid, status)) = changed()? {
            match ended_of(status).filter(|_| pid == child) {
                Some(ended) => return Ok(Waited::Ended(ended)),
                None => watcher.changed(pid, status),
            }
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Ok(Waited::TimeUp);
        }
        if wait_for_signal(signals, until, watcher, told)? {
            return Ok(Waited::Spoken);
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == END as u32 {
                return Ok(Waited::Told);
            }
            hand_on_to(&signal, Pid::from_raw(child));
        }
    }
}

/// Waits for a signal, and looks after what is stopped; whether there is a notice instead.
fn wait_for_signal(
    signals: &SignalFd,
    until: Option<Instant>,
    watcher: &mut Watcher,
    told: Option<&PipeReader>,
) -> Result<bool, Failed> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let soon = watcher.holds().then_some(LOOK_AFTER);
    let left = left.into_iter().chain(soon).min();
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut on = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    on.extend(told.map(|told| PollFd::from_borrowed_fd(told.as_fd(), PollFlags::IN)));
    match rustix::event::poll(&mut on, left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(at("wait")(error)),
    }
    watcher.look_after();
    Ok(on.get(1).is_some_and(|notice| !notice.revents().is_empty()))
}

/// A child or something that is watched, whose state changed; nothing where none did.
fn changed() -> Result<Option<(i32, WaitStatus)>, Failed> {
    let options = WaitOptions::from_bits_retain(WAIT_ALL) | WaitOptions::NOHANG;
    loop {
        match rustix::process::wait(options) {
            Ok(changed) => return Ok(changed.map(|(pid, status)| (pid.as_raw_nonzero().get(), status))),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(at("wait")(error)),
        }
    }
}

/// Hands a signal on, unless it came from the terminal, which has told the whole group.
pub(super) fn hand_on_to(signal: &nix::libc::signalfd_siginfo, child: Pid) {
    let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
    let Ok(name) = Signal::try_from(number) else { return };
    if signal.ssi_code != FROM_KERNEL && (name == END || HANDED_ON.contains(&name)) {
        // It may have ended meanwhile.
        let _gone = kill(child, name);
    }
}

pub(super) fn ended_of(status: WaitStatus) -> Option<Ended> {
    let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ended::Status(small(code))),
        (None, signal) => signal.map(|signal| Ended::Signal(small(signal))),
    }
}

/// The children of this process, those it was handed by others that ended included.
fn children() -> Vec<i32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// How many processes an open list of children has.
fn count(list: &mut File) -> u64 {
    let mut text = String::new();
    let read = list.read_to_string(&mut text);
    read.map_or(0, |_| u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX))
}

fn raw(pid: u32) -> i32 {
    i32::try_from(pid).unwrap_or(i32::MAX)
}
