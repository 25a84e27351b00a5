//! How the listening socket comes out of the command's network: the helper connects to a socket in the folder of the
//! run, before anything is hidden from it, and sends the descriptor.
//!
//! The folder is open to nobody else, and of those who connect only the helper itself is heard. The command never sees
//! the connection: it does not survive the helper's next execution.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, sockopt};

use super::stop::{Stop, Woken};

/// How long the helper is waited for. It takes milliseconds.
const TIME: Duration = Duration::from_secs(30);
/// Most connections of others that are turned away.
const STRANGERS_MAX: usize = 64;

/// Where the helper brings it.
#[derive(Debug)]
pub(in crate::linux) struct Handover {
    listener: UnixListener,
    path: PathBuf,
}

impl Handover {
    /// Makes the socket, which the user that the helper runs as can connect to.
    pub(in crate::linux) fn at(path: &Path, user: Option<(u32, u32)>) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(path, Some(user), Some(group))?;
        }
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Waits for the helper with this process id; nothing where the command has ended before.
    pub(super) fn receive(self, helper: u32, stop: &Stop) -> io::Result<Option<TcpListener>> {
        let until = Instant::now() + TIME;
        for _ in 0..STRANGERS_MAX {
            let left = until.saturating_duration_since(Instant::now());
            match stop.wait(&self.listener, PollFlags::IN, left)? {
                Woken::Ready => {}
                Woken::Stopped => return Ok(None),
                Woken::TimeUp => return Err(io::Error::other("it did not come in time")),
            }
            let (stream, _) = self.listener.accept()?;
            let peer = sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero().get();
            if u32::try_from(peer) != Ok(helper) {
                continue;
            }
            return match stop.wait(&stream, PollFlags::IN, left)? {
                Woken::Ready => receive(&stream).map(Some),
                Woken::Stopped => Ok(None),
                Woken::TimeUp => Err(io::Error::other("it did not come in time")),
            };
        }
        Err(io::Error::other("others than the helper connected"))
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // The folder is removed as well.
        let _gone = std::fs::remove_file(&self.path);
    }
}

fn receive(stream: &std::os::unix::net::UnixStream) -> io::Result<TcpListener> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(stream, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let socket = sockets.flatten().next().ok_or_else(|| io::Error::other("the helper sent no socket"))?;
    Ok(socket.into())
}
