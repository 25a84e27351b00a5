//! What is read from a store: runs, segments, events, approvals, and the results of an export and of a check.

use portcullis_core::event::{ApprovalDecision, GrantScope};
use portcullis_core::id::{ActionId, ApprovalId, Digest as CallDigest, RunId, SegmentId};
use portcullis_core::state::progress::Progress;
use portcullis_core::time::Timestamp;
use portcullis_proof::export::SegmentState;
use portcullis_proof::{Digest, Parent};

/// A run at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// On whose behalf.
    pub principal: String,
    /// The client session, where the surface has one.
    pub session_key: Option<String>,
    /// When it was opened.
    pub opened: Timestamp,
    /// The state of its last segment.
    pub state: SegmentState,
    /// The writer of its last segment.
    pub writer: String,
    /// Its segments.
    pub segments: u64,
    /// Its events.
    pub events: u64,
    /// Approvals that wait.
    pub pending_approvals: u64,
    /// When its last event happened; none for a run without events.
    pub last_event: Option<Timestamp>,
    /// How far it has come. None for a run without events, and for one of an earlier release whose summary is still to be
    /// computed: see [`SqliteReader::progress`].
    pub progress: Option<Progress>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only those that were opened at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that were opened before this time.
    pub until: Option<Timestamp>,
    /// Only those that the store has had for longer than this run: the next page of a list that ended with it. None, where
    /// the store does not have it.
    pub older_than: Option<RunId>,
    /// At most this many, newest first, or `None` for 10,000.
    pub limit: Option<usize>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRow {
    /// The segment.
    pub segment: SegmentId,
    /// Its writer.
    pub writer: String,
    /// The number of segments before it.
    pub ordinal: u64,
    /// The seq of the last event before it.
    pub after: u64,
    /// The segment before it, at its last link.
    pub parent: Option<Parent>,
    /// Its first link.
    pub first_link: Digest,
    /// Its state.
    pub state: SegmentState,
    /// Its place in the store: segments that were opened later have larger ones.
    pub place: i64,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// The seq.
    pub seq: u64,
    /// The kind.
    pub kind: String,
    /// The action it belongs to.
    pub action: Option<ActionId>,
    /// When.
    pub t: Timestamp,
    /// Its link.
    pub link: Digest,
    /// The line: the bytes that are hashed.
    pub line: Vec<u8>,
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// It waits for a person.
    Pending,
    /// A person said yes.
    Granted,
    /// A person said no.
    Refused,
    /// A person said something else than yes or no.
    Answered,
    /// A person took the yes back.
    Revoked,
    /// It was not answered in time, or the grant was not used in time.
    Expired,
    /// The grant was used.
    Claimed,
}

impl ApprovalState {
    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Pending => "pending",
            ApprovalState::Granted => "granted",
            ApprovalState::Refused => "refused",
            ApprovalState::Answered => "answered",
            ApprovalState::Revoked => "revoked",
            ApprovalState::Expired => "expired",
            ApprovalState::Claimed => "claimed",
        }
    }

    /// The state that a decision leads to; none where it leaves the request open.
    pub fn after(decision: ApprovalDecision) -> Option<ApprovalState> {
        match decision {
            ApprovalDecision::Granted => Some(ApprovalState::Granted),
            ApprovalDecision::Endorsed => None,
            ApprovalDecision::Refused => Some(ApprovalState::Refused),
            ApprovalDecision::Answered => Some(ApprovalState::Answered),
            ApprovalDecision::Revoked => Some(ApprovalState::Revoked),
            ApprovalDecision::Expired => Some(ApprovalState::Expired),
        }
    }

    pub(crate) fn from_text(text: &str) -> Option<ApprovalState> {
        use ApprovalState::*;
        let all = [Pending, Granted, Refused, Answered, Revoked, Expired, Claimed];
        all.into_iter().find(|state| state.as_str() == text)
    }
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The approval.
    pub approval: ApprovalId,
    /// The run of the action.
    pub run: RunId,
    /// The action; none for a reply.
    pub action: Option<ActionId>,
    /// What a grant is bound to.
    pub digest: CallDigest,
    /// On whose behalf the action would happen.
    pub principal: String,
    /// Its state.
    pub state: ApprovalState,
    /// How far the grant reaches.
    pub scope: Option<GrantScope>,
    /// When it was asked for.
    pub requested: Timestamp,
    /// When it was decided.
    pub decided: Option<Timestamp>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// Name of the tool; empty for a reply.
    pub tool: String,
    /// The runtime policy that was in force when it was asked for.
    pub policy: String,
    /// The seq of the proposal or the reply that was judged; none for an approval that was asked for again without one.
    pub proposed: Option<u64>,
    /// The note of whoever decided.
    pub note: Option<String>,
    /// The rule that holds the call; none for requests of earlier releases.
    pub rule: Option<String>,
}

impl ApprovalRow {
    /// The bytes of its texts, without the scope. At most 1 MiB are stored.
    pub(crate) fn text_bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let given = [&self.note, &self.decided_by, &self.rule].map(optional);
        self.tool.len() + self.policy.len() + given.iter().sum::<usize>()
    }
}

/// Which approvals to list.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only those that were asked for at this time or later.
    pub requested_since: Option<Timestamp>,
    /// Only those that were decided at this time or later.
    pub decided_since: Option<Timestamp>,
    /// Only those of runs that someone is writing.
    pub live: bool,
    /// At most this many of each run, the oldest first; where there are too many, the first of each run before the second
    /// of any: one that asks for much hides no other.
    pub per_run: Option<usize>,
    /// At most this many, newest first, or `None` for 10,000.
    pub limit: Option<usize>,
}

/// Which freezes to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreezeFilter {
    /// Those that are in force, the oldest first.
    InForce,
    /// The latest ones, released or not, at most so many (and 10,000), newest first.
    Latest(usize),
    /// That one of the released ones that covered a run of a principal and was released last, not before `since`.
    LastReleaseOf {
        /// The run.
        run: RunId,
        /// Its principal.
        principal: String,
        /// The earliest release that counts.
        since: Timestamp,
    },
}

/// What an export holds besides the events.
#[derive(Debug, Clone, Copy)]
pub struct ExportOptions {
    /// Whether payloads are handed over.
    pub payloads: bool,
}

/// What was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportSummary {
    /// The last event and its link, or `None` for a run without events.
    pub head: Option<portcullis_proof::Head>,
    /// The state of the last segment.
    pub state: SegmentState,
    /// Segments written.
    pub segments: u64,
    /// Events written.
    pub events: u64,
    /// Payloads written.
    pub payloads: u64,
    /// Payloads that are erased, and said to be.
    pub erased: u64,
}

/// What a check of the store found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Integrity {
    /// Runs whose links were computed again.
    pub runs: u64,
    /// Events whose links were computed again.
    pub events: u64,
    /// What is wrong, at most 100 problems. Empty when all is well.
    pub problems: Vec<String>,
}
