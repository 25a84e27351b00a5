//! Freezing and releasing runs. Any approver freezes; who releases is decided in [`check_release`].

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use portcullis_core::freeze::{Freeze, FreezeScope};
use portcullis_core::principal::CredentialKind;
use portcullis_ledger::{FreezeFilter, RunFilter};
use portcullis_session::credentials::Identity;
use portcullis_session::gate::{FreezeDone, Release};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::warn;

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::queries::{self, LIST_MAX, read};
use super::routes::{JsonBody, Queried, settle};
use crate::api;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Those that were released as well.
    #[serde(default)]
    history: bool,
}

pub(super) async fn list(
    State(shared): State<Shared>,
    caller: Caller,
    Queried(which): Queried<Which>,
) -> Result<Json<api::Freezes>, Failure> {
    let freezes = match which.history {
        true => read(&shared, |reader| reader.freezes(&FreezeFilter::Latest(LIST_MAX))).await?,
        false => in_force(&shared).await?,
    };
    let freezes = freezes.iter().filter(|freeze| may_see(&caller, &freeze.scope));
    Ok(Json(api::Freezes { freezes: freezes.map(api::FreezeInfo::from).collect() }))
}

/// The freezes that are in force.
pub(super) async fn in_force(shared: &Shared) -> Result<Vec<Freeze>, Failure> {
    let mut freezes = shared.gate.freezes().await?;
    freezes.sort_by_key(|freeze| freeze.frozen.at);
    Ok(freezes.iter().map(|freeze| freeze.as_ref().clone()).collect())
}

/// Agents see what is frozen as a whole, and their own principal; of single runs their denials tell them.
pub(super) fn may_see(caller: &Caller, scope: &FreezeScope) -> bool {
    caller.0.kind == CredentialKind::Approver
        || match scope {
            FreezeScope::All => true,
            FreezeScope::Principal(name) => *name == caller.0.principal.id,
            FreezeScope::Run(_) => false,
        }
}

pub(super) async fn freeze(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::FreezeRuns>,
) -> Result<Json<api::FreezeAnswer>, Failure> {
    let by = identity.principal.id.clone();
    let scope = scope(&shared, identity, request.scope).await?;
    let gate = Arc::clone(&shared.gate);
    let done = settle(async move { gate.freeze(scope, &by, request.note).await }).await?;
    answer(&shared, done).await
}

pub(super) async fn release(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::ReleaseRuns>,
) -> Result<Json<api::FreezeAnswer>, Failure> {
    let by = identity.principal.id.clone();
    let scope = scope(&shared, identity.clone(), request.scope).await?;
    check_release(&shared, &identity, &scope)?;
    let stage = match request.stage {
        api::ReleaseStage::Reads => Release::Reads,
        api::ReleaseStage::All => Release::All,
    };
    let gate = Arc::clone(&shared.gate);
    let done = settle(async move { gate.release(&scope, stage, &by, request.note).await }).await?;
    answer(&shared, done).await
}

/// Whether a person may release what is frozen: any approver a run, and where the daemon's bundle names roles, only
/// those with one of them more than that.
fn check_release(shared: &Shared, approver: &Identity, scope: &FreezeScope) -> Result<(), Failure> {
    if approver.kind != CredentialKind::Approver {
        return Err(Failure::not_an_approver());
    }
    let unknown = |error| {
        let message = format!("who may release is in the daemon's bundle, which cannot be read: {error}");
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, api::code::BUNDLE_INVALID, message)
    };
    let (_, bundle) = shared.gate.bundles().get(None).map_err(unknown)?;
    let roles = &bundle.approvals.release;
    let wide = !matches!(scope, FreezeScope::Run(_));
    if wide && !roles.is_empty() && !approver.principal.roles.iter().any(|role| roles.contains(role)) {
        let roles = roles.iter().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(" or ");
        let message = format!("only approvers with the role {roles} can release a principal, or all");
        return Err(Failure::new(StatusCode::FORBIDDEN, api::code::FORBIDDEN, message));
    }
    Ok(())
}

async fn scope(
    shared: &Shared,
    identity: Identity,
    target: api::FreezeTarget,
) -> Result<FreezeScope, Failure> {
    Ok(match target {
        api::FreezeTarget::Run(run) => {
            FreezeScope::Run(queries::find_run(shared, &Caller(identity), &run).await?)
        }
        api::FreezeTarget::Principal(name) if name.is_empty() => {
            return Err(Failure::bad_request("`principal` is empty; name one"));
        }
        api::FreezeTarget::Principal(name) => FreezeScope::Principal(name),
        api::FreezeTarget::All => FreezeScope::All,
    })
}

async fn answer(shared: &Shared, done: FreezeDone) -> Result<Json<api::FreezeAnswer>, Failure> {
    let FreezeDone { freeze, already, runs, held_by_others, unrecorded } = done;
    for (run, error) in &unrecorded {
        warn!(%run, %error, "a run could not record a change of its freeze; it does so before anything else");
    }
    let known = match &freeze.scope {
        FreezeScope::Principal(name) if runs == 0 => {
            let filter = RunFilter { principal: Some(name.clone()), limit: Some(1), ..RunFilter::default() };
            !read(shared, move |reader| reader.runs(&filter)).await?.is_empty()
        }
        _ => true,
    };
    Ok(Json(api::FreezeAnswer {
        freeze: freeze.as_ref().into(),
        already,
        known,
        runs: runs as u64,
        held_by_others: held_by_others as u64,
        unrecorded: unrecorded.len() as u64,
    }))
}
