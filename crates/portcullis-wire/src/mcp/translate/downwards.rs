//! A client without sessions before a server of sessions.
//!
//! - The session was opened with what the client's first request said of it.
//! - A server that asks something while it works on a call is kept waiting: the client gets `input_required`, and when it
//!   makes the call again with the answer, the server gets that, and the call goes on where it was. Nothing is done twice.
//! - Changes that the session tells are told to the subscriptions that want them.

use std::collections::{HashMap, HashSet, VecDeque};

use portcullis_core::event::OutcomeStatus;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::edit::{edited, with_meta, with_result};
use super::said::Said;
use super::{Loss, OWN, STATELESS_META, Turn, check_id};
use crate::fields;
use crate::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, METHOD_NOT_FOUND, Message, error_response, peek,
    result_response,
};
use crate::mcp::elicitation::ELICITATION_CREATE;
use crate::mcp::replace::{CANCELLED_ID, replace_at, value_at};
use crate::mcp::{
    CANCELLED, DISCOVER, INITIALIZE, LOG_MESSAGE, META_SERVER_INFO, META_SUBSCRIPTION, PING, PROMPTS_GET,
    RESOURCES_READ, RESOURCES_SUBSCRIBE, RESOURCES_UNSUBSCRIBE, RESOURCES_UPDATED, ROOTS_LIST,
    SAMPLING_CREATE, SET_LEVEL, SUBSCRIPTIONS_ACKNOWLEDGED, SUBSCRIPTIONS_LISTEN, TOOLS_CALL, TOOLS_LIST,
    V_2026_07_28, cancelled_request,
};

/// Calls that wait for an answer of the client; the oldest is given up for a new one.
const PARKED_MAX: usize = 64;
/// Subscriptions, and resources in one.
const SUBSCRIPTIONS_MAX: usize = 64;
const RESOURCES_MAX: usize = 256;
/// The only name under which a call asks for something: a server of sessions asks one thing after the other.
const INPUT: &str = "input";
/// How the state of a call begins that waits.
const STATE: &str = "portcullis-waits-";
/// What a server is told whose question is not gone on with.
const UNANSWERED: &str = "the client did not answer";
/// Codes that revisions without sessions no longer have.
const RESOURCE_NOT_FOUND: i64 = -32002;
const URL_ELICITATION_REQUIRED: i64 = -32042;

#[derive(Debug)]
pub(super) struct Downwards {
    version: String,
    capabilities: Value,
    server: Value,
    instructions: Option<String>,
    /// The level of log messages that the session was told, as written.
    level: Option<String>,
    numbers: u64,
    /// Requests that the server works on, by the id that it knows.
    open: HashMap<Id, Open>,
    /// The ids at the server of calls that wait for the client, by their states, the oldest first.
    parked: VecDeque<(String, Id)>,
    subscriptions: Vec<Subscription>,
    /// Requests of the translator's own that the server has not answered: the subscription that waits for each.
    own: HashMap<String, Option<Id>>,
}

