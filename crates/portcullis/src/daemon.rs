//! Talks to the daemon of the state folder, which is started where it does not run.

use std::future::Future;

use portcullis_core::principal::CredentialKind;
use portcullis_gateway::client::{Client, ClientError, StartOptions, ensure_daemon};
use portcullis_session::credentials::read_token;
use tokio::runtime::Runtime;

use crate::cli::Global;
use crate::failure::Failure;

/// A client with the approver's credential, and what runs its requests.
#[derive(Debug)]
pub(crate) struct Daemon {
    runtime: Runtime,
    client: Client,
}

impl Daemon {
    /// Connects as a person who decides.
    pub(crate) fn as_approver(global: &Global) -> Result<Self, Failure> {
        Self::with(global, CredentialKind::Approver)
    }

    /// Connects as a person who decides or, where this user may not read the approver's token, as the agent, who sees
    /// the runs of its own principal.
    pub(crate) fn as_reader(global: &Global) -> Result<Self, Failure> {
        let home = global.home()?;
        let readable = |kind| read_token(&home.token(kind)).is_ok();
        let as_agent = !readable(CredentialKind::Approver) && readable(CredentialKind::Agent);
        Self::with(global, if as_agent { CredentialKind::Agent } else { CredentialKind::Approver })
    }

    fn with(global: &Global, credential: CredentialKind) -> Result<Self, Failure> {
        let home = global.home()?;
        let runtime = runtime()?;
        let start = StartOptions { credential, ..StartOptions::default() };
        let client = runtime.block_on(ensure_daemon(&home, &start)).map_err(|error| told(&error))?;
        Ok(Self { runtime, client })
    }

    /// One request.
    pub(crate) fn ask<'a, T, F>(&'a self, request: impl FnOnce(&'a Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        self.try_ask(request).map_err(|error| told(&error))
    }

    /// One request, for whoever tells failures apart.
    pub(crate) fn try_ask<'a, T, F>(&'a self, request: impl FnOnce(&'a Client) -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        self.runtime.block_on(request(&self.client))
    }
}

/// A runtime for a command that talks to others.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unreadable(format!("cannot start: {error}")))
}

/// What the daemon refused is a no; what did not reach it could not be read.
pub(crate) fn told(error: &ClientError) -> Failure {
    match error {
        ClientError::Refused { status: 400..500, .. } => Failure::no(error),
        ClientError::Id(_) => Failure::usage(error),
        _ => Failure::unreadable(error),
    }
}
