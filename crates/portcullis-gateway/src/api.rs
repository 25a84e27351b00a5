//! `/v1`: the messages between daemon and clients, as types that both sides use.
//!
//! JSON over HTTP/1.1, on the Unix socket always and on TCP where asked. Every request carries
//! `Authorization: Bearer TOKEN`; a failure is a status with an [`ErrorBody`].
//!
//! | method and path | request | response |
//! |---|---|---|
//! | POST `/v1/runs` | [`OpenRun`] | [`OpenedRun`] |
//! | GET `/v1/runs/{run}/attach` | | stays open: a newline every [`HEARTBEAT_S`] |
//! | POST `/v1/runs/{run}/actions` | [`ProposeAction`] | [`ActionAnswer`] |
//! | POST `/v1/runs/{run}/outcomes` | [`ReportOutcome`] | [`ObservationAnswer`] |
//! | POST `/v1/runs/{run}/told` | [`ReportTold`] | [`ObservationAnswer`] |
//! | POST `/v1/runs/{run}/tools` | [`ReportTools`] | [`ToolsAnswer`] |
//! | POST `/v1/runs/{run}/inputs` | [`ReportInput`] | [`TextAnswer`] |
//! | POST `/v1/runs/{run}/outputs` | [`ReportOutput`] | [`TextAnswer`] |
//! | POST `/v1/runs/{run}/confirmations` | [`ReportConfirmation`] | [`TextAnswer`] |
//! | POST `/v1/runs/{run}/evidence` | [`ReportEvidence`] | [`TextAnswer`] |
//! | POST `/v1/runs/{run}/observed` | [`ReportObserved`] | [`ObservationAnswer`] |
//! | POST `/v1/runs/{run}/stopping` | [`Empty`] | [`StopAnswer`] |
//! | GET `/v1/runs/{run}/work` | | [`WorkList`] |
//! | POST `/v1/runs/{run}/work` | [`WorkRequest`] | [`WorkAnswer`] |
//! | GET `/v1/runs/{run}/state` | | [`StateAnswer`] |
//! | POST `/v1/runs/{run}/state` | [`StateRequest`] | [`StateAnswer`] |
//! | POST `/v1/runs/{run}/facts` | [`FactRequest`] | [`FactAnswer`] |
//! | GET `/v1/facts?principal=NAME&gone=BOOL&before=N&limit=N` | | [`FactList`] |
//! | GET `/v1/facts/{fact}` | | [`FactTold`](portcullis_session::kept::FactTold) |
//! | POST `/v1/tickets/take` | [`TakeTicket`] | [`TakenTicket`] |
//! | POST `/v1/runs/{run}/close` | [`Empty`] | [`Empty`] |
//! | POST `/v1/runs/{run}/control` | [`ControlRun`] | [`Empty`] |
//! | POST `/v1/freezes` | [`FreezeRuns`] | [`FreezeAnswer`] |
//! | POST `/v1/freezes/release` | [`ReleaseRuns`] | [`FreezeAnswer`] |
//! | GET `/v1/freezes?history=BOOL` | | [`Freezes`] |
//! | GET `/v1/runs?limit=N` | | [`Runs`] |
//! | GET `/v1/runs/{run}` | | [`RunInfo`] |
//! | GET `/v1/runs/{run}/events?after=SEQ&limit=N` | | lines verbatim, or with `&joined=true` with the words of findings; next `after` in [`NEXT_HEADER`] |
//! | GET `/v1/runs/{run}/export` | | the export, verbatim |
//! | GET `/v1/approvals?state=pending\|all&since=VERSION&wait_ms=N` | | [`Approvals`]; with `since`, waits for another list than that, at most [`WAIT_MS_MAX`] |
//! | GET `/v1/approvals/{id}` | | [`ApprovalInfo`] |
//! | POST `/v1/approvals/{id}/grant` | [`GrantApproval`] | [`ApprovalInfo`] |
//! | POST `/v1/approvals/{id}/refuse` | [`RefuseApproval`] | [`ApprovalInfo`] |
//! | POST `/v1/approvals/{id}/answer` | [`AnswerApproval`] | [`ApprovalInfo`] |
//! | POST `/v1/approvals/{id}/revoke` | [`RevokeApproval`] | [`ApprovalInfo`] |
//! | POST `/v1/approvals/grant` | [`GrantApprovals`] | [`Granted`] |
//! | GET `/v1/approvals/stats` | | [`Stats`] |
//! | GET `/v1/tools/changed` | | [`ChangedTools`] |
//! | POST `/v1/tools/accept` | [`AcceptTool`] | [`AcceptedTool`] |
//! | POST `/v1/tools/accept-all` | [`AcceptTools`] | [`AcceptedTools`] |
//! | POST `/v1/contracts/check` | [`CheckReply`] | [`Checked`](portcullis_assist::record::Checked) |
//! | POST `/v1/contracts/repair` | [`RepairReply`] | [`Mended`](portcullis_assist::record::Mended) |
//! | POST `/v1/console/links` | [`MakeLink`] | [`MadeLink`] |
//! | POST `/v1/bundles/reload` | [`Empty`] | [`Reloaded`] |
//! | GET `/v1/caller` | | [`CallerInfo`] |
//! | GET `/v1/health` | | [`Health`] |
//!
//! `{run}` and `{id}` accept a unique prefix of at least [`ID_PREFIX_MIN`] hex digits. Requests are read
//! strictly: an unknown field is an error. Responses are read leniently: a newer daemon may say more.

