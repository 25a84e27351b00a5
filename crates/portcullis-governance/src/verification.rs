//! What the checks say of replies: one row a check, in seven columns, and how they are in a record.

use portcullis_contracts::verify::{Check, CheckResult, Status};
use portcullis_core::event::{Actor, EventBody};
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::trace::EventType;

/// The name of the evidence that holds the checks of a reply; see `specs/verification.md`.
const EVIDENCE: &str = "verification";

/// The answer of one check. Serialized, its fields are the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationRow {
    /// Unique in the run: number of the event of the answer, and name of the check.
    pub check_id: String,
    /// What is checked, as `CITATION_PRESENCE`.
    pub check_type: String,
    /// PASS, FAIL or N/A.
    pub status: Status,
    /// What the check looks at.
    pub description: String,
    /// What it found.
    pub details: String,
    /// The step of the trace that it is about.
    pub related_audit_event_step: u32,
    /// And the row of that step.
    pub related_audit_event_action: EventType,
}

/// The rows of an answer that was given at a step.
#[must_use]
pub fn rows(checks: &[CheckResult], step: u32) -> Vec<VerificationRow> {
    let row = |result: &CheckResult| VerificationRow {
        check_id: format!("{}-{}", result.event.unwrap_or_default(), result.check.name()),
        check_type: result.check.check_type().to_owned(),
        status: result.status,
        description: result.check.description().to_owned(),
        details: details(result),
        related_audit_event_step: step,
        related_audit_event_action: EventType::OutputGenerated,
    };
    checks.iter().map(row).collect()
}

/// The explanation, with what it is about.
#[must_use]
pub fn details(result: &CheckResult) -> String {
    if result.named.is_empty() {
        return result.explanation.clone();
    }
    let missing = if result.check == Check::FactConsistency { "without " } else { "" };
    let named: Vec<String> = result.named.iter().map(|name| format!("`{name}`")).collect();
    format!("{}: {missing}{}", result.explanation, named.join(", "))
}

/// The verification of one reply, as a run recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyVerified {
    /// The event of the evidence.
    pub event: u64,
    /// The event of the reply.
    pub reply: u64,
    /// The answers, or `None` if they were withheld or erased, or are not of a form that this release reads.
    pub checks: Option<Vec<CheckResult>>,
}

/// The payload `results` of the evidence.
#[derive(Deserialize)]
struct Results {
    v: u8,
    reply: u64,
    checks: Vec<CheckResult>,
}

/// The verifications that the gate recorded. What an agent records under the same name is none.
#[must_use]
pub fn recorded(record: &Record) -> Vec<ReplyVerified> {
    let gate = Actor::gate();
    let verified = record.events().iter().filter_map(|event| match (&event.body, event.cause) {
        (EventBody::Evidence { name, .. }, Some(reply)) if name == EVIDENCE && event.actor == gate => {
            let results = record.named(event, "results");
            let results = results.and_then(|bytes| serde_json::from_slice::<Results>(bytes).ok());
            let checks = results.filter(|results| results.v == 1 && results.reply == reply);
            Some(ReplyVerified { event: event.seq, reply, checks: checks.map(|results| results.checks) })
        }
        _ => None,
    });
    verified.collect()
}
