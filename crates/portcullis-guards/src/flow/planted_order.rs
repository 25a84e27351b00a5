//! Orders planted in what a tool returns.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::FlowReading;
use portcullis_trajectory::memory::RunReading;

/// ## What it does
/// Looks in a tool's result for sentences that tell the agent to do what one of its tools does and the user did not ask
/// for, and replaces them by a short note before the agent reads them. Everything else of the result stays as it came; the
/// record has it whole.
///
/// ## Why it matters
/// What the agent never reads it cannot obey, and the task goes on without the page.
///
/// ## Fires on
/// An order for what a tool of the agent does and the request has no use for, if it speaks as the user, gives an address of
/// its own, or the model of orders agrees; an order that directs what a tool does to an address that is not the user's, in
/// a source that the user did not point at; an order of which the model is sure and for which the request has no use. With the neighbours that belong to it
/// and a tag around them: *modify*.
///
/// ## Does not cover
/// Orders for what the user asked for, with another address or thing: they are weighed when the call is made, see
/// `flow/tainted-argument`. Text that informs rather than orders. What the user said to follow is left alone. What stands
/// beyond the limits of reading (512 orders, 4 MiB of a result).
///
/// ## Configuration
/// `excise = false` of a tool leaves its results as they came; in the bundle for a developer's machine the client's own tools
/// have it, which read files full of comments to edit them. The model of orders has a card, `docs/models/order.md`.
///
/// ## False positives
/// Instructions in honest mails and manuals. The note says that something was left out, and the record has it.
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

impl Guard for PlantedOrder {
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
        let reading = context.reading::<RunReading>()?;
        let FlowReading::Result(_, planted) = &reading.flow else { return Ok(Vec::new()) };
        let Some(planted) = planted else {
            return Err(GuardFailure("the model of orders does not load".to_owned()));
        };
        if planted.is_empty() {
            return Ok(Vec::new());
        }
        let message = "the result tells its reader to do what the user did not ask for";
        let mut finding = Finding::new(META.id, Verdict::Modify, message);
        for range in planted {
            let span = Span { pointer: TEXT.to_owned(), start: range.start, end: range.end };
            finding = finding.at(span.clone()).edit(SpanEdit { span, replacement: NOTE.to_owned() });
        }
        Ok(vec![finding])
    }
}
