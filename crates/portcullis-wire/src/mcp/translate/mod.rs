//! Translation between the two generations of the protocol, for a client of one and a server of the other.
//!
//! The generations differ in how a conversation opens, in who may ask whom, and in how changes are told: up to 2025-11-25
//! a client opens a session and a server sends requests of its own; from 2026-07-28 each request says everything by
//! itself, and a server that needs something answers `input_required`. [`Translator`] learns from the first messages who
//! speaks what. Where both speak the same, it says so and every byte passes. Otherwise [`Upwards`] serves a client of
//! sessions before a server without, and [`Downwards`] a client without before a server of sessions.
//!
//! It does no I/O and stands between a gate and a server: a gate judges messages of the client's generation. Nothing is
//! dropped that one side could miss: what has no counterpart is refused with words.

mod downwards;
mod edit;
mod said;
mod subscriptions;
mod upwards;

use std::collections::HashMap;
use std::time::Duration;

use portcullis_core::event::OutcomeStatus;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    DISCOVER, INITIALIZE, INITIALIZED, META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL,
    META_PROTOCOL_VERSION, TOOLS_CALL, V_2025_11_25, V_2026_07_28, request_meta,
};
use crate::fields;
use crate::jsonrpc::{INVALID_REQUEST, Id, Message, error_response, peek};
use downwards::Downwards;
use upwards::Upwards;

/// How ids of requests begin that are the translator's own. A client's must not.
const OWN: &str = "portcullis-";
const DISCOVER_ID: &str = "portcullis-discover";
const INITIALIZE_ID: &str = "portcullis-initialize";
/// Messages of the client that wait until it is known what the server speaks, and their bytes.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Requests that are remembered until it is known what the server speaks.
const ASKED_MAX: usize = 64;

/// What to do where a server offers what the client's generation has no counterpart for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmatched {
    /// Do not translate: the client is told why, and may speak the other generation itself.
    Refuse,
    /// Do not offer it.
    LeaveOut,
}

/// What happens because of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// What the server is sent.
    pub to_server: Vec<Vec<u8>>,
    /// What the client is told, as if by the server.
    pub to_client: Vec<Vec<u8>>,
    /// Calls of tools to be made again, each once that is permitted. Of one that is not, [`Translator::forget`] is told.
    pub again: Vec<Again>,
    /// A call to go on with after a while, by [`Translator::due`].
    pub later: Option<(Duration, Id)>,
    /// Requests of the client that get no answer.
    pub lost: Vec<Loss>,
    /// Requests of the client that the translation ends by itself.
    pub ended: Vec<Ended>,
}

/// A call of a tool that the server wants made again, with what it asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Again {
    /// The client's id.
    pub id: Id,
    /// What the server is sent.
    pub line: Vec<u8>,
}

/// A request that gets no answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Loss {
    /// The client's id.
    pub id: Id,
    /// Why, if it is another reason than the one that was reported.
    pub why: Option<String>,
}

/// A request that is not translated, or not to its end. No server has said so.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// The error for the client, which repeats nothing that the server says.
    pub line: Vec<u8>,
    /// What is known of it if it is a call.
    pub status: OutcomeStatus,
}

impl Turn {
    fn server(line: Vec<u8>) -> Self {
        Self { to_server: vec![line], ..Self::default() }
    }

    fn client(line: Vec<u8>) -> Self {
        Self { to_client: vec![line], ..Self::default() }
    }

    /// A message that goes no further.
    fn nothing() -> Self {
        Self::default()
    }

    /// A request that the server was not sent.
    fn refused(id: Option<&RawValue>, code: i64, why: &str) -> Self {
        Self::ended(id, code, why, OutcomeStatus::NotExecuted)
    }

    fn ended(id: Option<&RawValue>, code: i64, why: &str, status: OutcomeStatus) -> Self {
        let line = error_response(id, code, why, Some(&json!({"class": "not_translated"})));
        Self { ended: vec![Ended { line, status }], ..Self::default() }
    }

    fn and(mut self, more: Self) -> Self {
        self.to_server.extend(more.to_server);
        self.to_client.extend(more.to_client);
        self.again.extend(more.again);
        self.later = self.later.or(more.later);
        self.lost.extend(more.lost);
        self.ended.extend(more.ended);
        self
    }
}

