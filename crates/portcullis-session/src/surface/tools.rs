//! What servers say of their tools.

use portcullis_core::id::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reports the tools that a server lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportTools {
    /// The server, as it named itself or was started.
    pub server: String,
    /// The command that started it, written by the operator: by this one server is told from another when its
    /// tools are compared with what stands accepted. The server's name if there is no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its tools, in its order.
    pub tools: Vec<ReportedTool>,
    /// Names of tools whose entries cannot be read with certainty: they count as changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableTool>,
}

/// A tool whose entry in the list cannot be read with certainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnreadableTool {
    /// What a reader might take for its name.
    pub name: String,
    /// Digest of the entry.
    pub digest: Digest,
    /// Why it cannot be read, in words that are not the server's.
    pub why: String,
}

/// One tool, in its server's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// All else that its entry says: title, output schema, annotations, metadata. `None` if the surface does not
    /// know: then it is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Value>,
    /// The server's `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The server's `destructiveHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
}

/// What is recorded of the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsAnswer {
    /// Number of the event.
    pub seq: u64,
    /// Names of tools that the client must not be shown: disabled ones, and those that changed since a person
    /// accepted them.
    #[serde(default)]
    pub disabled: Vec<String>,
    /// Those of them that changed.
    #[serde(default)]
    pub changed: Vec<String>,
}

/// What an agent is led by: all that a server says of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWords {
    /// What it does, in the server's words.
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Value,
    /// All else that its entry says, or `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Value>,
}
