//! A store in a folder: one SQLite database and a writer thread with group commit.
//!
//! The folder holds the database, in which every run is a chain of events (`specs/run-chain.md`), and one lock file for
//! each process that writes. Several processes may share it: SQLite serialises their transactions, and a run segment
//! belongs to exactly one of them. A process that dies leaves its lock free; anyone who opens the store next closes its
//! segments as *abandoned* and never touches those of a living sibling.
//!
//! ```text
//! append ─┐
//! append ─┼─> bounded queue ─> writer thread ─> one transaction ─> fsync ─> every answer
//! append ─┘                         (events, payloads, approvals, taints, facts, summary)
//! ```
//!
//! Read `writer` (group commit) and `recovery`; the rest is queries.

mod approvals;
mod backfill;
mod backup;
mod checkpoint;
mod chosen;
mod counters;
mod doctor;
mod erase;
mod error;
mod export;
mod facts;
mod for_log;
mod freezes;
mod ledger;
mod lock;
mod port;
mod presence;
mod purge;
mod queue;
mod read;
mod recovery;
mod room;
pub(crate) mod schema;
mod summaries;
mod taints;
mod writer;

use std::fs::OpenOptions as OpenFile;
use std::path::Path;

use crate::error::LedgerError;

pub use backup::{copy_file, copy_folder, copy_store};
pub use counters::WriterStats;
pub use erase::SqliteEraser;
pub use ledger::{OpenOptions, SqliteLedger};
pub use purge::COMPACT_BYTES_MAX;
pub use queue::{QUEUE_BYTES_MAX, QUEUE_REQUESTS_MAX};
pub use read::SqliteReader;
pub use writer::BATCH_EVENTS_MAX;

/// The database in the folder.
pub(crate) const DATABASE_FILE: &str = "ledger.db";

/// Whether this user may write the database in a folder.
pub(crate) fn check_writable(folder: &Path) -> Result<(), LedgerError> {
    let database = folder.join(DATABASE_FILE);
    let opened = OpenFile::new().append(true).open(&database);
    opened.map(drop).map_err(|error| LedgerError::io(&database, "write", &error))
}
