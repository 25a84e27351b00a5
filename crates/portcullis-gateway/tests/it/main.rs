//! Integration tests of the gateway: a real daemon on a real socket.
#![cfg(test)]

mod approvals;
mod call_models;
mod confirmations;
mod console;
mod contracts;
mod daemon;
mod decisions;
mod foreign;
mod freezes;
mod gate_contracts;
mod governance;
mod hooks;
mod kept;
mod log;
mod lying;
mod monitor;
mod oauth;
mod observed;
mod openapi;
mod own_daemon;
mod parity;
mod replies;
mod resources;
mod resumed;
mod surfaces;
mod taints;
mod webhooks;
mod witness;
mod work;
