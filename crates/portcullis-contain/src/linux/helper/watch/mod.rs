//! A witness of what the command does: programs that are started, and what is refused.
//!
//! The process that waits traces the command and everything that it starts. It is told of each start, of the calls
//! that [`calls`] names, and of each signal, and lets the process go on. It holds nothing: the kernel does. Where
//! tracing is not to be had, nothing is seen, and the command runs as it would otherwise.

pub(super) mod calls;
mod realtime;
mod seen;
mod tracee;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use libc::c_int;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use portcullis_core::observed::AttemptWhat;
use portcullis_core::profile::{Level, Watch};
use rustix::process::WaitStatus;

use super::report::Reporter;
use super::{confine, filter};
use crate::linux::order::Order;
use calls::Operand;
use seen::Sights;
use tracee::{Processes, Registers, address_at, memory};

/// Waits for threads too, not only for processes.
pub(super) const WAIT_ALL: u32 = libc::__WALL.cast_unsigned();
/// The stop at the begin or end of a system call.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// A signal from the filter, in its `si_code`.
const FROM_FILTER: i32 = 1;
/// The first signal that is numbered and not named.
const REALTIME: i32 = 32;
/// `SIGCONT` in a set of signals.
const SIGCONT_BIT: u64 = 1 << (libc::SIGCONT - 1);

fn options() -> Options {
    Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_EXITKILL
}

/// Watches, or does not.
#[derive(Debug)]
pub(super) struct Watcher(Option<Watching>);

#[derive(Debug)]
struct Watching {
    processes: Processes,
    watch: Watch,
    roots: Roots,
    /// Nothing any more when it was told.
    sights: Option<Sights>,
    /// Calls whose end is waited for.
    pending: HashMap<i32, Pending>,
    /// Stopped by job control, until somebody lets them go on.
    held: HashSet<i32>,
    /// This program, until one was started: its own next stage is not the command's doing.
    own: Option<PathBuf>,
}

/// A call that was begun.
#[derive(Debug)]
enum Pending {
    /// It does this with these.
    Does(AttemptWhat, Vec<String>),
    /// It takes memory.
    TakesMemory,
}

/// Where the order lets files be written and programs be executed.
#[derive(Debug)]
struct Roots {
    write: Vec<PathBuf>,
    shut: Vec<PathBuf>,
    execute: Vec<PathBuf>,
    read: Vec<PathBuf>,
}

impl Roots {
    fn of(order: &Order) -> Self {
        let mut write = order.write.clone();
        let devices = confine::DEVICES.iter().map(PathBuf::from);
        if order.level == Level::Namespace {
            write.extend(["/tmp", "/dev/shm"].map(PathBuf::from));
        } else {
            write.push(order.temporary.clone());
        }
        let execute: Vec<PathBuf> =
            order.execute.iter().chain([&order.temporary]).cloned().chain([PathBuf::from("/tmp")]).collect();
        let read = order.read.iter().chain(&order.write).chain(&execute).cloned().collect();
        write.extend(devices);
        Self { write, shut: order.shut.clone(), execute, read }
    }

    /// Whether this is what the profile lets be done there; then a refusal is not the profile's.
    fn permit(&self, what: AttemptWhat, path: &Path) -> bool {
        let below = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        match what {
            AttemptWhat::Write => below(&self.write) && !below(&self.shut),
            AttemptWhat::Execute => below(&self.execute),
            AttemptWhat::Read => below(&self.read) || below(&self.write),
            AttemptWhat::Connect | AttemptWhat::Call => false,
        }
    }
}

impl Watcher {
    /// Watches nothing.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// What is needed to watch a child, before it is started: it may hide the list of processes. Nothing where the
    /// order says not to.
    pub(super) fn prepare(order: &Order) -> Option<Processes> {
        if order.watch == Watch::Nothing { None } else { Processes::open().ok() }
    }

    /// Begins to watch a child, unless it cannot be done here.
    pub(super) fn begin(order: &Order, prepared: Option<Processes>, child: u32) -> Self {
        let child = Pid::from_raw(i32::try_from(child).unwrap_or(i32::MAX));
        let Some(processes) = prepared.filter(|_| ptrace::seize(child, options()).is_ok()) else {
            return Self(None);
        };
        Self(Some(Watching {
            processes,
            watch: order.watch,
            roots: Roots::of(order),
            sights: Some(Sights::default()),
            pending: HashMap::new(),
            held: HashSet::new(),
            own: std::env::current_exe().ok(),
        }))
    }

    /// Whether it watches.
    pub(super) fn is_watching(&self) -> bool {
        self.0.is_some()
    }

