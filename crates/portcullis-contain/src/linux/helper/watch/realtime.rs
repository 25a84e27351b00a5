//! Real-time signals. The safe calls for tracing cannot name them, so they cannot be handed back to a process that
//! stopped for one.
//!
//! A signal that can be named carries it: for a moment it has the action of the other, the process is made to send it
//! to itself, and what the stopped signal carried is put into it. The kernel then prepares the handler, and stops once
//! more before its first instruction: there the number is put right. All the while the process is stopped for others.

use std::collections::VecDeque;

use libc::{c_long, siginfo_t};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rustix::process::WaitOptions;

use super::tracee::{Processes, Registers, memory, words, write};
use super::{SYSCALL_STOP, WAIT_ALL};

/// Bytes of the kernel's own code in each process that are searched.
const CODE_MAX: usize = 16 << 10;
/// Signals that can carry another one: nothing uses the first.
const CARRIERS: [Signal; 3] = [Signal::SIGSTKFLT, Signal::SIGPWR, Signal::SIGURG];
/// Stops that come between, for other signals.
const STOPS_MAX: u32 = 256;
/// Bytes below the stack's end that are left alone: a function may use some of them.
const BELOW_STACK: u64 = 1024;
/// Bytes of a set of signals.
const SET_BYTES: u64 = 8;
/// The action is to end, or to ignore it.
const DEFAULT: u64 = 0;
const IGNORED: u64 = 1;
/// The handler is told more than the number.
const WITH_INFO: u64 = 4;

/// What a process does at a signal: handler, flags, where the handler returns to, and what is blocked meanwhile.
type Action = [u64; 4];

/// Hands it to a process that stopped for it, and lets that go on; whether it will get all that came.
pub(super) fn hand_back(processes: &Processes, pid: Pid, signal: i32) -> bool {
    let done = hand_all(processes, pid, signal);
    // It may have been killed meanwhile, or ended of it.
    let _gone = ptrace::cont(pid, None);
    done.is_some()
}

/// Hands this one, and those that come meanwhile.
fn hand_all(processes: &Processes, pid: Pid, signal: i32) -> Option<()> {
    let mut borrowed = Borrowed::begin(processes, pid)?;
    borrowed.put_off.push_back((signal, ptrace::getsiginfo(pid).ok()?));
    for _ in 0..STOPS_MAX {
        let Some((signal, info)) = borrowed.put_off.pop_front() else { return Some(()) };
        borrowed.registers = Registers::of(pid).ok()?;
        let before = borrowed.registers;
        let handed = match Signal::try_from(signal) {
            Ok(named) => borrowed.hand_named(named, info),
            Err(_) => borrowed.hand_numbered(processes, signal, info),
        };
        match handed? {
            Handed::Prepared => {}
            Handed::Ends => return Some(()),
            Handed::Ignored => before.put(pid).ok()?,
        }
    }
    None
}

/// What became of a signal.
enum Handed {
    /// The handler is what comes next.
    Prepared,
    /// The process ends of it.
    Ends,
    Ignored,
}

/// A stopped process that is made to make calls.
struct Borrowed {
    pid: Pid,
    /// Its own numbers for its group and itself.
    group: u64,
    thread: u64,
    /// Where it finds an instruction that makes a call.
    at: u64,
    registers: Registers,
    /// Signals that came meanwhile, with what they carry.
    put_off: VecDeque<(i32, siginfo_t)>,
}

impl Borrowed {
    fn begin(processes: &Processes, pid: Pid) -> Option<Self> {
        let registers = Registers::of(pid).ok()?;
        let own = |field| processes.status(pid, field)?.split_whitespace().last()?.parse::<u64>().ok();
        let (group, thread) = (own("NStgid")?, own("NSpid")?);
        let at = call_instruction(processes, pid)?;
        Some(Self { pid, group, thread, at, registers, put_off: VecDeque::new() })
    }

    fn hand_named(&mut self, signal: Signal, info: siginfo_t) -> Option<Handed> {
        let before = self.registers;
        self.call(libc::SYS_tgkill, [self.group, self.thread, signal as u64, 0])?;
        before.put(self.pid).ok()?;
        self.advance_to_signal(signal)?;
        ptrace::setsiginfo(self.pid, &info).ok()?;
        ptrace::step(self.pid, signal).ok()?;
        (self.wait()? == (libc::SIGTRAP, 0)).then_some(Handed::Prepared)
    }

