//! The system calls that are looked at: those that would change a file, connect, or start a program; with
//! [`Watch::All`] those that open a file for reading too.
//!
//! The filter sends them to the tracer before they are made. It only looks: whether they are permitted is for the
//! kernel to say, and the filter's answers of *refused* never depend on a tracer.

use libc::c_long;
use portcullis_core::observed::AttemptWhat;
use portcullis_core::profile::{Limits, Watch};
use seccompiler::sock_filter;

use crate::linux::helper::filter::{ANY_BIT, EQUAL, answer, argument, call, load, number, when};

/// The call waits for the tracer, and then goes on.
const TRACE: u32 = 0x7ff0_0000;

/// Flags of `open` that say more than reading.
const WRITING: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND).cast_unsigned();

/// Where a call says what it is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand {
    /// A path, from where the process is.
    Path(usize),
    /// A path, from a folder's descriptor.
    At(usize, usize),
    /// An open file.
    Open(usize),
    /// A socket's address and its length.
    Address(usize, usize),
}

/// When a call is looked at.
#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    /// The flags in this argument say more than reading; or reads are looked at too.
    Flags(usize),
    /// This argument is not zero.
    Given(usize),
}

/// A call that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    number: c_long,
    /// What it does; an opened file is read unless its flags say more.
    pub(super) what: AttemptWhat,
    pub(super) operands: &'static [Operand],
    when: When,
}

impl Looked {
    /// The argument with the flags of an open file.
    pub(super) fn flags(&self) -> Option<usize> {
        match self.when {
            When::Flags(index) => Some(index),
            _ => None,
        }
    }
}

/// Whether flags of `open` say more than reading.
pub(super) fn writes(flags: u64) -> bool {
    flags & u64::from(WRITING) != 0
}

const fn on(number: c_long, what: AttemptWhat, operands: &'static [Operand]) -> Looked {
    Looked { number, what, operands, when: When::Always }
}

const fn write(number: c_long, operands: &'static [Operand]) -> Looked {
    on(number, AttemptWhat::Write, operands)
}

use Operand::{Address, At, Open, Path};

/// On every architecture.
const LOOKED: &[Looked] = &[
    Looked {
        number: libc::SYS_openat,
        what: AttemptWhat::Write,
        operands: &[At(0, 1)],
        when: When::Flags(2),
    },
    on(libc::SYS_openat2, AttemptWhat::Write, &[At(0, 1)]),
    on(libc::SYS_execve, AttemptWhat::Execute, &[Path(0)]),
    on(libc::SYS_execveat, AttemptWhat::Execute, &[At(0, 1)]),
    write(libc::SYS_renameat2, &[At(0, 1), At(2, 3)]),
    write(libc::SYS_renameat, &[At(0, 1), At(2, 3)]),
    write(libc::SYS_unlinkat, &[At(0, 1)]),
    write(libc::SYS_mkdirat, &[At(0, 1)]),
    write(libc::SYS_mknodat, &[At(0, 1)]),
    write(libc::SYS_linkat, &[At(0, 1), At(2, 3)]),
    write(libc::SYS_symlinkat, &[At(1, 2)]),
    write(libc::SYS_fchmodat, &[At(0, 1)]),
    write(FCHMODAT2, &[At(0, 1)]),
    write(libc::SYS_fchmod, &[Open(0)]),
    write(libc::SYS_fchownat, &[At(0, 1)]),
    write(libc::SYS_fchown, &[Open(0)]),
    write(libc::SYS_utimensat, &[At(0, 1)]),
    write(libc::SYS_truncate, &[Path(0)]),
    write(libc::SYS_setxattr, &[Path(0)]),
    write(libc::SYS_lsetxattr, &[Path(0)]),
    write(libc::SYS_fsetxattr, &[Open(0)]),
    write(libc::SYS_removexattr, &[Path(0)]),
    write(libc::SYS_lremovexattr, &[Path(0)]),
    write(libc::SYS_fremovexattr, &[Open(0)]),
    on(libc::SYS_connect, AttemptWhat::Connect, &[Address(1, 2)]),
    on(libc::SYS_bind, AttemptWhat::Connect, &[Address(1, 2)]),
    Looked {
        number: libc::SYS_sendto,
        what: AttemptWhat::Connect,
        operands: &[Address(4, 5)],
        when: When::Given(4),
    },
];

