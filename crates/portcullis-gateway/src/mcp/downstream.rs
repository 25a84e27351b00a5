//! From the server to the client: answers to gated calls are recorded and judged before they pass, lists of
//! tools lose what is disabled, everything else passes byte for byte.
//!
//! The server is not trusted either. A response that answers nothing, and a line that two readers could read
//! differently, could be the result of a call in disguise, so they are dropped.

use std::sync::Arc;

use portcullis_core::denial::Denial;
use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::id::{ActionId, Digest, DigestBuilder};
use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{INTERNAL_ERROR, Id, Message, error_response, peek};
use portcullis_wire::mcp::excise::{Piece, Replacement, replace_in_message};
use portcullis_wire::mcp::list::{ListedTool, hide_tools, listed_tools};
use portcullis_wire::mcp::result::{RESULT_TEXT_BYTES_MAX, ResultKind, error_text, read_tool_result};
use portcullis_wire::mcp::task::read_task_state;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::answers::{NOT_RECORDED, RESULT_TOO_LONG, UNREADABLE_RESULT, WITHHELD, denied, withheld};
use super::calls::{Call, Open};
use super::gate::{Gate, is_blank, shown};
use crate::api::{ReportOutcome, ReportTools, ReportedTool, TextEdit};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Stands in the record at the end of a text that is not all.
pub(super) const CUT_MARK: &str = "\n[portcullis: cut here; the rest of the result is not recorded]";

/// Passes lines until the server closes its output, or the client its input.
pub(super) async fn pump(gate: &Arc<Gate>, mut output: impl AsyncRead + Unpin) {
    let mut splitter = LineSplitter::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read = match output.read(&mut chunk).await {
            Ok(0) => break,
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) => {
                tracing::warn!("the server's messages can no longer be read: {error}");
                break;
            }
        };
        splitter.feed(read);
        while let Some(line) = splitter.next_line() {
            match line {
                Ok(line) => message(gate, line).await,
                Err(error) => tracing::warn!("a message of the server was dropped: {error}"),
            }
        }
    }
    if !splitter.remainder().is_empty() {
        message(gate, splitter.remainder()).await;
    }
}

async fn pass(gate: &Gate, line: &[u8]) {
    if let Err(error) = gate.to_client.line(line).await {
        tracing::debug!("the client does not read any more: {error}");
    }
}

async fn message(gate: &Arc<Gate>, line: &[u8]) {
    if is_blank(line) {
        return pass(gate, line).await;
    }
    match peek(line) {
        Err(error) => {
            tracing::warn!("a line of the server is no message and was dropped: {error}: {}", shown(line));
        }
        Ok(Message::Request { .. } | Message::Notification { .. }) => pass(gate, line).await,
        Ok(Message::Response { id, error, .. }) => match answered(gate, &id, error.is_some()) {
            None => tracing::warn!("a response of the server was dropped: no request {id} is open"),
            Some(None) => pass(gate, line).await,
            Some(Some(open)) => {
                let (shared, line) = (Arc::clone(gate), line.to_vec());
                gate.spawn(async move {
                    let changed = respond(&shared, &line, open).await;
                    pass(&shared, changed.as_deref().unwrap_or(&line)).await;
                });
            }
        },
        Ok(Message::Batch(elements)) => batch(gate, line, &elements).await,
    }
}

/// What a response answers: nothing, nothing that matters, or something to look into.
fn answered(gate: &Gate, id: &Id, is_error: bool) -> Option<Option<Open>> {
    if *id == Id::Null {
        // The server could not read a message. A result answers nothing: no request has this id.
        return is_error.then_some(None);
    }
    match gate.calls.answered(id)? {
        Open::Passed(_) => Some(None),
        open => Some(Some(open)),
    }
}

