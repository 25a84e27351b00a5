//! What work items cost over the socket of a real daemon: making one, starting it, claiming it with its check; and what a
//! decision costs beside them, in an empty store and in a run and a store full of items.
//!
//! One agent and one approver take turns. The criterion looks whether a file is there, so that a claim's time is that of the
//! gate: three events that are made durable, and the check between them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_core::work::{ItemId, ItemState};
use portcullis_session::workload;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use super::daemon::Daemon;
use super::distribution::{Distribution, Recorder};
use super::{BenchError, disk};
use crate::api::{OpenRun, ProposeAction, ReportOutcome, WorkOperation, WorkRequest};
use crate::client::Client;

/// Items of the store that is not empty, by default.
pub const ITEMS: usize = 10_000;
/// The most of them.
pub const ITEMS_MAX: usize = 100_000;
/// Of each run that fills the store. A run has 1,024 at most, and some are made when it is measured.
const ITEMS_PER_RUN: usize = 500;
/// Runs that are filled at once.
const FILLERS: usize = 16;
/// Items of a run that is measured, besides those that it has.
const ROUNDS_PER_RUN: usize = 20;
/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// The file that criteria look for.
const FILE: &str = "there";

/// How to measure.
#[derive(Debug, Clone)]
pub struct WorkOptions {
    /// The program whose `serve` is the daemon.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long each of the two stores is measured.
    pub time: Duration,
    /// Items of the second one, at most [`ITEMS_MAX`].
    pub items: usize,
}

/// What [`work`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkReport {
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
    /// With an empty store.
    pub empty: WorkTimes,
    /// Items that were stored then, all of them verified.
    pub items: usize,
    /// In a run with its share of these items.
    pub full: WorkTimes,
    /// p50 of a decision with these items over p50 with an empty store.
    pub decision_ratio: f64,
}

