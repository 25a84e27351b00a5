//! What approvals cost over the socket of a real daemon: asking, looking, granting, using a grant, freezing; with an
//! empty store and with many approvals in it.
//!
//! One agent and one approver take turns, so each time is that of one request by itself. Every answer but a look waits
//! for the disk at least once; the bare disk is measured in the same folder, before and after.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::{ApprovalId, RunId};
use portcullis_core::principal::CredentialKind;
use portcullis_session::workload;
use serde::Serialize;
use tokio::task::JoinSet;

use super::daemon::Daemon;
use super::distribution::{Distribution, Recorder};
use super::{BenchError, disk};
use crate::api::{
    AnswerApproval, FreezeRuns, FreezeTarget, GrantApproval, OpenRun, ProposeAction, ReleaseRuns,
    ReleaseStage, ReportOutcome,
};
use crate::client::{Client, Proposed};

/// Approvals of the store that is not empty, by default.
pub const STORED: usize = 100_000;
/// The most of them.
pub const STORED_MAX: usize = 180_000;
/// Of each run that fills the store: so many requests, of which the second half keeps waiting.
const STORED_PER_RUN: usize = 200;
/// Clients that fill it.
const FILLERS: usize = 32;
/// Rounds of a run, so that runs are about as long with every store.
const ROUNDS_PER_RUN: usize = 20;
/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// The policy that has a person asked about each call.
pub(super) const ASKS: &str = "asks";

/// How to measure.
#[derive(Debug, Clone)]
pub struct ApprovalsOptions {
    /// The program whose `serve` is the daemon.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long each of the two stores is measured.
    pub time: Duration,
    /// Approvals of the second one, at most [`STORED_MAX`].
    pub stored: usize,
}

/// What [`approvals`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalsReport {
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
    /// With an empty store.
    pub empty: ApprovalTimes,
    /// Approvals that were stored then, half of them waiting.
    pub stored: usize,
    /// With these approvals.
    pub full: ApprovalTimes,
    /// p50 of a decision with these approvals over p50 with an empty store.
    pub decision_ratio: f64,
}

/// Times of requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalTimes {
    /// Runs that were live, which a freeze of all runs has to reach.
    pub runs: usize,
    /// A call that nobody holds.
    pub decision: Distribution,
    /// A call that is held: a person is asked.
    pub request: Distribution,
    /// The approver looks at it.
    pub look: Distribution,
    /// The approver grants it.
    pub grant: Distribution,
    /// The call is made again, and goes ahead.
    pub claim: Distribution,
    /// The approver freezes the run.
    pub freeze: Distribution,
    /// The approver freezes all runs.
    pub freeze_all: Distribution,
}

