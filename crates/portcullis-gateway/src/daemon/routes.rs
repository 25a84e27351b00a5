//! The routes of `/v1` that change something. Those that only look are in `queries`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use axum::{Json, Router};
use portcullis_session::error::SessionError;
use portcullis_session::gate::NotReloaded;
use portcullis_session::surface::{LocalRun, Surface as _};
use portcullis_session::tickets::Taken;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::approvals;
use super::auth::{Approver, Caller};
use super::connections;
use super::console;
use super::contracts;
use super::error::Failure;
use super::freezes;
use super::governance;
use super::hooks;
use super::kept;
use super::log;
use super::mcp;
use super::oauth;
use super::openapi::{self, Routes};
use super::queries;
use super::streamed;
use super::tools as tool_changes;
use super::webhooks;
use super::work;
use crate::api;

/// JSON bodies whose mistakes are answered like every other failure.
pub(super) struct JsonBody<T>(pub(super) T);

/// What stands behind the `?` of a path; mistakes in it are answered like every other failure.
pub(super) struct Queried<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Queried<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Failure> {
        let read = Query::<T>::from_request_parts(parts, shared).await;
        read.map(|Query(query)| Self(query)).map_err(|error| Failure::bad_request(error.body_text()))
    }
}

/// Bodies from this many bytes on are read off the async threads, where they hold up no other run.
pub(super) const READ_ASIDE_BYTES: usize = 128 << 10;

impl<T: DeserializeOwned + Send + 'static> FromRequest<Shared> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: axum::extract::Request, shared: &Shared) -> Result<Self, Failure> {
        let _room = room_for(request.headers(), shared).await?;
        // The syntax alone, which takes no memory besides.
        let read = connections::in_time(Json::<Box<RawValue>>::from_request(request, shared)).await;
        let Ok(read) = read else {
            let message = "the body of the request did not arrive in time";
            return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message));
        };
        match read {
            Ok(Json(raw)) if raw.get().len() < READ_ASIDE_BYTES => Self::of(&raw),
            Ok(Json(raw)) => {
                let read = tokio::task::spawn_blocking(move || Self::of(&raw)).await;
                read.map_err(|_| SessionError::CutShort)?
            }
            Err(JsonRejection::BytesRejection(error)) => Err(Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("{error}; the limit is {} bytes", api::REQUEST_BYTES_MAX),
            )),
            Err(error) => Err(Failure::bad_request(error.body_text())),
        }
    }
}

/// Room for a long body, held while it is read: what all callers together send stays within a budget.
pub(super) async fn room_for(
    headers: &HeaderMap,
    shared: &Shared,
) -> Result<Option<OwnedSemaphorePermit>, Failure> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    // A body that does not say how long it is may be as long as any.
    let bytes = length.unwrap_or(api::REQUEST_BYTES_MAX).min(api::REQUEST_BYTES_MAX);
    if bytes < READ_ASIDE_BYTES {
        return Ok(None);
    }
    let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
    match connections::in_time(Arc::clone(&shared.bodies).acquire_many_owned(kib)).await {
        Ok(Ok(room)) => Ok(Some(room)),
        _ => {
            let message = "other long requests are being read; try again";
            Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message))
        }
    }
}

impl<T: DeserializeOwned> JsonBody<T> {
    fn of(raw: &RawValue) -> Result<Self, Failure> {
        let read = serde_json::from_str(raw.get()).map(Self);
        read.map_err(|error| {
            Failure::bad_request(format!("the request body is not valid for this route: {error}"))
        })
    }
}

pub(super) fn router(shared: Shared) -> Router {
    oauth::routes(table(Routes::Served(Box::default())).into_router())
        .route("/mcp", any(mcp::all))
        .route("/mcp/{server}", any(mcp::one))
        .fallback(|| async {
            Failure::not_found("there is no such path; the API is described in docs/http-api.md")
        })
        .layer(DefaultBodyLimit::max(api::REQUEST_BYTES_MAX))
        .with_state(shared)
}

/// All routes, with what each does.
pub(super) fn table(routes: Routes) -> Routes {
    of_the_rest(of_runs(routes))
}

