//! The hammer: writers, readers and the log at once, on a store of its own, until a goal is reached.
//!
//! ```text
//! writers ─ append, each answer awaited ─> store ─ log thread ─> tiles and checkpoint
//!    │ acknowledged heads                    │                        │
//!    └───────────> readers <─────────────────┴────────────────────────┘   verify all they read
//! ```
//!
//! What is measured is what a gate waits for: the time of an append in the strict way, each on the disk before it is
//! answered. The disk's own time is measured beside it in the same run, since nothing else says what the figures of
//! another machine mean. Every event that was written is read and verified at least once: each run that was closed is
//! exported with its proofs and has to be valid, and at the end the whole store and the whole log are derived again.

mod reader;
mod times;
mod writer;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use portcullis_proof::log::VerifierKey;
use serde::Serialize;

use self::times::{Probe, Times};
use crate::log::{LogPlaces, LogReader, LogThread, check, verifier_key};
use crate::{Head, OpenOptions, SqliteLedger};

pub use self::reader::HammerReads;
pub use self::times::Spread;

/// The most writers.
pub const HAMMER_WRITERS_MAX: usize = 1024;
/// The most readers.
pub const HAMMER_READERS_MAX: usize = 256;
/// The most events: each append's time is kept.
pub const HAMMER_GOAL_MAX: u64 = 100_000_000;

/// The name of the store.
const ORIGIN: &str = "portcullis/hammer";
/// The most problems that are named; the first one ends the writing.
const PROBLEMS_MAX: usize = 20;
/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether a run has a proof.
const OBSERVE_EVERY: Duration = Duration::from_millis(10);
/// How often the disk is timed by itself while others write.
const PROBE_EVERY: Duration = Duration::from_millis(25);
/// How long after the writing the last proofs may take.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Debug, Clone)]
pub struct HammerOptions {
    /// The folder of the store, which must not hold a store yet. The log is created beside it.
    pub folder: PathBuf,
    /// Writers at a time, 1 to [`HAMMER_WRITERS_MAX`].
    pub writers: usize,
    /// Readers at a time, 1 to [`HAMMER_READERS_MAX`].
    pub readers: usize,
    /// Events to write, at most [`HAMMER_GOAL_MAX`].
    pub goal: u64,
    /// How long the writing may take.
    pub time_max: Duration,
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct HammerProgress {
    /// Events that were acknowledged.
    pub events: u64,
    /// Runs that were closed.
    pub closed: u64,
    /// Of those, the ones that were verified with their proofs.
    pub verified: u64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct HammerReport {
    /// Writers at a time.
    pub writers: usize,
    /// Readers at a time.
    pub readers: usize,
    /// The events to write.
    pub goal: u64,
    /// Whether they were written in time, all runs got their proofs, and everything that was read verified.
    pub passed: bool,
    /// Events that were acknowledged while all wrote.
    pub events: u64,
    /// Transactions of the store, each with one wait for the disk.
    pub transactions: u64,
    /// How long the writing took.
    pub seconds: f64,
    /// Durable events a second.
    pub events_per_second: f64,
    /// From an append to its answer, while all wrote.
    pub append: Spread,
    /// Appending 4 KiB and `fdatasync`, in the store's folder, while all wrote.
    pub fdatasync: Spread,
    /// The median of the former over that of the latter.
    pub append_over_fdatasync: f64,
    /// From a decision's append to its answer, without other writers.
    pub append_alone: Spread,
    /// Appending 4 KiB and `fdatasync` in turns with those.
    pub fdatasync_alone: Spread,
    /// The median of the former over that of the latter: what recording adds to a decision.
    pub append_alone_over_fdatasync: f64,
    /// From a run's end to the moment at which its proof could be had.
    pub close_to_proof: Spread,
    /// Leaves of the log.
    pub leaves: u64,
    /// Leaves a second while all wrote.
    pub leaves_per_second: f64,
    /// What was read and verified.
    pub reads: HammerReads,
    /// How long it took to derive the whole store and the whole log again, at the end.
    pub check_seconds: f64,
    /// What went wrong, the first 20.
    pub problems: Vec<String>,
}

/// A run that was closed.
struct Closed {
    head: Head,
    at: Instant,
}

/// What the threads share.
struct Shared<'l> {
    ledger: &'l SqliteLedger,
    places: LogPlaces,
    key: VerifierKey,
    goal: u64,
    start: Instant,
    deadline: Instant,
    events: AtomicU64,
    closed_runs: AtomicU64,
    verified_runs: AtomicU64,
    writing: AtomicUsize,
    observed: AtomicBool,
    failed: AtomicBool,
    /// The head that each writer's run was acknowledged up to.
    live: Vec<Mutex<Option<Head>>>,
    closed: Mutex<VecDeque<Closed>>,
    proven: Mutex<VecDeque<Closed>>,
}

impl<'l> Shared<'l> {
    fn new(
        ledger: &'l SqliteLedger,
        places: LogPlaces,
        key: VerifierKey,
        options: &HammerOptions,
    ) -> Shared<'l> {
        let start = Instant::now();
        Shared {
            ledger,
            places,
            key,
            goal: options.goal,
            start,
            deadline: start + options.time_max,
            events: AtomicU64::new(0),
            closed_runs: AtomicU64::new(0),
            verified_runs: AtomicU64::new(0),
            writing: AtomicUsize::new(options.writers),
            observed: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            live: (0..options.writers).map(|_| Mutex::new(None)).collect(),
            closed: Mutex::default(),
            proven: Mutex::default(),
        }
    }

