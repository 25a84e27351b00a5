//! What the supervisor tells the helper, and what the helper tells back.
//!
//! The order is one argument of the helper: standard input, standard output and the environment belong to the command.
//! Reports are lines of JSON in a file that the command has no way to: each stage opens it before it gives up its
//! powers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use portcullis_core::observed::{AttemptWhat, Ended, Limit, Seen};
use portcullis_core::profile::{Background, Level, Limits, Network, Sockets, Watch};

/// The version of both; a helper refuses another one.
pub(super) const PROTOCOL: u32 = 3;

/// Most bytes of an order. The kernel takes 128 KiB for an argument.
pub(super) const BYTES_MAX: usize = 120 << 10;

/// What the helper is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) protocol: u32,
    pub(super) level: Level,
    /// Process id of the supervisor; when it is not the parent, it has died.
    pub(super) supervisor: u32,
    pub(super) read: Vec<PathBuf>,
    pub(super) execute: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    /// Protected files and folders that exist.
    pub(super) shut: Vec<PathBuf>,
    /// Folders above them, which must keep their names.
    pub(super) pinned: Vec<PathBuf>,
    /// The private folder for temporary files.
    pub(super) temporary: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) network: Network,
    /// Where the socket of the proxy is handed out, if there is one.
    pub(super) handover: Option<PathBuf>,
    pub(super) sockets: Sockets,
    /// Sockets of others on paths, which are hidden.
    pub(super) hidden: Vec<PathBuf>,
    pub(super) limits: Limits,
    /// Whether what is left running goes on.
    pub(super) background: Background,
    /// How much is looked at.
    pub(super) watch: Watch,
    /// The newest ABI of Landlock that is used, to run as on an older kernel.
    pub(super) landlock: Option<u32>,
    /// Variables for the command alone: the loader would obey them in the helper.
    pub(super) late: Vec<(String, String)>,
    /// The file for reports.
    pub(super) report: PathBuf,
}

/// One line of the report.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// A step worked.
    Done(String),
    /// A step failed, and nothing was started.
    Failed(String, String),
    /// Landlock's ABI.
    Landlock(u32),
    /// The command could not be started, for this error number.
    NotStarted(i32),
    /// The command runs.
    Started,
    /// A limit was reached.
    Reached(Limit),
    /// A program was started so often.
    Program { path: String, times: u64 },
    /// Something was refused so often.
    Refused { what: AttemptWhat, target: String, times: u64 },
    /// Something was done so often; told only where reads are looked at.
    Did { what: AttemptWhat, target: String, times: u64 },
    /// It was watched, and this much was seen.
    Watched { programs: Seen, refused: Seen },
    /// The command ended.
    Ended { ended: Ended, cpu_ms: u64, survivors: u64 },
}
