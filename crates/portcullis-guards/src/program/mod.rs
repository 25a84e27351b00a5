//! Conditions of the bundle that have to be computed.

pub mod check;
pub mod engine;
pub mod per_action;
