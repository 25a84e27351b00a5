//! A run over the socket, for single requests: nothing is held open, and nothing is tried again.

use portcullis_core::id::RunId;
use portcullis_session::surface::Surface;

use super::{Client, ClientError, Proposed};
use crate::api::{
    ObservationAnswer, ProposeAction, ProposeTurn, ReportConfirmation, ReportEvidence, ReportInput,
    ReportObserved, ReportOutcome, ReportOutput, ReportTold, ReportTools, StopAnswer, TextAnswer,
    ToolsAnswer,
};

/// See the [module documentation](self).
#[derive(Debug)]
pub struct ClientRun {
    client: Client,
    run: RunId,
}

impl ClientRun {
    /// A run that this client has opened.
    #[must_use]
    pub fn new(client: Client, run: RunId) -> Self {
        Self { client, run }
    }
}

impl Surface for ClientRun {
    type Error = ClientError;

    fn id(&self) -> RunId {
        self.run
    }

    async fn propose(&self, action: ProposeAction) -> Result<Proposed, ClientError> {
        self.client.propose(self.run, &action).await
    }

    async fn propose_turn(&self, turn: ProposeTurn) -> Result<Vec<Proposed>, ClientError> {
        self.client.propose_turn(self.run, &turn).await
    }

    async fn outcome(&self, outcome: ReportOutcome) -> Result<ObservationAnswer, ClientError> {
        self.client.outcome(self.run, &outcome).await
    }

    async fn told(&self, told: ReportTold) -> Result<ObservationAnswer, ClientError> {
        self.client.told(self.run, &told).await
    }

    async fn input(&self, input: ReportInput) -> Result<TextAnswer, ClientError> {
        self.client.input(self.run, &input).await
    }

    async fn confirm(&self, confirmation: ReportConfirmation) -> Result<TextAnswer, ClientError> {
        self.client.confirm(self.run, &confirmation).await
    }

    async fn output(&self, output: ReportOutput) -> Result<TextAnswer, ClientError> {
        self.client.output(self.run, &output).await
    }

    async fn evidence(&self, evidence: ReportEvidence) -> Result<TextAnswer, ClientError> {
        self.client.evidence(self.run, &evidence).await
    }

    async fn stopping(&self) -> Result<StopAnswer, ClientError> {
        self.client.stopping(self.run).await
    }

    async fn observed(&self, observed: ReportObserved) -> Result<ObservationAnswer, ClientError> {
        self.client.observed(self.run, &observed).await
    }

    async fn tools(&self, tools: ReportTools) -> Result<ToolsAnswer, ClientError> {
        self.client.tools(self.run, &tools).await
    }

    async fn close(&self) -> Result<(), ClientError> {
        self.client.close(self.run).await
    }
}
