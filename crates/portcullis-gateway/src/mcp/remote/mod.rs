//! A server behind an address: MCP's Streamable HTTP, spoken as a client.
//!
//! To the gate, the server is what every server is: lines in, lines out. Each line of the gate is posted, and each
//! message of the answers becomes a line. Nothing is posted twice, except to a server that has said that it did not take
//! it: it does not know the session, misses a header, or sends its clients from `/mcp` to `/mcp/`.
//!
//! Both generations of the transport are spoken, by what each message says of itself: with sessions, a stream of the
//! server's own messages and streams that can be taken up again (up to 2025-11-25), or without (from 2026-07-28), where a
//! request is cancelled by closing its connection.
//!
//! What the server says outside of JSON-RPC, such as the text of an HTTP error, is nobody's to read: it has not been judged,
//! so the client is told of it in the gate's own words.

mod answer;
mod connections;
mod failure;
mod listening;
mod repeated;
pub(super) mod request;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode};
use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{Id, Message, peek};
use portcullis_wire::mcp::{CANCELLED, INITIALIZE, INITIALIZED, SUBSCRIPTIONS_LISTEN, cancelled_request};
use tokio::io::{AsyncRead, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::timeout;
use url::Url;

use super::Process;
use super::gate::{Gate, LineWriter, Reader, is_blank};
use crate::home::Home;
use crate::origin::Origin;
use crate::upstream_auth::{AuthError, Authorization, Retry, UpstreamAuth, login_for};
use answer::Pending;
use connections::{Answered, Connections};
use failure::Failure;
use request::{Mirrored, RepeatedArguments, Target};
use session::{Session, session_id};

/// How long a server may say nothing while it works on a request, unless the user says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// How long a notification may take to be accepted, before the next message is sent.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(10);
/// How long the stream of the server's own messages may take to be opened, before the next message is sent.
const LISTENS_WITHIN: Duration = Duration::from_secs(1);
/// How long open requests may take once the client has gone.
const LAST_ANSWERS: Duration = Duration::from_secs(4);
/// Redirections within one origin that are followed.
const REDIRECTS_MAX: usize = 3;
/// Bytes of lines that wait between the gate and here, in each direction.
const PIPE_BYTES: usize = 64 * 1024;

/// Where a remote server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteServer {
    url: Url,
    /// How long it may say nothing while it works on a request.
    pub patience: Duration,
}