/// `fchmodat2` has the same number everywhere.
const FCHMODAT2: c_long = 452;

/// What only this architecture has.
#[cfg(target_arch = "x86_64")]
const LOOKED_HERE: &[Looked] = &[
    Looked { number: libc::SYS_open, what: AttemptWhat::Write, operands: &[Path(0)], when: When::Flags(1) },
    write(libc::SYS_creat, &[Path(0)]),
    write(libc::SYS_rename, &[Path(0), Path(1)]),
    write(libc::SYS_unlink, &[Path(0)]),
    write(libc::SYS_rmdir, &[Path(0)]),
    write(libc::SYS_mkdir, &[Path(0)]),
    write(libc::SYS_mknod, &[Path(0)]),
    write(libc::SYS_link, &[Path(0), Path(1)]),
    write(libc::SYS_symlink, &[Path(1)]),
    write(libc::SYS_chmod, &[Path(0)]),
    write(libc::SYS_chown, &[Path(0)]),
    write(libc::SYS_lchown, &[Path(0)]),
    write(libc::SYS_utime, &[Path(0)]),
    write(libc::SYS_utimes, &[Path(0)]),
    write(libc::SYS_futimesat, &[At(0, 1)]),
];
#[cfg(target_arch = "aarch64")]
const LOOKED_HERE: &[Looked] = &[];

/// The call with this number, where it is looked at.
pub(super) fn looked(call: c_long) -> Option<Looked> {
    LOOKED.iter().chain(LOOKED_HERE).find(|looked| looked.number == call).copied()
}

/// Calls that take memory. With a limit they are looked at, since nothing else says that it was reached.
const MEMORY: &[c_long] = &[libc::SYS_mmap, libc::SYS_mremap, libc::SYS_mprotect];

/// Whether a call takes memory.
pub(super) fn takes_memory(call: c_long) -> bool {
    MEMORY.contains(&call)
}

/// What the filter does with these calls, when it has found nothing to refuse.
pub(in crate::linux::helper) fn filter(watch: Watch, limits: &Limits) -> Vec<sock_filter> {
    let mut all = Vec::new();
    for call in MEMORY.iter().filter(|_| limits.memory_bytes.is_some()) {
        all.extend(when(EQUAL, number(*call), vec![answer(TRACE)]));
    }
    let is_wanted = |looked: &&Looked| watch != Watch::Programs || looked.what == AttemptWhat::Execute;
    for looked in LOOKED.iter().chain(LOOKED_HERE).filter(is_wanted) {
        let trace = vec![answer(TRACE)];
        all.extend(match looked.when {
            When::Flags(index) if watch != Watch::All => {
                let writing = when(ANY_BIT, WRITING, trace);
                call(looked.number, [vec![load(argument(index_of(index)))], writing].concat())
            }
            // The upper half of an address may be all that it has.
            When::Given(index) => {
                let index = index_of(index);
                let lower = [vec![load(argument(index))], when(ANY_BIT, u32::MAX, trace.clone())];
                let upper = [vec![load(argument(index) + 4)], when(ANY_BIT, u32::MAX, trace)];
                call(looked.number, [lower.concat(), upper.concat()].concat())
            }
            When::Always | When::Flags(_) => when(EQUAL, number(looked.number), trace),
        });
    }
    all
}

fn index_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(0)
}

/// A family of sockets, as programs write it.
pub(super) fn family(number: u64) -> String {
    let known = [
        (libc::AF_UNIX, "AF_UNIX"),
        (libc::AF_INET, "AF_INET"),
        (libc::AF_INET6, "AF_INET6"),
        (libc::AF_NETLINK, "AF_NETLINK"),
        (libc::AF_PACKET, "AF_PACKET"),
        (libc::AF_VSOCK, "AF_VSOCK"),
        (libc::AF_ALG, "AF_ALG"),
    ];
    let named = known.iter().find(|(family, _)| u64::try_from(*family) == Ok(number));
    named.map_or_else(|| format!("family {number}"), |(_, name)| (*name).to_owned())
}
