//! Remembers a person's "no".

use portcullis_core::action::{Hook, Pending};
use portcullis_core::display::line;
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Denies an action that an approver refused in this run, with the approver's note.
///
/// ## Why it matters
/// Without it, an agent could repeat a request until an approver gives in: approval fatigue.
///
/// ## Fires on
/// An action bound to the same digest (tool, arguments, bundle, principal) as a refused approval.
///
/// ## Does not cover
/// Variants of the action; they are held for review again.
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
        let mut message = "an approver already refused this call in this run".to_owned();
        if let Some(note) = note {
            message = format!("{message}: {}", line(note));
        }
        let finding = Finding::new(META.id, Verdict::Deny, message)
            .instead("tell the user that the approver refused the call");
        Ok(vec![finding])
    }
}
