//! A person's answer.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::event::{GrantScope, GrantedEffects};
use portcullis_core::grant::fits;
use portcullis_core::id::{ApprovalId, Digest, RunId};
use portcullis_ledger::{ApprovalRow, ApprovalState};
use portcullis_proof::export::PAYLOAD_BYTES_MAX as TEXT_BYTES_MAX;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Decider, Edit, Lasts, Says, ShownRequest};
use serde_json::Value;

use super::shown::{Detail, Standing, info};
use super::{Failure, Seen, Shared, find, read};
use crate::api::{self, GRANTED_TOGETHER_MAX};
use crate::daemon::auth::{Approver, Caller};
use crate::daemon::routes::JsonBody;
use crate::request_text::RUN_ENDED;

pub(in super::super) async fn grant(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::GrantApproval>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    Ok(Seen(granted(&shared, &identity, &approval, request).await?.told(&shared).await?))
}

/// Grants what is still as it was shown, each request by itself, and says why the others were not granted.
pub(in super::super) async fn grant_together(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::GrantApprovals>,
) -> Result<Seen<api::Granted>, Failure> {
    Ok(Seen(grant_each(&shared, &identity, request).await?))
}

/// The same, for the daemon's own pages.
pub(in super::super) async fn grant_each(
    shared: &Shared,
    identity: &Identity,
    request: api::GrantApprovals,
) -> Result<api::Granted, Failure> {
    if request.approvals.len() > GRANTED_TOGETHER_MAX {
        let message = format!("at most {GRANTED_TOGETHER_MAX} approvals can be granted together");
        return Err(Failure::bad_request(message));
    }
    let mut done = api::Granted::default();
    for api::ShownApproval { approval, shown } in request.approvals {
        let once =
            api::GrantApproval { shown: Some(shown), note: request.note.clone(), ..Default::default() };
        match granted(shared, identity, &approval, once).await {
            Ok(granted) => done.granted.push(granted.id),
            Err(failure) => {
                let (code, message) = failure.told();
                done.skipped.push(api::Skipped { approval, code, message });
            }
        }
    }
    Ok(done)
}

pub(in super::super) async fn refuse(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::RefuseApproval>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    say(&shared, identity, &approval, Says::Refuse, request.note).await
}

pub(in super::super) async fn answer(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::AnswerApproval>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    say(&shared, identity, &approval, Says::Answer, Some(request.note)).await
}

pub(in super::super) async fn revoke(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(approval): Path<String>,
    JsonBody(request): JsonBody<api::RevokeApproval>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    say(&shared, identity, &approval, Says::Revoke, request.note).await
}

/// Records what is no yes: it needs no look.
pub(in super::super) async fn say(
    shared: &Shared,
    identity: Identity,
    approval: &str,
    says: Says,
    note: Option<String>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    let by = decider(&identity, None);
    let row = find(shared, &Caller(identity), approval).await?;
    if row.state == ApprovalState::Expired && shared.gate.look_at(row.run).is_none() {
        return Err(run_ended(row.approval));
    }
    shared.gate.answer(row.approval, row.run, Answer { says, note, by }).await?;
    answered(shared, row.approval).await
}

/// A request that was granted.
pub(in super::super) struct Granted {
    id: ApprovalId,
    standing: Standing,
}

impl Granted {
    /// How it stands now.
    pub(in super::super) async fn told(self, shared: &Shared) -> Result<api::ApprovalInfo, Failure> {
        let row = row_of(shared, self.id).await?;
        Ok(self.standing.info(shared, row).await)
    }
}

pub(in super::super) async fn granted(
    shared: &Shared,
    identity: &Identity,
    approval: &str,
    request: api::GrantApproval,
) -> Result<Granted, Failure> {
    let (row, standing) = Standing::as_shown(shared, &Caller(identity.clone()), approval).await?;
    let (id, run): (ApprovalId, RunId) = (row.approval, row.run);
    let now = standing.info(shared, row).await;
    if now.run_ended {
        return Err(run_ended(id));
    }
    let digest = match now.state {
        api::ApprovalPhase::Pending => Some(check_shown(&now, request.shown)?),
        // It is decided, or too late: the run says so.
        _ => request.shown,
    };
    let scope = scope(&request, &now)?;
    let lasts = lasts(&request)?;
    let shown = digest.map(|digest| ShownRequest { digest, labels: now.labels });
    let says = Says::Grant { scope, lasts, edit: edit(request.arguments, request.text)? };
    let answer = Answer { says, note: request.note, by: decider(identity, shown) };
    shared.gate.answer(id, run, answer).await?;
    Ok(Granted { id, standing })
}

