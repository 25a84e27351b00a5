//! The daemon's own MCP endpoint: one address, with the gate in front of the servers that the bundle names.
//!
//! To each client the endpoint is one server. Behind it stands each server of the bundle with a gate of its own, the same
//! as `portcullis mcp` puts there; all of them share the client's run. With more than one server, names of tools and prompts
//! begin with the server's prefix, and what all servers are asked has one answer ([`merge`]).
//!
//! Up to 2025-11-25 a client has a session, which it names by an id that only it knows. From 2026-07-28 there are none:
//! then a client is a principal with the client's name, and what it may tell apart by itself.

mod hearing;
mod merge;
mod owner;
mod routes;
mod server;
mod session;
mod standing;
mod streams;
mod subscriptions;
mod together;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_core::bundle::{Bundle, McpServer};
use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_session::credentials::Identity;
use portcullis_session::gate::Gate as Runs;
use portcullis_session::surface::{Local, SurfaceError};
use portcullis_wire::mcp::translate::Unmatched;
use tokio::sync::mpsc;

pub(crate) use owner::Owner;
pub(crate) use session::{Said, Session};
pub(crate) use streams::{Event, EventId, Reading};

use super::GateError;
use crate::home::Home;
use server::{For, Server};
use standing::Standing;

/// Sessions at once, of all clients and of one principal.
const SESSIONS_MAX: usize = 4096;
/// Fewer of one principal than runs, so that its hooks and other surfaces have one.
pub(crate) const SESSIONS_OF_PRINCIPAL_MAX: usize = 1000;
/// How long a client may do nothing before its session ends, and one that has not come back with the id that it was given.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
const UNKNOWN_MAX: Duration = Duration::from_secs(60);
/// How often sessions are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(20);
/// Lines of gates that wait to be passed on.
const LINES_MAX: usize = 64;
/// Random bytes of a session's id.
const ID_BYTES: usize = 32;

/// Why a client cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The bundle has no servers, or not that one.
    #[error("the bundle has no MCP server{}: add `[server.NAME]` with a `command` or a `url`", .0.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default())]
    NoServer(Option<String>),
    /// A server cannot be started.
    #[error("the MCP server `{name}` is not available: {why}")]
    Server {
        /// Its name in the bundle.
        name: String,
        /// Why.
        why: String,
    },
    /// The run cannot be opened.
    #[error(transparent)]
    Run(#[from] SurfaceError),
    /// The run that connections share is that of a token with other roles.
    #[error(
        "the run of this `Portcullis-Session` was opened with a token that has other roles; end its sessions, or send another name"
    )]
    OtherRoles,
    /// Too many are open.
    #[error("{0} MCP sessions are open already; end some of them")]
    Full(usize),
    /// The system gives no random numbers.
    #[error("no id for the session can be made")]
    NoRandomness,
}

/// The clients of the endpoint.
#[derive(Debug, Default)]
pub(crate) struct Endpoint {
    sessions: Mutex<HashMap<Key, Arc<Session>>>,
    standing: Arc<Standing>,
    /// Held while a session without an id is opened, so that one client gets one.
    opening: tokio::sync::Mutex<()>,
}

/// What a session is found by: digests, so that a lookup tells nothing by the time it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(Digest);

/// Who opens a session, and for what.
#[derive(Debug)]
pub(crate) struct Opening<'o> {
    pub(crate) home: &'o Home,
    pub(crate) local: &'o Local,
    pub(crate) runs: &'o Arc<Runs>,
    pub(crate) identity: &'o Identity,
    /// The client's own name for its session, by which several connections share a run.
    pub(crate) named: Option<&'o str>,
    /// One server was asked for by its name, and stands for itself.
    pub(crate) alone: bool,
    /// The servers of the bundle.
    pub(crate) servers: Vec<(&'o str, &'o McpServer)>,
}

impl Key {
    /// The key of a session with an id.
    pub(crate) fn of_id(id: &str) -> Self {
        Self(DigestBuilder::new("portcullis/mcp-session/v1").part(id.as_bytes()).finish())
    }

    /// The key of a client without one.
    pub(crate) fn of_client(owner: &Owner, client: &str, named: Option<&str>, servers: &str) -> Self {
        let digest = DigestBuilder::new("portcullis/mcp-client/v2").part(owner.digest().as_bytes());
        let digest = digest.part(client.as_bytes()).part(servers.as_bytes());
        Self(digest.part(named.unwrap_or_default().as_bytes()).finish())
    }
}

impl Endpoint {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of an owner.
    pub(crate) fn find(&self, key: Key, owner: &Owner) -> Option<Arc<Session>> {
        let session = self.sessions().get(&key).cloned()?;
        (session.owner == *owner).then(|| {
            session.came_back();
            session
        })
    }

