//! Guards that look at the run as a whole.

pub mod budget;
pub mod loop_breaker;
pub mod phase;
