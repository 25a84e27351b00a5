//! Remembers a person's "no".

use portcullis_core::action::{Hook, Pending};
use portcullis_core::display::line;
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Denies an action that an approver refused in this run, or one that comes to the same, with the approver's note.
///
/// ## Why it matters
/// Without it, an agent could repeat a request until an approver gives in: approval fatigue.
///
/// ## Fires on
/// - An action bound to the same digest (tool, arguments, bundle, principal) as a refused approval.
/// - An action that would be held, where the same rules hold it for at least the same resources as a refused one, or
///   for a folder or pattern that contains them.
/// - An action that would be held, of the same tool, whose arguments have the same words as those of a refused one.
///
/// ## Does not cover
/// Variants of an action that was held for no particular resource, such as a call of an unknown tool; they are held
/// for review again. Variants after the bundle has changed, and variants of refusals before the latest 256.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// A refusal given by mistake lasts for the run, or until the bundle changes.
///
/// ## References
/// OWASP ASI09.
#[derive(Debug)]
pub struct ApprovalRefused;

/// The rule of its findings, which is its name.
pub const RULE: &str = "approval/refused";

static META: GuardMeta = GuardMeta {
    id: RULE,
    hooks: &[Hook::Action],
    owasp: &["ASI09"],
    unfaithful_to: Some(Unfaithful::History),
};

impl Guard<RunMemory> for ApprovalRefused {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let (Some(action), true) = (pending.subject.action(), context.run.has_refusals()) else {
            return Ok(Vec::new());
        };
        let principal = context.run.principal().map_or("", |principal| &principal.id);
        let digest = action.grant_digest(context.bundle.digest(), principal);
        let Some(note) = context.run.refusal(digest) else { return Ok(Vec::new()) };
        Ok(vec![finding(note, Known::Same)])
    }
}

/// How something is known to be what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It is the same.
    Same,
    /// It is the same in other words, or reaches further.
    Alike,
    /// It is a reply, and the same.
    SameReply,
}

/// What there is to say about what a person refused, with their note.
pub fn finding(note: Option<&str>, known: Known) -> Finding {
    let refused = match known {
        Known::Same => "an approver already refused this call in this run",
        Known::Alike => "an approver already refused a call in this run that does the same, or less",
        Known::SameReply => "an approver refused this reply",
    };
    let message = note.map_or_else(|| refused.to_owned(), |note| format!("{refused}: {}", line(note)));
    let instead = match known {
        Known::Same | Known::Alike => "tell the user that the approver refused the call",
        Known::SameReply => "give another reply",
    };
    Finding::new(META.id, Verdict::Deny, message).instead(instead)
}
