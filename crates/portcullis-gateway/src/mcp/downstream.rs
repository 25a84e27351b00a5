//! From the server to the client: answers to gated calls are recorded and judged before they pass, and so is all else
//! that has a text; lists of tools lose what is disabled. What is not changed passes byte for byte.
//!
//! The server is not trusted either. A response that answers nothing, and a line that two readers could read
//! differently, could be the result of a call in disguise, so they are dropped.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_core::denial::Denial;
use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::id::{ActionId, Digest, DigestBuilder};
use portcullis_trajectory::flow::is_word;
use portcullis_wire::FieldError;
use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{INTERNAL_ERROR, Id, Message, error_response, peek, without_other_members};
use portcullis_wire::mcp::excise::{Piece, Replacement, replace_in_message};
use portcullis_wire::mcp::result::{
    RESULT_TEXT_BYTES_MAX, ResultKind, Told, asked, error_text, is_standard_error, read_tool_result, told,
};
use portcullis_wire::mcp::task::read_task_state;
use portcullis_wire::mcp::translate::Turn;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;

use super::answers::{NOT_RECORDED, RESULT_TOO_LONG, UNREADABLE_RESULT, WITHHELD, denied, withheld};
use super::calls::{Call, Open};
use super::gate::{Gate, Reader, is_blank, shown};
use super::listing;
use super::unasked::Room;
use super::upstream::ID_BYTES_MAX;
use crate::api::{ReportOutcome, TextEdit};

/// Longest method of a message of the server, in bytes.
const METHOD_BYTES_MAX: usize = 256;

/// Why a text that is to be edited is withheld instead.
const NOT_APART: &str = "the part to cut out of it cannot be separated from the rest";

/// Stands in the record at the end of a text that is not all.
pub(super) const CUT_MARK: &str = "\n[portcullis: cut here; the rest of the result is not recorded]";

/// Passes lines until the server closes its output, or the client its input.
pub(super) async fn pump(gate: &Arc<Gate>, mut output: impl AsyncRead + Unpin) {
    let Some(mut turns) = gate.to_server.translation.turns() else { return };
    let mut splitter = LineSplitter::default();
    let mut reader = Reader::default();
    loop {
        let read = tokio::select! {
            read = reader.read(&mut output) => read,
            Some(turn) = turns.recv() => {
                Box::pin(take(gate, *turn, OutcomeStatus::Unknown, "")).await;
                continue;
            }
        };
        let read = match read {
            Ok([]) => break,
            Ok(read) => read,
            Err(error) => {
                tracing::warn!("the server's messages can no longer be read: {error}");
                break;
            }
        };
        splitter.feed(read);
        while let Some(line) = splitter.next_line() {
            match line {
                // Apart, so that a server that says nothing holds no room for what is done with what it says.
                Ok(line) => Box::pin(heard(gate, line)).await,
                Err(error) => tracing::warn!("a message from the server was dropped: {error}"),
            }
        }
    }
    if !splitter.remainder().is_empty() {
        Box::pin(heard(gate, splitter.remainder())).await;
    }
    while let Ok(turn) = turns.try_recv() {
        Box::pin(take(gate, *turn, OutcomeStatus::Unknown, "")).await;
    }
}

/// Takes a line of the server, translated where the client speaks another generation.
async fn heard(gate: &Arc<Gate>, line: &[u8]) {
    let Ok(line) = alone(line) else { return };
    let line = line.as_ref();
    match gate.to_server.heard(line) {
        None => message(gate, line).await,
        Some(turn) => take(gate, turn, OutcomeStatus::Unknown, "").await,
    }
}

/// A message of the server without what is no part of any message, which nobody would judge. An error: it cannot be read,
/// and is dropped.
fn alone(line: &[u8]) -> Result<Cow<'_, [u8]>, ()> {
    if is_blank(line) {
        return Ok(Cow::Borrowed(line));
    }
    match without_other_members(line) {
        Ok(None) => Ok(Cow::Borrowed(line)),
        Ok(Some(alone)) => {
            tracing::warn!(
                "a message of the server has members that are no part of the protocol; they were taken out: {}",
                shown(line)
            );
            Ok(Cow::Owned(alone))
        }
        Err(error) => {
            tracing::warn!(
                "a line from the server is not a message and was dropped: {error}: {}",
                shown(line)
            );
            Err(())
        }
    }
}

