//! What a run is asked about the runs that it opened for delegated agents, and what it answers.
//!
//! Both are facts: they stand in the record of the run that was judged, so its verdicts can be computed again from that
//! record alone.

use serde::{Deserialize, Serialize};

use crate::fact::FactRequest;

/// The source that says whether the run above may do what a run proposes.
pub const PARENT: &str = "parent";
/// The source that says what the runs below a run have used up.
pub const CHILDREN: &str = "children";

/// Asks the run above whether it may do the pending action now. The answer is a [`ParentAnswer`], as JSON.
pub fn may() -> FactRequest {
    FactRequest { source: PARENT.to_owned(), question: "may".to_owned() }
}

/// Asks what all runs below this one have used up. The answer is a [`Used`](crate::usage::Used), as JSON.
pub fn used_below() -> FactRequest {
    FactRequest { source: CHILDREN.to_owned(), question: "used".to_owned() }
}

/// What the run above says of an action of a run that it opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentAnswer {
    /// Number of its last event when it was asked.
    pub seq: u64,
    /// Why it may not do that itself, or `None` if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<Objection>,
}

/// Why a run may not do what a run that it opened proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Whether a person's approval in the run that was opened is enough.
    pub holds: bool,
    /// Rule of the headline.
    pub rule: String,
    /// Its message.
    pub why: String,
}
