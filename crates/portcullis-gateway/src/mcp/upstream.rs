//! From the client to the server: tool calls are judged, everything else passes byte for byte.
//!
//! A call is judged on a task of its own, so that a held call does not block others. Only the line that was judged is
//! forwarded, and only with a permit.
//!
//! What the client says is read ahead of what the server takes, so that its leaving is noticed even while the
//! server does not read.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::denial::{Denial, DenialClass};
use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::Digest;
use portcullis_wire::framing::LineSplitter;
use portcullis_wire::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, MESSAGE_BYTES_MAX, Message, error_response, peek,
};
use portcullis_wire::mcp::call::{ToolCall, parse_tool_call, replace_continuation};
use portcullis_wire::mcp::elicitation::shows_forms;
use portcullis_wire::mcp::task::task_id;
use portcullis_wire::mcp::translate::Again;
use portcullis_wire::mcp::{
    self, CANCELLED, TASKS_CANCEL, TASKS_GET, TASKS_RESULT, TASKS_UPDATE, TOOLS_CALL, TOOLS_LIST,
    cancelled_request,
};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::SERVER_ENDS_MAX;
use super::answers;
use super::asking;
use super::calls::{Call, Cancelled, Open};
use super::gate::{Gate, Reader, is_blank, shown};
use super::gated_run::GatedRunError;
use super::held::{self, HeldCall, RETRY_WAITS_MIN};
use super::to_server::{NoCall, PermittedCall};
use crate::api::ProposeAction;
use crate::client::{Permit, Proposed};

/// How far the client is read ahead of what the server takes, in bytes. A client that has said more than that
/// to a server that does not read is not heard leaving, and has to end the gate with a signal.
const AHEAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// Longest id of a request, in bytes as sent.
pub const ID_BYTES_MAX: usize = 1024;
/// How long the verdict on a call that the client gave up is still waited for. One that is held is waited for no longer.
const JUDGED_WITHIN: Duration = Duration::from_secs(2);
/// How long the answer to a call that the client gave up is still waited for.
const CANCELLED_PATIENCE: Duration = Duration::from_secs(30);

/// Which side went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Client,
    Server,
}

/// Passes lines until one side goes away. Once the client has, the server has [`SERVER_ENDS_MAX`] to take what
/// was said before.
pub(super) async fn pump(gate: &Arc<Gate>, mut input: impl AsyncRead + Unpin) -> Gone {
    let (mut ahead, taken) = tokio::io::duplex(AHEAD_BYTES_MAX);
    let mut passing = pin!(pass_lines(gate, taken));
    tokio::select! {
        gone = &mut passing => return gone,
        read = tokio::io::copy(&mut input, &mut ahead) => {
            if let Err(error) = read {
                tracing::warn!("the client's messages can no longer be read: {error}");
            }
        }
    }
    drop(ahead);
    timeout(SERVER_ENDS_MAX, passing).await.unwrap_or_else(|_| {
        tracing::warn!("the client has gone, and some of its messages could not be passed on");
        Gone::Client
    })
}

async fn pass_lines(gate: &Arc<Gate>, mut input: impl AsyncRead + Unpin) -> Gone {
    let mut splitter = LineSplitter::default();
    let mut reader = Reader::default();
    loop {
        let read = match reader.read(&mut input).await {
            Ok([]) => break,
            Ok(read) => read,
            Err(error) => {
                tracing::warn!("the client's messages can no longer be read: {error}");
                return Gone::Client;
            }
        };
        splitter.feed(read);
        while let Some(line) = splitter.next_line() {
            let passed = match line {
                Ok(line) => message(gate, line).await,
                Err(error) => refuse(gate, None, INVALID_REQUEST, &error.to_string()).await,
            };
            if let Err(gone) = passed {
                return gone;
            }
        }
    }
    match splitter.remainder() {
        [] => Gone::Client,
        rest => message(gate, rest).await.err().unwrap_or(Gone::Client),
    }
}

/// Passes on a line that calls no tool.
async fn pass(gate: &Gate, line: Option<NoCall<'_>>) -> Result<(), Gone> {
    match line {
        Some(line) => gate.to_server.pass(line).await.map_err(|_| Gone::Server),
        None => refuse(gate, None, INTERNAL_ERROR, "the message calls a tool and was not judged").await,
    }
}

async fn answer(gate: &Gate, line: &[u8]) -> Result<(), Gone> {
    gate.to_client.line(line).await.map_err(|_| Gone::Client)
}

