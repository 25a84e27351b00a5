//! The demo: scripted agents behind the real gate, in a folder of its own, without a network.
//!
//! Everything between the script and the tools is the product: a daemon on a Unix socket, one `portcullis mcp`
//! process a run, an MCP session of the SDK's client through it, the demo server behind it, and the ledger.
//! Only the agents are scripts: they follow the plans of the shipped bundle. At the end the runs are exported
//! and verified, a copy is tampered with, and the verifier names the place.

mod acts;
mod evidence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_core::denial::Denial;
use portcullis_core::id::{ApprovalId, RunId};
use portcullis_proof::Report;
use tokio::time::timeout;

use crate::client::ClientError;
use crate::daemon::{self, DaemonError, DaemonOptions};
use crate::home::{Home, HomeError};
use crate::signals::{StopSignal, StopSignals};

pub use acts::ACTS;

/// How long the daemon may take to end after a signal.
const DAEMON_ENDS_MAX: Duration = Duration::from_secs(5);

/// A failure may come before the signal that caused it, at most this long.
const SIGNAL_LATE_MAX: Duration = Duration::from_millis(500);

/// What to show and where.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// Working folder: store, tools and bundle. Its path must be short enough for a socket.
    pub folder: PathBuf,
    /// Where exports and the trust file go.
    pub exports: PathBuf,
    /// The `portcullis` program.
    pub program: PathBuf,
}

/// Something to tell, as it happens.
#[derive(Debug)]
pub enum Scene<'a> {
    /// A scripted agent starts on a task.
    Act {
        /// Number, from 1.
        number: usize,
        /// The runtime policy.
        policy: &'a str,
        /// What the user asked for.
        prompt: &'a str,
    },
    /// A decision on a call.
    Decision {
        /// What the agent says it does.
        planned: &'a str,
        /// The tool.
        tool: &'a str,
        /// Why not, when it does not go ahead.
        denial: Option<&'a Denial>,
        /// What the tool answered, when it does.
        result: &'a str,
    },
    /// A call is held, and an approver grants it.
    Granted {
        /// The approval.
        approval: ApprovalId,
        /// The tool.
        tool: &'a str,
    },
    /// A run was exported and verified.
    Verified {
        /// The run.
        run: RunId,
        /// The export.
        file: &'a Path,
        /// What the verifier says.
        report: &'a Report,
    },
    /// A copy was tampered with and verified again.
    Tampered {
        /// What was changed.
        change: &'a str,
        /// The copy.
        file: &'a Path,
        /// What the verifier says.
        report: &'a Report,
    },
}

/// Why the demo stopped. Each is a defect or a machine that cannot run it, never part of the show.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The folder.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The daemon.
    #[error("the demo's daemon: {0}")]
    Daemon(#[from] DaemonError),
    /// Talking to the daemon.
    #[error("the demo's daemon: {0}")]
    Client(Box<ClientError>),
    /// A file.
    #[error("cannot write `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The MCP session.
    #[error("the MCP session of the demo: {why}; its gate's messages are in `{}`", log.display())]
    Session {
        /// What the client saw.
        why: String,
        /// Where the gate's standard error went.
        log: PathBuf,
    },
    /// The store.
    #[error(transparent)]
    Ledger(#[from] portcullis_ledger::LedgerError),
    /// The verifier.
    #[error("the verifier could not read what the demo exported: {0}")]
    Unreadable(String),
    /// A signal ended it.
    #[error("{0}: the demo was stopped; its runs are closed, and its daemon has ended")]
    Stopped(StopSignal),
    /// Signals cannot be received.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The show did not go as it must.
    #[error("the demo did not run as expected: {0}")]
    Astray(String),
}

impl From<ClientError> for DemoError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Runs the demo, telling each scene as it happens. The daemon ends with it.
pub async fn run(options: &DemoOptions, tell: &mut (dyn FnMut(Scene<'_>) + Send)) -> Result<(), DemoError> {
    let mut signals = StopSignals::listen().map_err(DemoError::Signals)?;
    let home = Home::at(&options.folder.join("home"))?;
    let bundle = options.folder.join("bundle");
    acts::write_bundle(&bundle)?;
    let mut daemon = tokio::spawn(daemon::run(DaemonOptions {
        home: home.clone(),
        bundle: Some(bundle.clone()),
        shipped: portcullis_session::shipped::default_bundle(),
        http: None,
        console: None,
        controls: Vec::new(),
        build: None,
    }));
    let ended = tokio::select! {
        biased;
        signal = signals.next() => Err(DemoError::Stopped(signal)),
        shown = show(options, &home, &bundle, tell) => shown,
        ended = &mut daemon => Err(match ended {
            Ok(Err(error)) => error.into(),
            _ => DemoError::Astray("the daemon ended before the demo did".into()),
        }),
    };
    let ended = match ended {
        Err(error) => Err(or_stopped(error, &mut signals).await),
        Ok(()) => Ok(()),
    };
    if !daemon.is_finished() {
        // A signal was sent to the daemon too. Otherwise nothing is left to record: the runs are closed.
        if !matches!(ended, Err(DemoError::Stopped(_))) {
            daemon.abort();
        }
        let _ended = timeout(DAEMON_ENDS_MAX, daemon).await;
    }
    ended
}

/// Ctrl-C reaches the demo's gates too: one that ends before this process hears of the signal looks like a
/// broken session, so a failure waits a moment for a signal that explains it.
async fn or_stopped(error: DemoError, signals: &mut StopSignals) -> DemoError {
    match error {
        DemoError::Stopped(_) => error,
        error => timeout(SIGNAL_LATE_MAX, signals.next()).await.map_or(error, DemoError::Stopped),
    }
}

async fn show(
    options: &DemoOptions,
    home: &Home,
    bundle: &Path,
    tell: &mut (dyn FnMut(Scene<'_>) + Send),
) -> Result<(), DemoError> {
    let runs = acts::perform(options, home, bundle, tell).await?;
    evidence::present(&options.exports, home, &runs, tell)
}
