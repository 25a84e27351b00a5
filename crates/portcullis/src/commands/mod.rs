//! One file a command.

pub(crate) mod approvals;
pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod contract;
pub(crate) mod demo;
pub(crate) mod demo_server;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod fsck;
pub(crate) mod governance;
pub(crate) mod hammer;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod policy;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod tools;
pub(crate) mod train;
pub(crate) mod verify;
pub(crate) mod verify_output;
