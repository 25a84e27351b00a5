//! Work items: tasks that count as done only when evidence says so.
//!
//! An agent creates an item, starts it and claims that it is done, citing calls of its own run. Whether it is done is
//! decided by the harness, which checks the item's criteria, or by a person. The agent never decides it, and cannot
//! change what it is measured by once it has started.
//!
//! ```text
//! pending -> in_progress -> claimed -> verified
//!                ^             |
//!                +-------------+   a check failed, or a person asked for changes
//! ```
//!
//! Nothing is deleted: a person may bury an item with a reason, and its history stays. [`decide`] says what an operation
//! does, and changes nothing; what it says is recorded, and [`Works`](crate::state::Works) is the fold over those
//! records. All of it is pure. The format is `specs/work.md`.

mod criterion;
mod error;
mod fields;
mod operation;
mod pull_request;
mod record;
mod rules;
#[cfg(test)]
mod tests;
mod written;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::criterion::{Check, Criterion, Pinned, PinnedTo, Stated, digest_of_criteria};
pub use self::error::{Refusal, WorkError};
pub use self::operation::{Op, Operation, Party};
pub use self::pull_request::{Forge, PullRequest, Which};
pub use self::record::{WORK, WorkRecord};
pub use self::rules::{Around, decide};
pub use self::written::{Covers, Written};
use crate::event::OutcomeStatus;
use crate::id::{ActionId, Commitment, Digest, DigestBuilder};

/// Name of the evidence that the agent was told which items are open.
pub const OPEN_TOLD: &str = "work-open";
/// Most items of a run.
pub const WORK_ITEMS_MAX: usize = 1_024;
/// Most finished calls of a run that evidence can cite: the latest ones.
pub const CALLS_CITED_MAX: usize = 4_096;
/// Most bytes of a title.
pub const TITLE_BYTES_MAX: usize = 1_024;
/// Most criteria of an item.
pub const CRITERIA_MAX: usize = 32;
/// Most bytes of an item's criteria, as JSON.
pub const CRITERIA_BYTES_MAX: usize = 16 << 10;
/// Most paths that an item covers.
pub const COVERS_MAX: usize = 64;
/// Most calls that a claim cites.
pub const EVIDENCE_MAX: usize = 32;
/// Most bytes of a claim's statement, of a reason and of a note.
pub const WORDS_BYTES_MAX: usize = 4 << 10;
/// Most bytes that are kept of what a check says, the last ones.
pub const DETAIL_BYTES_MAX: usize = 1 << 10;

/// Names an item in its run: 1, 2, 3, ... in the order in which they were made. A number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ItemId(pub u32);

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It was made.
    Pending,
    /// The agent works on it. Its criteria are frozen from here on.
    InProgress,
    /// The agent says that it is done.
    Claimed,
    /// It is done, by its criteria or by a person's word.
    Verified,
}

impl ItemState {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Claimed => "claimed",
            Self::Verified => "verified",
        }
    }
}

impl fmt::Display for ItemState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whose criteria they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The operator's.
    Operator,
    /// The user's.
    User,
    /// A plan's.
    Plan,
    /// The agent proposed them, and a person accepted.
    Person,
    /// The agent proposed them, and the bundle accepts what agents propose.
    Policy,
}

/// How an item became verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// All of its criteria passed.
    Checked,
    /// A person says so.
    Attested,
}

/// A call of this run that a claim cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The call.
    pub action: ActionId,
    /// Its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Number of the event with its outcome.
    pub outcome: u64,
    /// How it ended.
    pub status: OutcomeStatus,
    /// Names the call, how it ended and what it returned: see [`Call::digest`].
    pub digest: Digest,
    /// Number of the event by which something was written that the item covers, after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<u64>,
}

/// A finished call, as evidence may cite it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub tool: Option<String>,
    /// The surface's own id of it.
    pub call: Option<String>,
    /// Digest of tool and arguments, keyed.
    pub action: Digest,
    /// Number of the event by which it went ahead.
    pub started: u64,
    /// Number of the event with its outcome.
    pub outcome: u64,
    /// How it ended.
    pub status: OutcomeStatus,
    /// Commitment to what it returned.
    pub content: Option<Commitment>,
    /// Its exit status, where it ran contained: 128 and the signal, where that ended it.
    pub exit: Option<u8>,
}

