//! Holds replies and results of tools against the contracts of the bundle.

use portcullis_contracts::{Context as Known, Edit, Need, Span as Stretch};
use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::bundle::OnFail;
use portcullis_core::edit::TEXT;
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

use crate::contracts::answer::ContractAnswer;
use crate::contracts::{Failed, GateContract, GateContracts, HeldText, SOURCE, Standing};

/// ## What it does
/// Holds every reply, and the results of tools that a contract names, against the statements of `contracts/*.toml`: "at
/// most 120 words", "no commas", "must cite a known document". Code decides what it can check exactly. The rest is
/// decided by the judge that the contract names, a model or a program, whose answer is recorded with the verdict.
///
/// ## Why it matters
/// Instructions to a model are kept most of the time. A contract is checked every time, on the text that is about to
/// leave.
///
/// ## Fires on
/// A contract that is broken, or of which nobody can tell. The rule is `output/contract/` and the contract's name. Its
/// `on_fail` says what happens: `annotate` *warn*; `review` *review*; `deny` *deny*; `repair` *modify* if the text can be
/// repaired, otherwise *review*. Code repairs first: marks, breaks and case, never words. If the contract names a
/// strategy, the model of `[contracts]` then rewrites, and its text is used only if every contract that held still does
/// and all that had to be repaired hold.
///
/// A judge that is late, fails or leaves the contract out leaves it undecided, which counts as broken.
///
/// ## Does not cover
/// Whether a judge is right. Inputs, arguments of calls, and what servers say besides results. Surfaces that only tell:
/// there the verdict is recorded and the text passes. `surfaces` is what a client says of itself when it opens a run.
///
/// ## Configuration
/// `contracts/*.toml`: see [Contracts on replies](../contracts.md#at-the-gate). `[contracts]` of `portcullis.toml` names
/// the model, its calls and its time. `[verification]` says what documents are.
///
/// ## False positives
/// A statement that is read otherwise than it is meant: `portcullis contract explain` says how it is read. A judge that is
/// stricter than its operator. A repair that overlaps an edit of another guard denies the text.
///
/// ## References
/// Seed 002, policy guard. OWASP LLM05, LLM09.
#[derive(Debug)]
pub struct OutputContract;

/// What the rules of its findings begin with, which is its name.
pub const RULE: &str = "output/contract";

static META: GuardMeta = GuardMeta {
    id: RULE,
    hooks: &[Hook::Observation, Hook::Output],
    owasp: &["LLM05", "LLM09"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for OutputContract {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[SOURCE]
    }

    fn wants(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        if !GateContracts::of(context.bundle).is_some_and(GateContracts::asks) {
            return Vec::new();
        }
        let question = with_held(context, pending, |held| held.question().map(|question| question.request()));
        // Without a memory nothing is asked, and `decide` fails.
        question.ok().flatten().flatten().into_iter().collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let findings = with_held(context, pending, |held| {
            let answer = match held.question() {
                Some(question) => answer(facts.get(&question.request())),
                None => Ok(ContractAnswer::default()),
            };
            let outcome = held.outcome(answer);
            let mut edits = outcome.edits;
            outcome.failed.iter().map(|failed| finding(failed, &mut edits)).collect()
        });
        Ok(findings?.unwrap_or_default())
    }
}

/// Looks at a text as it is held against the contracts that are about it, or gives `None` where none is.
fn with_held<T>(
    context: &Context<'_>,
    pending: &Pending<'_>,
    look: impl FnOnce(HeldText<'_>) -> T,
) -> Result<Option<T>, GuardFailure> {
    let (Some(contracts), Some(text)) = (GateContracts::of(context.bundle), pending.subject.text()) else {
        return Ok(None);
    };
    let about = contracts.about(context.bundle, context.run.surface(), &pending.subject);
    if about.is_empty() {
        return Ok(None);
    }
    let Subject::Output { documents, .. } = pending.subject else {
        return Ok(Some(look(HeldText::of(about, text, Known::default()))));
    };
    let needs = |wanted| about.iter().any(|one: &&GateContract| one.needs(wanted));
    let sources = &context.memory()?.sources;
    let prompt = if needs(Need::Prompt) { sources.prompt() } else { None };
    let documents = if needs(Need::Documents) { sources.documents(context.bundle, documents) } else { None };
    let high_risk = context.bundle.verification.as_ref().and_then(|settings| settings.high_risk.as_deref());
    let known = Known { prompt: prompt.as_deref(), documents: documents.as_deref(), names: None, high_risk };
    Ok(Some(look(HeldText::of(about, text, known))))
}

/// The answer of judges and models, or why there is none.
fn answer(answer: Option<&FactAnswer>) -> Result<ContractAnswer, String> {
    match answer {
        Some(FactAnswer::Known(answer)) => {
            serde_json::from_value(answer.clone()).map_err(|_| "it is not of its form".to_owned())
        }
        Some(FactAnswer::Failed(why)) => Err(why.clone()),
        None => Err("nobody was asked".to_owned()),
    }
}

/// A contract that fails, as a finding. The first one that was repaired has the edits of all.
fn finding(failed: &Failed<'_>, edits: &mut Vec<Edit>) -> Finding {
    let settings = &failed.contract.settings;
    let (why, spans) = match &failed.standing {
        Standing::Broken(why, spans) => (format!("is broken: {why}"), spans.as_slice()),
        Standing::Undecided(why) => (format!("is not known to hold: {why}"), [].as_slice()),
        Standing::Holds => (String::new(), [].as_slice()),
    };
    let (verdict, repair) = match &failed.repair {
        Some(Ok(how)) => (Verdict::Modify, format!("; {how}")),
        Some(Err(why)) => (OnFail::Repair.verdict(), format!("; not repaired: {why}")),
        None => (settings.on_fail.verdict(), String::new()),
    };
    let message = format!("the contract `{}` {why}{repair}", settings.name);
    let mut finding = Finding::new(format!("{}/{}", META.id, settings.name), verdict, message)
        .instead(format!("a text that keeps this: {}", settings.statement));
    finding.spans.extend(spans.iter().map(span));
    if verdict == Verdict::Modify {
        let edits = std::mem::take(edits).into_iter();
        finding
            .edits
            .extend(edits.map(|edit| SpanEdit { span: span(&edit.span), replacement: edit.replacement }));
    }
    finding
}

fn span(span: &Stretch) -> Span {
    Span { pointer: TEXT.to_owned(), start: span.start, end: span.end }
}
