//! What answering a hook asks of the daemon: over its socket, or from inside it.

use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;

use super::HookOptions;
use crate::api::{
    ObservationAnswer, OpenRun, ProposeAction, ReportEvidence, ReportInput, ReportOutcome, ReportOutput,
    TextAnswer,
};
use crate::client::{Client, ClientError, Proposed, StartOptions, ensure_daemon};

/// The requests of one event, each as in `/v1`.
pub(crate) trait Requests {
    /// Opens, joins or continues the run of a session.
    async fn open_run(&self, open: &OpenRun) -> Result<RunId, ClientError>;
    /// Proposes an action.
    async fn propose(&self, run: RunId, action: &ProposeAction) -> Result<Proposed, ClientError>;
    /// Reports what became of an action.
    async fn outcome(&self, run: RunId, outcome: &ReportOutcome) -> Result<ObservationAnswer, ClientError>;
    /// Reports what was said to the agent.
    async fn input(&self, run: RunId, input: &ReportInput) -> Result<TextAnswer, ClientError>;
    /// Reports the agent's reply.
    async fn output(&self, run: RunId, output: &ReportOutput) -> Result<(), ClientError>;
    /// Reports something that bears on the run.
    async fn evidence(&self, run: RunId, evidence: &ReportEvidence) -> Result<(), ClientError>;
    /// Closes the run.
    async fn close(&self, run: RunId) -> Result<(), ClientError>;
    /// Starts the daemon, after an error that calls for it.
    async fn start_daemon(&self) -> Result<(), ClientError>;
}

/// Over the socket of a state folder, as the agent.
pub(super) struct OverSocket<'o> {
    client: Client,
    options: &'o HookOptions,
}

impl<'o> OverSocket<'o> {
    pub(super) fn new(options: &'o HookOptions) -> Self {
        Self { client: Client::new(options.home.clone(), CredentialKind::Agent), options }
    }
}

impl Requests for OverSocket<'_> {
    async fn open_run(&self, open: &OpenRun) -> Result<RunId, ClientError> {
        self.client.open_run(open).await.map(|opened| opened.run)
    }

    async fn propose(&self, run: RunId, action: &ProposeAction) -> Result<Proposed, ClientError> {
        self.client.propose(run, action).await
    }

    async fn outcome(&self, run: RunId, outcome: &ReportOutcome) -> Result<ObservationAnswer, ClientError> {
        self.client.outcome(run, outcome).await
    }

    async fn input(&self, run: RunId, input: &ReportInput) -> Result<TextAnswer, ClientError> {
        self.client.input(run, input).await
    }

    async fn output(&self, run: RunId, output: &ReportOutput) -> Result<(), ClientError> {
        self.client.output(run, output).await.map(drop)
    }

    async fn evidence(&self, run: RunId, evidence: &ReportEvidence) -> Result<(), ClientError> {
        self.client.evidence(run, evidence).await.map(drop)
    }

    async fn close(&self, run: RunId) -> Result<(), ClientError> {
        self.client.close(run).await
    }

    async fn start_daemon(&self) -> Result<(), ClientError> {
        let start = StartOptions { program: self.options.program.clone(), ..StartOptions::default() };
        ensure_daemon(&self.options.home, &start).await.map(drop)
    }
}