/// Takes what a translation has the client told, and what it has lost; `status` and `why` where that is a request that was
/// reported as lost.
pub(super) async fn take(gate: &Arc<Gate>, turn: Turn, status: OutcomeStatus, why: &str) {
    for line in &turn.to_client {
        message(gate, line).await;
    }
    gate.follow(turn, status, why).await;
}

async fn pass(gate: &Gate, line: &[u8]) {
    if let Err(error) = gate.to_client.line(line).await {
        tracing::debug!("the client no longer reads: {error}");
    }
}

async fn message(gate: &Arc<Gate>, line: &[u8]) {
    if is_blank(line) {
        return pass(gate, line).await;
    }
    match peek(line) {
        Err(error) => {
            tracing::warn!(
                "a line from the server is not a message and was dropped: {error}: {}",
                shown(line)
            );
        }
        Ok(Message::Request { .. } | Message::Notification { .. }) => {
            if let Some(passed) = said(gate, line).await {
                pass(gate, passed.as_deref().unwrap_or(line)).await;
            }
        }
        Ok(Message::Response { id, error, .. }) => match answered(gate, &id, error.is_some()) {
            None => tracing::warn!("a response from the server was dropped: no request {id} is open"),
            Some(open) => {
                let (shared, line) = (Arc::clone(gate), line.to_vec());
                gate.spawn(async move {
                    let changed = respond(&shared, &line, open).await;
                    if let Some(changed) = &changed {
                        shared.to_server.withheld(&line, changed);
                    }
                    pass(&shared, changed.as_deref().unwrap_or(&line)).await;
                });
            }
        },
        Ok(Message::Batch(elements)) => batch(gate, line, &elements).await,
    }
}

/// What a response answers, if anything.
fn answered(gate: &Gate, id: &Id, is_error: bool) -> Option<Open> {
    if *id == Id::Null {
        // The server could not read a message. A result answers nothing: no request has this id.
        let nobody = RawValue::from_string("null".to_owned()).ok()?;
        return is_error.then_some(Open::Other(nobody));
    }
    gate.calls.answered(id)
}

/// What becomes of a request or a notification of the server: outer none where it does not pass, inner none where it
/// passes as it is. A request that does not pass is answered.
async fn said(gate: &Arc<Gate>, line: &[u8]) -> Option<Option<Vec<u8>>> {
    let (id, method, params) = match peek(line) {
        Ok(Message::Request { id_raw, method, params, .. }) => (Some(id_raw), method, params),
        Ok(Message::Notification { method, params }) => (None, method, params),
        _ => return None,
    };
    if !is_method(&method) || id.is_some_and(|id| id.get().len() > ID_BYTES_MAX) {
        tracing::warn!(
            "a message from the server was dropped: its method or its id is invalid: {}",
            shown(line)
        );
        return None;
    }
    let heard = match gate.unasked.take(line.len()) {
        Room::Enough => overheard(gate, line, asked(id, params)).await,
        Room::NoMore => Heard::Withheld(
            "the server has said too much that nobody asked for; so is what follows".to_owned(),
        ),
        // It was said once.
        Room::None if id.is_none() => return None,
        Room::None => Heard::Withheld("the server has said too much that nobody asked for".to_owned()),
    };
    match heard {
        Heard::Passes => Some(None),
        Heard::Changed(line) => Some(Some(line)),
        Heard::Withheld(why) => {
            tracing::warn!("a message from the server is withheld: {why}");
            if let Some(id) = id.map(ToOwned::to_owned) {
                // Beside: what follows from it comes back here.
                let shared = Arc::clone(gate);
                gate.spawn(async move {
                    if shared.to_server.refuse(&id, &why).await.is_err() {
                        tracing::debug!("the server could not be told that its request is withheld");
                    }
                });
            }
            None
        }
    }
}

/// Whether a method is named like one: in letters, digits and the signs that methods have, and not at length.
fn is_method(method: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.$".contains(&byte);
    !method.is_empty() && method.len() <= METHOD_BYTES_MAX && method.bytes().all(sign)
}

/// What becomes of something that a server says.
pub(super) enum Heard {
    Passes,
    /// With stretches replaced.
    Changed(Vec<u8>),
    /// Why.
    Withheld(String),
}

