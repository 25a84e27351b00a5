//! Freezes: what is asked and answered.

use portcullis_core::freeze::{Freeze, Frozen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to freeze or to release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreezeTarget {
    /// One run, live or not, by its id or the start of it.
    Run(String),
    /// All runs of the principal with this name, and those that it opens.
    Principal(String),
    /// All runs, and all that are opened.
    All,
}

/// Freezes. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FreezeRuns {
    /// What to freeze.
    pub scope: FreezeTarget,
    /// Why: for the record, and for the agents.
    #[serde(default)]
    pub note: Option<String>,
}

/// Releases a freeze. Needs the approver's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRuns {
    /// What to release: exactly what was frozen.
    pub scope: FreezeTarget,
    /// How far.
    pub stage: ReleaseStage,
    /// Why, for the record.
    #[serde(default)]
    pub note: Option<String>,
}

/// How far a release goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseStage {
    /// What has no side effect goes on; the rest stays frozen.
    Reads,
    /// Everything goes on.
    All,
}

/// A freeze, in force or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreezeInfo {
    /// Whom it covers, and who ordered and released it.
    #[serde(flatten)]
    pub freeze: Freeze,
    /// What it stops now, or `None` once it is released.
    #[serde(default)]
    pub stops: Option<Frozen>,
}

impl From<&Freeze> for FreezeInfo {
    fn from(freeze: &Freeze) -> Self {
        Self { freeze: freeze.clone(), stops: freeze.stops() }
    }
}

/// Freezes: those that are in force, the oldest first, or the history, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freezes {
    /// The freezes.
    pub freezes: Vec<FreezeInfo>,
}

/// What became of an order to freeze or to release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreezeAnswer {
    /// The freeze as it stands now.
    #[serde(flatten)]
    pub freeze: FreezeInfo,
    /// Whether it stood like this before: nothing was changed.
    #[serde(default)]
    pub already: bool,
    /// Whether the store has a run that it covers.
    #[serde(default)]
    pub known: bool,
    /// Live runs that it covers.
    #[serde(default)]
    pub runs: u64,
    /// Those of them that another freeze stops from more.
    #[serde(default)]
    pub held_by_others: u64,
    /// Those of them that could not record the change yet. They are held to it all the same.
    #[serde(default)]
    pub unrecorded: u64,
}
