//! What an agent has the gate keep: the session state of a run, one key at a time, and facts that outlive the run.
//!
//! A *cell* is a key of the session state with its value. It is written by naming the version that is replaced, so that
//! of two writers one is refused. A *kept fact* is a text that later runs of the same principal read; it is named by the
//! event that established it, and is never changed: a later fact may replace it, and it may be forgotten with a reason.
//!
//! Both keep the labels of the run in which they were written, and hand them to the run that reads them. [`put`],
//! [`write`], [`read`] and [`forget`] say what an operation does and change nothing; what they say is recorded, and
//! [`Kept`](crate::state::Kept) is the fold over those records. The format is `specs/kept.md`.
//!
//! (A kept fact has nothing to do with what a guard asks of the world, which is in [`crate::fact`].)

mod cell;
mod fact;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::cell::{Cell, CellId, CellOp, CellRecord, CellWords, Put, STATE, put};
pub use self::fact::{
    FACT, Foreign, KeptFact, KeptId, KeptOp, KeptRecord, KeptScope, KeptWords, NewFact, Standing, forget,
    known, read, write,
};

/// Most keys in the state of a run.
pub const CELLS_MAX: usize = 256;
/// Most bytes of a key.
pub const KEY_BYTES_MAX: usize = 256;
/// Most bytes of a value, as JSON.
pub const VALUE_BYTES_MAX: usize = 16 << 10;
/// Most bytes of all keys and values of a run.
pub const STATE_BYTES_MAX: usize = 1 << 20;
/// Most facts that one run writes.
pub const FACTS_OF_RUN_MAX: usize = 10_000;
/// Most bytes of a topic.
pub const TOPIC_BYTES_MAX: usize = 256;
/// Most bytes of a fact.
pub const FACT_BYTES_MAX: usize = 8 << 10;
/// Most facts that one fact replaces.
pub const REPLACES_MAX: usize = 32;
/// Most facts that are read at once.
pub const FACTS_READ_MAX: usize = 64;
/// Most bytes of the reason for forgetting.
pub const REASON_BYTES_MAX: usize = 4 << 10;
/// Requests of a run that are remembered, so that one that is made again does not count twice: the latest.
pub const REQUESTS_REMEMBERED_MAX: usize = 1_024;

/// Why, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// A field is not of its form.
    Malformed,
    /// The version that was to be replaced is not the current one.
    Stale,
    /// There is no such fact, or it is another's.
    Unknown,
    /// It was forgotten.
    Forgotten,
    /// A limit on what is kept.
    Full,
}

impl Refusal {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Stale => "stale",
            Self::Unknown => "unknown",
            Self::Forgotten => "forgotten",
            Self::Full => "full",
        }
    }
}

/// Why an operation was refused. Nothing changed, but for the record of the refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptError {
    /// Why, in a word.
    pub refusal: Refusal,
    /// The field that it is about.
    pub field: String,
    /// Why.
    pub reason: String,
    /// What would be taken.
    pub next: String,
}

impl KeptError {
    /// An operation that is refused for a field of it.
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

impl std::error::Error for KeptError {}

impl fmt::Display for KeptError {
    /// `` `replaces`: `plan` is at version 12; read it, then put it with `"replaces": 12` ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; {}", self.field, self.reason, self.next)
    }
}

/// Refuses a text that is empty or too long.
fn text_within(field: &str, text: &str, limit: usize) -> Result<(), KeptError> {
    match text.len() {
        _ if text.trim().is_empty() => Err(KeptError::field(field, "is empty")),
        bytes if bytes > limit => {
            Err(KeptError::field(field, format!("has {bytes} bytes; the limit is {limit}")))
        }
        _ => Ok(()),
    }
}