/// Finds out what client and server speak, and translates.
#[derive(Debug)]
pub struct Translator {
    unmatched: Unmatched,
    era: Era,
    /// Messages of the client that wait.
    waiting: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Era {
    /// Nothing was said.
    New,
    /// The client has opened a session, and the server has not answered.
    Greeted { hello: Vec<u8>, id: Id },
    /// The server refused that, and is asked whether it knows no sessions.
    Sounding { hello: Vec<u8>, refusal: Refusal },
    /// The client speaks without sessions, and the server has not answered so far.
    Asked(HashMap<Id, First>),
    /// The server refused a request of that, and is asked whether it knows sessions only.
    Doubted { first: Vec<u8>, refusal: Refusal, asked: HashMap<Id, First> },
    /// A session is being opened for a client without.
    Opening { first: Vec<u8>, refusal: Refusal, asked: HashMap<Id, First> },
    /// Both speak the same.
    Same,
    /// A client of sessions, a server without.
    Up(Box<Upwards>),
    /// A client without sessions, a server of sessions.
    Down(Box<Downwards>),
}

/// A request by which it is found out what the server speaks.
#[derive(Debug)]
struct First {
    line: Vec<u8>,
    /// The transport says that it was not carried out.
    refused: bool,
}

impl First {
    fn new(line: &[u8]) -> Self {
        Self { line: line.to_vec(), refused: false }
    }
}

/// How a server refused the request by which it was found out.
#[derive(Debug, Clone)]
enum Refusal {
    Line(Vec<u8>),
    Lost(Id, String),
}

impl Refusal {
    fn told(self) -> Turn {
        match self {
            Self::Line(line) => Turn::client(line),
            Self::Lost(id, why) => Turn { lost: vec![Loss { id, why: Some(why) }], ..Turn::default() },
        }
    }

    /// The same refusal, in other words, and with nothing besides: the server refuses.
    fn because(self, why: &str) -> Turn {
        match self {
            Self::Lost(id, _) => {
                Turn { lost: vec![Loss { id, why: Some(why.to_owned()) }], ..Turn::default() }
            }
            Self::Line(line) => {
                let code = error_code(&line).unwrap_or(INVALID_REQUEST);
                let id = super::replace::value_at(&line, super::replace::ID).ok().flatten();
                let line = error_response(id, code, why, None);
                Turn { ended: vec![Ended { line, status: OutcomeStatus::NotExecuted }], ..Turn::default() }
            }
        }
    }
}

impl Translator {
    /// Before anything was said.
    #[must_use]
    pub fn new(unmatched: Unmatched) -> Self {
        Self { unmatched, era: Era::New, waiting: Vec::new() }
    }

    /// Both speak the same generation: all that follows passes as it is.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.era, Era::Same)
    }

