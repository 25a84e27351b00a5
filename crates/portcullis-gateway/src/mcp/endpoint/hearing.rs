//! What the servers of one client say, on its way to the client.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use portcullis_wire::jsonrpc::{INTERNAL_ERROR, Message, error_response, peek};
use portcullis_wire::mcp::replace::{
    CANCELLED_ID, ID, PROGRESS_OF, Path, SUBSCRIPTION, replace_at, value_at,
};
use portcullis_wire::mcp::{CANCELLED, INITIALIZE, SUBSCRIPTIONS_LISTEN, TOOLS_LIST};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::merge::made;
use super::routes::Open;
use super::session::Session;
use super::streams::STANDALONE;
use super::together::refusal;
use crate::mcp::upstream;

/// Most pages of one server's list, and how much they may weigh.
const PAGES_MAX: usize = 64;
const PAGES_WEIGHT_MAX: usize = 32 << 20;
/// How long a client is waited for that has not read what was said before.
const ROOM_WITHIN: Duration = Duration::from_millis(500);
const ROOM_POLL: Duration = Duration::from_millis(1);
/// For how long and by whom a result may be kept.
const CACHE_SCOPE: Path = &["result", "cacheScope"];

/// About how many bytes of memory a result takes as a tree: each value takes some besides its text.
fn weight(result: &RawValue) -> usize {
    const OF_VALUE: usize = 32;
    let text = result.get().as_bytes();
    let values = text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    text.len() + values * OF_VALUE
}

impl Session {
    /// Gives those who read time to do so, where a server says much at once. It is the servers who wait meanwhile.
    async fn wait_for_room(&self) {
        if !self.state().streams.are_full() {
            return;
        }
        let until = Instant::now() + ROOM_WITHIN;
        while self.state().streams.are_full() {
            if Instant::now() > until {
                return self.state().streams.give_up_waiting();
            }
            sleep(ROOM_POLL).await;
        }
    }

    /// Takes a message of a gate.
    pub(super) fn heard(self: &Arc<Self>, index: usize, line: &[u8]) {
        let Ok(message) = peek(line) else { return };
        let done = match message {
            Message::Response { result, error, .. } => self.response(index, line, result, error),
            Message::Notification { method, .. } => self.notification(index, line, &method),
            Message::Request { id_raw, .. } => self.question(index, line, id_raw),
            Message::Batch(elements) => {
                elements.iter().for_each(|element| self.heard(index, element.get().as_bytes()));
                Some(())
            }
        };
        if done.is_none() {
            tracing::debug!("a message of an MCP server was dropped: it belongs to no request that is open");
        }
    }

    fn response(
        self: &Arc<Self>,
        index: usize,
        line: &[u8],
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) -> Option<()> {
        let number: u64 = value_at(line, ID).ok()??.get().parse().ok()?;
        let open = self.state().routes.answered(number)?;
        if let Some(whole) = open.whole {
            // Without sessions, what headers repeat is compared with the list that the server showed last.
            let fewer = match (result, self.servers.get(index)) {
                (Some(result), Some(server)) if open.method == TOOLS_LIST && self.stateless => {
                    server.arguments.learn(line, result)
                }
                _ => None,
            };
            match fewer.as_deref().map(peek) {
                Some(Ok(Message::Response { result, error, .. })) => {
                    self.part(index, whole, &open, result, error)
                }
                _ => self.part(index, whole, &open, result, error),
            }
            return Some(());
        }
        if result.is_some() {
            self.served.store(true, Ordering::SeqCst);
        }
        let of_server = self.servers.get(index).map_or("", |server| &server.name);
        if let Some(why) = error.and_then(|error| refusal(&open.method, error)) {
            self.standing.is_amiss(of_server, &why);
        } else if result.is_some() {
            self.standing.is_well(of_server);
        }
        if open.method == SUBSCRIPTIONS_LISTEN && self.subscription_ended(open.stream, index) {
            return Some(());
        }
        let mut changes = vec![(ID, open.id.get())];
        if open.method == TOOLS_LIST && self.stateless {
            // What one caller sees depends on who it is.
            changes.push((CACHE_SCOPE, "\"private\""));
        }
        let told = replace_at(line, &changes).ok()?;
        if let Some(result) = result {
            self.noted(index, &open.method, line, result);
        }
        self.state().streams.put(open.stream, told, true);
        Some(())
    }

