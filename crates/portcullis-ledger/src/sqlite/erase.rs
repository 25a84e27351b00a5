//! Erasure: payloads are deleted with their salts, and a tombstone says so.
//!
//! A commitment without its salt says nothing of what it commits to: it can be neither opened nor tried out. So the
//! chain and every proof over it stay as they are, and the text is gone. Events are never erased. Which payloads go
//! along with those that were asked for, [`crate::sqlite::chosen`] says.
//!
//! A row that is deleted lets SQLite move its neighbours from page to page, and copies of them stay behind, to be found
//! after they were erased themselves. So a row is never deleted here while others are in use: its salt and bytes are
//! overwritten where they lie, which moves nothing, in steps so small that writers get their turn between them.
//! [`crate::sqlite::purge`] does the rest: the write-ahead log is copied and cut to nothing, and a store that is small enough
//! is built again. What was erased is then in no file of the store; blocks that a file system or a disk gave back, and
//! backups, are beyond its reach.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_proof::Hex;
use portcullis_proof::export::SegmentState;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::erasure::{Erased, ErasureRow, Selection, TOMBSTONE_TEXT_BYTES_MAX, Tombstone};
use crate::error::{LedgerError, Refusal};
use crate::sqlite::chosen::{Chosen, chosen};
use crate::sqlite::facts;
use crate::sqlite::ledger::OpenOptions;
use crate::sqlite::read::{SqliteReader, last_segment, run_number};
use crate::sqlite::schema::{Files, TO_SCRUB, unsigned};
use crate::sqlite::taints;

/// A step overwrites at most so many payloads,
const STEP_PAYLOADS_MAX: usize = 256;
/// or, but for the first of them, so many bytes.
const STEP_BYTES_MAX: u64 = 2 << 20;
/// The shortest pause after a step. The pause is at least as long as the step, so that waiting callers get in.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// Erasures of one run that are listed.
const ERASURES_LISTED_MAX: i64 = 1_000;

/// A hand on the store that erases, beside its writers.
#[derive(Debug)]
pub struct SqliteEraser {
    pub(crate) store: Arc<Files>,
    pub(crate) connection: Connection,
}

impl SqliteEraser {
    /// Opens an existing store, and brings it to the present version.
    pub fn open(folder: &Path) -> Result<SqliteEraser, LedgerError> {
        let store = Arc::new(Files::at(folder, OpenOptions::default().busy_timeout, None));
        let connection = store.open_eraser()?;
        Ok(SqliteEraser { store, connection })
    }

    /// Erases payloads. Of a run that is named and in progress nothing is erased, and that is refused; where runs are
    /// chosen otherwise, those in progress are left out and reported. Runs are erased one by one, each in steps of a
    /// transaction: a payload and its tombstone are in one. Where it has to stop after some of them, the files are rid
    /// of those, and [`LedgerError::CutShort`] says how many.
    pub fn erase(&mut self, selection: &Selection, tombstone: &Tombstone) -> Result<Erased, LedgerError> {
        selection.check()?;
        for (what, text) in [("name", Some(&tombstone.by)), ("reason", tombstone.reason.as_ref())] {
            if text.is_some_and(|text| text.len() > TOMBSTONE_TEXT_BYTES_MAX) {
                let message = format!("the {what} has more than {TOMBSTONE_TEXT_BYTES_MAX} bytes");
                return Err(Refusal::Selection(message).into());
            }
        }
        let mut erased = Erased::default();
        for run in self.candidates(selection)? {
            let Err(error) = self.erase_run(run, selection, Some(tombstone), &mut erased) else { continue };
            if erased.payloads == 0 {
                return Err(error);
            }
            // What stopped it is what has to be said, whatever comes of this.
            let purged = self.purge(&mut erased).is_ok() && erased.purged;
            return Err(LedgerError::CutShort { payloads: erased.payloads, purged, error: Box::new(error) });
        }
        self.purge(&mut erased)?;
        Ok(erased)
    }

    /// What [`SqliteEraser::erase`] would do.
    pub fn rehearse(&mut self, selection: &Selection) -> Result<Erased, LedgerError> {
        selection.check()?;
        let mut erased = Erased::default();
        for run in self.candidates(selection)? {
            self.erase_run(run, selection, None, &mut erased)?;
        }
        Ok(erased)
    }

    /// The runs that may fit.
    fn candidates(&self, selection: &Selection) -> Result<Vec<RunId>, LedgerError> {
        if let Some(run) = selection.run {
            let Some((_, principal)) =
                run_number(&self.connection, run).map_err(|error| self.store.error(&error))?
            else {
                return Err(Refusal::RunUnknown(run.to_string()).into());
            };
            let fits = selection.principal.as_ref().is_none_or(|asked| *asked == principal);
            return Ok(fits.then_some(run).into_iter().collect());
        }
        (|| {
            self.connection
                .prepare(
                    "SELECT run FROM runs r WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR opened < ?2)
                     AND EXISTS (SELECT 1 FROM payloads p WHERE p.run = r.number AND p.salt <> zeroblob(32)
                         AND (?3 IS NULL OR p.commitment = ?3))
                     ORDER BY number",
                )?
                .query_map(
                    params![
                        selection.principal,
                        selection.before.map(Timestamp::as_micros),
                        selection.commitment.map(|commitment| *commitment.as_bytes())
                    ],
                    |row| row.get(0).map(RunId::from_bytes),
                )?
                .collect::<rusqlite::Result<_>>()
        })()
        .map_err(|error| self.store.error(&error))
    }