/// Nobody can decide on it any more.
fn run_ended(approval: ApprovalId) -> Failure {
    let message = format!("approval {approval} has expired: {RUN_ENDED}");
    Failure::new(StatusCode::CONFLICT, api::code::RUN_NOT_LIVE, message)
}

fn decider(identity: &Identity, shown: Option<ShownRequest>) -> Decider {
    let principal = &identity.principal;
    Decider::Approver { id: principal.id.clone(), roles: principal.roles.iter().cloned().collect(), shown }
}

/// Refuses a grant that does not say what its giver looked at, or that was looked at before the run went on.
fn check_shown(now: &api::ApprovalInfo, shown: Option<Digest>) -> Result<Digest, Failure> {
    match shown {
        Some(shown) if now.shown == Some(shown) => Ok(shown),
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

fn edit(arguments: Option<Value>, text: Option<String>) -> Result<Option<Edit>, Failure> {
    match (arguments, text) {
        (Some(_), Some(_)) => {
            Err(Failure::bad_request("give `arguments` for a call or `text` for a reply, not both"))
        }
        (Some(arguments), None) => Ok(Some(Edit::Arguments(arguments))),
        (None, Some(text)) if text.len() > TEXT_BYTES_MAX => Err(Failure::bad_request(format!(
            "`text` has {} bytes; the limit is {TEXT_BYTES_MAX}",
            text.len()
        ))),
        (None, text) => Ok(text.map(Edit::Text)),
    }
}

fn scope(request: &api::GrantApproval, now: &api::ApprovalInfo) -> Result<GrantScope, Failure> {
    let effects = || {
        now.effects.clone().ok_or_else(|| {
            let message = "this hold cannot be approved by effect; grant the call once, or the tool";
            Failure::new(StatusCode::CONFLICT, "not_by_effects", message)
        })
    };
    let patterns = &request.patterns;
    if (request.scope == api::Scope::Pattern) == patterns.is_empty() {
        return Err(Failure::bad_request("the scope `pattern` and `patterns` need each other"));
    }
    Ok(match request.scope {
        api::Scope::Once => GrantScope::Once,
        api::Scope::Arguments => GrantScope::Arguments,
        api::Scope::Tool => GrantScope::Tool(now.tool.clone()),
        api::Scope::Effects => GrantScope::Effects(effects()?),
        api::Scope::Pattern => {
            // Each pattern for the rules that hold this call for something that fits it.
            let of_rule = |held: GrantedEffects| {
                let met = |pattern: &&String| held.resources.iter().any(|resource| fits(pattern, resource));
                let resources = patterns.iter().filter(met).cloned().collect();
                GrantedEffects { rule: held.rule, resources }
            };
            GrantScope::Pattern(effects()?.into_iter().map(of_rule).collect())
        }
    })
}

fn lasts(request: &api::GrantApproval) -> Result<Lasts, Failure> {
    match (request.lasts, request.until) {
        (Some(_), Some(_)) => Err(Failure::bad_request("give `lasts` or `until`, not both")),
        (Some(api::Lasting::Task), None) => Ok(Lasts::Task),
        (Some(api::Lasting::Session), None) => Ok(Lasts::Session),
        (None, Some(until)) => Ok(Lasts::Until(until)),
        (None, None) => Ok(Lasts::Usual),
    }
}

async fn answered(shared: &Shared, approval: ApprovalId) -> Result<Seen<api::ApprovalInfo>, Failure> {
    let row = row_of(shared, approval).await?;
    Ok(Seen(info(shared, row, Detail::Whole).await?))
}

async fn row_of(shared: &Shared, approval: ApprovalId) -> Result<ApprovalRow, Failure> {
    let row = read(shared, move |reader| reader.approval(approval)).await?;
    row.ok_or_else(|| Failure::not_found(format!("there is no approval {approval}")))
}
