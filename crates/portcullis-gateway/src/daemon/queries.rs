//! The routes of `/v1` that only look. Reading the store blocks, so it happens off the async threads.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use portcullis_core::aside::ERASED;
use portcullis_core::event::Event;
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_ledger::log::{LogError, LogPlaces, LogReader};
use portcullis_ledger::{
    ErasureRow, ExportOptions, Kin, LedgerError, Reader, RunFilter, RunSummary, read_aside,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::freezes;
use super::routes::Queried;
use super::streamed;
use crate::api;

/// Most entries of one listing.
pub(super) const LIST_MAX: usize = 1_000;
/// Entries of a listing that does not say how many.
const LIST_DEFAULT: usize = 100;
/// Largest run that is exported over HTTP, in events; the command line has no such limit.
const EXPORT_EVENTS_MAX: u64 = 200_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Entries, at most 1,000; 100 unless it is said.
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsPage {
    /// Events, at most 1,000; 100 unless it is said.
    limit: Option<usize>,
    /// The number of the event before the first one.
    after: Option<u64>,
    /// Whether the words that were set aside are in the lines, which are not those of the chain then.
    #[serde(default)]
    joined: bool,
}

/// Asks the store, off the async threads.
pub(super) async fn read<T: Send + 'static>(
    shared: &Shared,
    queries: impl FnOnce(&dyn Reader) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, Failure> {
    Ok(read_aside(shared.gate.ledger(), queries).await?)
}

/// The run that an id or a prefix names, among those that the caller may see.
pub(super) async fn find_run(shared: &Shared, caller: &Caller, text: &str) -> Result<RunId, Failure> {
    let (prefix, principal) = (prefix(text)?, only_of(caller));
    read(shared, move |reader| reader.find_run_of(&prefix, principal.as_deref())).await
}

pub(super) fn prefix(text: &str) -> Result<String, Failure> {
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
    if hex && (api::ID_PREFIX_MIN..=32).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(Failure::bad_request(format!(
            "`{}` is not an id; give {} to 32 lower-case hex digits",
            text.chars().take(40).collect::<String>(),
            api::ID_PREFIX_MIN
        )))
    }
}

pub(super) async fn health(
    State(shared): State<Shared>,
    caller: Caller,
) -> Result<Json<api::Health>, Failure> {
    let store = match read(&shared, |reader| reader.origin()).await {
        Ok(_) => match shared.gate.ledger().check_present() {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.to_string(),
        },
        Err(_) => "the store cannot be read; see `portcullis doctor`".to_owned(),
    };
    let places = shared.home.store().log();
    let failure = shared.log_failure.borrow().clone();
    let log = tokio::task::spawn_blocking(move || log_standing(&places, failure)).await;
    let log = log.unwrap_or_else(|_| "the log was not checked".to_owned());
    let freezes = freezes::in_force(&shared).await?;
    let freezes = freezes.iter().filter(|freeze| freezes::may_see(&caller, &freeze.scope)).count();
    let (source, bundle) =
        shared.gate.bundles().get(None).map_err(|error| {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
        })?;
    Ok(Json(api::Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        build: shared.build.clone(),
        pid: std::process::id(),
        home: shared.home.path().display().to_string(),
        bundle: bundle.digest(),
        bundle_folder: source.map(|folder| folder.display().to_string()),
        http: shared.listens.http.map(|address| address.to_string()),
        console: shared.listens.console.map(|address| address.to_string()),
        configuration: Some(portcullis_session::configuration::digest(bundle.digest())),
        runs_live: shared.gate.live() as u64,
        freezes: freezes as u64,
        store,
        log,
        reload_error: shared.gate.bundles().refusal(),
        reload_errors_of_others: match caller.0.kind {
            CredentialKind::Approver => {
                let others = shared.gate.bundles().refusals_of_others();
                others.into_iter().take(api::OTHERS_MAX).collect()
            }
            CredentialKind::Agent => Vec::new(),
        },
        servers_amiss: shared.mcp.amiss(&bundle),
    }))
}

/// Why the log is frozen, why its thread cannot go on, or what it waits for. `failure` is the last one of the thread: a
/// log that refuses when it is opened has asked nobody, so what it waits for says less.
fn log_standing(places: &LogPlaces, failure: Option<String>) -> String {
    match (LogReader::open(places).and_then(|log| Ok((log.waits()?, log.frozen()?))), failure) {
        (Ok((_, Some(reason))), _) => LogError::Frozen { reason }.to_string(),
        (_, Some(failure)) => failure,
        (Ok((Some(wait), None)), None) => wait.to_string(),
        // The first run makes it.
        (Ok((None, None)) | Err(LogError::NoLog { .. }), None) => "ok".to_owned(),
        (Err(_), None) => "the log cannot be read; see `portcullis log status`".to_owned(),
    }
}

/// Whose runs alone a caller sees: agents see those of their own principal, approvers all.
pub(super) fn only_of(caller: &Caller) -> Option<String> {
    (caller.0.kind == CredentialKind::Agent).then(|| caller.0.principal.id.clone())
}

/// Whether a caller sees what is a principal's: see [`only_of`].
pub(super) fn may_see(caller: &Caller, principal: &str) -> bool {
    caller.0.kind == CredentialKind::Approver || caller.0.principal.id == principal
}