    /// Notes what a result says that later requests need.
    fn noted(&self, index: usize, method: &str, line: &[u8], result: &RawValue) {
        let server = self.servers.get(index);
        match method {
            TOOLS_LIST => {
                if let Some(server) = server.filter(|_| self.stateless) {
                    let _ = server.arguments.learn(line, result);
                }
            }
            "initialize" | "resources/list" | "resources/templates/list" | "tools/call" => {
                if method != INITIALIZE && self.is_single() {
                    return;
                }
                if weight(result) > PAGES_WEIGHT_MAX {
                    return;
                }
                let Ok(result) = serde_json::from_str::<Value>(result.get()) else { return };
                let mut state = self.state();
                if method == INITIALIZE {
                    state.version = result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned);
                }
                state.routes.learn(index, method, &result);
            }
            _ => {}
        }
    }

    /// A page of one server, of what all are asked.
    fn part(
        self: &Arc<Self>,
        index: usize,
        number: u64,
        open: &Open,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) {
        let Some(made) = made(&open.method) else { return };
        let page = result
            .filter(|result| self.has_weight(number, index, weight(result)))
            .and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
        let Some(page) = page else {
            let error = error.map(ToOwned::to_owned);
            return self.part_came(number, index, made, error);
        };
        self.state().routes.learn(index, &open.method, &page);
        let cursor = page.get("nextCursor").filter(|cursor| !cursor.is_null()).cloned();
        let mut more = None;
        {
            let mut state = self.state();
            let Some(whole) = state.routes.whole(number) else { return };
            let Some(pages) = whole.pages.get_mut(index) else { return };
            let pages = pages.get_or_insert_default();
            pages.push(page);
            if let Some(cursor) = cursor.filter(|_| pages.len() < PAGES_MAX) {
                more = next_page(&whole.line, &cursor);
            }
        }
        let Some(line) = more else { return self.part_came(number, index, made, None) };
        let (session, open) = (Arc::clone(self), open.clone());
        tokio::spawn(async move {
            if session.ask(&line, open, &[]).await.is_err() {
                session.part_came(number, index, made, None);
            }
        });
    }

    /// Whether a server may list as much more. What is too much is as if the server had not answered.
    fn has_weight(&self, number: u64, index: usize, more: usize) -> bool {
        let mut state = self.state();
        let Some(whole) = state.routes.whole(number) else { return false };
        let Some(weight) = whole.weights.get_mut(index) else { return false };
        *weight = weight.saturating_add(more);
        let fits = *weight <= PAGES_WEIGHT_MAX;
        if !fits {
            if let Some(pages) = whole.pages.get_mut(index) {
                *pages = None;
            }
            let why = format!("answers `{}` with more than {} MiB", whole.method, PAGES_WEIGHT_MAX >> 20);
            drop(state);
            self.standing.is_amiss(self.servers.get(index).map_or("", |server| &server.name), &why);
        }
        fits
    }

    fn notification(&self, index: usize, line: &[u8], method: &str) -> Option<()> {
        let mut state = self.state();
        for path in [PROGRESS_OF, SUBSCRIPTION] {
            let Some(number) = value_at(line, path).ok()? else { continue };
            let Ok(number) = number.get().parse::<u64>() else { continue };
            let open = state.routes.get(number).filter(|open| open.server == index)?;
            if path == SUBSCRIPTION {
                let open = open.clone();
                if self.subscription_said(&mut state, &open, line, method) {
                    return Some(());
                }
            }
            let open = state.routes.get(number)?;
            let own = if path == SUBSCRIPTION { Some(&open.id) } else { open.token.as_ref() };
            let (own, stream) = (own?.clone(), open.stream);
            let told = replace_at(line, &[(path, own.get())]).ok()?;
            state.streams.put(stream, told, false);
            return Some(());
        }
        let mut told = line.to_vec();
        if method == CANCELLED {
            let id = value_at(line, CANCELLED_ID).ok()??;
            if let Some(open) = state.routes.subscription(index, id) {
                drop(state);
                // So a server on standard input and output ends a subscription.
                if !self.subscription_ended(open.stream, index) {
                    let told = replace_at(line, &[(CANCELLED_ID, open.id.get())]).ok()?;
                    self.state().streams.put(open.stream, told, true);
                }
                return Some(());
            }
            let id = state.routes.withdrawn(index, id)?;
            told = replace_at(line, &[(CANCELLED_ID, &Value::from(id).to_string())]).ok()?;
        }
        let stream = match method {
            "notifications/message" | CANCELLED => state.routes.latest_of(index),
            _ => None,
        };
        let stream = match (stream, self.stateless) {
            (Some(stream), _) => stream,
            (None, false) => STANDALONE,
            // Without sessions every message belongs to a request.
            (None, true) => return None,
        };
        state.streams.put(stream, told, false);
        Some(())
    }

    /// A server asks the client.
    fn question(&self, index: usize, line: &[u8], id: &RawValue) -> Option<()> {
        let mut state = self.state();
        let stream = state.routes.latest_of(index).unwrap_or(STANDALONE);
        let id = state.routes.ask(index, id);
        if let Some((of, unanswered)) = state.routes.unanswered()
            && let Some(server) = self.servers.get(of)
        {
            let line = error_response(Some(&unanswered), INTERNAL_ERROR, "the client did not answer", None);
            let gate = Arc::clone(&server.gate);
            tokio::spawn(async move { upstream::message(&gate, &line).await });
        }
        let told = replace_at(line, &[(ID, &Value::from(id).to_string())]).ok()?;
        state.streams.put(stream, told, false);
        Some(())
    }
}

/// The request for the page behind a cursor.
fn next_page(line: &[u8], cursor: &Value) -> Option<Vec<u8>> {
    let mut request: Value = serde_json::from_slice(line).ok()?;
    let request = request.as_object_mut()?;
    let params = request.entry("params").or_insert_with(|| json!({}));
    params.as_object_mut()?.insert("cursor".to_owned(), cursor.clone());
    serde_json::to_vec(&request).ok()
}

/// Passes on what the gates say until the session is gone.
pub(super) async fn relay(session: Weak<Session>, mut lines: mpsc::Receiver<(usize, Vec<u8>)>) {
    while let Some((index, line)) = lines.recv().await {
        let Some(session) = session.upgrade() else { return };
        session.heard(index, &line);
        session.wait_for_room().await;
    }
}
