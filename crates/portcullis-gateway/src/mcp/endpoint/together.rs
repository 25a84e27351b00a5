//! What all servers are asked together: one answer of those that answer in time, and what becomes of the others.
//!
//! A client is not made to wait for a server that is slow or says nothing. It is answered with what has come, and what comes
//! later is kept: the client is told that the lists have changed, and has it when it asks again. A server that has not
//! introduced itself is sent nothing else, as the protocol wants it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use portcullis_wire::jsonrpc::{INTERNAL_ERROR, INVALID_REQUEST, error_response, result_response};
use portcullis_wire::mcp::{DISCOVER, INITIALIZE};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::merge::{Made, Part, merged};
use super::routes::{Open, Whole};
use super::session::{Refused, Session, State};
use super::streams::{Reading, STANDALONE};
use crate::mcp::gate::SERVER_FAILED;
use crate::mcp::upstream;

/// How long all are waited for, while none has answered.
const TOGETHER_MAX: Duration = Duration::from_secs(10);
/// How long the others are waited for once one has answered: programs that a package runner starts take about so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the next one is waited for at least, after one has answered.
const PATIENCE_MIN: Duration = Duration::from_millis(500);
/// Characters of a server's error that a person is shown.
const REFUSAL_CHARS_MAX: usize = 300;
/// By how much others may be slower than those that have answered a list, up to [`PATIENCE`].
const SLOWER: u32 = 4;

/// The notification that a list has changed, by what lists it and by the capability of servers that have it.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "notifications/tools/list_changed"),
    ("prompts/list", "prompts", "notifications/prompts/list_changed"),
    ("resources/list", "resources", "notifications/resources/list_changed"),
    ("resources/templates/list", "resources", "notifications/resources/list_changed"),
];

/// What came too late for the answer that it was meant for, by server and method.
#[derive(Debug, Default)]
pub(super) struct Late(HashMap<(usize, String), Vec<Value>>);

/// When the answer is due, counted from the question, by when the latest of the servers has answered.
fn due(method: &str, latest: Option<Duration>) -> Duration {
    let Some(latest) = latest else { return TOGETHER_MAX };
    let patience = match method {
        INITIALIZE | DISCOVER => PATIENCE,
        _ => (latest * SLOWER).min(PATIENCE),
    };
    patience.max(latest + PATIENCE_MIN).min(TOGETHER_MAX)
}

impl Session {
    /// Asks all servers.
    pub(super) async fn ask_all(
        self: &Arc<Self>,
        line: &[u8],
        id: &RawValue,
        method: &str,
        made: Made,
    ) -> Result<Reading, Refused> {
        let (reading, number, asked) = {
            let mut state = self.state();
            let asked: Vec<usize> = self
                .servers
                .iter()
                .enumerate()
                .filter(|(at, server)| server.is_alive() && (made == Made::Hello || self.speaks(&state, *at)))
                .map(|(at, _)| at)
                .collect();
            let reading = state.streams.open();
            let whole = Whole {
                id: id.to_owned(),
                stream: reading.stream,
                method: method.to_owned(),
                line: line.to_vec(),
                pages: vec![None; self.servers.len()],
                weights: vec![0; self.servers.len()],
                waiting: asked.clone(),
                error: None,
                asked: Instant::now(),
                latest: None,
                came: Arc::new(Notify::new()),
                told: false,
                given_up: false,
            };
            match state.routes.open_whole(whole) {
                Ok(number) => (reading, number, asked),
                Err(full) => {
                    state.streams.drop_stream(reading.stream);
                    return Err(Refused { code: INVALID_REQUEST, why: full.to_string() });
                }
            }
        };
        for index in &asked {
            let open = Open {
                id: id.to_owned(),
                token: None,
                stream: reading.stream,
                server: *index,
                method: method.to_owned(),
                bytes: line.len(),
                given_up: false,
                whole: Some(number),
            };
            // Beside each other: one that does not read what it is sent holds up none.
            let (session, line) = (Arc::clone(self), line.to_vec());
            tokio::spawn(async move {
                let server = open.server;
                if session.ask(&line, open, &[]).await.is_err() {
                    session.part_came(number, server, made, None);
                }
            });
        }
        if asked.is_empty() {
            self.finish_whole(number, made);
        }
        tokio::spawn(wait(Arc::downgrade(self), number, made));
        Ok(reading)
    }

