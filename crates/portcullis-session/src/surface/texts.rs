//! What is said and seen: outcomes with what the agent would see of them, inputs and replies.

use crate::engine::{Reach, Verification};
use portcullis_core::denial::Denial;
use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::id::{ActionId, ApprovalId};
use portcullis_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reports what became of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportOutcome {
    /// The action, or `None` if `call` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The surface's own id of the call, for who does not know the action's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How it ended.
    pub status: OutcomeStatus,
    /// What the agent would see of it, as text.
    #[serde(default)]
    pub content: Option<String>,
    /// Media type of the content; none: `text/plain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What the surface can still do about the content; none: replace stretches of it.
    #[serde(default, skip_serializing_if = "replaces")]
    pub reach: Reach,
}

/// Reports what a server says that answers no action: contents of a resource, a prompt, a notification, a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportTold {
    /// The command that started the server, or its name if there is no command.
    pub server: String,
    /// What the agent would see of it, as text.
    pub content: String,
    /// What the surface can still do about the content; none: replace stretches of it.
    #[serde(default, skip_serializing_if = "replaces")]
    pub reach: Reach,
}

/// Whether a surface can do all that the gate may ask for, which goes without saying.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn replaces(reach: &Reach) -> bool {
    *reach == Reach::Replace
}

impl ReportOutcome {
    /// The outcome of an action whose name is known.
    #[must_use]
    pub fn of(action: ActionId, status: OutcomeStatus, content: Option<String>) -> Self {
        Self { action: Some(action), call: None, status, content, media_type: None, reach: Reach::Replace }
    }

    /// The outcome of an action that the surface knows by its call.
    #[must_use]
    pub fn of_call(call: String, status: OutcomeStatus, content: Option<String>) -> Self {
        Self { action: None, call: Some(call), status, content, media_type: None, reach: Reach::Replace }
    }

    /// The same from a surface that reaches so far.
    #[must_use]
    pub fn within(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }
}

/// What the gate says of what a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservationAnswer {
    /// The join of all findings.
    pub verdict: Verdict,
    /// Whether the agent may see it.
    pub enforced: Enforced,
    /// Why not; with `let-pass`, why it should not, where the surface does not reach so far.
    #[serde(default)]
    pub denial: Option<Denial>,
    /// With `enforced` `replaced`: what the agent gets instead of the content; with `let-pass`, what it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The stretches of the content that were replaced, as bytes `[from, to)`, with what stands there now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<TextEdit>,
    /// The action was permitted to run contained, and was not run so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncontained: bool,
    /// Number of the last event written for it.
    pub seq: u64,
}

/// One stretch of a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextEdit {
    /// First byte of the stretch in the original.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The replacement.
    pub replacement: String,
}

/// Reports what was said to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportInput {
    /// The words.
    pub text: String,
    /// Who said them.
    pub role: Role,
    /// What the surface can still do about them; none: replace stretches of them.
    #[serde(default, skip_serializing_if = "replaces")]
    pub reach: Reach,
}

/// Reports that the user said yes to a call that they were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportConfirmation {
    /// The action whose verdict was `clarify`.
    pub action: ActionId,
    /// The user's words. They are judged like any others.
    pub text: String,
}

/// Who speaks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user on whose behalf it acts.
    User,
    /// Anyone who set it up: the system prompt.
    Operator,
}

/// Reports the agent's reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportOutput {
    /// The words.
    pub text: String,
    /// Documents that it may cite besides those that the run has retrieved: a list of `{"id", "text"}`, or an object from
    /// id to text. Only where the bundle takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<Value>,
    /// What the surface can still do about them; none: replace stretches of them.
    #[serde(default, skip_serializing_if = "replaces")]
    pub reach: Reach,
    /// How long a held reply waits for the decision, in milliseconds, at most [`WAIT_MS_MAX`](super::WAIT_MS_MAX); none:
    /// not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
    /// The agent has nothing more to say or to do: what is not shown to be done is said whatever the words are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// What the gate says of an input or an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextAnswer {
    /// Number of the last event written for it.
    pub seq: u64,
    /// The join of all findings.
    pub verdict: Verdict,
    /// What is done about it.
    pub enforced: Enforced,
    /// Why it does not pass; with `let-pass`, why it should not.
    #[serde(default)]
    pub denial: Option<Denial>,
    /// The approval that a held reply waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// With `enforced` `replaced`: what its reader gets instead; with `let-pass`, what they should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The stretches of it that were replaced, as bytes `[from, to)`, with what stands there now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<TextEdit>,
    /// Of an output: what the checks say, where the bundle wants replies verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Of an output: the work that is not shown to be done, in words. They stand in `shown`, too, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
