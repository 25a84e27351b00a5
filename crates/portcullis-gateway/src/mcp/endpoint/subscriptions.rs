//! One subscription of a client at several servers.
//!
//! Each server is asked for its part. The client is told once what all of them have agreed to, before anything else on the
//! stream; a server that has not agreed by then is asked no longer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use portcullis_wire::jsonrpc::{INVALID_PARAMS, result_response};
use portcullis_wire::mcp::replace::{SUBSCRIPTION, replace_at, value_at};
use portcullis_wire::mcp::{CANCELLED, META_SUBSCRIPTION, SUBSCRIPTIONS_ACKNOWLEDGED, SUBSCRIPTIONS_LISTEN};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::routes::Open;
use super::session::{Refused, Session, State};
use super::streams::Reading;

/// How long servers may take to agree.
const AGREED_WITHIN: Duration = Duration::from_secs(2);
/// Most messages that wait for the client to be told what was agreed.
const WAITING_MAX: usize = 64;
const RESOURCES: &str = "resourceSubscriptions";
const WANTED: &[&str] = &["params", "notifications"];

/// A subscription, by the number of its stream.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(HashMap<u64, Subscription>);

#[derive(Debug)]
struct Subscription {
    /// The client's id, as sent.
    id: Box<RawValue>,
    /// Servers that have neither agreed nor refused.
    waiting: BTreeSet<usize>,
    /// Servers that tell something.
    telling: BTreeSet<usize>,
    agreed: Map<String, Value>,
    /// The client has been told what was agreed.
    told: bool,
    /// What came before that.
    early: Vec<Vec<u8>>,
}

impl Session {
    /// Asks each server for its part of what the client wants to be told.
    pub(super) async fn listen_to_all(
        self: &Arc<Self>,
        line: &[u8],
        id: &RawValue,
    ) -> Result<Reading, Refused> {
        let wanted = value_at(line, WANTED).map_err(Refused::unreadable)?;
        let wanted = wanted.and_then(|wanted| serde_json::from_str::<Map<String, Value>>(wanted.get()).ok());
        let wanted = wanted.ok_or_else(|| Refused {
            code: INVALID_PARAMS,
            why: "`params.notifications` is missing".to_owned(),
        })?;
        let alive =
            (0..self.servers.len()).filter(|at| self.servers.get(*at).is_some_and(|of| of.is_alive()));
        let parts: Vec<(usize, Map<String, Value>)> =
            alive.filter_map(|at| Some((at, self.part_of(&wanted, at)?))).collect();
        let reading = self.state().streams.open();
        let subscription = Subscription {
            id: id.to_owned(),
            waiting: parts.iter().map(|(at, _)| *at).collect(),
            telling: BTreeSet::new(),
            agreed: Map::new(),
            told: false,
            early: Vec::new(),
        };
        self.state().subscriptions.0.insert(reading.stream, subscription);
        for (server, part) in parts {
            let open = Open {
                id: id.to_owned(),
                token: None,
                stream: reading.stream,
                server,
                method: SUBSCRIPTIONS_LISTEN.to_owned(),
                bytes: line.len(),
                given_up: false,
                whole: None,
            };
            let (session, line, stream) = (Arc::clone(self), line.to_vec(), reading.stream);
            tokio::spawn(async move {
                let part = Value::Object(part).to_string();
                if session.ask(&line, open, &[(WANTED, part)]).await.is_err() {
                    session.subscription_ended(stream, server);
                }
            });
        }
        self.tell_agreed(&mut self.state(), reading.stream, false);
        tokio::spawn(agree(Arc::downgrade(self), reading.stream));
        Ok(reading)
    }

    /// What one server is asked for: changes of lists, and the resources that it has listed. `None` where that is nothing.
    fn part_of(&self, wanted: &Map<String, Value>, server: usize) -> Option<Map<String, Value>> {
        let mut part = wanted.clone();
        if let Some(uris) = part.get_mut(RESOURCES).and_then(Value::as_array_mut) {
            let state = self.state();
            let is_its = |uri: &Value| uri.as_str().and_then(|uri| state.routes.server_of_resource(uri));
            uris.retain(|uri| is_its(uri) == Some(server));
        }
        part.retain(|_, value| *value != false && value.as_array().is_none_or(|uris| !uris.is_empty()));
        (!part.is_empty()).then_some(part)
    }

