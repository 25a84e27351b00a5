//! Denies tools that the operator switched off.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Denies a call of a tool with `enabled = false`, whatever the policy says.
///
/// ## Why it matters
/// Hiding a tool from a listing does not stop an agent that knows its name.
///
/// ## Fires on
/// A tool of the registry that is not enabled.
///
/// ## Does not cover
/// Tools that the registry does not know: `registry/unknown-tool`.
///
/// ## Configuration
/// `enabled` of a `[[tool]]`.
///
/// ## False positives
/// None.
///
/// ## References
/// Seed 000 §2. OWASP ASI02, LLM06.
#[derive(Debug)]
pub struct DisabledTool;

static META: GuardMeta = GuardMeta {
    id: "registry/disabled-tool",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "LLM06"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for DisabledTool {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let name = pending.subject.action().and_then(|action| action.tool());
        match name.and_then(|name| context.bundle.registry.get(name)) {
            Some(tool) if !tool.enabled => {
                let message = format!("the tool `{}` is disabled", tool.name);
                Ok(vec![Finding::new(META.id, Verdict::Deny, message)])
            }
            _ => Ok(Vec::new()),
        }
    }
}
