//! The guard that asks the access policies.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::memory::Memory;
use portcullis_core::verdict::Verdict;

/// ## What it does
/// Evaluates the access policies of the bundle for the call and for every single thing that it would touch: may this
/// principal read this column, delete this path, send to this recipient?
///
/// ## Why it matters
/// An agent acts with someone's authority. What that person may not do, the agent must not do for them, however it
/// spells the command.
///
/// ## Fires on
/// A resource to which a `forbid` policy applies; a resource to which no `permit` policy applies, if the bundle's
/// default is *review* or *deny*; a `permit` that carries another decision. The finding names the rule, the policies
/// that determined it, and all resources that it concerns. A policy that cannot be evaluated, a run without a
/// principal, and an attribute of another type than declared are denials with rules of their own.
///
/// ## Does not cover
/// What the effect reader cannot see: where a symbolic link leads, or what a script does that the command runs. Amounts
/// and counts over a run are for runtime policies.
///
/// ## Configuration
/// `access/*.cedar`, and `[access]` in `portcullis.toml`: `default` (*allow*, *review* or *deny*), `attributes` of
/// principals with their types, `role_aliases`. `@decision`, `@reason`, `@rule` and `@id` on policies.
///
/// ## False positives
/// A path or column that is read from text that does not really name it. Write the policy for the narrower resource, or
/// let `@decision("review")` ask a person.
///
/// ## References
/// OWASP ASI02, ASI03, LLM06.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessGuard;

static META: GuardMeta = GuardMeta {
    id: "access",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI03", "LLM06"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl<M: Memory> Guard<M> for AccessGuard {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_, M>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        let settings = &context.bundle.access;
        match context.bundle.access_policies() {
            Some(access) => Ok(access.decide(context.bundle, context.run, action, context.effects())),
            None if settings.files.is_empty() && settings.default == Verdict::Allow => Ok(Vec::new()),
            None => Err(GuardFailure("the access policies of the bundle were not loaded".to_owned())),
        }
    }
}
