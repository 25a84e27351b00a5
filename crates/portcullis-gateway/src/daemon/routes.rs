//! The routes of `/v1` that change something. Those that only look are in `queries`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::body::Frame;
use portcullis_contracts::verify::documents_given;
use portcullis_core::event::{Enforced, Place};
use portcullis_core::finding::SpanEdit;
use portcullis_core::label::Label;
use portcullis_core::pipeline::Decision;
use portcullis_core::principal::CredentialKind;
use portcullis_core::verdict::Verdict;
use portcullis_proof::export::PAYLOAD_BYTES_MAX;
use portcullis_session::engine::{Judgement, Proposal, TextJudgement};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{Attachment, NotReloaded, OpenRun as GateOpenRun};
use portcullis_session::permit::Permit;
use portcullis_session::run::Run;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::approvals;
use super::auth::{Approver, Caller};
use super::connections;
use super::contracts;
use super::error::Failure;
use super::governance;
use super::hooks;
use super::log;
use super::queries;
use super::tools;
use crate::api;

/// How much of a call's id an error message repeats, in characters.
const CALL_SHOWN_CHARS: usize = 80;

/// JSON bodies whose mistakes are answered like every other failure.
pub(super) struct JsonBody<T>(pub(super) T);

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
async fn room_for(headers: &HeaderMap, shared: &Shared) -> Result<Option<OwnedSemaphorePermit>, Failure> {
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

/// Refuses a text that could not be recorded, before it is judged.
fn check_text(text: &str) -> Result<(), Failure> {
    if text.len() <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the text has {} bytes; the limit is {PAYLOAD_BYTES_MAX}", text.len());
    Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_long", message))
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
    Router::new()
        .route("/v1/health", get(queries::health))
        .route("/v1/runs", get(queries::runs).post(open))
        .route("/v1/runs/{run}", get(queries::run))
        .route("/v1/runs/{run}/attach", get(attach))
        .route("/v1/runs/{run}/actions", post(propose))
        .route("/v1/runs/{run}/outcomes", post(outcome))
        .route("/v1/runs/{run}/told", post(told))
        .route("/v1/runs/{run}/tools", post(tools::listed))
        .route("/v1/tools/changed", get(tools::changed))
        .route("/v1/tools/accept", post(tools::accept))
        .route("/v1/tools/accept-all", post(tools::accept_all))
        .route("/v1/runs/{run}/inputs", post(input))
        .route("/v1/runs/{run}/outputs", post(output))
        .route("/v1/runs/{run}/evidence", post(evidence))
        .route("/v1/runs/{run}/close", post(close))
        .route("/v1/runs/{run}/control", post(control))
        .route("/v1/runs/{run}/events", get(queries::events))
        .route("/v1/runs/{run}/export", get(queries::export))
        .route("/v1/runs/{run}/governance", get(governance::archive))
        .route("/v1/runs/{run}/governance/{file}", get(governance::file))
        .route("/v1/hook", post(hooks::answer))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{approval}", get(approvals::show))
        .route("/v1/approvals/{approval}/grant", post(approvals::grant))
        .route("/v1/approvals/{approval}/refuse", post(approvals::refuse))
        .route("/v1/contracts/check", post(contracts::check))
        .route("/v1/contracts/repair", post(contracts::repair))
        .route("/v1/bundles/reload", post(reload))
        .route("/log/checkpoint", get(log::checkpoint))
        .route("/log/tile/{*path}", get(log::tile))
        .fallback(|| async {
            Failure::not_found("there is no such path; the API is described in docs/http-api.md")
        })
        .layer(DefaultBodyLimit::max(api::REQUEST_BYTES_MAX))
        .with_state(shared)
}

/// The live run of that id, if the caller may use it.
pub(super) async fn live_run(shared: &Shared, caller: &Caller, id: &str) -> Result<Arc<Run>, Failure> {
    let id = match id.parse() {
        Ok(id) => id,
        Err(_) => queries::find_run(shared, caller, id).await?,
    };
    let run = shared.gate.run(id)?;
    if caller.0.kind == CredentialKind::Agent && run.principal().id != caller.0.principal.id {
        // As if there were none: that another principal has such a run is not this caller's to know.
        return Err(SessionError::UnknownRun(id.to_string()).into());
    }
    Ok(run)
}

pub(super) async fn open(
    State(shared): State<Shared>,
    Caller(identity): Caller,
    JsonBody(request): JsonBody<api::OpenRun>,
) -> Result<Json<api::OpenedRun>, Failure> {
    let ships = |name: &str| shared.gate.bundles().ships(name);
    if let Some(folder) =
        request.bundle.as_deref().filter(|folder| !folder.starts_with('/') && !ships(folder))
    {
        let message =
            format!("the bundle's folder `{folder}` must be an absolute path, or name a shipped bundle");
        return Err(Failure::bad_request(message));
    }
    let place = request.place.as_ref();
    for folder in [place.and_then(|p| p.workspace.as_deref()), place.and_then(|p| p.home.as_deref())] {
        check_folder("place", folder)?;
    }
    // Where the gate's own state lies is its own word, never a client's.
    let gate = Some(shared.home.path().display().to_string());
    let server = request.server;
    let request = GateOpenRun {
        identity,
        surface: request.surface,
        session: request.session,
        policy: request.policy,
        bundle: request.bundle.map(Into::into),
        resume: request.resume,
        rejoin: request.rejoin,
        place: Some(Place { gate, ..request.place.unwrap_or_default() }),
    };
    let gate = Arc::clone(&shared.gate);
    let opened =
        tokio::spawn(async move { gate.open(request).await }).await.map_err(|_| SessionError::CutShort)??;
    if let Some(server) = server {
        tools::known_changes(&shared, &opened.run, server).await?;
    }
    let disabled = opened.bundle.registry.iter().filter(|tool| !tool.enabled);
    Ok(Json(api::OpenedRun {
        run: opened.run.id(),
        segment: opened.run.segment(),
        policy: opened.policy,
        bundle: opened.bundle.digest(),
        mode: opened.bundle.mode,
        shared: opened.shared,
        disabled_tools: disabled.flat_map(|tool| [tool.name.clone(), tool.id.clone()]).collect(),
    }))
}

/// Folders stay in the record forever, and relative ones mean nothing there.
fn check_folder(field: &str, folder: Option<&str>) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    if !folder.starts_with('/') || folder.len() > api::FOLDER_BYTES_MAX {
        let limit = api::FOLDER_BYTES_MAX;
        let message = format!("a folder of `{field}` must be an absolute path of at most {limit} bytes");
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// A body that never ends by itself: a newline now and then, and the attachment inside. When the client goes
/// away the body is dropped, and the attachment with it.
struct Heartbeat {
    interval: tokio::time::Interval,
    _attachment: Attachment,
}

impl hyper::body::Body for Heartbeat {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.interval.poll_tick(context).map(|_| Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
    }
}

async fn attach(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Response, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let attachment = shared.gate.attach(run.id())?;
    let interval = tokio::time::interval(Duration::from_secs(api::HEARTBEAT_S));
    Ok(Response::new(Body::new(Heartbeat { interval, _attachment: attachment })))
}

pub(super) async fn propose(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ProposeAction>,
) -> Result<Json<api::ActionAnswer>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    if !request.arguments.is_object() && !request.arguments.is_null() {
        return Err(Failure::bad_request("`arguments` must be an object"));
    }
    check_folder("directory", request.directory.as_deref())?;
    if request.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        return Err(Failure::bad_request("`confidence` must be a number from 0 to 1"));
    }
    let default_wait = run.with_state(|_, bundle| bundle.approvals.wait_s.saturating_mul(1_000)).await;
    let wait = request.wait_ms.unwrap_or(default_wait).min(api::WAIT_MS_MAX);
    let arguments = if request.arguments.is_null() {
        serde_json::Value::Object(serde_json::Map::new())
    } else {
        request.arguments
    };
    let proposal = Proposal {
        tool: request.tool,
        server: request.server,
        arguments,
        planned: request.planned,
        continuation: request.continuation,
        call: request.call,
        directory: request.directory,
        ask: request.ask,
        confidence: request.confidence,
    };
    let (judgement, permit) =
        shared.gate.propose(&run, proposal, Duration::from_millis(u64::from(wait))).await?;
    Ok(Json(answer_of(judgement, permit)))
}

