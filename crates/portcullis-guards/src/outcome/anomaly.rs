//! Notes results that are unlike what a tool returns.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Notes an unusual result: one of unusual size, full of words of failure, or addressed to the assistant.
///
/// ## Why it matters
/// It shows a person where to look, and marks in the record where something began.
///
/// ## Fires on
/// A result 16 times larger than any earlier one of this tool, from its sixth result on; three different words of
/// failure in its first 512 bytes; text that speaks to an assistant and tells it what to do, together with secrecy,
/// credentials or the assistant's rules (`warn`).
///
/// ## Does not cover
/// Content that is wrong but looks right.
///
/// ## Configuration
/// `monitors.toml`, pattern `ai-order`.
///
/// ## False positives
/// Logs and reports about errors. It never stops anything; a later call that obeys such an order is stopped by
/// `trajectory/violations`.
///
/// ## References
/// Seed 001, anomaly detector. OWASP ASI06, LLM01.
#[derive(Debug)]
pub struct OutcomeAnomaly;

static META: GuardMeta = GuardMeta {
    id: "outcome/anomaly",
    hooks: &[Hook::Observation],
    owasp: &["ASI06", "LLM01"],
    unfaithful_to: Some(Unfaithful::Observations),
};

impl Guard<RunMemory> for OutcomeAnomaly {
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
        let odd: Vec<&str> = reading.anomalies.iter().map(|anomaly| anomaly.as_str()).collect();
        if odd.is_empty() {
            return Ok(Vec::new());
        }
        let message = format!("the result is unusual: {}", odd.join("; "));
        Ok(vec![Finding::new("outcome/anomaly", Verdict::Warn, message)])
    }
}
