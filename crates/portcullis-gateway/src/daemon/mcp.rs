//! `/mcp`: MCP's Streamable HTTP, in front of the servers that the bundle names.
//!
//! What is a transport's is here: methods, headers, statuses and streams of HTTP. What becomes of messages is the
//! [endpoint](crate::mcp::endpoint)'s.

mod answers;
mod headers;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use portcullis_core::bundle::{Bundle, McpServer};
use portcullis_session::credentials::Identity;
use portcullis_wire::jsonrpc::{
    INTERNAL_ERROR, INVALID_REQUEST, MESSAGE_BYTES_MAX, Message, PARSE_ERROR, PeekError, one_line, peek,
};
use portcullis_wire::mcp::headers::{HEADER_MISMATCH, SESSION_ID};
use portcullis_wire::mcp::{INITIALIZE, request_meta};
use serde_json::value::RawValue;

use super::Shared;
use super::connections;
use super::oauth::McpCaller;
use super::routes::room_for;
use crate::mcp::endpoint::{EventId, Key, OpenError, Opening, Owner, Session};
use answers::{Answer, Refusal, refusal};
use headers::Kind;

/// The header by which a client has its connections share a run, or tells its runs apart.
const NAMED: &str = "portcullis-session";
/// Longest value of it, in bytes.
const NAMED_BYTES_MAX: usize = 128;

/// All servers of the bundle.
pub(super) async fn all(state: State<Shared>, caller: McpCaller, request: Request) -> Response {
    serve(state, caller, None, request).await
}

/// One of them.
pub(super) async fn one(
    state: State<Shared>,
    caller: McpCaller,
    Path(server): Path<String>,
    request: Request,
) -> Response {
    serve(state, caller, Some(server), request).await
}

async fn serve(
    State(shared): State<Shared>,
    McpCaller(identity): McpCaller,
    server: Option<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let call =
        Call { shared: &shared, identity: &identity, server: server.as_deref(), headers: &parts.headers };
    let answered = match parts.method {
        Method::POST => call.post(body).await,
        Method::GET => call.listen(),
        Method::DELETE => call.end(),
        _ => Err(refusal(StatusCode::METHOD_NOT_ALLOWED, None, INVALID_REQUEST, "use POST, GET or DELETE")),
    };
    answered.unwrap_or_else(Response::from)
}

/// One HTTP request.
struct Call<'c> {
    shared: &'c Shared,
    identity: &'c Identity,
    server: Option<&'c str>,
    headers: &'c HeaderMap,
}

type Answered = Result<Response, Refusal>;

/// Ends a session when it is dropped.
struct Ends<'s> {
    shared: &'s Shared,
    key: Key,
    owner: Owner,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.shared.mcp.end(self.key, &self.owner);
    }
}

