//! Events: the recorded facts of a run.
//!
//! An event line is one JSON object. The bytes that are hashed are the bytes that are stored, so a line is
//! written once by [`Event::to_line`] and never re-serialised. Payload text is never in a line, only a
//! salted commitment to it, so that a payload can be erased without breaking the chain. The same holds of words that
//! may quote such text: see [`crate::aside`]. The format is `specs/run-chain.md`; field names here are part of it.

mod contained;
mod surroundings;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::contained::{
    ConnectionRecord, ConnectionWord, Contained, EndedRecord, ObservedRecord, ObservedWhat, SeenRecord,
};
pub use self::surroundings::{ConfigChange, ListedTool, Parent, Place, RunOpened};
use crate::finding::Finding;
pub use crate::grant::{About, GrantScope, GrantedEffects, Lasting};
use crate::id::{ActionId, ApprovalId, Commitment, Digest};
use crate::kept::{CellRecord, KeptRecord};
use crate::label::{Label, LabelSet};
use crate::likeness::Likeness;
use crate::limits::EVENT_BYTES_MAX;
use crate::sequence::Mark;
use crate::taint::Tainted;
use crate::time::Timestamp;
use crate::verdict::{Escalation, PolicyAction, Verdict};
use crate::work::WorkRecord;

/// Version of the event line, its field `v`.
pub const EVENT_VERSION: u8 = 1;

/// One recorded fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Format version, [`EVENT_VERSION`].
    pub v: u8,
    /// Number of the event in its run, dense from 1, across segments.
    pub seq: u64,
    /// When it happened, by the writer's clock: a claim, not a proof.
    pub t: Timestamp,
    /// The actor.
    pub actor: Actor,
    /// Sequence number of the event that led to this one.
    pub cause: Option<u64>,
    /// Commitments to the texts that belong to it, by name.
    pub payloads: BTreeMap<String, PayloadRef>,
    /// What happened: fields `kind` and `body`.
    #[serde(flatten)]
    pub body: EventBody,
}

impl Event {
    /// The line to hash and store, without a newline and without the words that are [set aside](crate::aside). Fails
    /// only when it would exceed [`EVENT_BYTES_MAX`].
    pub fn to_line(&self) -> Result<Vec<u8>, EventError> {
        let bare = self.without_aside();
        let line = serde_json::to_vec(bare.as_ref().unwrap_or(self))
            .map_err(|error| EventError::Unreadable(error.to_string()))?;
        if line.len() > EVENT_BYTES_MAX {
            return Err(EventError::TooLong { kind: self.body.kind(), bytes: line.len() });
        }
        Ok(line)
    }

    /// Reads a stored line. Words that were set aside are missing until they are [joined](Self::join).
    pub fn from_line(line: &[u8]) -> Result<Self, EventError> {
        let event: Self =
            serde_json::from_slice(line).map_err(|error| EventError::Unreadable(error.to_string()))?;
        if event.v == EVENT_VERSION { Ok(event) } else { Err(EventError::Version(event.v)) }
    }
}

/// Why a line could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Over the limit.
    #[error("the {kind} event would take {bytes} bytes; the limit is {EVENT_BYTES_MAX}")]
    TooLong {
        /// Kind of the event.
        kind: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// Not an event of this format.
    #[error("not an event line: {0}")]
    Unreadable(String),
    /// Written by another version.
    #[error("event version {0} is not supported by this release; use the release that wrote it")]
    Version(u8),
}

/// Who did something: `gate`, `agent:NAME`, `approver:NAME`, `user`, `tool:NAME`, ...
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actor(String);

impl Actor {
    /// The gate itself.
    pub fn gate() -> Self {
        Self("gate".to_owned())
    }

    /// The gate closing what a dead writer left behind.
    pub fn recovery() -> Self {
        Self("gate:recovery".to_owned())
    }

    /// The agent acting for a principal.
    pub fn agent(principal: &str) -> Self {
        Self(format!("agent:{principal}"))
    }

    /// A person deciding on approvals.
    pub fn approver(principal: &str) -> Self {
        Self(format!("approver:{principal}"))
    }

    /// The user of the agent.
    pub fn user() -> Self {
        Self("user".to_owned())
    }

    /// A tool answering.
    pub fn tool(name: &str) -> Self {
        Self(format!("tool:{name}"))
    }

    /// A server that says something outside of the results of its tools.
    pub fn server(name: &str) -> Self {
        Self(format!("server:{name}"))
    }

    pub(crate) fn text_mut(&mut self) -> &mut String {
        &mut self.0
    }

    /// The actor as it appears in the line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A payload as the line knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadRef {
    /// Salted commitment to the bytes.
    pub commitment: Commitment,
    /// Media type of the bytes, e.g. `application/json`.
    pub media_type: String,
    /// Length of the payload in bytes.
    pub bytes: u64,
}