    /// It is known what both speak. Before, what is sent must be sent in the order of the turns.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        matches!(self.era, Era::Same | Era::Up(_) | Era::Down(_))
    }

    /// Takes a message of the client. `None`: it passes as it is.
    pub fn client_says(&mut self, line: &[u8]) -> Option<Turn> {
        match &mut self.era {
            Era::Same => None,
            Era::Up(translation) => translation.client_says(line),
            Era::Down(translation) => translation.client_says(line),
            Era::Sounding { .. } | Era::Doubted { .. } | Era::Opening { .. } => Some(self.wait(line)),
            Era::New | Era::Greeted { .. } | Era::Asked(_) => {
                self.first(line);
                None
            }
        }
    }

    /// Notes how the client opens.
    fn first(&mut self, line: &[u8]) {
        let Ok(Message::Request { id, method, params, .. }) = peek(line) else { return };
        if method == INITIALIZE {
            self.era = Era::Greeted { hello: line.to_vec(), id };
            return;
        }
        let stateless = request_meta(params)
            .is_ok_and(|meta| meta.protocol_version.is_some_and(|version| version.as_ref() >= V_2026_07_28));
        if !stateless {
            return;
        }
        match &mut self.era {
            Era::Asked(asked) if asked.len() < ASKED_MAX => {
                asked.insert(id, First::new(line));
            }
            Era::New => self.era = Era::Asked(HashMap::from([(id, First::new(line))])),
            _ => {}
        }
    }

    /// Keeps a message until it is known what the server speaks.
    fn wait(&mut self, line: &[u8]) -> Turn {
        let bytes: usize = self.waiting.iter().map(Vec::len).sum();
        if self.waiting.len() < WAITING_MAX && bytes + line.len() <= WAITING_BYTES_MAX {
            self.waiting.push(line.to_vec());
            return Turn::nothing();
        }
        match peek(line) {
            Ok(Message::Request { id_raw, .. }) => {
                let why = "too many requests wait until it is known which revisions the server speaks; send it again";
                Turn::refused(Some(id_raw), INVALID_REQUEST, why)
            }
            _ => Turn::nothing(),
        }
    }

    /// What waited goes on.
    fn go_on(&mut self, era: Era, turn: Turn) -> Turn {
        self.era = era;
        std::mem::take(&mut self.waiting).iter().fold(turn, |turn, line| {
            let next = self.client_says(line).unwrap_or_else(|| Turn::server(line.clone()));
            turn.and(next)
        })
    }

    /// Takes a message of the server. `None`: it passes as it is.
    pub fn server_says(&mut self, line: &[u8]) -> Option<Turn> {
        match &mut self.era {
            Era::Same | Era::New => return None,
            Era::Up(translation) => return translation.server_says(line),
            Era::Down(translation) => return translation.server_says(line),
            _ => {}
        }
        let Ok(Message::Response { id, result, .. }) = peek(line) else { return None };
        if self.refused_besides(&id, |first| result.is_none() && (first.refused || !calls_tool(&first.line)))
        {
            return Some(Turn::nothing());
        }
        match std::mem::replace(&mut self.era, Era::Same) {
            Era::Greeted { hello, id: asked } if asked == id => match result {
                Some(_) => None,
                None => Some(self.sound(hello, Refusal::Line(line.to_vec()))),
            },
            Era::Sounding { hello, refusal } if is_own(&id, DISCOVER_ID) => {
                Some(self.sounded(&hello, refusal, result))
            }
            Era::Asked(mut asked) => match asked.remove(&id) {
                None => {
                    self.era = Era::Asked(asked);
                    None
                }
                Some(_) if result.is_some() || is_modern_error(line) => None,
                Some(first) if calls_tool(&first.line) && !first.refused => {
                    // An error of a tool's server does not tell that nothing was done.
                    self.era = Era::Asked(asked);
                    None
                }
                Some(first) => Some(self.doubt(first.line, Refusal::Line(line.to_vec()), asked)),
            },
            Era::Doubted { first, refusal, asked } if is_own(&id, DISCOVER_ID) => {
                match result.is_some() || is_modern_error(line) {
                    true => Some(self.go_on(Era::Same, refusal.told())),
                    false => Some(self.open(first, refusal, asked)),
                }
            }
            Era::Opening { first, refusal, .. } if is_own(&id, INITIALIZE_ID) => {
                Some(self.opened(&first, refusal, result))
            }
            other => {
                self.era = other;
                None
            }
        }
    }

    /// The transport says of a request that it was not carried out, whatever its answer is.
    pub fn refused(&mut self, id: &Id) {
        if let Era::Asked(asked) | Era::Doubted { asked, .. } | Era::Opening { asked, .. } = &mut self.era
            && let Some(first) = asked.get_mut(id)
        {
            first.refused = true;
        }
    }

    /// A request got no answer from the server; `refused` where it is certain that it was not carried out.
    pub fn lost(&mut self, id: &Id, refused: bool, why: &str) -> Turn {
        let reported = |id: &Id| Turn { lost: vec![Loss { id: id.clone(), why: None }], ..Turn::default() };
        let refusal = || Refusal::Lost(id.clone(), why.to_owned());
        match &mut self.era {
            Era::Up(translation) => return translation.lost(id),
            Era::Down(translation) => return translation.lost(id),
            _ => {}
        }
        if refused && self.refused_besides(id, |_| true) {
            return Turn::nothing();
        }
        match std::mem::replace(&mut self.era, Era::Same) {
            Era::Greeted { hello, id: asked } if asked == *id && refused => self.sound(hello, refusal()),
            Era::Sounding { refusal, .. } if is_own(id, DISCOVER_ID) => self.go_on(Era::Same, refusal.told()),
            Era::Asked(mut asked) if refused => match asked.remove(id) {
                Some(first) => self.doubt(first.line, refusal(), asked),
                None => {
                    self.era = Era::Asked(asked);
                    reported(id)
                }
            },
            Era::Doubted { first, refusal, asked } if is_own(id, DISCOVER_ID) => match refused {
                true => self.open(first, refusal, asked),
                false => self.go_on(Era::Same, refusal.told()),
            },
            Era::Opening { refusal, .. } if is_own(id, INITIALIZE_ID) => {
                self.go_on(Era::Same, refusal.told())
            }
            other => {
                self.era = other;
                reported(id)
            }
        }
    }

    /// Another request that was sent at once with the first and refused as well: it waits for the same. False if it is none,
    /// or may have been carried out.
    fn refused_besides(&mut self, id: &Id, is_refused: impl FnOnce(&First) -> bool) -> bool {
        let (Era::Doubted { asked, .. } | Era::Opening { asked, .. }) = &mut self.era else { return false };
        if !asked.get(id).is_some_and(is_refused) {
            return false;
        }
        let Some(first) = asked.remove(id) else { return false };
        self.waiting.push(first.line);
        true
    }

    /// Goes on with a call, as [`Turn::later`] has asked for.
    pub fn due(&mut self, call: &Id) -> Turn {
        match &mut self.era {
            Era::Up(translation) => translation.due(call),
            _ => Turn::nothing(),
        }
    }

    /// A call is not made again, and the client was told why.
    pub fn forget(&mut self, call: &Id) -> Turn {
        match &mut self.era {
            Era::Up(translation) => translation.forget(call),
            _ => Turn::nothing(),
        }
    }

    /// The client was not told what a server asks on behalf of a call, as `line` has it: nobody will answer it.
    pub fn withheld(&mut self, line: &[u8]) -> Turn {
        match &mut self.era {
            Era::Down(translation) => translation.withheld(line),
            // Otherwise the server is told by the answer to its request, or does not wait.
            _ => Turn::nothing(),
        }
    }

    /// Asks a server that refused a session whether it knows none.
    fn sound(&mut self, hello: Vec<u8>, refusal: Refusal) -> Turn {
        let Some(asking) = upwards::discover(&hello, DISCOVER_ID) else { return refusal.told() };
        self.era = Era::Sounding { hello, refusal };
        Turn::server(asking)
    }

    fn sounded(&mut self, hello: &[u8], refusal: Refusal, result: Option<&RawValue>) -> Turn {
        match result.and_then(|result| Upwards::begin(hello, result)) {
            Some((translation, introduced)) => {
                self.go_on(Era::Up(Box::new(translation)), Turn::client(introduced))
            }
            None => self.go_on(Era::Same, refusal.told()),
        }
    }

    /// A request without session was refused: the server may know sessions only.
    fn doubt(&mut self, first: Vec<u8>, refusal: Refusal, asked: HashMap<Id, First>) -> Turn {
        if method_of(&first).as_deref() == Some(DISCOVER) {
            return self.open(first, refusal, asked);
        }
        let Some(meta) = Meta::of(&first) else { return self.go_on(Era::Same, refusal.told()) };
        let asking = json!({
            "jsonrpc": "2.0", "id": DISCOVER_ID, "method": DISCOVER, "params": {"_meta": meta.of_request()},
        });
        self.era = Era::Doubted { first, refusal, asked };
        Turn::server(asking.to_string().into_bytes())
    }

    /// Opens a session for a client without.
    fn open(&mut self, first: Vec<u8>, refusal: Refusal, asked: HashMap<Id, First>) -> Turn {
        let Some(meta) = Meta::of(&first) else { return self.go_on(Era::Same, refusal.told()) };
        let asking = json!({
            "jsonrpc": "2.0", "id": INITIALIZE_ID, "method": INITIALIZE,
            "params": {
                "protocolVersion": V_2025_11_25,
                "capabilities": meta.capabilities,
                "clientInfo": meta.client,
            },
        });
        self.era = Era::Opening { first, refusal, asked };
        Turn::server(asking.to_string().into_bytes())
    }

    fn opened(&mut self, first: &[u8], refusal: Refusal, result: Option<&RawValue>) -> Turn {
        let Some(translation) = result.and_then(Downwards::begin) else {
            return self.go_on(Era::Same, refusal.told());
        };
        if let Some(feature) = translation.unmatched().filter(|_| self.unmatched == Unmatched::Refuse) {
            let why = format!(
                "the server speaks {}, and offers {feature}, which have no counterpart in {V_2026_07_28}: open a session \
                 with `{INITIALIZE}`",
                translation.version()
            );
            return self.go_on(Era::Same, refusal.because(&why));
        }
        let greeted = json!({"jsonrpc": "2.0", "method": INITIALIZED});
        self.waiting.insert(0, first.to_vec());
        let turn = Turn::server(greeted.to_string().into_bytes());
        self.go_on(Era::Down(Box::new(translation)), turn)
    }
}