impl Call<'_> {
    async fn post(&self, body: Body) -> Answered {
        headers::check_kinds(self.headers)?;
        let body = self.body(body).await?;
        // Servers are spoken to by lines: of a body with several, each would be a message that nobody has judged.
        let unreadable =
            |error: PeekError| refusal(StatusCode::BAD_REQUEST, None, error.code(), &error.to_string());
        let body = one_line(&body).map_err(unreadable)?;
        let message = peek(&body).map_err(unreadable)?;
        match headers::kind(self.headers, &message)? {
            Kind::Stateless => self.post_alone(&body, &message).await,
            Kind::OfSession => self.post_in_session(&body, &message).await,
        }
    }

    async fn body(&self, body: Body) -> Result<Vec<u8>, Refusal> {
        let _room = room_for(self.headers, self.shared).await.map_err(|_| {
            let why = "other long requests are being read; try again";
            refusal(StatusCode::SERVICE_UNAVAILABLE, None, INTERNAL_ERROR, why)
        })?;
        match connections::in_time(to_bytes(body, MESSAGE_BYTES_MAX)).await {
            Ok(Ok(body)) => Ok(body.to_vec()),
            Ok(Err(_)) => {
                let why = format!("the body cannot be read, or has more than {MESSAGE_BYTES_MAX} bytes");
                Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, None, PARSE_ERROR, &why))
            }
            Err(_) => {
                let why = "the body did not arrive in time";
                Err(refusal(StatusCode::REQUEST_TIMEOUT, None, PARSE_ERROR, why))
            }
        }
    }

    /// A message of a revision with sessions.
    async fn post_in_session(&self, body: &[u8], message: &Message<'_>) -> Answered {
        if let Message::Request { id_raw, method, .. } = message
            && method == INITIALIZE
        {
            let bundle = self.bundle()?;
            let opened = self.shared.mcp.open(&self.opening(&bundle)?).await;
            let (id, session) = opened.map_err(|error| not_opened(Some(id_raw), &error))?;
            // A client that goes before it is answered never knows the session.
            let ends = Ends { shared: self.shared, key: Key::of_id(&id), owner: Owner::of(self.identity) };
            let answer = Answer { session: &session, opened: Some(&id), stateless: false };
            let answered = answer.to(session.say(body).await).await;
            if !session.is_of_no_use() {
                std::mem::forget(ends);
            }
            return Ok(answered);
        }
        let session = self.session()?;
        Ok(Answer { session: &session, opened: None, stateless: false }.to(session.say(body).await).await)
    }

    /// A message of a revision without sessions.
    async fn post_alone(&self, body: &[u8], message: &Message<'_>) -> Answered {
        let bundle = self.bundle()?;
        let opening = self.opening(&bundle)?;
        let (id, client) = match message {
            Message::Request { id_raw, params, .. } => (Some(*id_raw), client(*params)),
            Message::Notification { params, .. } => (None, client(*params)),
            Message::Response { .. } | Message::Batch(_) => {
                let why = "a client of this revision posts one request or notification at a time";
                return Err(refusal(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, why));
            }
        };
        let owner = Owner::of(self.identity);
        let key = Key::of_client(&owner, &client, opening.named, self.server.unwrap_or_default());
        let session = self.shared.mcp.client(&opening, key).await.map_err(|error| not_opened(id, &error))?;
        if let Err(why) = headers::check_arguments(self.headers, message, &session) {
            return Err(refusal(StatusCode::BAD_REQUEST, id, HEADER_MISMATCH, &why));
        }
        let answer = Answer { session: &session, opened: None, stateless: true };
        let answered = answer.to(session.say(body).await).await;
        if session.is_of_no_use() {
            self.shared.mcp.end(key, &owner);
        }
        Ok(answered)
    }

    /// The stream of messages that belong to no request, or the rest of one that broke.
    fn listen(&self) -> Answered {
        if !headers::accepts(self.headers, "text/event-stream") {
            let why = "send `Accept: text/event-stream`";
            return Err(refusal(StatusCode::NOT_ACCEPTABLE, None, INVALID_REQUEST, why));
        }
        if !self.headers.contains_key(SESSION_ID) {
            let why =
                "only a session has a stream of its own; send `Mcp-Session-Id`, or `subscriptions/listen`";
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, None, INVALID_REQUEST, why));
        }
        let session = self.session()?;
        let after = match headers::text(self.headers, "last-event-id") {
            None => None,
            Some(id) => Some(id.parse::<EventId>().map_err(|()| {
                refusal(
                    StatusCode::BAD_REQUEST,
                    None,
                    INVALID_REQUEST,
                    "`Last-Event-ID` is no id of this session",
                )
            })?),
        };
        match session.read(after) {
            Some(reading) => Ok(answers::stream(&session, reading, None, None)),
            None => {
                let why = "what was behind this event is no longer kept";
                Err(refusal(StatusCode::NOT_FOUND, None, INVALID_REQUEST, why))
            }
        }
    }

    fn end(&self) -> Answered {
        let id = headers::text(self.headers, SESSION_ID);
        match id.is_some_and(|id| self.shared.mcp.end(Key::of_id(id), &Owner::of(self.identity))) {
            true => Ok(StatusCode::NO_CONTENT.into_response()),
            false => Err(unknown_session()),
        }
    }

    fn session(&self) -> Result<std::sync::Arc<Session>, Refusal> {
        let Some(id) = headers::text(self.headers, SESSION_ID) else {
            let why =
                "send `initialize` first, and then the `Mcp-Session-Id` of its answer with every request";
            return Err(refusal(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, why));
        };
        self.shared.mcp.find(Key::of_id(id), &Owner::of(self.identity)).ok_or_else(unknown_session)
    }

    fn bundle(&self) -> Result<std::sync::Arc<Bundle>, Refusal> {
        let found = self.shared.gate.bundles().get(None).map_err(|error| {
            refusal(StatusCode::INTERNAL_SERVER_ERROR, None, INVALID_REQUEST, &error.to_string())
        });
        found.map(|(_, bundle)| bundle)
    }

    fn opening<'o>(&'o self, bundle: &'o Bundle) -> Result<Opening<'o>, Refusal> {
        let servers: Vec<(&str, &McpServer)> = bundle
            .servers
            .iter()
            .filter(|(name, _)| self.server.is_none_or(|server| server == *name))
            .map(|(name, server)| (name.as_str(), server))
            .collect();
        if servers.is_empty() {
            return Err(not_opened(None, &OpenError::NoServer(self.server.map(str::to_owned))));
        }
        let named = headers::text(self.headers, NAMED);
        if named.is_some_and(|named| named.is_empty() || named.len() > NAMED_BYTES_MAX) {
            let why = format!("`Portcullis-Session` has 1 to {NAMED_BYTES_MAX} bytes");
            return Err(refusal(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, &why));
        }
        Ok(Opening {
            home: &self.shared.home,
            local: &self.shared.local,
            runs: &self.shared.gate,
            identity: self.identity,
            named,
            alone: self.server.is_some(),
            servers,
        })
    }
}

/// How a client of a revision without sessions calls itself.
fn client(params: Option<&RawValue>) -> String {
    let meta = request_meta(params).unwrap_or_default();
    meta.client_info.map(|info| info.get().to_owned()).unwrap_or_default()
}

fn unknown_session() -> Refusal {
    let why = "there is no such session; open one with `initialize`";
    refusal(StatusCode::NOT_FOUND, None, INVALID_REQUEST, why)
}

fn not_opened(id: Option<&RawValue>, error: &OpenError) -> Refusal {
    let status = match error {
        OpenError::NoServer(_) => StatusCode::NOT_FOUND,
        OpenError::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
        OpenError::Server { .. } => StatusCode::BAD_GATEWAY,
        OpenError::OtherRoles => StatusCode::CONFLICT,
        OpenError::Run(_) | OpenError::NoRandomness => StatusCode::INTERNAL_SERVER_ERROR,
    };
    tracing::warn!("an MCP client is not served: {error}");
    refusal(status, id, INTERNAL_ERROR, &error.to_string())
}