/// Judges and records the text of a message that does not answer a call.
pub(super) async fn overheard(gate: &Gate, line: &[u8], told: Result<Told, FieldError>) -> Heard {
    let withheld = |why: &str| Heard::Withheld(format!("the gate withholds what the server says: {why}"));
    let Told { text, pieces, truncated, .. } = match told {
        Ok(told) => told.with_split_words(is_word),
        Err(error) => return withheld(&format!("it is ambiguous: {error}")),
    };
    if text.is_empty() {
        return Heard::Passes;
    }
    if truncated {
        return withheld(&too_long());
    }
    let judged = match gate.told(text.clone()).await {
        Ok(judged) => judged,
        Err(error) => return withheld(&format!("it could not be recorded ({error})")),
    };
    if judged.enforced == Enforced::Replaced {
        return match excised(line, &pieces, &text, &judged.edits) {
            Some(excised) => Heard::Changed(excised),
            None => withheld(NOT_APART),
        };
    }
    if judged.enforced.proceeds() {
        return Heard::Passes;
    }
    withheld(
        &judged.denial.map_or_else(|| format!("the verdict on it is `{}`", judged.verdict), |d| d.message),
    )
}

fn too_long() -> String {
    format!("it has more than the {RESULT_TEXT_BYTES_MAX} bytes of text that are judged")
}

async fn batch(gate: &Arc<Gate>, line: &[u8], elements: &[&RawValue]) {
    let mut kept: Vec<Vec<u8>> = Vec::with_capacity(elements.len());
    let mut changed = false;
    for element in elements {
        let bytes = element.get().as_bytes();
        let alone = alone(bytes);
        changed |= !matches!(alone, Ok(Cow::Borrowed(_)));
        let bytes = alone.as_deref().unwrap_or(bytes);
        let passed = match alone.is_ok().then(|| peek(bytes)) {
            None | Some(Err(_) | Ok(Message::Batch(_))) => None,
            Some(Ok(Message::Request { .. } | Message::Notification { .. })) => said(gate, bytes).await,
            Some(Ok(Message::Response { id, error, .. })) => match answered(gate, &id, error.is_some()) {
                None => None,
                Some(open) => Some(respond(gate, bytes, open).await),
            },
        };
        match passed {
            None => {
                changed = true;
                tracing::warn!("a message in a batch of the server was dropped: {}", shown(bytes));
            }
            Some(replaced) => {
                changed |= replaced.is_some();
                kept.push(replaced.unwrap_or_else(|| bytes.to_vec()));
            }
        }
    }
    if !changed {
        pass(gate, line).await;
    } else if !kept.is_empty() {
        pass(gate, &[b"[".as_slice(), &kept.join(b",".as_slice()), b"]"].concat()).await;
    }
}

/// What the client gets in place of a response; none: the response itself.
async fn respond(gate: &Gate, line: &[u8], open: Open) -> Option<Vec<u8>> {
    let Ok(Message::Response { result, error, .. }) = peek(line) else { return None };
    match open {
        Open::Waiting(..) => None,
        Open::Other(id) => other(gate, line, &id, result, error).await,
        Open::Hello(id) => match result {
            None => other(gate, line, &id, result, error).await,
            Some(result) => listing::hello(gate, line, &id, result).await,
        },
        Open::List(id) => match result {
            None => other(gate, line, &id, result, error).await,
            Some(result) => listing::list(gate, line, &id, result).await,
        },
        Open::Executing { call, action, .. } => {
            let seen = Seen::of(result, error);
            match seen.task.clone() {
                Some(task) if seen.complaint.is_none() => created(gate, line, call, action, task, seen).await,
                _ => conclude(gate, line, &call, action, seen).await,
            }
        }
        Open::Task { request, task, action, nested } => {
            let came = match result {
                Some(answer) if nested => state_of_task(gate, &request, &task, answer),
                // A state that cannot be told now may be asked for again; a result is told once.
                None if nested => return other(gate, line, &request.id_raw, result, error).await,
                _ => Ok(Came::of(result, error, Told::default())
                    .map_or(State::Open(Told::default()), State::Came)),
            };
            match came {
                Ok(State::Open(told)) => passed_on(gate, line, &request.id_raw, Ok(told)).await,
                Ok(State::Came(came)) => task_result(gate, line, &request, &task, action, came).await,
                Err(why) => Some(unreadable(gate, &request, action, why)),
            }
        }
    }
}

/// An answer to something else than a call: its text is the server's word.
async fn other(
    gate: &Gate,
    line: &[u8],
    id: &RawValue,
    result: Option<&RawValue>,
    error: Option<&RawValue>,
) -> Option<Vec<u8>> {
    let told = match (result, error) {
        (Some(result), _) => told(result),
        (None, Some(error)) => match error_text(error) {
            Ok(told) if is_standard_error(&told.text) => return None,
            told => told,
        },
        (None, None) => return None,
    };
    passed_on(gate, line, id, told).await
}

