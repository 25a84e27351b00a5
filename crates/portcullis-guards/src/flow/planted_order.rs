//! Orders planted in what a tool returns.

use std::ops::Range;

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::FlowReading;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Looks in a tool's result for stretches that both pose and order: text that addresses an agent, speaks as the user or
/// the system, or hides, and that tells its reader to do something. It replaces them with a short note before the agent
/// reads them. The rest of the result stays unchanged; the record has all of it.
///
/// ## Why it matters
/// The agent cannot obey what it never reads, and the task continues without the planted text.
///
/// ## Fires on
/// Two kinds of evidence on one stretch: it poses or hides, and the model of orders agrees that it gives an order. With
/// a tag around it: *modify*. Full-width, mathematical and invisible letters, and look-alikes from other scripts, are
/// read as the letters that a model takes them for.
///
/// Text after the first 65,536 sentences or values of a result, or after 4 MiB, is neither read nor shown (*modify*),
/// unless it consists of numbers only.
///
/// ## Does not cover
/// Requests in plain text, however they are worded: honest mail is full of them. Their consequences are weighed when
/// the call is made, see `flow/authority`. A source that the user said to follow is left alone.
///
/// ## Configuration
/// `excise = false` of a tool leaves its results unchanged; in the bundle for a developer's machine, the client's own
/// tools have it, because they read files full of comments in order to edit them. The model of orders has a card,
/// `docs/models/order.md`.
///
/// ## False positives
/// Of 822 READMEs, mails, recipes and notes, something is cut out of 62 (0.4 % of the characters, mean of five kinds),
/// 57 of them READMEs, mostly of software for agents. The note says that something was left out, and the record has it.
///
/// ## References
/// OWASP ASI01, LLM01.
#[derive(Debug)]
pub struct PlantedOrder;

static META: GuardMeta = GuardMeta {
    id: "flow/planted-order",
    hooks: &[Hook::Observation],
    owasp: &["ASI01", "LLM01"],
    unfaithful_to: Some(Unfaithful::Task),
};

/// What stands where an order stood.
const NOTE: &str = "[left out by the gate: an instruction that the user did not give]";
/// What stands where nobody read on.
const NOTE_UNREAD: &str =
    "[left out by the gate: the rest, which has more sentences than are read; ask for less at a time]";

impl Guard<RunMemory> for PlantedOrder {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if !matches!(pending.subject, Subject::Observation { .. }) {
            return Ok(Vec::new());
        }
        let reading = context.reading()?;
        let FlowReading::Result(seen, planted) = &reading.flow else { return Ok(Vec::new()) };
        let Some(planted) = planted else {
            return Err(GuardFailure("cannot load the model that detects instructions".to_owned()));
        };
        if planted.is_empty() {
            return Ok(Vec::new());
        }
        let from = seen.unread.as_ref().map(|unread| unread.start);
        let is_rest = |range: &Range<usize>| from == Some(range.start);
        let message = match planted.iter().all(is_rest) {
            true => "the result is too long to be checked in full",
            false => "the result contains instructions that the user did not give",
        };
        let mut finding = Finding::new(META.id, Verdict::Modify, message);
        for range in planted {
            let note = if is_rest(range) { NOTE_UNREAD } else { NOTE };
            let span = Span { pointer: TEXT.to_owned(), start: range.start, end: range.end };
            finding = finding.at(span.clone()).edit(SpanEdit { span, replacement: note.to_owned() });
        }
        Ok(vec![finding])
    }
}
