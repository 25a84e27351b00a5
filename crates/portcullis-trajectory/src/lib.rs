//! What a run has seen.

pub mod memory;
pub mod monitors;
