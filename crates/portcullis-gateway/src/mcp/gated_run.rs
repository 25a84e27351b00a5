//! The run that a gate in front of an MCP server judges calls in: over the daemon's socket, or inside the daemon.

use portcullis_core::id::RunId;
use portcullis_session::error::SessionError;
use portcullis_session::gate::Attachment;
use portcullis_session::surface::{LocalRun, Surface, SurfaceError};

use crate::api::{
    ObservationAnswer, ProposeAction, ReportConfirmation, ReportInput, ReportObserved, ReportOutcome,
    ReportTold, ReportTools, TextAnswer, ToolsAnswer, code,
};
use crate::client::{ClientError, Proposed, Run};

/// A run.
#[derive(Debug)]
pub(crate) enum GatedRun {
    /// Over the daemon's socket.
    Socket(Run),
    /// Inside the daemon.
    Inside(InsideRun),
}

/// A run inside the daemon.
#[derive(Debug)]
pub(crate) struct InsideRun {
    pub(crate) run: LocalRun,
    /// Its share in the run: what it belongs to may have more shares.
    pub(crate) _attachment: Attachment,
    /// Tools that the bundle disables.
    pub(crate) disabled_tools: Vec<String>,
}

/// Why a request failed. Nothing may go ahead then.
#[derive(Debug, thiserror::Error)]
pub enum GatedRunError {
    /// Over the socket.
    #[error(transparent)]
    Socket(#[from] ClientError),
    /// Inside the daemon.
    #[error(transparent)]
    Inside(#[from] SurfaceError),
}

impl GatedRunError {
    /// The run no longer waits for the user's answer.
    pub(super) fn is_not_asked(&self) -> bool {
        match self {
            Self::Socket(error) => error.code() == Some(code::NOT_ASKED),
            Self::Inside(error) => matches!(error, SurfaceError::Session(SessionError::NotAsked(_))),
        }
    }
}

type Answer<A> = Result<A, GatedRunError>;

/// The same request to either.
macro_rules! either {
    ($run:expr, $request:ident($($argument:expr)?)) => {
        match $run {
            GatedRun::Socket(run) => Ok(run.$request($($argument)?).await?),
            GatedRun::Inside(inside) => Ok(inside.run.$request($($argument)?).await?),
        }
    };
}

impl GatedRun {
    pub(super) fn id(&self) -> RunId {
        match self {
            Self::Socket(run) => run.id(),
            Self::Inside(inside) => inside.run.id(),
        }
    }

    /// Tools that the bundle disables.
    pub(super) fn disabled_tools(&self) -> Vec<String> {
        match self {
            Self::Socket(run) => run.opened().disabled_tools,
            Self::Inside(inside) => inside.disabled_tools.clone(),
        }
    }

    pub(super) async fn propose(&self, action: ProposeAction) -> Answer<Proposed> {
        either!(self, propose(action))
    }

    pub(super) async fn outcome(&self, outcome: ReportOutcome) -> Answer<ObservationAnswer> {
        either!(self, outcome(outcome))
    }

    pub(super) async fn told(&self, told: ReportTold) -> Answer<ObservationAnswer> {
        either!(self, told(told))
    }

    pub(super) async fn tools(&self, tools: ReportTools) -> Answer<ToolsAnswer> {
        either!(self, tools(tools))
    }

    pub(super) async fn input(&self, input: ReportInput) -> Answer<TextAnswer> {
        either!(self, input(input))
    }

    pub(super) async fn confirm(&self, confirmation: ReportConfirmation) -> Answer<TextAnswer> {
        either!(self, confirm(confirmation))
    }

    pub(super) async fn observed(&self, observed: ReportObserved) -> Answer<ObservationAnswer> {
        either!(self, observed(observed))
    }

    /// Leaves the run in good order.
    pub(super) async fn close(&self) -> Answer<()> {
        either!(self, close())
    }
}
