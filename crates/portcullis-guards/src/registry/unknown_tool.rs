//! Decides on tools that nobody classified.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Gives the verdict that the bundle chose to a call of a tool that the registry does not know.
///
/// ## Why it matters
/// Nobody has decided about a tool that nobody has classified, and a server can offer a new tool at any time.
///
/// ## Fires on
/// A tool name or id that is not in the registry.
///
/// ## Does not cover
/// Tools whose description or schema changed under the same name: `registry/changed-tool` does.
///
/// ## Configuration
/// `unknown_tools = "review"` (the default), `"deny"` or `"allow"` in `portcullis.toml`. Whatever is chosen, an unknown
/// tool counts as side-effecting, because nothing better is known. With `trust_hints = true`, a tool that its server
/// calls read-only passes and does not count; servers can lie, so this is off by default.
///
/// ## False positives
/// Every first use of a new tool; `portcullis init` drafts the entry that prevents it.
///
/// ## References
/// OWASP ASI02, ASI04.
#[derive(Debug)]
pub struct UnknownTool;

static META: GuardMeta = GuardMeta {
    id: "registry/unknown-tool",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI04"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for UnknownTool {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(name) = pending.subject.action().and_then(|action| action.tool()) else {
            return Ok(Vec::new());
        };
        if context.bundle.unknown_tools == Verdict::Allow || context.bundle.registry.get(name).is_some() {
            return Ok(Vec::new());
        }
        if context.is_trusted_reader(name) {
            return Ok(Vec::new());
        }
        let message = format!("the tool `{name}` is not in the registry");
        let finding = Finding::new(META.id, context.bundle.unknown_tools, message)
            .instead("use a tool of the registry");
        Ok(vec![finding])
    }
}
