//! What is in the store when pages are measured.

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_session::engine::Reach;
use portcullis_session::workload;
use tokio::task::JoinSet;

use crate::api::{OpenRun, ProposeAction, ReportInput, ReportOutcome, Role};
use crate::bench::BenchError;
use crate::bench::daemon::Daemon;
use crate::client::{Client, Proposed};

/// Clients that fill the store.
const FILLERS: usize = 64;
/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// Every so many calls of the long run is one of a tool that there is not.
const UNKNOWN_EVERY: usize = 97;

/// A run of many events.
pub(super) struct Long {
    pub(super) run: RunId,
    pub(super) events: u64,
}

async fn open(agent: &Client, policy: &str) -> Result<RunId, BenchError> {
    let open = OpenRun { surface: "bench".into(), policy: Some(policy.to_owned()), ..OpenRun::default() };
    let run = agent.open_run(&open).await?.run;
    let text = "Work through the open requests, and file a note for each.".to_owned();
    agent.input(run, &ReportInput { text, role: Role::User, reach: Reach::Replace }).await?;
    Ok(run)
}

fn call(number: usize) -> ProposeAction {
    ProposeAction {
        tool: Some(workload::tool(number)),
        arguments: workload::arguments(number, ARGUMENT_BYTES),
        wait_ms: Some(0),
        ..ProposeAction::default()
    }
}

/// Runs with a question and a call each, that were closed.
pub(super) async fn fill(daemon: &Daemon, runs: usize) -> Result<(), BenchError> {
    let mut tasks = JoinSet::new();
    for first in 0..FILLERS {
        let agent = Client::new(daemon.home.clone(), CredentialKind::Agent);
        tasks.spawn(async move {
            for number in (first..runs).step_by(FILLERS) {
                let run = open(&agent, workload::POLICY).await?;
                agent.propose(run, &call(number)).await?;
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

/// A run of so many calls that goes on.
pub(super) async fn long_run(daemon: &Daemon, calls: usize) -> Result<Long, BenchError> {
    let agent = Client::new(daemon.home.clone(), CredentialKind::Agent);
    let run = open(&agent, workload::POLICY).await?;
    for number in 0..calls {
        if number % UNKNOWN_EVERY == 0 {
            let unknown = ProposeAction { tool: Some("restart_everything".into()), ..call(number) };
            agent.propose(run, &unknown).await?;
            continue;
        }
        if let Proposed::Permitted(permit) = agent.propose(run, &call(number)).await? {
            let content = Some(format!("note {number} was filed"));
            agent.outcome(run, &ReportOutcome::of(permit.action(), OutcomeStatus::Ok, content)).await?;
        }
    }
    let events = agent.run(&run.to_string()).await?.events;
    Ok(Long { run, events })
}

/// A request that waits; its id.
pub(super) async fn held(daemon: &Daemon, asks: &str) -> Result<String, BenchError> {
    let agent = Client::new(daemon.home.clone(), CredentialKind::Agent);
    let run = open(&agent, asks).await?;
    let proposed = agent.propose(run, &call(0)).await?;
    let verdict = proposed.judged().verdict.to_string();
    let approval = proposed.judged().approval;
    approval.map(|approval| approval.to_string()).ok_or(BenchError::NotHeld(verdict))
}
