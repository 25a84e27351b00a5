//! The verdict lattice. Guards find, the pipeline joins: the verdict on an action is the maximum over all
//! findings, so the order in which guards run can change the cost of a decision but never its outcome.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the gate says of a pending action, observation, input or reply. Ordered by rank.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing objects to it.
    #[default]
    Allow,
    /// It passes, and the finding is recorded.
    Warn,
    /// It passes with the span edits of the findings applied.
    Modify,
    /// Withheld; the agent is given a question for the user, and the next input is judged as the answer.
    Clarify,
    /// Withheld until a new user input or a person's resume.
    Pause,
    /// Held until an approver decides.
    Review,
    /// Withheld; the run goes on.
    Deny,
    /// Withheld, and the run ends; only a person resumes it.
    Halt,
}

impl Verdict {
    /// All verdicts in order of rank.
    pub const ALL: [Self; 8] = [
        Self::Allow,
        Self::Warn,
        Self::Modify,
        Self::Clarify,
        Self::Pause,
        Self::Review,
        Self::Deny,
        Self::Halt,
    ];

    /// The stricter of the two: the join of the lattice.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// Whether an action with this verdict may execute in `enforce` mode without a grant.
    pub fn permits(self) -> bool {
        self <= Self::Modify
    }

    /// The word of the runtime-policy seed (000 §4).
    pub fn policy_action(self) -> PolicyAction {
        match self {
            Self::Allow | Self::Warn | Self::Modify => PolicyAction::Allowed,
            Self::Review => PolicyAction::RequiresApproval,
            Self::Clarify | Self::Pause | Self::Deny | Self::Halt => PolicyAction::Denied,
        }
    }

    /// The word of the escalation seed (001).
    pub fn escalation(self) -> Escalation {
        match self {
            Self::Allow | Self::Modify | Self::Deny => Escalation::None,
            Self::Warn => Escalation::Warn,
            Self::Clarify => Escalation::Clarify,
            Self::Pause => Escalation::SoftStop,
            Self::Review => Escalation::HumanReview,
            Self::Halt => Escalation::HardStop,
        }
    }

    /// The verdict's name, as it appears in events and on every surface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Modify => "modify",
            Self::Clarify => "clarify",
            Self::Pause => "pause",
            Self::Review => "review",
            Self::Deny => "deny",
            Self::Halt => "halt",
        }
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == name)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The three outcomes of the runtime-policy seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PolicyAction {
    /// The step goes ahead.
    #[serde(alias = "ALLOW")]
    Allowed,
    /// The step waits for a person.
    #[serde(alias = "REQUIRE_APPROVAL")]
    RequiresApproval,
    /// The step does not happen.
    #[serde(alias = "DENY")]
    Denied,
}

impl fmt::Display for PolicyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allowed => "ALLOWED",
            Self::RequiresApproval => "REQUIRES_APPROVAL",
            Self::Denied => "DENIED",
        })
    }
}

/// The levels of the escalation seed, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Escalation {
    /// Go on.
    None,
    /// Go on and log.
    Warn,
    /// Ask the user.
    Clarify,
    /// Pause.
    SoftStop,
    /// Wait for a person.
    HumanReview,
    /// End the run.
    HardStop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_compare_as_the_lattice_says() {
        let mut sorted = Verdict::ALL;
        sorted.sort();
        assert_eq!(sorted, Verdict::ALL);
        assert!(Verdict::Deny > Verdict::Review, "compared by rank, never as strings");
        assert_eq!(Verdict::Review.join(Verdict::Warn), Verdict::Review);
    }

    #[test]
    fn names_round_trip() {
        for verdict in Verdict::ALL {
            assert_eq!(Verdict::from_name(verdict.as_str()), Some(verdict));
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
    }

    #[test]
    fn only_the_three_lowest_permit() {
        let permitting: Vec<_> = Verdict::ALL.into_iter().filter(|v| v.permits()).collect();
        assert_eq!(permitting, [Verdict::Allow, Verdict::Warn, Verdict::Modify]);
        assert!(permitting.iter().all(|v| v.policy_action() == PolicyAction::Allowed));
    }
}