    /// Takes a notification of a server's part of a subscription. False if it is of none.
    pub(super) fn subscription_said(
        &self,
        state: &mut State,
        open: &Open,
        line: &[u8],
        method: &str,
    ) -> bool {
        let Some(subscription) = state.subscriptions.0.get_mut(&open.stream) else { return false };
        if method == SUBSCRIPTIONS_ACKNOWLEDGED {
            if subscription.waiting.remove(&open.server) {
                subscription.telling.insert(open.server);
                subscription.agree(line);
            }
            self.tell_agreed(state, open.stream, false);
            return true;
        }
        let Ok(told) = replace_at(line, &[(SUBSCRIPTION, open.id.get())]) else { return true };
        match subscription.told {
            true => state.streams.put(open.stream, told, false),
            false if subscription.early.len() < WAITING_MAX => subscription.early.push(told),
            false => tracing::warn!("a change was not told: a server tells many before others have agreed"),
        }
        true
    }

    /// A server's part has ended, or was refused. False if it is of none.
    pub(super) fn subscription_ended(&self, stream: u64, server: usize) -> bool {
        let mut state = self.state();
        let Some(subscription) = state.subscriptions.0.get_mut(&stream) else { return false };
        subscription.waiting.remove(&server);
        let told_something = subscription.telling.remove(&server);
        if told_something && subscription.telling.is_empty() && subscription.told {
            let ended = state.subscriptions.0.remove(&stream).map(|subscription| subscription.id);
            if let Some(id) = ended {
                let result = json!({"resultType": "complete", "_meta": {META_SUBSCRIPTION: id}});
                state.streams.put(stream, result_response(&id, &result), true);
            }
            return true;
        }
        self.tell_agreed(&mut state, stream, false);
        true
    }

    /// Tells the client what was agreed, once all have, or the others are no longer waited for.
    fn tell_agreed(&self, state: &mut State, stream: u64, at_once: bool) {
        let Some(subscription) = state.subscriptions.0.get_mut(&stream) else { return };
        if subscription.told || (!subscription.waiting.is_empty() && !at_once) {
            return;
        }
        subscription.told = true;
        let params =
            json!({"_meta": {META_SUBSCRIPTION: subscription.id}, "notifications": subscription.agreed});
        let line =
            json!({"jsonrpc": "2.0", "method": SUBSCRIPTIONS_ACKNOWLEDGED, "params": params}).to_string();
        let early = std::mem::take(&mut subscription.early);
        state.streams.put(stream, line.into_bytes(), false);
        early.into_iter().for_each(|line| state.streams.put(stream, line, false));
    }

    /// The client no longer reads the stream.
    pub(super) fn subscription_left(state: &mut State, stream: u64) {
        state.subscriptions.0.remove(&stream);
    }
}

impl Subscription {
    /// Adds what a server has agreed to.
    fn agree(&mut self, line: &[u8]) {
        let agreed = value_at(line, WANTED).ok().flatten();
        let agreed = agreed.and_then(|agreed| serde_json::from_str::<Map<String, Value>>(agreed.get()).ok());
        for (name, value) in agreed.unwrap_or_default() {
            match (self.agreed.get_mut(&name), value) {
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, value) => drop(self.agreed.insert(name, value)),
            }
        }
    }
}

/// Waits until servers have agreed for long enough, and gives up those that have not.
async fn agree(session: Weak<Session>, stream: u64) {
    tokio::time::sleep(AGREED_WITHIN).await;
    let Some(session) = session.upgrade() else { return };
    let late: Vec<u64> = {
        let mut state = session.state();
        let waiting = state.subscriptions.0.get(&stream).map(|subscription| subscription.waiting.clone());
        let waiting = waiting.unwrap_or_default();
        session.tell_agreed(&mut state, stream, true);
        let of_stream = state.routes.of_stream(stream).into_iter();
        of_stream.filter(|(_, server)| waiting.contains(server)).map(|(number, _)| number).collect()
    };
    for number in late {
        let line = json!({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": number}});
        session.give_up(number, line.to_string().as_bytes()).await;
        session.state().routes.answered(number);
    }
}
