//! Tests of the transparency log.

mod completeness;
mod limits;
mod logged;
mod monitors;
mod notes;
mod oracle;
mod policies;
mod properties;
mod simulation;
mod tamper;
mod tiles;
mod vectors;
mod verdicts;
mod witnesses;
pub(crate) mod world;
