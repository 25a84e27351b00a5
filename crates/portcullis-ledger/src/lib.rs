//! The append-only, hash-chained store of runs, and the transparency log over it.
//!
//! [`Ledger`], [`Reader`] and [`Eraser`] are the port that sessions, the daemon and commands know; [`Location`] says
//! where a store is and opens it. `sqlite` is the one kind of store so far: a folder with a database, a writer thread
//! and group commit.
//!
//! The promise is the one that the gate is built on: when [`Ledger::append`] has answered, the events are durable.
//! Everything in one [`Append`] becomes durable together or not at all.
//!
//! Read `ledger` (the port), `chain` (what may be appended), then `sqlite`.

mod chain;
pub mod clock;
mod erasure;
mod error;
mod facts;
pub mod hammer;
mod kin;
mod ledger;
pub mod log;
mod rows;
mod sqlite;
mod taints;

pub use chain::{Append, ChainedLine, EVENTS_PER_APPEND_MAX, Head, Lease, Owner, StoredPayload};
pub use erasure::{CONTAINS_BYTES_MIN, Erased, ErasureRow, Selection, TOMBSTONE_TEXT_BYTES_MAX, Tombstone};
pub use error::{LedgerError, Refusal};
pub use facts::{FACTS_LISTED_MAX, FACTS_MAX, FactChange, FactFilter, FactReader, FactRow, Gone, NewFactRow};
pub use kin::Kin;
pub use ledger::{
    Eraser, Later, Ledger, Location, NewSegment, OpenedSegment, Reader, RecoveredSegment, RecoveryReport,
    SegmentStand, read_aside,
};
pub use portcullis_proof::export::SegmentState;
pub use rows::{
    ApprovalFilter, ApprovalRow, ApprovalState, ExportOptions, ExportSummary, FreezeFilter, Integrity,
    RunFilter, RunSummary, SegmentRow, StoredEvent,
};
pub use sqlite::{
    BATCH_EVENTS_MAX, COMPACT_BYTES_MAX, OpenOptions, QUEUE_BYTES_MAX, QUEUE_REQUESTS_MAX, SqliteEraser,
    SqliteLedger, SqliteReader, WriterStats, copy_file, copy_folder, copy_store,
};
pub use taints::{
    Forgotten, StoredTaints, TAINTS_MAX, TAINTS_OF_PRINCIPAL_MAX, TAINTS_OF_THING_MAX, TaintRow,
};
