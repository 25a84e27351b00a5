//! What the agent replies.

pub mod contract;
pub mod open_work;
pub mod verification;
