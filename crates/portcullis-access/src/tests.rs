//! Decisions, and what keeps policies from loading.

mod against_cedar;
mod decisions;
mod lints;
mod loading;
pub(crate) mod world;
