//! The simulator's parts: the simulated [`tools`] that act on a folder of their own, the [`answer`] that
//! a rehearsed agent gives at the end of a plan, the
//! [`default_bundle`] with the plans and policies that ship, the [`planner`] that makes a plan of a
//! request, its [`rehearsal`] under a bundle, and the [`replay`] of recorded runs.

pub mod answer;
pub mod default_bundle;
pub mod developer_bundle;
pub mod planner;
pub mod rehearsal;
pub mod replay;
pub mod simulator;
pub mod tools;
