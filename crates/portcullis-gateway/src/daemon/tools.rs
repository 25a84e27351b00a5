//! The routes about servers' tools: listings, and changes that a person accepts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::event::ListedTool;
use portcullis_core::id::Digest;
use portcullis_session::run::Run;
use portcullis_wire::mcp::list::INSTRUCTIONS;

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
    let internal =
        |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the work was interrupted");
    let result = tokio::task::spawn_blocking(move || work(&listings)).await.map_err(internal)?;
    result.map_err(|error| {
        let (status, code) = match &error {
            ListingsError::Io { .. } | ListingsError::Damaged { .. } | ListingsError::Randomness(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "listings_unusable")
            }
            ListingsError::NoChange(_) => (StatusCode::NOT_FOUND, api::code::NOT_FOUND),
            ListingsError::Ambiguous(_) => (StatusCode::CONFLICT, "ambiguous"),
            ListingsError::ChangedAgain(_) | ListingsError::OtherList => {
                (StatusCode::CONFLICT, "changed_again")
            }
            ListingsError::Unreadable { .. } => (StatusCode::CONFLICT, "unreadable"),
            ListingsError::TooMany(_) => (StatusCode::SERVICE_UNAVAILABLE, "too_many_servers"),
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
    let api::ReportTools { server, command, tools, unreadable } = request;
    let principal = run.principal().id.clone();
    let origin = command.clone().unwrap_or_else(|| server.clone());
    let (tools, unreadable, changed) = blocking(&shared, move |listings| {
        let changed = listings.listed(&principal, &origin, &tools, &unreadable)?;
        Ok((tools, unreadable, changed))
    })
    .await?;
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    let only_instructions = !names.is_empty() && names.iter().all(|name| name == INSTRUCTIONS);
    let disabled = run
        .with_state(|_, bundle| {
            let hidden = |name: &String| {
                changed.contains_key(name) || bundle.registry.get(name).is_some_and(|tool| !tool.enabled)
            };
            names.into_iter().filter(hidden).collect()
        })
        .await;
    let mut listed: Vec<ListedTool> = Vec::with_capacity(tools.len() + unreadable.len());
    for tool in tools {
        let changed_from = changed.get(&tool.name).copied();
        // Instructions are no tool: of interest only where they changed.
        if tool.name != INSTRUCTIONS || changed_from.is_some() {
            listed.push(listed_tool(tool, changed_from));
        }
    }
    let unread = unreadable.into_iter().map(|entry| ListedTool {
        changed_from: changed.get(&entry.name).copied(),
        name: entry.name,
        digest: entry.digest,
        read_only_hint: None,
        destructive_hint: None,
    });
    listed.extend(unread);
    let changed = changed.into_keys().collect();
    let seq = if only_instructions && listed.is_empty() {
        run.with_state(|state, _| state.seq()).await
    } else {
        settle(async move { run.tools_listed(&server, command.as_deref(), listed).await }).await?
    };
    Ok(Json(api::ToolsAnswer { seq, disabled, changed }))
}

/// Informs a run of known changes to a server's tools, before anything is listed in it.
pub(super) async fn known_changes(shared: &Shared, run: &Arc<Run>, server: String) -> Result<(), Failure> {
    let (waiting, server) = blocking(shared, move |listings| {
        let waiting = listings.waiting(&server)?;
        Ok((waiting, server))
    })
    .await?;
    let run = Arc::clone(run);
    if !waiting.is_empty() {
        settle(async move { run.tools_listed(&server, Some(&server), waiting).await }).await?;
    }
    Ok(())
}

fn listed_tool(tool: api::ReportedTool, changed_from: Option<Digest>) -> ListedTool {
    let words =
        api::ToolWords { description: tool.description, input_schema: tool.input_schema, rest: tool.rest };
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
    Ok(Json(tell(&shared, accepted, &identity.principal.id).await?))
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
        accepted.push(tell(&shared, one, &identity.principal.id).await?);
    }
    Ok(Json(api::AcceptedTools { accepted }))
}

/// Tells live runs of a change that was accepted.
async fn tell(
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
