//! Where a hook finds its run: over the daemon's socket, or inside the daemon.

use portcullis_core::principal::CredentialKind;
use portcullis_session::surface::Surface;

use super::HookOptions;
use crate::api::OpenRun;
use crate::client::{Client, ClientError, ClientRun, StartOptions, ensure_daemon};

/// Opens the runs of one caller.
pub(crate) trait Door {
    /// An opened run.
    type Run: Surface<Error = Self::Error>;
    /// Why a request failed.
    type Error: Failed;

    /// Opens, joins or continues the run of a session.
    async fn open(&self, request: OpenRun) -> Result<Self::Run, Self::Error>;

    /// Starts the daemon, after an error that calls for it.
    async fn start_daemon(&self) -> Result<(), Self::Error>;
}

/// What a hook does about a failure.
pub(crate) trait Failed: std::error::Error {
    /// Whether the run has to be opened again.
    fn calls_for_resuming(&self) -> bool;

    /// Whether starting the daemon may help.
    fn calls_for_starting(&self) -> bool;

    /// The daemon has no such route: it is older than this program.
    fn is_unknown_route(&self) -> bool {
        false
    }

    /// An outcome was told of an action that is not executing.
    fn is_not_executing(&self) -> bool;
}

impl Failed for ClientError {
    fn calls_for_resuming(&self) -> bool {
        self.calls_for_resuming()
    }

    fn calls_for_starting(&self) -> bool {
        self.calls_for_starting()
    }

    fn is_not_executing(&self) -> bool {
        self.code() == Some(crate::api::code::NOT_EXECUTING)
    }

    fn is_unknown_route(&self) -> bool {
        self.is_unknown_route()
    }
}

/// Over the socket of a state folder, as the agent.
pub(super) struct OverSocket<'o> {
    options: &'o HookOptions,
}

impl<'o> OverSocket<'o> {
    pub(super) fn new(options: &'o HookOptions) -> Self {
        Self { options }
    }
}

impl Door for OverSocket<'_> {
    type Run = ClientRun;
    type Error = ClientError;

    async fn open(&self, request: OpenRun) -> Result<ClientRun, ClientError> {
        let client = Client::new(self.options.home.clone(), CredentialKind::Agent);
        let opened = client.open_run(&request).await?;
        Ok(ClientRun::new(client, opened.run))
    }

    async fn start_daemon(&self) -> Result<(), ClientError> {
        let start = StartOptions { program: self.options.program.clone(), ..StartOptions::default() };
        ensure_daemon(&self.options.home, &start).await.map(drop)
    }
}
