//! What the checks say of the answer of a simulated run: one row a check, in seven columns.

use portcullis_contracts::verify::{CheckResult, Status};
use portcullis_session::engine::Verification;
use serde::{Deserialize, Serialize};

use crate::trace::EventType;

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
pub fn rows(verification: &Verification, step: u32) -> Vec<VerificationRow> {
    let row = |result: &CheckResult| VerificationRow {
        check_id: format!("{}-{}", result.event.unwrap_or_default(), result.check.name()),
        check_type: result.check.check_type().to_owned(),
        status: result.status,
        description: result.check.description().to_owned(),
        details: details(result),
        related_audit_event_step: step,
        related_audit_event_action: EventType::OutputGenerated,
    };
    verification.checks.iter().map(row).collect()
}

/// The explanation, with what it is about.
#[must_use]
pub fn details(result: &CheckResult) -> String {
    if result.named.is_empty() {
        return result.explanation.clone();
    }
    let missing =
        if result.check == portcullis_contracts::verify::Check::FactConsistency { "without " } else { "" };
    let named: Vec<String> = result.named.iter().map(|name| format!("`{name}`")).collect();
    format!("{}: {missing}{}", result.explanation, named.join(", "))
}
