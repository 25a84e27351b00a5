//! Decisions over the socket of a real daemon, each answered when it is on the disk.
//!
//! The daemon is a process of its own on a state folder made for the purpose. The clients are tasks of this
//! process, each with its own run and connection, each proposing the next call as soon as the last one is
//! answered. In the same folder, before and after, the bare disk is measured: most of the time of a durable
//! decision is spent waiting for it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_session::workload;
use serde::Serialize;
use tokio::task::JoinSet;

use super::daemon::Daemon;
use super::distribution::{Distribution, Recorder};
use super::{BenchError, disk};
use crate::api::{OpenRun, ProposeAction, ReportOutcome};
use crate::client::Client;

/// Clients at a time, by default.
pub const CLIENTS: usize = 64;
/// The most clients at a time.
pub const CLIENTS_MAX: usize = 1_024;
/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// Where outcomes are not reported, a client opens another run before the limit on actions that are executing
/// is reached.
const CALLS_PER_RUN: u64 = 1_000;
/// Clock ticks of `/proc` in a second, on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// How to measure.
#[derive(Debug, Clone)]
pub struct DurableOptions {
    /// The program whose `serve` is the daemon.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long each phase lasts.
    pub time: Duration,
    /// Clients at a time, at most [`CLIENTS_MAX`].
    pub clients: usize,
}

/// What [`durable`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DurableReport {
    /// Clients at a time, each with a run of its own.
    pub clients: usize,
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
    /// Proposals only.
    pub decisions: DurablePhase,
    /// Each proposal followed by the report of its outcome, as a real call is.
    pub calls: DurablePhase,
}

/// One way of using the daemon.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DurablePhase {
    /// Decisions a second, over all clients.
    pub per_second: f64,
    /// From sending the proposal to having read the answer.
    pub latency: Distribution,
    /// p99 of the latency over p99 of `fdatasync`.
    pub p99_over_fdatasync_p99: f64,
    /// CPU time of the daemon for each decision, in microseconds, or `None` if the system does not say.
    pub daemon_cpu_us: Option<f64>,
    /// CPU time of the clients for each decision, in microseconds.
    pub clients_cpu_us: Option<f64>,
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn durable(options: &DurableOptions) -> Result<DurableReport, BenchError> {
    let daemon = Daemon::start(&options.program, &options.folder, &workload::bundle_files())?;
    let mut bare = Recorder::new()?;
    let store = daemon.home.ledger();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    runtime.block_on(daemon.wait())?;
    disk::fdatasync(&store, &mut bare)?;
    let decisions = runtime.block_on(load(&daemon, options, Way::Decisions))?;
    let calls = runtime.block_on(load(&daemon, options, Way::Calls))?;
    disk::fdatasync(&store, &mut bare)?;
    drop(runtime);
    drop(daemon);
    let fdatasync = bare.finish();
    let over = |phase: &mut DurablePhase| {
        phase.p99_over_fdatasync_p99 = phase.latency.p99_ns as f64 / fdatasync.p99_ns.max(1) as f64;
    };
    let (mut decisions, mut calls) = (decisions, calls);
    over(&mut decisions);
    over(&mut calls);
    Ok(DurableReport {
        clients: options.clients,
        argument_bytes: ARGUMENT_BYTES,
        fdatasync,
        decisions,
        calls,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Decisions,
    Calls,
}

/// Decisions alone, of a daemon that is measured for something else.
pub(super) async fn decisions(
    daemon: &Daemon,
    clients: usize,
    time: Duration,
) -> Result<DurablePhase, BenchError> {
    let options = DurableOptions { program: PathBuf::new(), folder: PathBuf::new(), time, clients };
    load(daemon, &options, Way::Decisions).await
}

async fn load(daemon: &Daemon, options: &DurableOptions, way: Way) -> Result<DurablePhase, BenchError> {
    let clients = options.clients.min(CLIENTS_MAX);
    let until = Instant::now() + options.time;
    let cpu = || (cpu_seconds(daemon.id()), cpu_seconds(std::process::id()));
    let before = cpu();
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let client = Client::new(daemon.home.clone(), CredentialKind::Agent);
        tasks.spawn(drive(client, number, way, until));
    }
    let mut all = Recorder::new()?;
    while let Some(done) = tasks.join_next().await {
        let recorder = done.map_err(|error| BenchError::Io {
            what: "run a client".into(),
            source: std::io::Error::other(error),
        })??;
        all.merge(&recorder)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let after = cpu();
    let each = |before: Option<f64>, after: Option<f64>| {
        Some((after? - before?) * 1_000_000.0 / all.count().max(1) as f64)
    };
    Ok(DurablePhase {
        per_second: all.count() as f64 / seconds,
        latency: all.finish(),
        p99_over_fdatasync_p99: 0.0,
        daemon_cpu_us: each(before.0, after.0),
        clients_cpu_us: each(before.1, after.1),
    })
}

/// One client: asks, waits for the answer, asks again.
async fn drive(client: Client, number: usize, way: Way, until: Instant) -> Result<Recorder, BenchError> {
    let mut recorder = Recorder::new()?;
    let open = OpenRun { surface: "bench".into(), ..OpenRun::default() };
    let mut run = client.open_run(&open).await?.run;
    let mut asked = 0_u64;
    while Instant::now() < until {
        if way == Way::Decisions && asked > 0 && asked.is_multiple_of(CALLS_PER_RUN) {
            run = client.open_run(&open).await?.run;
        }
        let call = number.wrapping_mul(7).wrapping_add(usize::try_from(asked).unwrap_or(0));
        let proposal = ProposeAction {
            tool: Some(workload::tool(call)),
            arguments: workload::arguments(call, ARGUMENT_BYTES),
            ..ProposeAction::default()
        };
        let begin = Instant::now();
        let proposed = client.propose(run, &proposal).await?;
        recorder.add(begin.elapsed());
        asked += 1;
        let verdict = proposed.judged().verdict;
        let permit = proposed.permit().ok_or_else(|| BenchError::NotAllowed(verdict.to_string()))?;
        if way == Way::Calls {
            report(&client, run, permit.action()).await?;
        }
    }
    Ok(recorder)
}

async fn report(
    client: &Client,
    run: RunId,
    action: portcullis_core::id::ActionId,
) -> Result<(), BenchError> {
    let content = Some("the note was filed".to_owned());
    let outcome = ReportOutcome::of(action, OutcomeStatus::Ok, content);
    client.outcome(run, &outcome).await?;
    Ok(())
}

/// User and system time of a process so far (proc(5), fields 14 and 15 of `stat`).
fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map_while(|field| field.parse::<f64>().ok());
    Some((ticks.next()? + ticks.next()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_the_processor_only_grows() {
        let before = cpu_seconds(std::process::id()).unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(100) {}
        let after = cpu_seconds(std::process::id()).unwrap();
        assert!(after > before && after - before < 60.0);
    }

    #[test]
    fn a_daemon_that_does_not_start_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let options = DurableOptions {
            program: PathBuf::from("/does/not/exist"),
            folder: folder.path().to_owned(),
            time: Duration::ZERO,
            clients: 1,
        };
        let error = durable(&options).unwrap_err().to_string();
        assert!(error.contains("/does/not/exist serve"), "{error}");
    }
}
