//! Statements that are decided by the checks of [`verify`](crate::verify), and names that must not occur.
//!
//! A check that does not apply is not an answer to a statement. Where the reply has nothing that the statement speaks
//! of, the statement holds of all there is; where what it speaks of rests on nothing, it does not; else it is not
//! decided.

use crate::context::Context;
use crate::contract::{Check, Verdict};
use crate::family::{Family, list};
use crate::text::Span;
use crate::verify::{
    self, Absence, CitationDuty, Finding, HIGH_RISK, Reply, Said, Settings, Side, Status, findings,
};
use crate::wording::{self, often, verb};

const NAMES: wording::Noun = ("name", "names");

/// Holds a reply against its prompt and documents, as the family's checks do. `instructions` are those of the statement.
pub(super) fn held(
    family: &Family,
    reply: &str,
    context: &Context<'_>,
    instructions: Option<&[String]>,
) -> Check {
    let own = instructions.filter(|own| !own.is_empty()).or(context.high_risk);
    let high_risk = own.map_or_else(|| HIGH_RISK.map(str::to_owned).into(), <[String]>::to_vec);
    let settings = Settings { citations: CitationDuty::Always, high_risk };
    let prompts: Vec<Said<'_>> = context.prompt.map(Said::new).into_iter().collect();
    let reply =
        Reply { said: Said::new(reply), prompts: &prompts, documents: context.documents, others: &[] };
    let found: Vec<(Verdict, String, Vec<Span>)> = findings(&reply, &settings, &family.checks())
        .into_iter()
        .map(|(check, finding)| (verdict(&finding), explanation(check, &finding), spans(&finding)))
        .collect();
    // A failure outweighs what is not decided, and that what holds.
    let decides = [Verdict::Fail, Verdict::NotApplicable, Verdict::Pass]
        .into_iter()
        .find(|wanted| found.iter().any(|(verdict, ..)| verdict == wanted))
        .unwrap_or(Verdict::NotApplicable);
    let deciding = || found.iter().filter(|(verdict, ..)| *verdict == decides);
    let explanations: Vec<&str> = deciding().map(|(_, explanation, _)| explanation.as_str()).collect();
    if decides == Verdict::NotApplicable {
        return Check::not_applicable(explanations.join("; "));
    }
    let mut spans: Vec<Span> = deciding().flat_map(|(.., spans)| spans.clone()).collect();
    spans.sort_by_key(|span| (span.start, span.end));
    Check::new(decides == Verdict::Pass, explanations.join("; "), spans)
}

fn verdict(finding: &Finding) -> Verdict {
    match (finding.status, finding.absent) {
        (Status::Pass, _) | (_, Some(Absence::Nothing)) => Verdict::Pass,
        (Status::Fail, _) | (_, Some(Absence::Support)) => Verdict::Fail,
        (Status::NotApplicable, _) => Verdict::NotApplicable,
    }
}

fn explanation(check: verify::Check, finding: &Finding) -> String {
    let named = match (finding.named.is_empty(), check) {
        (true, _) => String::new(),
        (false, verify::Check::FactConsistency) => format!("; missing: {}", list(&finding.named)),
        (false, _) => format!(": {}", list(&finding.named)),
    };
    format!("{}{named}", finding.explanation)
}

fn spans(finding: &Finding) -> Vec<Span> {
    let places = finding.places.iter().filter(|place| place.text == Side::Reply);
    places.map(|place| place.start..place.end).collect()
}

/// Names are counted and placed, never repeated: explanations go where the reply may not.
pub(super) fn names(reply: &str, own: &[String], context: &Context<'_>) -> Check {
    let Some(names) = context.names_of(own) else {
        return Check::new(false, "the names of the statement cannot be searched for".to_owned(), Vec::new());
    };
    let (spans, found) = names.find(reply);
    let listed = wording::count(names.len(), NAMES);
    let explanation = match spans.first() {
        None => format!("none of {listed} occurs"),
        Some(first) => format!(
            "{found} of {listed} {}, {}, first at byte {}",
            verb(found, "occurs", "occur"),
            often(spans.len()),
            first.start
        ),
    };
    Check::new(spans.is_empty(), explanation, spans)
}