mod approvals;
mod console;
mod contracts;
mod freezes;
mod kept;
mod standing;
mod tools;
mod webhooks;
mod work;

pub use approvals::{
    AnswerApproval, ApprovalFilter, ApprovalInfo, ApprovalPhase, Approvals, ApproverFigures, Before,
    GRANTED_TOGETHER_MAX, GrantApproval, GrantApprovals, Granted, Lasting, QueuedInfo, RefuseApproval,
    RevokeApproval, RuleFigures, Scope, ShownApproval, Skipped, Stats, Wanted,
};
pub use console::{MadeLink, MakeLink};
pub use contracts::{CheckReply, RepairReply};
pub use freezes::{FreezeAnswer, FreezeInfo, FreezeRuns, FreezeTarget, Freezes, ReleaseRuns, ReleaseStage};
pub use kept::{
    FACTS_READ_DEFAULT, FactAnswer, FactList, FactOperation, FactRequest, HISTORY_DEFAULT, StateAnswer,
    StateKey, StateOperation, StateRequest,
};
pub use portcullis_core::state::progress::RunPhase;
pub use portcullis_session::kept::{FactTold, StateVersion};
pub use portcullis_session::listings::{ChangedTool, ChangedTools};
pub use portcullis_session::surface::{
    ActionAnswer, EVIDENCE_NAME_BYTES_MAX, FOLDER_BYTES_MAX, ObservationAnswer, OpenRun, OpenedRun,
    ProposeAction, ProposeTurn, REQUEST_BYTES_MAX, ReportConfirmation, ReportEvidence, ReportInput,
    ReportObserved, ReportOutcome, ReportOutput, ReportTold, ReportTools, ReportedTool, Role, StopAnswer,
    TURN_ACTIONS_MAX, TakeTicket, TakenTicket, TextAnswer, TextEdit, ToolWords, ToolsAnswer, TurnAnswer,
    UnreadableTool, WAIT_MS_MAX,
};
pub use standing::{Health, OTHERS_MAX, Reloaded};
pub use tools::{AcceptTool, AcceptTools, AcceptedTool, AcceptedTools};
pub use webhooks::{WebhookAnswer, WebhookDecision, WebhookInfo, WebhookList};
pub use work::{
    CALLS_LISTED_MAX, CHECK_WAIT_MS, CHECKS_AT_ONCE, CallInfo, WorkAnswer, WorkList, WorkOperation,
    WorkRequest,
};

use portcullis_core::event::{Control, Mode};
use portcullis_core::freeze::Frozen;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::principal::CredentialKind;
use portcullis_core::state::progress::VerdictCounts;
use portcullis_core::time::Timestamp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Replies that are checked or repaired at the same time; further requests are told to try again.
pub const REPLIES_AT_ONCE: usize = 8;
/// Governance packs that are created at the same time; further requests are told to try again.
pub const PACKS_AT_ONCE: usize = 2;
/// Long bodies that are read at once, in bytes together.
pub const BODIES_BYTES_MAX: usize = 96 << 20;
/// Exports that all agents together read at once; approvers have room for as many of their own.
pub const EXPORTS_AT_ONCE: usize = 8;
/// Exports that one agent reads at once.
pub const EXPORTS_OF_AGENT: usize = 2;
/// Seconds between two newlines on an attached connection.
pub const HEARTBEAT_S: u64 = 10;
/// Fewest hex digits of an id in a path.
pub const ID_PREFIX_MIN: usize = 6;
/// Response header with the `after` of the next page of events; absent on the last page.
pub const NEXT_HEADER: &str = "x-portcullis-next";