#[derive(Debug)]
struct Open {
    /// The id that the client knows now, as written.
    client: Box<RawValue>,
    method: String,
    /// What a call says that is made again, to be compared.
    said: Option<Value>,
    logs: bool,
    /// What the client can be asked.
    can: Vec<&'static str>,
    /// What the server asks, oldest first: its ids as written, and its requests.
    questions: VecDeque<(Box<RawValue>, Value)>,
    parked: bool,
    /// The answer, where it came while the client was asked.
    answer: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Subscription {
    id: Id,
    id_raw: Box<RawValue>,
    wanted: Value,
    uris: Vec<String>,
    /// The server's answers that are missing before it is acknowledged.
    missing: usize,
}

impl Downwards {
    /// Begins with what the server answers to `initialize`. `None` if it cannot be read.
    pub(super) fn begin(initialized: &RawValue) -> Option<Self> {
        let initialized = fields::value(initialized).ok()?;
        let version = initialized.get("protocolVersion")?.as_str()?.to_owned();
        Some(Self {
            version,
            capabilities: initialized.get("capabilities").cloned().unwrap_or_else(|| json!({})),
            server: initialized.get("serverInfo").cloned().unwrap_or(Value::Null),
            instructions: initialized.get("instructions").and_then(Value::as_str).map(str::to_owned),
            level: None,
            numbers: 0,
            open: HashMap::new(),
            parked: VecDeque::new(),
            subscriptions: Vec::new(),
            own: HashMap::new(),
        })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// What the server offers that the client's revision has no counterpart for.
    pub(super) fn unmatched(&self) -> Option<&'static str> {
        self.capabilities.get("tasks").filter(|tasks| !tasks.is_null()).map(|_| "tasks")
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn client_says(&mut self, line: &[u8]) -> Option<Turn> {
        match peek(line).ok()? {
            Message::Request { id, id_raw, method, params } => {
                Some(check_id(&id, id_raw).unwrap_or_else(|| self.request(line, id, id_raw, &method, params)))
            }
            Message::Notification { method, params } if method == CANCELLED => {
                Some(cancelled_request(params).map_or_else(Turn::nothing, |id| self.cancelled(line, &id)))
            }
            Message::Notification { .. } => {
                Some(with_meta(line, &STATELESS_META, &[]).map_or_else(|_| Turn::nothing(), Turn::server))
            }
            // A client of this generation is asked in answers to its calls, and answers by making them again.
            Message::Response { .. } => Some(Turn::nothing()),
            Message::Batch(_) => Some(Turn::refused(None, INVALID_REQUEST, "send each message by itself")),
        }
    }

    fn request(
        &mut self,
        line: &[u8],
        id: Id,
        id_raw: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Turn {
        match method {
            DISCOVER => Turn::client(result_response(id_raw, &self.discovered())),
            SUBSCRIPTIONS_LISTEN => self.listen(id, id_raw, params),
            INITIALIZE => {
                let why = format!("this client speaks {V_2026_07_28} already: begin anew to open a session");
                Turn::refused(Some(id_raw), INVALID_REQUEST, &why)
            }
            _ => {
                let said = params.map(Said::of).transpose();
                match said {
                    Err(error) => Turn::refused(Some(id_raw), INVALID_PARAMS, &error.to_string()),
                    Ok(Some(said)) if said.state.as_deref().is_some_and(|state| state.starts_with(STATE)) => {
                        self.resume(id_raw, method, said)
                    }
                    Ok(said) => self.forward(line, id, id_raw, method, said.unwrap_or_default()),
                }
            }
        }
    }

    /// The answer to `server/discover`.
    fn discovered(&self) -> Value {
        let mut capabilities = self.capabilities.clone();
        if let Some(capabilities) = capabilities.as_object_mut() {
            capabilities.remove("tasks");
        }
        let mut discovered = json!({
            "resultType": "complete",
            "supportedVersions": [V_2026_07_28],
            "capabilities": capabilities,
            "_meta": {META_SERVER_INFO: self.server},
            "ttlMs": 0,
            "cacheScope": "private",
        });
        if let (Some(discovered), Some(instructions)) = (discovered.as_object_mut(), &self.instructions) {
            discovered.insert("instructions".to_owned(), instructions.as_str().into());
        }
        discovered
    }

    /// Sends a request on, without what only its own revision says.
    fn forward(&mut self, line: &[u8], id: Id, id_raw: &RawValue, method: &str, said: Said) -> Turn {
        if self.open.contains_key(&id) {
            let why = "the server still works on a request with this id: send another";
            return Turn::refused(Some(id_raw), INVALID_REQUEST, why);
        }
        let sent = match with_meta(line, &STATELESS_META, &[]) {
            Ok(sent) => sent,
            Err(error) => return Turn::refused(Some(id_raw), INVALID_REQUEST, &error.to_string()),
        };
        let mut turn = Turn::nothing();
        let logs = said.level.is_some();
        if let Some(level) = said.level.filter(|level| self.level.as_ref() != Some(level))
            && self.capabilities.get("logging").is_some()
        {
            turn = self.ask(SET_LEVEL, &format!(r#"{{"level":{level}}}"#), None);
            self.level = Some(level);
        }
        let open = Open {
            client: id_raw.to_owned(),
            method: method.to_owned(),
            said: matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ).then_some(said.call),
            logs,
            can: said.can,
            questions: VecDeque::new(),
            parked: false,
            answer: None,
        };
        self.open.insert(id, open);
        turn.and(Turn::server(sent))
    }

    /// A request of the translator's own.
    fn ask(&mut self, method: &str, params: &str, of: Option<Id>) -> Turn {
        let id = format!("{OWN}{}", self.number());
        let line = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#);
        self.own.insert(id, of);
        Turn::server(line.into_bytes())
    }

    /// A call comes again, with what the server waits for.
    fn resume(&mut self, id_raw: &RawValue, method: &str, said: Said) -> Turn {
        let refused = |why: &str| Turn::refused(Some(id_raw), INVALID_PARAMS, why);
        let unknown = "this `requestState` was not given for this call, was used before, or is too old";
        let place = self.parked.iter().position(|(state, _)| Some(state) == said.state.as_ref());
        let Some((_, at)) = place.and_then(|place| self.parked.remove(place)) else {
            return refused(unknown);
        };
        let Some(open) = self.open.get_mut(&at) else { return refused(unknown) };
        if open.method != method || open.said.as_ref() != Some(&said.call) {
            let given_up = self.give_up(&at, UNANSWERED);
            return given_up.and(refused(unknown));
        }
        open.client = id_raw.to_owned();
        if let Some(answer) = open.answer.take() {
            open.parked = false;
            return self.answered(&answer, &at).unwrap_or_else(Turn::nothing);
        }
        let Some(answer) = said.answers.get(INPUT) else { return self.park(at) };
        let Some((question, _)) = open.questions.pop_front() else { return refused(unknown) };
        open.parked = false;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, question.get());
        let turn = Turn::server(answer.into_bytes());
        match open.questions.is_empty() {
            true => turn,
            false => turn.and(self.park(at)),
        }
    }

    /// Answers a call with what its server asks.
    fn park(&mut self, at: Id) -> Turn {
        let state = format!("{STATE}{}", self.number());
        let Some(open) = self.open.get_mut(&at) else { return Turn::nothing() };
        let Some((_, request)) = open.questions.front() else { return Turn::nothing() };
        open.parked = true;
        let result = json!({
            "resultType": "input_required", "inputRequests": {INPUT: request}, "requestState": state,
        });
        let turn = Turn::client(result_response(&open.client, &result));
        self.parked.push_back((state, at));
        match self.parked.len() > PARKED_MAX {
            true => {
                let oldest = self.parked.pop_front();
                oldest.map_or_else(Turn::nothing, |(_, at)| self.give_up(&at, UNANSWERED)).and(turn)
            }
            false => turn,
        }
    }

    /// A call that waited is not gone on with: the server gets no answer.
    fn give_up(&mut self, at: &Id, why: &str) -> Turn {
        let Some(open) = self.open.remove(at) else { return Turn::nothing() };
        let to_server =
            open.questions.iter().map(|(id, _)| error_response(Some(id), INTERNAL_ERROR, why, None));
        Turn { to_server: to_server.collect(), ..Turn::default() }
    }

    /// The client was not told what a call asks, and cannot come back to it: the server is told at once, and that nobody
    /// waits for the call any more.
    pub(super) fn withheld(&mut self, line: &[u8]) -> Turn {
        let state = value_at(line, &["result", "requestState"]).ok().flatten().and_then(fields::string);
        let place = self.parked.iter().position(|(parked, _)| state.as_deref() == Some(parked));
        let Some((_, at)) = place.and_then(|place| self.parked.remove(place)) else { return Turn::nothing() };
        let given_up = self.give_up(&at, "the gate withholds this from the client");
        let Some(at) = written(&at) else { return given_up };
        let cancelled = format!(
            r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{at},"reason":"withheld"}}}}"#
        );
        given_up.and(Turn::server(cancelled.into_bytes()))
    }

    fn listen(&mut self, id: Id, id_raw: &RawValue, params: Option<&RawValue>) -> Turn {
        let wanted = params.and_then(|params| fields::read(params.get(), &["notifications"]).ok());
        let wanted = wanted.and_then(|[wanted]| wanted).and_then(|wanted| fields::value(wanted).ok());
        let Some(Value::Object(mut wanted)) = wanted else {
            return Turn::refused(Some(id_raw), INVALID_PARAMS, "`notifications` is missing");
        };
        let offers = |of: &str, what: &str| {
            self.capabilities.get(of).and_then(|of| of.get(what)).and_then(Value::as_bool) == Some(true)
        };
        wanted.retain(|name, value| match name.as_str() {
            "toolsListChanged" => *value == true && offers("tools", "listChanged"),
            "promptsListChanged" => *value == true && offers("prompts", "listChanged"),
            "resourcesListChanged" => *value == true && offers("resources", "listChanged"),
            "resourceSubscriptions" => offers("resources", "subscribe"),
            _ => false,
        });
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).cloned().unwrap_or_default();
        let uris: Vec<String> = uris.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX || uris.len() > RESOURCES_MAX {
            let why = format!(
                "at most {SUBSCRIPTIONS_MAX} subscriptions are open at once, each with {RESOURCES_MAX} resources"
            );
            return Turn::refused(Some(id_raw), INVALID_REQUEST, &why);
        }
        let known: HashSet<&String> = self.subscriptions.iter().flat_map(|other| &other.uris).collect();
        let new: Vec<String> = uris.iter().filter(|uri| !known.contains(uri)).cloned().collect();
        let missing = new.len();
        self.subscriptions.push(Subscription {
            id: id.clone(),
            id_raw: id_raw.to_owned(),
            wanted: wanted.into(),
            uris,
            missing,
        });
        let asked = new.iter().fold(Turn::nothing(), |turn, uri| {
            turn.and(self.ask(RESOURCES_SUBSCRIBE, &json!({"uri": uri}).to_string(), Some(id.clone())))
        });
        asked.and(self.acknowledged(&id))
    }

    /// Acknowledges a subscription, once the server has agreed to all of it.
    fn acknowledged(&self, id: &Id) -> Turn {
        let of = self
            .subscriptions
            .iter()
            .find(|subscription| subscription.id == *id && subscription.missing == 0);
        of.map_or_else(Turn::nothing, |subscription| {
            let notifications = &subscription.wanted;
            Turn::client(
                format!(
                    r#"{{"jsonrpc":"2.0","method":"{SUBSCRIPTIONS_ACKNOWLEDGED}","params":{{"_meta":{{"{META_SUBSCRIPTION}":{}}},"notifications":{notifications}}}}}"#,
                    subscription.id_raw.get()
                )
                .into_bytes(),
            )
        })
    }

    /// The client gives up a request, or a subscription.
    fn cancelled(&mut self, line: &[u8], id: &Id) -> Turn {
        if let Some(place) = self.subscriptions.iter().position(|subscription| subscription.id == *id) {
            let ended = self.subscriptions.swap_remove(place);
            let known: HashSet<&String> = self.subscriptions.iter().flat_map(|other| &other.uris).collect();
            let unused: Vec<&String> = ended.uris.iter().filter(|uri| !known.contains(uri)).collect();
            let unused: Vec<String> = unused.into_iter().map(|uri| json!({"uri": uri}).to_string()).collect();
            return unused.iter().fold(Turn::nothing(), |turn, params| {
                turn.and(self.ask(RESOURCES_UNSUBSCRIBE, params, None))
            });
        }
        let known_as = |open: &Open| !open.parked && Id::of(&open.client).as_ref() == Some(id);
        let Some(at) = self.open.iter().find(|(_, open)| known_as(open)).map(|(at, _)| at.clone()) else {
            return Turn::nothing();
        };
        self.open.remove(&at);
        let Some(at) = written(&at) else { return Turn::nothing() };
        let told =
            with_meta(line, &STATELESS_META, &[]).and_then(|line| replace_at(&line, &[(CANCELLED_ID, &at)]));
        told.map_or_else(|_| Turn::nothing(), Turn::server)
    }

    pub(super) fn server_says(&mut self, line: &[u8]) -> Option<Turn> {
        match peek(line).ok()? {
            Message::Response { id: Id::String(id), error, .. } if self.own.contains_key(id.as_ref()) => {
                let of = self.own.remove(id.as_ref()).flatten();
                Some(of.map_or_else(Turn::nothing, |of| self.agreed(&of, error)))
            }
            Message::Response { id, .. } => self.answered(line, &id),
            Message::Request { id_raw, method, params, .. } => Some(self.question(id_raw, &method, params)),
            Message::Notification { method, params } => self.told(line, &method, params),
            Message::Batch(elements) => {
                let turns = elements.iter().map(|element| {
                    let element = element.get().as_bytes();
                    self.server_says(element).unwrap_or_else(|| Turn::client(element.to_vec()))
                });
                Some(turns.fold(Turn::nothing(), Turn::and))
            }
        }
    }

    /// The server has answered a request to tell of a resource's changes.
    fn agreed(&mut self, id: &Id, error: Option<&RawValue>) -> Turn {
        let Some(place) = self.subscriptions.iter().position(|subscription| subscription.id == *id) else {
            return Turn::nothing();
        };
        if let Some(error) = error {
            let ended = self.subscriptions.swap_remove(place);
            let line = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, ended.id_raw.get(), error.get());
            return Turn::client(line.into_bytes());
        }
        if let Some(subscription) = self.subscriptions.get_mut(place) {
            subscription.missing = subscription.missing.saturating_sub(1);
        }
        self.acknowledged(id)
    }

    /// The answer to a request, as the client's revision has it.
    fn answered(&mut self, line: &[u8], id: &Id) -> Option<Turn> {
        let open = self.open.get_mut(id)?;
        if open.parked {
            open.answer = Some(line.to_vec());
            return Some(Turn::nothing());
        }
        let open = self.open.remove(id)?;
        let Ok(Message::Response { error, .. }) = peek(line) else { return None };
        let told = match error {
            Some(error) if code_of(error) == Some(URL_ELICITATION_REQUIRED) => {
                let why = "the server wants its user to open an address first, which has no counterpart in the revision that the client speaks";
                let asks = OutcomeStatus::InputRequired;
                return Some(Turn::ended(Some(&open.client), INTERNAL_ERROR, why, asks));
            }
            Some(error) => Ok(error_of(&open.client, error)),
            None => with_result(line, &open.client, |result| completed(&open.method, result)),
        };
        Some(told.map_or_else(
            |error| {
                let why = format!("the server's answer cannot be read: {error}");
                Turn::ended(Some(&open.client), INTERNAL_ERROR, &why, OutcomeStatus::Unknown)
            },
            Turn::client,
        ))
    }

    /// The server asks the client, on behalf of the call that it works on.
    fn question(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) -> Turn {
        let refused = |code: i64, why: &str| Turn::server(error_response(Some(id), code, why, None));
        if method == PING {
            return Turn::server(result_response(id, &json!({})));
        }
        if !matches!(method, ELICITATION_CREATE | SAMPLING_CREATE | ROOTS_LIST) {
            return refused(METHOD_NOT_FOUND, "the client speaks a revision that has no such request");
        }
        let params = match params.map(fields::value).transpose() {
            Ok(params) => params.unwrap_or_else(|| json!({})),
            Err(error) => return refused(INVALID_PARAMS, &error.to_string()),
        };
        // A call that waits for the client holds its server up, so the question is of another one, if there is one.
        let works = self.open.values().any(|open| open.said.is_some() && !open.parked);
        let asks = |open: &Open| open.said.is_some() && open.parked != works && open.answer.is_none();
        let mut calls = self.open.iter_mut().filter(|(_, open)| asks(open));
        let (Some((at, open)), None) = (calls.next(), calls.next()) else {
            return refused(
                INVALID_REQUEST,
                "the client speaks a revision in which a question belongs to a call, and it cannot be told to which this belongs",
            );
        };
        if !open.can.contains(&method) {
            return refused(METHOD_NOT_FOUND, "the client says that it cannot answer this");
        }
        open.questions.push_back((id.to_owned(), json!({"method": method, "params": params})));
        let at = at.clone();
        match open.parked || open.questions.len() > 1 {
            true => Turn::nothing(),
            false => self.park(at),
        }
    }

    /// A notification of the session.
    fn told(&mut self, line: &[u8], method: &str, params: Option<&RawValue>) -> Option<Turn> {
        let wanted = match method {
            LOG_MESSAGE => {
                let logs = self.open.values().any(|open| open.logs && !open.parked);
                return if logs { None } else { Some(Turn::nothing()) };
            }
            "notifications/tools/list_changed" => "toolsListChanged",
            "notifications/prompts/list_changed" => "promptsListChanged",
            "notifications/resources/list_changed" => "resourcesListChanged",
            RESOURCES_UPDATED => "resourceSubscriptions",
            // What the server no longer asks is answered with nothing, and an address that was visited is told by a retry.
            CANCELLED | "notifications/elicitation/complete" => return Some(Turn::nothing()),
            _ => return None,
        };
        let uri = params.and_then(|params| fields::read(params.get(), &["uri"]).ok());
        let uri = uri.and_then(|[uri]| uri).and_then(fields::string).unwrap_or_default();
        let wants = |subscription: &&Subscription| {
            subscription.missing == 0
                && subscription.wanted.get(wanted).is_some()
                && (wanted != "resourceSubscriptions" || covers(&subscription.uris, &uri))
        };
        let told = self.subscriptions.iter().filter(wants).filter_map(|subscription| {
            with_meta(line, &[], &[(META_SUBSCRIPTION, subscription.id_raw.get())]).ok()
        });
        Some(Turn { to_client: told.collect(), ..Turn::default() })
    }

    pub(super) fn lost(&mut self, id: &Id) -> Turn {
        if let Id::String(own) = id
            && let Some(of) = self.own.remove(own.as_ref())
        {
            let gone = RawValue::from_string(
                json!({"code": INTERNAL_ERROR, "message": "the server did not answer"}).to_string(),
            );
            return of.map_or_else(Turn::nothing, |of| self.agreed(&of, gone.ok().as_deref()));
        }
        let client = self.open.remove(id).filter(|open| !open.parked).and_then(|open| Id::of(&open.client));
        Turn { lost: client.map(|id| Loss { id, why: None }).into_iter().collect(), ..Turn::default() }
    }
}

