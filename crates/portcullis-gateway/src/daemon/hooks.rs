//! `POST /v1/hook`: one event of a coding agent's session, answered in one request.
//!
//! Opening the run, judging the event and forming the answer are [`hook`](crate::hook)'s and the routes' own: this is
//! the route that calls the others for a client that would otherwise need two requests.

use axum::Json;
use axum::extract::State;
use portcullis_core::event::Place;
use portcullis_hook::event::{Answered, ReportHookEvent};
use portcullis_session::credentials::Identity;
use portcullis_session::error::SessionError;
use portcullis_session::surface::{Local, LocalRun, SurfaceError};
use portcullis_wire::hook::{Agent, HookError, HookInput};

use super::Shared;
use super::auth::Caller;
use super::error::Failure;
use super::routes::{JsonBody, READ_ASIDE_BYTES};
use crate::api::OpenRun;
use crate::contained::Runner;
use crate::hook::{self, Door, Failed, Rules};

pub(super) async fn answer(
    State(shared): State<Shared>,
    Caller(identity): Caller,
    JsonBody(event): JsonBody<ReportHookEvent<'static>>,
) -> Result<Json<Answered>, Failure> {
    let agent = match event.agent.as_deref().map(Agent::named) {
        None => Agent::ClaudeCode,
        Some(Some(agent)) => agent,
        Some(None) => return Ok(Json(Answered::blocked("the daemon does not know this agent"))),
    };
    let (input, parsed) = parse(agent, event.input.into_owned()).await?;
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
        runner: Runner::new(None, shared.home.path()).filter(|_| !event.uncontained),
    };
    let inside = || Inside { local: shared.local.clone(), identity: identity.clone() };
    Ok(Json(hook::answer_here(input.as_bytes(), &parsed, &rules, inside).await))
}

/// Reads an event; a long one off the async threads, where it holds up no other run.
async fn parse(agent: Agent, input: String) -> Result<(String, Result<HookInput, HookError>), Failure> {
    let parse = move |input: String| {
        let parsed = agent.parse(input.as_bytes());
        (input, parsed)
    };
    if input.len() < READ_ASIDE_BYTES {
        return Ok(parse(input));
    }
    Ok(tokio::task::spawn_blocking(move || parse(input)).await.map_err(|_| SessionError::CutShort)?)
}

/// The runs of one caller, in the process of the gate.
struct Inside {
    local: Local,
    identity: Identity,
}

impl Door for Inside {
    type Run = LocalRun;
    type Error = SurfaceError;

    async fn open(&self, request: OpenRun) -> Result<LocalRun, SurfaceError> {
        let opened = self.local.open(self.identity.clone(), request).await?;
        Ok(self.local.run(&self.identity, opened.run)?)
    }

    /// It runs.
    async fn start_daemon(&self) -> Result<(), SurfaceError> {
        Ok(())
    }
}

impl Failed for SurfaceError {
    fn calls_for_resuming(&self) -> bool {
        matches!(self, Self::Session(SessionError::Closed(_) | SessionError::UnknownRun(_)))
    }

    fn calls_for_starting(&self) -> bool {
        false
    }

    fn is_not_executing(&self) -> bool {
        matches!(self, Self::Session(SessionError::NotExecuting(_) | SessionError::NoSuchCall(_)))
    }
}
