//! Room in the write-ahead log, made before it is needed.
//!
//! A commit waits for the disk twice where it makes the file longer: for its pages, and for the file system's own
//! note of the new length. Pages that are written over wait once, in about half the time. SQLite begins its log again
//! once all of it is copied into the database, so a log that once was long enough stays long enough. A process that
//! writes for long therefore makes it so at its beginning: it writes pages and takes them back.

use rusqlite::{Connection, TransactionBehavior};

/// How long the log is made. Between two copies that find everything written it grows to no more than this unless
/// writers wait in line, and then they share the waiting.
pub(crate) const ROOM_BYTES: u64 = 16 << 20;
/// Transactions after which a process is taken for one that writes for long.
pub(crate) const WORTH_AFTER: u64 = 64;

/// Makes the log longer by pages that are then taken back: nothing of the store is changed. Only what does not fit
/// into the connection's cache reaches the file, so this writes more than [`ROOM_BYTES`].
pub(crate) fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch("CREATE TABLE room (bytes BLOB)")?;
    for _ in 0..(ROOM_BYTES >> 20) + 3 {
        transaction.execute("INSERT INTO room VALUES (zeroblob(1 << 20))", [])?;
    }
    transaction.rollback()
}
