//! What the agent replies.

pub mod verification;