/// A result with what the client's revision has besides.
fn completed(method: &str, result: &str) -> Result<String, fields::FieldError> {
    let known = fields::read(result, &["resultType", "ttlMs", "cacheScope"])?;
    let cacheable = matches!(
        method,
        TOOLS_LIST | "prompts/list" | "resources/list" | "resources/templates/list" | RESOURCES_READ
    );
    let put = [("resultType", "\"complete\""), ("ttlMs", "0"), ("cacheScope", "\"private\"")];
    let with: Vec<(&str, &str)> = put
        .into_iter()
        .zip(known)
        .filter(|((name, _), known)| known.is_none() && (cacheable || *name == "resultType"))
        .map(|(put, _)| put)
        .collect();
    edited(result, &[], &with)
}

/// An error with a code that the client's revision has.
fn error_of(id: &RawValue, error: &RawValue) -> Vec<u8> {
    let changed = (code_of(error) == Some(RESOURCE_NOT_FOUND))
        .then(|| edited(error.get(), &[], &[("code", &INVALID_PARAMS.to_string())]).ok());
    let error = changed.flatten().unwrap_or_else(|| error.get().to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}

fn code_of(error: &RawValue) -> Option<i64> {
    let [code] = fields::read(error.get(), &["code"]).ok()?;
    code?.get().parse().ok()
}

/// Whether one of the resources is the one that changed, or one that it is a part of.
fn covers(uris: &[String], changed: &str) -> bool {
    uris.iter().any(|uri| {
        changed == uri
            || changed.strip_prefix(uri.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    })
}

/// An id as it is written.
fn written(id: &Id) -> Option<String> {
    match id {
        Id::Integer(number) => Some(number.to_string()),
        Id::Number(number) => Some(number.to_string()),
        Id::String(text) => Some(Value::from(text.as_ref()).to_string()),
        Id::Null => None,
    }
}