fn of_runs(routes: Routes) -> Routes {
    routes
        .get("/v1/health", "How the daemon is", queries::health)
        .file("/v1/openapi.json", "This document", "application/json", openapi::served)
        .get("/v1/runs", "Lists runs, the latest first", queries::runs)
        .post("/v1/runs", "Opens a run, joins one, or continues one", open)
        .get("/v1/runs/{run}", "A run at a glance", queries::run)
        .file(
            "/v1/runs/{run}/attach",
            "Stays open, with a newline every ten seconds: the run ends with its last attached caller",
            "text/plain",
            attach,
        )
        .post("/v1/runs/{run}/actions", "Proposes an action", propose)
        .post("/v1/runs/{run}/turns", "Proposes actions that the agent makes side by side", propose_turn)
        .post("/v1/runs/{run}/outcomes", "Reports what became of an action", outcome)
        .post("/v1/runs/{run}/told", "Reports what a server says that is no result of a call", told)
        .post("/v1/runs/{run}/tools", "Reports the tools that a server lists", tools)
        .post("/v1/runs/{run}/inputs", "Reports what was said to the agent", input)
        .post("/v1/runs/{run}/outputs", "Proposes a reply", output)
        .post(
            "/v1/runs/{run}/confirmations",
            "Reports that the user said yes to a call that they were asked about",
            confirm,
        )
        .post("/v1/runs/{run}/evidence", "Reports something that bears on the run", evidence)
        .post("/v1/runs/{run}/observed", "Reports what was seen of something that runs contained", observed)
        .post("/v1/runs/{run}/stopping", "Asks what the agent is to be told before it stops", stopping)
        .get("/v1/runs/{run}/work", "The work items of a run", work::list)
        .post("/v1/runs/{run}/work", "Changes a work item", work::operate)
        .get("/v1/runs/{run}/state", "The keys of the run's session state", kept::keys)
        .post("/v1/runs/{run}/state", "Reads or writes session state", kept::state)
        .post("/v1/runs/{run}/facts", "Writes, reads or forgets facts", kept::facts)
        .post("/v1/runs/{run}/close", "Closes a run", close)
        .post("/v1/runs/{run}/control", "Halts, pauses or resumes a run", control)
        .file(
            "/v1/runs/{run}/events",
            "Events as they are stored, one a line; the header `X-Portcullis-Next` has the next `after`",
            "application/x-ndjson",
            queries::events,
        )
        .file(
            "/v1/runs/{run}/export",
            "The export of a run, for the verifier",
            "application/x-ndjson",
            queries::export,
        )
        .file(
            "/v1/runs/{run}/governance",
            "The governance pack of a run",
            "application/zip",
            governance::archive,
        )
        .file(
            "/v1/runs/{run}/governance/{file}",
            "One file of the pack",
            "application/octet-stream",
            governance::file,
        )
}

fn of_the_rest(routes: Routes) -> Routes {
    routes
        .get("/v1/caller", "Whom the token stands for", oauth::caller)
        .get("/v1/facts", "Lists facts, the newest first", kept::list)
        .get("/v1/facts/{fact}", "One fact", kept::show)
        .get("/v1/tools/changed", "Tools that changed since a person accepted them", tool_changes::changed)
        .post("/v1/tools/accept", "Accepts what a server says of a tool now", tool_changes::accept)
        .post(
            "/v1/tools/accept-all",
            "Accepts all changes of a list that was looked at",
            tool_changes::accept_all,
        )
        .post(
            "/v1/tickets/take",
            "Takes the profile of an action that is run contained now, once",
            take_ticket,
        )
        .post("/v1/hook", "Answers an event of a coding agent", hooks::answer)
        .get("/v1/approvals", "Lists approvals", approvals::list)
        .post("/v1/approvals/grant", "Grants several approvals, each once", approvals::grant_together)
        .get("/v1/approvals/stats", "How approvals were decided", approvals::stats)
        .get(
            "/v1/approvals/{approval}",
            "One approval, with all that a person needs to decide",
            approvals::show,
        )
        .post("/v1/approvals/{approval}/grant", "Says yes", approvals::grant)
        .post("/v1/approvals/{approval}/refuse", "Says no", approvals::refuse)
        .post(
            "/v1/approvals/{approval}/answer",
            "Gives the agent a sentence instead of a yes or no",
            approvals::answer,
        )
        .post("/v1/approvals/{approval}/revoke", "Takes a yes back", approvals::revoke)
        .get("/v1/webhooks", "Lists the webhooks of the bundle", webhooks::list)
        .post(
            "/v1/webhooks/{webhook}/answers",
            "Decides by the answer of a webhook, which is signed",
            webhooks::answer,
        )
        .get("/v1/freezes", "Lists freezes", freezes::list)
        .post("/v1/freezes", "Freezes runs", freezes::freeze)
        .post("/v1/freezes/release", "Releases runs", freezes::release)
        .post("/v1/contracts/check", "Checks a reply against contracts", contracts::check)
        .post("/v1/contracts/repair", "Repairs a reply", contracts::repair)
        .post("/v1/bundles/reload", "Reads the bundles again", reload)
        .post("/v1/console/links", "Makes a link into the console", console::make_link)
        .file("/log/checkpoint", "The checkpoint of the transparency log", "text/plain", log::checkpoint)
        .file("/log/tile/{*path}", "A tile of the transparency log", "application/octet-stream", log::tile)
}

/// The live run of that id or prefix, for the caller.
pub(super) async fn live_run(shared: &Shared, caller: &Caller, id: &str) -> Result<LocalRun, Failure> {
    let id = match id.parse() {
        Ok(id) => id,
        Err(_) => queries::find_run(shared, caller, id).await?,
    };
    Ok(shared.local.run(&caller.0, id)?)
}

