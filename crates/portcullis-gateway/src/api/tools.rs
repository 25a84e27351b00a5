//! What servers say of their tools, and what a person accepted of it.

use portcullis_core::id::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reports the tools that a server lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportTools {
    /// The server, as it named itself or was started.
    pub server: String,
    /// The command that started it, written by the operator: by this one server is told from another when its
    /// tools are compared with what stands accepted. The server's name where there is no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its tools, in its order.
    pub tools: Vec<ReportedTool>,
}

/// One tool, in its server's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedTool {
    /// The name to call it by.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The server's `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The server's `destructiveHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
}

/// What is recorded of the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsAnswer {
    /// Number of the event.
    pub seq: u64,
    /// Names of tools that the client must not be shown: disabled ones, and those that changed since a person
    /// accepted them.
    #[serde(default)]
    pub disabled: Vec<String>,
}

/// What an agent is led by: the description of a tool and the schema of its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolWords {
    /// What it does, in the server's words.
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Value,
}

/// A tool that its server describes otherwise than a person accepted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedTool {
    /// The command that starts the server.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// Digest of what is offered now.
    pub digest: Digest,
    /// What stands accepted.
    pub accepted: ToolWords,
    /// What is offered now.
    pub offered: ToolWords,
}

/// Changes that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedTools {
    /// One a tool, by server and name.
    pub changed: Vec<ChangedTool>,
}

/// Accepts a change. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptTool {
    /// The tool.
    pub tool: String,
    /// The command of its server, where several changed a tool of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Digest of what the person was shown: if the tool changed again since, nothing is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedTool {
    /// The command of its server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Digest of what stands accepted now.
    pub digest: Digest,
    /// Live runs that were told.
    pub runs: usize,
}
