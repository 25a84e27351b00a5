//! One file a command.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod demo_server;
pub(crate) mod policy;
pub(crate) mod simulate;
pub(crate) mod verify;