/// What happened. Verdict and enforcement are different facts: in observe mode a denial is noted and the
/// action still happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
pub enum EventBody {
    /// The run began. Payload `digest-key`.
    RunOpened(RunOpened),
    /// What governs the run changed, or something about its surroundings became known.
    Config(ConfigChange),
    /// The user, or the operator, said something. Payload `text`.
    Input {
        /// Who spoke: [`Label::User`] or [`Label::Operator`].
        label: Label,
    },
    /// The agent wants to act. Payloads `arguments` and `planned`.
    Proposed(Proposed),
    /// The gate judged. Payload `findings`, where there are some.
    Verdict(VerdictRecord),
    /// What was then done. Payload `taint`, where the action writes what others said into a thing.
    Enforcement {
        /// The action, when an action was judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
        /// What was done.
        enforced: Enforced,
        /// The surface's own id of the call that goes ahead, where the action was proposed by an earlier one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// It goes ahead contained, and under which profile.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contained: Option<Contained>,
    },
    /// A person was asked.
    ApprovalRequested {
        /// Names the request.
        approval: ApprovalId,
        /// What waits.
        #[serde(flatten)]
        about: About,
        /// What a grant would be bound to: the action with its arguments or the text, the bundle and the principal.
        digest: Digest,
        /// Name of the tool; empty for a text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tool: String,
        /// Digest of its effects as they were read, keyed like that of the action. `None` in runs of earlier releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effects: Option<Digest>,
        /// A grant may cover resources by a pattern: the call is read completely, and nothing leaves by it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        patterns: bool,
    },
    /// A person answered, or the request lapsed. Payload `arguments`, where the call may go ahead with other arguments
    /// only, or `text`, where the reply may only be another.
    ApprovalDecided {
        /// The request.
        approval: ApprovalId,
        /// The answer.
        decision: ApprovalDecision,
        /// How far a grant reaches. The resources of one for effects are in the payload `scope`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<GrantScope>,
        /// How long a grant lasts.
        #[serde(flatten)]
        lasting: Lasting,
        /// Digest of what the person was shown, and said yes to. `None` where nobody is shown anything: in rehearsals, and in
        /// runs of earlier releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Digest>,
        /// The run's labels as the person was shown them.
        labels: LabelSet,
        /// A note for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A grant was used.
    GrantClaimed {
        /// The grant.
        approval: ApprovalId,
        /// What goes ahead with it.
        #[serde(flatten)]
        about: About,
    },
    /// What became of an action. Payload `taint`, where it wrote a thing anew of which taints are known.
    Outcome {
        /// The action.
        action: ActionId,
        /// How it ended.
        status: OutcomeStatus,
    },
    /// Something the agent will see: a tool's result, or what a server says besides. Payload `content`.
    Observation {
        /// The action it answers, or `None` for what answers no action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
        /// Its source.
        label: Label,
        /// What of it others had written into the thing that was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tainted: Option<Tainted>,
    },
    /// What an action, or a server, did while it ran contained. Payload `observed`.
    Observed(ObservedRecord),
    /// The agent's reply. Payload `text`, and `documents` where some were handed over with it.
    Output {},
    /// Something that bears on a claim: a file's digest, a check's result. Of the gate's own on a reply, which is the
    /// cause, payload `results`.
    Evidence {
        /// What it is, e.g. `test-report`.
        name: String,
        /// Digest of the thing itself.
        digest: Digest,
    },
    /// Something was done to a work item, or refused. Payload `work`.
    Work(WorkRecord),
    /// A key of the session state was written, or that was refused. Payload `state`.
    State(CellRecord),
    /// A fact that outlives the run was established, read or forgotten, or that was refused. Payload `fact`.
    Fact(KeptRecord),
    /// A person took hold of the run.
    Control {
        /// What they did.
        control: Control,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Events were lost, admitted openly.
    Gap {
        /// First lost number.
        from: u64,
        /// Last lost number.
        to: u64,
        /// Why.
        cause: String,
    },
    /// The segment ended.
    RunClosed {
        /// In good order, or by the death of its writer.
        state: ClosedState,
        /// Number of events of the run, this one included.
        count: u64,
        /// The writer that closed a dead writer's segment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        successor: Option<String>,
    },
}

impl EventBody {
    /// The kind, as it appears in the line.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunOpened(_) => "run-opened",
            Self::Config(_) => "config",
            Self::Input { .. } => "input",
            Self::Proposed(_) => "proposed",
            Self::Verdict(_) => "verdict",
            Self::Enforcement { .. } => "enforcement",
            Self::ApprovalRequested { .. } => "approval-requested",
            Self::ApprovalDecided { .. } => "approval-decided",
            Self::GrantClaimed { .. } => "grant-claimed",
            Self::Outcome { .. } => "outcome",
            Self::Observation { .. } => "observation",
            Self::Observed(_) => "observed",
            Self::Output {} => "output",
            Self::Evidence { .. } => "evidence",
            Self::Work(_) => "work",
            Self::State(_) => "state",
            Self::Fact(_) => "fact",
            Self::Control { .. } => "control",
            Self::Gap { .. } => "gap",
            Self::RunClosed { .. } => "run-closed",
        }
    }

