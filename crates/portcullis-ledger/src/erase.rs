//! Erasure: payloads are deleted with their salts, and a tombstone says so.
//!
//! A commitment without its salt says nothing of what it commits to: it can be neither opened nor tried out. So the
//! chain and every proof over it stay as they are, and the text is gone. Events are never erased.
//!
//! Deleting a row leaves its bytes in free pages, in the write-ahead log, and in copies that were made when pages were
//! split. So after the deletion the database is built anew from what is left (`VACUUM`), and the log is copied and cut
//! to nothing. What was erased is then in no file of the store; blocks that a file system or a disk gave back, and
//! backups, are beyond its reach.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use portcullis_core::event::Event;
use portcullis_core::id::{Commitment, RunId};
use portcullis_core::time::Timestamp;
use portcullis_proof::Hex;
use portcullis_proof::export::SegmentState;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::error::{LedgerError, Refusal};
use crate::ledger::OpenOptions;
use crate::read::{Reader, last_segment, run_number};
use crate::schema::{Store, event_key, key_seq, unsigned};

/// The longest name and the longest reason of a tombstone, in bytes.
pub const TOMBSTONE_TEXT_BYTES_MAX: usize = 1_024;
/// The shortest text that payloads can be chosen by, in bytes: a shorter one would be found everywhere.
pub const CONTAINS_BYTES_MIN: usize = 3;
/// Erasures of one run that are listed.
const ERASURES_LISTED_MAX: i64 = 1_000;

/// Which payloads to erase: those that fit everything that is given. At least one of run, commitment, text, principal
/// and time must be.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this event; needs a run.
    pub event: Option<u64>,
    /// Only those that their events call so: `arguments`, `text`, `content`, ...
    pub name: Option<String>,
    /// Only this one.
    pub commitment: Option<Commitment>,
    /// Only those that hold this text, as it is or as it stands in JSON.
    pub contains: Option<String>,
    /// Only of runs of this principal.
    pub principal: Option<String>,
    /// Only of events before this time.
    pub before: Option<Timestamp>,
}

/// What a tombstone says besides the commitment.
#[derive(Debug, Clone)]
pub struct Tombstone {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// What was erased, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    /// Payloads.
    pub payloads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The runs they belong to.
    pub runs: Vec<RunId>,
    /// Runs that fit and are in progress: nothing of them was erased.
    pub in_progress: Vec<RunId>,
    /// Events of the runs that were looked at whose lines hold the text that was asked for. They stay.
    pub lines_with_text: u64,
    /// Whether the files were rid of the bytes. False after a dry run, and while another program reads or writes the
    /// store for longer than the busy timeout; erasing again tries again.
    pub purged: bool,
}

/// Payloads of a run that were erased together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRow {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// How many.
    pub payloads: u64,
}

/// A hand on the store that erases, beside its writers.
#[derive(Debug)]
pub struct Eraser {
    store: Arc<Store>,
    connection: Connection,
}

impl Selection {
    /// Refuses a selection that cannot be meant.
    fn check(&self) -> Result<(), Refusal> {
        let narrowed = self.run.is_some()
            || self.commitment.is_some()
            || self.contains.is_some()
            || self.principal.is_some()
            || self.before.is_some();
        let refuse = |message: &str| Err(Refusal::Selection(message.to_owned()));
        if !narrowed {
            return refuse("name a run, a commitment, a text, a principal or a time");
        }
        if self.event.is_some() && self.run.is_none() {
            return refuse("an event is one of a run; name the run");
        }
        match &self.contains {
            Some(text) if text.len() < CONTAINS_BYTES_MIN => {
                refuse("a text of less than three bytes is found everywhere; give a longer one")
            }
            _ => Ok(()),
        }
    }
}

impl Eraser {
    /// Opens an existing store, and brings it to the present version.
    pub fn open(folder: &Path) -> Result<Eraser, LedgerError> {
        let store = Arc::new(Store::at(folder, OpenOptions::default().busy_timeout, None));
        let connection = store.open_eraser()?;
        Ok(Eraser { store, connection })
    }

