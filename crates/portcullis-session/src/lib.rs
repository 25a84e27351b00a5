//! Drives a run: facts, decision, durable record, permit, approvals.
//!
//! [`engine::Engine`] is the heart, without I/O. Read [`permit`] first: it is short and says what the rest is
//! for.

pub mod batch;
pub mod bundle_dir;
pub mod bundles;
pub mod cases;
#[cfg(test)]
mod claims;
pub mod commits;
pub mod configuration;
pub mod credentials;
mod delegated;
mod denial;
pub mod dry;
pub mod engine;
pub mod env;
pub mod error;
pub mod facts;
mod freezes;
pub mod gate;
mod handed;
pub mod kept;
pub mod listings;
mod mapped;
pub mod observers;
pub mod permit;
pub mod policy;
mod principals;
mod programs;
pub mod run;
pub mod shipped;
pub mod surface;
mod taints;
pub mod tickets;
pub mod workload;

/// The examples of the manual, which the tests compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending.md")]
pub struct Extending;
