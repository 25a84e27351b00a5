//! Webhooks as messages.

use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The webhooks of the bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// By name.
    pub webhooks: Vec<WebhookInfo>,
}

/// How a webhook stands since the daemon started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookInfo {
    /// Its name.
    pub name: String,
    /// Where its messages go, without the path.
    pub host: String,
    /// Messages that are still to be delivered.
    pub waiting: usize,
    /// Messages that were.
    pub delivered: u64,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// Why the last attempt failed, unless one has succeeded since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// An approver's answer by a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookAnswer {
    /// The request.
    pub approval: ApprovalId,
    /// What was shown, as the message said.
    pub shown: Digest,
    /// The nonce of the message.
    pub nonce: String,
    /// What the approver says.
    pub decision: WebhookDecision,
    /// A note for the record, or the sentence to the agent.
    #[serde(default)]
    pub note: Option<String>,
}

/// What an approver can say by a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookDecision {
    /// Yes, once.
    Grant,
    /// No.
    Refuse,
    /// Neither: the agent gets the note.
    Answer,
}
