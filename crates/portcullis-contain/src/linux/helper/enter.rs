//! The first stage of the namespace level: namespaces, their mounts, their loopback.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;

use nix::sched::CloneFlags;
use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::unistd::Pid;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::background::Notice;
use super::proxy::WayOut;
use super::reap::{self, Waited};
use super::report::Reporter;
use super::{Failed, at, die_with_parent, mounts, next};
use crate::linux::order::Order;
use portcullis_core::profile::Network;

/// Makes the namespaces and everything in them, and waits for the next stage.
pub(super) fn enter(
    order: &Order,
    command: &[OsString],
    mut notice: Notice,
    reporter: &mut Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[notice.file()]).map_err(at("descriptors"))?;
    let way_out = WayOut::open(order).map_err(at("proxy"))?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    nix::sched::unshare(all).map_err(at("unshare"))?;
    // A change of capabilities, such as that one, undoes it.
    die_with_parent(notice.file().is_none().then_some(order.supervisor))?;
    fs::write("/proc/self/setgroups", "deny").map_err(at("setgroups"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(at("uid_map"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(at("gid_map"))?;
    mounts::make(order)?;
    if order.network != Network::None {
        loopback_up().map_err(at("loopback"))?;
    }
    way_out.hand_out().map_err(at("proxy"))?;
    hand_on_capabilities().map_err(at("ambient capabilities"))?;
    let signals = reap::block_signals()?;
    let report = reporter.hand_on().map_err(at("report"))?;
    let (mut told, tells) = match notice.file() {
        Some(_) => std::io::pipe().map(|(told, tells)| (Some(told), Some(tells))).map_err(at("notice"))?,
        None => (None, None),
    };
    let started = next(&format!("first:{report}"), order, command, tells);
    let (child, mut watcher) = started.map_err(at("process 1"))?;
    loop {
        match reap::wait_for(child, &signals, None, &mut watcher, told.as_ref())? {
            Waited::Ended(ended) => {
                watcher.tell(reporter);
                return Ok(ended.code());
            }
            Waited::Spoken => {
                let mut code = [0];
                let spoken = told.take().is_some_and(|mut told| told.read_exact(&mut code).is_ok());
                let [code] = code;
                if spoken {
                    watcher.tell(reporter);
                    notice.tell(code);
                }
            }
            Waited::Told | Waited::TimeUp => {
                let process = i32::try_from(child).map_err(at("process 1"))?;
                // It may have ended meanwhile.
                let _gone = kill(Pid::from_raw(process), reap::END);
            }
        }
    }
}

/// An execution drops capabilities unless they are ambient. The next stage needs two, to mount `/proc` and to drop all.
fn hand_on_capabilities() -> rustix::io::Result<()> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    let sets = rustix::thread::capabilities(None)?;
    rustix::thread::set_capabilities(None, CapabilitySets { inheritable: needed, ..sets })?;
    for capability in needed.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Asks the kernel to bring up the first interface, which is the loopback. There is no safe call for it in the crates:
/// a message of 32 bytes, `nlmsghdr` and `ifinfomsg`.
fn loopback_up() -> Result<(), String> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    /// A request that wants an answer.
    const REQUEST_ACK: u16 = 0x5;
    const FIRST: i32 = 1;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_ACK.to_ne_bytes());
    // Sequence number and port; family, padding, type.
    message.extend([0; 12]);
    message.extend(FIRST.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let told = |error: nix::Error| error.to_string();
    let socket = nix::sys::socket::socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )
    .map_err(told)?;
    nix::sys::socket::sendto(socket.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())
        .map_err(told)?;
    let mut answer = [0; 256];
    let length = nix::sys::socket::recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).map_err(told)?;
    // An answer is a header and an error number, which is 0 where all is well.
    let code = answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(std::io::Error::from_raw_os_error(-code).to_string()),
        None => Err("the kernel's answer is too short".to_owned()),
    }
}
