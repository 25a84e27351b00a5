//! Measurements of the gate itself: `portcullis bench`, figures in `docs/benchmarks.md`.
//!
//! Each measurement keeps the time of every single call in a histogram, because a mean hides the calls that a
//! user waits for. Each states what its own clock costs, or what the disk did in the same minute, so that a
//! figure from one machine can be compared with one from another.
//!
//! * [`decide()`]: the pure decision, without any I/O;
//! * [`step()`]: a whole step of a run in memory, early and late in the run;
//! * [`durable()`]: decisions over the socket of a real daemon, each answered when it is on the disk;
//! * [`hook()`]: a coding agent's hook, process start included;
//! * [`approvals()`]: what people are asked and say over the socket, with few approvals stored and with many;
//! * [`console()`]: pages of the console with a large store, and what browsers cost decisions;
//! * [`facts()`]: session state and facts over the socket, with few facts stored and with many;
//! * [`mcp_http()`]: MCP over HTTP: a call with the gate and without, idle streams, a server that stalls, checking a token;
//! * [`programs()`]: decisions with guard programs, and without;
//! * [`work()`]: items from their making to their verification, with few items stored and with many.

mod approvals;
mod console;
mod daemon;
mod decide;
mod disk;
mod distribution;
mod durable;
mod facts;
mod hook;
mod mcp_http;
mod programs;
mod step;
mod work;

use std::io;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_session::workload;

use crate::client::ClientError;

pub use approvals::{ApprovalTimes, ApprovalsOptions, ApprovalsReport, STORED, STORED_MAX, approvals};
pub use console::{CONSOLE_RUNS, CONSOLE_RUNS_MAX, ConsoleOptions, ConsoleReport, Load, PageTimes, console};
pub use decide::{DecideReport, DecideSize, decide};
pub use distribution::{Bar, Distribution};
pub use durable::{CLIENTS, CLIENTS_MAX, DurableOptions, DurablePhase, DurableReport, durable};
pub use facts::{FACTS_STORED, FACTS_STORED_MAX, FactTimes, FactsOptions, FactsReport, facts};
pub use hook::{CALLS, CALLS_MAX, HookBenchOptions, HookReport, hook};
pub use mcp_http::{
    McpCallTimes, McpHttpOptions, McpHttpReport, McpIdleStreams, McpStalled, McpTokens, STREAMS, STREAMS_MAX,
    mcp_http,
};
pub use programs::{COLUMNS, PROGRAMS, ProgramsReport, programs};
pub use step::{StepReport, StepWindow, step};
pub use work::{ITEMS, ITEMS_MAX, WorkOptions, WorkReport, WorkTimes, work};

/// Longest time that one measurement may be asked to take, in seconds.
pub const SECONDS_MAX: u64 = 3_600;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A call that the workload expects to be allowed was not: the figure would be of something else.
    #[error("a call that should be allowed was answered with {0}, so there is nothing to measure")]
    NotAllowed(String),
    /// A call about which a person should be asked was not held.
    #[error("a call that should be held was answered with {0}, so there is nothing to measure")]
    NotHeld(String),
    /// An item that should be verified was not.
    #[error("an item that should be verified is {0}, so there is nothing to measure")]
    NotVerified(String),
    /// Guard programs gave no answer.
    #[error("guard programs do not run: {0}")]
    NoPrograms(String),
    /// The bundle of the workload does not load.
    #[error("cannot load the benchmark's own bundle: {0}")]
    Bundle(String),
    /// A histogram cannot be made or filled.
    #[error("the histogram failed: {0}")]
    Histogram(String),
    /// A file or process.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// The daemon refused or went away.
    #[error("the daemon under test failed: {0}")]
    Client(#[from] ClientError),
    /// The daemon does not come up.
    #[error("the daemon under test did not answer within {seconds} s; its log says:\n{log}")]
    NotUp {
        /// How long was waited.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
}

impl BenchError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

fn workload_bundle() -> Result<Arc<Bundle>, BenchError> {
    let loaded = portcullis_session::policy::load(&workload::bundle_files());
    loaded.map(Arc::new).map_err(|mistakes| {
        BenchError::Bundle(mistakes.first().map_or_else(String::new, ToString::to_string))
    })
}