impl Call {
    /// Whether it did what was asked of it, as far as anybody knows.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status == OutcomeStatus::Ok && self.exit.is_none_or(|exit| exit == 0)
    }

    /// Names the call, how it ended and what it returned. What it returned goes in by its commitment, so that the digest
    /// tells nobody what that was.
    #[must_use]
    pub fn digest(&self, action: ActionId) -> Digest {
        let status = serde_json::to_string(&self.status).unwrap_or_default();
        let exit = self.exit.map(|exit| exit.to_string()).unwrap_or_default();
        DigestBuilder::new("portcullis/evidence/v1")
            .part(action.as_bytes())
            .part(self.action.as_bytes())
            .part(status.trim_matches('"').as_bytes())
            .part(self.content.as_ref().map_or(&[][..], |content| content.as_bytes()))
            .part(exit.as_bytes())
            .finish()
    }
}

/// What came of checking one criterion. These are four different things: only a failure says that the work is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// It holds.
    Pass,
    /// It does not hold.
    Fail,
    /// It could not be checked.
    Error,
    /// It was not known in time.
    Timeout,
}

impl Came {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Timeout => "timeout",
        }
    }
}

/// The result of checking one criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CriterionResult")]
pub struct CheckResult {
    /// What came of it.
    pub came: Came,
    /// What was found, at most [`DETAIL_BYTES_MAX`] bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkItem {
    /// Names it.
    pub id: ItemId,
    /// How far it is.
    pub state: ItemState,
    /// What is to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What has to hold, all of it. Without any, only a person can say that it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Whose criteria they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Names criteria and what the item covers, once they are frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Digest>,
    /// What the agent proposes to be measured by, and nobody has accepted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<Criterion>,
    /// What has to stay as it is for evidence to count.
    #[serde(default, skip_serializing_if = "Covers::is_default")]
    pub covers: Covers,
    /// What the latest claim says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub statement: String,
    /// What the latest claim cites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The latest results, one for each criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CheckResult>,
    /// Checks of the latest claim that gave no answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// How often a claim was turned down since it was started, or a person last asked for changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revisions: u32,
    /// The run's steps when it was started, or a person last asked for changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since_step: u32,
    /// A limit was reached: only a person takes it further.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Number of the event by which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Number of the event that turned the latest claim down. What is cited next has to be newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
    /// How it became verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// A person took it out of the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buried: bool,
    /// Why a person did what they did last, or why the latest claim was turned down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Number of the event that changed it last.
    pub changed: u64,
}

impl WorkItem {
    /// An item that was just made.
    fn new(id: ItemId, changed: u64) -> Self {
        Self {
            id,
            state: ItemState::Pending,
            title: String::new(),
            criteria: Vec::new(),
            owner: None,
            frozen: None,
            proposed: Vec::new(),
            covers: Covers::default(),
            statement: String::new(),
            evidence: Vec::new(),
            results: Vec::new(),
            attempts: 0,
            revisions: 0,
            since_step: 0,
            waits: false,
            started: None,
            returned: None,
            verified: None,
            buried: false,
            reason: String::new(),
            changed,
        }
    }

    /// Whether it still has to be done.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.buried && self.state != ItemState::Verified
    }

    /// Number of the latest event that made any of its evidence stale.
    #[must_use]
    pub fn stale(&self) -> Option<u64> {
        self.evidence.iter().filter_map(|evidence| evidence.stale).max()
    }

    /// The item without its words, as it stands in a line.
    #[must_use]
    fn bare(&self) -> Self {
        Self {
            title: String::new(),
            criteria: Vec::new(),
            proposed: Vec::new(),
            covers: Covers::default(),
            statement: String::new(),
            results: self.results.iter().map(CheckResult::bare).collect(),
            reason: String::new(),
            frozen: self.frozen,
            evidence: self.evidence.clone(),
            ..*self
        }
    }

    fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        show(&mut self.title);
        show(&mut self.statement);
        show(&mut self.reason);
        self.criteria.iter_mut().chain(&mut self.proposed).for_each(|one| one.each_text(show));
        self.covers.each_text(show);
        self.evidence.iter_mut().filter_map(|one| one.tool.as_mut()).for_each(&mut *show);
        self.results.iter_mut().for_each(|one| show(&mut one.detail));
    }
}

impl CheckResult {
    fn bare(&self) -> Self {
        Self { detail: String::new(), ..*self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
