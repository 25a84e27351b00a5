//! Daemon, HTTP API, MCP gate and the shims that talk to them.

pub mod demo_server;
