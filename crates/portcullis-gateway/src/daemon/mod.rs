//! The daemon: owns the store and the live runs of a machine, and answers `/v1`.
//!
//! One daemon a state folder: it holds `daemon.lock` while it lives. It listens on a Unix socket and, where
//! asked, on TCP. Everything else (`portcullis mcp`, `approvals`, ...) is a thin client.

mod approvals;
mod auth;
mod beside;
mod checks;
mod connections;
mod console;
mod contracts;
mod error;
mod forges;
mod freezes;
mod governance;
mod hooks;
mod idle;
mod kept;
mod listen;
mod log;
pub mod mark;
mod mcp;
mod oauth;
mod openapi;
mod postconditions;
mod queries;
mod routes;
mod seen;
mod server;
mod shares;
pub(crate) mod streamed;
mod tools;
mod webhooks;
mod work;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_governance::controls::Controls;
use portcullis_session::credentials::Credentials;
use portcullis_session::gate::Gate;
use portcullis_session::listings::Listings;
use portcullis_session::surface::Local;

use crate::api::ChangedTool;
use crate::home::Home;

pub use console::ConsoleAt;
pub use error::DaemonError;
pub use openapi::document as openapi;
pub use server::{run, serve};

/// The tools in a state folder that changed since a person accepted them, by server and name, without their short
/// digests. Needs no daemon.
///
/// # Errors
/// What cannot be read, and what to do about it.
pub fn changed_tools(home: &Home) -> Result<Vec<ChangedTool>, String> {
    portcullis_session::listings::changed_in(&home.listings()).map_err(|error| error.to_string())
}

/// How to run a daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The state folder.
    pub home: Home,
    /// The default bundle, which the state folder is served with from now on, or `None` for the one that was chosen
    /// for it before, or else the one that ships.
    pub bundle: Option<PathBuf>,
    /// The files of the bundle that ships.
    pub shipped: BTreeMap<String, Vec<u8>>,
    /// A TCP address to listen on besides the socket.
    pub http: Option<SocketAddr>,
    /// Where to serve the console, if it is served.
    pub console: Option<ConsoleAt>,
    /// Folders with mappings of controls for governance packs, besides those that ship.
    pub controls: Vec<PathBuf>,
    /// The build of the program that serves, such as its version with the commit, for those who ask how it is.
    pub build: Option<String>,
}

/// Where the daemon listens besides its socket.
#[derive(Debug, Clone, Copy)]
struct Listens {
    http: Option<SocketAddr>,
    console: Option<SocketAddr>,
}

/// What every handler sees.
#[derive(Debug, Clone)]
struct Shared {
    build: Option<String>,
    listens: Listens,
    gate: Arc<Gate>,
    local: Local,
    credentials: Arc<Credentials>,
    /// Checks access tokens of others.
    oauth: Arc<oauth::ResourceServer>,
    home: Arc<Home>,
    listings: Arc<Listings>,
    /// Room for replies that are being checked or repaired.
    replies: Arc<tokio::sync::Semaphore>,
    /// Checks work items.
    checks: checks::Checks,
    /// Room for governance packs that are being made.
    packs: Arc<tokio::sync::Semaphore>,
    /// Room for long bodies that are being read, in KiB.
    bodies: Arc<tokio::sync::Semaphore>,
    /// Room for exports that are being read.
    exports: Arc<shares::Shares>,
    /// What is evidence for which controls, in packs.
    controls: Arc<Controls>,
    /// What is settled of the requests that wait to be put before people.
    queue: Arc<approvals::Settled>,
    /// What the webhooks of the bundle are told.
    webhooks: Arc<webhooks::Webhooks>,
    /// The console, where one is served.
    console: Option<Arc<console::Console>>,
    /// The clients of `/mcp`.
    mcp: Arc<crate::mcp::endpoint::Endpoint>,
    /// Why the log does not go on, or `None` if it does, or where it waits.
    log_failure: tokio::sync::watch::Receiver<Option<String>>,
}
