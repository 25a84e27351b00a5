//! What session state and facts cost over the socket of a real daemon, and what a store with many facts adds to a
//! decision, which reads none of them.
//!
//! One agent takes turns, so each time is that of one request by itself. Every answer waits for the disk at least once;
//! the bare disk is measured in the same folder, before and after.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::RunId;
use portcullis_core::kept::{FACTS_OF_RUN_MAX, KeptId, KeptScope};
use portcullis_core::principal::CredentialKind;
use portcullis_session::workload;
use serde::Serialize;
use tokio::task::JoinSet;

use super::daemon::Daemon;
use super::distribution::{Distribution, Recorder};
use super::{BenchError, disk};
use crate::api::{
    FactAnswer, FactOperation, FactRequest, OpenRun, ProposeAction, ReportOutcome, StateOperation,
    StateRequest,
};
use crate::client::{Client, Proposed};

/// Facts of the store that is not empty, by default.
pub const FACTS_STORED: usize = 100_000;
/// The most of them.
pub const FACTS_STORED_MAX: usize = 500_000;
/// Clients that fill it.
const FILLERS: usize = 32;
/// Rounds of a run, so that runs are about as long with every store.
const ROUNDS_PER_RUN: usize = 50;
/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// Facts of one topic are so far apart.
const TOPICS: usize = 100;

/// How to measure.
#[derive(Debug, Clone)]
pub struct FactsOptions {
    /// The program whose `serve` is the daemon.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long each of the two stores is measured.
    pub time: Duration,
    /// Facts of the second one, at most [`FACTS_STORED_MAX`].
    pub stored: usize,
}

/// What [`facts`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactsReport {
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
    /// With an empty store.
    pub empty: FactTimes,
    /// Facts that were stored then.
    pub stored: usize,
    /// With these facts.
    pub full: FactTimes,
    /// p50 of a decision with these facts over p50 with an empty store.
    pub decision_ratio: f64,
}

/// Times of requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactTimes {
    /// A call that nobody holds.
    pub decision: Distribution,
    /// One key of the session state is put.
    pub put: Distribution,
    /// A fact is established.
    pub write: Distribution,
    /// The newest 20 are read.
    pub read: Distribution,
    /// The newest 20 about one thing are read.
    pub topic: Distribution,
    /// A fact is forgotten.
    pub forget: Distribution,
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn facts(options: &FactsOptions) -> Result<FactsReport, BenchError> {
    let daemon = Daemon::start(&options.program, &options.folder, &workload::bundle_files())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    runtime.block_on(daemon.wait())?;
    let (store, mut bare) = (daemon.home.ledger(), Recorder::new()?);
    let stored = options.stored.min(FACTS_STORED_MAX);
    disk::fdatasync(&store, &mut bare)?;
    let empty = runtime.block_on(measure(&daemon, options.time))?;
    runtime.block_on(fill(&daemon, stored))?;
    let full = runtime.block_on(measure(&daemon, options.time))?;
    disk::fdatasync(&store, &mut bare)?;
    let decision_ratio = full.decision.p50_ns as f64 / empty.decision.p50_ns.max(1) as f64;
    Ok(FactsReport { fdatasync: bare.finish(), empty, stored, full, decision_ratio })
}

async fn open(agent: &Client) -> Result<RunId, BenchError> {
    let policy = Some(workload::POLICY.to_owned());
    let open = OpenRun { surface: "bench".into(), policy, ..OpenRun::default() };
    Ok(agent.open_run(&open).await?.run)
}

async fn asked(agent: &Client, run: RunId, operation: FactOperation) -> Result<FactAnswer, BenchError> {
    let request = FactRequest { operation, call: None, request: None };
    Ok(agent.facts(&run.to_string(), &request).await?)
}

fn fact(number: usize) -> FactOperation {
    let text =
        format!("Service {number} is reached at the address that its page names, and restarts on Mondays.");
    let (topic, replaces) = (format!("topic {}", number % TOPICS), Vec::new());
    FactOperation::Write { text, topic, replaces, scope: KeptScope::Principal }
}

fn reading(topic: Option<String>) -> FactOperation {
    FactOperation::Read { facts: Vec::new(), topic, limit: Some(20), before: None }
}

