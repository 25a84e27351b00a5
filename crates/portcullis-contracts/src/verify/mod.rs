//! Checks of a reply against what was asked and the documents it rests on.
//!
//! Six questions, each answered with PASS, FAIL or N/A, a reason and the places that matter:
//!
//! | check | question |
//! |---|---|
//! | [`Check::CitationPresence`] | does the reply cite a document, as `[DOC:id]`? |
//! | [`Check::CitationMatch`] | is every cited id that of a known document? |
//! | [`Check::FactConsistency`] | do the key terms of the prompt occur in the documents that are cited? |
//! | [`Check::RefusalPolicy`] | where the prompt has a high-risk instruction: does the reply refuse or escalate? |
//! | [`Check::QuotationGrounding`] | do the quotations of the reply occur in what it cites? |
//! | [`Check::NumberGrounding`] | do its numbers? |
//!
//! The third is a proxy, and looks at documents only: a reply that repeats the prompt proves nothing. Which words are
//! key terms is stated in [`key_terms`].
//!
//! Explanations count and never quote: they may be in a record whose texts can be erased. What they are about stands
//! apart, in [`CheckResult::named`]. Who calls names the events of a run that the texts are from, and finds them again in
//! the results.

mod citation;
mod documents;
mod grounding;
mod refusal;
mod reply;
mod result;
mod terms;

pub(crate) use citation::OPENING;
pub use citation::{Citation, citations};
pub use documents::{Document, DocumentsError, documents_given, documents_in};
pub use grounding::{numbers, quotations};
pub(crate) use refusal::asks_for;
pub use refusal::refuses;
pub use reply::{CitationDuty, HIGH_RISK, Reply, Said, Settings};
pub(crate) use result::{Absence, Finding};
pub use result::{Check, CheckResult, Place, Side, Status};
pub use terms::{Term, key_terms, stem};

use crate::limits::{MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, MAX_REPLY_BYTES};

/// Answers all checks, in the order of [`Check::ALL`]. Total: a reply, a prompt or documents over the limits fail every
/// check, since they are not read.
#[must_use]
pub fn verify(reply: &Reply<'_>, settings: &Settings) -> Vec<CheckResult> {
    let findings = findings(reply, settings, &Check::ALL);
    findings.into_iter().map(|(check, finding)| finding.result(check, reply)).collect()
}

/// Answers some checks, as [`verify`] does all.
pub(crate) fn findings(reply: &Reply<'_>, settings: &Settings, checks: &[Check]) -> Vec<(Check, Finding)> {
    if let Some(why) = over_limits(reply) {
        return checks.iter().map(|check| (*check, Finding::fail(why.clone()))).collect();
    }
    let cited = citation::Cited::of(reply);
    // Two others ask whether the reply refuses.
    let asks = [Check::CitationPresence, Check::FactConsistency, Check::RefusalPolicy];
    let refusal = checks.iter().any(|check| asks.contains(check)).then(|| refusal::check(reply, settings));
    let refused = refusal.as_ref().is_some_and(|refusal| refusal.status == Status::Pass);
    let finding = |check: &Check| match check {
        Check::CitationPresence => citation::presence(&cited, reply, settings, refused),
        Check::CitationMatch => citation::matches(&cited, reply),
        Check::FactConsistency => terms::consistency(&cited, reply, refused),
        Check::RefusalPolicy => refusal.clone().unwrap_or_else(|| refusal::check(reply, settings)),
        Check::QuotationGrounding => grounding::quoted(&cited, reply),
        Check::NumberGrounding => grounding::numbered(&cited, reply),
    };
    checks.iter().map(|check| (*check, finding(check))).collect()
}

fn over_limits(reply: &Reply<'_>) -> Option<String> {
    let prompts: usize = reply.prompts.iter().map(|said| said.text.len()).sum();
    for (what, bytes) in [("reply", reply.said.text.len()), ("prompt", prompts)] {
        if bytes > MAX_REPLY_BYTES {
            return Some(format!("the {what} has {bytes} bytes; the limit is {MAX_REPLY_BYTES}"));
        }
    }
    let documents = reply.documents.unwrap_or_default();
    if documents.len() > MAX_DOCUMENTS {
        let count = documents.len();
        return Some(format!("there are {count} documents; the limit is {MAX_DOCUMENTS}"));
    }
    let others: usize = reply.others.iter().map(|text| text.len()).sum();
    let bytes = others + documents.iter().map(|document| document.text.len()).sum::<usize>();
    (bytes > MAX_DOCUMENT_BYTES)
        .then(|| format!("the documents have {bytes} bytes; the limit is {MAX_DOCUMENT_BYTES}"))
}
