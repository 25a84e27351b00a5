//! The governance pack: what one run shows of the controls over it, as files that a stranger can check.
//!
//! Everything here is a function of a run's export and the bundle that judged it. Nothing is looked up, no clock is
//! read, and no sentence is in a file that does not rest on events of this run: a run with nothing to say makes
//! short files.
//!
//! ```text
//! run.export ──> Record ──> Facts ──> summary, analysis, risks, controls ┐
//! bundle     ──────────────────────>  runtime policy                     ├─> files ──> manifest ──> signed note
//!                Record ──> trace, audit log, verification results       ┘
//! ```
//!
//! Read `record` (what is read of an export), `facts` (what is counted), then the writer of the file that you are
//! interested in; `manifest` and `check` are the two sides of the signature. The format is `specs/governance-pack.md`.

pub mod audit;
pub mod check;
pub mod controls;
mod facts;
mod failure;
mod files;
mod input;
pub mod manifest;
mod markdown;
pub mod pack;
mod period;
mod policy;
pub mod projection;
pub mod record;
mod risk;
mod sha;
mod signals;
pub mod summary;
pub mod trace;
pub mod verification;
pub mod zip;

pub use check::{CheckedPack, FileResult, PackCheck, check};
pub use pack::{BundleSource, Erasure, FILES, Pack, PackError, PackInput, build};
pub use record::{Record, RecordError};