    /// The action the event belongs to.
    pub fn action(&self) -> Option<ActionId> {
        match self {
            Self::Proposed(proposed) => Some(proposed.action),
            Self::Verdict(record) => record.action,
            Self::Enforcement { action, .. } | Self::Observation { action, .. } => *action,
            Self::ApprovalRequested { about, .. } | Self::GrantClaimed { about, .. } => about.action(),
            Self::Outcome { action, .. } => Some(*action),
            Self::Observed(record) => record.action,
            _ => None,
        }
    }
}

/// Body of `proposed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    /// Names the action.
    pub action: ActionId,
    /// Number of the step in the run, from 1.
    pub step: u32,
    /// Name of the tool as the agent gave it, or `None` for a thinking step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the server of the tool is known by, where the surface knows it: the command that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether the action counts as a side effect when it executes.
    pub side_effecting: bool,
    /// Digest of tool and arguments, [keyed](crate::action::Action::keyed) with the run's key.
    pub digest: Digest,
    /// The working directory, where the surface knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The surface's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What near-identical calls have in common, keyed like the digest, or `None` for a thinking step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
    /// What the call costs, in millionths of the bundle's unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_micros: u64,
    /// How sure the agent said it was, 0 to 1, where the surface reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Body of `verdict`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// The action, when an action was judged; otherwise the cause names what was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The join of all findings.
    pub verdict: Verdict,
    /// The same in the words of the runtime-policy seed.
    pub policy_action: PolicyAction,
    /// The same in the words of the escalation seed.
    pub escalation: Escalation,
    /// Rule of the headline finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Message of the headline finding. Not in the line, but in the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// All findings in declared order. Their words are not in the line, but in the payload.
    pub findings: Vec<Finding>,
    /// The bundle that judged.
    pub bundle: Digest,
    /// The runtime policy that judged.
    pub policy: String,
    /// Facts that were asked for, with their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<crate::fact::FactRecord>,
    /// The grant that answered `review` findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<ApprovalId>,
    /// What the call does, by the bundle's marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// What was done about a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enforced {
    /// It goes ahead: a permit was issued.
    Executed,
    /// It does not happen.
    Withheld,
    /// It waits for an approver.
    Held,
    /// It goes ahead with the edits applied.
    Replaced,
    /// It goes ahead although the verdict would have stopped it: in observe mode, or as a text that its surface could
    /// no longer keep back.
    LetPass,
    /// It is left to the client's own prompt: who answers is not known to the gate, so there is no permit,
    /// and whether it goes ahead shows only in its outcome.
    Asked,
}

impl Enforced {
    /// Whether the action goes ahead on the gate's permit.
    pub fn proceeds(self) -> bool {
        matches!(self, Self::Executed | Self::Replaced | Self::LetPass)
    }

    /// Whether the action may happen: it goes ahead, or the client's own prompt decides.
    pub fn may_happen(self) -> bool {
        self.proceeds() || self == Self::Asked
    }
}

/// Whether verdicts are enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Verdicts decide what happens.
    #[default]
    Enforce,
    /// Verdicts are recorded and everything passes.
    Observe,
}

/// How an approval was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalDecision {
    /// Yes.
    Granted,
    /// Yes, and others have to say so too.
    Endorsed,
    /// No.
    Refused,
    /// Neither: the agent gets a sentence instead, the note.
    Answered,
    /// A yes was taken back.
    Revoked,
    /// It was not answered in time, or the grant was not used in time.
    Expired,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeStatus {
    /// The tool answered.
    Ok,
    /// The tool answered with an error; it may still have acted.
    Error,
    /// No answer in time; it may still have acted.
    Timeout,
    /// It was never sent to the tool.
    NotExecuted,
    /// The tool asks for more before it acts.
    InputRequired,
    /// The outcome is not known: the writer died first.
    Unknown,
}

/// What a person did to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Ended it.
    Halt,
    /// Paused it.
    Pause,
    /// Let it go on.
    Resume,
    /// Froze it: nothing goes ahead, and nothing else changes.
    Freeze,
    /// Released of a freeze what has no side effect.
    ReleaseReads,
    /// Ended its freeze.
    Release,
}

impl Control {
    /// Whether it is about a freeze of the run, which is a standing of its own beside the phase.
    #[must_use]
    pub fn is_of_freeze(self) -> bool {
        matches!(self, Self::Freeze | Self::ReleaseReads | Self::Release)
    }
}

/// How a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedState {
    /// In good order.
    Closed,
    /// Its writer died.
    Abandoned,
}
