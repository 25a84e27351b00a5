//! What really happened while an action ran contained, as `portcullis-contain` saw it from outside.
//!
//! What a level cannot see is said to be unseen, never left out silently.

mod cut;

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::Digest;
use crate::profile::Level;

pub use cut::{Counts, OBSERVED_BYTES_MAX, OBSERVED_ENTRIES_MAX};

/// What happened while a command ran contained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// The level it ran at.
    pub level: Level,
    /// The profile's name.
    pub profile: String,
    /// How it ended.
    pub ended: Ended,
    /// Time that passed, in milliseconds.
    pub wall_ms: u64,
    /// Processor time of all processes that were waited for, in milliseconds.
    pub cpu_ms: u64,
    /// Processes that it left running: they were killed, unless the profile keeps them. Where they are killed, they
    /// are counted at the process level only: the other level kills them with their namespace.
    pub survivors: u64,
    /// Limits that were reached.
    pub limits: Vec<Limit>,
    /// Protected files that it changed or made, and what was done about it.
    pub put_back: Vec<PutBack>,
    /// Programs that were started.
    pub programs: Programs,
    /// Files that were made, changed or deleted where the profile lets files be written.
    pub files: Files,
    /// Connections through the gate's proxy, those that it refused included.
    pub connections: Vec<Connection>,
    /// Connections beyond those that are listed.
    #[serde(default)]
    pub connections_left_out: u64,
    /// What the profile refused, as far as it was seen.
    pub refused: Refused,
    /// What it wrote to its standard output, where that was asked for. Not part of records.
    #[serde(skip)]
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error, where that was asked for. Not part of records.
    #[serde(skip)]
    pub stderr: Vec<u8>,
}

/// How much of something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// All of it.
    All,
    /// Some of it: a limit was reached, or something cannot be seen here.
    Some,
    /// Nothing: it was not looked for, or cannot be seen at all here.
    #[default]
    Nothing,
}

/// Programs that were started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// How many of them were seen.
    pub seen: Seen,
    /// Each with the number of times, in the order of the first.
    pub started: Vec<Program>,
}

/// A program that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The file that was executed.
    pub path: PathBuf,
    /// How often.
    pub times: u64,
}

/// Files that were made, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// How many of the changes were seen.
    pub seen: Seen,
    /// The changes, in the order of paths.
    pub changes: Vec<FileChange>,
}

/// A file that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// What became of it.
    pub how: FileChangeHow,
    /// Its size now, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of its content now, unless it is too large to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeHow {
    /// It was not there before.
    Made,
    /// Its content, permissions or kind are others.
    Changed,
    /// It is no longer there.
    Deleted,
}

/// A connection through the gate's proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The host as the command named it; empty where its request could not be read.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Bytes that left.
    pub sent: u64,
    /// Bytes that came back.
    pub received: u64,
    /// What became of it.
    pub verdict: ConnectionVerdict,
}

/// What the proxy made of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionVerdict {
    /// The profile names the host, and it was reached.
    Permitted,
    /// It was not dialled, for this reason.
    Refused(String),
    /// The profile names the host, but it could not be reached, for this reason.
    Failed(String),
}

/// What the profile refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// How much of it was seen.
    pub seen: Seen,
    /// Each with the number of times, in the order of the first.
    pub attempts: Vec<Attempt>,
}

/// Something that the profile refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// What was tried.
    pub what: AttemptWhat,
    /// At what: a path, an address, or the name of a system call.
    pub target: String,
    /// How often.
    pub times: u64,
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttemptWhat {
    /// To read a file or list a folder.
    Read,
    /// To write, make, rename or remove a file, or to change its permissions or attributes.
    Write,
    /// To execute a program.
    Execute,
    /// To connect, listen or send.
    Connect,
    /// To make a system call that no contained command makes.
    Call,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It left with this status.
    Status(u8),
    /// This signal ended it.
    Signal(u8),
}

impl Ended {
    /// The status as a shell gives it: 128 and the signal's number where one ended the command.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// A limit of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LimitReached")]
pub enum Limit {
    /// Time that passes.
    Wall,
    /// Processor time of one process.
    Cpu,
    /// Size of one file.
    FileSize,
    /// Bytes of output.
    Output,
    /// Private memory of one process.
    Memory,
}

impl Limit {
    /// The field of a profile that sets it.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Wall => "wall_seconds",
            Self::Cpu => "cpu_seconds",
            Self::FileSize => "file_bytes",
            Self::Output => "output_bytes",
            Self::Memory => "memory_bytes",
        }
    }
}

/// A protected file that a command changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PutBack {
    /// The file.
    pub path: PathBuf,
    /// What was done about it.
    pub how: PutBackHow,
}

/// What was done about a protected file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PutBackHow {
    /// It has its old content again.
    Restored,
    /// It is new, and now has this name.
    SetAside(PathBuf),
    /// It could not be put back, for this reason: look at it.
    Failed(String),
}
