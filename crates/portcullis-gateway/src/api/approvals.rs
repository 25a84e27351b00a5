//! Approvals as messages: what is shown of a request, and what a person says to it.

use portcullis_core::event::{GrantScope, GrantedEffects};
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::label::LabelSet;
use portcullis_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most requests that are granted together.
pub const GRANTED_TOGETHER_MAX: usize = 100;

/// Approvals, the newest first, at most 1,000. Where more wait, the oldest of each run are among them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// The approvals.
    pub approvals: Vec<ApprovalInfo>,
    /// Stands for which approvals are listed and how each stands, for the next request to wait for another list.
    #[serde(default)]
    pub version: Option<Digest>,
    /// What waits beyond the questions that the bundle puts before people in an hour. It is not listed yet, and can be
    /// decided by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<QueuedInfo>,
}

/// Requests that are not put before people yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedInfo {
    /// How many.
    pub waiting: usize,
    /// The questions an hour that the bundle allows.
    pub per_hour: u32,
    /// The rule that most of the last hour's requests came from.
    #[serde(default)]
    pub rule: Option<String>,
    /// How many came from it.
    pub of_rule: usize,
}

/// One approval with all that a person needs to decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalInfo {
    /// The approval.
    pub approval: ApprovalId,
    /// Where it is.
    pub state: ApprovalPhase,
    /// The run.
    pub run: RunId,
    /// The action that waits; none for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// On whose behalf the agent acts.
    pub principal: String,
    /// Name of the runtime policy.
    pub policy: String,
    /// The tool; empty for a reply.
    pub tool: String,
    /// The reply that waits, where it is one, or `None` if its text is not at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The command that starts its server, where the surface knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its arguments, or `None` if they are not at hand.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// What the call carries besides its arguments: the answers with which it takes up one that asked for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
    /// The working directory, where the surface knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What the agent said it was about to do.
    #[serde(default)]
    pub planned: Option<String>,
    /// The rule that asks.
    #[serde(default)]
    pub rule: Option<String>,
    /// Why it asks.
    #[serde(default)]
    pub reason: Option<String>,
    /// What would be allowed instead, where the guards know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<String>,
    /// What the call would touch, as it was read: `delete path /srv/app`. `None` if the run is not live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub touches: Option<Vec<String>>,
    /// What happened before in the run, oldest first: the last thing that the user said, and the latest calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Before>,
    /// More happened before than that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
    /// What the bundle requires of a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,
    /// Whether resources may be granted by a pattern.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub patterns: bool,
    /// What a grant for effects would cover, or `None` if the call is held for something else, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<GrantedEffects>>,
    /// What a `once` grant is bound to.
    pub digest: Digest,
    /// The sources of what the agent has seen so far.
    pub labels: LabelSet,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it lapses, while it is pending.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// It expired and its run has ended, which ends what waits in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run_ended: bool,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Why, in the approver's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How far the grant reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<GrantScope>,
    /// Long texts were left out of a listing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The digest of all this, which a grant names, or `None` in a listing, which is no place to decide from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

/// Something that happened before a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Before {
    /// Number of its event.
    pub seq: u64,
    /// `user`, `operator`, or the name of a tool.
    pub who: String,
    /// What was said, or what became of the call. At most the beginning of it.
    pub text: String,
    /// The text goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// What the bundle requires of a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wanted {
    /// The roles that may grant; empty: any approver may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// How many people have to agree.
    pub quorum: u32,
    /// Who has agreed so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<String>,
    /// A note is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub note: bool,
    /// The person on whose behalf the agent acts may not grant it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
    /// Roles that may grant from a time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalates_at: Option<Timestamp>,
    /// Which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalates_to: Vec<String>,
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPhase {
    /// Nobody decided yet.
    Pending,
    /// Yes, and not used yet or not used up.
    Granted,
    /// No.
    Refused,
    /// Neither: the agent gets a sentence instead.
    Answered,
    /// Yes, and taken back.
    Revoked,
    /// Too late.
    Expired,
    /// Yes, and used.
    Claimed,
}

