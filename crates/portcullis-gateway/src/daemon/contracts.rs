//! Replies checked against contracts: `/v1/contracts/check` and `/v1/contracts/repair`.
//!
//! They touch no run and record nothing. Code decides what it can, on a thread of its own; a model is asked only where the
//! daemon's bundle names one (`[contracts]`), within the budget that stands there, and a repair only where the request
//! names a strategy. So what an agent can spend is what the operator wrote down.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use portcullis_assist::record::{Checked, Mended, Reply, check_reply, repair_reply};
use portcullis_assist::{
    Budget, Client, Clock, Compiled, Helpers, Model, Settings, SettingsError, Strategy, SystemClock, Written,
};
use portcullis_contracts::Given;
use portcullis_contracts::limits::MAX_REPLY_BYTES;
use serde_json::Value;
use tokio::runtime::Handle;

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::routes::JsonBody;
use crate::api;
use crate::contract_source::client;

/// Which contracts hold on a reply.
pub(super) async fn check(
    State(shared): State<Shared>,
    _: Caller,
    JsonBody(mut request): JsonBody<api::CheckReply>,
) -> Result<Json<Checked>, Failure> {
    let compiled = compiled(&request.contracts, &request.response, request.prompt.as_deref())?;
    let api::CheckReply { prompt, documents, names, high_risk, .. } = &mut request;
    let given = given(prompt.take(), documents.take(), names.take(), high_risk.take())?;
    let asked = Asked::of(&shared)?;
    let settings = Settings { detect: request.detect, budget: asked.budget, ..Settings::default() };
    let checked = apart(&shared, async move {
        let reply = Reply { key: request.key.as_ref(), context: given.context(), text: &request.response };
        check_reply(reply, &compiled, asked.helpers(), &settings, &*asked.clock).await
    });
    checked.await.map(Json)
}

/// A reply on which more of them hold.
pub(super) async fn repair(
    State(shared): State<Shared>,
    _: Caller,
    JsonBody(mut request): JsonBody<api::RepairReply>,
) -> Result<Json<Mended>, Failure> {
    let compiled = compiled(&request.contracts, &request.response, request.prompt.as_deref())?;
    let api::RepairReply { prompt, documents, names, high_risk, .. } = &mut request;
    let given = given(prompt.take(), documents.take(), names.take(), high_risk.take())?;
    let asked = Asked::of(&shared)?;
    let candidates = request.candidates.unwrap_or(Strategy::DEFAULT_REWRITES);
    let settings = Settings {
        strategy: request.strategy.unwrap_or(Strategy::Mechanical).with_rewrites(candidates),
        detect: request.detect,
        no_degrade: request.no_degrade,
        verify: request.verify,
        post_check: request.post_check,
        budget: asked.budget,
        ..Settings::default()
    };
    let mended = apart(&shared, async move {
        let reply = Reply { key: request.key.as_ref(), context: given.context(), text: &request.response };
        repair_reply(reply, &compiled, asked.helpers(), &settings, &*asked.clock).await
    });
    mended.await?.map(Json).map_err(|error| match error {
        SettingsError::NoModel(_) => Failure::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "no_model",
            format!("{error}; `[contracts]` of the bundle's portcullis.toml names one"),
        ),
        error => Failure::bad_request(error.to_string()),
    })
}

fn compiled(contracts: &[Written], response: &str, prompt: Option<&str>) -> Result<Compiled, Failure> {
    for (field, bytes) in [("response", response.len()), ("prompt", prompt.map_or(0, str::len))] {
        if bytes > MAX_REPLY_BYTES {
            let message = format!("`{field}` has {bytes} bytes; at most {MAX_REPLY_BYTES} are read");
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_long", message));
        }
    }
    if contracts.is_empty() {
        return Err(Failure::bad_request(
            "`contracts` is empty: there is nothing to check the reply against",
        ));
    }
    Compiled::of(contracts).map_err(|error| Failure::bad_request(format!("`contracts`: {error}")))
}

/// What the reply is held against. Names are indexed and documents kept, so the request gives them up.
fn given(
    prompt: Option<String>,
    documents: Option<Value>,
    names: Option<Vec<String>>,
    high_risk: Option<Vec<String>>,
) -> Result<Given, Failure> {
    Given::of(prompt, documents.as_ref(), names.as_deref(), high_risk)
        .map_err(|error| Failure::bad_request(error.to_string()))
}

/// The model of the bundle, where it names one.
struct Asked {
    client: Option<Client>,
    clock: Arc<dyn Clock>,
    budget: Budget,
}

impl Asked {
    fn of(shared: &Shared) -> Result<Self, Failure> {
        let (_, bundle) = shared.gate.bundles().get(None).map_err(|error| {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
        })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let Some(named) = &bundle.contract_model else {
            return Ok(Self { client: None, clock, budget: Budget::default() });
        };
        let client = client(named, &clock).map_err(|error| {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "model_unusable", error.to_string())
        })?;
        let time = Duration::from_secs(named.time_s.into());
        let budget = Budget { calls: Some(named.calls), time: Some(time), ..Budget::default() };
        Ok(Self { client: Some(client), clock, budget })
    }

    fn helpers(&self) -> Helpers<'_> {
        Helpers { model: self.client.as_ref().map(|client| client as &dyn Model), program: None }
    }
}

/// Work on a thread of its own: a repair by code may take seconds, and the daemon's threads have runs to serve.
async fn apart<T: Send + 'static>(
    shared: &Shared,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    let room = Arc::clone(&shared.replies).try_acquire_owned().map_err(|_| {
        let message = format!("{} replies are being processed, which is the limit", api::REPLIES_AT_ONCE);
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    })?;
    let handle = Handle::current();
    let done = tokio::task::spawn_blocking(move || {
        let _room = room;
        handle.block_on(work)
    });
    done.await
        .map_err(|_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the work was interrupted"))
}