/// The answer to a proposal. Takes the permit by value: this is where it leaves the process, and the caller
/// executes the action on the strength of this answer.
fn answer_of(judgement: Judgement, permit: Option<Permit>) -> api::ActionAnswer {
    let arguments =
        permit.as_ref().filter(|permit| permit.is_edited()).map(|permit| permit.arguments().clone());
    api::ActionAnswer {
        action: judgement.action.id,
        step: judgement.step,
        verdict: judgement.decision.verdict,
        enforced: judgement.enforced,
        permit: permit.is_some(),
        arguments,
        denial: judgement.denial,
        approval: judgement.approval.or(judgement.grant),
        seen: judgement.seen,
        findings: judgement.decision.findings,
        seq: judgement.seq,
    }
}

/// Runs work to its end even if the client goes away half-way.
pub(super) async fn settle<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::spawn(work).await.map_err(|_| SessionError::CutShort)??)
}

pub(super) async fn outcome(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportOutcome>,
) -> Result<Json<api::ObservationAnswer>, Failure> {
    check_text(request.content.as_deref().unwrap_or_default())?;
    let run = live_run(&shared, &caller, &run).await?;
    let action = match (request.action, &request.call) {
        (Some(action), None) => action,
        (None, Some(call)) => {
            let action = run.awaits_outcome_of_call(call).await;
            action.ok_or_else(|| SessionError::NoSuchCall(call.chars().take(CALL_SHOWN_CHARS).collect()))?
        }
        _ => return Err(Failure::bad_request("name the action with `action` or `call`")),
    };
    let (seq, judged) =
        settle(async move { run.outcome(action, request.status, request.content, request.reach).await })
            .await?;
    Ok(Json(match judged {
        Some(judged) => observation_answer(judged, seq),
        None => api::ObservationAnswer {
            verdict: Verdict::Allow,
            enforced: Enforced::Executed,
            denial: None,
            shown: None,
            edits: Vec::new(),
            seq,
        },
    }))
}

