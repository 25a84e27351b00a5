//! A message as an HTTP request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use portcullis_wire::jsonrpc::{Id, Message};
use portcullis_wire::mcp::call::parse_tool_call;
use portcullis_wire::mcp::headers::{self, Repeated, repeated};
use portcullis_wire::mcp::list::{hide_tools, listed_tools};
use portcullis_wire::mcp::{TOOLS_CALL, V_2026_07_28, request_meta};
use serde_json::value::RawValue;

use super::failure::Failure;

/// What the headers of a request say beyond what all requests say.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirrored(Vec<(HeaderName, HeaderValue)>);

/// Tools whose arguments are repeated in headers, as their server listed them last.
#[derive(Debug, Default)]
pub(in crate::mcp) struct RepeatedArguments(Mutex<HashMap<String, Vec<Repeated>>>);

/// Most tools that are remembered.
const TOOLS_MAX: usize = 4096;

impl RepeatedArguments {
    /// Learns from a list of tools. Returns the list without tools whose schemas are invalid; none: it is as it was.
    pub(in crate::mcp) fn learn(&self, line: &[u8], result: &RawValue) -> Option<Vec<u8>> {
        // Escaped letters may hide the name.
        if !result.get().contains("x-mcp-header") && !result.get().contains("\\u00") {
            return None;
        }
        let listed = listed_tools(result).ok()?;
        let mut invalid = Vec::new();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in listed.tools {
            match repeated(&tool.input_schema) {
                Ok(arguments) if arguments.is_empty() => {
                    known.remove(&tool.name);
                }
                Ok(arguments) if known.len() < TOOLS_MAX => {
                    known.insert(tool.name, arguments);
                }
                Ok(_) => invalid.push(tool.name),
                Err(why) => {
                    tracing::warn!("the tool `{}` is hidden: {why}", tool.name.escape_debug());
                    invalid.push(tool.name);
                }
            }
        }
        drop(known);
        hide_tools(line, |name| invalid.iter().any(|hidden| hidden == name)).ok().flatten()
    }

    pub(in crate::mcp) fn of(&self, tool: &str) -> Vec<Repeated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned().unwrap_or_default()
    }
}

/// The revision that a request says it is written in, where it is one without sessions.
pub(crate) fn stateless_version(message: &Message<'_>) -> Option<String> {
    let (Message::Request { params, .. } | Message::Notification { params, .. }) = message else {
        return None;
    };
    let meta = request_meta(*params).ok()?;
    meta.protocol_version.filter(|version| version.as_ref() >= V_2026_07_28).map(std::borrow::Cow::into_owned)
}

impl Mirrored {
    /// Repeats a message of a revision without sessions.
    pub(super) fn of(
        message: &Message<'_>,
        version: &str,
        arguments: &RepeatedArguments,
    ) -> Result<Self, Failure> {
        let mut mirrored = Self::default();
        mirrored.push(headers::PROTOCOL_VERSION, version)?;
        let Message::Request { method, params, .. } = message else { return Ok(mirrored) };
        mirrored.push(headers::METHOD, method)?;
        let unfit = |error: &dyn std::fmt::Display| Failure::Unfit(error.to_string());
        if let Some(name) = headers::name_of(method, *params).map_err(|error| unfit(&error))? {
            mirrored.push(headers::NAME, &headers::encode(&name))?;
        }
        if method == TOOLS_CALL {
            let call = parse_tool_call(*params).map_err(|error| unfit(&error))?;
            for repeated in arguments.of(&call.name) {
                if let Some(value) = repeated.value(&call.arguments) {
                    mirrored.push(&repeated.header, &headers::encode(&value))?;
                }
            }
        }
        Ok(mirrored)
    }

    /// Says the revision of a session, and its id.
    pub(super) fn of_session(version: Option<&str>, session: Option<&HeaderValue>) -> Result<Self, Failure> {
        let mut mirrored = Self::default();
        if let Some(version) = version {
            mirrored.push(headers::PROTOCOL_VERSION, version)?;
        }
        if let Some(session) = session {
            mirrored.0.push((HeaderName::from_static(headers::SESSION_ID), session.clone()));
        }
        Ok(mirrored)
    }

    fn push(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let unfit = |_| Failure::Unfit(format!("the header `{}` cannot hold its value", name.escape_debug()));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unfit(error.to_string()))?;
        let value = HeaderValue::from_str(value).map_err(|error| unfit(error.to_string()))?;
        self.0.push((name, value));
        Ok(())
    }
}

/// Where requests go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
}

/// An HTTP request to the server.
pub(super) fn http(
    target: &Target,
    method: &Method,
    mirrored: &Mirrored,
    authorization: Option<(HeaderName, HeaderValue)>,
    more: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failure> {
    let accept = match *method {
        Method::POST => "application/json, text/event-stream",
        _ => "text/event-stream",
    };
    let mut request = Request::builder()
        .method(method)
        .uri(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, accept);
    if *method == Method::POST {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some((name, value)) = authorization {
        request = request.header(name, value);
    }
    for (name, value) in mirrored.0.iter().chain(more) {
        request = request.header(name, value);
    }
    request.body(Full::new(body)).map_err(|error| Failure::Unfit(error.to_string()))
}

/// The requests in a message, which are to be answered.
pub(super) fn asked(message: &Message<'_>) -> Vec<Id> {
    match message {
        Message::Request { id, .. } => vec![id.clone()],
        Message::Batch(elements) => elements
            .iter()
            .filter_map(|element| match portcullis_wire::jsonrpc::peek(element.get().as_bytes()) {
                Ok(Message::Request { id, .. }) => Some(id),
                _ => None,
            })
            .collect(),
        Message::Notification { .. } | Message::Response { .. } => Vec::new(),
    }
}
