//! What a process gives up by itself: capabilities, new privileges, resources, files, system calls.

use std::io::IsTerminal as _;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use nix::sys::resource::{Resource, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::report::Reporter;
use super::{Failed, at, filter};
use crate::linux::order::{Order, Report};
use portcullis_core::profile::{Level, Network, Sockets};

/// Devices that hold nothing: every program may use them.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Where terminals are made. At the process level it has those of others too: what is typed there could be read.
const TERMINALS: &[&str] = &["/dev/ptmx", "/dev/pts"];
/// The terminal that a process belongs to. It is for commands that are connected to one.
const TERMINAL: &str = "/dev/tty";
/// The newest ABI that the rules know.
const NEWEST: ABI = ABI::V10;

/// Gives up everything that the order does not leave.
pub(super) fn confine(order: &Order, has_tracer: bool, reporter: &mut Reporter) -> Result<(), Failed> {
    drop_capabilities().map_err(at("capabilities"))?;
    reporter.done("capabilities");
    nix::sys::prctl::set_no_new_privs().map_err(at("no_new_privs"))?;
    reporter.done("no_new_privs");
    limits(order).map_err(at("rlimits"))?;
    reporter.done("rlimits");
    let abi = landlock(order)?;
    reporter.tell(&Report::Landlock(abi));
    reporter.done("landlock");
    let holds_signals = abi >= ABI::V6 as u32;
    seccompiler::apply_filter(&filter::program(order, holds_signals, has_tracer)).map_err(at("seccomp"))?;
    reporter.done("seccomp");
    Ok(())
}

/// All capabilities, from every set.
fn drop_capabilities() -> rustix::io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let sets = rustix::thread::capabilities(None)?;
    if sets.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter() {
            // The kernel may not know the newest ones.
            if let Ok(true) = rustix::thread::capability_is_in_bounding_set(capability) {
                rustix::thread::remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}

fn limits(order: &Order) -> nix::Result<()> {
    let lower = |resource, soft: u64, hard: u64| {
        let (_, most) = nix::sys::resource::getrlimit(resource)?;
        setrlimit(resource, soft.min(most), hard.min(most))
    };
    // A core dump is a file wherever the system's settings say, or goes to a program of root's. Both are left out with
    // a limit of 1; with 0 the program is still started.
    lower(Resource::RLIMIT_CORE, 1, 1)?;
    if let Some(seconds) = order.limits.cpu_seconds {
        // First a signal that can be handled, then the one that cannot.
        lower(Resource::RLIMIT_CPU, seconds, seconds.saturating_add(2))?;
    }
    if let Some(processes) = order.limits.processes {
        // Without a namespace of its own what the user runs already counts too: those of the machine are no fewer.
        let others = if order.level == Level::Namespace { 0 } else { tasks() };
        let processes = processes.saturating_add(others);
        lower(Resource::RLIMIT_NPROC, processes, processes)?;
    }
    if let Some(bytes) = order.limits.file_bytes {
        lower(Resource::RLIMIT_FSIZE, bytes, bytes)?;
    }
    if let Some(bytes) = order.limits.memory_bytes {
        lower(Resource::RLIMIT_DATA, bytes, bytes)?;
    }
    Ok(())
}

/// Processes and threads of the machine: the number after the slash.
fn tasks() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let field = text.split_whitespace().nth(3).and_then(|field| field.split_once('/'));
    field.and_then(|(_, total)| total.parse().ok()).unwrap_or(0)
}

/// Restricts files, TCP, signals and abstract sockets, as far as the kernel can; the ABI that it has.
fn landlock(order: &Order) -> Result<u32, Failed> {
    let ports = match &order.network {
        Network::Loopback(ports) => ports.as_slice(),
        Network::None | Network::Hosts(_) => &[],
    };
    let mut rules = ruleset(order, ports).map_err(at("landlock"))?;
    for (path, access) in grants(order) {
        rules = grant(rules, path, access, newest(order))?;
    }
    let restricted = rules.restrict_self().map_err(at("landlock"))?;
    let LandlockStatus::Available { effective_abi: abi, .. } = restricted.landlock else {
        return Err(at("landlock")("the kernel does not have it, or it is not among its `lsm=` modules"));
    };
    let abi = abi.min(newest(order));
    if restricted.ruleset == RulesetStatus::NotEnforced {
        return Err(at("landlock")("the kernel did not enforce the rules"));
    }
    if !ports.is_empty() && abi < ABI::V4 {
        return Err(at("landlock")("ports can be held from ABI 4 on only (Linux 6.7): name none"));
    }
    Ok(abi as u32)
}

/// What is refused unless it is granted. Rights that the kernel does not know yet are left out by the crate.
fn ruleset(order: &Order, ports: &[u16]) -> Result<RulesetCreated, landlock::RulesetError> {
    let abi = newest(order);
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(abi))?;
    let tcp = AccessNet::from_all(abi) & (AccessNet::BindTcp | AccessNet::ConnectTcp);
    let has_ports = !tcp.is_empty() && (order.level == Level::Process || !ports.is_empty());
    if has_ports {
        rules = rules.handle_access(tcp)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    let mut rules = rules.create()?;
    for &port in ports.iter().filter(|_| has_ports) {
        rules = rules.add_rule(NetPort::new(port, tcp))?;
    }
    Ok(rules)
}

/// The newest ABI whose rules are used.
fn newest(order: &Order) -> ABI {
    order.landlock.and_then(|abi| i32::try_from(abi).ok()).map_or(NEWEST, ABI::from)
}

/// Has this process signal nothing but itself and what it starts, so that it can end all of that at once. Whether the
/// kernel can do that.
pub(super) fn signal_own_only(order: &Order) -> bool {
    let Ok(everything) = PathFd::new("/") else { return false };
    let scoped = || -> Result<RestrictionStatus, landlock::RulesetError> {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        // Every domain refuses to move files to other folders unless it grants that.
        let rules = rules.handle_access(AccessFs::Refer)?.scope(Scope::Signal)?.create()?;
        rules.add_rule(PathBeneath::new(everything, AccessFs::Refer))?.restrict_self()
    };
    let is_enforced = |status: RestrictionStatus| status.ruleset == RulesetStatus::FullyEnforced;
    newest(order) >= ABI::V6 && scoped().is_ok_and(is_enforced)
}

/// Each path with what may be done below it.
fn grants(order: &Order) -> Vec<(&Path, BitFlags<AccessFs>)> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let execute = read | AccessFs::Execute;
    // Devices are never made or controlled, and sockets not reached unless they may be used at all.
    let mut never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    if order.sockets == Sockets::None {
        never |= AccessFs::ResolveUnix | AccessFs::MakeSock;
    }
    let write = read | (AccessFs::from_write(NEWEST) & !never);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    let temporary: &Path = match order.level {
        Level::Namespace => Path::new("/tmp"),
        _ => &order.temporary,
    };
    let mut grants = vec![(temporary, write | execute)];
    grants.extend(order.read.iter().map(|path| (path.as_path(), read)));
    grants.extend(order.execute.iter().map(|path| (path.as_path(), execute)));
    grants.extend(order.write.iter().map(|path| (path.as_path(), write)));
    grants.extend(order.sockets.paths().iter().map(|path| (path.as_path(), AccessFs::ResolveUnix.into())));
    grants.extend(DEVICES.iter().map(|path| (Path::new(*path), device)));
    if order.level == Level::Namespace {
        grants.push((Path::new("/dev/shm"), write));
        grants.extend(TERMINALS.iter().map(|path| (Path::new(*path), device)));
    }
    let connected = [
        ("/proc/self/fd/0", std::io::stdin().is_terminal()),
        ("/proc/self/fd/1", std::io::stdout().is_terminal()),
        ("/proc/self/fd/2", std::io::stderr().is_terminal()),
    ];
    if connected.iter().any(|(_, is_terminal)| *is_terminal) {
        grants.push((Path::new(TERMINAL), device));
    }
    grants.extend(connected.iter().filter(|(_, is)| *is).map(|(path, _)| (Path::new(*path), device)));
    grants
}

/// Grants what may be done at a path; one that is not there grants nothing.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, Failed> {
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(abi) };
    let access = access & AccessFs::from_all(abi);
    if access.is_empty() {
        return Ok(rules);
    }
    let named = |error: landlock::RulesetError| at("landlock")(format!("`{}`: {error}", path.display()));
    rules.add_rule(PathBeneath::new(file, access)).map_err(named)
}