/// Times of requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkTimes {
    /// A call that is permitted.
    pub decision: Distribution,
    /// Its outcome, which may make evidence stale.
    pub outcome: Distribution,
    /// A person makes an item.
    pub create: Distribution,
    /// The agent starts it.
    pub start: Distribution,
    /// The agent claims it, and it is checked and verified.
    pub claim: Distribution,
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn work(options: &WorkOptions) -> Result<WorkReport, BenchError> {
    let daemon = Daemon::start(&options.program, &options.folder, &workload::bundle_files())?;
    let project = options.folder.join("project");
    std::fs::create_dir_all(&project).map_err(BenchError::io("make the project"))?;
    std::fs::write(project.join(FILE), "").map_err(BenchError::io("make the project"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    runtime.block_on(daemon.wait())?;
    let at = Arc::new(Desk::new(&daemon, &project));
    let (store, mut bare) = (daemon.home.ledger(), Recorder::new()?);
    disk::fdatasync(&store, &mut bare)?;
    let empty = runtime.block_on(measure(&at, options.time, &[]))?;
    let runs = runtime.block_on(fill(&at, options.items.min(ITEMS_MAX).div_ceil(ITEMS_PER_RUN)))?;
    let full = runtime.block_on(measure(&at, options.time, &runs))?;
    disk::fdatasync(&store, &mut bare)?;
    let decision_ratio = full.decision.p50_ns as f64 / empty.decision.p50_ns.max(1) as f64;
    let (items, fdatasync) = (runs.len() * ITEMS_PER_RUN, bare.finish());
    Ok(WorkReport { fdatasync, empty, items, full, decision_ratio })
}

/// An agent and a person, who speak to one daemon about one project.
struct Desk {
    agent: Client,
    person: Client,
    /// What criteria look for.
    file: PathBuf,
}

struct Recorders {
    decision: Recorder,
    outcome: Recorder,
    create: Recorder,
    start: Recorder,
    claim: Recorder,
}

impl Recorders {
    fn new() -> Result<Self, BenchError> {
        let new = Recorder::new;
        Ok(Self { decision: new()?, outcome: new()?, create: new()?, start: new()?, claim: new()? })
    }
}

impl Desk {
    fn new(daemon: &Daemon, project: &std::path::Path) -> Self {
        let of = |kind| Client::new(daemon.home.clone(), kind);
        Self {
            agent: of(CredentialKind::Agent),
            person: of(CredentialKind::Approver),
            file: project.join(FILE),
        }
    }

    async fn open(&self) -> Result<RunId, BenchError> {
        let policy = Some(workload::POLICY.to_owned());
        let open = OpenRun { surface: "bench".into(), policy, ..OpenRun::default() };
        Ok(self.agent.open_run(&open).await?.run)
    }

    /// An item from its making to its verification.
    async fn round(&self, run: RunId, number: usize, times: &mut Recorders) -> Result<(), BenchError> {
        let id = run.to_string();
        let ask = |operation| WorkRequest { operation, call: None, wait_ms: None };
        let criteria = vec![json!({"type": "file_exists", "path": self.file})];
        let title = format!("item {number}");
        let create = ask(WorkOperation::Create { title, criteria, owner: None, covers: Vec::new() });
        let item: ItemId = timed(&mut times.create, self.person.work(&id, &create)).await?.item.id;
        let start = ask(WorkOperation::Start { item });
        timed(&mut times.start, self.agent.work(&id, &start)).await?;
        let call = ProposeAction {
            tool: Some(workload::tool(number)),
            arguments: workload::arguments(number, ARGUMENT_BYTES),
            wait_ms: Some(0),
            ..ProposeAction::default()
        };
        let proposed = timed(&mut times.decision, self.agent.propose(run, &call)).await?;
        if !proposed.is_permitted() {
            let judged = proposed.judged();
            let rule = judged.findings.first().map_or("", |finding| &finding.rule);
            return Err(BenchError::NotAllowed(format!("{} ({rule})", judged.verdict)));
        }
        let action = proposed.judged().action;
        let outcome = ReportOutcome::of(action, OutcomeStatus::Ok, None);
        timed(&mut times.outcome, self.agent.outcome(run, &outcome)).await?;
        let evidence = vec![action.to_string()];
        let claim = ask(WorkOperation::Claim { item, evidence, statement: "it is there".to_owned() });
        let claimed = timed(&mut times.claim, self.agent.work(&id, &claim)).await?.item;
        match claimed.state {
            ItemState::Verified => Ok(()),
            state => Err(BenchError::NotVerified(state.to_string())),
        }
    }
}

async fn timed<T, E>(into: &mut Recorder, request: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let begin = Instant::now();
    let answer = request.await?;
    into.add(begin.elapsed());
    Ok(answer)
}

/// Runs with items, left open.
async fn fill(at: &Arc<Desk>, runs: usize) -> Result<Vec<RunId>, BenchError> {
    let (mut tasks, mut filled) = (JoinSet::new(), Vec::with_capacity(runs));
    for first in 0..FILLERS.min(runs) {
        let (at, own) = (Arc::clone(at), (first..runs).step_by(FILLERS).count());
        tasks.spawn(async move {
            let (mut opened, mut unused) = (Vec::with_capacity(own), Recorders::new()?);
            for _ in 0..own {
                let run = at.open().await?;
                for number in 0..ITEMS_PER_RUN {
                    at.round(run, number, &mut unused).await?;
                }
                opened.push(run);
            }
            Ok::<_, BenchError>(opened)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let lost = |error| BenchError::io("run a client")(std::io::Error::other(error));
        filled.extend(done.map_err(lost)??);
    }
    Ok(filled)
}

/// Measures in these runs, each for some rounds, and in new ones where there are no more.
async fn measure(at: &Desk, time: Duration, runs: &[RunId]) -> Result<WorkTimes, BenchError> {
    let mut times = Recorders::new()?;
    let (begin, mut rest) = (Instant::now(), runs.iter());
    while begin.elapsed() < time {
        let run = match rest.next() {
            Some(run) => *run,
            None => at.open().await?,
        };
        for number in 0..ROUNDS_PER_RUN {
            at.round(run, ITEMS_PER_RUN + number, &mut times).await?;
        }
        at.agent.close(run).await?;
    }
    Ok(WorkTimes {
        decision: times.decision.finish(),
        outcome: times.outcome.finish(),
        create: times.create.finish(),
        start: times.start.finish(),
        claim: times.claim.finish(),
    })
}
