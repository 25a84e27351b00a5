//! Formats and offline verifier of the ledger.
//!
//! The gate writes one hash chain a run. An *export* is one run as a text file; a *trust file* holds what its
//! reader already believes. [`verify()`] takes both and answers `VALID`, `INVALID` or `INCOMPLETE`, and for
//! `INVALID` names the attack, the line, the byte and the event. It needs no store, no network and no other
//! crate of this project.
//!
//! [`verify_logged`] takes a trust policy instead, and the evidence that the run's heads are in a transparency log.
//!
//! Read `chain` first (four hash functions, all the cryptography of a run), then `verify` beside `specs/run-chain.md`.
//! The log is in [`log`], beside `specs/transparency-log.md`.

pub mod chain;
mod diagnose;
pub mod event;
pub mod export;
mod hash;
mod kept;
pub mod kin;
pub mod log;
pub mod logged;
pub mod report;
pub mod state;
pub mod trust;
pub mod verify;
mod work;

pub use chain::{
    Digest, Hex, HexError, Id, Parent, SegmentStart, event_hash, event_link, payload_commitment, segment_link,
};
pub use kin::Kin;
pub use logged::{LoggedError, LoggedReport, verify_files, verify_logged, verify_sorted, verify_unlogged};
pub use report::{Attack, Check, CheckResult, EXIT_COULD_NOT_READ, Failure, Head, Report, Status};
pub use trust::{Trust, TrustError};
pub use verify::{ReadError, verify};
