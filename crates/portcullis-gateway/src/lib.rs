//! Daemon, HTTP API, MCP gate and the shims that talk to them.

pub mod anchor;
pub mod api;
pub mod backup;
pub mod bench;
mod call_models;
pub mod client;
mod contained;
mod contract_source;
pub mod cosign;
pub mod daemon;
pub mod demo;
mod engine_source;
mod fetch;
pub mod governance;
pub mod home;
pub mod home_bundle;
pub mod hook;
pub mod init;
mod kept;
pub mod mcp;
pub mod monitor;
pub mod request_text;
mod sentence;
pub mod signals;
mod state_file;
pub mod versions;
pub mod witness;
