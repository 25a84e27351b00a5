//! The routes of `/v1/approvals`: what waits for a person, and the person's answer.
//!
//! What a person is shown is read from the run's own events, not from the index, and has a digest. A grant names the
//! digest of what was looked at: where the run went on meanwhile it is not given.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use portcullis_core::event::{ApprovalDecision, Event, EventBody, GrantScope, Proposed, VerdictRecord};
use portcullis_core::id::{ApprovalId, Digest, DigestBuilder, canonical_json};
use portcullis_core::label::LabelSet;
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::state::progress::RunPhase;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState, LedgerError, Reader};
use portcullis_session::commits::{CommitWatch, Missed};
use portcullis_session::engine::Answer;
use portcullis_session::run::held_for;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::queries::{self, LIST_MAX, may_see, read};
use super::routes::JsonBody;
use crate::api;

/// Most entries of one run in a listing.
const PER_RUN_MAX: usize = APPROVALS_PENDING_MAX;
/// Longest texts of a call that a listing shows, in bytes; all of them are shown one by one.
const LISTED_BYTES_MAX: u64 = 4_096;
/// The pause before a list that is waited for is made again, so that many changes at once cost one.
const LISTED_AGAIN: Duration = Duration::from_millis(50);
/// Events after the proposal among which verdict and request stand.
const REQUEST_EVENTS_MAX: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    #[serde(default)]
    state: api::ApprovalFilter,
    /// The version of a list that is known: it is not answered again before the wait is over.
    since: Option<Digest>,
    /// How long to wait for another one, in milliseconds.
    #[serde(default)]
    wait_ms: u32,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<api::Approvals>, Failure> {
    let until = Instant::now() + Duration::from_millis(which.wait_ms.min(api::WAIT_MS_MAX).into());
    // From before the look, so that no change falls between the two.
    let mut commits = shared.gate.watch();
    loop {
        let list = listed(&shared, &caller, which.state).await?;
        let known = which.since.is_some() && which.since == list.version;
        if !known || timeout_at(until, bears_on_approvals(&mut commits)).await.is_err() {
            return Ok(Json(list));
        }
        tokio::time::sleep(LISTED_AGAIN).await;
    }
}

/// Waits for a commit after which another list may be due. A watcher that lags lists again.
async fn bears_on_approvals(commits: &mut CommitWatch) {
    loop {
        match commits.next().await {
            Ok(commit) if commit.approvals => return,
            // What waits in a run that ends is listed no longer.
            Ok(commit) if matches!(commit.progress.phase, RunPhase::Closed | RunPhase::Abandoned) => return,
            Ok(_) => {}
            Err(Missed::Lagged(_)) => return,
            Err(Missed::Closed) => std::future::pending().await,
        }
    }
}

async fn listed(
    shared: &Shared,
    caller: &Caller,
    state: api::ApprovalFilter,
) -> Result<api::Approvals, Failure> {
    let pending = state == api::ApprovalFilter::Pending;
    let filter = ApprovalFilter {
        state: pending.then_some(ApprovalState::Pending),
        principal: queries::only_of(caller),
        live: pending,
        per_run: Some(PER_RUN_MAX),
        limit: Some(LIST_MAX),
        ..ApprovalFilter::default()
    };
    let rows = read(shared, move |reader| reader.approvals(&filter)).await?;
    let mut approvals = Vec::with_capacity(rows.len());
    for row in rows {
        let info = info(shared, row, Detail::Listed).await?;
        if !pending || info.state == api::ApprovalPhase::Pending {
            approvals.push(info);
        }
    }
    let standing: Vec<_> = approvals.iter().map(|info| (info.approval, info.state)).collect();
    let version =
        DigestBuilder::new("portcullis/approvals/v1").part(canonical_json(&json!(standing)).as_bytes());
    Ok(api::Approvals { approvals, version: Some(version.finish()) })
}

pub(super) async fn show(
    State(shared): State<Shared>,
    caller: Caller,
    Path(approval): Path<String>,
) -> Result<Json<api::ApprovalInfo>, Failure> {
    let row = find(&shared, &caller, &approval).await?;
    Ok(Json(info(&shared, row, Detail::Whole).await?))
}

