//! Strict mode: whatever the request has no word for.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_trajectory::rules::Rule;

/// ## What it does
/// Holds, in strict mode, every call that changes something or fetches a page and either goes to an address from running
/// text or has nothing in common with the request.
///
/// ## Why it matters
/// Orders can be written so that no reader finds them. Strict mode does not have to find them.
///
/// ## Fires on
/// See above; nothing unless the bundle asks for it.
///
/// ## Does not cover
/// Actions that look like what the user asked for.
///
/// ## Configuration
/// `[flow] strict = true` in `portcullis.toml`; off by default.
///
/// ## False positives
/// Many, where users leave open how a task is to be done.
///
/// ## References
/// OWASP ASI01.
#[derive(Debug)]
pub struct OffTask;

static META: GuardMeta = GuardMeta {
    id: "flow/off-task",
    hooks: &[Hook::Action],
    owasp: &["ASI01"],
    unfaithful_to: Some(Unfaithful::Task),
};

const RULES: &[Rule] = &[Rule::StrictProse, Rule::StrictKind];

const INSTEAD: &str = "what the user asked for, in the user's words";

impl Guard for OffTask {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        super::findings(context, pending, META.id, RULES, INSTEAD)
    }
}