/// Codes of errors that a client acts on. There are others, for people.
pub mod code {
    /// No token, or an unknown one (401).
    pub const UNAUTHORIZED: &str = "unauthorized";
    /// The approver's credential is needed (403).
    pub const FORBIDDEN: &str = "forbidden";
    /// There is no such run, approval or action (404).
    pub const NOT_FOUND: &str = "not_found";
    /// The run is closed, or its daemon died: open it again with `resume` (409).
    pub const RUN_NOT_LIVE: &str = "run_not_live";
    /// An outcome for an action that is not executing (409).
    pub const NOT_EXECUTING: &str = "not_executing";
    /// A confirmation of an action that the user is not asked about (409).
    pub const NOT_ASKED: &str = "not_asked";
    /// The run is governed by another bundle or policy than the one asked for (409).
    pub const BUNDLE_MISMATCH: &str = "bundle_mismatch";
    /// The approval changed since it was shown: review it again (409).
    pub const CHANGED: &str = "changed";
    /// An answer by a webhook is not signed as it must be (401).
    pub const WEBHOOK_SIGNATURE: &str = "webhook_signature";
    /// An answer by a webhook was signed too long ago, or by another clock (401).
    pub const WEBHOOK_TIME: &str = "webhook_time";
    /// The nonce of an answer by a webhook was used, or is of something else (409).
    pub const WEBHOOK_NONCE: &str = "webhook_nonce";
    /// Nothing of this scope is frozen (404).
    pub const NOT_FROZEN: &str = "not_frozen";
    /// The bundle has mistakes; the message holds them, one a line (422).
    pub const BUNDLE_INVALID: &str = "bundle_invalid";
}

/// The body of every failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorInfo,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorInfo {
    /// For programs, in `snake_case`; see [`code`].
    pub code: String,
    /// For people.
    pub message: String,
}

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerInfo {
    /// What the token entitles to.
    #[schemars(with = "String")]
    pub kind: CredentialKind,
    /// The principal.
    pub principal: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// The runtime policy that its runs are bound to; none: they may name one, or have the default.
    pub policy: Option<String>,
}

/// A body that says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Takes hold of a run. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlRun {
    /// What to do.
    pub control: Control,
    /// Why, for the record.
    #[serde(default)]
    pub note: Option<String>,
}

/// Runs, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// The runs.
    pub runs: Vec<RunInfo>,
}

/// One run at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run.
    pub run: RunId,
    /// How the agent connected.
    pub surface: String,
    /// The client session; none: uncorrelated.
    #[serde(default)]
    pub session: Option<String>,
    /// On whose behalf the agent acts.
    pub principal: String,
    /// Name of the runtime policy.
    pub policy: String,
    /// Digest of the bundle.
    pub bundle: Digest,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// Whether it may continue.
    pub phase: RunPhase,
    /// What a freeze stops, or `None` if it is not frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Frozen>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Steps so far.
    pub steps: u32,
    /// Side effects that were executed.
    pub side_effects: u32,
    /// How often each verdict was given, on actions and on texts.
    #[serde(default)]
    pub verdicts: VerdictCounts,
    /// Approvals that wait for a person.
    #[serde(default)]
    pub pending_approvals: u64,
    /// Events so far.
    pub events: u64,
    /// When the last one happened.
    #[serde(default)]
    pub last_event_at: Option<Timestamp>,
    /// Segments: how often a writer took it up, the first time included.
    #[serde(default)]
    pub segments: u64,
    /// Payloads that were erased, oldest first; only where one run is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erasures: Vec<ErasureInfo>,
    /// The run that opened it, if another one did; only where one run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The runs that it opened, in order; only where one run is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunId>,
}

/// Payloads of a run that were erased together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErasureInfo {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why, where that was said.
    #[serde(default)]
    pub reason: Option<String>,
    /// How many.
    pub payloads: u64,
}

#[cfg(test)]
mod tests {
    use portcullis_core::event::Enforced;

    use super::*;
    use serde_json::json;

    #[test]
    fn requests_may_leave_out_what_is_optional_and_nothing_unknown_passes() {
        let open: OpenRun = serde_json::from_value(json!({"surface": "mcp"})).unwrap();
        assert_eq!(open, OpenRun { surface: "mcp".into(), ..OpenRun::default() });
        assert!(serde_json::from_value::<OpenRun>(json!({"surface": "mcp", "polcy": "x"})).is_err());
        let grant: GrantApproval = serde_json::from_value(json!({})).unwrap();
        assert_eq!(grant.scope, Scope::Once);
        assert_eq!(
            serde_json::to_value(ProposeAction {
                tool: Some("t".into()),
                server: None,
                arguments: json!({}),
                planned: None,
                continuation: None,
                call: None,
                directory: None,
                ask: false,
                contains: false,
                confidence: None,
                wait_ms: None
            })
            .unwrap(),
            json!({"tool": "t", "arguments": {}, "planned": null, "call": null})
        );
    }

    #[test]
    fn answers_of_a_newer_daemon_are_read() {
        let answer: ActionAnswer = serde_json::from_value(json!({
            "action": "00".repeat(16), "step": 1, "verdict": "allow", "enforced": "let-pass", "permit": true,
            "denial": null, "approval": null, "findings": [], "seq": 4, "novel": [1],
        }))
        .unwrap();
        assert_eq!((answer.permit, answer.enforced, answer.seq), (true, Enforced::LetPass, 4));
    }
}
