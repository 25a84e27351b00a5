//! Authorisation of MCP over HTTP, against an authorization server by script.

mod clients;
mod gate;
pub(crate) mod server;
mod upstream;
