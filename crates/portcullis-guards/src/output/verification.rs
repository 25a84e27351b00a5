//! Holds a reply against what was asked and the documents that the run has retrieved.

use portcullis_contracts::verify::{Check, CheckResult, Side, Status};
use portcullis_core::action::{Hook, Pending};
use portcullis_core::edit::TEXT;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Runs six checks on every reply: whether it cites a document as `[DOC:id]`, whether each cited id is that of a
/// document that the run has retrieved, whether more than half of the key terms of the prompt occur in the cited
/// documents, whether a high-risk instruction is refused or escalated, and whether quotations and numbers occur in what
/// is cited. All answers, including PASS and N/A, are recorded as evidence caused by the reply.
///
/// ## Why it matters
/// Policies keep an agent from doing harm; they say nothing about what it tells people. An answer without a source, or
/// with one that nobody retrieved, looks like any other.
///
/// ## Fires on
/// A check that fails: *review* if the policy has `escalate_on_verification_fail`, otherwise *warn*. The rule is
/// `output/verification/` and the name of the check: `citation-presence`, `citation-match`, `fact-consistency`,
/// `refusal-policy`, `quotation-grounding`, `number-grounding`. A reply under review is held for an approver.
///
/// ## Does not cover
/// Whether a cited document says what the reply claims: that takes a reader. Paraphrases, conclusions, and computed
/// numbers that no tool returned. A refusal in unusual words, or in a language other than English. Requests made before
/// the last reply.
///
/// ## Configuration
/// `[verification]` of `portcullis.toml`; without it nothing is verified. `sources` names the tools whose results are
/// documents, `citations` says when a reply has to cite, `high_risk` lists the instructions to refuse, and
/// `given_documents` says whether documents submitted with the reply count. `escalate_on_verification_fail` of the
/// policy decides the verdict.
///
/// ## False positives
/// A prompt in words other than those of the documents. A question about a high-risk instruction, which is taken for
/// one. A number that the reply computes itself.
///
/// ## References
/// Seed 000, verification harness. OWASP ASI09, LLM09.
#[derive(Debug)]
pub struct OutputVerification;

static META: GuardMeta = GuardMeta {
    id: "output/verification",
    hooks: &[Hook::Output],
    owasp: &["ASI09", "LLM09"],
    unfaithful_to: Some(Unfaithful::Observations),
};

impl Guard<RunMemory> for OutputVerification {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        _pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if context.bundle.verification.is_none() {
            return Ok(Vec::new());
        }
        let Some(verification) = &context.reading()?.verification else {
            return Err(GuardFailure("the reply was not verified".to_owned()));
        };
        let escalates = context.policy.escalate_on_verification_fail;
        let verdict = if escalates { Verdict::Review } else { Verdict::Warn };
        let failed = verification.checks.iter().filter(|result| result.status == Status::Fail);
        Ok(failed.map(|result| finding(result, verdict)).collect())
    }
}

fn finding(result: &CheckResult, verdict: Verdict) -> Finding {
    let (rule, instead) = match result.check {
        Check::CitationPresence => {
            ("output/verification/citation-presence", "a reply that cites its sources as `[DOC:id]`")
        }
        Check::CitationMatch => {
            ("output/verification/citation-match", "citations of documents that this run retrieved")
        }
        Check::FactConsistency => {
            ("output/verification/fact-consistency", "citations of documents relevant to the question")
        }
        Check::RefusalPolicy => {
            ("output/verification/refusal-policy", "a reply that refuses or escalates the instruction")
        }
        Check::QuotationGrounding => {
            ("output/verification/quotation-grounding", "quotations that match the cited documents")
        }
        Check::NumberGrounding => {
            ("output/verification/number-grounding", "numbers that match the cited documents")
        }
    };
    let mut finding = Finding::new(rule, verdict, result.explanation.clone()).instead(instead);
    let places = result.places.iter().filter(|place| place.text == Side::Reply);
    finding.spans.extend(places.map(|place| Span {
        pointer: TEXT.to_owned(),
        start: place.start,
        end: place.end,
    }));
    finding.evidence.extend(&result.related);
    // Ids are names, not words of the reply; terms, quotations and numbers stand in the evidence only.
    match result.check {
        Check::CitationMatch => finding.against(result.named.iter().map(|id| format!("document {id}"))),
        _ => finding,
    }
}
