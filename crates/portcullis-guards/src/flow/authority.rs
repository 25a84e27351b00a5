//! The table of authority as a guard.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::FlowReading;
use portcullis_trajectory::memory::{RunMemory, RunReading};
use portcullis_trajectory::table::Weight;

/// ## What it does
/// Asks of each call that changes something, or takes something out: who may want this, to this target, with this
/// content? Authority comes from the user's words, from the bundle, from fields that a tool itself returned, and from
/// sources that the user handed the matter on to. What others wrote has none.
///
/// ## Why it matters
/// Whoever can write a mail, a page or a ticket that an agent reads can tell it what to do. Nothing in the call itself
/// shows that it was not the user's wish.
///
/// ## Fires on
/// The rows of the table of authority (`docs/authority.md`), by consequence, whether the user wants it, who is behind the
/// target, what leaves, and whether others' text explains the call: *review*, and *deny* where there is a second kind of
/// evidence.
///
/// ## Does not cover
/// The same kind of action on another thing than the user meant, where nothing that was read explains it.
///
/// ## Configuration
/// `[authority]` names who and what the user may be trusted to mean; `[flow] strict = true` takes whatever others wrote to
/// explain what the user did not ask for.
///
/// ## False positives
/// Of 1,996 ordinary runs in nine public sets none is denied by it and 100 are first held by it (5.0 %): 52 by
/// `grave-explained`, most of them schedules, services and deletions that only a task file asks for, 15 by
/// `secret-leaves`, where the work needs the credential. Of small cases that nobody had seen it held a call of one
/// ordinary run in five, mostly for a tool whose name or arguments look graver than what it does. The review shows the
/// sentence. See `docs/false-alarms.md`.
///
/// ## References
/// OWASP ASI01, ASI02, ASI03, LLM01, LLM02.
#[derive(Debug)]
pub struct Authority;

static META: GuardMeta = GuardMeta {
    id: "flow/authority",
    hooks: &[Hook::Action],
    owasp: &["ASI01", "ASI02", "ASI03", "LLM01", "LLM02"],
    unfaithful_to: Some(Unfaithful::Task),
};

const INSTEAD: &str = "what the user asked for, in the user's words; ask the user whether this was meant";

impl Guard for Authority {
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
        let FlowReading::Call(call) = &context.reading::<RunReading>()?.flow else { return Ok(Vec::new()) };
        let memory: &RunMemory = context.memory()?;
        let Some(reason) = memory.flow.judge(context.bundle, action, call, context.effects()) else {
            return Ok(Vec::new());
        };
        let verdict = match reason.row.weight {
            Weight::Warn => Verdict::Warn,
            Weight::Hold => Verdict::Review,
            Weight::Deny => Verdict::Deny,
        };
        let mut message = reason.row.says.to_owned();
        if let Some(source) = &reason.source {
            let (start, end) = (source.range.start, source.range.end);
            message.push_str(&format!("; see event {}, bytes {start} to {end}", source.seq));
        }
        let mut finding =
            Finding::new(format!("{}/{}", META.id, reason.row.name), verdict, message).instead(INSTEAD);
        if let Some(source) = reason.source {
            finding.evidence.push(source.seq);
            if !source.range.is_empty() {
                let (start, end) = (source.range.start, source.range.end);
                finding = finding.at(Span { pointer: TEXT.to_owned(), start, end });
            }
        }
        Ok(vec![finding])
    }
}
