//! Session state and facts: operations of agents, and what people see and forget.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use portcullis_core::kept::{Cell, KeptError, KeptId, NewFact, Put, Refusal};
use portcullis_core::principal::CredentialKind;
use portcullis_core::work::Party;
use portcullis_ledger::FactFilter;
use portcullis_session::engine::{Reach, WorkBy};
use portcullis_session::kept::told;
use portcullis_session::run::{FactsAsked, FactsPage, HISTORY_PAGE_MAX, Run};
use portcullis_session::surface::Surface as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::queries;
use super::routes::{JsonBody, Queried, live_run, settle};
use super::work::cause;
use crate::api::{self, FactOperation, StateOperation};

/// Facts in one list.
const LIST_MAX: usize = 200;

pub(super) async fn keys(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<api::StateAnswer>, Failure> {
    let run = find(&shared, &caller, &run).await?;
    Ok(Json(listed(&run).await))
}

pub(super) async fn state(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::StateRequest>,
) -> Result<Json<api::StateAnswer>, Failure> {
    let run = find(&shared, &caller, &run).await?;
    let api::StateRequest { operation, call, request } = request;
    let answer = match operation {
        StateOperation::Get { key: None } => listed(&run).await,
        StateOperation::Get { key: Some(key) } => {
            let cell = run.with_state(|state, _| state.kept().cell(&key).cloned()).await;
            let next = "`state_get` without a key lists those that there are";
            let unknown = || KeptError::new(Refusal::Unknown, "key", format!("there is no `{key}`"), next);
            let cell = cell.ok_or_else(|| refused(&unknown()))?;
            api::StateAnswer { keys: vec![told_key(&cell, true)], ..api::StateAnswer::default() }
        }
        StateOperation::History { key, before, limit } => {
            let limit = limit.unwrap_or(api::HISTORY_DEFAULT).min(HISTORY_PAGE_MAX);
            let (history, more) = run.state_history(&key, before, limit).await?;
            api::StateAnswer { history, more, ..api::StateAnswer::default() }
        }
        StateOperation::Put { key, value, replaces } => {
            of_the_agent(&caller, "put")?;
            let cause = cause(&run, call.as_deref()).await?;
            let put = Put { key, value: value.to_string(), replaces, request };
            let of = Arc::clone(&run);
            let cell = settle(async move { of.state_put(put, cause).await }).await?;
            api::StateAnswer { keys: vec![told_key(&cell, false)], ..api::StateAnswer::default() }
        }
    };
    Ok(Json(answer))
}

pub(super) async fn facts(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::FactRequest>,
) -> Result<Json<api::FactAnswer>, Failure> {
    let run = find(&shared, &caller, &run).await?;
    let api::FactRequest { operation, call, request } = request;
    let cause = cause(&run, call.as_deref()).await?;
    let of = Arc::clone(&run);
    let answer = match operation {
        FactOperation::Write { text, topic, replaces, scope } => {
            of_the_agent(&caller, "write")?;
            let new = NewFact { topic, text, replaces, scope, request, ..NewFact::default() };
            let fact = settle(async move { of.fact_write(new, cause).await }).await?;
            api::FactAnswer { fact: Some(fact), ..api::FactAnswer::default() }
        }
        FactOperation::Read { facts, topic, limit, before } => {
            of_the_agent(&caller, "read")?;
            let limit = limit.unwrap_or(api::FACTS_READ_DEFAULT);
            let asked = FactsAsked { facts, topic, limit, before };
            read(settle(async move { of.fact_read(asked, cause, Reach::Withhold).await }).await?)
        }
        FactOperation::Forget { fact, reason } => {
            let by = by(&caller);
            settle(async move { of.fact_forget(by, fact, reason, request, cause).await }).await?;
            api::FactAnswer { fact: Some(fact), ..api::FactAnswer::default() }
        }
    };
    Ok(Json(answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    /// Facts, at most 200.
    limit: Option<usize>,
    /// Those before this one of the list: `next` of its page.
    before: Option<u64>,
    /// Those of this principal.
    principal: Option<String>,
    /// Also those that were replaced or forgotten.
    #[serde(default)]
    gone: bool,
}

/// Facts of the store. An agent reads them in its run alone, where it is known that it has.
pub(super) async fn list(
    State(shared): State<Shared>,
    Approver(_): Approver,
    Queried(listed): Queried<Listed>,
) -> Result<Json<api::FactList>, Failure> {
    let limit = listed.limit.unwrap_or(LIST_MAX).min(LIST_MAX);
    let Listed { before, principal, gone, .. } = listed;
    let filter = FactFilter { principal, gone, before, limit, ..FactFilter::default() };
    let list = queries::read(&shared, move |reader| {
        let rows = reader.facts(&filter)?;
        let next = rows.last().map(|row| row.number).filter(|_| rows.len() == limit);
        let mut facts = Vec::with_capacity(rows.len());
        for row in &rows {
            facts.extend(told(reader, row)?);
        }
        Ok(api::FactList { facts, next })
    })
    .await?;
    Ok(Json(list))
}

pub(super) async fn show(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(fact): Path<String>,
) -> Result<Json<portcullis_session::kept::FactTold>, Failure> {
    let unknown =
        || Failure::not_found(format!("there is no fact `{}`", fact.chars().take(80).collect::<String>()));
    let (run, seq) = fact.split_once('.').ok_or_else(unknown)?;
    let run = queries::find_run(&shared, &Caller(identity), run).await?;
    let id = KeptId { run, seq: seq.parse().map_err(|_| unknown())? };
    let found = queries::read(&shared, move |reader| match reader.fact(id)? {
        Some(row) => told(reader, &row),
        None => Ok(None),
    });
    Ok(Json(found.await?.ok_or_else(unknown)?))
}

/// The live run of that id, for the caller.
async fn find(shared: &Shared, caller: &Caller, id: &str) -> Result<Arc<Run>, Failure> {
    let run = live_run(shared, caller, id).await?;
    Ok(shared.gate.run(run.id())?)
}

fn by(caller: &Caller) -> WorkBy {
    match caller.0.kind {
        CredentialKind::Agent => WorkBy { party: Party::Agent, person: String::new() },
        CredentialKind::Approver => WorkBy { party: Party::Person, person: caller.0.principal.id.clone() },
    }
}

/// State and facts are the agent's own: in the record, they are said to be its doing.
fn of_the_agent(caller: &Caller, op: &str) -> Result<(), Failure> {
    match caller.0.kind {
        CredentialKind::Agent => Ok(()),
        CredentialKind::Approver => {
            let message =
                format!("`operation`: `{op}` is done by the agent of the run; a person may read and forget");
            Err(Failure::new(StatusCode::FORBIDDEN, api::code::FORBIDDEN, message))
        }
    }
}

async fn listed(run: &Run) -> api::StateAnswer {
    let keys = run.with_state(|state, _| state.kept().cells().map(|cell| told_key(cell, false)).collect());
    api::StateAnswer { keys: keys.await, ..api::StateAnswer::default() }
}

/// A key. What cannot be read as JSON any more, since secrets in it became notes, is told as a text.
fn told_key(cell: &Cell, with_value: bool) -> api::StateKey {
    let value = cell.value.as_ref().filter(|_| with_value);
    let value = value.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())));
    let erased = cell.value.is_none();
    api::StateKey { key: cell.key.clone(), version: cell.version, value, erased, labels: cell.labels.clone() }
}

fn read(page: FactsPage) -> api::FactAnswer {
    let FactsPage { read, next, erased } = page;
    let Some(read) = read else {
        return api::FactAnswer {
            facts: Some(Value::Array(Vec::new())),
            next,
            erased,
            ..api::FactAnswer::default()
        };
    };
    let shown = match (&read.judgement.shown, read.judgement.enforced.proceeds()) {
        (Some(shown), _) => Some(shown),
        (None, true) => Some(&read.content),
        (None, false) => None,
    };
    let facts = shown.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())));
    api::FactAnswer { facts, denial: read.judgement.denial, next, erased, ..api::FactAnswer::default() }
}

/// A refusal in the words of the API.
pub(super) fn refused(error: &KeptError) -> Failure {
    let (status, code) = match error.refusal {
        Refusal::Malformed => (StatusCode::BAD_REQUEST, "bad_request"),
        Refusal::Stale => (StatusCode::CONFLICT, "stale_version"),
        Refusal::Unknown => (StatusCode::NOT_FOUND, api::code::NOT_FOUND),
        Refusal::Forgotten => (StatusCode::GONE, "forgotten"),
        Refusal::Full => (StatusCode::CONFLICT, "full"),
    };
    Failure::new(status, code, error.to_string())
}
