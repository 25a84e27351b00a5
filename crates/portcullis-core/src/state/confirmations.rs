//! What the user is asked about an action, and says yes to.
//!
//! A `clarify` withholds an action and has the user asked. Where the surface can tell that the user said yes to this very
//! action, the action is judged again without what asked. Nothing else is lifted by that: what an approver has to grant
//! waits for the approver.

use crate::event::VerdictRecord;
use crate::finding::Finding;
use crate::id::{ActionId, Digest};
use crate::verdict::Verdict;

/// Name of the evidence that says that the user confirmed an action. It counts only from the user, and a surface cannot
/// record it by itself. Its digest is that of the action.
pub const CONFIRMED: &str = "user-confirmed";

/// How the rules begin that say how a run stands. A question of theirs is about an earlier action.
const OF_THE_PHASE: &str = "run/phase/";

/// Whether a finding asks the user about the action that it judges.
pub fn asks_of_the_action(finding: &Finding) -> bool {
    finding.verdict == Verdict::Clarify && !finding.rule.starts_with(OF_THE_PHASE)
}

/// The latest question about an action, and the latest yes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confirmations {
    asked: Option<(ActionId, Digest)>,
    given: Option<Digest>,
}

impl Confirmations {
    /// The digest of the action that the latest question to the user is about, if it is not confirmed yet.
    pub fn asked(&self) -> Option<Digest> {
        self.asked.map(|(_, digest)| digest)
    }

    /// The digest of an action, if the latest question to the user is about it.
    pub fn asked_about(&self, action: ActionId) -> Option<Digest> {
        self.asked.filter(|(asked, _)| *asked == action).map(|(_, digest)| digest)
    }

    /// Whether the user confirmed this very action, and it was not judged since.
    pub fn covers(&self, action: Digest) -> bool {
        self.given == Some(action)
    }

    pub(super) fn given(&mut self, action: Digest) {
        let asked = self.asked.take().is_some_and(|(_, digest)| digest == action);
        self.given = asked.then_some(action);
    }

    /// The user says something else: a yes is for the task at hand.
    pub(super) fn lapse(&mut self) {
        self.given = None;
    }

    /// A yes covers one judgement, whatever comes of it.
    pub(super) fn judged(&mut self, action: ActionId, digest: Digest, record: &VerdictRecord) {
        if self.covers(digest) {
            self.given = None;
        }
        let open = |finding: &Finding| asks_of_the_action(finding) && !finding.confirmed;
        if record.verdict == Verdict::Clarify && record.findings.iter().any(open) {
            self.asked = Some((action, digest));
        }
    }
}
