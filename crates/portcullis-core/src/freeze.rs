//! Freezes: a person stops runs at once, and lets them go on in two steps.
//!
//! A freeze covers one run, all runs of a principal, or all runs. It is checked before any guard and changes nothing
//! else: phase, approvals and grants of a run stay as they are, and time does not run for them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::time::Timestamp;

/// Which runs a freeze covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreezeScope {
    /// One run.
    Run(RunId),
    /// All runs of the principal with this name.
    Principal(String),
    /// All runs.
    All,
}

impl FreezeScope {
    /// Whether a run of a principal is covered.
    #[must_use]
    pub fn covers(&self, run: RunId, principal: &str) -> bool {
        match self {
            Self::Run(id) => *id == run,
            Self::Principal(name) => name == principal,
            Self::All => true,
        }
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Principal(name) => write!(f, "principal `{name}`"),
            Self::All => f.write_str("all runs"),
        }
    }
}

/// What a freeze stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Frozen {
    /// Calls with side effects: the first step of a release was taken.
    SideEffects,
    /// Every action and every reply.
    Everything,
}

impl Frozen {
    /// The word, as it stands in the API and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SideEffects => "side_effects",
            Self::Everything => "everything",
        }
    }
}

/// Who froze or released, when and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreezeOrder {
    /// When.
    pub at: Timestamp,
    /// The approver.
    pub by: String,
    /// Why, in the approver's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A freeze from its order to its release. Each scope has at most one that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freeze {
    /// Which runs it covers.
    pub scope: FreezeScope,
    /// Who froze.
    pub frozen: FreezeOrder,
    /// Who let go on what has no side effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_released: Option<FreezeOrder>,
    /// Who ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<FreezeOrder>,
}

impl Freeze {
    /// What it stops now, or `None` once it is released.
    #[must_use]
    pub fn stops(&self) -> Option<Frozen> {
        match (&self.released, &self.reads_released) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(Frozen::SideEffects),
            (None, None) => Some(Frozen::Everything),
        }
    }
}
