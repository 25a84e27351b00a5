//! Guards that look at the course of a run.

pub mod drift;
pub mod violations;
