//! Bytes between a client and a server, both ways at once, until both have said that they are done.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::framing::Framing;
use super::head::{self, Method};
use super::stop::{Stop, poll};

/// Bytes that are read at once, and with that nearly all that waits for a slow reader.
const CHUNK: usize = 16 << 10;
/// How long what a command has sent is still handed on when it has ended.
pub(super) const DRAIN_TIME: Duration = Duration::from_secs(1);

/// One direction.
#[derive(Debug)]
pub(super) struct Half {
    filter: Filter,
    /// Read, and not yet written.
    pending: Vec<u8>,
    written: usize,
    /// Nothing more comes: the other end has said so, or the message is complete.
    is_over: bool,
    /// The reader is gone. What it has said before can still be read.
    is_cut: bool,
    is_shut: bool,
    read: u64,
    sent: u64,
}

/// What becomes of bytes on their way.
#[derive(Debug)]
enum Filter {
    /// They pass.
    Raw,
    /// The body of a request passes, and nothing behind it.
    Body(Framing),
    /// The head of an answer is read and written anew, its body passes.
    Answer { head: Vec<u8>, body: Option<Framing>, method: Method },
}

/// What passed, and what went wrong.
#[derive(Debug)]
pub(super) struct Passed {
    /// To the server.
    pub(super) sent: u64,
    /// From the server.
    pub(super) received: u64,
    /// To the client.
    pub(super) answered: u64,
    pub(super) problem: Option<String>,
}

impl Half {
    fn new(filter: Filter, pending: Vec<u8>) -> Self {
        Self { filter, pending, written: 0, is_over: false, is_cut: false, is_shut: false, read: 0, sent: 0 }
    }

    /// Everything passes, behind these bytes.
    pub(super) fn raw(first: Vec<u8>) -> Self {
        Self::new(Filter::Raw, first)
    }

    /// A request: its head, what has come of its body, and how that ends.
    ///
    /// # Errors
    /// The body is not what its head says.
    pub(super) fn request(head: Vec<u8>, begun: &[u8], body: Framing) -> Result<Self, String> {
        let is_over = body == Framing::None;
        let mut half = Self { is_over, ..Self::new(Filter::Body(body), head) };
        half.pass(begun)?;
        Ok(half)
    }

    /// An answer to a request of this kind.
    pub(super) fn answer(method: Method) -> Self {
        Self::new(Filter::Answer { head: Vec::new(), body: None, method }, Vec::new())
    }

    fn is_empty(&self) -> bool {
        self.written >= self.pending.len()
    }

    fn is_done(&self) -> bool {
        self.is_over && self.is_empty()
    }

    fn wants_to_read(&self) -> bool {
        !self.is_over && self.is_empty()
    }

    /// Takes bytes in.
    fn pass(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        match &mut self.filter {
            Filter::Raw => self.pending.extend_from_slice(bytes),
            Filter::Body(framing) => {
                let taken = framing.take(bytes).map_err(str::to_owned)?;
                self.pending.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                self.is_over = *framing == Framing::None;
            }
            Filter::Answer { head, body, method } => loop {
                if let Some(framing) = body {
                    let taken = framing.take(bytes).map_err(str::to_owned)?;
                    self.pending.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                    self.is_over = *framing == Framing::None;
                    return Ok(());
                }
                let known = head.len();
                head.extend_from_slice(bytes);
                let Some(end) = head::end(head, known).map_err(|wrong| wrong.what)? else { return Ok(()) };
                bytes = bytes.get(end.saturating_sub(known)..).unwrap_or_default();
                head.truncate(end);
                let response = head::response(head, *method).map_err(|wrong| wrong.what)?;
                self.pending.extend_from_slice(&response.head);
                head.clear();
                if !response.is_interim {
                    *body = Some(response.body);
                }
            },
        }
        Ok(())
    }