/// Establishes facts, many in each run.
async fn fill(daemon: &Daemon, stored: usize) -> Result<(), BenchError> {
    let mut tasks = JoinSet::new();
    for first in 0..FILLERS {
        let agent = Client::new(daemon.home.clone(), CredentialKind::Agent);
        tasks.spawn(async move {
            let own: Vec<usize> = (first..stored).step_by(FILLERS).collect();
            for part in own.chunks(FACTS_OF_RUN_MAX) {
                let run = open(&agent).await?;
                for number in part {
                    asked(&agent, run, fact(*number)).await?;
                }
                agent.close(run).await?;
            }
            Ok::<_, BenchError>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        let lost = |error| BenchError::io("run a client")(std::io::Error::other(error));
        done.map_err(lost)??;
    }
    Ok(())
}

async fn timed<T, E>(into: &mut Recorder, request: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let begin = Instant::now();
    let answer = request.await?;
    into.add(begin.elapsed());
    Ok(answer)
}

/// One after the other: decision, put, write, read, by topic, forget.
struct Recorders([Recorder; 6]);

async fn measure(daemon: &Daemon, time: Duration) -> Result<FactTimes, BenchError> {
    let agent = Client::new(daemon.home.clone(), CredentialKind::Agent);
    let new = Recorder::new;
    let mut times = Recorders([new()?, new()?, new()?, new()?, new()?, new()?]);
    // Decisions by themselves: beside readers they would be measured with what those need of the processor.
    let Recorders([decision, ..]) = &mut times;
    let begin = Instant::now();
    while begin.elapsed() < time / 2 {
        let run = open(&agent).await?;
        for number in 0..ROUNDS_PER_RUN {
            permitted(&agent, run, number, decision).await?;
        }
        agent.close(run).await?;
    }
    let begin = Instant::now();
    while begin.elapsed() < time / 2 {
        let (run, mut version) = (open(&agent).await?, None);
        for number in 0..ROUNDS_PER_RUN {
            version = Some(round(&agent, run, (number, version), &mut times).await?);
        }
        agent.close(run).await?;
    }
    let Recorders([decision, put, write, read, topic, forget]) = times;
    Ok(FactTimes {
        decision: decision.finish(),
        put: put.finish(),
        write: write.finish(),
        read: read.finish(),
        topic: topic.finish(),
        forget: forget.finish(),
    })
}

async fn round(
    agent: &Client,
    keeping: RunId,
    (number, replaces): (usize, Option<u64>),
    Recorders([_, put, write, read, topic, forget]): &mut Recorders,
) -> Result<u64, BenchError> {
    let operation = StateOperation::Put { key: "plan".to_owned(), value: number.into(), replaces };
    let request = StateRequest { operation, call: None, request: None };
    let run = keeping.to_string();
    let answer = timed(put, agent.state(&run, &request)).await?;
    let version = answer.keys.first().map(|key| key.version);
    let version = version.ok_or_else(|| BenchError::NotAllowed("no version".to_owned()))?;
    let written = timed(write, asked(agent, keeping, fact(number))).await?.fact;
    timed(read, asked(agent, keeping, reading(None))).await?;
    timed(topic, asked(agent, keeping, reading(Some(format!("topic {}", number % TOPICS))))).await?;
    let unnamed = || BenchError::NotAllowed("no fact".to_owned());
    let written: KeptId = written.ok_or_else(unnamed)?;
    let reason = "measured".to_owned();
    timed(forget, asked(agent, keeping, FactOperation::Forget { fact: written, reason })).await?;
    Ok(version)
}

/// A call that is permitted, and its outcome.
async fn permitted(agent: &Client, run: RunId, number: usize, into: &mut Recorder) -> Result<(), BenchError> {
    let call = ProposeAction {
        tool: Some(workload::tool(number)),
        arguments: workload::arguments(number, ARGUMENT_BYTES),
        wait_ms: Some(0),
        ..ProposeAction::default()
    };
    let proposed = timed(into, agent.propose(run, &call)).await?;
    let verdict = proposed.judged().verdict;
    let Proposed::Permitted(permit) = proposed else {
        return Err(BenchError::NotAllowed(verdict.to_string()));
    };
    let outcome = ReportOutcome::of(permit.action(), OutcomeStatus::Ok, None);
    agent.outcome(run, &outcome).await?;
    Ok(())
}