pub(super) async fn grant(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::GrantApproval>,
) -> Result<Json<api::ApprovalInfo>, Failure> {
    let approver = identity.principal.id.clone();
    let row = find(&shared, &Caller(identity), &approval).await?;
    let (id, run) = (row.approval, row.run);
    let now = info(&shared, row, Detail::Whole).await?;
    if now.state == api::ApprovalPhase::Pending {
        check_shown(&now, request.shown)?;
    }
    let scope = match request.scope {
        api::Scope::Once => GrantScope::Once,
        api::Scope::Tool => GrantScope::Tool(now.tool),
        api::Scope::Effects => GrantScope::Effects(now.effects.ok_or_else(|| {
            let message = "this hold cannot be approved by effect; grant the call once, or the tool";
            Failure::new(StatusCode::CONFLICT, "not_by_effects", message)
        })?),
    };
    let decision = ApprovalDecision::Granted;
    let answer = Answer { decision, scope, note: request.note, approver, shown: Some(now.labels) };
    shared.gate.answer(id, run, answer).await?;
    answered(&shared, id).await
}

/// Refuses a grant that does not say what its giver looked at, or that was looked at before the run went on.
fn check_shown(now: &api::ApprovalInfo, shown: Option<Digest>) -> Result<(), Failure> {
    match shown {
        Some(shown) if now.shown == Some(shown) => Ok(()),
        Some(_) => {
            let message = format!(
                "approval {} has changed since it was shown; review it again, then answer",
                now.approval
            );
            Err(Failure::new(StatusCode::CONFLICT, api::code::CHANGED, message))
        }
        None => {
            let message = "a grant must name what was reviewed: send `shown` from `GET /v1/approvals/{id}`";
            Err(Failure::new(StatusCode::PRECONDITION_REQUIRED, "not_shown", message))
        }
    }
}

pub(super) async fn refuse(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::RefuseApproval>,
) -> Result<Json<api::ApprovalInfo>, Failure> {
    let approver = identity.principal.id.clone();
    let row = find(&shared, &Caller(identity), &approval).await?;
    let decision = ApprovalDecision::Refused;
    let answer = Answer { decision, scope: GrantScope::Once, note: request.note, approver, shown: None };
    shared.gate.answer(row.approval, row.run, answer).await?;
    answered(&shared, row.approval).await
}

async fn answered(shared: &Shared, approval: ApprovalId) -> Result<Json<api::ApprovalInfo>, Failure> {
    let row = read(shared, move |reader| reader.approval(approval)).await?;
    let row = row.ok_or_else(|| Failure::not_found(format!("there is no approval {approval}")))?;
    Ok(Json(info(shared, row, Detail::Whole).await?))
}

/// The approval that an id or a prefix names, of those that the caller may see.
async fn find(shared: &Shared, caller: &Caller, text: &str) -> Result<ApprovalRow, Failure> {
    let prefix = queries::prefix(text)?;
    let unknown = || {
        Failure::not_found(format!(
            "no approval id starts with `{text}`; `portcullis approvals list` lists them"
        ))
    };
    if let Ok(id) = text.parse::<ApprovalId>() {
        let row = read(shared, move |reader| reader.approval(id)).await?;
        return row.filter(|row| may_see(caller, &row.principal)).ok_or_else(unknown);
    }
    let principal = queries::only_of(caller);
    let rows = read(shared, move |reader| reader.find_approvals(&prefix, principal.as_deref())).await?;
    let mut found = rows.into_iter();
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row),
        (None, _) => Err(unknown()),
        (Some(_), Some(_)) => {
            let message = format!("`{text}` matches several approvals; give more digits");
            Err(Failure::new(StatusCode::CONFLICT, "ambiguous", message))
        }
    }
}

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// All of it, checked against the links of the run.
    Whole,
    /// No long texts.
    Listed,
}

fn phase(state: ApprovalState, lapsed: bool) -> api::ApprovalPhase {
    match state {
        ApprovalState::Pending if lapsed => api::ApprovalPhase::Expired,
        ApprovalState::Pending => api::ApprovalPhase::Pending,
        ApprovalState::Granted => api::ApprovalPhase::Granted,
        ApprovalState::Refused => api::ApprovalPhase::Refused,
        ApprovalState::Expired => api::ApprovalPhase::Expired,
        ApprovalState::Claimed => api::ApprovalPhase::Claimed,
    }
}