/// What the client gets instead of an answer that has this text; none: the answer itself.
async fn passed_on(
    gate: &Gate,
    line: &[u8],
    id: &RawValue,
    told: Result<Told, FieldError>,
) -> Option<Vec<u8>> {
    match overheard(gate, line, told).await {
        Heard::Passes => None,
        Heard::Changed(line) => Some(line),
        Heard::Withheld(why) => {
            tracing::warn!("the answer to request {} is withheld: {why}", id.get());
            let data = json!({"class": "result_withheld"});
            Some(error_response(Some(id), INTERNAL_ERROR, &why, Some(&data)))
        }
    }
}

/// A call continues as a task. What its server says about that is judged before it is followed.
async fn created(
    gate: &Gate,
    line: &[u8],
    call: Call,
    action: ActionId,
    task: String,
    seen: Seen,
) -> Option<Vec<u8>> {
    let Seen { content, pieces, .. } = &seen;
    let told = Told::whole(content.clone().unwrap_or_default(), pieces.clone());
    let changed = passed_on(gate, line, &call.id_raw, Ok(told)).await;
    if gate.calls.follow_task(task, call.tool.clone(), action) {
        return changed;
    }
    let why = "too many tasks are open, or this one is known already".to_owned();
    let seen = Seen { complaint: Some((NOT_RECORDED, why)), ..seen };
    conclude(gate, line, &call, action, seen).await
}

/// A result as a gate sees it.
struct Seen {
    status: OutcomeStatus,
    content: Option<String>,
    /// The rule by which it must not pass whatever the guards say, and why.
    complaint: Option<(&'static str, String)>,
    /// The call goes on as this task.
    task: Option<String>,
    /// Where the content is in the message.
    pieces: Vec<Piece>,
}

impl Seen {
    fn of(result: Option<&RawValue>, error: Option<&RawValue>) -> Self {
        let (status, told, task) = match (result.map(read_tool_result), error.map(error_text)) {
            (Some(Err(error)), _) | (None, Some(Err(error))) => return Self::unreadable(error.to_string()),
            (Some(Ok(read)), _) => {
                let status = match read.kind {
                    ResultKind::Complete => OutcomeStatus::Ok,
                    ResultKind::Error => OutcomeStatus::Error,
                    ResultKind::InputRequired => OutcomeStatus::InputRequired,
                    ResultKind::TaskCreated | ResultKind::Other(_) => OutcomeStatus::Unknown,
                };
                (status, read.told, read.task_id)
            }
            (None, Some(Ok(told))) => (OutcomeStatus::Error, told, None),
            (None, None) => return Self::unreadable("it has neither result nor error".to_owned()),
        };
        Self::said(status, told.with_split_words(is_word), task)
    }

    fn said(status: OutcomeStatus, told: Told, task: Option<String>) -> Self {
        let Told { text, pieces, truncated, .. } = told;
        let complaint = truncated.then(|| (RESULT_TOO_LONG, too_long()));
        let content = if truncated { text + CUT_MARK } else { text };
        Self { status, content: Some(content), complaint, task, pieces }
    }