    fn hand_numbered(&mut self, processes: &Processes, signal: i32, mut info: siginfo_t) -> Option<Handed> {
        let (before, number) = (self.registers, u64::try_from(signal).ok()?);
        let [handler, flags, restorer, mask] = self.action(number)?;
        match handler {
            IGNORED => return Some(Handed::Ignored),
            DEFAULT => return self.end_of(number, before).map(|()| Handed::Ends),
            _ => {}
        }
        let blocked = u64::from_str_radix(&processes.status(self.pid, "SigBlk")?, 16).ok()?;
        let carrier = CARRIERS.into_iter().find(|carrier| blocked & bit(*carrier as u64) == 0)?;
        let former = self.action(carrier as u64)?;
        self.set_action(carrier as u64, [handler, flags, restorer, mask | bit(number)])?;
        info.si_signo = carrier as i32;
        self.registers = before;
        self.hand_named(carrier, info)?;
        let at_handler = Registers::of(self.pid).ok()?.with_first(number);
        if flags & WITH_INFO != 0 {
            let place = at_handler.argument(1);
            let [word] = words::<1>(self.pid, place)?;
            let [.., a, b, c, d] = word.to_ne_bytes();
            let [e, f, g, h] = signal.to_ne_bytes();
            write(self.pid, place, &[u64::from_ne_bytes([e, f, g, h, a, b, c, d])])?;
        }
        self.registers = at_handler;
        let restored = self.set_action(carrier as u64, former);
        at_handler.put(self.pid).ok()?;
        restored.map(|()| Handed::Prepared)
    }

    /// Nothing handles it: the process is let go, and ends of it.
    fn end_of(&mut self, number: u64, before: Registers) -> Option<()> {
        self.call(libc::SYS_tgkill, [self.group, self.thread, number, 0])?;
        before.put(self.pid).ok()?;
        ptrace::detach(self.pid, None).ok()
    }

    fn action(&mut self, signal: u64) -> Option<Action> {
        let place = self.place();
        self.call(libc::SYS_rt_sigaction, [signal, 0, place, SET_BYTES])?;
        words(self.pid, place)
    }

    fn set_action(&mut self, signal: u64, action: Action) -> Option<()> {
        let place = self.place();
        write(self.pid, place, &action)?;
        self.call(libc::SYS_rt_sigaction, [signal, place, 0, SET_BYTES])
    }

    /// Memory of the process that nothing uses.
    fn place(&self) -> u64 {
        self.registers.stack().saturating_sub(BELOW_STACK) & !0xf
    }

    /// Makes a call that has to succeed.
    fn call(&mut self, number: c_long, arguments: [u64; 4]) -> Option<()> {
        let call = self.registers.with_call(self.at, u64::try_from(number).ok()?, arguments);
        call.put(self.pid).ok()?;
        for _ in 0..2 {
            self.advance_to_call()?;
        }
        (Registers::of(self.pid).ok()?.result() == 0).then_some(())
    }

    /// Lets it run to the next begin or end of a call.
    fn advance_to_call(&mut self) -> Option<()> {
        for _ in 0..STOPS_MAX {
            ptrace::syscall(self.pid, None).ok()?;
            match self.wait()? {
                (SYSCALL_STOP, 0) => return Some(()),
                (signal, 0) => self.put_off.push_back((signal, ptrace::getsiginfo(self.pid).ok()?)),
                _ => {}
            }
        }
        None
    }

    /// Lets it run to where it gets this signal.
    fn advance_to_signal(&mut self, wanted: Signal) -> Option<()> {
        for _ in 0..STOPS_MAX {
            ptrace::cont(self.pid, None).ok()?;
            match self.wait()? {
                (signal, 0) if signal == wanted as i32 => return Some(()),
                (signal, 0) => self.put_off.push_back((signal, ptrace::getsiginfo(self.pid).ok()?)),
                _ => {}
            }
        }
        None
    }

    /// The next stop: its signal and event.
    fn wait(&self) -> Option<(i32, i32)> {
        let pid = rustix::process::Pid::from_raw(self.pid.as_raw())?;
        let options = WaitOptions::from_bits_retain(WAIT_ALL);
        let (_, status) = rustix::process::waitpid(Some(pid), options).ok()??;
        Some((status.stopping_signal()?, status.as_raw() >> 16))
    }
}

/// A signal in a set of them.
fn bit(signal: u64) -> u64 {
    1_u64.checked_shl(u32::try_from(signal).unwrap_or(0).saturating_sub(1)).unwrap_or(0)
}

/// Where the code that the kernel put into the process makes a call.
fn call_instruction(processes: &Processes, pid: Pid) -> Option<u64> {
    let maps = processes.text(pid, "maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let mut ends = line.split(['-', ' ']).map(|end| u64::from_str_radix(end, 16).ok());
    let (begin, end) = (ends.next()??, ends.next()??);
    let mut code = vec![0; usize::try_from(end.checked_sub(begin)?).ok()?.min(CODE_MAX)];
    let length = memory(pid, begin, &mut code)?;
    let code = code.get(..length)?;
    let mut places = code.windows(Registers::CALL.len()).enumerate();
    let fits = |place: usize| place.is_multiple_of(Registers::CALL_ALIGNED);
    let (place, _) = places.find(|(place, bytes)| fits(*place) && *bytes == Registers::CALL)?;
    begin.checked_add(u64::try_from(place).ok()?)
}
