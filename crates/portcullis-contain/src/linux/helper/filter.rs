//! System calls that no contained command makes: a seccomp filter, written out.
//!
//! A list of what is refused, since programs of a developer's day use nearly everything else. It is one program, so
//! that it can answer *there is no such call* where the C library has another way, and read the arguments of the few
//! calls of which some uses are harmless.

use libc::c_long;
use seccompiler::sock_filter;

use super::watch::calls;
use crate::linux::order::Order;
use portcullis_core::profile::{Level, Network, Sockets};

/// Load a word of the call's description.
const LOAD: u16 = 0x20;
/// Jump if equal, if at least, if any of these bits is set.
pub(super) const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
pub(super) const ANY_BIT: u16 = 0x45;
/// `accumulator &= k`.
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERROR: u32 = 0x0005_0000;
/// Refused with a signal, which a tracer turns into the error.
const TRAP: u32 = 0x0003_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

/// Where things are in the description of a call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the filter does not know this architecture's number");

/// Set in the numbers of calls of the x32 ABI.
const X32: u32 = 0x4000_0000;
/// Flags of `clone` that make namespaces.
const NAMESPACES: u32 = 0x7e02_0080;
/// The type of a socket, without its flags.
const SOCKET_TYPE: u32 = 0xf;
/// Makes a connection while sending, past the rules for connecting.
const MSG_FASTOPEN: u32 = 0x2000_0000;

/// Calls with their names.
macro_rules! calls {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), libc::$name)),*]
    };
}

/// Calls that are refused whatever their arguments.
const REFUSED: &[(&str, c_long)] = calls![
    // Ways around the rules for files, or past the filter.
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_open_by_handle_at,
    // Namespaces and mounts.
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    // Other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_perf_event_open,
    SYS_process_madvise,
    // What the kernel keeps, and what attacks on it need.
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_syslog,
    SYS_fanotify_init,
    SYS_quotactl,
    // The machine.
    SYS_acct,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_settimeofday,
    SYS_delete_module,
    SYS_finit_module,
    SYS_init_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_setdomainname,
    SYS_sethostname,
    SYS_swapon,
    SYS_swapoff,
    SYS_vhangup,
    SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[(&str, c_long)] =
    calls![SYS_ioperm, SYS_iopl, SYS_modify_ldt, SYS_kexec_file_load, SYS_uselib];
#[cfg(target_arch = "aarch64")]
// By its number (include/uapi/asm-generic/unistd.h): `libc` does not have it for musl.
const REFUSED_HERE: &[(&str, c_long)] = &[("SYS_kexec_file_load", 294)];

/// Memory, semaphores and messages that all processes of the user share where there is no namespace for them.
const SHARED: &[(&str, c_long)] = calls![
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
];

/// The name of a call that is refused.
pub(super) fn name(call: c_long) -> String {
    let others = calls![
        SYS_clone,
        SYS_ioctl,
        SYS_socket,
        SYS_socketpair,
        SYS_sendto,
        SYS_sendmsg,
        SYS_sendmmsg,
        SYS_prlimit64,
        SYS_kill
    ];
    let mut all = REFUSED.iter().chain(REFUSED_HERE).chain(others);
    let named = all.find(|(_, number)| *number == call);
    named.map_or_else(|| format!("call {call}"), |(name, _)| name.trim_start_matches("SYS_").to_owned())
}

/// How a call is refused: the kernel refuses it in both cases. `Told` is for a process with a tracer only: without one
/// the signal would end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Quiet,
    Told,
}

