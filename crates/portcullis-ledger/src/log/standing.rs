//! Whether the store has what its log has of it: an older copy of the one beside the newer other has not.
//!
//! The log is made of committed events, so it is never ahead of its own store.

use portcullis_core::id::RunId;
use portcullis_proof::Id;

use super::database::{Database, LoggedSegment};
use super::error::LogError;
use super::folder::LogPlaces;
use super::heads::segment_id;
use crate::ledger::Reader;

/// The newest leaves whose segments are looked for.
const LEAVES_LOOKED_AT: usize = 1024;

/// Compares the store with the segments of the newest leaves of its log, and with those whose end the log has not
/// seen. Only reads; without a store or a log, there is nothing to compare.
///
/// # Errors
/// [`LogError::LedgerBehind`] if the store does not have a segment or events that the log has; other errors if either
/// cannot be read.
pub fn check_standing(places: &LogPlaces) -> Result<(), LogError> {
    if !places.store.exists() {
        return Ok(());
    }
    let Some(database) = Database::open(places, false)? else { return Ok(()) };
    let mut logged = database.newest_segments(LEAVES_LOOKED_AT)?;
    if logged.is_empty() {
        return Ok(());
    }
    logged.extend(database.open_segments()?);
    let ledger = places.store.reader()?;
    logged.iter().try_for_each(|(segment, logged)| stands(ledger.as_ref(), *segment, logged))
}

fn stands(ledger: &dyn Reader, segment: Id, logged: &LoggedSegment) -> Result<(), LogError> {
    let stored = ledger.last_event_of(segment_id(segment))?;
    match stored {
        Some(stored) if stored >= logged.count => Ok(()),
        stored => Err(LogError::LedgerBehind {
            run: RunId::from_bytes(logged.run.0),
            logged: logged.count,
            stored: stored.unwrap_or(0),
        }),
    }
}