pub(super) async fn runs(
    State(shared): State<Shared>,
    caller: Caller,
    Queried(page): Queried<Page>,
) -> Result<Json<api::Runs>, Failure> {
    let principal = only_of(&caller);
    let limit = Some(page.limit.unwrap_or(LIST_DEFAULT).min(LIST_MAX));
    let filter = RunFilter { principal, limit, ..RunFilter::default() };
    let summaries = read(&shared, move |reader| {
        let mut summaries = reader.runs(&filter)?;
        // What could not be opened has nothing to show.
        summaries.retain(|summary| summary.events > 0);
        summaries.iter_mut().try_for_each(|summary| complete(reader, summary))?;
        Ok(summaries)
    })
    .await?;
    let runs = summaries.into_iter().map(run_info).collect::<Result<_, _>>()?;
    Ok(Json(api::Runs { runs }))
}

/// Computes what the summary of a run lacks that an earlier release wrote.
pub(super) fn complete(reader: &dyn Reader, summary: &mut RunSummary) -> Result<(), LedgerError> {
    if summary.progress.is_none() {
        summary.progress = reader.progress(summary.run)?;
    }
    Ok(())
}

async fn visible(shared: &Shared, caller: &Caller, text: &str) -> Result<RunSummary, Failure> {
    let id = find_run(shared, caller, text).await?;
    let summary = read(shared, move |reader| reader.run(id)).await?;
    match summary {
        Some(summary) if may_see(caller, &summary.principal) => Ok(summary),
        _ => Err(Failure::not_found(format!("there is no run {id}"))),
    }
}

pub(super) async fn run(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<api::RunInfo>, Failure> {
    let mut summary = visible(&shared, &caller, &run).await?;
    let (summary, erasures, kin) = read(&shared, move |reader| {
        complete(reader, &mut summary)?;
        let (erasures, kin) = (reader.erasures(summary.run)?, Kin::of(reader, summary.run)?);
        Ok((summary, erasures, kin))
    })
    .await?;
    let mut info = run_info(summary)?;
    info.erasures = erasures
        .into_iter()
        .map(|ErasureRow { at, by, reason, payloads }| api::ErasureInfo { at, by, reason, payloads })
        .collect();
    (info.parent, info.children) = (kin.parent, kin.children);
    Ok(Json(info))
}

fn run_info(summary: RunSummary) -> Result<api::RunInfo, Failure> {
    let id = summary.run;
    let opened = summary.progress.and_then(|progress| Some((progress.bundle?, progress)));
    let Some((bundle, progress)) = opened else {
        let message = format!("run {id} has no opening event; `portcullis doctor` checks the store");
        return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "not_opened", message));
    };
    Ok(api::RunInfo {
        run: id,
        surface: progress.surface,
        session: summary.session_key,
        principal: summary.principal,
        policy: progress.policy,
        bundle,
        mode: progress.mode,
        phase: progress.phase,
        frozen: progress.frozen,
        opened_at: summary.opened,
        steps: progress.steps,
        side_effects: progress.side_effects,
        verdicts: progress.verdicts,
        pending_approvals: summary.pending_approvals,
        events: summary.events,
        last_event_at: summary.last_event,
        segments: summary.segments,
        erasures: Vec::new(),
        parent: None,
        children: Vec::new(),
    })
}

pub(super) async fn events(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    Queried(page): Queried<EventsPage>,
) -> Result<Response, Failure> {
    let id = visible(&shared, &caller, &run).await?.run;
    let limit = page.limit.unwrap_or(LIST_DEFAULT).clamp(1, LIST_MAX);
    let after = page.after.unwrap_or(0);
    let stored = read(&shared, move |reader| {
        let mut stored = reader.events(id, after, limit)?;
        if page.joined {
            stored.iter_mut().try_for_each(|event| join(reader, id, &mut event.line))?;
        }
        Ok(stored)
    })
    .await?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    if stored.len() == limit
        && let Some(last) = stored.last()
    {
        headers.insert(api::NEXT_HEADER, HeaderValue::from(last.seq));
    }
    let body: Vec<u8> = stored.into_iter().flat_map(|event| event.line.into_iter().chain([b'\n'])).collect();
    Ok((headers, body).into_response())
}

/// Puts the words back into a line that were set aside. What is not an event stays as it is.
pub(super) fn join(reader: &dyn Reader, run: RunId, line: &mut Vec<u8>) -> Result<(), LedgerError> {
    let Ok(mut event) = Event::from_line(line) else { return Ok(()) };
    let Some(commitment) = event.aside().map(|payload| payload.commitment) else { return Ok(()) };
    let words = reader.payload(run, commitment)?;
    event.join(words.as_ref().and_then(|words| str::from_utf8(words.bytes()).ok()), ERASED);
    if let Ok(joined) = serde_json::to_vec(&event) {
        *line = joined;
    }
    Ok(())
}

pub(super) async fn export(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Response, Failure> {
    let summary = visible(&shared, &caller, &run).await?;
    if summary.events > EXPORT_EVENTS_MAX {
        let message = format!(
            "the run has {} events; over HTTP the limit is {EXPORT_EVENTS_MAX}, use `portcullis export {}`",
            summary.events, summary.run
        );
        return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "run_too_long", message));
    }
    let room = shared.exports.take(&caller.0).ok_or_else(|| {
        let message = format!(
            "too many exports are open: {} per agent, {} for all agents, and as many for approvers; finish reading them, or close their connections",
            api::EXPORTS_OF_AGENT,
            api::EXPORTS_AT_ONCE
        );
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    })?;
    let ledger = Arc::clone(shared.gate.ledger());
    let body = streamed::body(move |out| {
        let _room = room;
        let options = ExportOptions { payloads: true };
        ledger.read(|reader| reader.export_run(summary.run, out, options)).map(drop)
    });
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
    Ok((content_type, body).into_response())
}
