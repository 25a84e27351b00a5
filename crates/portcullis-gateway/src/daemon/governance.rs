//! Governance packs over HTTP: `/v1/runs/{run}/governance`, and each file below it.
//!
//! For approvers alone: a pack holds the policy, and what an agent knows of the rules over it is what it can work around.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use portcullis_core::id::RunId;
use portcullis_governance::{FILES, Pack, PackError, RecordError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::queries;
use super::routes::Queried;
use crate::api;
use crate::governance::{self, GovernanceError, PackOptions};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Whether to create a pack of a run with unverified replies.
    #[serde(default)]
    unverified: bool,
}

/// The whole pack as one archive.
pub(super) async fn archive(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(run): Path<String>,
    Queried(wanted): Queried<Wanted>,
) -> Result<Response, Failure> {
    let run = queries::find_run(&shared, &Caller(identity), &run).await?;
    let archive =
        made(&shared, run, wanted.unverified, |pack| Ok(pack.zip().map_err(PackError::from)?)).await?;
    answer("application/zip", &format!("governance-{run}.zip"), archive)
}

/// One file of it.
pub(super) async fn file(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path((run, name)): Path<(String, String)>,
    Queried(wanted): Queried<Wanted>,
) -> Result<Response, Failure> {
    let Some(name) = FILES.into_iter().find(|file| *file == name) else {
        return Err(Failure::not_found(format!("a governance pack has: {}", FILES.join(", "))));
    };
    let run = queries::find_run(&shared, &Caller(identity), &run).await?;
    file_answer(&shared, run, name, wanted.unverified).await
}

/// One file of a pack, to be kept.
pub(super) async fn file_answer(
    shared: &Shared,
    run: RunId,
    name: &'static str,
    unverified: bool,
) -> Result<Response, Failure> {
    let bytes =
        made(shared, run, unverified, |pack| Ok(pack.file(name).unwrap_or_default().to_vec())).await?;
    let media_type = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("json") => "application/json",
        Some("jsonl") => "application/x-ndjson",
        Some("md") => "text/markdown; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    answer(media_type, name, bytes)
}

pub(super) fn answer(media_type: &'static str, name: &str, bytes: Vec<u8>) -> Result<Response, Failure> {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")).map_err(|_| {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the name of the file cannot stand in a header",
        )
    })?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, bytes).into_response())
}

/// Makes the pack off the async threads, and takes what is wanted of it.
pub(super) async fn made(
    shared: &Shared,
    run: RunId,
    allow_unverified: bool,
    take: impl FnOnce(&Pack) -> Result<Vec<u8>, GovernanceError> + Send + 'static,
) -> Result<Vec<u8>, Failure> {
    let room = Arc::clone(&shared.packs).try_acquire_owned().map_err(|_| {
        let message = format!("{} governance packs are being made, which is the limit", api::PACKS_AT_ONCE);
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    })?;
    let (gate, home) = (Arc::clone(&shared.gate), Arc::clone(&shared.home));
    let controls = Arc::clone(&shared.controls);
    let made = tokio::task::spawn_blocking(move || {
        let _room = room;
        let files_of = |digest| gate.bundles().files_of(digest);
        let places = home.store().log();
        let options = PackOptions { allow_unverified, controls: Some(&controls), remembered: &[] };
        // The reader's own errors and those of the pack come out of two places.
        gate.ledger().read(|reader| {
            Ok(governance::pack(reader, run, &places, files_of, options).and_then(|pack| take(&pack)))
        })
    });
    let internal =
        |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the work was interrupted");
    Ok(made.await.map_err(internal)???)
}

impl From<GovernanceError> for Failure {
    fn from(error: GovernanceError) -> Self {
        let (status, code, help) = match error {
            GovernanceError::Ledger(error) => return error.into(),
            GovernanceError::Pack(PackError::NotVerified { .. }) => {
                (StatusCode::CONFLICT, "not_verified", "; `?unverified=true` makes the pack all the same")
            }
            GovernanceError::Pack(PackError::BundleMissing(_)) => (
                StatusCode::CONFLICT,
                "bundle_missing",
                " in any folder in use; `portcullis governance RUN --bundle DIR` takes its files as they were then",
            ),
            GovernanceError::Record(RecordError::TooLarge { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "run_too_long", "")
            }
            GovernanceError::Record(RecordError::Empty) => (StatusCode::CONFLICT, "nothing_recorded", ""),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "no_pack", ""),
        };
        Self::new(status, code, format!("{error}{help}"))
    }
}