/// The filter for an order, where Landlock holds signals or not; with a tracer it is told what is refused, and of the calls that it looks at.
pub(super) fn program(order: &Order, holds_signals: bool, has_tracer: bool) -> Vec<sock_filter> {
    let told = if has_tracer { Refusal::Told } else { Refusal::Quiet };
    let refuse = |error| refuse(error, told);
    let mut program = vec![load(ARCHITECTURE), jump(EQUAL, NATIVE, 1, 0), answer(KILL_PROCESS), load(NUMBER)];
    if cfg!(target_arch = "x86_64") {
        program.extend(when(AT_LEAST, X32, vec![quietly(libc::ENOSYS)]));
    }
    for (_, call) in REFUSED.iter().chain(REFUSED_HERE) {
        program.extend(when(EQUAL, number(*call), vec![refuse(libc::EPERM)]));
    }
    // The C library then uses `clone`, whose flags can be read.
    program.extend(when(EQUAL, number(libc::SYS_clone3), vec![quietly(libc::ENOSYS)]));
    let clone = [vec![load(argument(0))], when(ANY_BIT, NAMESPACES, vec![refuse(libc::EPERM)])].concat();
    program.extend(call(libc::SYS_clone, clone));
    let mut control = vec![load(argument(1))];
    // Typing into the terminal, its selections, and what the kernel makes of a line.
    for request in [0x5412, 0x541c, 0x5423] {
        control.extend(when(EQUAL, request, vec![refuse(libc::EPERM)]));
    }
    program.extend(call(libc::SYS_ioctl, control));
    program.extend(others(order, holds_signals, told));
    program.extend(call(libc::SYS_socket, sockets(order, told)));
    program.extend(call(libc::SYS_socketpair, pairs(order, told)));
    if order.network != Network::None {
        for (name, at) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            // What is not refused goes on to the calls that are looked at.
            let fast =
                [vec![load(argument(at))], when(ANY_BIT, MSG_FASTOPEN, vec![refuse(libc::EOPNOTSUPP)])];
            let number_again = vec![load(NUMBER)];
            program.extend(when(EQUAL, number(name), [fast.concat(), number_again].concat()));
        }
    }
    if has_tracer {
        program.extend(calls::filter(order.watch, &order.limits));
    }
    program.push(answer(ALLOW));
    program
}

/// Calls by which a process limits others, reads what they share with it, or signals those of its group.
fn others(order: &Order, holds_signals: bool, told: Refusal) -> Vec<sock_filter> {
    /// `RLIMIT_CORE`: a limit of 0 has the kernel start the machine's program for dumps.
    const CORE: u32 = 4;
    let done = || refuse(0, Refusal::Quiet);
    let mut program =
        call(libc::SYS_setrlimit, [vec![load(argument(0))], when(EQUAL, CORE, vec![done()])].concat());
    let mut limit =
        vec![load(argument(2)), jump(EQUAL, 0, 0, 3), load(argument(2) + 4), jump(EQUAL, 0, 0, 1)];
    // Limits are only read.
    limit.push(answer(ALLOW));
    limit.push(load(argument(1)));
    limit.extend(when(EQUAL, CORE, vec![done()]));
    limit.push(load(argument(0)));
    limit.extend(when(EQUAL, 0, vec![answer(ALLOW)]));
    limit.push(refuse(libc::EPERM, told));
    program.extend(call(libc::SYS_prlimit64, limit));
    if order.level != Level::Namespace {
        for (_, name) in SHARED {
            program.extend(when(EQUAL, number(*name), vec![quietly(libc::ENOSYS)]));
        }
    } else if !holds_signals {
        // The group may have processes outside, which no number reaches from within.
        let group = [vec![load(argument(0))], when(EQUAL, 0, vec![refuse(libc::EPERM, told)])].concat();
        program.extend(call(libc::SYS_kill, group));
    }
    program
}

