//! One connection of a command: what it wants is read, judged, dialled and passed on.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use portcullis_core::host::{Host, HostRule, Reach};
use portcullis_core::observed::{Connection, ConnectionVerdict};
use rustix::event::PollFlags;

use super::dial::{Lookups, Unreached, connect};
use super::head::{self, Request, Wanted, Wrong};
use super::relay::{Half, Passed, relay};
use super::stop::{Stop, Woken};
use crate::address::{is_private, refusal};

/// Bytes that are read at once of a head, and of what is thrown away at the end.
const CHUNK: usize = 4 << 10;
/// How long, and for how many bytes, a client is listened to that was refused: an end that comes at once would take
/// the answer with it.
const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 64 << 10;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// From the connection to the end of the request's head.
    pub(super) head: Duration,
    /// A lookup of a name.
    pub(super) lookup: Duration,
    /// A connection to a host, all of its addresses together.
    pub(super) connect: Duration,
    /// Without a byte in either direction.
    pub(super) idle: Duration,
}

/// What connections are judged by.
#[derive(Debug)]
pub(super) struct Policy {
    /// The profile's name, for messages.
    pub(super) profile: String,
    pub(super) rules: Vec<HostRule>,
    pub(super) lookups: Lookups,
    pub(super) times: Times,
}

/// An answer of ours: its status, and the line that says why.
struct Answer {
    status: u16,
    verdict: ConnectionVerdict,
}

impl Answer {
    fn refused(status: u16, why: impl Into<String>) -> Self {
        Self { status, verdict: ConnectionVerdict::Refused(why.into()) }
    }

    fn failed(error: Unreached) -> Self {
        let status = if error.is_late { 504 } else { 502 };
        Self { status, verdict: ConnectionVerdict::Failed(error.why) }
    }
}

impl From<Wrong> for Answer {
    fn from(wrong: Wrong) -> Self {
        Self::refused(wrong.status, format!("no request that can be read: {}", wrong.what))
    }
}

/// Serves a connection, and says what became of it.
pub(super) fn serve(client: &TcpStream, policy: &Policy, stop: &Stop) -> Connection {
    let mut record = Connection {
        host: String::new(),
        port: 0,
        address: None,
        sent: 0,
        received: 0,
        verdict: ConnectionVerdict::Permitted,
    };
    // A socket that cannot be set so is one that is gone.
    let _gone = client.set_nonblocking(true).and_then(|()| client.set_nodelay(true));
    let answer = match read_head(client, policy.times.head, stop) {
        Ok((head, rest)) => head::request(&head)
            .map_err(Answer::from)
            .and_then(|request| pass_on(client, request, rest, policy, stop, &mut record)),
        Err(answer) => Err(answer),
    };
    if let Err(Answer { status, verdict }) = answer {
        say(client, status, &record, &verdict);
        linger(client, stop);
        record.verdict = verdict;
    }
    record
}

/// Dials what a request names, and passes on what both say.
fn pass_on(
    client: &TcpStream,
    request: Request,
    rest: Vec<u8>,
    policy: &Policy,
    stop: &Stop,
    record: &mut Connection,
) -> Result<(), Answer> {
    record.host.clone_from(&request.written);
    record.port = request.port;
    let is_tunnel = matches!(request.what, Wanted::Tunnel);
    let (up, down) = match request.what {
        Wanted::Tunnel => {
            let established = b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec();
            (Half::raw(rest), Half::raw(established))
        }
        Wanted::Answer { head, body, method } => {
            let unreadable = |what| Answer::refused(400, format!("no request that can be read: {what}"));
            (Half::request(head, &rest, body).map_err(unreadable)?, Half::answer(method))
        }
    };
    let addresses = policy.permitted(&request.host, request.port, stop)?;
    let (server, address) =
        connect(&addresses, request.port, stop, policy.times.connect).map_err(Answer::failed)?;
    record.address = Some(address);
    // Only makes it slower where it fails.
    let _slower = server.set_nodelay(true);
    let passed = relay(client, &server, up, down, stop, policy.times.idle);
    let Passed { sent, received, answered, problem } = passed;
    (record.sent, record.received) = (sent, received);
    if is_tunnel {
        return Ok(());
    }
    if answered == 0 {
        let why = problem.unwrap_or_else(|| "it ended the connection without an answer".to_owned());
        return Err(Answer::failed(Unreached { is_late: false, why }));
    }
    // The client may have been told more than it has read.
    let _gone = client.shutdown(Shutdown::Write);
    linger(client, stop);
    Ok(())
}

