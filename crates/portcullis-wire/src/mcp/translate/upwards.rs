//! A client of sessions before a server without.
//!
//! - The session is the translator's: each request goes out with what the client said when it opened it.
//! - A server that needs something answers `input_required`. The client is asked in requests of their own, and the call is
//!   made again with what it answers, or after a pause where the server only asks for that.
//! - Changes come by subscriptions: one for lists, one for each resource that the client subscribes to.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use portcullis_core::event::OutcomeStatus;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::edit::{edited, with_meta, with_params};
use super::subscriptions::{Subscription, changing_lists, subscription_ended};
use super::{Again, Loss, OWN, Turn, check_id, method_of};
use crate::fields;
use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, Message, peek, result_response};
use crate::mcp::elicitation::ELICITATION_CREATE;
use crate::mcp::replace::{ID, replace_at, value_at};
use crate::mcp::{
    CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL,
    META_PROTOCOL_VERSION, META_SERVER_INFO, PING, PROGRESS, PROMPTS_GET, RESOURCES_READ,
    RESOURCES_SUBSCRIBE, RESOURCES_UNSUBSCRIBE, ROOTS_CHANGED, ROOTS_LIST, SAMPLING_CREATE,
    SESSION_REVISIONS, SET_LEVEL, TOOLS_CALL, V_2025_11_25, V_2026_07_28, cancelled_request,
};

/// How often one call may ask for something, or to be made again.
const ROUNDS_MAX: u32 = 64;
/// What one answer may ask for.
const INPUTS_MAX: usize = 32;
/// Calls that can be made again, and their bytes.
const CALLS_MAX: usize = 256;
const CALLS_BYTES_MAX: usize = 32 << 20;
/// The pause before a call is made again, for each round, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Upwards {
    /// What each request says of the client: names and values, as written.
    pub(super) meta: Vec<(&'static str, String)>,
    /// The least severe log messages that the client wants, as written.
    level: Option<String>,
    /// What the subscription to lists asks for; none where no list of the server changes.
    lists: Option<Value>,
    pub(super) numbers: u64,
    /// Calls that can be made again, by the client's id.
    calls: HashMap<Id, Call>,
    /// The client's ids of calls that were made again, by the ids at the server.
    again: HashMap<String, Id>,
    /// What the client is asked, by the id that it answers.
    questions: HashMap<String, Question>,
    /// Subscriptions, by their ids.
    pub(super) subscriptions: HashMap<String, Subscription>,
    /// Those that broke off and are to be opened again, by the ids that they had.
    pub(super) broken: HashMap<String, Subscription>,
    /// How often that happened since the server last told something.
    pub(super) breaks: u32,
}

