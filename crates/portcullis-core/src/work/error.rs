//! Why an operation was refused: which field, why, and what would be taken instead.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A field is not of its form.
    Malformed,
    /// There is no such item.
    UnknownItem,
    /// Somebody else may.
    NotPermitted,
    /// Not in this state of the item.
    WrongState,
    /// What is cited is no evidence.
    NoEvidence,
    /// It is evidence, but of what was written over since, or of an earlier claim.
    OldEvidence,
    /// A limit was reached; a person takes it further.
    WaitsForPerson,
    /// The item is another than the one that was checked.
    Changed,
    /// A limit on items.
    Full,
}

/// Why an operation was refused. The run is as it was before, but for the record of the refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkError {
    /// Why, in a word.
    pub refusal: Refusal,
    /// The field that it is about.
    pub field: String,
    /// Why.
    pub reason: String,
    /// What would be taken.
    pub next: String,
}

impl WorkError {
    /// An operation that would be refused for a field of it.
    pub fn new(
        refusal: Refusal,
        field: impl Into<String>,
        reason: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { refusal, field: field.into(), reason: reason.into(), next: next.into() }
    }

    /// A field is not of its form.
    pub fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Refusal::Malformed, field, reason, "send the operation again with that field corrected")
    }
}

impl std::error::Error for WorkError {}

impl fmt::Display for WorkError {
    /// `` `evidence[0]`: call 12.. failed; cite a call that succeeded ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; {}", self.field, self.reason, self.next)
    }
}
