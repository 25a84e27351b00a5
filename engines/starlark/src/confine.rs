//! What the process gives up before it reads the first program. Each of these is required: without one there is no worker.

use std::collections::BTreeMap;

use libc::c_long;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Address space beyond that of an idle worker, in bytes. Some of what an idle worker has is not in memory until it is used;
/// with that, a worker stays within 64 MiB of an idle one.
const MEMORY_BYTES: u64 = 50 << 20;
/// Processor time from one check to the end of the next, in seconds: the gate ends a worker long before.
const CPU_SECONDS: u64 = 2;

/// The only calls that are left. Any other ends the process: a file, a socket or another process is not to be had.
const CALLS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ppoll,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    // Of itself: see `more_time`.
    libc::SYS_prlimit64,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The last descriptor that a worker keeps.
const STANDARD: i32 = 2;
/// As many as it keeps. With less, it could not wait for one of them.
const DESCRIPTORS: u64 = 3;

/// Gives up everything but memory, processor time and the three descriptors it was started with.
pub(crate) fn confine() -> Result<(), String> {
    let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
    // Both are read from files.
    let most = address_space()?.saturating_add(MEMORY_BYTES);
    close_others().map_err(told("descriptors"))?;
    rustix::thread::set_no_new_privs(true).map_err(told("privileges"))?;
    for (resource, most) in
        [(Resource::Core, 0), (Resource::Fsize, 0), (Resource::Nofile, DESCRIPTORS), (Resource::Nproc, 0)]
    {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(told("limits"))?;
    }
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) }).map_err(told("memory"))?;
    more_time();
    seccompiler::apply_filter_all_threads(&filter()?).map_err(|error| format!("system calls: {error}"))
}

/// Lets the process use the processor for two seconds more. A worker lives for days, so the limit moves along; one whose
/// gate is gone ends by it.
pub(crate) fn more_time() {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let maximum = getrlimit(Resource::Cpu).maximum;
    let limit = Rlimit { current: Some(used.saturating_add(CPU_SECONDS)), maximum };
    let _as_it_was = setrlimit(Resource::Cpu, limit);
}

fn close_others() -> rustix::io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd").map_err(|_| rustix::io::Errno::NOENT)?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > STANDARD).collect::<Vec<i32>>() {
        // The one that listed the folder is closed by now.
        let _closed = nix::unistd::close(number);
    }
    Ok(())
}

/// The size of the process, in bytes.
fn address_space() -> Result<u64, String> {
    let read = std::fs::read_to_string("/proc/self/statm").map_err(|error| format!("memory: {error}"))?;
    let pages = read.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4_096);
    pages.map(|pages| pages.saturating_mul(page)).ok_or_else(|| "memory: the size is not known".to_owned())
}

fn filter() -> Result<BpfProgram, String> {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch);
    filter.and_then(BpfProgram::try_from).map_err(|error| error.to_string())
}
