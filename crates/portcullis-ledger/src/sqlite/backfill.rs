//! Summaries of runs that an earlier release wrote.
//!
//! A store that is migrated has no summaries, and computing them reads every event: too much for opening it. So the
//! migration notes how far the work has to go, and a thread does it beside the writer, the newest runs first. Events are
//! read without a lock; a few summaries are then written in a short transaction, each only if the run still has the events
//! that were read. A process that ends meanwhile leaves the rest to the next one.
//!
//! A run that somebody is writing is left out: its next commit writes its summary, or a later pass does.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::error::LedgerError;
use crate::sqlite::schema::{Files, SUMMARIES_DUE, signed, unsigned};
use crate::sqlite::summaries::{self, Summary};

/// Runs whose summaries are written in one transaction.
const RUNS_MAX: usize = 64;
/// Events after which a batch of runs ends, its last run aside.
const EVENTS_MAX: u64 = 10_000;
/// The pause after each transaction, so that writers get their turn.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread, which ends when its work is done or this is dropped.
pub(crate) struct Backfill {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    ended: Arc<OnceLock<Result<(), LedgerError>>>,
}

impl Backfill {
    /// Starts the thread; none where there is nothing to do.
    pub(crate) fn start(store: &Arc<Files>) -> Result<Option<Backfill>, LedgerError> {
        let reader = store.open_reader()?;
        if due(&reader).map_err(|error| store.error(&error))? == 0 {
            return Ok(None);
        }
        let writer = store.connect()?;
        let (stop, stopped) = sync_channel(0);
        let ended = Arc::new(OnceLock::new());
        let (end, at) = (Arc::clone(&ended), Arc::clone(store));
        let thread = std::thread::Builder::new()
            .name("ledger-backfill".to_owned())
            .spawn(move || {
                // After a failure the next opening of the store tries again; until then lists are slower, not wrong.
                let result = run(&reader, writer, &stopped).map_err(|error| at.error(&error));
                end.get_or_init(|| result);
            })
            .map_err(|error| LedgerError::io(&store.folder, "start the summaries of", &error))?;
        Ok(Some(Backfill { stop: Some(stop), thread: Some(thread), ended }))
    }

    /// How the thread ended, or `None` while it works. A thread that panicked has stopped.
    pub(crate) fn ended(&self) -> Option<Result<(), LedgerError>> {
        // Asked first: what a thread left is there once it has finished.
        let finished = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.ended.get().cloned().or_else(|| finished.then_some(Err(LedgerError::Stopped)))
    }
}

impl Drop for Backfill {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// The highest number of a run that may lack a summary, 0 where none does.
pub(crate) fn due(connection: &Connection) -> rusqlite::Result<u64> {
    let noted: Option<i64> = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?1")?
        .query_row([SUMMARIES_DUE], |row| row.get(0))
        .optional()?;
    Ok(noted.map_or(0, unsigned))
}

fn run(reader: &Connection, mut writer: Connection, stopped: &Receiver<()>) -> rusqlite::Result<()> {
    let highest = due(reader)?;
    let mut next = signed(highest);
    loop {
        let Some((batch, below)) = folded(reader, next, stopped)? else { return Ok(()) };
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (run, summary) in &batch {
            // Whoever took up the run meanwhile has written a newer one.
            if summaries::last_seq(&transaction, *run)? == summary.events
                && summaries::get(&transaction, *run)?.is_none()
            {
                summaries::put(&transaction, *run, summary)?;
            }
        }
        let left = match below {
            0 => being_written(&transaction, signed(highest))?,
            below => Some(below),
        };
        match left {
            Some(left) => transaction.execute(
                "UPDATE meta SET value = CAST(?2 AS TEXT) WHERE key = ?1",
                params![SUMMARIES_DUE, left],
            )?,
            None => transaction.execute("DELETE FROM meta WHERE key = ?1", [SUMMARIES_DUE])?,
        };
        transaction.commit()?;
        if below == 0 {
            return Ok(());
        }
        next = below;
        if stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}

/// Summaries of the next runs, with the highest number that is still to be looked at after them, 0 where that is none;
/// none where the thread is to stop.
#[expect(clippy::type_complexity, reason = "one caller, which takes it apart")]
fn folded(
    reader: &Connection,
    highest: i64,
    stopped: &Receiver<()>,
) -> rusqlite::Result<Option<(Vec<(i64, Summary)>, i64)>> {
    let numbers: Vec<i64> = reader
        .prepare_cached(
            "SELECT r.number FROM runs r WHERE r.number <= ?1
                 AND NOT EXISTS (SELECT 1 FROM summaries m WHERE m.run = r.number)
                 AND NOT EXISTS (SELECT 1 FROM segments s WHERE s.run = r.number AND s.state = 'open')
             ORDER BY r.number DESC LIMIT ?2",
        )?
        .query_map(params![highest, signed(RUNS_MAX as u64)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut below = if numbers.len() < RUNS_MAX { 0 } else { numbers.last().map_or(0, |last| last - 1) };
    let (mut batch, mut events) = (Vec::new(), 0);
    for number in numbers {
        let mut stop = false;
        let summary = summaries::fold(reader, number, || {
            stop = stopped.recv_timeout(Duration::ZERO) != Err(RecvTimeoutError::Timeout);
            stop
        })?;
        if stop {
            return Ok(None);
        }
        events += summary.as_ref().map_or(0, |summary| summary.events);
        batch.extend(summary.map(|summary| (number, summary)));
        if events >= EVENTS_MAX {
            below = number - 1;
            break;
        }
    }
    Ok(Some((batch, below)))
}

/// The highest number of a run without a summary that was left out, since somebody was writing it.
fn being_written(connection: &Connection, highest: i64) -> rusqlite::Result<Option<i64>> {
    connection.query_row(
        "SELECT max(s.run) FROM segments s WHERE s.state = 'open' AND s.run <= ?1
             AND NOT EXISTS (SELECT 1 FROM summaries m WHERE m.run = s.run)",
        [highest],
        |row| row.get(0),
    )
}