async fn told(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportTold>,
) -> Result<Json<api::ObservationAnswer>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    let (seq, judged) =
        settle(async move { run.told(&request.server, request.content, request.reach).await }).await?;
    Ok(Json(observation_answer(judged, seq)))
}

fn observation_answer(judged: TextJudgement, seq: u64) -> api::ObservationAnswer {
    api::ObservationAnswer {
        verdict: judged.decision.verdict,
        enforced: judged.enforced,
        denial: judged.denial,
        edits: if judged.shown.is_some() { edits_of(&judged.decision) } else { Vec::new() },
        shown: judged.shown,
        seq,
    }
}

fn text_answer(judged: TextJudgement) -> api::TextAnswer {
    let TextJudgement { decision, enforced, denial, verification, seq, .. } = judged;
    api::TextAnswer { seq, verdict: decision.verdict, enforced, denial, verification }
}

/// The edits of a text, in its order and each once.
fn edits_of(decision: &Decision) -> Vec<api::TextEdit> {
    let edits = decision.findings.iter().filter(|finding| finding.verdict == Verdict::Modify);
    let mut edits: Vec<&SpanEdit> = edits.flat_map(|finding| &finding.edits).collect();
    edits.sort();
    edits.dedup();
    edits
        .into_iter()
        .map(|edit| api::TextEdit {
            start: edit.span.start,
            end: edit.span.end,
            replacement: edit.replacement.clone(),
        })
        .collect()
}

pub(super) async fn input(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportInput>,
) -> Result<Json<api::TextAnswer>, Failure> {
    if request.role == api::Role::Operator && caller.0.kind == CredentialKind::Agent {
        let message = "an agent's credential cannot act for the operator";
        return Err(Failure::new(StatusCode::FORBIDDEN, api::code::FORBIDDEN, message));
    }
    check_text(&request.text)?;
    let run = live_run(&shared, &caller, &run).await?;
    let label = match request.role {
        api::Role::User => Label::User,
        api::Role::Operator => Label::Operator,
    };
    let judged = settle(async move { run.input(request.text, label, request.reach).await }).await?;
    Ok(Json(text_answer(judged)))
}

pub(super) async fn output(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportOutput>,
) -> Result<Json<api::TextAnswer>, Failure> {
    check_text(&request.text)?;
    let given = request.documents.as_ref().map(documents_given).transpose();
    let given = given.map_err(|error| Failure::bad_request(error.to_string()))?;
    let run = live_run(&shared, &caller, &run).await?;
    let judged =
        settle(async move { run.output(request.text, given.as_deref(), request.reach).await }).await?;
    Ok(Json(text_answer(judged)))
}

pub(super) async fn evidence(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ReportEvidence>,
) -> Result<Json<api::TextAnswer>, Failure> {
    let limit = api::EVIDENCE_NAME_BYTES_MAX;
    if request.name.is_empty() || request.name.len() > limit {
        return Err(Failure::bad_request(format!("`name` must have 1 to {limit} bytes")));
    }
    let run = live_run(&shared, &caller, &run).await?;
    let seq = settle(async move { run.evidence(request.name, request.digest).await }).await?;
    Ok(Json(api::TextAnswer {
        seq,
        verdict: Verdict::Allow,
        enforced: Enforced::Executed,
        denial: None,
        verification: None,
    }))
}

pub(super) async fn close(
    State(shared): State<Shared>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<api::Empty>, Failure> {
    let run = live_run(&shared, &caller, &run).await?;
    shared.gate.leave(run.id()).await?;
    Ok(Json(api::Empty {}))
}

async fn control(
    State(shared): State<Shared>,
    Approver(identity): Approver,
    Path(run): Path<String>,
    JsonBody(request): JsonBody<api::ControlRun>,
) -> Result<Json<api::Empty>, Failure> {
    let approver = identity.principal.id.clone();
    let run = live_run(&shared, &Caller(identity), &run).await?;
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
