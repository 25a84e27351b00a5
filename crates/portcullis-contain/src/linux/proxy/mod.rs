//! The only way from a command to the hosts that its profile names.
//!
//! The command has a network of its own, in which nothing is but a loopback, and no name server. The helper binds a
//! socket there and hands it out ([`handover`]); threads of the supervisor accept on it. `CONNECT` and plain requests
//! of HTTP/1 are read strictly ([`head`], [`framing`]), their host is held against the profile and its addresses
//! against what names may lead to ([`address`]), and exactly the address that was checked is dialled ([`dial`]).
//! Within a tunnel nothing is read. Each connection is recorded; all of them end with the command ([`stop`]).

mod dial;
mod framing;
mod handover;
mod head;
mod relay;
mod serve;
mod stop;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portcullis_core::host::{Host, HostRule};
use portcullis_core::observed::{Connection, ConnectionVerdict};
use portcullis_core::profile::{Network, Profile};
use rustix::event::PollFlags;

pub(super) use handover::Handover;

use crate::network::{Names, OnConnection};
use dial::Lookups;
use serve::{Policy, Times};
use stop::{Stop, Woken};

/// Where the proxy is found inside: the port that squid made usual.
pub(super) const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 3128);

/// Most connections at once. Each takes two descriptors and a thread.
const CONNECTIONS_MAX: usize = 256;
/// Most connections that are listed; more are counted.
const RECORDED_MAX: usize = 1024;
/// Bytes of stack of a connection's thread.
const STACK_BYTES: usize = 256 << 10;
/// How long is waited when no connection can be accepted, for want of descriptors.
const BREATH: Duration = Duration::from_millis(100);
/// How long connections are waited for when the command has ended.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long things may take. Servers that compute an answer, and streams of models, are silent for minutes.
const TIMES: Times = Times {
    head: Duration::from_secs(10),
    lookup: Duration::from_secs(15),
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(600),
};

/// The proxy of one command.
#[derive(Debug)]
pub(super) struct Proxy {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
    /// Stops everything when it is dropped.
    running: PipeWriter,
}

#[derive(Debug)]
struct Shared {
    policy: Policy,
    on_connection: OnConnection,
    record: Mutex<Record>,
    /// Told when a connection has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Record {
    open: usize,
    made: Vec<Connection>,
    left_out: u64,
}

impl Proxy {
    /// Serves what the helper hands out.
    ///
    /// # Errors
    /// There are no descriptors or threads.
    pub(super) fn begin(
        profile: &Profile,
        names: Arc<dyn Names>,
        on_connection: OnConnection,
        handover: Handover,
        helper: u32,
    ) -> io::Result<Self> {
        Self::start(profile, names, on_connection, TIMES, move |shared, stop| {
            match handover.receive(helper, stop) {
                Ok(Some(listener)) => accept(&listener, shared, stop),
                Ok(None) => {}
                Err(error) => shared.conclude(failed(&format!("the proxy's socket: {error}")), false),
            }
        })
    }

    fn start(
        profile: &Profile,
        names: Arc<dyn Names>,
        on_connection: OnConnection,
        times: Times,
        work: impl FnOnce(&Arc<Shared>, &Stop) + Send + 'static,
    ) -> io::Result<Self> {
        let policy = Policy {
            profile: profile.name.clone(),
            rules: rules(profile),
            lookups: Lookups::new(names),
            times,
        };
        let (record, ended) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { policy, on_connection, record, ended });
        let (stop, running) = Stop::pair()?;
        let inner = Arc::clone(&shared);
        let accepting = thread::Builder::new().name("proxy".to_owned()).spawn(move || work(&inner, &stop))?;
        Ok(Self { shared, accepting, running })
    }

    /// Ends everything, and says which connections there were, and how many more.
    pub(super) fn finish(self) -> (Vec<Connection>, u64) {
        drop(self.running);
        // A thread that panicked has ended too.
        let _panicked = self.accepting.join();
        let until = Instant::now() + PATIENCE;
        let mut record = self.shared.record();
        while record.open > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.ended.wait_timeout(record, left);
            record = waited.map_or_else(|error| error.into_inner().0, |(record, _)| record);
        }
        let unfinished = u64::try_from(record.open).unwrap_or(u64::MAX);
        (std::mem::take(&mut record.made), record.left_out.saturating_add(unfinished))
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a connection, which was open until now or never.
    fn conclude(&self, connection: Connection, was_open: bool) {
        self.on_connection.tell(&connection);
        let mut record = self.record();
        if record.made.len() < RECORDED_MAX {
            record.made.push(connection);
        } else {
            record.left_out = record.left_out.saturating_add(1);
        }
        record.open = record.open.saturating_sub(usize::from(was_open));
        self.ended.notify_all();
    }
}

