//! One client of the endpoint: its servers, each behind a gate of its own, and what it is answered.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_wire::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, error_response, peek,
};
use portcullis_wire::mcp::headers::Repeated;
use portcullis_wire::mcp::replace::{
    CANCELLED_ID, ID, NAME, PROGRESS_TOKEN, PROMPT_REFERENCE, Path, RESOURCE_REFERENCE, TASK, URI,
    replace_at, value_at,
};
use portcullis_wire::mcp::{CANCELLED, INITIALIZE, INITIALIZED, SUBSCRIPTIONS_LISTEN};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::merge::made;
use super::owner::Owner;
use super::routes::{Open, Routes};
use super::server::Server;
use super::standing::Standing;
use super::streams::{EventId, Reading, Streams};
use super::subscriptions::Subscriptions;
use super::together::Late;
use crate::mcp::upstream;

/// For how long what a server says of a request that its client gave up is still told, such as its progress.
const GIVEN_UP_LASTS: Duration = Duration::from_secs(15);

/// A client and its servers.
#[derive(Debug)]
pub(crate) struct Session {
    /// Whose it is.
    pub(super) owner: Owner,
    /// It is of a revision without sessions, in which a request is given up with its stream.
    pub(crate) stateless: bool,
    pub(super) servers: Vec<Server>,
    state: Mutex<State>,
    used: Mutex<Instant>,
    /// A server has answered something with a result.
    pub(super) served: AtomicBool,
    /// The client has come back, and so knows how it is called.
    came_back: AtomicBool,
    pub(super) ended: AtomicBool,
    pub(super) standing: Arc<Standing>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) routes: Routes,
    pub(super) streams: Streams,
    /// The revision that the client was told.
    pub(super) version: Option<String>,
    /// Servers that have introduced themselves, where there are several.
    pub(super) introduced: BTreeSet<usize>,
    /// The client's word that it knows them, for those that introduce themselves late.
    pub(super) initialized: Option<Vec<u8>>,
    pub(super) late: Late,
    pub(super) subscriptions: Subscriptions,
}

/// What becomes of a message of the client.
#[derive(Debug)]
pub(crate) enum Said {
    /// It was passed on and is not answered.
    Accepted,
    /// It is answered on a stream.
    Answered(Reading),
    /// It went no further.
    Refused(Vec<u8>),
}

impl Session {
    pub(super) fn new(owner: Owner, stateless: bool, servers: Vec<Server>, standing: Arc<Standing>) -> Self {
        Self {
            owner,
            stateless,
            servers,
            state: Mutex::default(),
            used: Mutex::new(Instant::now()),
            served: AtomicBool::new(false),
            came_back: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            standing,
        }
    }