    fn writes_on(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
            && self.events.load(Ordering::Relaxed) < self.goal
            && Instant::now() < self.deadline
    }

    fn acknowledged(&self, slot: usize, head: Head, events: u64) {
        if let Some(live) = self.live.get(slot) {
            *lock(live) = Some(head);
        }
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    fn forget(&self, slot: usize) {
        if let Some(live) = self.live.get(slot) {
            *lock(live) = None;
        }
    }

    fn slots(&self) -> usize {
        self.live.len()
    }

    fn live(&self, slot: u64) -> Option<Head> {
        *lock(self.live.get(usize::try_from(slot).ok()?)?)
    }

    fn closed(&self, closed: Closed) {
        self.closed_runs.fetch_add(1, Ordering::Relaxed);
        lock(&self.closed).push_back(closed);
    }

    fn next_proven(&self) -> Option<Closed> {
        lock(&self.proven).pop_front()
    }

    fn verified(&self) {
        self.verified_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether no further run will get a proof.
    fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Acquire) || self.failed.load(Ordering::Relaxed)
    }
}

/// Queues here are whole at any time, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes, reads and verifies; `told` receives the progress.
///
/// # Errors
/// When the store or its log cannot be made. What goes wrong later is in the report.
pub fn hammer(
    options: &HammerOptions,
    told: &mut dyn FnMut(HammerProgress),
) -> Result<HammerReport, Box<dyn std::error::Error + Send + Sync>> {
    let within = |what, number, limit| {
        if (1..=limit).contains(&number) {
            Ok(())
        } else {
            Err(format!("{what}: 1 to {limit}, not {number}"))
        }
    };
    within("writers", options.writers as u64, HAMMER_WRITERS_MAX as u64)?;
    within("readers", options.readers as u64, HAMMER_READERS_MAX as u64)?;
    within("events", options.goal, HAMMER_GOAL_MAX)?;
    if options.folder.join("ledger.db").exists() {
        return Err(
            format!("`{}` has a store already; name an empty folder", options.folder.display()).into()
        );
    }
    let open = OpenOptions { origin: Some(ORIGIN.to_owned()), ..OpenOptions::default() };
    let ledger = SqliteLedger::open(&options.folder, open)?;
    let places = LogPlaces::beside(&options.folder);
    // Makes the keys of the log, which readers are given, and a first checkpoint.
    crate::log::Log::open(&places)?.round()?;
    let key = verifier_key(&places)?;
    let problems: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut probe = Probe::new(&options.folder)?;
    let (append_alone, fdatasync_alone) = writer::alone(&ledger, &mut probe)?;
    let log = {
        let problems = Arc::clone(&problems);
        let told = move |round: Result<_, &crate::log::LogError>| {
            if let Err(error) = round {
                problem(&problems, format!("the log: {error}"));
            }
        };
        LogThread::start(places.clone(), told, |_| Ok(()))?
    };
    let leaves_before = LogReader::open(&places)?.status()?.size;
    let transactions_before = ledger.stats().transactions;
    let shared = Shared::new(&ledger, places.clone(), key.clone(), options);
    let load = std::thread::scope(|scope| load(scope, &shared, options, &problems, probe, told));
    let events = shared.events.into_inner();
    let transactions = ledger.stats().transactions - transactions_before;
    drop(log);
    drop(ledger);
    let checking = Instant::now();
    check_all(&places, &key, &problems);
    let check_seconds = checking.elapsed().as_secs_f64();
    let problems = lock(&problems).clone();
    let leaves = LogReader::open(&places)?.status()?.size;
    let (append, fdatasync) = (load.append.spread(), load.disk.spread());
    let (append_alone, fdatasync_alone) = (append_alone.spread(), fdatasync_alone.spread());
    let a_second = |count: u64| count as f64 / load.seconds.max(f64::EPSILON);
    Ok(HammerReport {
        writers: options.writers,
        readers: options.readers,
        goal: options.goal,
        passed: problems.is_empty() && events >= options.goal,
        events,
        transactions,
        seconds: load.seconds,
        events_per_second: a_second(events),
        append,
        fdatasync,
        append_over_fdatasync: append.over(fdatasync),
        append_alone,
        fdatasync_alone,
        append_alone_over_fdatasync: append_alone.over(fdatasync_alone),
        close_to_proof: load.proofs.spread(),
        leaves,
        leaves_per_second: a_second(leaves.saturating_sub(leaves_before)),
        reads: load.reads,
        check_seconds,
        problems,
    })
}

