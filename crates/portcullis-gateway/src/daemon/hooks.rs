//! `POST /v1/hook`: one event of a coding agent's session, answered in one request.
//!
//! Opening the run, judging the event and forming the answer are [`hook`](crate::hook)'s and the routes' own: this is
//! the route that calls the others for a client that would otherwise need two requests.

use axum::Json;
use axum::extract::{Path, State};
use portcullis_core::event::Place;
use portcullis_core::id::RunId;
use portcullis_hook::event::{Answered, ReportHookEvent};
use portcullis_session::credentials::Identity;
use portcullis_session::error::SessionError;
use portcullis_wire::hook::{self as wire, HookError, HookInput};

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::routes::{self, JsonBody, READ_ASIDE_BYTES};
use crate::api;
use crate::client::{ClientError, Proposed};
use crate::hook::{self, Requests, Rules};

pub(super) async fn answer(
    State(shared): State<Shared>,
    Caller(identity): Caller,
    JsonBody(event): JsonBody<ReportHookEvent<'static>>,
) -> Result<Json<Answered>, Failure> {
    let (input, parsed) = parse(event.input.into_owned()).await?;
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return Ok(Json(Answered::blocked(error))),
    };
    let rules = Rules {
        bundle: event.bundle,
        policy: event.policy,
        ask: event.ask,
        defer: event.defer,
        place: Place { workspace: event.workspace, home: event.home, gate: None },
    };
    let inside = || Inside { shared: shared.clone(), identity: identity.clone() };
    Ok(Json(hook::answer_here(input.as_bytes(), &parsed, &rules, inside).await))
}

/// Reads an event; a long one off the async threads, where it holds up no other run.
async fn parse(input: String) -> Result<(String, Result<HookInput, HookError>), Failure> {
    let parse = |input: String| {
        let parsed = wire::parse(input.as_bytes());
        (input, parsed)
    };
    if input.len() < READ_ASIDE_BYTES {
        return Ok(parse(input));
    }
    Ok(tokio::task::spawn_blocking(move || parse(input)).await.map_err(|_| SessionError::CutShort)?)
}

/// The requests of one caller, made where they are answered.
struct Inside {
    shared: Shared,
    identity: Identity,
}

impl Inside {
    fn caller(&self) -> Caller {
        Caller(self.identity.clone())
    }

    fn shared(&self) -> State<Shared> {
        State(self.shared.clone())
    }
}

impl Requests for Inside {
    async fn open_run(&self, open: &api::OpenRun) -> Result<RunId, ClientError> {
        let opened = routes::open(self.shared(), self.caller(), JsonBody(open.clone())).await;
        opened.map(|Json(opened)| opened.run).map_err(Failure::into_refusal)
    }

    async fn propose(&self, run: RunId, action: &api::ProposeAction) -> Result<Proposed, ClientError> {
        let run = Path(run.to_string());
        let answer = routes::propose(self.shared(), self.caller(), run, JsonBody(action.clone())).await;
        let Json(answer) = answer.map_err(Failure::into_refusal)?;
        Proposed::of(answer)
            .map_err(|why| ClientError::Answer { request: "propose".to_owned(), why: why.to_owned() })
    }

    async fn outcome(
        &self,
        run: RunId,
        outcome: &api::ReportOutcome,
    ) -> Result<api::ObservationAnswer, ClientError> {
        let run = Path(run.to_string());
        let answer = routes::outcome(self.shared(), self.caller(), run, JsonBody(outcome.clone())).await;
        answer.map(|Json(answer)| answer).map_err(Failure::into_refusal)
    }

    async fn input(&self, run: RunId, input: &api::ReportInput) -> Result<api::TextAnswer, ClientError> {
        let run = Path(run.to_string());
        let answer = routes::input(self.shared(), self.caller(), run, JsonBody(input.clone())).await;
        answer.map(|Json(answer)| answer).map_err(Failure::into_refusal)
    }

    async fn output(&self, run: RunId, output: &api::ReportOutput) -> Result<(), ClientError> {
        let run = Path(run.to_string());
        let answer = routes::output(self.shared(), self.caller(), run, JsonBody(output.clone())).await;
        answer.map(drop).map_err(Failure::into_refusal)
    }

    async fn evidence(&self, run: RunId, evidence: &api::ReportEvidence) -> Result<(), ClientError> {
        let run = Path(run.to_string());
        let answer = routes::evidence(self.shared(), self.caller(), run, JsonBody(evidence.clone())).await;
        answer.map(drop).map_err(Failure::into_refusal)
    }

    async fn close(&self, run: RunId) -> Result<(), ClientError> {
        let answer = routes::close(self.shared(), self.caller(), Path(run.to_string())).await;
        answer.map(drop).map_err(Failure::into_refusal)
    }

    /// It runs.
    async fn start_daemon(&self) -> Result<(), ClientError> {
        Ok(())
    }
}
