//! The routes about changes of servers' tools that a person accepts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::Shared;
use super::auth::Approver;
use super::error::Failure;
use super::routes::{JsonBody, settle};
use crate::api;
use portcullis_session::listings::{self, Listings, ListingsError};

/// Works on the listings, off the async threads.
async fn blocking<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&Listings) -> Result<T, ListingsError> + Send + 'static,
) -> Result<T, Failure> {
    let listings = Arc::clone(&shared.listings);
    let internal =
        |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the work was interrupted");
    let result = tokio::task::spawn_blocking(move || work(&listings)).await.map_err(internal)?;
    Ok(result?)
}

/// The changes that wait for a person.
pub(super) async fn changed(
    State(shared): State<Shared>,
    Approver(_): Approver,
) -> Result<Json<api::ChangedTools>, Failure> {
    Ok(Json(blocking(&shared, Listings::changes).await?))
}

/// A person accepts a change.
pub(super) async fn accept(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::AcceptTool>,
) -> Result<Json<api::AcceptedTool>, Failure> {
    let accepted = blocking(&shared, move |listings| {
        listings.accept(&request.tool, request.server.as_deref(), request.digest.as_deref())
    })
    .await?;
    Ok(Json(self::accepted(&shared, accepted, &identity.principal.id).await?))
}

/// A person accepts all changes of a list.
pub(super) async fn accept_all(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::AcceptTools>,
) -> Result<Json<api::AcceptedTools>, Failure> {
    let all = blocking(&shared, move |listings| listings.accept_all(&request.digest)).await?;
    let mut accepted = Vec::with_capacity(all.len());
    for one in all {
        accepted.push(self::accepted(&shared, one, &identity.principal.id).await?);
    }
    Ok(Json(api::AcceptedTools { accepted }))
}

/// Tells live runs of a change that was accepted.
pub(super) async fn accepted(
    shared: &Shared,
    accepted: listings::Accepted,
    approver: &str,
) -> Result<api::AcceptedTool, Failure> {
    let listings::Accepted { server, tool, digest } = accepted;
    let gate = Arc::clone(&shared.gate);
    let (of, name, approver) = (server.clone(), tool.clone(), approver.to_owned());
    let runs = settle(async move { gate.tool_accepted(&of, &name, digest, &approver).await }).await?;
    Ok(api::AcceptedTool { server, tool, digest, runs })
}
