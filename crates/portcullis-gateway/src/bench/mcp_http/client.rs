//! A client of an MCP server over HTTP: the gate's, or the server behind it.

use std::io;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use portcullis_session::workload;
use portcullis_wire::mcp::headers::SESSION_ID;
use portcullis_wire::mcp::{INITIALIZE, INITIALIZED, TOOLS_CALL, TOOLS_LIST, V_2025_11_25};
use serde_json::{Value, json};
use url::Url;

use super::super::BenchError;
use crate::origin::Origin;

/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;

/// Where a client's server is, and who it is to it.
#[derive(Debug, Clone)]
pub(super) struct At {
    url: Url,
    token: Option<String>,
}

/// A client with one connection, and a session once it has opened one.
pub(super) struct Client {
    at: At,
    sender: SendRequest<Full<Bytes>>,
    session: Option<String>,
}

impl At {
    pub(super) fn new(url: &str, token: Option<String>) -> Result<Self, BenchError> {
        let url = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
        Ok(Self { url, token })
    }

    /// The same place for somebody else.
    pub(super) fn with_token(&self, token: String) -> Self {
        Self { url: self.url.clone(), token: Some(token) }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, BenchError> {
        let origin = Origin::of(&self.url).map_err(|why| refused(&why))?;
        origin.connect().await.map_err(BenchError::io("reach the MCP server"))
    }
}

impl Client {
    /// Connects.
    pub(super) async fn new(at: &At) -> Result<Self, BenchError> {
        Ok(Self { at: at.clone(), sender: at.connect().await?, session: None })
    }

    /// Another one in the same session, with a connection of its own.
    pub(super) async fn beside(&self) -> Result<Self, BenchError> {
        Ok(Self { at: self.at.clone(), sender: self.at.connect().await?, session: self.session.clone() })
    }

    /// Opens a session, and leaves the one before open.
    pub(super) async fn open(&mut self) -> Result<(), BenchError> {
        self.session = None;
        let response = self.send(Method::POST, &hello()).await?;
        let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        self.session = Some(session.ok_or_else(|| refused("no session was opened"))?);
        result(&read(response).await?)?;
        let told = self.send(Method::POST, &initialized()).await?;
        read(told).await?;
        Ok(())
    }

    /// Has the server list its tools, and the names of those.
    pub(super) async fn tools(&mut self) -> Result<Vec<String>, BenchError> {
        let response = self.send(Method::POST, &list()).await?;
        let result = result(&read(response).await?)?;
        let tools = result.get("tools").and_then(Value::as_array).into_iter().flatten();
        Ok(tools.filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned)).collect())
    }

    /// Calls a tool; how long it took until the result was here.
    pub(super) async fn call(&mut self, prefix: &str, number: usize) -> Result<Duration, BenchError> {
        let body = call(prefix, number);
        let begin = Instant::now();
        let response = self.send(Method::POST, &body).await?;
        let answer = read(response).await?;
        let took = begin.elapsed();
        was_called(&answer)?;
        Ok(took)
    }

    /// Asks for something by `GET`; how long it took.
    pub(super) async fn get(&mut self) -> Result<Duration, BenchError> {
        let begin = Instant::now();
        let response = self.send(Method::GET, "").await?;
        read(response).await?;
        Ok(begin.elapsed())
    }

    /// Opens the stream of the servers' own messages, which stays open with what is returned.
    pub(super) async fn listen(mut self) -> Result<impl Sized, BenchError> {
        let response = self.send(Method::GET, "").await?;
        Ok((self.sender, response))
    }

    /// Ends the session.
    pub(super) async fn end(mut self) -> Result<(), BenchError> {
        let response = self.send(Method::DELETE, "").await?;
        read(response).await?;
        Ok(())
    }

    async fn send(&mut self, method: Method, body: &str) -> Result<Response<Incoming>, BenchError> {
        let failed = || BenchError::io("ask the MCP server");
        let authority = self.at.url.authority().to_owned();
        let mut request =
            Request::builder().method(&method).uri(self.at.url.path()).header(HOST, authority).header(
                ACCEPT,
                match method {
                    Method::GET => "text/event-stream",
                    _ => "application/json, text/event-stream",
                },
            );
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.at.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            request = request.header(SESSION_ID, session).header("mcp-protocol-version", V_2025_11_25);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())));
        let request = request.map_err(|error| failed()(io::Error::other(error)))?;
        self.sender.ready().await.map_err(|error| failed()(io::Error::other(error)))?;
        let response = self.sender.send_request(request).await;
        let response = response.map_err(|error| failed()(io::Error::other(error)))?;
        match response.status() {
            StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(response),
            status => {
                let body = read(response).await?;
                Err(refused(&format!("{status}: {}", String::from_utf8_lossy(&body))))
            }
        }
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes, BenchError> {
    let body = response.into_body().collect().await;
    let failed = |error| BenchError::io("read what the MCP server answers")(io::Error::other(error));
    Ok(body.map_err(failed)?.to_bytes())
}

pub(super) fn hello() -> String {
    let client = json!({"name": "bench", "version": "1"});
    let params = json!({"protocolVersion": V_2025_11_25, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": INITIALIZE, "params": params}).to_string()
}

pub(super) fn initialized() -> String {
    json!({"jsonrpc": "2.0", "method": INITIALIZED}).to_string()
}

pub(super) fn list() -> String {
    json!({"jsonrpc": "2.0", "id": 2, "method": TOOLS_LIST}).to_string()
}

pub(super) fn call(prefix: &str, number: usize) -> String {
    let name = format!("{prefix}{}", workload::tool(number % super::upstream::TOOLS));
    let params = json!({"name": name, "arguments": workload::arguments(number, ARGUMENT_BYTES)});
    json!({"jsonrpc": "2.0", "id": 3 + number, "method": TOOLS_CALL, "params": params}).to_string()
}

/// The result of an answer.
pub(super) fn result(answer: &[u8]) -> Result<Value, BenchError> {
    let message: Value = serde_json::from_slice(answer).map_err(|error| refused(&error.to_string()))?;
    message.get("result").cloned().ok_or_else(|| refused(&message.to_string()))
}

/// Whether a tool was called: a call that was denied has a result as well.
pub(super) fn was_called(answer: &[u8]) -> Result<(), BenchError> {
    let result = result(answer)?;
    match result.get("isError").and_then(Value::as_bool) {
        Some(true) => Err(BenchError::NotAllowed(result.to_string())),
        _ => Ok(()),
    }
}

pub(super) fn refused(why: &str) -> BenchError {
    BenchError::io("measure MCP over HTTP")(io::Error::other(why.to_owned()))
}