    /// Erases payloads. Of a run that is named and in progress nothing is erased, and that is refused; where runs are
    /// chosen otherwise, those in progress are left out and reported. Runs are erased one by one, each in one
    /// transaction.
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
            self.erase_run(run, selection, Some(tombstone), &mut erased)?;
        }
        erased.purged = self.purge()?;
        Ok(erased)
    }

    /// What [`Eraser::erase`] would do.
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
                     AND EXISTS (SELECT 1 FROM payloads p WHERE p.run = r.number
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
        let behavior = match tombstone {
            Some(_) => TransactionBehavior::Immediate,
            None => TransactionBehavior::Deferred,
        };
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(sqlite)?;
        let Some((number, _)) = run_number(&transaction, run).map_err(sqlite)? else { return Ok(()) };
        let chosen = Chosen::of(&transaction, number, selection, erased).map_err(sqlite)?;
        if chosen.payloads.is_empty() {
            return Ok(());
        }
        let last = last_segment(&transaction, number).map_err(sqlite)?;
        if last.is_some_and(|last| last.state == SegmentState::Open) {
            if selection.run.is_some() {
                return Err(Refusal::RunInProgress(run).into());
            }
            erased.in_progress.push(run);
            return Ok(());
        }
        erased.payloads += chosen.payloads.len() as u64;
        erased.bytes += chosen.bytes;
        erased.runs.push(run);
        if let Some(tombstone) = tombstone {
            chosen.bury(&transaction, number, tombstone).map_err(sqlite)?;
            transaction.commit().map_err(sqlite)?;
        }
        Ok(())
    }

    /// Rids the files of what was deleted; whether it could.
    fn purge(&self) -> Result<bool, LedgerError> {
        let purged = self.connection.execute_batch("VACUUM").and_then(|()| {
            // The first column says whether a reader or writer was in the way.
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        });
        match purged.map_err(|error| self.store.error(&error)) {
            Ok(busy) => Ok(busy == 0),
            // The rows are deleted, durably; only the rest is still to be done.
            Err(LedgerError::Locked { .. } | LedgerError::DiskFull { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The payloads of one run that fit.
#[derive(Default)]
struct Chosen {
    /// Their numbers in the store, by commitment.
    payloads: BTreeMap<[u8; 32], i64>,
    bytes: u64,
    /// The events that name them.
    named_by: BTreeSet<u64>,
}

impl Chosen {
    fn of(
        transaction: &Transaction<'_>,
        run: i64,
        selection: &Selection,
        erased: &mut Erased,
    ) -> rusqlite::Result<Chosen> {
        let wanted = Wanted::new(selection);
        let named = wanted.events(transaction, run, erased)?;
        let mut statement =
            transaction.prepare("SELECT number, commitment, bytes FROM payloads WHERE run = ?1")?;
        let mut rows = statement.query([run])?;
        let mut chosen = Chosen::default();
        while let Some(row) = rows.next()? {
            let commitment: [u8; 32] = row.get(1)?;
            let Some(events) = named.get(&commitment) else { continue };
            let bytes = row.get_ref(2)?.as_blob()?;
            if !wanted.text_in(bytes) {
                continue;
            }
            chosen.payloads.insert(commitment, row.get(0)?);
            chosen.bytes += bytes.len() as u64;
            chosen.named_by.extend(events);
        }
        Ok(chosen)
    }

    /// Deletes the payloads, and what the index of approvals took from them, and writes the tombstones.
    fn bury(&self, transaction: &Transaction<'_>, run: i64, tombstone: &Tombstone) -> rusqlite::Result<()> {
        let mut delete = transaction.prepare_cached("DELETE FROM payloads WHERE number = ?1")?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO erasures (run, commitment, at, erased_by, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for (commitment, number) in &self.payloads {
            delete.execute([number])?;
            let Tombstone { at, by, reason } = tombstone;
            insert.execute(params![run, commitment, at.as_micros(), by, reason])?;
        }
        let mut approvals = transaction.prepare_cached(
            "UPDATE approvals SET detail = json_remove(detail, '$.effects')
             WHERE run = ?1 AND json_valid(detail) AND json_extract(detail, '$.proposed') = ?2",
        )?;
        for seq in &self.named_by {
            approvals.execute(params![run, i64::try_from(*seq).unwrap_or(i64::MAX)])?;
        }
        Ok(())
    }
}

/// A selection, made ready for comparing.
struct Wanted<'s> {
    selection: &'s Selection,
    /// The text as it is, and as it stands in JSON where that differs.
    texts: Vec<Vec<u8>>,
}

impl<'s> Wanted<'s> {
    fn new(selection: &'s Selection) -> Self {
        let mut texts = Vec::new();
        if let Some(text) = &selection.contains {
            texts.push(text.as_bytes().to_vec());
            let quoted = serde_json::Value::from(text.as_str()).to_string();
            let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            texts.extend(escaped.filter(|escaped| escaped != text).map(|text| text.as_bytes().to_vec()));
        }
        Wanted { selection, texts }
    }

    fn text_in(&self, bytes: &[u8]) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|text| contains(bytes, text))
    }

    /// The events of a run that fit, by the commitments they name.
    fn events(
        &self,
        transaction: &Transaction<'_>,
        run: i64,
        erased: &mut Erased,
    ) -> rusqlite::Result<HashMap<[u8; 32], Vec<u64>>> {
        let Selection { event, name, commitment, before, .. } = self.selection;
        let mut statement = transaction
            .prepare("SELECT key, t, line FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
        let mut rows = statement.query(params![event_key(run, 0), event_key(run, u64::MAX)])?;
        let mut named: HashMap<[u8; 32], Vec<u64>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let seq = key_seq(row.get(0)?);
            let at = Timestamp::from_micros(row.get(1)?);
            let line = row.get_ref(2)?.as_blob()?;
            if !self.texts.is_empty() && self.text_in(line) {
                erased.lines_with_text += 1;
            }
            let fits = event.is_none_or(|event| event == seq) && before.is_none_or(|before| at < before);
            // A line that cannot be read names nothing that could be chosen; `doctor` reports it.
            let Some(event) = fits.then(|| Event::from_line(line).ok()).flatten() else { continue };
            for (called, payload) in &event.payloads {
                let fits = name.as_ref().is_none_or(|name| name == called)
                    && commitment.is_none_or(|commitment| commitment == payload.commitment);
                if fits {
                    named.entry(*payload.commitment.as_bytes()).or_default().push(seq);
                }
            }
        }
        Ok(named)
    }
}

/// Whether `text` stands in `bytes`. Looks for its first byte, and compares there.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(text) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

impl Reader {
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

    /// A store of version 1 that nobody has written since has none.
    pub(crate) fn has_erasures(&self) -> Result<bool, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'erasures')")?
                .query_row([], |row| row.get(0))
        })
    }
}