    /// Whether a server may be asked for more than who it is.
    pub(super) fn speaks(&self, state: &State, server: usize) -> bool {
        self.stateless || self.is_single() || state.introduced.contains(&server)
    }

    /// One server has answered what all are asked, or will not.
    pub(super) fn part_came(&self, number: u64, server: usize, made: Made, error: Option<Box<RawValue>>) {
        let mut state = self.state();
        let Some(whole) = state.routes.whole(number) else { return };
        let Some(at) = whole.waiting.iter().position(|waiting| *waiting == server) else { return };
        whole.waiting.swap_remove(at);
        let (told, done, method) = (whole.told, whole.waiting.is_empty(), whole.method.clone());
        let pages = whole.pages.get(server).cloned().flatten();
        let of_server = self.servers.get(server).map_or("", |server| &server.name);
        if let Some(why) = error.as_deref().and_then(|error| refusal(&method, error)) {
            self.standing.is_amiss(of_server, &why);
        }
        whole.error = whole.error.take().or(error);
        if pages.is_some() {
            whole.latest = Some(whole.asked.elapsed());
        }
        whole.came.notify_one();
        if told && done {
            state.routes.take_whole(number);
        }
        let Some(pages) = pages else {
            drop(state);
            if done && !told {
                self.finish_whole(number, made);
            }
            return;
        };
        self.standing.is_well(of_server);
        if method == INITIALIZE {
            self.introduced(&mut state, server, told.then_some(&pages));
        } else if told {
            self.came_late(&mut state, server, &method, pages);
        }
        drop(state);
        if done && !told {
            self.finish_whole(number, made);
        }
    }

    /// A server has introduced itself: in time, or late, with the pages of its answer.
    fn introduced(&self, state: &mut State, server: usize, late: Option<&Vec<Value>>) {
        state.introduced.insert(server);
        // In time, it is told with all others.
        let Some(pages) = late else { return };
        if let (Some(line), Some(server)) = (state.initialized.clone(), self.servers.get(server)) {
            let gate = Arc::clone(&server.gate);
            tokio::spawn(async move {
                let _ = upstream::message(&gate, &line).await;
            });
        }
        let can = pages.first().and_then(|page| page.get("capabilities"));
        let mut told = Vec::new();
        for (_, capability, notification) in LISTS {
            if can.is_some_and(|can| can.get(capability).is_some()) && !told.contains(&notification) {
                told.push(notification);
                changed(state, notification);
            }
        }
    }

    /// A list of a server came after its time. It is kept for the next time, and the client told unless it knows it.
    fn came_late(&self, state: &mut State, server: usize, method: &str, pages: Vec<Value>) {
        let before = state.late.0.insert((server, method.to_owned()), pages);
        let now = state.late.0.get(&(server, method.to_owned()));
        let list = LISTS.iter().find(|(lists, ..)| *lists == method);
        if let Some((.., notification)) = list.filter(|_| !self.stateless && before.as_ref() != now) {
            changed(state, notification);
        }
    }