    /// Reads what there is, and writes what can be written.
    fn step(&mut self, from: &TcpStream, to: &TcpStream, buffer: &mut [u8]) -> Result<bool, String> {
        let mut has_moved = false;
        if self.wants_to_read() {
            match again((&mut &*from).read(buffer))? {
                None => {}
                Some(0) => self.is_over = true,
                Some(length) => {
                    has_moved = true;
                    self.read = self.read.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
                    self.pending.clear();
                    self.written = 0;
                    self.pass(buffer.get(..length).unwrap_or_default())?;
                }
            }
        }
        while !self.is_empty() {
            let rest = self.pending.get(self.written..).unwrap_or_default();
            let length = match again((&mut &*to).write(rest)) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(_) => {
                    (self.is_over, self.is_cut) = (true, true);
                    self.pending.clear();
                    break;
                }
            };
            has_moved = true;
            self.written = self.written.saturating_add(length);
            self.sent = self.sent.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        }
        if self.is_done() && matches!(self.filter, Filter::Raw) && !self.is_shut && !self.is_cut {
            self.is_shut = true;
            // The other end may be gone, which the next read says.
            let _gone = to.shutdown(Shutdown::Write);
        }
        Ok(has_moved)
    }
}

/// Nothing where the socket is not ready.
fn again(result: io::Result<usize>) -> Result<Option<usize>, String> {
    match result {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Passes bytes until both directions of a tunnel are done, an answer is complete, nothing passes for too long, or the
/// command has ended.
pub(super) fn relay(
    client: &TcpStream,
    server: &TcpStream,
    mut up: Half,
    mut down: Half,
    stop: &Stop,
    idle: Duration,
) -> Passed {
    let mut buffer = vec![0; CHUNK];
    let is_tunnel = matches!(down.filter, Filter::Raw);
    let mut last = Instant::now();
    let mut drained_by = None;
    let mut problem = None;
    while problem.is_none() {
        let is_done = down.is_done() && (up.is_done() || !is_tunnel);
        if is_done || (drained_by.is_some() && up.is_done()) {
            break;
        }
        let until = drained_by.unwrap_or(last + idle);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if drained_by.is_none() {
                problem = Some(format!("nothing passed for {} s", idle.as_secs()));
            }
            break;
        }
        match wait(client, server, (&up, &down), drained_by.is_none().then_some(stop), left) {
            Ok(true) => drained_by = Some(Instant::now() + DRAIN_TIME),
            Ok(false) => {}
            Err(error) => problem = Some(error.to_string()),
        }
        let moved = up
            .step(client, server, &mut buffer)
            .and_then(|up| Ok(down.step(server, client, &mut buffer)? | up));
        match moved {
            Ok(true) => last = Instant::now(),
            Ok(false) => {}
            Err(error) => problem = Some(error),
        }
        // A request that will never be complete has no answer.
        if !is_tunnel
            && up.is_over
            && !up.is_cut
            && matches!(&up.filter, Filter::Body(left) if *left != Framing::None)
        {
            problem = Some("the request ended before its body".to_owned());
        }
    }
    Passed { sent: up.sent, received: down.read, answered: down.sent, problem }
}

/// Waits until one of the sockets is ready; whether the command has ended.
fn wait(
    client: &TcpStream,
    server: &TcpStream,
    (up, down): (&Half, &Half),
    stop: Option<&Stop>,
    left: Duration,
) -> io::Result<bool> {
    let mut on = Vec::with_capacity(3);
    on.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)));
    for (socket, reads, writes) in [(client, up, down), (server, down, up)] {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reads.wants_to_read());
        flags.set(PollFlags::OUT, !writes.is_empty());
        // Of a socket of which nothing is wanted the end would be told again and again.
        if !flags.is_empty() {
            on.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
        }
    }
    poll(&mut on, left)?;
    Ok(stop.is_some() && on.first().is_some_and(|stop| !stop.revents().is_empty()))
}
