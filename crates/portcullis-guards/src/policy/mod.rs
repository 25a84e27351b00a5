//! Guards that enforce runtime policies.

pub mod ladder;
pub mod sequence;