impl Policy {
    /// The addresses at which a request may be answered, each of them checked.
    fn permitted(&self, host: &Host, port: u16, stop: &Stop) -> Result<Vec<IpAddr>, Answer> {
        let reach = self.rules.iter().filter_map(|rule| rule.reach(host, port)).max();
        let Some(reach) = reach else { return Err(Answer::refused(403, self.missing(host, port))) };
        let addresses = match host {
            Host::Address(address) => vec![*address],
            Host::Name(_) if reach == Reach::Loopback => {
                vec![std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()]
            }
            Host::Name(name) => {
                self.lookups.addresses(name, stop, self.times.lookup).map_err(Answer::failed)?
            }
        };
        let (mut permitted, mut refused) = (Vec::new(), None);
        for address in addresses {
            match refusal(reach, address) {
                None => permitted.push(address),
                Some(what) => refused = refused.or(Some((address, what))),
            }
        }
        match refused {
            Some((address, what)) if permitted.is_empty() => {
                Err(Answer::refused(403, self.inside(host, port, address, what)))
            }
            _ => Ok(permitted),
        }
    }

    fn missing(&self, host: &Host, port: u16) -> String {
        let named = named(host, port);
        let profile = &self.profile;
        format!(
            "the profile `{profile}` does not name it; add `{named}` to its hosts, or give `--net {named}`"
        )
    }

    fn inside(&self, host: &Host, port: u16, address: IpAddr, what: &str) -> String {
        let named = if is_private(address) {
            format!("private:{}", named(host, port))
        } else {
            named(&Host::Address(address), port)
        };
        let profile = &self.profile;
        format!(
            "its name leads to {address}, {what}; where that is meant, add `{named}` to the hosts of the profile `{profile}`, or give `--net {named}`"
        )
    }
}

/// As a profile names it.
fn named(host: &Host, port: u16) -> String {
    if [80, 443].contains(&port) { host.to_string() } else { format!("{host}:{port}") }
}

/// The head of a request, and what came behind it.
fn read_head(client: &TcpStream, limit: Duration, stop: &Stop) -> Result<(Vec<u8>, Vec<u8>), Answer> {
    let until = Instant::now() + limit;
    let mut bytes = Vec::new();
    let mut buffer = [0; CHUNK];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match stop.wait(client, PollFlags::IN, left) {
            Ok(Woken::Ready) => {}
            Ok(Woken::TimeUp) => {
                let why = format!("no request within {} s", limit.as_secs());
                return Err(Answer::refused(408, why));
            }
            Ok(Woken::Stopped) => return Err(Answer::refused(503, "the command has ended")),
            Err(error) => return Err(Answer::refused(500, error.to_string())),
        }
        let length = match (&mut &*client).read(&mut buffer) {
            Ok(0) => return Err(Answer::refused(400, "it ended before its request did")),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(Answer::refused(400, error.to_string())),
        };
        let known = bytes.len();
        bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
        if let Some(end) = head::end(&bytes, known)? {
            let rest = bytes.split_off(end);
            return Ok((bytes, rest));
        }
    }
}

/// Answers in our own name. The reason is in the first line too: of an answer to `CONNECT` most clients show no more.
pub(super) fn say(client: &TcpStream, status: u16, record: &Connection, verdict: &ConnectionVerdict) {
    let (phrase, why) = match verdict {
        ConnectionVerdict::Refused(why) if status == 403 => ("Refused by the profile", why.as_str()),
        ConnectionVerdict::Refused(why) => ("Refused", why.as_str()),
        ConnectionVerdict::Failed(why) => ("Not reached", why.as_str()),
        ConnectionVerdict::Permitted => ("OK", ""),
    };
    let which = match record.host.as_str() {
        "" => String::new(),
        host => format!("`{host}:{}`: ", record.port),
    };
    let body = format!("portcullis: {which}{why}\n");
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // It fits into the socket's buffer, or the client has not read what came before.
    let _gone = (&mut &*client).write_all(text.as_bytes());
    let _gone = client.shutdown(Shutdown::Write);
}

/// Reads for a moment what a client still sends.
fn linger(client: &TcpStream, stop: &Stop) {
    let until = Instant::now() + LINGER_TIME;
    let mut buffer = [0; CHUNK];
    let mut taken = 0;
    while taken < LINGER_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(Woken::Ready) = stop.wait(client, PollFlags::IN, left) else { return };
        match (&mut &*client).read(&mut buffer) {
            Ok(length @ 1..) => taken += length,
            _ => return,
        }
    }
}