/// Everything that a person needs to decide. The labels are those that a grant given now would cover.
async fn info(shared: &Shared, row: ApprovalRow, detail: Detail) -> Result<api::ApprovalInfo, Failure> {
    let mut labels = LabelSet::default();
    let mut expires_at = None;
    let mut head = None;
    let mut policy = row.policy.clone();
    let live = shared.gate.look_at(row.run);
    if let Some(run) = &live {
        head = Some(run.head().await);
        let ttl_s = run
            .with_state(|state, bundle| {
                labels = state.labels().clone();
                state.policy().clone_into(&mut policy);
                bundle.approvals.request_ttl_s
            })
            .await;
        if row.state == ApprovalState::Pending {
            let micros = row.requested.as_micros().saturating_add(i64::from(ttl_s) * 1_000_000);
            expires_at = Some(Timestamp::from_micros(micros));
        }
    }
    let row = Arc::new(row);
    let request = {
        let row = Arc::clone(&row);
        let head = head.filter(|_| detail == Detail::Whole);
        read(shared, move |reader| {
            if let Some(head) = head {
                reader.verify_run(row.run)?;
                let last = reader.events(row.run, head.count.saturating_sub(1), 1)?;
                if last.first().is_none_or(|last| last.link != head.link) {
                    return Err(disagrees(&row));
                }
            }
            Request::read(reader, &row, detail)
        })
        .await?
    };
    let lapsed = expires_at.is_some_and(|at| at < clock::now());
    let mut info = api::ApprovalInfo {
        approval: row.approval,
        state: phase(row.state, lapsed),
        run: row.run,
        action: row.action,
        principal: row.principal.clone(),
        policy,
        tool: request.proposed.tool.unwrap_or_default(),
        server: request.proposed.server,
        arguments: request.arguments,
        continuation: request.continuation,
        directory: request.proposed.directory,
        planned: request.planned,
        rule: request.verdict.rule,
        reason: request.verdict.reason,
        effects: held_for(&request.verdict.findings),
        digest: row.digest,
        labels,
        requested_at: row.requested,
        expires_at,
        decided_at: row.decided,
        decided_by: row.decided_by.clone(),
        note: row.note.clone(),
        cut: request.cut,
        shown: None,
    };
    info.shown = (detail == Detail::Whole).then(|| shown(&info));
    Ok(info)
}

/// The digest of what a person is shown of a request, all that a grant rests on.
fn shown(info: &api::ApprovalInfo) -> Digest {
    let all = json!({
        "approval": info.approval, "run": info.run, "action": info.action, "principal": info.principal,
        "policy": info.policy, "tool": info.tool, "server": info.server, "arguments": info.arguments, "continuation": info.continuation,
        "directory": info.directory, "planned": info.planned, "rule": info.rule, "reason": info.reason,
        "effects": info.effects, "digest": info.digest, "labels": info.labels,
    });
    DigestBuilder::new("portcullis/shown/v1").part(canonical_json(&all).as_bytes()).finish()
}

fn disagrees(row: &ApprovalRow) -> LedgerError {
    LedgerError::IndexDisagrees { approval: row.approval, run: row.run }
}

/// What the run's events say of a request.
struct Request {
    proposed: Proposed,
    verdict: VerdictRecord,
    arguments: Option<Value>,
    continuation: Option<Value>,
    planned: Option<String>,
    /// Long texts were left out.
    cut: bool,
}

impl Request {
    fn read(reader: &dyn Reader, row: &ApprovalRow, detail: Detail) -> Result<Self, LedgerError> {
        let seq = row.proposed.ok_or_else(|| disagrees(row))?;
        let (mut proposal, mut verdict, mut asked) = (None, None, false);
        for stored in reader.events(row.run, seq.saturating_sub(1), REQUEST_EVENTS_MAX)? {
            let mut line = stored.line;
            queries::join(reader, row.run, &mut line)?;
            let event = Event::from_line(&line).map_err(|_| disagrees(row))?;
            match &event.body {
                EventBody::Proposed(proposed) if proposed.action == row.action => {
                    proposal = Some((proposed.clone(), event.payloads));
                }
                EventBody::Verdict(record) if record.action == Some(row.action) => {
                    verdict = Some(record.clone())
                }
                EventBody::ApprovalRequested { approval, action, digest, .. }
                    if *approval == row.approval =>
                {
                    asked = *action == row.action && *digest == row.digest;
                    break;
                }
                _ => {}
            }
        }
        let (Some((proposed, payloads)), Some(verdict), true) = (proposal, verdict, asked) else {
            return Err(disagrees(row));
        };
        let cut =
            detail == Detail::Listed && payloads.values().any(|payload| payload.bytes > LISTED_BYTES_MAX);
        let text = |name: &str| -> Result<Option<String>, LedgerError> {
            let payload = payloads.get(name).filter(|payload| !cut || payload.bytes <= LISTED_BYTES_MAX);
            let Some(payload) = payload else { return Ok(None) };
            let stored = reader.payload(row.run, payload.commitment)?;
            Ok(stored.map(|stored| String::from_utf8_lossy(stored.bytes()).into_owned()))
        };
        let value = |name| -> Result<Option<Value>, LedgerError> {
            Ok(text(name)?.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))))
        };
        Ok(Self {
            arguments: value("arguments")?,
            continuation: value("continuation")?,
            planned: text("planned")?,
            proposed,
            verdict,
            cut,
        })
    }
}