/// What a request without session says of its client.
struct Meta {
    client: Value,
    capabilities: Value,
}

impl Meta {
    fn of(line: &[u8]) -> Option<Self> {
        let Ok(Message::Request { params: Some(params), .. }) = peek(line) else { return None };
        let [meta] = fields::read(params.get(), &["_meta"]).ok()?;
        let [client, capabilities] =
            fields::read(meta?.get(), &[META_CLIENT_INFO, META_CLIENT_CAPABILITIES]).ok()?;
        let value = |raw: Option<&RawValue>| fields::present(raw).map(fields::value).transpose().ok();
        Some(Self {
            client: value(client)?.unwrap_or_else(|| json!({"name": "client", "version": "unknown"})),
            capabilities: value(capabilities)?.unwrap_or_else(|| json!({})),
        })
    }

    fn of_request(&self) -> Value {
        json!({
            META_PROTOCOL_VERSION: V_2026_07_28,
            META_CLIENT_INFO: self.client,
            META_CLIENT_CAPABILITIES: self.capabilities,
        })
    }
}

/// The members of `_meta` that revisions without sessions have, and others do not.
const STATELESS_META: [&str; 4] =
    [META_PROTOCOL_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL];

fn is_own(id: &Id, own: &str) -> bool {
    matches!(id, Id::String(id) if **id == *own)
}

