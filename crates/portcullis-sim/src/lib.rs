//! The simulator's parts: the simulated [`tools`] that act on a folder of their own, the [`answer`] that
//! a rehearsed agent gives at the end of a plan, the [`trace`] that shows what happened, and the
//! [`default_bundle`] with the plans and policies that ship.

pub mod answer;
pub mod default_bundle;
pub mod tools;
pub mod trace;