    /// Answers with what has come.
    pub(super) fn finish_whole(&self, number: u64, made: Made) {
        let mut state = self.state();
        let Some(whole) = state.routes.whole(number).filter(|whole| !whole.told) else { return };
        whole.told = true;
        let (id, stream, method) = (whole.id.clone(), whole.stream, whole.method.clone());
        let (missing, error, took) = (whole.waiting.clone(), whole.error.take(), whole.asked.elapsed());
        let late = if whole.given_up { &[][..] } else { missing.as_slice() };
        let mut pages = whole.pages.clone();
        for (server, pages) in pages.iter_mut().enumerate() {
            let key = (server, method.clone());
            match pages {
                // It did not come in time again.
                _ if missing.contains(&server) => *pages = state.late.0.get(&key).cloned().or(pages.take()),
                Some(_) => drop(state.late.0.remove(&key)),
                None => {}
            }
        }
        for server in late.iter().filter_map(|server| self.servers.get(*server)) {
            let why = format!("has not answered `{method}` within {:.1} s", took.as_secs_f64());
            self.standing.is_amiss(&server.name, &why);
        }
        state.routes.keep_late(number);
        let parts: Vec<Part<'_>> = self
            .servers
            .iter()
            .zip(&pages)
            .filter_map(|(server, pages)| {
                Some(Part { name: &server.name, prefix: &server.prefix, pages: pages.as_deref()? })
            })
            .collect();
        let line = match (merged(made, &parts), error) {
            (Some(mut result), _) => {
                self.served.store(true, Ordering::SeqCst);
                if method == INITIALIZE {
                    state.version = result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned);
                    announces(&mut result, !missing.is_empty());
                }
                if let Some(kept) = result.get_mut("ttlMs").filter(|_| !missing.is_empty()) {
                    *kept = json!(0);
                }
                result_response(&id, &result)
            }
            (None, Some(error)) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes(),
            (None, None) => error_response(Some(&id), INTERNAL_ERROR, "no server has answered", None),
        };
        state.streams.put(stream, line, true);
    }
}

/// What is amiss with a server that answers so, if that is more than that it does not have what it is asked for.
pub(super) fn refusal(method: &str, error: &RawValue) -> Option<String> {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    // By the gate's own word, it has not answered.
    let failed = error.pointer("/data/class").and_then(Value::as_str) == Some(SERVER_FAILED);
    if method != INITIALIZE && !failed {
        return None;
    }
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    let shown: String = message.chars().take(REFUSAL_CHARS_MAX).flat_map(char::escape_debug).collect();
    Some(match failed {
        true => format!("is not available: {shown}"),
        false => format!("answers `{method}` with an error: {shown}"),
    })
}

/// Says that lists may change: what comes late changes them, and with servers that are late, any of them.
fn announces(hello: &mut Value, late: bool) {
    let Some(can) = hello.get_mut("capabilities").and_then(Value::as_object_mut) else { return };
    for (_, capability, _) in LISTS {
        if late || can.contains_key(capability) {
            let of = can.entry(capability).or_insert_with(|| json!({}));
            if let Some(of) = of.as_object_mut() {
                of.insert("listChanged".to_owned(), true.into());
            }
        }
    }
}

fn changed(state: &mut State, notification: &str) {
    let line = json!({"jsonrpc": "2.0", "method": notification}).to_string();
    state.streams.put(STANDALONE, line.into_bytes(), false);
}

/// Waits until all servers have answered, or long enough, and has the client answered.
async fn wait(session: Weak<Session>, number: u64, made: Made) {
    loop {
        let (left, came) = {
            let Some(session) = session.upgrade() else { return };
            let mut state = session.state();
            let Some(whole) = state.routes.whole(number).filter(|whole| !whole.told) else { return };
            let left = due(&whole.method, whole.latest).saturating_sub(whole.asked.elapsed());
            (left, Arc::clone(&whole.came))
        };
        if left.is_zero() {
            if let Some(session) = session.upgrade() {
                session.finish_whole(number, made);
            }
            return;
        }
        let _ = tokio::time::timeout(left, came.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_waited_for_by_how_long_the_first_ones_took() {
        let due = |method, latest: Option<u64>| due(method, latest.map(Duration::from_millis)).as_millis();
        assert_eq!(due("initialize", None), 10_000);
        assert_eq!(
            [1, 400, 1_900, 9_900].map(|ms| due("initialize", Some(ms))),
            [2_000, 2_000, 2_400, 10_000]
        );
        assert_eq!([1, 200, 1_000].map(|ms| due("tools/list", Some(ms))), [501, 800, 2_000]);
    }
}
