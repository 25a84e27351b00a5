//! The routes of `/v1/approvals`: what waits for a person, and the person's answer.
//!
//! What a person is shown is read from the run's own events, not from the index, and has a digest. A grant names the
//! digest of what was looked at: where the run went on meanwhile it is not given.

mod decide;
mod queue;
mod shown;
mod stats;

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::id::{ApprovalId, Digest, DigestBuilder, canonical_json};
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::state::progress::RunPhase;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState};
use portcullis_session::commits::{CommitWatch, Missed};
use portcullis_session::engine::Proposal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

pub(super) use self::decide::{answer, grant, grant_each, grant_together, granted, refuse, revoke, say};
pub(super) use self::queue::Settled;
use self::shown::{Detail, info};
pub(super) use self::stats::{stats, stats_now};

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::queries::{self, LIST_MAX, may_see, read};
use super::routes::Queried;
use super::seen::Seen;
use crate::api;

/// Most entries of one run in a listing.
const PER_RUN_MAX: usize = APPROVALS_PENDING_MAX;
/// Waiting calls that are read for the daemon's own pages: the oldest.
pub(super) const READ_MAX: usize = 100;
/// The pause before a list that is waited for is made again, so that many changes at once cost one.
const LISTED_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Which ones.
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
    Queried(which): Queried<Which>,
) -> Result<Seen<api::Approvals>, Failure> {
    let until = Instant::now() + Duration::from_millis(which.wait_ms.min(api::WAIT_MS_MAX).into());
    // From before the look, so that no change falls between the two.
    let mut commits = shared.gate.watch();
    loop {
        let list = listed(&shared, &caller, which.state).await?;
        let known = which.since.is_some() && which.since == list.version;
        if !known || timeout_at(until, bears_on_approvals(&mut commits)).await.is_err() {
            return Ok(Seen(list));
        }
        tokio::time::sleep(LISTED_AGAIN).await;
    }
}

/// Waits for a commit after which another list may be due. A watcher that lags lists again.
pub(super) async fn bears_on_approvals(commits: &mut CommitWatch) {
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

/// What waits for anybody, as approvers see it, with what the calls would touch as far as they are listed.
pub(super) async fn waiting(shared: &Shared) -> Result<api::Approvals, Failure> {
    let mut list = of_principal(shared, None, api::ApprovalFilter::Pending).await?;
    // The newest are first, the oldest are shown.
    for info in list.approvals.iter_mut().rev().take(READ_MAX) {
        let (Some(run), Some(arguments)) = (shared.gate.look_at(info.run), info.arguments.clone()) else {
            continue;
        };
        let proposal = Proposal {
            tool: Some(info.tool.clone()),
            server: info.server.clone(),
            arguments,
            planned: info.planned.clone(),
            continuation: info.continuation.clone(),
            directory: info.directory.clone(),
            ..Proposal::default()
        };
        info.touches = run.with_engine(|engine| engine.touches(Some(proposal))).await;
    }
    Ok(list)
}

async fn listed(
    shared: &Shared,
    caller: &Caller,
    state: api::ApprovalFilter,
) -> Result<api::Approvals, Failure> {
    of_principal(shared, queries::only_of(caller), state).await
}

async fn of_principal(
    shared: &Shared,
    principal: Option<String>,
    state: api::ApprovalFilter,
) -> Result<api::Approvals, Failure> {
    let pending = state == api::ApprovalFilter::Pending;
    let of_all = principal.is_none();
    let filter = ApprovalFilter {
        state: pending.then_some(ApprovalState::Pending),
        principal,
        live: pending,
        per_run: Some(PER_RUN_MAX),
        limit: Some(LIST_MAX),
        ..ApprovalFilter::default()
    };
    let rows = read(shared, move |reader| reader.approvals(&filter)).await?;
    let queue = match pending {
        true => queue::now(shared).await?,
        false => queue::Queue::default(),
    };
    let rows = rows.into_iter().filter(|row| !queue.holds(row.approval));
    let mut approvals = Vec::new();
    for row in rows {
        let info = info(shared, row, Detail::Listed).await?;
        if !pending || info.state == api::ApprovalPhase::Pending {
            approvals.push(info);
        }
    }
    let standing: Vec<_> = approvals.iter().map(|info| (info.approval, info.state)).collect();
    let version =
        DigestBuilder::new("portcullis/approvals/v1").part(canonical_json(&json!(standing)).as_bytes());
    let queued = queue.told().filter(|_| of_all);
    Ok(api::Approvals { approvals, version: Some(version.finish()), queued })
}

pub(super) async fn show(
    State(shared): State<Shared>,
    caller: Caller,
    Path(approval): Path<String>,
) -> Result<Seen<api::ApprovalInfo>, Failure> {
    let row = find(&shared, &caller, &approval).await?;
    Ok(Seen(info(&shared, row, Detail::Whole).await?))
}

/// A request as it is shown to a person.
pub(super) async fn shown_whole(shared: &Shared, row: ApprovalRow) -> Result<api::ApprovalInfo, Failure> {
    info(shared, row, Detail::Whole).await
}

/// Those of pending requests that are put before people now.
pub(super) async fn put_before_people(
    shared: &Shared,
    rows: Vec<ApprovalRow>,
) -> Result<Vec<ApprovalRow>, Failure> {
    let queue = queue::now(shared).await?;
    Ok(rows.into_iter().filter(|row| !queue.holds(row.approval)).collect())
}

/// The approval that an id or a prefix names, of those that the caller may see.
pub(super) async fn find(shared: &Shared, caller: &Caller, text: &str) -> Result<ApprovalRow, Failure> {
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