/// Answers with an error; the message goes no further.
async fn refuse(gate: &Gate, id: Option<&RawValue>, code: i64, why: &str) -> Result<(), Gone> {
    tracing::warn!("a message from the client was refused: {why}");
    answer(gate, &error_response(id, code, why, None)).await
}

/// Takes a message of the client.
pub(super) async fn message(gate: &Arc<Gate>, line: &[u8]) -> Result<(), Gone> {
    if is_blank(line) {
        return pass(gate, NoCall::blank(line)).await;
    }
    let message = match peek(line) {
        Ok(message) => message,
        Err(error) => return refuse(gate, None, error.code(), &error.to_string()).await,
    };
    let no_call = NoCall::of(line, &message);
    match message {
        Message::Request { id, id_raw, method, params } => {
            if method == TOOLS_CALL {
                return tool_call(gate, line, id, id_raw, params).await;
            }
            match admit(gate, &id, id_raw, &method, params) {
                Ok(()) => pass(gate, no_call).await,
                Err((code, why)) => refuse(gate, echo(&id, id_raw), code, &why).await,
            }
        }
        Message::Notification { method, .. } if method == TOOLS_CALL => {
            tracing::warn!("a `{TOOLS_CALL}` without an id was dropped: it could not be answered");
            Ok(())
        }
        Message::Notification { method, params } => {
            if method == CANCELLED && cancelled(gate, params) == Cancelled::Stopped {
                // The server has never heard of that call.
                return Ok(());
            }
            pass(gate, no_call).await
        }
        // An answer to the gate's own question is none of the server's.
        Message::Response { id, result, .. } if gate.questions.answered(&id, result) => Ok(()),
        Message::Response { .. } => pass(gate, no_call).await,
        Message::Batch(elements) => batch(gate, no_call, &elements).await,
    }
}

/// Notes a request other than a call, so that its answer is known when it comes.
fn admit(
    gate: &Gate,
    id: &Id,
    id_raw: &RawValue,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), (i64, String)> {
    check_id(id, id_raw).map_err(|why| (INVALID_REQUEST, why))?;
    let raw = id_raw.to_owned();
    let open = match method {
        TOOLS_LIST => Open::List(raw),
        mcp::INITIALIZE => {
            let shows = shows_forms(params).map_err(|error| (INVALID_PARAMS, error.to_string()))?;
            gate.questions.introduced(shows);
            Open::Hello(raw)
        }
        mcp::DISCOVER => Open::Hello(raw),
        TASKS_RESULT | TASKS_GET | TASKS_UPDATE | TASKS_CANCEL => {
            task_request(gate, raw, method, params).map_err(|why| (INVALID_PARAMS, why))?
        }
        _ => Open::Other(raw),
    };
    gate.calls.insert(id.clone(), open).map_err(|error| (INVALID_REQUEST, error.to_string()))
}

/// Refuses ids by which the server may answer another request than the one that was asked, or none.
fn check_id(id: &Id, id_raw: &RawValue) -> Result<(), String> {
    if id_raw.get().len() > ID_BYTES_MAX {
        return Err(format!("the id has more than {ID_BYTES_MAX} bytes"));
    }
    if !id.is_exact() {
        return Err("the id must be a string, or an integer within ±(2^53 − 1)".to_owned());
    }
    Ok(())
}

/// The id for an answer, unless it is one of those that [`check_id`] refuses.
fn echo<'r>(id: &Id, id_raw: &'r RawValue) -> Option<&'r RawValue> {
    check_id(id, id_raw).is_ok().then_some(id_raw)
}

