//! The routes about servers' tools: listings, and changes that a person accepts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::event::ListedTool;
use portcullis_core::id::Digest;

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::listings::{self, Listings, ListingsError};
use super::routes::{JsonBody, live_run, settle};
use crate::api;

/// Works on the listings, off the async threads.
async fn blocking<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&Listings) -> Result<T, ListingsError> + Send + 'static,
) -> Result<T, Failure> {
    let listings = Arc::clone(&shared.listings);
    let internal = |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the work was cut short");
    let result = tokio::task::spawn_blocking(move || work(&listings)).await.map_err(internal)?;
    result.map_err(|error| {
        let (status, code) = match &error {
            ListingsError::Io { .. } | ListingsError::Damaged { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "listings_unusable")
            }
            ListingsError::NoChange(_) => (StatusCode::NOT_FOUND, api::code::NOT_FOUND),
            ListingsError::Ambiguous(_) => (StatusCode::CONFLICT, "ambiguous"),
            ListingsError::ChangedAgain(_) => (StatusCode::CONFLICT, "changed_again"),
        };
        Failure::new(status, code, error.to_string())
    })
}

/// A server listed its tools.
pub(super) async fn listed(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportTools>,
) -> Result<Json<api::ToolsAnswer>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let api::ReportTools { server, command, tools } = request;
    let origin = command.unwrap_or_else(|| server.clone());
    let (tools, changed) = blocking(&shared, move |listings| {
        let changed = listings.listed(&origin, &tools)?;
        Ok((tools, changed))
    })
    .await?;
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    let disabled = run
        .with_state(|_, bundle| {
            let hidden = |name: &String| {
                changed.contains_key(name) || bundle.registry.get(name).is_some_and(|tool| !tool.enabled)
            };
            names.into_iter().filter(hidden).collect()
        })
        .await;
    let listed = tools
        .into_iter()
        .map(|tool| {
            let changed_from = changed.get(&tool.name).copied();
            listed_tool(tool, changed_from)
        })
        .collect();
    let seq = settle(async move { run.tools_listed(&server, listed).await }).await?;
    Ok(Json(api::ToolsAnswer { seq, disabled }))
}

fn listed_tool(tool: api::ReportedTool, changed_from: Option<Digest>) -> ListedTool {
    let words = api::ToolWords { description: tool.description, input_schema: tool.input_schema };
    ListedTool {
        name: tool.name,
        digest: listings::digest(&words),
        read_only_hint: tool.read_only_hint,
        destructive_hint: tool.destructive_hint,
        changed_from,
    }
}

/// The changes that wait for a person.
pub(super) async fn changed(
    State(shared): State<Shared>,
    Approver(_): Approver,
) -> Result<Json<api::ChangedTools>, Failure> {
    let changed = blocking(&shared, Listings::changes).await?;
    Ok(Json(api::ChangedTools { changed }))
}

/// A person accepts a change.
pub(super) async fn accept(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    JsonBody(request): JsonBody<api::AcceptTool>,
) -> Result<Json<api::AcceptedTool>, Failure> {
    let accepted = blocking(&shared, move |listings| {
        listings.accept(&request.tool, request.server.as_deref(), request.digest)
    })
    .await?;
    let approver = identity.principal.id;
    let gate = Arc::clone(&shared.gate);
    let (server, tool, digest) = (accepted.server.clone(), accepted.tool.clone(), accepted.digest);
    let runs = settle(async move { gate.tool_accepted(&server, &tool, digest, &approver).await }).await?;
    let listings::Accepted { server, tool, digest } = accepted;
    Ok(Json(api::AcceptedTool { server, tool, digest, runs }))
}
