//! From the server to the client: answers to gated calls are recorded and judged before they pass, lists of
//! tools lose what is disabled, everything else passes byte for byte.
//!
//! The server is not trusted either. A response that answers nothing, and a line that two readers could read
//! differently, could be the result of a call in disguise, so they are dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::denial::Denial;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::{ActionId, Digest, DigestBuilder};
use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{INTERNAL_ERROR, Id, Message, error_response, peek};
use portcullis_wire::mcp::list::{ListedTool, hide_tools, listed_tools};
use portcullis_wire::mcp::result::{RESULT_TEXT_BYTES_MAX, ResultKind, error_text, read_tool_result};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::answers::{NOT_RECORDED, RESULT_TOO_LONG, UNREADABLE_RESULT, WITHHELD, denied, withheld};
use super::calls::{Call, Open};
use super::gate::{Gate, shown};
use crate::api::{ReportOutcome, ReportTools, ReportedTool};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

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
    if line.trim_ascii().is_empty() {
        return pass(gate, line).await;
    }
    match peek(line) {
        Err(error) => {
            tracing::warn!("a line of the server is no message and was dropped: {error}: {}", shown(line));
        }
        Ok(Message::Request { .. } | Message::Notification { .. }) => pass(gate, line).await,
        Ok(Message::Response { id, .. }) => match answered(gate, &id) {
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
fn answered(gate: &Gate, id: &Id) -> Option<Option<Open>> {
    if *id == Id::Null {
        // The server could not read a message; no request of a client is known by this id.
        return Some(None);
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
            Ok(Message::Response { id, .. }) => match answered(gate, &id) {
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
        Open::Executing(call, action) => {
            let seen = Seen::of(result, error);
            if let Some(task) = seen.task.clone() {
                if gate.calls.follow_task(task, call.tool.clone(), action) {
                    return None;
                }
                let why = "too many tasks are open, or this one is known already".to_owned();
                let seen = Seen { complaint: Some((NOT_RECORDED, why)), ..seen };
                return conclude(gate, &call, action, seen).await;
            }
            conclude(gate, &call, action, seen).await
        }
        Open::Task { request, task, action, nested } => {
            let result = match result? {
                answer if !nested => answer,
                answer => match nested_result(answer) {
                    Ok(None) => return None,
                    Ok(Some(result)) => result,
                    Err(why) => return Some(unreadable(gate, &request, action, why)),
                },
            };
            let digest =
                DigestBuilder::new("portcullis/task-result/v1").part(result.get().as_bytes()).finish();
            task_result(gate, &request, &task, action, result, digest).await
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
    let disabled = match gate.report_tools(&ReportTools { server: gate.server_name(), tools }).await {
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
}

impl Seen {
    fn of(result: Option<&RawValue>, error: Option<&RawValue>) -> Self {
        let (status, content, truncated, task) = match (result.map(read_tool_result), error) {
            (Some(Err(error)), _) => return Self::unreadable(error.to_string()),
            (Some(Ok(read)), _) => {
                let status = match read.kind {
                    ResultKind::Complete => OutcomeStatus::Ok,
                    ResultKind::Error => OutcomeStatus::Error,
                    ResultKind::InputRequired => OutcomeStatus::InputRequired,
                    ResultKind::TaskCreated | ResultKind::Other(_) => OutcomeStatus::Unknown,
                };
                (status, read.text, read.text_truncated, read.task_id)
            }
            (None, Some(error)) => {
                let (text, truncated) = error_text(error);
                (OutcomeStatus::Error, text, truncated, None)
            }
            (None, None) => return Self::unreadable("it has neither result nor error".to_owned()),
        };
        let complaint = truncated.then(|| {
            (
                RESULT_TOO_LONG,
                format!("it has more than the {RESULT_TEXT_BYTES_MAX} bytes of text that are judged"),
            )
        });
        Self { status, content: Some(content), complaint, task }
    }

    fn unreadable(why: String) -> Self {
        Self {
            status: OutcomeStatus::Unknown,
            content: None,
            complaint: Some((UNREADABLE_RESULT, format!("it cannot be read with certainty: {why}"))),
            task: None,
        }
    }
}

/// Records a result and has it judged; returns what the client gets instead, if it must not pass.
async fn conclude(gate: &Gate, call: &Call, action: ActionId, seen: Seen) -> Option<Vec<u8>> {
    let Seen { status, content, complaint, .. } = seen;
    let outcome = ReportOutcome { action, status, content, media_type: None };
    let recorded = gate.run.outcome(&outcome).await;
    let own = |rule, why| withheld(gate.run.id(), action, &call.tool, rule, why);
    let denial: Denial = match (recorded, complaint) {
        (Err(error), _) => own(NOT_RECORDED, format!("it could not be recorded ({error})")),
        (Ok(_), Some((rule, why))) => own(rule, why),
        (Ok(judged), None) if judged.enforced.proceeds() => return None,
        (Ok(judged), None) => match judged.denial {
            Some(denial) => denial,
            None => own(WITHHELD, format!("the verdict on it is `{}`", judged.verdict)),
        },
    };
    tracing::warn!("the result of call {} is withheld: {}", call.id_raw, denial.message);
    Some(denied(call, &denial))
}

fn unreadable(gate: &Gate, call: &Call, action: ActionId, why: String) -> Vec<u8> {
    denied(call, &withheld(gate.run.id(), action, &call.tool, UNREADABLE_RESULT, why))
}

/// The field `result` of the state of a task, once it is there.
fn nested_result(answer: &RawValue) -> Result<Option<&RawValue>, String> {
    #[derive(Deserialize)]
    struct State<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    let error = |error: serde_json::Error| format!("the state of the task cannot be read: {error}");
    let state: State<'_> = serde_json::from_str(answer.get()).map_err(error)?;
    let keys: BTreeMap<String, serde::de::IgnoredAny> = serde_json::from_str(answer.get()).map_err(error)?;
    match keys.keys().find(|key| key.eq_ignore_ascii_case("result") && *key != "result") {
        Some(key) => {
            Err(format!("the state of the task has a field `{key}`, which could be taken for `result`"))
        }
        None => Ok(state.result.filter(|result| result.get() != "null")),
    }
}

/// The result of an action that went on as a task. The first one is its outcome; only the same passes again.
async fn task_result(
    gate: &Gate,
    request: &Call,
    task: &str,
    action: ActionId,
    result: &RawValue,
    digest: Digest,
) -> Option<Vec<u8>> {
    match gate.calls.task(task).and_then(|task| task.result) {
        Some(recorded) if recorded == digest => None,
        Some(_) => Some(unreadable(gate, request, action, "the task has given another result before".into())),
        None => {
            let changed = conclude(gate, request, action, Seen::of(Some(result), None)).await;
            if changed.is_none() {
                gate.calls.task_done(task, digest);
            }
            changed
        }
    }
}
