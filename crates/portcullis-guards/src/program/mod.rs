//! Conditions of the bundle that have to be computed.

mod answer;
pub mod check;
pub mod engine;
pub mod per_action;
