//! Guards that look at what came of an action.

pub mod anomaly;
pub mod verifier;