/// Which sockets are made: those of the families that the order leaves, of types that its rules can hold.
fn sockets(order: &Order, told: Refusal) -> Vec<sock_filter> {
    let mut checks = vec![load(argument(0))];
    if order.sockets != Sockets::None {
        checks.extend(when(EQUAL, number(libc::AF_UNIX.into()), vec![answer(ALLOW)]));
    }
    let ports = match &order.network {
        Network::None => None,
        Network::Loopback(ports) => Some(ports.as_slice()),
        Network::Hosts(_) => Some(&[][..]),
    };
    let own = order.level == Level::Namespace;
    // At the process level without ports there is nobody to talk to.
    if ports.is_some_and(|ports| own || !ports.is_empty()) {
        let only_tcp = ports.is_some_and(|ports| !ports.is_empty());
        for family in [libc::AF_INET, libc::AF_INET6] {
            checks.extend(when(EQUAL, number(family.into()), internet(only_tcp, told)));
        }
        let mut routes = vec![load(argument(2))];
        routes.extend(when(EQUAL, 0, vec![answer(ALLOW)]));
        routes.push(refuse(libc::EACCES, told));
        checks.extend(when(EQUAL, number(libc::AF_NETLINK.into()), routes));
    }
    checks.push(refuse(libc::EACCES, told));
    checks
}

/// Streams, and datagrams unless only TCP is left. Landlock knows TCP by its protocol: others would pass by its rules.
fn internet(only_tcp: bool, told: Refusal) -> Vec<sock_filter> {
    let protocol = |numbers: &[u32]| {
        let mut checks = vec![load(argument(2))];
        for number in numbers {
            checks.extend(when(EQUAL, *number, vec![answer(ALLOW)]));
        }
        checks.push(refuse(libc::EACCES, told));
        checks
    };
    let mut checks = vec![load(argument(1)), statement(AND, SOCKET_TYPE)];
    checks.extend(when(
        EQUAL,
        number(libc::SOCK_STREAM.into()),
        protocol(&[0, number(libc::IPPROTO_TCP.into())]),
    ));
    if !only_tcp {
        let udp = protocol(&[0, number(libc::IPPROTO_UDP.into())]);
        checks.extend(when(EQUAL, number(libc::SOCK_DGRAM.into()), udp));
    }
    checks.push(refuse(libc::EACCES, told));
    checks
}

/// Pairs are harmless, but for datagrams: one end can still send to any path.
fn pairs(order: &Order, told: Refusal) -> Vec<sock_filter> {
    if order.sockets != Sockets::None {
        return vec![answer(ALLOW)];
    }
    let mut checks = vec![load(argument(1)), statement(AND, SOCKET_TYPE)];
    checks.extend(when(EQUAL, number(libc::SOCK_DGRAM.into()), vec![refuse(libc::EACCES, told)]));
    checks
}

/// Checks for one call. They may change the accumulator: what is not answered by them is allowed.
pub(super) fn call(name: c_long, mut checks: Vec<sock_filter>) -> Vec<sock_filter> {
    checks.push(answer(ALLOW));
    when(EQUAL, number(name), checks)
}

/// Runs `then` where the accumulator fits, and jumps over it elsewhere.
pub(super) fn when(test: u16, value: u32, then: Vec<sock_filter>) -> Vec<sock_filter> {
    // No block is that long; if one were, everything after it would be refused rather than skipped.
    let over = u8::try_from(then.len()).unwrap_or(0);
    let mut all = vec![jump(test, value, 0, over)];
    all.extend(then);
    all
}

pub(super) fn load(from: u32) -> sock_filter {
    statement(LOAD, from)
}

/// The lower half of an argument: the kernel looks at no more of these.
pub(super) fn argument(index: u32) -> u32 {
    16 + 8 * index
}

pub(super) fn answer(what: u32) -> sock_filter {
    statement(RETURN, what)
}

fn refuse(error: i32, told: Refusal) -> sock_filter {
    let how = if told == Refusal::Told { TRAP } else { ERROR };
    answer(how | u32::try_from(error).unwrap_or(1))
}

/// Refused where the C library has another way: nothing that anybody has to know.
fn quietly(error: i32) -> sock_filter {
    refuse(error, Refusal::Quiet)
}

pub(super) fn number(value: c_long) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}
