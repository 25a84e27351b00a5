//! The table of authority as a guard.

use portcullis_core::action::{Action, Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::FlowReading;
use portcullis_trajectory::judge::Reason;
use portcullis_trajectory::memory::{Context, RunMemory};
use portcullis_trajectory::table::Weight;

use super::second_opinion::{self, Asked};

/// ## What it does
/// Asks about each call that changes something or takes something out: who may want this, to this target, with this
/// content? Authority comes from the user's words, from the bundle, from fields that a tool itself returned, and from
/// sources to which the user handed the matter on. Text that others wrote has none.
///
/// ## Why it matters
/// Anybody who can write a mail, a page or a ticket that an agent reads can tell it what to do. Nothing in the call
/// itself shows that the user did not want it.
///
/// ## Fires on
/// The rows of the table of authority (`docs/authority.md`), by consequence, whether the user wants the call, who is
/// behind the target, what leaves, and whether others' text explains the call: *review*, or *deny* if there is a second
/// kind of evidence.
///
/// A call that would be held on one kind of evidence alone may be put to a model, if the bundle names one
/// (`[second_opinion]`): where it says that the user's request covers the call, the call is allowed, where it says no, the call
/// is denied, and where it says nothing in time, it is held.
///
/// ## Does not cover
/// The same kind of action on something other than what the user meant, if nothing that was read explains it.
///
/// ## Configuration
/// `[authority]` names the people and things that you vouch for; `[flow] strict = true` assumes that any text written
/// by others explains what the user did not ask for. `[second_opinion]` names the model that may be asked; there is none
/// unless you do.
///
/// ## False positives
/// Of 1,996 ordinary runs in nine public sets, it denies none and is the first to hold 100 (5.0 %): 52 by
/// `grave-explained`, most of them schedules, services and deletions that only a task file asks for, and 15 by
/// `secret-leaves`, where the work needs the credential. Of small cases that nobody had seen, it held a call in one
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

const INSTEAD: &str =
    "do what the user asked for, in the user's words; ask the user whether this was intended";

impl Guard<RunMemory> for Authority {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[second_opinion::SOURCE]
    }

    fn wants(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        if context.bundle.call_models.second_opinion.is_none() {
            return Vec::new();
        }
        question(context, pending).into_iter().collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Subject::Action(action) = pending.subject else { return Ok(Vec::new()) };
        let Some(reason) = reason(context, action)? else { return Ok(Vec::new()) };
        // What a person has granted no model takes back.
        let asked = Asked::of(context, action, &reason).filter(|_| pending.grant.is_none());
        let opinion = asked.and_then(|asked| second_opinion::said(facts, &asked.question()));
        let verdict = match (reason.row.weight, opinion.map(|opinion| opinion.covers)) {
            (Weight::Warn, _) => Verdict::Warn,
            (Weight::Hold, None) => Verdict::Review,
            (Weight::Hold, Some(true)) => Verdict::Allow,
            (Weight::Hold, Some(false)) | (Weight::Deny, _) => Verdict::Deny,
        };
        let mut message = reason.row.says.to_owned();
        if let Some(opinion) = opinion {
            let said = if opinion.covers { "covers" } else { "does not cover" };
            message
                .push_str(&format!("; asked for a second opinion, a model says that the request {said} it"));
        }
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

/// Why a call should not pass.
fn reason(context: &Context<'_>, action: &Action) -> Result<Option<Reason>, GuardFailure> {
    let FlowReading::Call(call) = &context.reading()?.flow else { return Ok(None) };
    Ok(context.memory()?.flow.judge(context.bundle, action, call, context.effects()))
}

/// What a model is asked about what is pending.
fn question(context: &Context<'_>, pending: &Pending<'_>) -> Option<FactRequest> {
    let Subject::Action(action) = pending.subject else { return None };
    let reason = reason(context, action).ok()??;
    Some(Asked::of(context, action, &reason)?.question())
}

/// What a model is told about a call, if it is one that it is asked about.
pub fn asked(context: &Context<'_>, action: &Action) -> Option<Asked> {
    Asked::of(context, action, &reason(context, action).ok()??)
}