    fn unreadable(why: String) -> Self {
        Self {
            status: OutcomeStatus::Unknown,
            content: None,
            complaint: Some((UNREADABLE_RESULT, format!("it is ambiguous: {why}"))),
            task: None,
            pieces: Vec::new(),
        }
    }
}

/// Records a result and has it judged; returns what the client gets instead, if it must not pass as it is.
async fn conclude(gate: &Gate, line: &[u8], call: &Call, action: ActionId, seen: Seen) -> Option<Vec<u8>> {
    let Seen { status, content, complaint, pieces, .. } = seen;
    let outcome = ReportOutcome::of(action, status, content.clone());
    let recorded = gate.run.outcome(outcome).await;
    let own = |rule, why| withheld(gate.run.id(), action, &call.tool, rule, why);
    let denial: Denial = match (recorded, complaint) {
        (Err(error), _) => own(NOT_RECORDED, format!("it could not be recorded ({error})")),
        (Ok(_), Some((rule, why))) => own(rule, why),
        (Ok(judged), None) if judged.enforced == Enforced::Replaced => {
            match excised(line, &pieces, content.as_deref().unwrap_or_default(), &judged.edits) {
                Some(excised) => return Some(excised),
                None => own(WITHHELD, NOT_APART.into()),
            }
        }
        (Ok(judged), None) if judged.enforced.proceeds() => return None,
        (Ok(judged), None) => match judged.denial {
            Some(denial) => denial,
            None => own(WITHHELD, format!("the verdict on it is `{}`", judged.verdict)),
        },
    };
    tracing::warn!("the result of call {} is withheld: {}", call.id_raw, denial.message);
    Some(denied(call, &denial))
}

/// The message with the stretches of its result replaced that the verdict names.
fn excised(line: &[u8], pieces: &[Piece], text: &str, edits: &[TextEdit]) -> Option<Vec<u8>> {
    let replacements: Vec<Replacement<'_>> = edits
        .iter()
        .map(|edit| Replacement { start: edit.start, end: edit.end, with: &edit.replacement })
        .collect();
    replace_in_message(line, pieces, text, &replacements)
}

fn unreadable(gate: &Gate, call: &Call, action: ActionId, why: String) -> Vec<u8> {
    denied(call, &withheld(gate.run.id(), action, &call.tool, UNREADABLE_RESULT, why))
}

/// The outcome of a task, with a digest to know it by.
struct Came {
    seen: Seen,
    digest: Digest,
}

impl Came {
    /// A result or an error, with what is said besides.
    fn of(result: Option<&RawValue>, error: Option<&RawValue>, besides: Told) -> Option<Self> {
        let said = result.or(error)?;
        let digest = DigestBuilder::new("portcullis/task-result/v3")
            .part(if result.is_some() { b"result" } else { b"error" })
            .part(said.get().as_bytes())
            .part(besides.text.as_bytes())
            .finish();
        let mut seen = Seen::of(result, error);
        if !besides.is_empty() && seen.complaint.is_none() {
            let content = seen.content.take().unwrap_or_default();
            let pieces = std::mem::take(&mut seen.pieces);
            let told = Told::whole(content, pieces).followed_by(besides.with_split_words(is_word));
            seen = Seen::said(seen.status, told, seen.task);
        }
        Some(Self { seen, digest })
    }

    /// It failed, and there is nothing to tell but what the status says.
    fn failed(told: Told) -> Self {
        let digest = DigestBuilder::new("portcullis/task-result/v3")
            .part(b"failed")
            .part(told.text.as_bytes())
            .finish();
        Self { seen: Seen::said(OutcomeStatus::Error, told, None), digest }
    }
}

/// How a task stands.
enum State {
    /// It goes on, and this is said of it.
    Open(Told),
    /// The outcome of it.
    Came(Came),
}

/// What the state of a task says came of it.
fn state_of_task(gate: &Gate, request: &Call, task: &str, answer: &RawValue) -> Result<State, String> {
    let state =
        read_task_state(answer).map_err(|error| format!("the state of the task cannot be read: {error}"))?;
    let came = match (state.result, state.error) {
        (Some(_), Some(_)) => return Err("the state of the task has both `result` and `error`".to_owned()),
        (None, None) if !state.failed => return Ok(State::Open(state.told)),
        // Up to 2025-11-25 the state says only that it failed; how is fetched next, and is the outcome.
        (None, None) if !request.with_result_type => {
            gate.calls.task_failed(task);
            return Ok(State::Open(state.told));
        }
        (None, None) => Some(Came::failed(state.told)),
        (result, error) => Came::of(result, error, state.told),
    };
    let Some(mut came) = came else { return Ok(State::Open(Told::default())) };
    if state.failed && came.seen.status == OutcomeStatus::Ok {
        came.seen.status = OutcomeStatus::Error;
    }
    Ok(State::Came(came))
}

/// The result of an action that went on as a task. The first one is its outcome; only the same passes again.
async fn task_result(
    gate: &Gate,
    line: &[u8],
    request: &Call,
    task: &str,
    action: ActionId,
    came: Came,
) -> Option<Vec<u8>> {
    let Came { seen, digest } = came;
    match gate.calls.task(task).and_then(|task| task.result) {
        Some(recorded) if recorded == digest => None,
        Some(_) => {
            Some(unreadable(gate, request, action, "the task already returned a different result".into()))
        }
        None => {
            let changed = conclude(gate, line, request, action, seen).await;
            if changed.is_none() {
                gate.calls.task_done(task, digest);
            }
            changed
        }
    }
}
