//! How often each verdict was given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;

/// How often each verdict was given in a run, on actions and on texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VerdictCounts {
    /// Verdicts `allow`.
    pub allow: u32,
    /// Verdicts `warn`.
    pub warn: u32,
    /// Verdicts `modify`.
    pub modify: u32,
    /// Verdicts `clarify`.
    pub clarify: u32,
    /// Verdicts `pause`.
    pub pause: u32,
    /// Verdicts `review`.
    pub review: u32,
    /// Verdicts `deny`.
    pub deny: u32,
    /// Verdicts `halt`.
    pub halt: u32,
}

impl VerdictCounts {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Allow => &mut self.allow,
            Verdict::Warn => &mut self.warn,
            Verdict::Modify => &mut self.modify,
            Verdict::Clarify => &mut self.clarify,
            Verdict::Pause => &mut self.pause,
            Verdict::Review => &mut self.review,
            Verdict::Deny => &mut self.deny,
            Verdict::Halt => &mut self.halt,
        };
        *count = count.saturating_add(1);
    }
}
