//! Daemon, HTTP API, MCP gate and the shims that talk to them.

pub mod anchor;
pub mod api;
pub mod bench;
pub mod client;
pub mod daemon;
pub mod demo;
pub mod demo_server;
pub mod governance;
pub mod home;
pub mod hook;
pub mod init;
pub mod mcp;
mod sentence;
