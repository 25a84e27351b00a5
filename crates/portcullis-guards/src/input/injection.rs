//! Orders over orders in what the user passes on.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::bundle::Scores;
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::flow::{FlowReading, Overrides};
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Reads each input of the user with the override head of the detector, a small linear model. It sees through disguised
/// spellings, hidden text and one level of encoding.
///
/// ## Why it matters
/// A user pastes what others wrote: a web page, a ticket, a prompt from a forum.
///
/// ## Fires on
/// A phrase that changes who is speaking or which rules hold, or a sentence that the model flags if part of the text
/// was hidden or encoded: *warn*. With `scores = "stop"`, the phrase needs a flagged sentence as well, and hidden or
/// encoded text is a *pause*, until somebody resumes the run.
///
/// The more sentences a text has, the higher one of them must score.
///
/// ## Does not cover
/// What tools return, see `flow/planted-order`. Languages other than English.
///
/// ## Configuration
/// `[monitors] scores` of `portcullis.toml`. The threshold is that of the model, see its card in `docs/models/override.md`.
///
/// ## False positives
/// Of 4,373 ordinary prompts from 18 public sets, it warns about 18 (0.4 %), most of them long instructions for
/// assistants; of 822 READMEs, mails, recipes and notes, about 12 (1.5 %). Of Tensor Trust's attacks, it warns about
/// 137 of 266 and 159 of 385.
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

impl Guard<RunMemory> for InputInjection {
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
        let FlowReading::Input(_, Overrides::Read(hits)) = &context.reading()?.flow else {
            return Err(GuardFailure("cannot load the injection detector".to_owned()));
        };
        let stops = context.bundle.scores == Scores::Stop;
        let sentence = hits.iter().find(|hit| hit.family.is_none());
        let marker = hits.iter().find_map(|hit| Some((hit, hit.family?)));
        let disguised = hits.iter().any(|hit| hit.hidden.is_some() || hit.encoding.is_some());
        let (verdict, hit, message) = match (sentence, marker) {
            (Some(sentence), _) if disguised => {
                let verdict = if stops { Verdict::Pause } else { Verdict::Warn };
                (verdict, sentence, "hidden or encoded text looks like an injection".to_owned())
            }
            (Some(sentence), Some((_, family))) => {
                let message = format!("the text looks like an injection, with a `{family}` phrase");
                (Verdict::Warn, sentence, message)
            }
            (None, Some((marker, family))) if !stops => {
                (Verdict::Warn, marker, format!("the text contains a `{family}` phrase"))
            }
            _ => return Ok(Vec::new()),
        };
        let span = Span { pointer: TEXT.to_owned(), start: hit.range.start, end: hit.range.end };
        Ok(vec![Finding::new(META.id, verdict, message).at(span)])
    }
}