/// The results of the load.
struct Load {
    seconds: f64,
    append: Times,
    disk: Times,
    proofs: Times,
    reads: HammerReads,
}

fn load<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    options: &HammerOptions,
    problems: &Mutex<Vec<String>>,
    probe: Probe,
    told: &mut dyn FnMut(HammerProgress),
) -> Load {
    let writers: Vec<_> = (0..shared.slots())
        .map(|slot| {
            scope.spawn(move || {
                let times = writer::write(shared, slot);
                shared.failed.fetch_or(times.is_err(), Ordering::Relaxed);
                shared.writing.fetch_sub(1, Ordering::AcqRel);
                times
            })
        })
        .collect();
    let readers: Vec<_> = (0..options.readers)
        .map(|_| {
            scope.spawn(move || {
                let reads = reader::read(shared);
                shared.failed.fetch_or(reads.is_err(), Ordering::Relaxed);
                reads
            })
        })
        .collect();
    let observer = scope.spawn(move || {
        let times = observe(shared);
        shared.failed.fetch_or(times.is_err(), Ordering::Relaxed);
        shared.observed.store(true, Ordering::Release);
        times
    });
    let disk = scope.spawn(move || time_disk(shared, probe));
    let mut seconds = None;
    loop {
        let writing = shared.writing.load(Ordering::Acquire) > 0;
        if !writing {
            seconds.get_or_insert(shared.start.elapsed().as_secs_f64());
        }
        told(HammerProgress {
            events: shared.events.load(Ordering::Relaxed),
            closed: shared.closed_runs.load(Ordering::Relaxed),
            verified: shared.verified_runs.load(Ordering::Relaxed),
        });
        if !writing && readers.iter().all(ScopedJoinHandle::is_finished) {
            break;
        }
        // Not longer than it matters to the time of the writing.
        std::thread::sleep(if writing { PROGRESS_EVERY / 10 } else { PROGRESS_EVERY });
    }
    let mut load = Load {
        seconds: seconds.unwrap_or_else(|| shared.start.elapsed().as_secs_f64()),
        append: Times::default(),
        disk: joined(disk, problems).unwrap_or_default(),
        proofs: joined(observer, problems).unwrap_or_default(),
        reads: HammerReads::default(),
    };
    writers.into_iter().filter_map(|writer| joined(writer, problems)).for_each(|t| load.append.extend(t));
    readers.into_iter().filter_map(|reader| joined(reader, problems)).for_each(|r| load.reads.add(r));
    load
}