    /// Opens a session with an id, which is returned.
    pub(crate) async fn open(&self, of: &Opening<'_>) -> Result<(String, Arc<Session>), OpenError> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).map_err(|_| OpenError::NoRandomness)?;
        let id = Digest::from_bytes(random).to_string();
        let key = Key::of_id(&id);
        let session = self.start(of, key, false).await?;
        Ok((id, session))
    }

    /// The session of a client without one.
    pub(crate) async fn client(&self, of: &Opening<'_>, key: Key) -> Result<Arc<Session>, OpenError> {
        let owner = Owner::of(of.identity);
        if let Some(session) = self.find(key, &owner) {
            return Ok(session);
        }
        let _alone = self.opening.lock().await;
        match self.find(key, &owner) {
            Some(session) => Ok(session),
            None => self.start(of, key, true).await,
        }
    }

    async fn start(&self, of: &Opening<'_>, key: Key, stateless: bool) -> Result<Arc<Session>, OpenError> {
        self.sweep();
        let owner = Owner::of(of.identity);
        self.check_room(owner.name())?;
        let (lines, relayed) = mpsc::channel(LINES_MAX);
        let named = of.named.map_or_else(|| format!("mcp-{}", key.0), |named| format!("mcp:{named}"));
        let single = of.servers.len() == 1;
        let start = For {
            home: of.home,
            local: of.local,
            runs: of.runs,
            identity: of.identity,
            owner: &owner,
            session: &named,
            lines: &lines,
            // Of several servers a client has to reach each in the same way.
            unmatched: if single { Unmatched::Refuse } else { Unmatched::LeaveOut },
            standing: &self.standing,
        };
        let (mut servers, mut not_started) = (Vec::with_capacity(of.servers.len()), None);
        for (name, server) in &of.servers {
            let prefix = match (single, &server.prefix) {
                (true, None) => String::new(),
                _ if of.alone => String::new(),
                _ => server.prefix(name),
            };
            match Server::start(&start, servers.len(), name, server, prefix).await {
                Ok(started) => servers.push(started),
                // The others go on without it.
                Err(OpenError::Server { name, why }) => {
                    self.standing.is_amiss(&name, &format!("is not available: {why}"));
                    not_started = Some(OpenError::Server { name, why });
                }
                Err(error) => {
                    servers.iter().for_each(Server::end);
                    return Err(error);
                }
            }
        }
        if let Some(error) = not_started.filter(|_| servers.is_empty()) {
            return Err(error);
        }
        let session = Arc::new(Session::new(owner, stateless, servers, Arc::clone(&self.standing)));
        tokio::spawn(hearing::relay(Arc::downgrade(&session), relayed));
        self.sessions().insert(key, Arc::clone(&session));
        Ok(session)
    }

    /// What is wrong with the servers of a bundle, as clients found.
    pub(crate) fn amiss(&self, bundle: &Bundle) -> Vec<String> {
        self.standing.amiss(|name| bundle.servers.contains_key(name))
    }

    fn check_room(&self, principal: &str) -> Result<(), OpenError> {
        let sessions = self.sessions();
        let own = sessions.values().filter(|session| session.owner.name() == principal).count();
        match (sessions.len() >= SESSIONS_MAX, own >= SESSIONS_OF_PRINCIPAL_MAX) {
            (true, _) => Err(OpenError::Full(SESSIONS_MAX)),
            (_, true) => Err(OpenError::Full(SESSIONS_OF_PRINCIPAL_MAX)),
            _ => Ok(()),
        }
    }

    /// Ends sessions that nobody uses, for as long as the daemon lives.
    pub(crate) async fn keep_sweeping(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.sweep();
        }
    }

    /// Ends sessions that nobody has used for long.
    fn sweep(&self) {
        self.sessions().retain(|_, session| {
            let most = if session.is_known_to_client() { IDLE_MAX } else { UNKNOWN_MAX };
            let stays = session.idle_for().is_none_or(|idle| idle < most);
            if !stays {
                session.end();
            }
            stays
        });
    }

    /// Ends a session. False if there is none of this owner.
    pub(crate) fn end(&self, key: Key, owner: &Owner) -> bool {
        let mut sessions = self.sessions();
        match sessions.get(&key) {
            Some(session) if session.owner == *owner => {
                session.end();
                sessions.remove(&key);
                true
            }
            _ => false,
        }
    }

    /// Ends all sessions, because the daemon ends.
    pub(crate) fn end_all(&self) {
        self.sessions().drain().for_each(|(_, session)| session.end());
    }
}
