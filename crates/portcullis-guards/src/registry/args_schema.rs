//! Denies arguments that break the tool's schema.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::edit;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Denies a call whose arguments do not match the schema of the tool, and names the place as a JSON pointer.
///
/// ## Why it matters
/// Policies refer to arguments. No policy was written for an argument that nobody declared.
///
/// ## Fires on
/// A missing required argument, a wrong type, an argument beyond those of a bare property map, any other violation of a
/// full JSON Schema. If the tool is marked `inferred`, the schema is the server's own and nobody has reviewed it, so
/// this is only a warning: the server refuses what it cannot use.
///
/// ## Does not cover
/// The meaning of well-formed arguments.
///
/// ## Configuration
/// `args` of a `[[tool]]`: a JSON Schema, or a bare map from property to schema.
///
/// ## False positives
/// Schemas that are stricter than the server.
///
/// ## References
/// Seed 000 §2; JSON Schema 2020-12. OWASP ASI02.
#[derive(Debug)]
pub struct ArgsSchema;

static META: GuardMeta = GuardMeta {
    id: "registry/args-schema",
    hooks: &[Hook::Action],
    owasp: &["ASI02"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for ArgsSchema {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        let Some(tool) = action.tool().and_then(|name| context.bundle.registry.get(name)) else {
            return Ok(Vec::new());
        };
        let Err(mismatch) = tool.args.check(&action.arguments) else { return Ok(Vec::new()) };
        let place = if mismatch.pointer.is_empty() { "the top level" } else { &mismatch.pointer };
        let message = format!(
            "the arguments of `{}` do not match its schema: at {place}, expected {}",
            tool.name, mismatch.expected
        );
        let span = Span { pointer: format!("{}{}", edit::ARGUMENTS, mismatch.pointer), start: 0, end: 0 };
        let verdict = if tool.inferred { Verdict::Warn } else { Verdict::Deny };
        let finding = Finding::new(META.id, verdict, message)
            .at(span)
            .instead("call the tool with arguments that match its schema");
        Ok(vec![finding])
    }
}
