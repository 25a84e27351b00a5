//! Runtime policies: the limits of the ladder of seed 000 §3-4, as data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A named set of limits on what an agent may do in one run. The name never changes; it is how runs, approvals
/// and exports refer to the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePolicy {
    /// Unique and immutable.
    pub name: String,
    /// Types of tools the agent may use.
    pub allowed_types: BTreeSet<String>,
    /// Steps an agent may take in one run, denied and held ones included. At least 1.
    pub max_steps: u32,
    /// Side effects that may execute in one run: a limit of N permits exactly N.
    pub max_side_effects: u32,
    /// Bytes of arguments sent and of results seen in one run; none for no limit.
    pub max_bytes: Option<u64>,
    /// Cost of the calls of one run, in millionths of the bundle's unit; none for no limit.
    pub max_cost_micros: Option<u64>,
    /// Whether every side effect needs a person's approval.
    pub approval_for_side_effects: bool,
    /// Words that must not occur in the planned action or in any argument.
    pub restricted_keywords: Vec<String>,
    /// Whether a failed verification raises the run to review.
    pub escalate_on_verification_fail: bool,
}
