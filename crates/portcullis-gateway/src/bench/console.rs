//! What the pages of the console cost with a large store, and what browsers cost the decisions.
//!
//! Pages are asked for over connections that stay open, as browsers keep them: the time is that from sending the request
//! to the first byte of the answer. What a run of 10,000 events is read for once, when it is first looked at, is a figure
//! of its own. For the cost of browsers, the same clients get decisions with no stream open and with fifty, in turns, so
//! that both have the same minutes of the machine.

mod browser;
mod store;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use serde::Serialize;

use self::browser::Browser;
use super::approvals::{ASKS, bundle_files};
use super::daemon::Daemon;
use super::distribution::{Distribution, Recorder};
use super::durable::decisions;
use super::{BenchError, disk};
use crate::api::MakeLink;
use crate::client::Client;

/// Runs of the store, by default.
pub const CONSOLE_RUNS: usize = 100_000;
/// The most of them.
pub const CONSOLE_RUNS_MAX: usize = 1_000_000;
/// Calls of the long run; each writes five events.
const LONG_CALLS: usize = 2_000;
/// Requests of each page.
const ROUNDS: usize = 300;
/// Of these, by somebody who signed in once.
const ROUNDS_OF_SESSION: usize = 100;
/// Streams that are open.
const STREAMS: usize = 50;
/// How often decisions are measured without streams and with them.
const PAIRS: usize = 6;
/// Clients that ask for decisions meanwhile.
const CLIENTS: usize = 16;

/// How to measure.
#[derive(Debug, Clone)]
pub struct ConsoleOptions {
    /// The program whose `serve` is the daemon.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long decisions are measured each time.
    pub time: Duration,
    /// Runs to store, at most [`CONSOLE_RUNS_MAX`].
    pub runs: usize,
}

/// What [`console`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConsoleReport {
    /// Runs that were stored.
    pub runs: usize,
    /// Events of the long run.
    pub events: u64,
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
    /// Each page.
    pub pages: Vec<PageTimes>,
    /// Opening the long run for the first time.
    pub first_look_ns: u64,
    /// Streams that were open.
    pub streams: usize,
    /// Decisions a second without streams and with them, one pair after the other.
    pub pairs: Vec<(Load, Load)>,
    /// What streams cost, as a part of the throughput: the median of the pairs.
    pub cost: f64,
    /// What they add to the daemon's processor time for a decision, as a part of it: the median of the pairs.
    pub processor_cost: f64,
}

/// Decisions while something else goes on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Decisions a second.
    pub per_second: f64,
    /// Processor time of the daemon for each, in microseconds.
    pub daemon_cpu_us: f64,
}

