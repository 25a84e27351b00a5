//! A contract: a statement about a reply, and who decides whether it holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::family::Family;
use crate::limits::MAX_SPANS;
use crate::text::Span;
use crate::wording::{Noun, count};

/// Whether code or a model decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checker {
    /// Code: the statement is of a family that is checked exactly.
    Exact(Family),
    /// A model or a guard program: nothing here can tell.
    Judged,
}

/// Which contract gives way where two cannot hold together: the lower one. Equal ones give way in order, the later first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub i64);

impl Priority {
    /// The tag `LOW_PRIORITY`.
    pub const LOW: Self = Self(-1_000);
    /// The tag `MEDIUM_PRIORITY`, and the default.
    pub const MEDIUM: Self = Self(0);
    /// The tag `HIGH_PRIORITY`.
    pub const HIGH: Self = Self(1_000);

    /// The priority of a rank: rank 1 comes before rank 2.
    #[must_use]
    pub const fn of_rank(rank: u32) -> Self {
        Self(-(rank as i64))
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::MEDIUM
    }
}

/// A statement and its checker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// A name that is unique among the contracts of one reply.
    pub id: String,
    /// The statement, as it was written.
    pub statement: String,
    /// Whether code or a model decides.
    pub checker: Checker,
    /// Which gives way in a conflict.
    #[serde(default)]
    pub priority: Priority,
}

impl Contract {
    /// A contract that code decides, of medium priority.
    #[must_use]
    pub fn exact(id: impl Into<String>, statement: impl Into<String>, family: Family) -> Self {
        Self {
            id: id.into(),
            statement: statement.into(),
            checker: Checker::Exact(family),
            priority: Priority::MEDIUM,
        }
    }

    /// The family, where code decides.
    #[must_use]
    pub const fn family(&self) -> Option<&Family> {
        match &self.checker {
            Checker::Exact(family) => Some(family),
            Checker::Judged => None,
        }
    }
}

/// What a checker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ContractVerdict")]
pub enum Verdict {
    /// The contract holds.
    Pass,
    /// It does not.
    Fail,
    /// It cannot be told here: judged contracts, and those about a request where none was given.
    NotApplicable,
}

/// A verdict with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Whether the contract holds.
    pub verdict: Verdict,
    /// Why, in one sentence: what was found and what is demanded.
    pub explanation: String,
    /// Where: what breaks the contract, or what was counted. Bytes of the reply, in order, at most
    /// [`MAX_SPANS`].
    pub spans: Vec<Span>,
}

impl Check {
    pub(crate) fn new(holds: bool, explanation: String, mut spans: Vec<Span>) -> Self {
        spans.truncate(MAX_SPANS);
        Self { verdict: if holds { Verdict::Pass } else { Verdict::Fail }, explanation, spans }
    }

    /// The check of a count against its bound.
    pub(crate) fn counted(number: usize, bound: &Bound, noun: Noun, spans: Vec<Span>) -> Self {
        Self::new(bound.holds(number), format!("{}; demanded: {bound}", count(number, noun)), spans)
    }

    pub(crate) fn not_applicable(explanation: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotApplicable, explanation: explanation.into(), spans: Vec::new() }
    }

    /// Whether the contract holds; what does not apply does not.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Pass
    }
}
