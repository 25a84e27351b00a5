//! From a name to a connection: the name is looked up once, and exactly the addresses that were checked are dialled.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::stop::{Stop, Woken};
use crate::network::Names;

/// Most lookups at once, those that nobody waits for any more included: a resolver can take minutes.
const LOOKUPS_MAX: usize = 256;
/// Most addresses of a name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// Why a host was not reached: whether time ran out, and a line.
#[derive(Debug)]
pub(super) struct Unreached {
    pub(super) is_late: bool,
    pub(super) why: String,
}

fn unreached(why: impl ToString) -> Unreached {
    Unreached { is_late: false, why: why.to_string() }
}

fn late(what: &str, limit: Duration) -> Unreached {
    Unreached { is_late: true, why: format!("{what} within {} s", limit.as_secs()) }
}

/// Looks names up on threads of their own.
#[derive(Debug)]
pub(super) struct Lookups {
    names: Arc<dyn Names>,
    running: Arc<AtomicUsize>,
}

impl Lookups {
    pub(super) fn new(names: Arc<dyn Names>) -> Self {
        Self { names, running: Arc::default() }
    }

    /// The addresses of a name.
    pub(super) fn addresses(
        &self,
        name: &str,
        stop: &Stop,
        limit: Duration,
    ) -> Result<Vec<IpAddr>, Unreached> {
        if self.running.fetch_add(1, Ordering::AcqRel) >= LOOKUPS_MAX {
            self.running.fetch_sub(1, Ordering::AcqRel);
            return Err(unreached(format!("more than {LOOKUPS_MAX} names are being looked up")));
        }
        let (names, running, owned) = (Arc::clone(&self.names), Arc::clone(&self.running), name.to_owned());
        let (done, finished) = io::pipe().map_err(unreached)?;
        let (sender, receiver) = channel();
        let look = move || {
            let found = names.addresses(&owned);
            running.fetch_sub(1, Ordering::AcqRel);
            // Nobody waits for it any more where it came too late.
            let _late = sender.send(found);
            drop(finished);
        };
        // Modules of the C library's resolver get a stack of the usual size.
        if let Err(error) = thread::Builder::new().name("lookup".to_owned()).spawn(look) {
            self.running.fetch_sub(1, Ordering::AcqRel);
            return Err(unreached(error));
        }
        match stop.wait(&done, PollFlags::IN, limit).map_err(unreached)? {
            Woken::Stopped => Err(unreached("the command has ended")),
            Woken::TimeUp => Err(late("its name was not found", limit)),
            Woken::Ready => {
                let found = receiver.try_recv().map_err(unreached)?;
                let mut found =
                    found.map_err(|error| unreached(format!("its name was not found: {error}")))?;
                found.truncate(ADDRESSES_MAX);
                Ok(found)
            }
        }
    }
}

/// Connects to the first of these addresses that answers.
pub(super) fn connect(
    addresses: &[IpAddr],
    port: u16,
    stop: &Stop,
    limit: Duration,
) -> Result<(TcpStream, IpAddr), Unreached> {
    let until = Instant::now() + limit;
    let mut problem = unreached("its name has no address");
    for (index, address) in addresses.iter().enumerate() {
        // Each gets its share of what is left.
        let others = u32::try_from(addresses.len().saturating_sub(index)).unwrap_or(u32::MAX).max(1);
        let left = until.saturating_duration_since(Instant::now()) / others;
        match connect_to(SocketAddr::new(*address, port), stop, left) {
            Ok(stream) => return Ok((stream, *address)),
            Err(Some(error)) => problem = unreached(format!("{address}: {error}")),
            Err(None) => problem = late("it did not answer", limit),
        }
    }
    Err(problem)
}

/// Connects; no error where time ran out.
fn connect_to(address: SocketAddr, stop: &Stop, left: Duration) -> Result<TcpStream, Option<io::Error>> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let own = |error: rustix::io::Errno| Some(io::Error::from(error));
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(own)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => return Ok(socket.into()),
        Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(own(error)),
    }
    match stop.wait(&socket, PollFlags::OUT, left).map_err(Some)? {
        Woken::Ready => {}
        Woken::TimeUp => return Err(None),
        Woken::Stopped => return Err(Some(io::Error::other("the command has ended"))),
    }
    sockopt::socket_error(&socket).map_err(own)?.map_err(own)?;
    Ok(socket.into())
}
