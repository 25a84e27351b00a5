//! Real-time signals. The safe calls for tracing cannot name them, so they cannot be handed back to a process that
//! stopped for one.
//!
//! The process sends it to itself once more, in a call that it is made to make; before it goes on from that call it is
//! let go, gets the signal as if nobody watched it, and is taken up again. What a signal carried besides its number is
//! lost. Between letting go and taking up, which is a few microseconds, it is not watched.

use libc::c_long;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use rustix::process::WaitOptions;

use super::tracee::{Processes, Registers, memory};
use super::{SYSCALL_STOP, WAIT_ALL, options};

/// Bytes of the kernel's own code in each process that are searched.
const CODE_MAX: usize = 16 << 10;

/// Hands it to a process that stopped for it; whether it will get it.
pub(super) fn hand_back(processes: &Processes, pid: Pid, signal: i32) -> bool {
    if send_again(processes, pid, signal).is_none() || ptrace::detach(pid, None).is_err() {
        return false;
    }
    // It may have ended of it.
    matches!(ptrace::seize(pid, options()), Ok(()) | Err(Errno::ESRCH | Errno::EPERM))
}

fn send_again(processes: &Processes, pid: Pid, signal: i32) -> Option<()> {
    let own = |field| processes.status(pid, field)?.split_whitespace().last()?.parse::<u64>().ok();
    let (group, thread) = (own("NStgid")?, own("NSpid")?);
    let at = call_instruction(processes, pid)?;
    let before = Registers::of(pid).ok()?;
    let number = u64::try_from(libc::SYS_tgkill as c_long).ok()?;
    let call = before.with_call(at, number, [group, thread, u64::try_from(signal).ok()?]);
    call.put(pid).ok()?;
    let made = (0..2).all(|_| to_call(pid).is_some());
    before.put(pid).ok()?;
    made.then_some(())
}

/// Lets it run to the next begin or end of a call.
fn to_call(pid: Pid) -> Option<()> {
    ptrace::syscall(pid, None).ok()?;
    let raw = rustix::process::Pid::from_raw(pid.as_raw())?;
    let options = WaitOptions::from_bits_retain(WAIT_ALL);
    let (_, status) = rustix::process::waitpid(Some(raw), options).ok()??;
    (status.stopping_signal() == Some(SYSCALL_STOP)).then_some(())
}

/// Where the code that the kernel put into the process makes a call.
fn call_instruction(processes: &Processes, pid: Pid) -> Option<u64> {
    let maps = processes.text(pid, "maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let begin = u64::from_str_radix(line.split('-').next()?, 16).ok()?;
    let mut code = vec![0; CODE_MAX];
    // It is shorter: what is read is what is there.
    let end = u64::from_str_radix(line.split(['-', ' ']).nth(1)?, 16).ok()?;
    code.truncate(usize::try_from(end.checked_sub(begin)?).ok()?);
    let length = memory(pid, begin, &mut code)?;
    let code = code.get(..length)?;
    let mut places = code.windows(Registers::CALL.len()).enumerate();
    let fits = |place: usize| place.is_multiple_of(Registers::CALL_ALIGNED);
    let (place, _) = places.find(|(place, bytes)| fits(*place) && *bytes == Registers::CALL)?;
    begin.checked_add(u64::try_from(place).ok()?)
}