/// Refuses a request whose id could be taken for one of the translator's.
fn check_id(id: &Id, id_raw: &RawValue) -> Option<Turn> {
    let taken = matches!(id, Id::String(id) if id.starts_with(OWN));
    taken.then(|| {
        let why = format!("ids that begin with `{OWN}` are the gate's own; send another");
        Turn::refused(Some(id_raw), INVALID_REQUEST, &why)
    })
}

fn method_of(line: &[u8]) -> Option<String> {
    match peek(line) {
        Ok(Message::Request { method, .. }) => Some(method.into_owned()),
        _ => None,
    }
}

fn calls_tool(line: &[u8]) -> bool {
    method_of(line).as_deref() == Some(TOOLS_CALL)
}

fn error_code(line: &[u8]) -> Option<i64> {
    let Ok(Message::Response { error: Some(error), .. }) = peek(line) else { return None };
    let [code] = fields::read(error.get(), &["code"]).ok()?;
    code?.get().parse().ok()
}

/// Whether an error tells that its server knows revisions without sessions.
fn is_modern_error(line: &[u8]) -> bool {
    let Ok(Message::Response { error: Some(error), .. }) = peek(line) else { return false };
    let Ok([Some(code), data]) = fields::read(error.get(), &["code", "data"]) else { return false };
    match code.get() {
        "-32020" | "-32021" => true,
        "-32022" => {
            let supported = data.and_then(|data| fields::read(data.get(), &["supported"]).ok());
            let supported = supported.and_then(|[supported]| supported).map(RawValue::get);
            supported.and_then(|versions| serde_json::from_str::<Vec<String>>(versions).ok()).is_none_or(
                |versions| {
                    versions.is_empty() || versions.iter().any(|version| version.as_str() >= V_2026_07_28)
                },
            )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
