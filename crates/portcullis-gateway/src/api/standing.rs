//! The daemon itself: how it is, and its bundles read again.

use portcullis_core::id::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bundles of others whose mistakes one answer lists.
pub const OTHERS_MAX: usize = 16;

/// The bundle was read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// Digest of the bundle in force.
    pub bundle: Digest,
    /// Whether it is another than before.
    pub changed: bool,
    /// What is wrong with bundles that runs named for themselves, at most [`OTHERS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// How the daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// Version of the program.
    pub version: String,
    /// The build of the program, which two of one version may differ in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Its process.
    pub pid: u32,
    /// The state folder.
    pub home: String,
    /// Digest of its bundle.
    pub bundle: Digest,
    /// The folder of its bundle, or `None` for the shipped one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_folder: Option<String>,
    /// The TCP address on which it listens besides the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The address on which it serves the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Digest of all that judges: bundle, what is compiled in, and engine.
    #[serde(default)]
    pub configuration: Option<Digest>,
    /// Runs that are live.
    pub runs_live: u64,
    /// Freezes that are in force and that the caller may see.
    #[serde(default)]
    pub freezes: u64,
    /// `ok`, or what is wrong with the store.
    pub store: String,
    /// `ok`, or why the transparency log signs nothing new: what it waits for and since when, why it is frozen, or what
    /// its last round failed on.
    #[serde(default = "ok")]
    pub log: String,
    /// Why the last reload was refused; the bundle before it is in force.
    #[serde(default)]
    pub reload_error: Option<String>,
    /// The same of bundles that runs named for themselves, at most [`OTHERS_MAX`]; approvers alone are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reload_errors_of_others: Vec<String>,
    /// MCP servers of the bundle that some client of `/mcp` could not use, and why: a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers_amiss: Vec<String>,
}

/// What is not said is well.
fn ok() -> String {
    "ok".to_owned()
}