fn joined<T>(handle: ScopedJoinHandle<'_, Result<T, String>>, problems: &Mutex<Vec<String>>) -> Option<T> {
    match handle.join() {
        Ok(Ok(done)) => Some(done),
        Ok(Err(error)) => {
            problem(problems, error);
            None
        }
        Err(_) => {
            problem(problems, "a thread ended before its time".to_owned());
            None
        }
    }
}

fn problem(problems: &Mutex<Vec<String>>, text: String) {
    let mut problems = lock(problems);
    if problems.len() < PROBLEMS_MAX {
        problems.push(text);
    }
}

/// Waits for the proofs of runs that were closed; how long each took.
fn observe(shared: &Shared<'_>) -> Result<Times, String> {
    let told = |error: &dyn std::fmt::Display| format!("waiting for proofs: {error}");
    let log = LogReader::open(&shared.places).map_err(|error| told(&error))?;
    let mut times = Times::default();
    let (mut waiting, mut size) = (VecDeque::new(), 0);
    loop {
        let writing = shared.writing.load(Ordering::Acquire) > 0;
        let mut new = std::mem::take(&mut *lock(&shared.closed));
        let published = shared.places.published().map_err(|error| told(&error))?;
        let published = published.map_or(0, |(_, checkpoint)| checkpoint.size());
        if published != size || !new.is_empty() {
            size = published;
            waiting.append(&mut new);
            let mut still = VecDeque::new();
            for closed in waiting {
                let Closed { head, at } = &closed;
                if log.is_settled(head.run, &[(head.segment, true)]).map_err(|error| told(&error))? {
                    times.push(at.elapsed());
                    lock(&shared.proven).push_back(closed);
                } else {
                    still.push_back(closed);
                }
            }
            waiting = still;
        }
        if (!writing && waiting.is_empty()) || shared.failed.load(Ordering::Relaxed) {
            return Ok(times);
        }
        if Instant::now() > shared.deadline + DRAIN_MAX {
            return Err(told(&format!("{} runs have none {DRAIN_MAX:?} after the writing", waiting.len())));
        }
        std::thread::sleep(OBSERVE_EVERY);
    }
}

/// Times the disk by itself while others write.
fn time_disk(shared: &Shared<'_>, mut probe: Probe) -> Result<Times, String> {
    let mut times = Times::default();
    while shared.writing.load(Ordering::Acquire) > 0 {
        times.push(probe.time().map_err(|error| format!("timing the disk: {error}"))?);
        std::thread::sleep(PROBE_EVERY);
    }
    Ok(times)
}

/// Derives the whole store and the whole log again.
fn check_all(places: &LogPlaces, key: &VerifierKey, problems: &Mutex<Vec<String>>) {
    match places.store.reader().and_then(|reader| reader.integrity_check()) {
        Ok(found) => found.problems.into_iter().for_each(|text| problem(problems, format!("store: {text}"))),
        Err(error) => problem(problems, format!("store: {error}")),
    }
    match check(places, key) {
        Ok(found) => {
            found.problems.into_iter().for_each(|text| problem(problems, format!("log: {text}")));
            if found.open > 0 {
                problem(problems, format!("log: {} segments have no end in it", found.open));
            }
        }
        Err(error) => problem(problems, format!("log: {error}")),
    }
}

/// Numbers for ids and places: SplitMix64 (Steele, Lea and Flood 2014), begun by the system's random source.
struct Random(u64);

impl Random {
    fn new() -> Result<Random, String> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| format!("the system's random source: {error}"))?;
        Ok(Random(u64::from_le_bytes(seed)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            let next = self.next().to_le_bytes();
            chunk.iter_mut().zip(next).for_each(|(byte, random)| *byte = random);
        }
        bytes
    }
}
