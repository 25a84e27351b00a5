//! Guards that look at the run as a whole.

pub mod budget;
pub mod children;
pub mod loop_breaker;
pub mod parent;
pub mod phase;
