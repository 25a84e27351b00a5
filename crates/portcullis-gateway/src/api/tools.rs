//! What a person accepts of what servers say of their tools.

use portcullis_core::id::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accepts a change. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptTool {
    /// The tool.
    pub tool: String,
    /// The command of its server, where several changed a tool of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What the person was shown, by its digest or its [short](ChangedTool::short): if the tool changed again since,
    /// nothing is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Accepts all changes of a list. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptTools {
    /// The list that the person was shown, by its [short](ChangedTools::short): if anything changed since, nothing is
    /// accepted.
    pub digest: String,
}

/// What was accepted of a list: all but what cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedTools {
    /// One a tool, by server and name.
    pub accepted: Vec<AcceptedTool>,
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedTool {
    /// The command of its server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Digest of the entry that is accepted now.
    pub digest: Digest,
    /// Live runs that were informed.
    pub runs: usize,
}