/// The workload's bundle, and a policy that has a person asked.
pub(super) fn bundle_files() -> BTreeMap<String, Vec<u8>> {
    let mut files = workload::bundle_files();
    let policy = format!(
        "[[policy]]\nname = \"{ASKS}\"\nallowed_types = [\"WRITE_FILE\"]\nmax_steps = 4000000000\n\
         max_side_effects = 4000000000\napproval_for_side_effects = true\n"
    );
    files.insert("policies/asks.toml".to_owned(), policy.into_bytes());
    files
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn approvals(options: &ApprovalsOptions) -> Result<ApprovalsReport, BenchError> {
    let daemon = Daemon::start(&options.program, &options.folder, &bundle_files())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    runtime.block_on(daemon.wait())?;
    let (store, mut bare) = (daemon.home.ledger(), Recorder::new()?);
    let runs = options.stored.min(STORED_MAX).div_ceil(STORED_PER_RUN);
    disk::fdatasync(&store, &mut bare)?;
    let empty = runtime.block_on(measure(&daemon, options.time, 0))?;
    runtime.block_on(fill(&daemon, runs))?;
    let full = runtime.block_on(measure(&daemon, options.time, runs))?;
    disk::fdatasync(&store, &mut bare)?;
    let decision_ratio = full.decision.p50_ns as f64 / empty.decision.p50_ns.max(1) as f64;
    let (stored, fdatasync) = (runs * STORED_PER_RUN, bare.finish());
    Ok(ApprovalsReport { fdatasync, empty, stored, full, decision_ratio })
}

fn call(number: usize) -> ProposeAction {
    ProposeAction {
        tool: Some(workload::tool(number)),
        arguments: workload::arguments(number, ARGUMENT_BYTES),
        wait_ms: Some(0),
        ..ProposeAction::default()
    }
}

async fn open(agent: &Client, policy: &str) -> Result<RunId, BenchError> {
    let open = OpenRun { surface: "bench".into(), policy: Some(policy.to_owned()), ..OpenRun::default() };
    Ok(agent.open_run(&open).await?.run)
}

/// The approval that a call waits for.
async fn held(agent: &Client, run: RunId, number: usize) -> Result<ApprovalId, BenchError> {
    let proposed = agent.propose(run, &call(number)).await?;
    let judged = proposed.judged();
    judged.approval.ok_or_else(|| BenchError::NotHeld(judged.verdict.to_string()))
}

/// Makes calls that are held, and answers every other one.
async fn fill(daemon: &Daemon, runs: usize) -> Result<(), BenchError> {
    let mut tasks = JoinSet::new();
    for first in 0..FILLERS.min(runs) {
        let of = |kind| Client::new(daemon.home.clone(), kind);
        let (agent, approver) = (of(CredentialKind::Agent), of(CredentialKind::Approver));
        let own = (first..runs).step_by(FILLERS).count();
        tasks.spawn(async move {
            for _ in 0..own {
                let run = open(&agent, ASKS).await?;
                for number in 0..STORED_PER_RUN {
                    let approval = held(&agent, run, number).await?;
                    if number < STORED_PER_RUN / 2 {
                        let answer = AnswerApproval { note: "not now".to_owned() };
                        approver.answer(&approval.to_string(), &answer).await?;
                    }
                }
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

struct Recorders {
    decision: Recorder,
    request: Recorder,
    look: Recorder,
    grant: Recorder,
    claim: Recorder,
    freeze: Recorder,
    freeze_all: Recorder,
}

async fn measure(daemon: &Daemon, time: Duration, stored_runs: usize) -> Result<ApprovalTimes, BenchError> {
    let of = |kind| Client::new(daemon.home.clone(), kind);
    let (agent, approver) = (of(CredentialKind::Agent), of(CredentialKind::Approver));
    let new = Recorder::new;
    let mut times = Recorders {
        decision: new()?,
        request: new()?,
        look: new()?,
        grant: new()?,
        claim: new()?,
        freeze: new()?,
        freeze_all: new()?,
    };
    let begin = Instant::now();
    while begin.elapsed() < time {
        let (free, asks) = (open(&agent, workload::POLICY).await?, open(&agent, ASKS).await?);
        for number in 0..ROUNDS_PER_RUN {
            decide(&agent, free, number, &mut times).await?;
            approve(&agent, &approver, asks, number, &mut times).await?;
        }
        let run = FreezeTarget::Run(asks.to_string());
        freeze(&approver, run, &mut times.freeze).await?;
        freeze(&approver, FreezeTarget::All, &mut times.freeze_all).await?;
        agent.close(free).await?;
        agent.close(asks).await?;
    }
    Ok(ApprovalTimes {
        runs: stored_runs + 2,
        decision: times.decision.finish(),
        request: times.request.finish(),
        look: times.look.finish(),
        grant: times.grant.finish(),
        claim: times.claim.finish(),
        freeze: times.freeze.finish(),
        freeze_all: times.freeze_all.finish(),
    })
}

async fn timed<T, E>(into: &mut Recorder, request: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let begin = Instant::now();
    let answer = request.await?;
    into.add(begin.elapsed());
    Ok(answer)
}

/// A call that is permitted, and its outcome.
async fn permitted(agent: &Client, run: RunId, number: usize, into: &mut Recorder) -> Result<(), BenchError> {
    let call = call(number);
    let proposed = timed(into, agent.propose(run, &call)).await?;
    let verdict = proposed.judged().verdict;
    let Proposed::Permitted(permit) = proposed else {
        return Err(BenchError::NotAllowed(verdict.to_string()));
    };
    let outcome = ReportOutcome::of(permit.action(), OutcomeStatus::Ok, None);
    agent.outcome(run, &outcome).await?;
    Ok(())
}

async fn decide(agent: &Client, run: RunId, number: usize, times: &mut Recorders) -> Result<(), BenchError> {
    permitted(agent, run, number, &mut times.decision).await
}

async fn approve(
    agent: &Client,
    approver: &Client,
    run: RunId,
    number: usize,
    times: &mut Recorders,
) -> Result<(), BenchError> {
    let approval = timed(&mut times.request, held(agent, run, number)).await?.to_string();
    let shown = timed(&mut times.look, approver.approval(&approval)).await?;
    timed(&mut times.grant, approver.grant(&approval, &GrantApproval::of(&shown))).await?;
    permitted(agent, run, number, &mut times.claim).await
}

/// Freezes, and releases at once.
async fn freeze(approver: &Client, scope: FreezeTarget, into: &mut Recorder) -> Result<(), BenchError> {
    let order = FreezeRuns { scope: scope.clone(), note: None };
    timed(into, approver.freeze(&order)).await?;
    let release = ReleaseRuns { scope, stage: ReleaseStage::All, note: None };
    approver.release(&release).await?;
    Ok(())
}
