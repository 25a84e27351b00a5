//! Whether the store has what its log has of it: an older copy of the one beside the newer other has not.
//!
//! The log is made of committed events, so it is never ahead of its own store.

use portcullis_core::id::RunId;
use portcullis_proof::Id;
use rusqlite::{OptionalExtension as _, params};

use super::database::{Database, LoggedSegment};
use super::error::LogError;
use super::folder::LogPlaces;
use crate::read::Reader;
use crate::schema::{event_key, key_seq, unsigned};

/// The newest leaves whose segments are looked for.
const LEAVES_LOOKED_AT: usize = 1024;

/// Compares the store with the segments of the newest leaves of its log, and with those whose end the log has not
/// seen. Only reads; without a store or a log, there is nothing to compare.
///
/// # Errors
/// [`LogError::LedgerBehind`] if the store does not have a segment or events that the log has; other errors if either
/// cannot be read.
pub fn check_standing(places: &LogPlaces) -> Result<(), LogError> {
    if !places.ledger.join("ledger.db").exists() {
        return Ok(());
    }
    let Some(database) = Database::open(places, false)? else { return Ok(()) };
    let mut logged = database.newest_segments(LEAVES_LOOKED_AT)?;
    if logged.is_empty() {
        return Ok(());
    }
    logged.extend(database.open_segments()?);
    let ledger = Reader::open(&places.ledger)?;
    logged.iter().try_for_each(|(segment, logged)| stands(&ledger, *segment, logged))
}

fn stands(ledger: &Reader, segment: Id, logged: &LoggedSegment) -> Result<(), LogError> {
    let stored: Option<u64> = ledger.query(|connection| {
        let row: Option<(i64, i64)> = connection
            .prepare_cached("SELECT run, after FROM segments WHERE segment = ?1")?
            .query_row([segment.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((run, after)) = row else { return Ok(None) };
        let last: Option<i64> = connection
            .prepare_cached("SELECT max(key) FROM events WHERE key BETWEEN ?1 AND ?2")?
            .query_row(params![event_key(run, 0), event_key(run, u64::MAX)], |row| row.get(0))?;
        Ok(Some(last.map_or(0, key_seq).max(unsigned(after))))
    })?;
    match stored {
        Some(stored) if stored >= logged.count => Ok(()),
        stored => Err(LogError::LedgerBehind {
            run: RunId::from_bytes(logged.run.0),
            logged: logged.count,
            stored: stored.unwrap_or(0),
        }),
    }
}