async fn batch(gate: &Gate, line: &[u8], elements: &[&RawValue]) {
    let mut kept: Vec<Vec<u8>> = Vec::with_capacity(elements.len());
    let mut changed = false;
    for element in elements {
        let bytes = element.get().as_bytes();
        let passed = match peek(bytes) {
            Err(_) | Ok(Message::Batch(_)) => None,
            Ok(Message::Request { .. } | Message::Notification { .. }) => Some(None),
            Ok(Message::Response { id, error, .. }) => match answered(gate, &id, error.is_some()) {
                None => None,
                Some(None) => Some(None),
                Some(Some(open)) => Some(respond(gate, bytes, open).await),
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
        Open::Passed(_) | Open::Waiting(..) => None,
        Open::Hello(_) => {
            if let Some(result) = result {
                introduce(gate, result);
            }
            None
        }
        Open::List(id) => match result {
            None => None,
            Some(result) => list(gate, line, &id, result).await,
        },
        Open::Executing { call, action, .. } => {
            let seen = Seen::of(result, error);
            if let Some(task) = seen.task.clone() {
                if gate.calls.follow_task(task, call.tool.clone(), action) {
                    return None;
                }
                let why = "too many tasks are open, or this one is known already".to_owned();
                let seen = Seen { complaint: Some((NOT_RECORDED, why)), ..seen };
                return conclude(gate, line, &call, action, seen).await;
            }
            conclude(gate, line, &call, action, seen).await
        }
        Open::Task { request, task, action, nested } => {
            let came = match result {
                Some(answer) if nested => state_of_task(gate, &request, &task, answer),
                // A state that cannot be told now may be asked for again; a result is told once.
                None if nested => return None,
                _ => Ok(Came::of(result, error)),
            };
            match came {
                Ok(None) => None,
                Ok(Some(came)) => task_result(gate, line, &request, &task, action, came).await,
                Err(why) => Some(unreadable(gate, &request, action, why)),
            }
        }
    }
}

fn introduce(gate: &Gate, result: &RawValue) {
    #[derive(Deserialize)]
    struct Hello {
        #[serde(rename = "serverInfo")]
        server: Option<Named>,
        #[serde(rename = "protocolVersion")]
        version: Option<String>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    if let Ok(hello) = serde_json::from_str::<Hello>(result.get()) {
        gate.introduced(hello.server.and_then(|server| server.name), hello.version);
    }
}

/// Reports a list of tools and hides what is disabled. A list that cannot be recorded is not shown: an agent
/// that does not know a tool does no harm with it.
async fn list(gate: &Gate, line: &[u8], id: &RawValue, result: &RawValue) -> Option<Vec<u8>> {
    let refused = |why: String| {
        tracing::warn!("{why}");
        Some(error_response(Some(id), INTERNAL_ERROR, &why, None))
    };
    let listed = match listed_tools(result) {
        Ok(listed) => listed,
        Err(error) => return refused(format!("the gate does not pass this list of tools on: {error}")),
    };
    for (position, why) in &listed.unreadable {
        tracing::warn!("tool {position} of the list cannot be read: {why}");
    }
    let tools = listed.tools.into_iter().map(reported).collect();
    let disabled = match gate
        .report_tools(&ReportTools {
            server: gate.server_name(),
            command: Some(gate.command().to_owned()),
            tools,
        })
        .await
    {
        Ok(disabled) => disabled,
        Err(error) => return refused(format!("the list of tools could not be recorded: {error}")),
    };
    match hide_tools(line, |name| disabled.iter().any(|hidden| hidden == name)) {
        Ok(shorter) => shorter,
        Err(error) => refused(format!("the gate does not pass this list of tools on: {error}")),
    }
}

fn reported(tool: ListedTool) -> ReportedTool {
    ReportedTool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        read_only_hint: tool.hints.read_only,
        destructive_hint: tool.hints.destructive,
    }
}

/// A result as a gate sees it.
struct Seen {
    status: OutcomeStatus,
    content: Option<String>,
    /// The rule by which it must not pass whatever the guards say, and why.
    complaint: Option<(&'static str, String)>,
    /// The call goes on as this task.
    task: Option<String>,
    /// Where the content stands in the message.
    pieces: Vec<Piece>,
}

impl Seen {
    fn of(result: Option<&RawValue>, error: Option<&RawValue>) -> Self {
        let (status, content, truncated, task, pieces) = match (result.map(read_tool_result), error) {
            (Some(Err(error)), _) => return Self::unreadable(error.to_string()),
            (Some(Ok(read)), _) => {
                let status = match read.kind {
                    ResultKind::Complete => OutcomeStatus::Ok,
                    ResultKind::Error => OutcomeStatus::Error,
                    ResultKind::InputRequired => OutcomeStatus::InputRequired,
                    ResultKind::TaskCreated | ResultKind::Other(_) => OutcomeStatus::Unknown,
                };
                (status, read.text, read.text_truncated, read.task_id, read.pieces)
            }
            (None, Some(error)) => {
                let (text, truncated) = error_text(error);
                (OutcomeStatus::Error, text, truncated, None, Vec::new())
            }
            (None, None) => return Self::unreadable("it has neither result nor error".to_owned()),
        };
        let complaint = truncated.then(|| {
            (
                RESULT_TOO_LONG,
                format!("it has more than the {RESULT_TEXT_BYTES_MAX} bytes of text that are judged"),
            )
        });
        let content = if truncated { content + CUT_MARK } else { content };
        Self { status, content: Some(content), complaint, task, pieces }
    }

    fn unreadable(why: String) -> Self {
        Self {
            status: OutcomeStatus::Unknown,
            content: None,
            complaint: Some((UNREADABLE_RESULT, format!("it cannot be read with certainty: {why}"))),
            task: None,
            pieces: Vec::new(),
        }
    }
}

/// Records a result and has it judged; returns what the client gets instead, if it must not pass as it is.
async fn conclude(gate: &Gate, line: &[u8], call: &Call, action: ActionId, seen: Seen) -> Option<Vec<u8>> {
    let Seen { status, content, complaint, pieces, .. } = seen;
    let outcome = ReportOutcome::of(action, status, content);
    let recorded = gate.run.outcome(&outcome).await;
    let own = |rule, why| withheld(gate.run.id(), action, &call.tool, rule, why);
    let denial: Denial = match (recorded, complaint) {
        (Err(error), _) => own(NOT_RECORDED, format!("it could not be recorded ({error})")),
        (Ok(_), Some((rule, why))) => own(rule, why),
        (Ok(judged), None) if judged.enforced == Enforced::Replaced => {
            match excised(line, &pieces, outcome.content.as_deref().unwrap_or_default(), &judged.edits) {
                Some(excised) => return Some(excised),
                None => {
                    own(WITHHELD, "what is to be cut out of it cannot be told apart from the rest".into())
                }
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

/// What came of a task, with a digest to know it by.
struct Came {
    seen: Seen,
    digest: Digest,
}

impl Came {
    fn of(result: Option<&RawValue>, error: Option<&RawValue>) -> Option<Self> {
        let said = result.or(error)?;
        let digest = DigestBuilder::new("portcullis/task-result/v2")
            .part(if result.is_some() { b"result" } else { b"error" })
            .part(said.get().as_bytes())
            .finish();
        Some(Self { seen: Seen::of(result, error), digest })
    }

    /// It failed, and there is nothing to tell but what the status says.
    fn failed(message: Option<&str>) -> Self {
        let content = message.map(str::to_owned);
        let digest = DigestBuilder::new("portcullis/task-result/v2")
            .part(b"failed")
            .part(message.unwrap_or_default().as_bytes())
            .finish();
        let seen =
            Seen { status: OutcomeStatus::Error, content, complaint: None, task: None, pieces: Vec::new() };
        Self { seen, digest }
    }
}

/// What the state of a task says came of it; none while that is open.
fn state_of_task(gate: &Gate, request: &Call, task: &str, answer: &RawValue) -> Result<Option<Came>, String> {
    let state =
        read_task_state(answer).map_err(|error| format!("the state of the task cannot be read: {error}"))?;
    let said = match (state.result, state.error) {
        (Some(_), Some(_)) => return Err("the state of the task has both `result` and `error`".to_owned()),
        (None, None) if !state.failed => return Ok(None),
        // Up to 2025-11-25 the state says only that it failed; how is fetched next, and is the outcome.
        (None, None) if !request.with_result_type => {
            gate.calls.task_failed(task);
            return Ok(None);
        }
        (None, None) => Some(Came::failed(state.status_message.as_deref())),
        (result, error) => Came::of(result, error),
    };
    Ok(said.map(|mut came| {
        if state.failed && came.seen.status == OutcomeStatus::Ok {
            came.seen.status = OutcomeStatus::Error;
        }
        came
    }))
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
        Some(_) => Some(unreadable(gate, request, action, "the task has given another result before".into())),
        None => {
            let changed = conclude(gate, line, request, action, seen).await;
            if changed.is_none() {
                gate.calls.task_done(task, digest);
            }
            changed
        }
    }
}
