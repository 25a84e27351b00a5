//! Notes results that failed, and replies that say otherwise.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};
use portcullis_trajectory::monitors::Claim;

/// ## What it does
/// Notes a result that says that the call failed, and a reply that claims that something was done although the latest
/// call failed or was never executed.
///
/// ## Why it matters
/// An agent that reports a success that did not happen misleads everybody who relies on it.
///
/// ## Fires on
/// A result that begins with a word of failure (`warn`, rule `outcome/verifier/failed`). A reply with a common phrase
/// of success and none of failure, after a call that ended in an error, timed out or was not executed (`warn`, rule
/// `outcome/verifier/claim`).
///
/// ## Does not cover
/// Whether a successful call did what was wanted; claims about calls before the latest.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// A reply about a success other than that of the latest call.
///
/// ## References
/// Seed 001, outcome verifier: it never stops anything. OWASP ASI09.
#[derive(Debug)]
pub struct OutcomeVerifier;

static META: GuardMeta = GuardMeta {
    id: "outcome/verifier",
    hooks: &[Hook::Observation, Hook::Output],
    owasp: &["ASI09"],
    unfaithful_to: Some(Unfaithful::Observations),
};

impl Guard<RunMemory> for OutcomeVerifier {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        _pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let reading = &context.reading()?.monitors;
        let mut findings = Vec::new();
        if reading.failed {
            let message = "the result says that the call failed";
            findings.push(Finding::new("outcome/verifier/failed", Verdict::Warn, message));
        }
        if let Some(claim) = reading.claim {
            let message = match claim {
                Claim::Failed => "the reply says that something was done, but the latest call failed",
                Claim::NotExecuted => {
                    "the reply says that something was done, but the latest call was not executed"
                }
            };
            findings.push(Finding::new("outcome/verifier/claim", Verdict::Warn, message));
        }
        Ok(findings)
    }
}