    /// Whether nothing has come of it so far and nothing is under way, as where a client finds out that its servers speak an
    /// earlier revision.
    pub(crate) fn is_of_no_use(&self) -> bool {
        !self.served.load(Ordering::SeqCst) && self.idle_for().is_some()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that the client was told, once it was.
    pub(crate) fn version(&self) -> Option<String> {
        self.state().version.clone()
    }

    /// Whether the client knows how the session is called, if it has to: the answer that says so may reach nobody.
    pub(super) fn is_known_to_client(&self) -> bool {
        self.stateless || self.came_back.load(Ordering::SeqCst)
    }

    /// The client uses the session.
    pub(super) fn came_back(&self) {
        self.came_back.store(true, Ordering::SeqCst);
        self.touch();
    }

    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has used it; `None` while something is open.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let state = self.state();
        let idle = state.routes.is_idle() && !state.streams.are_read();
        idle.then(|| self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// One server stands for itself: names and introductions are its own.
    pub(super) fn is_single(&self) -> bool {
        matches!(self.servers.as_slice(), [server] if server.prefix.is_empty())
    }

    /// The arguments of a tool that headers have to repeat, by what its server last listed.
    pub(crate) fn repeated(&self, tool: &str) -> Vec<Repeated> {
        let server = self.servers.iter().find(|server| tool.starts_with(&server.prefix));
        server.map_or_else(Vec::new, |server| {
            server.arguments.of(tool.strip_prefix(server.prefix.as_str()).unwrap_or(tool))
        })
    }

    /// Takes a message of the client.
    pub(crate) async fn say(self: &Arc<Self>, line: &[u8]) -> Said {
        self.touch();
        let message = match peek(line) {
            Ok(message) => message,
            Err(error) => return refused(None, error.code(), &error.to_string()),
        };
        match message {
            Message::Request { id_raw, method, .. } => {
                let id = id_raw.to_owned();
                match self.request(line, &id, &method).await {
                    Ok(reading) => Said::Answered(reading),
                    Err(Refused { code, why }) => refused(Some(&id), code, &why),
                }
            }
            // Without sessions, closing the stream gives a request up: several programs may be one client, each with this id.
            Message::Notification { method, .. } if method == CANCELLED && self.stateless => Said::Accepted,
            Message::Notification { method, params } if method == CANCELLED => {
                let id = params.and_then(|_| value_at(line, CANCELLED_ID).ok().flatten());
                let numbers = id.map(|id| self.state().routes.given_up(id)).unwrap_or_default();
                for number in &numbers {
                    self.give_up(*number, line).await;
                }
                let session = Arc::downgrade(self);
                tokio::spawn(async move {
                    tokio::time::sleep(GIVEN_UP_LASTS).await;
                    if let Some(session) = session.upgrade() {
                        numbers.into_iter().for_each(|number| session.forget(number));
                    }
                });
                Said::Accepted
            }
            Message::Notification { method, .. } => {
                let spoken_to: Vec<usize> = {
                    let mut state = self.state();
                    if method == INITIALIZED {
                        state.initialized = Some(line.to_vec());
                    }
                    (0..self.servers.len()).filter(|at| self.speaks(&state, *at)).collect()
                };
                let servers = spoken_to.into_iter().filter_map(|at| self.servers.get(at));
                for server in servers.filter(|server| server.is_alive()) {
                    let _ = upstream::message(&server.gate, line).await;
                }
                Said::Accepted
            }
            Message::Response { .. } => self.answer(line).await,
            Message::Batch(_) => refused(None, INVALID_REQUEST, "send each message in a request of its own"),
        }
    }

    async fn request(self: &Arc<Self>, line: &[u8], id: &RawValue, method: &str) -> Result<Reading, Refused> {
        if !self.is_single() {
            if let Some(made) = made(method) {
                return self.ask_all(line, id, method, made).await;
            }
            if method == SUBSCRIPTIONS_LISTEN && self.stateless {
                return self.listen_to_all(line, id).await;
            }
        }
        let (server, changes) = self.place(line, method)?;
        let to = self.servers.get(server).filter(|server| server.is_alive());
        if let Some(to) = to.filter(|_| method != INITIALIZE && !self.speaks(&self.state(), server)) {
            let name = &to.name;
            let why = match self.standing.of(name) {
                // In this session it has introduced itself with an error, and is not asked again.
                Some(amiss) if !self.state().routes.is_asked(server) => {
                    format!("the server `{name}` {amiss}; once it is mended, open another session")
                }
                _ => format!("the server `{name}` has not answered `initialize` yet; call it later"),
            };
            return Err(Refused { code: INTERNAL_ERROR, why });
        }
        let token = value_at(line, PROGRESS_TOKEN).map_err(Refused::unreadable)?.map(ToOwned::to_owned);
        let reading = self.state().streams.open();
        let stream = reading.stream;
        let (id, method, bytes) = (id.to_owned(), method.to_owned(), line.len());
        let open = Open { id, token, stream, server, method, bytes, given_up: false, whole: None };
        if let Err(refused) = self.ask(line, open, &changes).await {
            self.state().streams.drop_stream(stream);
            return Err(refused);
        }
        Ok(reading)
    }

    /// Asks one server.
    pub(super) async fn ask(
        &self,
        line: &[u8],
        open: Open,
        changes: &[(Path, String)],
    ) -> Result<(), Refused> {
        let index = open.server;
        let server = self.servers.get(index).filter(|server| server.is_alive());
        let server = server.ok_or_else(|| Refused {
            code: INTERNAL_ERROR,
            why: "the server has ended; open another session".to_owned(),
        })?;
        let number = self
            .state()
            .routes
            .open(open)
            .map_err(|full| Refused { code: INVALID_REQUEST, why: full.to_string() })?;
        let text = number.to_string();
        let own = [(ID, text.as_str()), (PROGRESS_TOKEN, text.as_str())];
        let changes: Vec<(Path, &str)> =
            own.into_iter().chain(changes.iter().map(|(path, new)| (*path, new.as_str()))).collect();
        let asked = match replace_at(line, &changes) {
            Ok(asked) => asked,
            Err(error) => {
                self.state().routes.answered(number);
                return Err(Refused::unreadable(error));
            }
        };
        if upstream::message(&server.gate, &asked).await.is_err() {
            self.state().routes.answered(number);
            return Err(Refused { code: INTERNAL_ERROR, why: "the server has gone".to_owned() });
        }
        Ok(())
    }

    /// The server that a request is for, and what is different there.
    fn place(&self, line: &[u8], method: &str) -> Result<(usize, Vec<(Path, String)>), Refused> {
        if self.is_single() {
            return Ok((0, Vec::new()));
        }
        let text = |path: Path| -> Result<Option<String>, Refused> {
            let found = value_at(line, path).map_err(Refused::unreadable)?;
            Ok(found.and_then(|raw| serde_json::from_str(raw.get()).ok()))
        };
        let named = |path: Path, name: &str| {
            let found = self.servers.iter().position(|server| name.starts_with(&server.prefix));
            let index = found.ok_or_else(|| Refused::params(format!("no server has `{}`", shown(name))))?;
            let prefix = self.servers.get(index).map_or(0, |server| server.prefix.len());
            let rest = name.get(prefix..).unwrap_or_default();
            Ok((index, vec![(path, Value::from(rest).to_string())]))
        };
        let of_resource = |uri: &str| {
            let found = self.state().routes.server_of_resource(uri);
            found.map(|index| (index, Vec::new())).ok_or_else(|| {
                Refused::params(format!(
                    "no server has listed the resource `{}`; list the resources first",
                    shown(uri)
                ))
            })
        };
        match method {
            "tools/call" | "prompts/get" => {
                let name = text(NAME)?.ok_or_else(|| Refused::params("`params.name` is missing".to_owned()))?;
                named(NAME, &name)
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                of_resource(&text(URI)?.ok_or_else(|| Refused::params("`params.uri` is missing".to_owned()))?)
            }
            "completion/complete" => match (text(PROMPT_REFERENCE)?, text(RESOURCE_REFERENCE)?) {
                (Some(name), _) => named(PROMPT_REFERENCE, &name),
                (None, Some(uri)) => of_resource(uri.split('{').next().unwrap_or_default()),
                (None, None) => Err(Refused::params("`params.ref` names neither a prompt nor a resource".to_owned())),
            },
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => {
                let task = text(TASK)?.unwrap_or_default();
                let found = self.state().routes.server_of_task(&task);
                let unknown = || Refused::params(format!("no call of this session goes on as the task `{}`", shown(&task)));
                Ok((found.ok_or_else(unknown)?, Vec::new()))
            }
            _ => Err(Refused {
                code: METHOD_NOT_FOUND,
                why: "the gate does not know which of its servers this method is for; use the address of one of them"
                    .to_owned(),
            }),
        }
    }

    /// The client answers what a server asked.
    async fn answer(&self, line: &[u8]) -> Said {
        let id = value_at(line, ID).ok().flatten();
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        let question = id.and_then(|id| self.state().routes.question(&id));
        let Some((index, own)) = question else {
            return refused(None, INVALID_REQUEST, "this answers nothing that was asked in this session");
        };
        let Ok(answer) = replace_at(line, &[(ID, own.get())]) else {
            return refused(None, INVALID_REQUEST, "the answer cannot be read");
        };
        if let Some(server) = self.servers.get(index) {
            let _ = upstream::message(&server.gate, &answer).await;
        }
        Said::Accepted
    }

    /// The client gives up a request.
    pub(super) async fn give_up(&self, number: u64, line: &[u8]) {
        let server = self.state().routes.get(number).map(|open| open.server);
        let Some(server) = server.and_then(|index| self.servers.get(index)) else { return };
        if let Ok(told) = replace_at(line, &[(CANCELLED_ID, &number.to_string())]) {
            let _ = upstream::message(&server.gate, &told).await;
        }
    }

    /// Nobody waits for an answer to a request, and no server has given one.
    fn forget(&self, number: u64) {
        let mut state = self.state();
        let Some(open) = state.routes.answered(number) else { return };
        state.streams.drop_stream(open.stream);
        state.routes.leave_wholes(open.stream);
    }

    /// The client no longer reads a stream: without sessions, that gives up what is asked on it.
    pub(crate) async fn left(&self, stream: u64) {
        self.touch();
        if !self.stateless {
            return;
        }
        let given_up = {
            let mut state = self.state();
            state.streams.drop_stream(stream);
            Self::subscription_left(&mut state, stream);
            state.routes.leave_wholes(stream);
            state.routes.of_stream(stream)
        };
        for (number, _) in given_up {
            let line = json!({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": number}});
            self.give_up(number, line.to_string().as_bytes()).await;
            self.state().routes.answered(number);
        }
    }

    /// Reads the stream of messages that belong to no request, or the rest of one.
    pub(crate) fn read(&self, after: Option<EventId>) -> Option<Reading> {
        self.touch();
        self.state().streams.read(after)
    }

    /// The client gets the events of a stream with ids from now on; the place of its start.
    pub(crate) fn has_ids(&self, stream: u64) -> EventId {
        let mut state = self.state();
        state.streams.has_ids(stream);
        state.streams.start_of(stream)
    }

    /// The client has gone: its servers are left, and what is open is abandoned.
    pub(super) fn end(&self) {
        if !self.ended.swap(true, Ordering::SeqCst) {
            self.servers.iter().for_each(Server::end);
        }
    }
}

/// Why a request goes no further.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: i64,
    pub(super) why: String,
}

impl Refused {
    fn params(why: String) -> Self {
        Self { code: INVALID_PARAMS, why }
    }

    pub(super) fn unreadable(error: impl std::fmt::Display) -> Self {
        Self { code: INVALID_REQUEST, why: error.to_string() }
    }
}

fn refused(id: Option<&RawValue>, code: i64, why: &str) -> Said {
    Said::Refused(error_response(id, code, why, None))
}

/// What is repeated of a name that the client gave.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