impl RemoteServer {
    /// A server at an address.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn new(address: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{}` is not an address of a server: {why}", address.escape_debug());
        let scheme = "it begins with neither `https://` nor `http://` and a host";
        let url = Url::parse(address).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => wrong(scheme),
            error => wrong(&error.to_string()),
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the address has a user or a password, which would be in every record; give credentials apart from it".to_owned());
        }
        if url.fragment().is_some() {
            return Err(wrong("it has a fragment"));
        }
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong(scheme));
        }
        Ok(Self { url, patience: PATIENCE })
    }

    /// The whole address.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url.as_str()
    }

    /// The address without its query, which may hold a secret: which server it is, across runs.
    #[must_use]
    pub fn known_as(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    /// What the server is called until it introduces itself.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// The gate's end of a connection to a remote server.
#[derive(Debug)]
pub(super) struct Pipe {
    /// What the gate writes.
    pub(super) input: DuplexStream,
    /// What the gate reads.
    pub(super) output: DuplexStream,
    /// The other end.
    pub(super) far: FarEnd,
}

/// The server's end, until the gate is there that it belongs to.
#[derive(Debug)]
pub(super) struct FarEnd {
    from_gate: DuplexStream,
    to_gate: DuplexStream,
}

/// A connection to a remote server; nothing is sent yet.
pub(super) fn pipe() -> Pipe {
    let (input, from_gate) = tokio::io::duplex(PIPE_BYTES);
    let (to_gate, output) = tokio::io::duplex(PIPE_BYTES);
    Pipe { input, output, far: FarEnd { from_gate, to_gate } }
}

/// A server that is spoken to.
#[derive(Debug)]
pub(super) struct Remote {
    ended: oneshot::Receiver<()>,
    pump: JoinHandle<()>,
}

/// What all requests of one connection share.
#[derive(Debug)]
struct Shared {
    gate: Arc<Gate>,
    connections: Arc<Connections>,
    target: Mutex<Target>,
    to_gate: LineWriter,
    arguments: RepeatedArguments,
    session: Mutex<Session>,
    /// Held while a session is opened again.
    reopening: tokio::sync::Mutex<()>,
    /// Told once it is.
    reopened: tokio::sync::Notify,
    patience: Duration,
    auth: UpstreamAuth,
}

/// One message that is posted.
#[derive(Debug, Clone)]
struct Sent {
    body: Bytes,
    mirrored: Option<Mirrored>,
    /// The requests in it.
    asked: Vec<Id>,
    method: Option<String>,
}

impl Remote {
    /// Begins to speak to the server.
    ///
    /// # Errors
    /// The system trusts no certificate authorities, or the server's name is none that a credential could have.
    pub(super) fn start(
        server: &RemoteServer,
        (home, name): (&Home, &str),
        gate: Arc<Gate>,
        far: FarEnd,
    ) -> Result<Self, String> {
        let name = login_for(home, name, &server.url)?;
        let auth = UpstreamAuth::new(home, &name, server.url.clone()).map_err(|error| error.to_string())?;
        let origin = Origin::of(&server.url)?;
        if !origin.is_private() {
            tracing::warn!(
                "what is said to `{}` goes over the network in clear: use https",
                origin.authority()
            );
        }
        let path = match server.url.query() {
            None => server.url.path().to_owned(),
            Some(query) => format!("{}?{query}", server.url.path()),
        };
        let target = Target { authority: origin.authority().to_owned(), path };
        let shared = Arc::new(Shared {
            gate,
            connections: Arc::new(Connections::new(origin)),
            target: Mutex::new(target),
            to_gate: LineWriter::new(far.to_gate),
            arguments: RepeatedArguments::default(),
            session: Mutex::default(),
            reopening: tokio::sync::Mutex::default(),
            reopened: tokio::sync::Notify::new(),
            patience: server.patience,
            auth,
        });
        let (ending, ended) = oneshot::channel();
        let pump = tokio::spawn(async move {
            pump(shared, far.from_gate).await;
            drop(ending);
        });
        Ok(Self { ended, pump })
    }
}

impl Process for Remote {
    async fn ended(&mut self) -> String {
        let _ = (&mut self.ended).await;
        "the connection was closed".to_owned()
    }

    async fn kill(&mut self) {
        self.pump.abort();
    }
}

/// What is under way.
#[derive(Debug, Default)]
struct Posting {
    tasks: JoinSet<()>,
    /// Requests of the revision in which closing the connection cancels.
    cancellable: HashMap<Id, AbortHandle>,
    /// The stream of the server's own messages.
    listening: Option<AbortHandle>,
    /// Streams that are open for as long as they are listened to.
    subscriptions: Vec<AbortHandle>,
}

/// Posts lines until the gate closes its end.
async fn pump(shared: Arc<Shared>, mut from_gate: impl AsyncRead + Unpin) {
    let mut splitter = LineSplitter::default();
    let mut reader = Reader::default();
    let mut posting = Posting::default();
    while let Ok(read @ [_, ..]) = reader.read(&mut from_gate).await {
        splitter.feed(read);
        while let Some(line) = splitter.next_line() {
            match line {
                Ok(line) if is_blank(line) => {}
                // Apart, so that a gate that says nothing holds no room for it.
                Ok(line) => Box::pin(post(&shared, &mut posting, Bytes::copy_from_slice(line))).await,
                Err(error) => tracing::warn!("a message to the server was dropped: {error}"),
            }
        }
    }
    posting.listening.iter().chain(&posting.subscriptions).for_each(AbortHandle::abort);
    // What the server still works on is worth recording.
    let answers = async { while posting.tasks.join_next().await.is_some() {} };
    let _ = timeout(LAST_ANSWERS, answers).await;
    posting.tasks.shutdown().await;
    Box::pin(shared.take_leave()).await;
    shared.to_gate.close().await;
}

/// Posts one message. A request is waited for beside the others, anything else before the next message.
async fn post(shared: &Arc<Shared>, posting: &mut Posting, body: Bytes) {
    while posting.tasks.try_join_next().is_some() {}
    posting.cancellable.retain(|_, task| !task.is_finished());
    let Ok(message) = peek(&body) else { return };
    let version = request::stateless_version(&message);
    if let Message::Notification { method, params } = &message
        && method == CANCELLED
        && let Some(task) = cancelled_request(*params).and_then(|id| posting.cancellable.remove(&id))
    {
        task.abort();
        return;
    }
    let asked = request::asked(&message);
    let method = match &message {
        Message::Request { method, .. } | Message::Notification { method, .. } => Some(method.to_string()),
        Message::Response { .. } | Message::Batch(_) => None,
    };
    let mirrored = version.map(|version| Mirrored::of(&message, &version, &shared.arguments)).transpose();
    let sent = match mirrored {
        Ok(mirrored) => Sent { body: body.clone(), mirrored, asked, method },
        Err(failure) => {
            // Beside: what follows from it may be another message to be posted.
            let shared = Arc::clone(shared);
            posting.tasks.spawn(async move { shared.failed(&asked, &failure).await });
            return;
        }
    };
    let stateless = sent.mirrored.is_some();
    let opens = sent.method.as_deref() == Some(INITIALIZED) && !stateless;
    let listens = sent.method.as_deref() == Some(SUBSCRIPTIONS_LISTEN);
    let ids = sent.asked.clone();
    let work = Arc::clone(shared).exchange(sent);
    if ids.is_empty() {
        let accepted = timeout(ACCEPTED_WITHIN, work).await;
        if accepted.is_err() {
            tracing::warn!(
                "a message that expects no answer was not accepted within {} s",
                ACCEPTED_WITHIN.as_secs()
            );
        }
        if opens && posting.listening.is_none() {
            let (told, listens) = oneshot::channel();
            posting.listening = Some(posting.tasks.spawn(listening::listen(Arc::clone(shared), told)));
            // What a server says of its own accord before somebody listens may be lost.
            let _ = timeout(LISTENS_WITHIN, listens).await;
        }
        return;
    }
    // What is done takes no room until it is looked at.
    let task = posting.tasks.spawn(Box::pin(work));
    if listens {
        posting.subscriptions.retain(|open| !open.is_finished());
        posting.subscriptions.push(task.clone());
    }
    if stateless {
        posting.cancellable.extend(ids.into_iter().map(|id| (id, task.clone())));
    }
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the client of a failure, for each request that is still open.
    async fn failed(&self, asked: &[Id], failure: &Failure) {
        if asked.is_empty() {
            tracing::warn!("the server `{}` {failure}", self.gate.command());
        }
        for id in asked {
            self.gate.lost(id, failure.status(), failure.is_refusal(), &failure.to_string()).await;
        }
    }

    /// Posts a message and passes on what is answered.
    async fn exchange(self: Arc<Self>, sent: Sent) {
        let mut pending = Pending::new(sent.asked.clone(), sent.method.clone(), sent.mirrored.is_some());
        let done = match self.attempt(&sent, &mut pending).await {
            Err(Failure::Broken(_) | Failure::NoResponse | Failure::Silent(_))
                if pending.last_event.is_some() && !pending.stateless =>
            {
                listening::take_up(&self, &mut pending).await
            }
            done => done,
        };
        if let Err(failure) = done {
            self.failed(&pending.asked, &failure).await;
        }
    }

    /// Posts a message; to a server that does not know the session, once more in another one.
    async fn attempt(&self, sent: &Sent, pending: &mut Pending) -> Result<(), Failure> {
        let (generation, had_session) = {
            let session = self.session();
            (session.generation, session.id.is_some())
        };
        let answered = self.send(sent).await?;
        let is_hello = pending.method.as_deref() == Some(INITIALIZE);
        let of_session = had_session && !is_hello && !pending.stateless;
        if !of_session || answered.response.status() != StatusCode::NOT_FOUND {
            match self.answered(answered, pending, sent).await {
                Err(Failure::SessionUnknown) if of_session => {}
                Err(Failure::HeadersMissing) => {
                    let listed = self.with_listed_headers(sent).await;
                    let sent = listed.map_err(|failure| {
                        tracing::warn!(
                            "the list of tools that a call needs could not be read: the server {failure}"
                        );
                        Failure::HeadersMissing
                    })?;
                    pending.listed = true;
                    let answered = self.send(&sent).await?;
                    return self.answered(answered, pending, &sent).await;
                }
                done => return done,
            }
        }
        self.reopen(generation).await?;
        let answered = self.send(sent).await?;
        self.answered(answered, pending, sent).await
    }

    /// Posts a message of the gate's own and takes the answer, within the time that the server may say nothing otherwise:
    /// nobody sees what it says instead.
    async fn ask_itself(&self, sent: &Sent, pending: &mut Pending) -> Result<(), Failure> {
        let asked = async {
            let answered = self.send(sent).await?;
            self.answered(answered, pending, sent).await
        };
        timeout(self.patience, asked).await.unwrap_or(Err(Failure::Evasive(self.patience)))
    }

    /// Posts a message, where the server wants it within its origin.
    async fn send(&self, sent: &Sent) -> Result<Answered, Failure> {
        for _ in 0..=REDIRECTS_MAX {
            let answered = self.send_once(Method::POST, sent.mirrored.as_ref(), &[], sent).await?;
            match answered.response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                    self.redirected(&answered.response)?;
                }
                status if status.is_redirection() => {
                    log_redirection(&answered.response);
                    return Err(Failure::Redirected);
                }
                _ => return Ok(answered),
            }
        }
        Err(Failure::Redirected)
    }

    async fn send_once(
        &self,
        method: Method,
        mirrored: Option<&Mirrored>,
        more: &[(HeaderName, HeaderValue)],
        sent: &Sent,
    ) -> Result<Answered, Failure> {
        let of_session = match mirrored {
            Some(_) => None,
            None => {
                let session = self.session().clone();
                let hello = sent.method.as_deref() == Some(INITIALIZE);
                Some(match hello {
                    true => Mirrored::default(),
                    false => Mirrored::of_session(session.version.as_deref(), session.id.as_ref())?,
                })
            }
        };
        let mirrored = mirrored.or(of_session.as_ref()).cloned().unwrap_or_default();
        let used = self.credential().await?;
        let answered = self.send_as(&method, &mirrored, used.clone(), more, sent).await?;
        if self.refused(&answered.response, used.as_ref()).await? == Retry::No {
            return Ok(answered);
        }
        let used = self.credential().await?;
        self.send_as(&method, &mirrored, used, more, sent).await
    }

    async fn send_as(
        &self,
        method: &Method,
        mirrored: &Mirrored,
        used: Option<Authorization>,
        more: &[(HeaderName, HeaderValue)],
        sent: &Sent,
    ) -> Result<Answered, Failure> {
        let target = self.target().clone();
        let request = request::http(&target, method, mirrored, used, more, sent.body.clone())?;
        self.connections.send(request, self.patience).await
    }

    /// The header that shows the server who the gate is, if there is one for it.
    async fn credential(&self) -> Result<Option<Authorization>, Failure> {
        self.auth.authorization().await.map_err(|error| Failure::Unfit(error.to_string()))
    }

    /// Whether a refusal calls for another credential, which there may be now.
    async fn refused<B>(
        &self,
        response: &Response<B>,
        used: Option<&Authorization>,
    ) -> Result<Retry, Failure> {
        let status = response.status().as_u16();
        if !matches!(status, 401 | 403) {
            return Ok(Retry::No);
        }
        let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenges: Vec<_> = challenges.filter_map(|challenge| challenge.to_str().ok()).collect();
        let asked = self.auth.challenged(status, &challenges.join(", "), used).await;
        asked.map_err(|error| {
            tracing::warn!("{error}");
            // The scopes are the server's words, and are for the log alone.
            let advice = match error {
                AuthError::MoreScopes { .. } => "more scopes are wanted; the gate's log has them".to_owned(),
                error => error.to_string(),
            };
            Failure::Unauthorised { status, advice }
        })
    }

    /// Goes on at another path of the same origin. Elsewhere the server may send nobody.
    fn redirected<B>(&self, response: &Response<B>) -> Result<(), Failure> {
        log_redirection(response);
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let location = location.ok_or(Failure::Redirected)?;
        let mut target = self.target();
        let scheme = if self.connections.origin().is_tls() { "https" } else { "http" };
        let here = Url::parse(&format!("{scheme}://{}{}", target.authority, target.path));
        let here = here.map_err(|_| Failure::Redirected)?;
        let there = here.join(location).map_err(|_| Failure::Redirected)?;
        if here.origin() != there.origin() || !there.username().is_empty() || there.password().is_some() {
            return Err(Failure::Redirected);
        }
        target.path = match there.query() {
            None => there.path().to_owned(),
            Some(query) => format!("{}?{query}", there.path()),
        };
        Ok(())
    }

    /// What becomes of an answer.
    async fn answered(&self, answered: Answered, pending: &mut Pending, sent: &Sent) -> Result<(), Failure> {
        let status = answered.response.status();
        let is_hello = pending.method.as_deref() == Some(INITIALIZE);
        match status {
            StatusCode::OK if pending.asked.is_empty() => {
                self.connections.keep_if_empty(answered);
                self.accepted(sent);
                Ok(())
            }
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                self.connections.keep_if_empty(answered);
                self.accepted(sent);
                if pending.asked.is_empty() { Ok(()) } else { Err(Failure::NoResponse) }
            }
            StatusCode::OK => {
                if is_hello {
                    let id = session_id(&answered.response)?;
                    if let Some(again) = &mut pending.again {
                        again.id = id;
                    } else {
                        // Of two sessions of one client, only the later one is used.
                        self.take_leave().await;
                        self.session().begin(id, sent.body.clone());
                    }
                }
                self.read_answer(answered, pending).await
            }
            _ => self.read_error(answered, pending).await,
        }
    }

    /// A message that expects no answer has arrived.
    fn accepted(&self, sent: &Sent) {
        if sent.method.as_deref() == Some(INITIALIZED) {
            self.session().initialized = Some(sent.body.clone());
        }
    }
}

fn log_redirection<B>(response: &Response<B>) {
    let location =
        response.headers().get(LOCATION).map(|location| String::from_utf8_lossy(location.as_bytes()));
    let location = location.unwrap_or_default();
    let location: String = location.chars().take(200).flat_map(char::escape_debug).collect();
    tracing::warn!("the server redirects to `{location}`");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_and_no_secret() {
        let server = RemoteServer::new("https://mcp.example:8443/v1/mcp?key=s3cret").unwrap();
        assert_eq!((&*server.known_as(), server.host()), ("https://mcp.example:8443/v1/mcp", "mcp.example"));
        for wrong in ["", "mcp.example", "ftp://h/", "https://", "https://h/#f", "file:///x", "unix:/x"] {
            assert!(RemoteServer::new(wrong).unwrap_err().contains("is not an address"), "{wrong}");
        }
        let refused = RemoteServer::new("https://me:s3cret@h/").unwrap_err();
        assert!(refused.contains("password") && !refused.contains("s3cret"), "{refused}");
    }
}