fn task_request(
    gate: &Gate,
    id_raw: Box<RawValue>,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Open, String> {
    let name = task_id(params).map_err(|error| format!("`{method}`: {error}"))?;
    let with_result_type = wants_result_type(gate, params)?;
    let Some(task) = gate.calls.task(&name) else {
        return Err(format!(
            "`{method}`: no call of this session goes on as the task `{}`",
            shown(name.as_bytes())
        ));
    };
    if method != TASKS_RESULT && method != TASKS_GET {
        return Ok(Open::Other(id_raw));
    }
    Ok(Open::Task {
        request: Call {
            id_raw,
            bound_to: held::bound_to(&task.tool, &json!({})),
            tool: task.tool,
            with_result_type,
        },
        task: name,
        action: task.action,
        nested: method == TASKS_GET,
    })
}

fn wants_result_type(gate: &Gate, params: Option<&RawValue>) -> Result<bool, String> {
    let meta = mcp::request_meta(params).map_err(|error| format!("`params` cannot be read: {error}"))?;
    Ok(gate.wants_result_type(meta.protocol_version.as_deref()))
}

/// Judges a call, beside everything else.
async fn tool_call(
    gate: &Arc<Gate>,
    line: &[u8],
    id: Id,
    id_raw: &RawValue,
    params: Option<&RawValue>,
) -> Result<(), Gone> {
    if let Err(why) = check_id(&id, id_raw) {
        return refuse(gate, None, INVALID_REQUEST, &why).await;
    }
    let asked = match parse_tool_call(params) {
        Ok(asked) => asked,
        Err(error) => return refuse(gate, Some(id_raw), INVALID_PARAMS, &error.to_string()).await,
    };
    let with_result_type = match wants_result_type(gate, params) {
        Ok(wanted) => wanted,
        Err(why) => return refuse(gate, Some(id_raw), INVALID_PARAMS, &why).await,
    };
    let bound_to = held::bound_to(&asked.name, &asked.arguments);
    let (retried, line) = match retried(gate, line, &asked, bound_to) {
        Ok(retried) => retried,
        Err(why) => return refuse(gate, Some(id_raw), INVALID_PARAMS, &why).await,
    };
    let call = Call { id_raw: id_raw.to_owned(), tool: asked.name.clone(), with_result_type, bound_to };
    let given_up = Arc::new(Notify::new());
    let waiting = Open::Waiting(call.clone(), Arc::clone(&given_up));
    if let Err(full) = gate.calls.insert(id.clone(), waiting) {
        return refuse(gate, Some(id_raw), INVALID_REQUEST, &full.to_string()).await;
    }
    let proposal = ProposeAction {
        tool: Some(asked.name),
        server: Some(gate.command().to_owned()),
        arguments: asked.arguments,
        continuation: retried.as_ref().map_or(asked.continuation, |held| held.continuation.clone()),
        call: Some(id.to_string()),
        ..ProposeAction::default()
    };
    let floor = retried.as_ref().map_or(Duration::ZERO, |_| RETRY_WAITS_MIN);
    let held = retried.unwrap_or_else(|| HeldCall::new(proposal.continuation.clone()));
    let shared = Arc::clone(gate);
    gate.spawn(async move {
        let mut judging = pin!(judge(&shared, &call, proposal, floor));
        let judged = tokio::select! {
            biased;
            () = given_up.notified() => None,
            judged = &mut judging => Some(judged),
        };
        if judged.is_none()
            && let Ok(Ok(Proposed::Permitted(permit))) = timeout(JUDGED_WITHIN, judging).await
        {
            // The verdict was on its way, and the record has it: nothing came of it.
            shared.report(permit.action(), OutcomeStatus::NotExecuted).await;
        }
        let done = match judged {
            None => Ok(()),
            Some(Ok(Proposed::Permitted(permit))) => execute(&shared, &id, &call, permit, line).await,
            Some(Ok(Proposed::Stopped(stopped))) => stop(&shared, &id, &call, &held, &stopped.denial).await,
            Some(Err(error)) => {
                let why = format!("the call was not executed, because the gate could not judge it: {error}");
                fail(&shared, &id, &call, &why).await
            }
        };
        shared.calls.judged();
        if let Err(gone) = done {
            tracing::debug!("the {gone:?} went away before call {id} was handled");
        }
    });
    Ok(())
}

/// What a call that brings back a state of the gate goes on with, and the line without that state: the server gave out
/// none. Any other line is as it came.
fn retried(
    gate: &Gate,
    line: &[u8],
    asked: &ToolCall<'_>,
    bound_to: Digest,
) -> Result<(Option<HeldCall>, Vec<u8>), String> {
    let Some(state) = held::state_of(asked.continuation.as_ref()) else { return Ok((None, line.to_vec())) };
    let held = gate.held.take(state, bound_to).map_err(|error| error.to_string())?;
    let line = replace_continuation(line, held.continuation.as_ref()).map_err(|error| error.to_string())?;
    Ok((Some(held), line))
}

/// Has a call judged, and the user asked where that is the verdict.
async fn judge(
    gate: &Arc<Gate>,
    call: &Call,
    proposal: ProposeAction,
    floor: Duration,
) -> Result<Proposed, GatedRunError> {
    let proposed = propose(gate, proposal.clone(), floor).await?;
    asking::clarified(gate, call, proposal, proposed).await
}

/// Has a call judged. One that stays held is answered after `floor` at the earliest.
async fn propose(gate: &Gate, proposal: ProposeAction, floor: Duration) -> Result<Proposed, GatedRunError> {
    let since = tokio::time::Instant::now();
    let proposed = gate.run.propose(proposal).await?;
    if matches!(&proposed, Proposed::Stopped(stopped) if stopped.denial.class == DenialClass::ApprovalPending)
    {
        tokio::time::sleep_until(since + floor).await;
    }
    Ok(proposed)
}

/// There is a permit: forwards the call, once.
async fn execute(gate: &Gate, id: &Id, call: &Call, permit: Permit, line: Vec<u8>) -> Result<(), Gone> {
    let action = permit.action();
    let permitted = match PermittedCall::new(permit, line) {
        Ok(permitted) => permitted,
        Err(error) => {
            gate.report(action, OutcomeStatus::NotExecuted).await;
            let why = format!("the call was not executed, because it could not be edited: {error}");
            return fail(gate, id, call, &why).await;
        }
    };
    if !gate.calls.execute(id, permitted.action()) {
        gate.report(action, OutcomeStatus::NotExecuted).await;
        return Ok(());
    }
    if gate.to_server.call(permitted).await.is_ok() {
        return Ok(());
    }
    // Half a line may have reached it.
    if gate.calls.expire(id, action) {
        gate.report(action, OutcomeStatus::Unknown).await;
        let why = "the server went away while the call was sent to it; whether the tool acted is not known";
        let data = json!({"class": "server_ended"});
        answer(gate, &error_response(Some(&call.id_raw), INTERNAL_ERROR, why, Some(&data))).await?;
    }
    Err(Gone::Server)
}

/// Makes a call again that the server wants made again, for a client that does not do so itself. What the server was given in
/// the meantime is judged as a part of it, and it is another action: only the server's word says that nothing was done yet.
pub(super) async fn make_again(gate: &Arc<Gate>, Again { id, line }: Again) {
    let Some((call, before)) = gate.calls.executing(&id) else {
        return forget(gate, &id).await;
    };
    gate.report(before, OutcomeStatus::InputRequired).await;
    let why = match permitted_again(gate, &id, &call, line).await {
        Ok(Ok(permitted)) if gate.calls.goes_on(&id, before, permitted.action()) => {
            if gate.to_server.call_again(permitted).await.is_ok() {
                return;
            }
            let why = "the server went away while the call was sent to it again; whether the tool acted is not known";
            error_response(Some(&call.id_raw), INTERNAL_ERROR, why, Some(&json!({"class": "server_ended"})))
        }
        Ok(Ok(permitted)) => {
            gate.report(permitted.action(), OutcomeStatus::NotExecuted).await;
            return forget(gate, &id).await;
        }
        Ok(Err(denial)) => answers::denied(&call, &denial),
        Err(why) => {
            let why = format!("the call was not made again: {why}");
            tracing::warn!("{why}");
            error_response(
                Some(&call.id_raw),
                INTERNAL_ERROR,
                &why,
                Some(&json!({"class": "gate_unavailable"})),
            )
        }
    };
    if let Some(Open::Executing { action, .. }) = gate.calls.answered(&id) {
        if action != before {
            gate.report(action, OutcomeStatus::Unknown).await;
        }
        let _gone = answer(gate, &why).await;
    }
    forget(gate, &id).await;
}

/// The permit for a call that is made again, or why there is none.
async fn permitted_again(
    gate: &Arc<Gate>,
    id: &Id,
    call: &Call,
    line: Vec<u8>,
) -> Result<Result<PermittedCall, Denial>, String> {
    let Ok(Message::Request { params, .. }) = peek(&line) else {
        return Err("it cannot be read".to_owned());
    };
    let asked = parse_tool_call(params).map_err(|error| error.to_string())?;
    let proposal = ProposeAction {
        tool: Some(asked.name),
        server: Some(gate.command().to_owned()),
        arguments: asked.arguments,
        continuation: asked.continuation,
        call: Some(id.to_string()),
        ..ProposeAction::default()
    };
    match judge(gate, call, proposal, Duration::ZERO).await.map_err(|error| error.to_string())? {
        Proposed::Stopped(stopped) => Ok(Err(stopped.denial)),
        Proposed::Permitted(permit) => {
            let action = permit.action();
            match PermittedCall::new(permit, line) {
                Ok(permitted) => Ok(Ok(permitted)),
                Err(error) => {
                    gate.report(action, OutcomeStatus::NotExecuted).await;
                    Err(format!("it could not be edited: {error}"))
                }
            }
        }
    }
}

/// A call is not made again.
async fn forget(gate: &Arc<Gate>, id: &Id) {
    let turn = gate.to_server.translation.forget(id);
    for line in &turn.to_client {
        let _gone = answer(gate, line).await;
    }
}

/// There is no permit: answers with the denial, or with a state for a retry where the call is held.
async fn stop(gate: &Gate, id: &Id, call: &Call, held: &HeldCall, denial: &Denial) -> Result<(), Gone> {
    if !gate.calls.refused(id) {
        return Ok(());
    }
    match gate.held.give(call, held, denial) {
        Some(state) => answer(gate, &answers::input_required(call, &state, denial)).await,
        None => answer(gate, &answers::denied(call, denial)).await,
    }
}

async fn fail(gate: &Gate, id: &Id, call: &Call, why: &str) -> Result<(), Gone> {
    if !gate.calls.refused(id) {
        return Ok(());
    }
    tracing::warn!("{why}");
    let data = json!({"class": "gate_unavailable"});
    answer(gate, &error_response(Some(&call.id_raw), INTERNAL_ERROR, why, Some(&data))).await
}

/// The client gives up a request.
fn cancelled(gate: &Arc<Gate>, params: Option<&RawValue>) -> Cancelled {
    let Some(id) = cancelled_request(params) else {
        return Cancelled::Other;
    };
    let what = gate.calls.cancel(&id);
    if let Cancelled::Executing(action) = what {
        // Servers need not answer what was given up. Not among the work that is waited for at the end.
        let gate = Arc::downgrade(gate);
        drop(tokio::spawn(async move {
            sleep(CANCELLED_PATIENCE).await;
            if let Some(gate) = gate.upgrade()
                && gate.calls.expire(&id, action)
            {
                gate.report(action, OutcomeStatus::Timeout).await;
            }
        }));
    }
    what
}

/// Several messages in one line. Calls must come one by one, so that each is judged and forwarded by itself.
async fn batch(gate: &Arc<Gate>, line: Option<NoCall<'_>>, elements: &[&RawValue]) -> Result<(), Gone> {
    let mut requests = Vec::new();
    let mut notes = Vec::new();
    let mut has_call = false;
    for element in elements {
        match peek(element.get().as_bytes()) {
            Ok(Message::Request { id, id_raw, method, params }) => {
                has_call |= method == TOOLS_CALL;
                requests.push((id, id_raw, method, params));
            }
            Ok(Message::Notification { method, params }) => {
                has_call |= method == TOOLS_CALL;
                notes.push((method, params));
            }
            Ok(Message::Response { id, result, .. }) => {
                if gate.questions.answered(&id, result) {
                    let why = "send the answer to a question of the gate in a message of its own";
                    return refuse(gate, None, INVALID_REQUEST, why).await;
                }
            }
            Ok(Message::Batch(_)) => {
                return refuse(gate, None, INVALID_REQUEST, "a batch within a batch").await;
            }
            Err(error) => {
                let why = format!("a message of the batch is refused, and the batch with it: {error}");
                return refuse(gate, None, error.code(), &why).await;
            }
        }
    }
    let ids = requests.iter().map(|(id, id_raw, ..)| echo(id, id_raw));
    if has_call {
        let why =
            format!("send every `{TOOLS_CALL}` in a message of its own; nothing of the batch was passed on");
        return refuse_all(gate, ids, INVALID_REQUEST, &why).await;
    }
    for (number, (id, id_raw, method, params)) in requests.iter().enumerate() {
        if let Err((code, why)) = admit(gate, id, id_raw, method, *params) {
            for (admitted, ..) in requests.iter().take(number) {
                gate.calls.withdraw(admitted);
            }
            return refuse_all(gate, ids, code, &why).await;
        }
    }
    for (method, params) in notes {
        if method == CANCELLED {
            cancelled(gate, params);
        }
    }
    pass(gate, line).await
}

async fn refuse_all<'r>(
    gate: &Gate,
    ids: impl Iterator<Item = Option<&'r RawValue>>,
    code: i64,
    why: &str,
) -> Result<(), Gone> {
    let errors: Vec<Vec<u8>> = ids.map(|id| error_response(id, code, why, None)).collect();
    if errors.is_empty() {
        tracing::warn!(
            "a batch without requests was dropped: {why}; it began with {}",
            shown(why.as_bytes())
        );
        return Ok(());
    }
    tracing::warn!("a batch from the client was refused: {why}");
    answer(gate, &[b"[".as_slice(), &errors.join(b",".as_slice()), b"]"].concat()).await
}