    /// Erases what fits of one run; counts it only, without a tombstone.
    fn erase_run(
        &mut self,
        run: RunId,
        selection: &Selection,
        tombstone: Option<&Tombstone>,
        erased: &mut Erased,
    ) -> Result<(), LedgerError> {
        let store = Arc::clone(&self.store);
        let sqlite = |error: rusqlite::Error| store.error(&error);
        let transaction = self.connection.transaction().map_err(sqlite)?;
        let Some((number, _)) = run_number(&transaction, run).map_err(sqlite)? else { return Ok(()) };
        let chosen = chosen(&transaction, number, selection, erased).map_err(sqlite)?;
        drop(transaction);
        for (place, step) in steps(&chosen).enumerate() {
            let start = Instant::now();
            let behavior = match tombstone {
                Some(_) => TransactionBehavior::Immediate,
                None => TransactionBehavior::Deferred,
            };
            let transaction = self.connection.transaction_with_behavior(behavior).map_err(sqlite)?;
            // Between two steps it may have been taken up again.
            let last = last_segment(&transaction, number).map_err(sqlite)?;
            if last.is_some_and(|last| last.state == SegmentState::Open) {
                if selection.run.is_some() {
                    return Err(Refusal::RunInProgress(run).into());
                }
                erased.in_progress.push(run);
                return Ok(());
            }
            if let Some(tombstone) = tombstone {
                bury(step, &transaction, number, tombstone).map_err(sqlite)?;
                transaction.commit().map_err(sqlite)?;
                std::thread::sleep(start.elapsed().max(PAUSE_MIN));
            }
            if place == 0 {
                erased.runs.push(run);
            }
            erased.payloads += step.len() as u64;
            erased.bytes += step.iter().map(|payload| payload.bytes).sum::<u64>();
        }
        Ok(())
    }
}

/// What is overwritten in one transaction each.
fn steps(chosen: &[Chosen]) -> impl Iterator<Item = &[Chosen]> {
    let mut rest = chosen;
    std::iter::from_fn(move || {
        let (mut length, mut bytes) = (0, 0);
        for payload in rest.iter().take(STEP_PAYLOADS_MAX) {
            bytes += payload.bytes;
            if length > 0 && bytes > STEP_BYTES_MAX {
                break;
            }
            length += 1;
        }
        let (step, after) = rest.split_at_checked(length)?;
        rest = after;
        (!step.is_empty()).then_some(step)
    })
}

/// Overwrites payloads, blanks what the indexes of approvals and taints took from them, and writes the tombstones. If that index
/// was changed, the store is marked, so that the next erasure knows it if this one is interrupted.
fn bury(
    step: &[Chosen],
    transaction: &Transaction<'_>,
    run: i64,
    tombstone: &Tombstone,
) -> rusqlite::Result<()> {
    // A row that becomes shorter stays in its place, and so do its neighbours.
    let mut overwrite = transaction.prepare_cached(
        "UPDATE payloads SET salt = zeroblob(32), media_type = '', bytes = zeroblob(0) WHERE number = ?1",
    )?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO erasures (run, commitment, at, erased_by, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    // A grant for effects that names none.
    let mut scope = transaction.prepare_cached(
        "UPDATE approvals
         SET scope = CASE WHEN scope LIKE '{\"pattern\"%' THEN '{\"pattern\":[]}' ELSE '{\"effects\":[]}' END
         WHERE run = ?1 AND action = ?2 AND (scope LIKE '{\"effects\"%' OR scope LIKE '{\"pattern\"%')",
    )?;
    let Tombstone { at, by, reason } = tombstone;
    let mut changed = 0;
    for payload in step {
        overwrite.execute([payload.number])?;
        insert.execute(params![run, payload.commitment, at.as_micros(), by, reason])?;
        taints::blank(transaction, run, &payload.commitment)?;
        facts::blank(transaction, run, &payload.commitment)?;
        for action in &payload.actions {
            changed += scope.execute(params![run, action.as_bytes()])?;
        }
    }
    if changed > 0 {
        transaction.execute(
            "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, CAST(max(number) AS TEXT) FROM erasures",
            [TO_SCRUB],
        )?;
    }
    Ok(())
}

impl SqliteReader {
    /// What was erased of a run, in order, at most 1,000 times.
    pub fn erasures(&self, run: RunId) -> Result<Vec<ErasureRow>, LedgerError> {
        if !self.has_erasures()? {
            return Ok(Vec::new());
        }
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT e.at, e.erased_by, e.reason, count(*) FROM erasures e JOIN runs r ON r.number = e.run
                     WHERE r.run = ?1 GROUP BY e.at, e.erased_by, e.reason ORDER BY e.at LIMIT ?2",
                )?
                .query_map(params![run.as_bytes(), ERASURES_LISTED_MAX], |row| {
                    Ok(ErasureRow {
                        at: Timestamp::from_micros(row.get(0)?),
                        by: row.get(1)?,
                        reason: row.get(2)?,
                        payloads: unsigned(row.get(3)?),
                    })
                })?
                .collect()
        })
    }

    /// The commitments of a run whose payloads were erased, in order.
    pub(crate) fn erased_commitments(&self, run: i64) -> Result<Vec<portcullis_proof::Digest>, LedgerError> {
        if !self.has_erasures()? {
            return Ok(Vec::new());
        }
        self.query(|connection| {
            connection
                .prepare_cached("SELECT commitment FROM erasures WHERE run = ?1 ORDER BY commitment")?
                .query_map([run], |row| row.get(0).map(Hex))?
                .collect()
        })
    }

    /// A store of version 1 that was not written to since has none.
    pub(crate) fn has_erasures(&self) -> Result<bool, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'erasures')")?
                .query_row([], |row| row.get(0))
        })
    }
}
