//! Orders over orders in what the user passes on.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::{FlowReading, Overrides};
use portcullis_trajectory::memory::RunReading;

/// ## What it does
/// Reads each input of the user with the override head of the detector, a small linear model. Disguised spellings, hidden
/// text and one level of encoding are seen through.
///
/// ## Why it matters
/// A user pastes what others wrote: a web page, a ticket, a prompt from a forum.
///
/// ## Fires on
/// A sentence that the model flags, in a text with a phrase that changes who is speaking or which rules hold: *warn*; where
/// something of the text was hidden or encoded: *pause*, until somebody resumes the run. Plain orders over orders are for `input/intent` to stop, which knows a quotation.
///
/// ## Does not cover
/// What tools return, see `flow/planted-order`. Languages other than English.
///
/// ## Configuration
/// None. The threshold is that of the model, see its card in `docs/models/override.md`.
///
/// ## False positives
/// The model flags about one innocent prompt in a hundred. Prompts that speak about such attacks are the likeliest.
///
/// ## References
/// Seed 001, injection detector. OWASP LLM01.
#[derive(Debug)]
pub struct InputInjection;

static META: GuardMeta = GuardMeta {
    id: "input/injection",
    hooks: &[Hook::Input],
    owasp: &["ASI01", "LLM01"],
    unfaithful_to: None,
};

impl Guard for InputInjection {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if !matches!(pending.subject, Subject::Input { label: Label::User, .. }) {
            return Ok(Vec::new());
        }
        let FlowReading::Input(_, Overrides::Read(hits)) = &context.reading::<RunReading>()?.flow else {
            return Err(GuardFailure("the detector of injections does not load".to_owned()));
        };
        let Some(flagged) = hits.iter().find(|hit| hit.family.is_none()) else { return Ok(Vec::new()) };
        let disguised = hits.iter().any(|hit| hit.hidden.is_some() || hit.encoding.is_some());
        let (verdict, message) = match hits.iter().find_map(|hit| hit.family) {
            _ if disguised => (Verdict::Pause, "hidden or encoded text reads like an injection".to_owned()),
            Some(family) => {
                (Verdict::Warn, format!("the text reads like an injection, with a phrase of `{family}`"))
            }
            None => return Ok(Vec::new()),
        };
        let span = Span { pointer: TEXT.to_owned(), start: flagged.range.start, end: flagged.range.end };
        Ok(vec![Finding::new(META.id, verdict, message).at(span)])
    }
}
