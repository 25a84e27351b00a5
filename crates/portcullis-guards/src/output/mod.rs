//! What the agent replies.

pub mod contract;
pub mod verification;
