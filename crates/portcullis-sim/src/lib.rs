//! The simulator's parts: the simulated [`tools`] that act on a folder of their own, the [`demo_server`] that
//! offers them over MCP, the [`answer`] that a rehearsed agent gives at the end of a plan, the [`planner`]
//! that makes a plan of a request, its [`rehearsal`] under a bundle, the [`replay`] of recorded runs, and the
//! [`backtest`] of another bundle over them.

pub mod answer;
pub mod backtest;
pub mod demo_server;
pub mod planner;
pub mod rehearsal;
pub mod replay;
pub mod simulator;
pub mod tools;
