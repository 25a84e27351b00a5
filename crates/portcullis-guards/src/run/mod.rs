//! Guards that look at the run as a whole.

pub mod loop_breaker;
pub mod phase;
