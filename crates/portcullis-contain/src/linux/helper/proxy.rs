//! The helper's side of the proxy: a socket is bound in the command's network, and handed out to the supervisor.

use std::io::{self, IoSlice};
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};

use crate::linux::order::Order;
use crate::linux::proxy::ADDRESS;

/// The way to the supervisor. It is opened before the mounts hide it.
pub(super) struct WayOut(Option<UnixStream>);

impl WayOut {
    pub(super) fn open(order: &Order) -> io::Result<Self> {
        order.handover.as_ref().map(UnixStream::connect).transpose().map(Self)
    }

    /// Binds the socket that the proxy accepts on, and hands it out. The command connects to it from the start:
    /// what comes before the supervisor has it waits in the queue.
    pub(super) fn hand_out(self) -> io::Result<()> {
        let Some(stream) = self.0 else { return Ok(()) };
        let listener = TcpListener::bind(ADDRESS)?;
        let sockets = [listener.as_raw_fd()];
        let message = [IoSlice::new(b"P")];
        let rights = [ControlMessage::ScmRights(&sockets)];
        sendmsg::<UnixAddr>(stream.as_raw_fd(), &message, &rights, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }
}
