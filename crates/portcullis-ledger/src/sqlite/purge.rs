//! What follows an erasure: no file of the store may hold what was overwritten.
//!
//! ```text
//! rows overwritten ─> index of approvals written again ─> small store: built again (VACUUM) ─> write-ahead log cut
//! ```
//!
//! Building again locks out everybody who writes for as long as it takes, and a decision that cannot be recorded within
//! the busy timeout is a refusal. So it is done by itself only where that is a matter of a moment; a large store keeps
//! its size, its free pages are filled again by what comes, and someone may have it compacted while nobody writes.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::erasure::Erased;
use crate::error::{LedgerError, Refusal};
use crate::sqlite::erase::SqliteEraser;
use crate::sqlite::lock;
use crate::sqlite::schema::{NO_COPIES, TO_SCRUB, unsigned};

/// A database with at most so many bytes in use is built again after each erasure.
pub const COMPACT_BYTES_MAX: u64 = 64 << 20;
/// The most bytes of the index of approvals that are written again in one transaction: 0.1 s or so.
const APPROVALS_BYTES_MAX: i64 = 16 << 20;
/// What a row of it takes besides scope, note and tool.
const APPROVAL_BYTES: i64 = 256;
/// Overwritten rows that are deleted in one transaction.
const DELETED_MAX: i64 = 4_096;
/// How long one try to truncate the log waits for readers. Writers are blocked for this long.
const CUT_WAIT: Duration = Duration::from_millis(50);
/// The pause between two tries.
const CUT_PAUSE: Duration = Duration::from_millis(150);

impl SqliteEraser {
    /// Removes what was overwritten from the files, and records the progress in `erased`. Also completes earlier
    /// erasures.
    pub(crate) fn purge(&self, erased: &mut Erased) -> Result<(), LedgerError> {
        let small = self.bytes_in_use()? <= COMPACT_BYTES_MAX;
        let rebuilt = small && self.rebuild()?;
        if !rebuilt {
            self.tried(scrub_approvals(&self.connection))?;
        }
        erased.needs_compaction = self.may_hold_copies()?;
        erased.purged = self.cut_log()? && !erased.needs_compaction;
        erased.free_bytes = self.bytes_free()?;
        Ok(())
    }

    /// Builds the database again without what was erased, and gives the space back. Refuses a store of more than
    /// [`COMPACT_BYTES_MAX`] while other processes write to it: they would time out. Reports its progress as
    /// [`SqliteEraser::erase`] does.
    pub fn compact(&mut self, erased: &mut Erased) -> Result<(), LedgerError> {
        let writers = lock::living(&self.store.writers)?;
        if writers > 0 && self.bytes_in_use()? > COMPACT_BYTES_MAX {
            return Err(Refusal::WritersAtWork { writers }.into());
        }
        let rebuilt = self.rebuild()?;
        erased.needs_compaction = self.may_hold_copies()?;
        erased.purged = rebuilt && self.cut_log()? && !erased.needs_compaction;
        erased.free_bytes = self.bytes_free()?;
        Ok(())
    }

