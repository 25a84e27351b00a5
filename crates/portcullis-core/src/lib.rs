//! The pure part of the gate: vocabulary, hooks, guards, pipeline, run state, tool registry and bundle.
//!
//! Nothing here reads a clock, a file or a socket. `decide(bundle, state, pending, facts)` always gives the
//! same decision for the same inputs; that is how policies are back-tested and verdicts audited.

pub mod event;
pub mod fact;
pub mod finding;
pub mod id;
pub mod label;
pub mod limits;
pub mod principal;
pub mod time;
pub mod verdict;
