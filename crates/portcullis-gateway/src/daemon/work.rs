//! Work items: operations of agents and people, and the checks that the daemon makes itself.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::id::ActionId;
use portcullis_core::principal::CredentialKind;
use portcullis_core::work::{Check, Criterion, ItemId, Operation, Owner, Party, Refusal, WorkError};
use portcullis_session::engine::WorkBy;
use portcullis_session::error::SessionError;
use portcullis_session::run::Run;
use portcullis_session::surface::Surface as _;
use portcullis_work::unreadable;
use serde_json::Value;

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::routes::{JsonBody, live_run, settle};
use crate::api::{self, WorkOperation};

pub(super) async fn list(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<api::WorkList>, Failure> {
    let run = find(&shared, &caller, &run).await?;
    let list = run.with_state(|state, _| {
        let call = |(action, call): (ActionId, &portcullis_core::work::Call)| api::CallInfo {
            action,
            tool: call.tool.clone().unwrap_or_default(),
            call: call.call.clone(),
            status: call.status,
            outcome: call.outcome,
            succeeded: call.succeeded(),
        };
        let calls = state.works().latest_calls(api::CALLS_LISTED_MAX);
        api::WorkList {
            items: state.works().items().cloned().collect(),
            calls: calls.into_iter().map(call).collect(),
        }
    });
    Ok(Json(list.await))
}

pub(super) async fn operate(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::WorkRequest>,
) -> Result<Json<api::WorkAnswer>, Failure> {
    let run = find(&shared, &caller, &run).await?;
    let by = match caller.0.kind {
        CredentialKind::Agent => WorkBy { party: Party::Agent, person: String::new() },
        CredentialKind::Approver => WorkBy { party: Party::Person, person: caller.0.principal.id.clone() },
    };
    let api::WorkRequest { operation, call, wait_ms } = request;
    let cause = cause(&run, call.as_deref()).await?;
    let wait = Duration::from_millis(wait_ms.unwrap_or(api::CHECK_WAIT_MS).min(api::WAIT_MS_MAX).into());
    if let WorkOperation::Verify { item } = operation {
        return Ok(Json(checked(&shared, &run, item, wait).await?));
    }
    let operation = read(&run, operation).await.map_err(|error| refused(&error))?;
    let claims = matches!(operation, Operation::Claim { .. });
    let of = Arc::clone(&run);
    let item = settle(async move { of.work(by, operation, cause).await }).await?;
    if claims && !item.criteria.is_empty() && !item.waits {
        return Ok(Json(checked(&shared, &run, item.id, wait).await?));
    }
    Ok(Json(api::WorkAnswer { item, checking: false }))
}

/// The call of a tool that asks for an operation.
pub(super) async fn cause(run: &Run, call: Option<&str>) -> Result<Option<ActionId>, Failure> {
    let Some(call) = call else { return Ok(None) };
    let unknown = || {
        refused(&WorkError::new(
            Refusal::Malformed,
            "call",
            "this run has no such call",
            "leave it out, or name the action of the call that asks for this",
        ))
    };
    action_of(run, call).await.ok_or_else(unknown).map(Some)
}

/// The live run of that id, for the caller.
async fn find(shared: &Shared, caller: &Caller, id: &str) -> Result<Arc<Run>, Failure> {
    let run = live_run(shared, caller, id).await?;
    Ok(shared.gate.run(run.id())?)
}

async fn action_of(run: &Run, name: &str) -> Option<ActionId> {
    if let Ok(action) = name.parse() {
        return Some(action);
    }
    let finished = run.with_engine(|engine| engine.state().works().call_named(&engine.call_name(name))).await;
    match finished {
        Some(action) => Some(action),
        None => run.awaits_outcome_of_call(name).await,
    }
}

/// Criteria that somebody can decide: a statement that takes a reader would be an error each time.
fn criteria(list: Vec<Value>) -> Result<Vec<Criterion>, WorkError> {
    let criteria = Criterion::read_all("criteria", &Value::from(list))?;
    for (at, criterion) in criteria.iter().enumerate() {
        if let Check::Contract { statement, .. } = &criterion.check
            && let Some(why) = unreadable(statement)
        {
            return Err(WorkError::field(format!("criteria[{at}].statement"), why));
        }
    }
    Ok(criteria)
}

/// An operation as it was asked for.
async fn read(run: &Run, operation: WorkOperation) -> Result<Operation, WorkError> {
    Ok(match operation {
        WorkOperation::Create { title, criteria: list, owner, covers } => {
            let covers = run.covers(&covers).await?;
            let (criteria, owner) = (criteria(list)?, owner.unwrap_or(Owner::User));
            Operation::Create { title, criteria, owner, covers }
        }
        WorkOperation::Propose { item, criteria: list } => {
            Operation::Propose { item, criteria: criteria(list)? }
        }
        WorkOperation::Accept { item } => Operation::Accept { item },
        WorkOperation::Decline { item, reason } => Operation::Decline { item, reason },
        WorkOperation::Require { item, criteria: list, owner } => {
            Operation::Require { item, criteria: criteria(list)?, owner: owner.unwrap_or(Owner::User) }
        }
        WorkOperation::Start { item } => Operation::Start { item },
        WorkOperation::Claim { item, evidence, statement } => {
            let mut cited = Vec::with_capacity(evidence.len());
            for (at, name) in evidence.iter().enumerate() {
                // A call that nobody knows is refused, and recorded as refused, like one of another run.
                let unknown = ActionId::from_bytes([0; 16]);
                let action = action_of(run, name).await.unwrap_or(unknown);
                if at <= portcullis_core::work::EVIDENCE_MAX {
                    cited.push(action);
                }
            }
            Operation::Claim { item, evidence: cited, statement }
        }
        WorkOperation::Verify { item } => Operation::Check { item, version: 0, results: Vec::new() },
        WorkOperation::Attest { item, reason } => Operation::Attest { item, reason },
        WorkOperation::AskChanges { item, reason } => Operation::AskChanges { item, reason },
        WorkOperation::Bury { item, reason } => Operation::Bury { item, reason },
    })
}

/// Has an item checked, and waits for that so long. The check goes on when nobody waits any more.
async fn checked(
    shared: &Shared,
    run: &Arc<Run>,
    item: ItemId,
    wait: Duration,
) -> Result<api::WorkAnswer, Failure> {
    let (checks, of) = (shared.checks.clone(), Arc::clone(run));
    let check = tokio::spawn(async move { checks.check(of, item).await });
    match tokio::time::timeout(wait, check).await {
        Ok(done) => {
            let item = done.map_err(|_| SessionError::CutShort)??;
            Ok(api::WorkAnswer { item, checking: false })
        }
        Err(_) => {
            let now = run.with_state(|state, _| state.works().item(item).cloned()).await;
            let item = now.ok_or(SessionError::CutShort)?;
            Ok(api::WorkAnswer { item, checking: true })
        }
    }
}

/// A refusal in the words of the API.
pub(super) fn refused(error: &WorkError) -> Failure {
    let (status, code) = match error.refusal {
        Refusal::Malformed => (StatusCode::BAD_REQUEST, "work_malformed"),
        Refusal::UnknownItem => (StatusCode::NOT_FOUND, api::code::NOT_FOUND),
        Refusal::NotPermitted => (StatusCode::FORBIDDEN, api::code::FORBIDDEN),
        Refusal::WrongState => (StatusCode::CONFLICT, "work_wrong_state"),
        Refusal::NoEvidence => (StatusCode::CONFLICT, "work_no_evidence"),
        Refusal::OldEvidence => (StatusCode::CONFLICT, "work_old_evidence"),
        Refusal::WaitsForPerson => (StatusCode::CONFLICT, "work_waits_for_person"),
        Refusal::Changed => (StatusCode::CONFLICT, api::code::CHANGED),
        Refusal::Full => (StatusCode::CONFLICT, "work_full"),
    };
    Failure::new(status, code, error.to_string())
}