    /// Deletes the rows that were overwritten and builds the database again; whether it could.
    fn rebuild(&self) -> Result<bool, LedgerError> {
        let rebuilt = (|| {
            // Until it is built again, the rows that move together may leave copies.
            self.connection.execute("DELETE FROM meta WHERE key = ?1", [NO_COPIES])?;
            delete_overwritten(&self.connection)?;
            let scrubbed = to_scrub(&self.connection)?;
            self.connection.execute_batch("VACUUM")?;
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            transaction.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, 'it was built anew')",
                [NO_COPIES],
            )?;
            // Not what someone else blanked after it was built again.
            transaction
                .execute("DELETE FROM meta WHERE key = ?1 AND value = ?2", params![TO_SCRUB, scrubbed])?;
            transaction.commit()
        })();
        self.tried(rebuilt).map(|rebuilt| rebuilt.is_some())
    }

    /// Copies the write-ahead log into the database and cuts it to nothing; whether it could. What can be copied
    /// beside writers is copied beside them. The rest needs a moment without readers. It is tried many times for a
    /// short time, since writers are blocked meanwhile.
    fn cut_log(&self) -> Result<bool, LedgerError> {
        let begun = Instant::now();
        let cut = loop {
            let passive = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            self.tried(passive)?;
            let tried = (|| {
                self.connection.busy_timeout(CUT_WAIT)?;
                // The first column says whether a reader or writer was in the way.
                self.connection
                    .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
            })();
            if self.tried(tried)?.unwrap_or(false) {
                break true;
            }
            if begun.elapsed() >= self.store.busy_timeout {
                break false;
            }
            std::thread::sleep(CUT_PAUSE);
        };
        self.connection.busy_timeout(self.store.busy_timeout).map_err(|error| self.store.error(&error))?;
        Ok(cut)
    }

    /// `None` if something else holds the store, or the disk is full: what was overwritten is so durably, and the
    /// rest is still to be done.
    fn tried<T>(&self, result: rusqlite::Result<T>) -> Result<Option<T>, LedgerError> {
        match result.map_err(|error| self.store.error(&error)) {
            Ok(value) => Ok(Some(value)),
            Err(LedgerError::Locked { .. } | LedgerError::DiskFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether pages may hold copies of what was erased: of rows that moved, or of approvals.
    fn may_hold_copies(&self) -> Result<bool, LedgerError> {
        self.connection
            .query_row(
                "SELECT NOT EXISTS (SELECT 1 FROM meta WHERE key = ?1) OR EXISTS (SELECT 1 FROM meta WHERE key = ?2)",
                [NO_COPIES, TO_SCRUB],
                |row| row.get(0),
            )
            .map_err(|error| self.store.error(&error))
    }

    fn bytes_in_use(&self) -> Result<u64, LedgerError> {
        let pages = self.number("page_count")?.saturating_sub(self.number("freelist_count")?);
        Ok(pages.saturating_mul(self.number("page_size")?))
    }

    fn bytes_free(&self) -> Result<u64, LedgerError> {
        Ok(self.number("freelist_count")?.saturating_mul(self.number("page_size")?))
    }

    fn number(&self, pragma: &str) -> Result<u64, LedgerError> {
        self.connection
            .pragma_query_value(None, pragma, |row| row.get(0).map(unsigned))
            .map_err(|error| self.store.error(&error))
    }
}

/// Deletes the rows that were overwritten.
fn delete_overwritten(connection: &Connection) -> rusqlite::Result<()> {
    let mut after = i64::MIN;
    loop {
        let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let numbers: Vec<i64> = transaction
            .prepare_cached(
                "SELECT number FROM payloads WHERE number > ?1 AND salt = zeroblob(32) ORDER BY number LIMIT ?2",
            )?
            .query_map([after, DELETED_MAX], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let Some(last) = numbers.last() else { return Ok(()) };
        after = *last;
        for number in &numbers {
            transaction.prepare_cached("DELETE FROM payloads WHERE number = ?1")?.execute([number])?;
        }
        transaction.commit()?;
    }
}

/// The mark that the index of approvals is still to be written again.
fn to_scrub(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM meta WHERE key = ?1", [TO_SCRUB], |row| row.get(0)).optional()
}

/// Writes the index of approvals again where that is still to be done: its rows change their length, so that they
/// move, and pages may hold copies of what was in them. The table is emptied as a whole, which overwrites its pages,
/// and filled again in order, which moves nothing. One that is too long for that keeps its mark.
fn scrub_approvals(connection: &Connection) -> rusqlite::Result<()> {
    if to_scrub(connection)?.is_none() {
        return Ok(());
    }
    // So that the rows are in no file meanwhile.
    connection.pragma_update(None, "temp_store", "memory")?;
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let bytes: i64 = transaction.query_row(
        "SELECT coalesce(sum(coalesce(length(scope), 0) + coalesce(length(note), 0) + length(tool) + ?1), 0)
         FROM approvals",
        [APPROVAL_BYTES],
        |row| row.get(0),
    )?;
    if bytes > APPROVALS_BYTES_MAX {
        return Ok(());
    }
    transaction.execute_batch(
        "CREATE TEMP TABLE kept AS SELECT rowid AS place, * FROM main.approvals;
         DELETE FROM main.approvals;",
    )?;
    let columns = "approval, run, action, digest, principal, state, scope, requested, decided, decided_by, tool, policy, proposed, note, rule";
    transaction.execute(
        &format!(
            "INSERT INTO main.approvals (rowid, {columns}) SELECT place, {columns} FROM temp.kept ORDER BY place"
        ),
        params![],
    )?;
    transaction.execute_batch("DROP TABLE temp.kept")?;
    transaction.execute("DELETE FROM meta WHERE key = ?1", [TO_SCRUB])?;
    transaction.commit()
}
