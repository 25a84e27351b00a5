//! The simulator's parts: the simulated [`tools`] that act on a folder of their own, the [`answer`] that
//! a rehearsed agent gives at the end of a plan, and the [`trace`] that shows what happened.

pub mod answer;
pub mod tools;
pub mod trace;
