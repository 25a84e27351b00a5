//! Runtime policies: the limits of the ladder of seed 000 §3-4, as data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::fact::FactRequest;
use crate::time::Timestamp;

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
    /// Bytes of arguments sent and of results seen in one run, or `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Cost of the calls of one run, in millionths of the bundle's unit, or `None` for no limit.
    pub max_cost_micros: Option<u64>,
    /// What all runs of one principal together may use up, or `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalBudget>,
    /// Whether every side effect needs a person's approval.
    pub approval_for_side_effects: bool,
    /// Words that must not occur in the planned action or in any argument.
    pub restricted_keywords: Vec<String>,
    /// Whether a failed verification raises the run to review.
    pub escalate_on_verification_fail: bool,
}

/// Limits on what all runs of one principal together may use up in each window, or `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrincipalBudget {
    /// The window.
    pub per: Window,
    /// Steps, denied and held ones included.
    pub max_steps: Option<u64>,
    /// Side effects that were permitted.
    pub max_side_effects: Option<u64>,
    /// Bytes of arguments sent and of results seen.
    pub max_bytes: Option<u64>,
    /// Cost of the calls that were permitted, in millionths of the bundle's unit.
    pub max_cost_micros: Option<u64>,
}

/// A stretch of time at whose beginning counting starts again. In UTC, and the same for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// From one full hour to the next.
    Hour,
    /// From one midnight to the next.
    Day,
}

impl Window {
    /// All windows, the shorter first.
    pub const ALL: [Self; 2] = [Self::Hour, Self::Day];
    /// The source of the fact that [`Self::usage`] asks for.
    pub const SOURCE: &'static str = "principal-usage";

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// The window of that word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.as_str() == name)
    }

    /// When the window began that `at` falls into.
    #[must_use]
    pub fn start(self, at: Timestamp) -> Timestamp {
        let length: i64 = match self {
            Self::Hour => 3_600_000_000,
            Self::Day => 86_400_000_000,
        };
        Timestamp::from_micros(at.as_micros().div_euclid(length).saturating_mul(length))
    }

    /// The question what all runs of the run's principal have used up in the window so far. It is answered with
    /// [`Used`](crate::usage::Used), as JSON.
    #[must_use]
    pub fn usage(self) -> FactRequest {
        FactRequest { source: Self::SOURCE.to_owned(), question: self.as_str().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_at_the_full_hour_and_at_midnight() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let noon = at("2026-02-28T12:34:56.000001Z");
        assert_eq!(Window::Hour.start(noon), at("2026-02-28T12:00:00.000000Z"));
        assert_eq!(Window::Day.start(noon), at("2026-02-28T00:00:00.000000Z"));
        assert_eq!(Window::Day.start(at("2026-02-28T00:00:00.000000Z")), at("2026-02-28T00:00:00.000000Z"));
        assert_eq!(Window::Day.start(at("1969-12-31T23:59:59.999999Z")), at("1969-12-31T00:00:00.000000Z"));
        assert_eq!(Window::ALL.map(|window| Window::from_name(window.as_str())), Window::ALL.map(Some));
    }
}
