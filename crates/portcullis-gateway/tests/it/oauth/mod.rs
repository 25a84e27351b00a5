//! Authorisation of MCP over HTTP, against an authorization server by script.

mod gate;
pub(crate) mod server;
mod upstream;