impl Load {
    async fn measure(daemon: &Daemon, time: Duration) -> Result<Self, BenchError> {
        let phase = decisions(daemon, CLIENTS, time).await?;
        Ok(Self { per_second: phase.per_second, daemon_cpu_us: phase.daemon_cpu_us.unwrap_or_default() })
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageTimes {
    /// What it shows.
    pub what: String,
    /// Until the first byte.
    pub first_byte: Distribution,
    /// Its size in bytes, at most.
    pub bytes: usize,
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn console(options: &ConsoleOptions) -> Result<ConsoleReport, BenchError> {
    let daemon = Daemon::start_with(
        &options.program,
        &options.folder,
        &bundle_files(),
        &["--console", "127.0.0.1:0"],
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    runtime.block_on(async {
        daemon.wait().await?;
        let mut bare = Recorder::new()?;
        disk::fdatasync(&daemon.home.ledger(), &mut bare)?;
        let runs = options.runs.min(CONSOLE_RUNS_MAX);
        store::fill(&daemon, runs).await?;
        let long = store::long_run(&daemon, LONG_CALLS).await?;
        let held = store::held(&daemon, ASKS).await?;
        let mut browser = signed_in(&daemon).await?;
        let begin = Instant::now();
        browser.get(&format!("/runs/{}", long.run)).await?;
        let first_look_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut pages = Vec::new();
        for (what, path) in paths(long.run, long.events, &held) {
            pages.push(page(&daemon, what, &path).await?);
        }
        let pairs = pairs(&daemon, options.time).await?;
        disk::fdatasync(&daemon.home.ledger(), &mut bare)?;
        let cost =
            median(pairs.iter().map(|(without, with)| 1.0 - with.per_second / without.per_second.max(1.0)));
        let processor_cost = median(
            pairs.iter().map(|(without, with)| with.daemon_cpu_us / without.daemon_cpu_us.max(1.0) - 1.0),
        );
        let fdatasync = bare.finish();
        Ok(ConsoleReport {
            runs,
            events: long.events,
            fdatasync,
            pages,
            first_look_ns,
            streams: STREAMS,
            pairs,
            cost,
            processor_cost,
        })
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

async fn signed_in(daemon: &Daemon) -> Result<Browser, BenchError> {
    let approver = Client::new(daemon.home.clone(), CredentialKind::Approver);
    let link = approver.console_link(&MakeLink::default()).await?;
    Browser::sign_in(&link.origin, &link.url).await
}

/// The pages that are measured.
fn paths(long: RunId, events: u64, held: &str) -> Vec<(&'static str, String)> {
    let run = format!("/runs/{long}");
    vec![
        ("Overview", "/".to_owned()),
        ("Runs", "/runs".to_owned()),
        ("Runs, found by their principal", "/runs?find=local-agent".to_owned()),
        ("Runs, those that go on", "/runs?state=live".to_owned()),
        ("Runs, those that wait for a person", "/runs?state=held".to_owned()),
        ("Approvals", "/approvals".to_owned()),
        ("a request", format!("/approvals/{held}")),
        ("a run of 10,000 events, its end", run.clone()),
        ("its middle", format!("{run}?at={}", events / 2)),
        ("an event of it", format!("{run}?at={0}&event={0}", events / 2)),
        ("filter: one verdict", format!("{run}?only=deny")),
        ("filter: a tool", format!("{run}?find=tool_7")),
        ("filter: found nowhere", format!("{run}?find=nowhere")),
        ("System Setup", "/setup".to_owned()),
        ("Tool Registry", "/tools".to_owned()),
        ("Policy Editor", "/policies".to_owned()),
        ("Simulation Runner", "/simulate".to_owned()),
        ("Verification Results", "/verification".to_owned()),
        ("Audit Log & Exports", "/audit".to_owned()),
        ("Evaluation", "/evaluation".to_owned()),
        ("People", "/people".to_owned()),
    ]
}

async fn page(daemon: &Daemon, what: &str, path: &str) -> Result<PageTimes, BenchError> {
    let (mut recorder, mut bytes) = (Recorder::new()?, 0);
    for _ in 0..ROUNDS / ROUNDS_OF_SESSION {
        // The console lets nobody ask for more pages in a row.
        let mut browser = signed_in(daemon).await?;
        // What is looked up once and kept is looked up.
        browser.get(path).await?;
        for _ in 0..ROUNDS_OF_SESSION {
            let (took, size) = browser.get(path).await?;
            recorder.add(took);
            bytes = bytes.max(size);
        }
    }
    Ok(PageTimes { what: what.to_owned(), first_byte: recorder.finish(), bytes })
}

/// Decisions a second without streams and with them, in turns; which goes first changes.
async fn pairs(daemon: &Daemon, time: Duration) -> Result<Vec<(Load, Load)>, BenchError> {
    let mut pairs = Vec::new();
    // The first round warms up.
    Load::measure(daemon, time).await?;
    for number in 0..PAIRS {
        let pair = if number % 2 == 0 {
            let without = Load::measure(daemon, time).await?;
            (without, with_streams(daemon, time).await?)
        } else {
            let with = with_streams(daemon, time).await?;
            (Load::measure(daemon, time).await?, with)
        };
        pairs.push(pair);
    }
    Ok(pairs)
}

async fn with_streams(daemon: &Daemon, time: Duration) -> Result<Load, BenchError> {
    let mut readers = Vec::new();
    for _ in 0..STREAMS {
        let browser = signed_in(daemon).await?;
        readers.push(tokio::spawn(browser.listen()));
    }
    let measured = Load::measure(daemon, time).await;
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    measured
}