async fn open(
    State(shared): State<Shared>,
    Caller(identity): Caller,
    JsonBody(request): JsonBody<api::OpenRun>,
) -> Result<Json<api::OpenedRun>, Failure> {
    Ok(Json(shared.local.open(identity, request).await?))
}

/// Answers with a body that never ends by itself: a newline now and then. It holds the attachment: when the client goes away
/// the body is dropped, and the attachment with it.
async fn attach(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Response, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let attachment = shared.gate.attach(run.id())?;
    let mut interval = tokio::time::interval(Duration::from_secs(api::HEARTBEAT_S));
    Ok(Response::new(streamed::sure_pieces(move |context| {
        let _held = &attachment;
        interval.poll_tick(context).map(|_| Some(Bytes::from_static(b"\n")))
    })))
}

async fn propose(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ProposeAction>,
) -> Result<Json<api::ActionAnswer>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let began = Instant::now();
    let answer = api::ActionAnswer::of(run.propose(request).await?);
    // What waited for a person says nothing about the gate.
    if let Some(console) = shared.console.as_ref().filter(|_| answer.approval.is_none()) {
        console.tally.took(began.elapsed());
    }
    Ok(Json(answer))
}

async fn propose_turn(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ProposeTurn>,
) -> Result<Json<api::TurnAnswer>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let answers = run.propose_turn(request).await?.into_iter().map(api::ActionAnswer::of).collect();
    Ok(Json(api::TurnAnswer { answers }))
}

/// Runs work to its end even if the client goes away half-way.
pub(super) async fn settle<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::spawn(work).await.map_err(|_| SessionError::CutShort)??)
}

async fn outcome(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportOutcome>,
) -> Result<Json<api::ObservationAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.outcome(request).await?))
}

async fn told(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportTold>,
) -> Result<Json<api::ObservationAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.told(request).await?))
}

async fn input(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportInput>,
) -> Result<Json<api::TextAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.input(request).await?))
}

async fn confirm(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportConfirmation>,
) -> Result<Json<api::TextAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.confirm(request).await?))
}

async fn output(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportOutput>,
) -> Result<Json<api::TextAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.output(request).await?))
}

async fn evidence(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportEvidence>,
) -> Result<Json<api::TextAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.evidence(request).await?))
}

async fn observed(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportObserved>,
) -> Result<Json<api::ObservationAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.observed(request).await?))
}

async fn stopping(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(api::Empty {}): JsonBody<api::Empty>,
) -> Result<Json<api::StopAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.stopping().await?))
}

async fn take_ticket(
    State(shared): State<Shared>,
    Caller(identity): Caller,
    JsonBody(request): JsonBody<api::TakeTicket>,
) -> Result<Json<api::TakenTicket>, Failure> {
    let Taken { run, action, profile } = shared.local.take_ticket(&identity, request.ticket)?;
    Ok(Json(api::TakenTicket { run, action, profile }))
}

async fn tools(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportTools>,
) -> Result<Json<api::ToolsAnswer>, Failure> {
    Ok(Json(live_run(&shared, &caller, &run).await?.tools(request).await?))
}

async fn close(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<api::Empty>, Failure> {
    live_run(&shared, &caller, &run).await?.close().await?;
    Ok(Json(api::Empty {}))
}

async fn control(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ControlRun>,
) -> Result<Json<api::Empty>, Failure> {
    let approver = identity.principal.id.clone();
    let run = live_run(&shared, &Caller(identity), &run).await?.run();
    settle(async move { run.control(request.control, &approver, request.note).await }).await?;
    Ok(Json(api::Empty {}))
}

async fn reload(State(shared): State<Shared>, Approver(_): Approver) -> Result<Json<api::Reloaded>, Failure> {
    let digest = |shared: &Shared| shared.gate.bundles().get(None).map(|(_, bundle)| bundle.digest());
    let internal = |error: portcullis_session::bundle_dir::BundleError| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    };
    let before = digest(&shared).map_err(internal)?;
    // What others named for their runs is theirs to mend: it does not decide what becomes of the operator's request.
    let (own, others): (Vec<_>, Vec<_>) =
        shared.gate.reload(false).await.into_iter().partition(|failed| failed.of_default);
    let told = |NotReloaded { run, error, .. }: NotReloaded| {
        format!("run {run} could not switch to the new bundle: {error}")
    };
    if let Some(message) = own.into_iter().next().map(told) {
        return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "not_durable", message));
    }
    if let Some(refusal) = shared.gate.bundles().refusal() {
        return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, api::code::BUNDLE_INVALID, refusal));
    }
    let after = digest(&shared).map_err(internal)?;
    let refusals = shared.gate.bundles().refusals_of_others();
    let others = refusals.into_iter().chain(others.into_iter().map(told)).take(api::OTHERS_MAX).collect();
    Ok(Json(api::Reloaded { bundle: after, changed: before != after, others }))
}