/// Which approvals to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalFilter {
    /// Those that wait for a person.
    #[default]
    Pending,
    /// All that are remembered.
    All,
}

impl ApprovalFilter {
    /// The word in the query.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::All => "all",
        }
    }
}

/// Says yes. Needs the approver's credential.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantApproval {
    /// How far the grant reaches.
    #[serde(default)]
    pub scope: Scope,
    /// With [`Scope::Pattern`]: the patterns of resources, such as `path /srv/app/*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// How long the grant lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Lasting>,
    /// Until when it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The arguments with which the call may go ahead, in place of its own. They are judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The words with which the reply may go out, in place of the agent's. They are judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// [`ApprovalInfo::shown`] of what was looked at. Without it nothing is granted.
    #[serde(default)]
    pub shown: Option<Digest>,
    /// A note for the record.
    #[serde(default)]
    pub note: Option<String>,
}

impl GrantApproval {
    /// A grant of what was looked at: this call, once.
    #[must_use]
    pub fn of(shown: &ApprovalInfo) -> Self {
        Self { shown: shown.shown, ..Self::default() }
    }
}

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call with these arguments, once.
    #[default]
    Once,
    /// This call with these arguments, as often as it is made.
    Arguments,
    /// Every call of the tool.
    Tool,
    /// What holds this call: the same rules against the same resources.
    Effects,
    /// The same rules against all resources that fit patterns.
    Pattern,
}

/// How long a grant lasts; unless it is said, and no `until` is given, as long as the bundle says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lasting {
    /// Until the user speaks again.
    Task,
    /// Until the run ends.
    Session,
}

/// Says no. Needs the approver's credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefuseApproval {
    /// A note for the record and for the agent.
    #[serde(default)]
    pub note: Option<String>,
}

/// Says neither yes nor no: the agent gets the note, and may go on otherwise. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerApproval {
    /// The sentence.
    pub note: String,
}

/// Takes a yes back. Needs the approver's credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeApproval {
    /// A note for the record.
    #[serde(default)]
    pub note: Option<String>,
}

/// Says yes to several requests, each once. Needs the approver's credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantApprovals {
    /// The requests, at most [`GRANTED_TOGETHER_MAX`].
    pub approvals: Vec<ShownApproval>,
    /// A note for the record of each.
    #[serde(default)]
    pub note: Option<String>,
}

/// A request that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownApproval {
    /// The approval, or the start of its id.
    pub approval: String,
    /// [`ApprovalInfo::shown`] of what was looked at.
    pub shown: Digest,
}

/// What became of requests that were to be granted together. Each is decided by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Those that were granted, or to which others have to agree as well.
    pub granted: Vec<ApprovalId>,
    /// Those that were not.
    pub skipped: Vec<Skipped>,
}

/// A request that was not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The approval, as it was named.
    pub approval: String,
    /// For programs: see [`code`](super::code).
    pub code: String,
    /// Why, for people.
    pub message: String,
}

/// How approvals were decided, from the latest 10,000.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Since the oldest of them was asked for.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// By approver, who decided most first.
    pub approvers: Vec<ApproverFigures>,
    /// By rule, the one that asks most first.
    pub rules: Vec<RuleFigures>,
}

/// What an approver decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApproverFigures {
    /// The principal.
    pub approver: String,
    /// Requests that were granted.
    pub granted: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that were answered with a sentence.
    pub answered: u64,
    /// Half of the decisions came within so many seconds of the request.
    pub median_s: u64,
    /// Nine of ten did.
    pub p90_s: u64,
}

/// What a rule asked, and what people said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleFigures {
    /// The rule.
    pub rule: String,
    /// Requests.
    pub asked: u64,
    /// Those that were granted.
    pub granted: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that nobody answered in time.
    pub expired: u64,
}