    /// A process changed its state.
    pub(super) fn changed(&mut self, pid: i32, status: WaitStatus) {
        let Some(watching) = &mut self.0 else { return };
        match status.stopping_signal() {
            Some(signal) => watching.stopped(Pid::from_raw(pid), signal, status.as_raw() >> 16),
            None => watching.forget(pid),
        }
    }

    /// Whether a stopped process has to be looked after from time to time.
    pub(super) fn holds(&self) -> bool {
        self.0.as_ref().is_some_and(|watching| !watching.held.is_empty())
    }

    /// Lets those go on that were told to. Tracing with safe calls cannot wait for that: it is looked for.
    pub(super) fn look_after(&mut self) {
        if let Some(watching) = &mut self.0 {
            watching.release();
        }
    }

    /// Tells what was seen. It is told once: what goes on afterwards is watched, and not told.
    pub(super) fn tell(&mut self, reporter: &mut Reporter) {
        if let Some(watching) = &mut self.0
            && let Some(sights) = watching.sights.take()
        {
            sights.tell(watching.watch == Watch::All, reporter);
        }
    }
}

impl Watching {
    fn see(&mut self, what: impl FnOnce(&mut Sights)) {
        if let Some(sights) = &mut self.sights {
            what(sights);
        }
    }

    fn forget(&mut self, pid: i32) {
        self.pending.remove(&pid);
        self.held.remove(&pid);
    }

    fn stopped(&mut self, pid: Pid, signal: i32, event: i32) {
        match event {
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            libc::PTRACE_EVENT_SECCOMP => return self.begun(pid),
            libc::PTRACE_EVENT_STOP if stops(signal) => {
                self.held.insert(pid.as_raw());
                return;
            }
            0 if signal == SYSCALL_STOP => self.ended(pid),
            0 if signal == libc::SIGSYS && self.refused_by_filter(pid) => {}
            0 if signal >= REALTIME => {
                if !realtime::hand_back(&self.processes, pid, signal) {
                    self.see(Sights::missed);
                }
                return;
            }
            0 => {
                // It may have been killed meanwhile.
                let _gone = ptrace::cont(pid, Signal::try_from(signal).ok());
                return;
            }
            _ => {}
        }
        go_on(pid);
    }

    /// A program was started.
    fn executed(&mut self, pid: Pid) {
        // Another thread than the first may have done it; it has the first one's number now.
        let former = ptrace::getevent(pid).ok().and_then(|former| i32::try_from(former).ok());
        let begun = former.and_then(|former| self.pending.remove(&former));
        self.forget(pid.as_raw());
        let Some(program) = self.processes.link(pid, "exe") else { return self.see(Sights::missed) };
        if self.own.take().is_some_and(|own| own == program) {
            return;
        }
        // A script is executed by another program: both are told.
        let script = begun.and_then(|begun| match begun {
            Pending::Does(_, targets) => targets.into_iter().next(),
            Pending::TakesMemory => None,
        });
        let script = script.and_then(|script| Path::new(&script).canonicalize().ok());
        if let Some(script) = script.filter(|script| *script != program) {
            self.see(|sights| sights.program(shown(&script)));
        }
        self.see(|sights| sights.program(shown(&program)));
    }

    /// A call is about to be made.
    fn begun(&mut self, pid: Pid) {
        let pending = Registers::of(pid).ok().and_then(|registers| self.pending_call(pid, &registers));
        let told = match pending {
            Some(pending) => {
                let ends = self.waits_for_end(&pending);
                self.pending.insert(pid.as_raw(), pending);
                if ends { ptrace::syscall(pid, None) } else { ptrace::cont(pid, None) }
            }
            None => ptrace::cont(pid, None),
        };
        // It may have been killed meanwhile.
        let _gone = told;
    }

    /// Whether the end of a call says more than its begin. That a program was started is told by itself, and that it
    /// was refused is of interest only where the profile does not let it be executed. Shells and `env` try each folder
    /// of `PATH`, so most of these calls fail.
    fn waits_for_end(&self, pending: &Pending) -> bool {
        match pending {
            Pending::Does(AttemptWhat::Execute, targets) if self.watch != Watch::All => {
                targets.iter().any(|target| !self.roots.permit(AttemptWhat::Execute, Path::new(target)))
            }
            _ => true,
        }
    }