/// Accepts until the command has ended.
fn accept(listener: &TcpListener, shared: &Arc<Shared>, stop: &Stop) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while let Ok(Woken::Ready | Woken::TimeUp) = stop.wait(listener, PollFlags::IN, TIMES.idle) {
        match listener.accept() {
            Ok((client, _)) => admit(client, shared, stop),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => {
                if let Ok(Woken::Stopped) = stop.wait(stop.as_fd(), PollFlags::IN, BREATH) {
                    return;
                }
            }
        }
    }
}

/// Serves a connection on a thread of its own, if there are not too many.
fn admit(client: TcpStream, shared: &Arc<Shared>, stop: &Stop) {
    let is_full = {
        let mut record = shared.record();
        let is_full = record.open >= CONNECTIONS_MAX;
        record.open += usize::from(!is_full);
        is_full
    };
    if is_full {
        let refused = failed(&format!("more than {CONNECTIONS_MAX} connections at once"));
        // It would wait for no client.
        let _gone = client.set_nonblocking(true);
        serve::say(&client, 503, &refused, &refused.verdict);
        return shared.conclude(refused, false);
    }
    let (inner, stop) = (Arc::clone(shared), stop.clone());
    let work = move || {
        let connection = serve::serve(&client, &inner.policy, &stop);
        drop(client);
        inner.conclude(connection, true);
    };
    let spawned = thread::Builder::new().name("connection".to_owned()).stack_size(STACK_BYTES).spawn(work);
    if let Err(error) = spawned {
        shared.conclude(failed(&error.to_string()), true);
    }
}

/// A connection whose request was not read.
fn failed(why: &str) -> Connection {
    Connection {
        host: String::new(),
        port: 0,
        address: None,
        sent: 0,
        received: 0,
        verdict: ConnectionVerdict::Failed(why.to_owned()),
    }
}

/// The profile's rules. It was checked: one that cannot be read names nothing.
fn rules(profile: &Profile) -> Vec<HostRule> {
    match &profile.network {
        Network::Hosts(hosts) => hosts.iter().filter_map(|host| HostRule::parse(host).ok()).collect(),
        _ => Vec::new(),
    }
}

/// Variables by which programs find the proxy. What is on the command's own loopback they reach without it, unless
/// the profile names it: then the machine's is meant.
pub(super) fn variables(profile: &Profile) -> Vec<(OsString, OsString)> {
    const PROXY: &[&str] = &[
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "npm_config_proxy",
        "npm_config_https_proxy",
    ];
    const NO_PROXY: &[&str] = &["NO_PROXY", "no_proxy", "npm_config_noproxy"];
    if !matches!(profile.network, Network::Hosts(_)) {
        return Vec::new();
    }
    let rules = rules(profile);
    let is_named = |text: &str| {
        let host = Host::parse(text).ok();
        rules.iter().any(|rule| rule.host().is_some() && rule.host() == host.as_ref())
    };
    let own = [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")];
    let own: Vec<&str> = own.into_iter().filter(|(host, _)| !is_named(host)).map(|(_, text)| text).collect();
    let proxy = format!("http://{}:{}", ADDRESS.0, ADDRESS.1);
    let own = own.join(",");
    // Node obeys the variables only where it is told to, from version 24 on.
    let node = ("NODE_USE_ENV_PROXY", "1");
    let proxy = PROXY.iter().map(|name| (*name, proxy.as_str()));
    let all = proxy.chain(NO_PROXY.iter().map(|name| (*name, own.as_str()))).chain([node]);
    all.map(|(name, value)| (name.into(), value.into())).collect()
}
