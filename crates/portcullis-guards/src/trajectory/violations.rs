//! Stops calls that nobody may ask for.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Ends the run at a call whose effect no request could justify.
///
/// ## Why it matters
/// The effect of a call is harder to paraphrase than words about it.
///
/// ## Fires on
/// Patterns of `monitors.toml` with `violation = true` (`halt`, rule `trajectory/violations/NAME`). Shipped: a whole system
/// is wiped; the gate's own rules are changed; a log or audit trail is changed after talk of not being watched;
/// credentials are read for others after talk of secrecy; a call with effects follows an order that a result gave to the
/// assistant together with a request for secrecy or credentials.
///
/// The effect of a call is judged, whatever scores may do. Some patterns also depend on what was said before: unless
/// `scores = "stop"`, only the user's own words count. Pasted documents, learned scores and what tools returned count
/// for nothing, and a document that the call passes on (a string of more than 600 bytes, for a tool that does not
/// execute it) is not read.
///
/// ## Does not cover
/// Effects that the arguments do not show; `effects/unread` holds those that cannot be read.
///
/// ## Configuration
/// `monitors.toml`. Which paths hold credentials: `secrets` in `[effects]`.
///
/// ## False positives
/// Of 4,373 ordinary prompts, none leads to a violation by a call that reads or that writes a README. Some do if the
/// next call writes a log or a policy, because of what the prompt says about hiding or switching off. Tools that
/// reinstall machines, or manage the gate's own bundle, do this as their job: in their bundle, replace the pattern by
/// one that is not a violation.
///
/// ## References
/// Seed 001, violation monitor. OWASP ASI02, ASI10.
#[derive(Debug)]
pub struct Violations;

static META: GuardMeta = GuardMeta {
    id: "trajectory/violations",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI10"],
    unfaithful_to: None,
};

impl Guard<RunMemory> for Violations {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Subject::Action(action) = pending.subject else { return Ok(Vec::new()) };
        let memory = context.memory()?;
        let reading = &context.reading()?.monitors;
        let violations = memory.monitors.violations(reading, action, context.effects());
        Ok(violations
            .iter()
            .map(|violation| {
                let message = format!("the call is a violation of type {}", violation.family);
                Finding::new(format!("{}/{}", META.id, violation.name), Verdict::Halt, message)
            })
            .collect())
    }
}
