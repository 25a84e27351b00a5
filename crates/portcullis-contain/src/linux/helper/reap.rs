//! The process that waits: signals are handed on, what is left is collected, time is held.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike as _;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::report::Reporter;
use super::{FAILED, Failed, at, confine, die_with_parent, next, prepared};
use crate::linux::order::{Order, Report};
use portcullis_core::observed::{Ended, Limit};

/// Rounds of killing what a command left: it may start more meanwhile.
const ROUNDS_MAX: u32 = 1000;

/// What waiting came to.
#[derive(Debug)]
pub(super) enum Waited {
    Ended(Ended),
    TimeUp,
    /// The supervisor wants everything ended.
    Told,
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
pub(super) fn supervise(order: &Order, command: &[OsString], reporter: &mut Reporter) -> Result<u8, Failed> {
    reporter.close_others().map_err(at("descriptors"))?;
    die_with_parent(Some(order.supervisor))?;
    // The command is of the same user: it must not read or write this process.
    nix::sys::prctl::set_child_subreaper(true).map_err(at("subreaper"))?;
    let signals = block_signals()?;
    let child = next("confine", command)?.spawn().map_err(at("confine"))?;
    nix::sys::prctl::set_dumpable(false).map_err(at("dumpable"))?;
    let waited = wait_for(child.id(), &signals, deadline(order))?;
    let (mut survivors, mut last) = (0, None);
    for _ in 0..ROUNDS_MAX {
        let left = children();
        if left.is_empty() {
            break;
        }
        for pid in left {
            let _gone = kill(pid, Signal::SIGKILL);
            match waitpid(pid, None) {
                Ok(status) if pid.as_raw() == raw(child.id()) => last = ended_of(status),
                Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _)) => survivors += 1,
                _ => {}
            }
        }
    }
    let ended = conclude(waited, last, reporter);
    tell_end(ended, survivors, reporter);
    Ok(ended.code())
}

/// Namespace level: process 1. When it leaves, the kernel kills everything else.
pub(super) fn first(order: &Order, command: &[OsString], reporter: &mut Reporter) -> Result<u8, Failed> {
    reporter.close_others().map_err(at("descriptors"))?;
    die_with_parent(None)?;
    let none: Option<&str> = None;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none).map_err(at("/proc"))?;
    reporter.done("namespaces");
    let signals = block_signals()?;
    nix::sys::prctl::set_dumpable(false).map_err(at("dumpable"))?;
    confine::confine(order, reporter)?;
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
    let waited = wait_for(child.id(), &signals, deadline(order))?;
    let mut last = None;
    if !matches!(waited, Waited::Ended(_)) {
        let _gone = kill(Pid::from_raw(-1), Signal::SIGKILL);
        while let Ok(status) = waitpid(Pid::from_raw(-1), None) {
            last = ended_of(status).filter(|_| status.pid() == Some(Pid::from_raw(raw(child.id())))).or(last);
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
        Waited::Told => last.unwrap_or(KILLED),
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
pub(super) fn wait_for(child: u32, signals: &SignalFd, until: Option<Instant>) -> Result<Waited, Failed> {
    let child = Pid::from_raw(raw(child));
    loop {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(status) if status.pid() == Some(child) => {
                    if let Some(ended) = ended_of(status) {
                        return Ok(Waited::Ended(ended));
                    }
                }
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(at("wait")(error)),
            }
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Waited::TimeUp);
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut on = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut on, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(at("wait")(error)),
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo == END as u32 {
                return Ok(Waited::Told);
            }
            hand_on(&signal, child);
        }
    }
}

/// Hands a signal on, unless it came from the terminal, which has told the whole group.
fn hand_on(signal: &nix::libc::signalfd_siginfo, child: Pid) {
    /// Sent by the kernel.
    const FROM_KERNEL: i32 = 0x80;
    let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
    let Ok(name) = Signal::try_from(number) else { return };
    if signal.ssi_code != FROM_KERNEL && HANDED_ON.contains(&name) {
        // It may have ended meanwhile.
        let _gone = kill(child, name);
    }
}

fn ended_of(status: WaitStatus) -> Option<Ended> {
    match status {
        WaitStatus::Exited(_, code) => Some(Ended::Status(u8::try_from(code).unwrap_or(u8::MAX))),
        WaitStatus::Signaled(_, signal, _) => {
            Some(Ended::Signal(u8::try_from(signal as i32).unwrap_or(u8::MAX)))
        }
        _ => None,
    }
}

/// The children of this process, those it was handed by others that ended included.
fn children() -> Vec<Pid> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect()
}

fn raw(pid: u32) -> i32 {
    i32::try_from(pid).unwrap_or(i32::MAX)
}