#[derive(Debug)]
struct Call {
    /// As the server was sent it the first time.
    line: Vec<u8>,
    /// Its id at the server now, if it was made again.
    at: Option<String>,
    rounds: u32,
    /// The server's state, as written.
    state: Option<String>,
    /// How many answers of the client are missing.
    missing: usize,
    /// Those that are there, as written.
    answers: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Question {
    call: Id,
    /// The server's name for it.
    key: String,
}

/// The first question to a server of unknown generation. `None` if the client's opening cannot be read.
pub(super) fn discover(hello: &[u8], id: &str) -> Option<Vec<u8>> {
    let meta = meta_of(hello)?;
    let line = json!({"jsonrpc": "2.0", "id": id, "method": DISCOVER}).to_string();
    with_meta(line.as_bytes(), &[], &borrowed(&meta)).ok()
}

/// What the client says of itself when it opens a session, as each request has to say it.
fn meta_of(hello: &[u8]) -> Option<Vec<(&'static str, String)>> {
    let Ok(Message::Request { params: Some(params), .. }) = peek(hello) else { return None };
    let [capabilities, client] = fields::read(params.get(), &["capabilities", "clientInfo"]).ok()?;
    let capabilities = fields::present(capabilities).map_or("{}", RawValue::get);
    let client = fields::present(client)?.get().to_owned();
    Some(vec![
        (META_PROTOCOL_VERSION, format!("\"{V_2026_07_28}\"")),
        (META_CLIENT_INFO, client),
        // Tasks of sessions are others than those of the extension.
        (META_CLIENT_CAPABILITIES, edited(capabilities, &["tasks"], &[]).ok()?),
    ])
}

pub(super) fn borrowed<'m>(meta: &'m [(&'static str, String)]) -> Vec<(&'m str, &'m str)> {
    meta.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

impl Upwards {
    /// Begins with what the server answers to [`discover`]; how it introduces itself to the client. `None` if it does not
    /// speak the revision.
    pub(super) fn begin(hello: &[u8], discovered: &RawValue) -> Option<(Self, Vec<u8>)> {
        let discovered = fields::value(discovered).ok()?;
        let versions = discovered.get("supportedVersions")?.as_array()?;
        versions.iter().find(|version| version.as_str() == Some(V_2026_07_28))?;
        let capabilities = discovered.get("capabilities").cloned().unwrap_or_else(|| json!({}));
        let translation = Self {
            meta: meta_of(hello)?,
            level: None,
            lists: changing_lists(&capabilities),
            numbers: 0,
            calls: HashMap::new(),
            again: HashMap::new(),
            questions: HashMap::new(),
            subscriptions: HashMap::new(),
            broken: HashMap::new(),
            breaks: 0,
        };
        let introduced = introduction(hello, &discovered, capabilities)?;
        Some((translation, introduced))
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn client_says(&mut self, line: &[u8]) -> Option<Turn> {
        match peek(line).ok()? {
            Message::Request { id, id_raw, method, params } => {
                Some(check_id(&id, id_raw).unwrap_or_else(|| self.request(line, id, id_raw, &method, params)))
            }
            Message::Notification { method, params } => self.notification(line, &method, params),
            Message::Response { id: Id::String(id), result, error } => {
                let question = self.questions.remove(id.as_ref())?;
                Some(self.answered(question, result, error))
            }
            Message::Response { .. } => None,
            Message::Batch(_) => {
                let why = format!(
                    "the server speaks {V_2026_07_28}, which has no batches: send each message by itself"
                );
                Some(Turn::refused(None, INVALID_REQUEST, &why))
            }
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
        let done = || Turn::client(result_response(id_raw, &json!({})));
        match method {
            INITIALIZE => Turn::refused(Some(id_raw), INVALID_REQUEST, "the session is open already"),
            PING => done(),
            SET_LEVEL => {
                let level = params.and_then(|params| fields::read(params.get(), &["level"]).ok());
                match level.and_then(|[level]| fields::present(level)) {
                    Some(level) => {
                        self.level = Some(level.get().to_owned());
                        done()
                    }
                    None => Turn::refused(Some(id_raw), INVALID_PARAMS, "`level` is missing"),
                }
            }
            RESOURCES_SUBSCRIBE | RESOURCES_UNSUBSCRIBE => {
                let uri = params.and_then(|params| fields::read(params.get(), &["uri"]).ok());
                let uri = uri.and_then(|[uri]| uri).and_then(fields::string);
                match uri {
                    None => Turn::refused(Some(id_raw), INVALID_PARAMS, "`uri` is missing"),
                    Some(uri) if method == RESOURCES_SUBSCRIBE => self.subscribe(&uri, id_raw),
                    Some(uri) => self.unsubscribe(&uri).and(done()),
                }
            }
            _ => self.forward(line, id, id_raw, method),
        }
    }

    /// Sends a request on, with what the client said of itself.
    fn forward(&mut self, line: &[u8], id: Id, id_raw: &RawValue, method: &str) -> Turn {
        if value_at(line, &["params", "task"]).is_ok_and(|task| task.is_some()) {
            let why = format!(
                "the server speaks {V_2026_07_28}, in which a call cannot ask to go on as a task: leave `task` out"
            );
            return Turn::refused(Some(id_raw), INVALID_PARAMS, &why);
        }
        let mut meta = borrowed(&self.meta);
        meta.extend(self.level.as_deref().map(|level| (META_LOG_LEVEL, level)));
        let sent = match with_meta(line, &[], &meta) {
            Ok(sent) => sent,
            Err(error) => return Turn::refused(Some(id_raw), INVALID_REQUEST, &error.to_string()),
        };
        let kept: usize = self.calls.values().map(|call| call.line.len()).sum();
        let fits = self.calls.len() < CALLS_MAX && kept + sent.len() <= CALLS_BYTES_MAX;
        if fits && matches!(method, TOOLS_CALL | PROMPTS_GET | RESOURCES_READ) {
            let call = Call {
                line: sent.clone(),
                at: None,
                rounds: 0,
                state: None,
                missing: 0,
                answers: BTreeMap::new(),
            };
            self.calls.insert(id, call);
        }
        Turn::server(sent)
    }

    fn notification(&mut self, line: &[u8], method: &str, params: Option<&RawValue>) -> Option<Turn> {
        match method {
            INITIALIZED => Some(match self.lists.take() {
                None => Turn::nothing(),
                Some(lists) => self.listen(&lists, Subscription::Lists { wanted: lists.clone() }),
            }),
            // Nobody waits for these: the server asks for roots whenever it needs them, and for nothing while it works.
            ROOTS_CHANGED | PROGRESS => Some(Turn::nothing()),
            CANCELLED => {
                let id = cancelled_request(params)?;
                if own(&id).is_some() {
                    return Some(Turn::nothing());
                }
                let call = self.calls.remove(&id)?;
                let withdrawn = self.withdraw(&id);
                let told = match call.at {
                    Some(at) => {
                        self.again.remove(&at);
                        cancelled(&at)
                    }
                    None => line.to_vec(),
                };
                Some(Turn::server(told).and(withdrawn))
            }
            _ => None,
        }
    }

    /// The client need not answer what was asked for a call.
    fn withdraw(&mut self, call: &Id) -> Turn {
        let of_call = |question: &Question| question.call == *call;
        let ids: Vec<String> = self
            .questions
            .iter()
            .filter(|(_, question)| of_call(question))
            .map(|(id, _)| id.clone())
            .collect();
        ids.iter().fold(Turn::nothing(), |turn, id| {
            self.questions.remove(id);
            turn.and(Turn::client(cancelled(id)))
        })
    }

    /// The client has answered what the server needs.
    fn answered(&mut self, question: Question, result: Option<&RawValue>, error: Option<&RawValue>) -> Turn {
        let Question { call: id, key } = question;
        let Some(call) = self.calls.get_mut(&id) else { return Turn::nothing() };
        let Some(result) = result else {
            let why = error.and_then(|error| fields::read(error.get(), &["message"]).ok());
            let why = why.and_then(|[message]| message).and_then(fields::string).unwrap_or_default();
            let why = format!("what the server needs for this was not given: {why}");
            return self.fail(&id, &why);
        };
        call.answers.insert(key, result.get().to_owned());
        call.missing = call.missing.saturating_sub(1);
        match call.missing {
            0 => self.again(&id),
            _ => Turn::nothing(),
        }
    }

    /// Makes a call again, with what there is to answer.
    fn again(&mut self, id: &Id) -> Turn {
        let at = format!("{OWN}again-{}", self.number());
        let Some(call) = self.calls.get_mut(id) else { return Turn::nothing() };
        let answers = std::mem::take(&mut call.answers);
        let answers: Vec<(&str, &str)> =
            answers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let state = call.state.take();
        let line = replace_at(&call.line, &[(ID, &Value::from(at.as_str()).to_string())]).and_then(|line| {
            with_params(&line, |params| {
                let answers = edited("{}", &[], &answers)?;
                let mut with = Vec::new();
                if answers != "{}" {
                    with.push(("inputResponses", answers.as_str()));
                }
                with.extend(state.as_deref().map(|state| ("requestState", state)));
                edited(params, &["inputResponses", "requestState"], &with)
            })
        });
        match line {
            Err(error) => self.fail(id, &error.to_string()),
            Ok(line) => {
                call.at = Some(at.clone());
                self.again.insert(at, id.clone());
                match method_of(&line).as_deref() {
                    // With what the client was asked it is another call than the one that was permitted.
                    Some(TOOLS_CALL) => {
                        Turn { again: vec![Again { id: id.clone(), line }], ..Turn::default() }
                    }
                    _ => Turn::server(line),
                }
            }
        }
    }

    /// A call is not made again.
    pub(super) fn forget(&mut self, id: &Id) -> Turn {
        if let Some(at) = self.calls.remove(id).and_then(|call| call.at) {
            self.again.remove(&at);
        }
        self.withdraw(id)
    }

    /// Makes a call again that the server wanted made again, or opens a subscription again that broke off.
    pub(super) fn due(&mut self, id: &Id) -> Turn {
        let Some(broken) = own(id).and_then(|own| self.broken.remove(own)) else { return self.again(id) };
        let wanted = match &broken {
            Subscription::Lists { wanted } => wanted.clone(),
            Subscription::Resource { uri, .. } => json!({"resourceSubscriptions": [uri]}),
        };
        self.listen(&wanted, broken)
    }

    /// Ends a call without a result of the server.
    fn fail(&mut self, id: &Id, why: &str) -> Turn {
        let withdrawn = self.withdraw(id);
        let Some(call) = self.calls.remove(id) else { return withdrawn };
        let id_raw = value_at(&call.line, ID).ok().flatten();
        // The last that the server has said is that it needs something.
        withdrawn.and(Turn::ended(id_raw, INTERNAL_ERROR, why, OutcomeStatus::InputRequired))
    }

    pub(super) fn server_says(&mut self, line: &[u8]) -> Option<Turn> {
        match peek(line).ok()? {
            Message::Response { id, result, error } => self.response(line, &id, result, error),
            Message::Notification { method, params } => self.told(line, &method, params?),
            _ => None,
        }
    }

    fn response(
        &mut self,
        line: &[u8],
        id: &Id,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) -> Option<Turn> {
        let own = own(id);
        if let Some(ended) = own.and_then(|own| self.subscriptions.remove(own)) {
            return Some(subscription_ended(ended, error));
        }
        let call = match own {
            Some(own) => self.again.remove(own)?,
            None => id.clone(),
        };
        if !self.calls.contains_key(&call) {
            return None;
        }
        if let Some(result) = result.filter(|result| needs_input(result)) {
            return Some(self.round(&call, result).unwrap_or_else(|why| self.fail(&call, &why)));
        }
        let kept = self.calls.remove(&call)?;
        own?;
        let id_raw = value_at(&kept.line, ID).ok().flatten()?;
        Some(Turn::client(replace_at(line, &[(ID, id_raw.get())]).ok()?))
    }

    /// The server needs something for a call, or wants it made again.
    fn round(&mut self, id: &Id, result: &RawValue) -> Result<Turn, String> {
        let unreadable =
            |error: &dyn std::fmt::Display| format!("what the server needs for this cannot be read: {error}");
        let [requests, state] = fields::read(result.get(), &["inputRequests", "requestState"])
            .map_err(|error| unreadable(&error))?;
        let (_, requests) = match fields::present(requests) {
            None => ([], Vec::new()),
            Some(requests) => {
                fields::read_with_rest::<0>(requests.get(), &[]).map_err(|error| unreadable(&error))?
            }
        };
        if requests.len() > INPUTS_MAX {
            return Err(format!("the server needs more than {INPUTS_MAX} things for this"));
        }
        let mut asked = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let own = format!("{OWN}input-{}", self.number());
            asked.push((key, question(&own, request)?, own));
        }
        let Some(call) = self.calls.get_mut(id) else { return Ok(Turn::nothing()) };
        call.rounds += 1;
        if call.rounds > ROUNDS_MAX {
            return Err(format!("the server asked for something more than {ROUNDS_MAX} times"));
        }
        call.state = fields::present(state).map(|state| state.get().to_owned());
        call.missing = asked.len();
        call.answers.clear();
        if asked.is_empty() {
            let pause = (PAUSE * call.rounds).min(PAUSE_MAX);
            return Ok(Turn { later: Some((pause, id.clone())), ..Turn::default() });
        }
        Ok(asked.into_iter().fold(Turn::nothing(), |turn, (key, line, own)| {
            self.questions.insert(own, Question { call: id.clone(), key });
            turn.and(Turn::client(line))
        }))
    }

    pub(super) fn lost(&mut self, id: &Id) -> Turn {
        let own = own(id);
        let lost = |id: Id| Turn { lost: vec![Loss { id, why: None }], ..Turn::default() };
        let Some(own) = own else {
            self.calls.remove(id);
            return lost(id.clone());
        };
        if let Some(broken) = self.subscriptions.remove(own) {
            return self.broke_off(own, broken);
        }
        match self.again.remove(own) {
            Some(call) => {
                self.calls.remove(&call);
                lost(call)
            }
            None => Turn::nothing(),
        }
    }
}

/// The answer to `initialize`.
fn introduction(hello: &[u8], discovered: &Value, mut capabilities: Value) -> Option<Vec<u8>> {
    let Ok(Message::Request { id_raw, params: Some(params), .. }) = peek(hello) else { return None };
    let [version] = fields::read(params.get(), &["protocolVersion"]).ok()?;
    let version =
        version.and_then(fields::string).filter(|version| SESSION_REVISIONS.contains(&version.as_ref()));
    let server = discovered.get("_meta").and_then(|meta| meta.get(META_SERVER_INFO)).cloned();
    if let Some(capabilities) = capabilities.as_object_mut() {
        // An extension that only one side speaks is not used.
        capabilities.remove("extensions");
    }
    let mut result = json!({
        "protocolVersion": version.as_deref().unwrap_or(V_2025_11_25),
        "capabilities": capabilities,
        "serverInfo": server.unwrap_or_else(|| json!({"name": "server", "version": "unknown"})),
    });
    if let (Some(result), Some(instructions)) = (result.as_object_mut(), discovered.get("instructions")) {
        result.insert("instructions".to_owned(), instructions.clone());
    }
    Some(result_response(id_raw, &result))
}

/// An id of the translator's own.
pub(super) fn own(id: &Id) -> Option<&str> {
    match id {
        Id::String(id) if id.starts_with(OWN) => Some(id.as_ref()),
        _ => None,
    }
}

fn needs_input(result: &RawValue) -> bool {
    let kind = fields::read(result.get(), &["resultType"]);
    kind.ok().and_then(|[kind]| kind).and_then(fields::string).is_some_and(|kind| kind == "input_required")
}

/// What the client is asked for a server that needs something.
fn question(id: &str, request: &RawValue) -> Result<Vec<u8>, String> {
    let unreadable =
        |error: fields::FieldError| format!("what the server needs for this cannot be read: {error}");
    let [method, params] = fields::read(request.get(), &["method", "params"]).map_err(unreadable)?;
    let method = method.and_then(fields::string).unwrap_or_default();
    if !matches!(method.as_ref(), ELICITATION_CREATE | SAMPLING_CREATE | ROOTS_LIST) {
        return Err("the server asks the client for something that no client can answer".to_owned());
    }
    let mut params = fields::present(params).map_or("{}", RawValue::get).to_owned();
    let [mode, own] = fields::read(&params, &["mode", "elicitationId"]).map_err(unreadable)?;
    if mode.and_then(fields::string).is_some_and(|mode| mode == "url") && own.is_none() {
        let named = Value::from(id).to_string();
        params = edited(&params, &[], &[("elicitationId", &named)]).map_err(unreadable)?;
    }
    Ok(format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#).into_bytes())
}

pub(super) fn cancelled(id: &str) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": id}}).to_string().into_bytes()
}