    /// What is to be remembered of a call until it has been made; nothing where that is not of interest.
    fn pending_call(&self, pid: Pid, registers: &Registers) -> Option<Pending> {
        if calls::takes_memory(registers.call()) {
            return Some(Pending::TakesMemory);
        }
        let looked = calls::looked(registers.call())?;
        let mut what = looked.what;
        if let Some(index) = looked.flags() {
            what = if calls::writes(registers.argument(index)) { what } else { AttemptWhat::Read };
        } else if registers.call() == libc::SYS_openat2 {
            let mut flags = [0; 8];
            memory(pid, registers.argument(2), &mut flags)?;
            what = if calls::writes(u64::from_ne_bytes(flags)) { what } else { AttemptWhat::Read };
        }
        if what == AttemptWhat::Read && self.watch != Watch::All {
            return None;
        }
        let mut targets = Vec::new();
        for operand in looked.operands {
            let path = match *operand {
                Operand::Address(at, length) => {
                    targets.extend(address_at(pid, registers.argument(at), registers.argument(length)));
                    continue;
                }
                Operand::Path(at) => self.processes.path(pid, None, registers.argument(at)),
                Operand::At(folder, at) => {
                    self.processes.path(pid, Some(registers.argument(folder)), registers.argument(at))
                }
                Operand::Open(number) => self.processes.open_file(pid, registers.argument(number)),
            };
            targets.extend(path.as_deref().map(shown));
        }
        let is_interesting = |target: &String| !self.roots.permit(what, Path::new(target));
        let is_worth_it =
            self.watch == Watch::All || what == AttemptWhat::Execute || targets.iter().any(is_interesting);
        is_worth_it.then_some(Pending::Does(what, targets))
    }

    /// A call was made.
    fn ended(&mut self, pid: Pid) {
        let Some(pending) = self.pending.remove(&pid.as_raw()) else { return };
        let Ok(registers) = Registers::of(pid) else { return };
        let Pending::Does(what, targets) = pending else {
            if registers.result() == i64::from(libc::ENOMEM).saturating_neg() {
                self.see(Sights::lacks_memory);
            }
            return;
        };
        let is_refused = refuses(what, registers.result());
        for target in targets {
            if is_refused && !self.roots.permit(what, Path::new(&target)) {
                self.see(|sights| sights.refused(what, target));
            } else if is_done(registers.result()) && self.watch == Watch::All {
                self.see(|sights| sights.done(what, target));
            }
        }
    }

    /// The filter refused a call, and said so with a signal that only a tracer gets. The process sees an error.
    fn refused_by_filter(&mut self, pid: Pid) -> bool {
        let Ok(info) = ptrace::getsiginfo(pid) else { return false };
        let Ok(registers) = Registers::of(pid) else { return false };
        if info.si_code != FROM_FILTER {
            return false;
        }
        let name = filter::name(registers.call());
        let target = match registers.call() {
            call if call == libc::SYS_socket || call == libc::SYS_socketpair => {
                format!("{name} {}", calls::family(registers.argument(0)))
            }
            _ => name,
        };
        self.see(|sights| sights.refused(AttemptWhat::Call, target));
        let error = i64::from(info.si_errno).saturating_neg();
        registers.with_result(error).put(pid).is_ok()
    }

    /// Lets those go on that were told to continue.
    fn release(&mut self) {
        let mut groups = HashSet::new();
        for pid in &self.held {
            let pid = Pid::from_raw(*pid);
            let is_told = |field| {
                let pending = self.processes.status(pid, field).unwrap_or_default();
                u64::from_str_radix(&pending, 16).is_ok_and(|pending| pending & SIGCONT_BIT != 0)
            };
            if is_told("SigPnd") || is_told("ShdPnd") {
                groups.extend(self.processes.status(pid, "Tgid"));
            }
        }
        if groups.is_empty() {
            return;
        }
        let processes = &self.processes;
        self.held.retain(|pid| {
            let pid = Pid::from_raw(*pid);
            let is_held = processes.status(pid, "Tgid").is_some_and(|group| !groups.contains(&group));
            if !is_held {
                go_on(pid);
            }
            is_held
        });
    }
}

/// Lets a process go on.
fn go_on(pid: Pid) {
    // It may have been killed meanwhile.
    let _gone = ptrace::cont(pid, None);
}

/// Whether a signal stops a process until it is told to continue.
fn stops(signal: i32) -> bool {
    [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}

/// Whether a result says that something is not permitted.
fn refuses(what: AttemptWhat, result: i64) -> bool {
    let refused: &[c_int] = match what {
        AttemptWhat::Connect => &[libc::EACCES, libc::EPERM, libc::ENETUNREACH],
        // What may be renamed or linked within one folder only.
        AttemptWhat::Write => &[libc::EACCES, libc::EPERM, libc::EROFS, libc::EXDEV],
        _ => &[libc::EACCES, libc::EPERM],
    };
    refused.iter().any(|error| i64::from(*error).saturating_neg() == result)
}

/// Whether a result says that it was done; a connection may still be on its way.
fn is_done(result: i64) -> bool {
    result >= 0 || result == i64::from(libc::EINPROGRESS).saturating_neg()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
