//! The append-only, hash-chained store: one writer thread, group commit, SQLite.
//!
//! A [`Ledger`] is one process's hand on a store folder. The folder holds one SQLite database, in which every
//! run is a chain of events (`specs/run-chain.md`), and one lock file for each process that writes. Several
//! processes may share a store: SQLite serialises their transactions, and a run segment belongs to exactly one
//! of them. A process that dies leaves its lock free; anyone who opens the store next closes its segments as
//! *abandoned* and never touches those of a living sibling.
//!
//! The promise is the one that the gate is built on: when [`Ledger::append`] has answered, the events are on
//! the disk. Everything in one [`Append`] becomes durable together or not at all.
//!
//! ```text
//! append ─┐
//! append ─┼─> bounded queue ─> writer thread ─> one transaction ─> fsync ─> every answer
//! append ─┘                         (events, payloads, approvals, summary)
//! ```
//!
//! Read `chain` (what may be appended), `writer` (group commit), `recovery`; the rest is queries.

mod approvals;
mod backfill;
mod backup;
mod chain;
mod checkpoint;
mod chosen;
pub mod clock;
mod doctor;
mod erase;
mod error;
mod export;
pub mod hammer;
mod ledger;
mod lock;
pub mod log;
mod presence;
mod purge;
mod queue;
mod read;
mod recovery;
mod room;
mod schema;
mod summaries;
mod writer;

pub use approvals::{ApprovalFilter, ApprovalRow, ApprovalState};
pub use backup::{copy_file, copy_folder, copy_store};
pub use chain::{Append, ChainedLine, EVENTS_PER_APPEND_MAX, Head, StoredPayload};
pub use doctor::Integrity;
pub use erase::{
    CONTAINS_BYTES_MIN, Erased, Eraser, ErasureRow, Selection, TOMBSTONE_TEXT_BYTES_MAX, Tombstone,
};
pub use error::{LedgerError, Refusal};
pub use export::{ExportOptions, ExportSummary};
pub use ledger::{Ledger, NewSegment, OpenOptions, OpenedSegment};
pub use portcullis_proof::export::SegmentState;
pub use purge::COMPACT_BYTES_MAX;
pub use queue::{QUEUE_BYTES_MAX, QUEUE_REQUESTS_MAX};
pub use read::{Reader, RunFilter, RunSummary, SegmentRow, StoredEvent};
pub use recovery::{RecoveredSegment, RecoveryReport};
pub use writer::{BATCH_EVENTS_MAX, WriterStats};
