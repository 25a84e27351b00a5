//! How to repair.

use std::fmt;
use std::str::FromStr;

use portcullis_contracts::limits::MAX_STATEMENTS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::judge::{Detect, Task};
use crate::limits::MAX_REWRITES;
use crate::model::Exhausted;

/// In which way a model is asked for rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Strategy {
    /// None: what code cannot mend is left. Judged contracts are still judged, where there is a judge.
    Mechanical,
    /// One rewrite for all that is broken.
    Batch,
    /// One rewrite for each broken contract in turn, by priority, on the best so far.
    Iterative,
    /// Rewrites for all that is broken, on the best so far, until clean.
    Retry {
        /// Most rewrites.
        attempts: u32,
    },
    /// Rewrites of the same reply for all that is broken, sampled until one is clean; the best is taken.
    #[serde(rename = "best-of-n")]
    BestOf {
        /// Most rewrites.
        samples: u32,
        /// Whether exact checkers alone select, and judged contracts are asked about once, of the chosen one.
        #[serde(default)]
        oracle: bool,
    },
    /// A rewrite of the reply for each broken contract, then one that merges them.
    MapReduce,
}

impl Strategy {
    /// Rewrites of `retry` and `best-of-n` unless said otherwise.
    pub const DEFAULT_REWRITES: u32 = 5;

    /// The strategy with another number of rewrites, where it has one.
    #[must_use]
    pub const fn with_rewrites(self, rewrites: u32) -> Self {
        match self {
            Self::Retry { .. } => Self::Retry { attempts: rewrites },
            Self::BestOf { oracle, .. } => Self::BestOf { samples: rewrites, oracle },
            other => other,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mechanical => "mechanical",
            Self::Batch => "batch",
            Self::Iterative => "iterative",
            Self::Retry { .. } => "retry",
            Self::BestOf { oracle: false, .. } => "best-of-n",
            Self::BestOf { oracle: true, .. } => "best-of-n-oracle",
            Self::MapReduce => "map-reduce",
        })
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let samples = Self::DEFAULT_REWRITES;
        match name {
            "mechanical" => Ok(Self::Mechanical),
            "batch" => Ok(Self::Batch),
            "iterative" => Ok(Self::Iterative),
            "retry" => Ok(Self::Retry { attempts: samples }),
            "best-of-n" => Ok(Self::BestOf { samples, oracle: false }),
            "best-of-n-oracle" => Ok(Self::BestOf { samples, oracle: true }),
            "map-reduce" => Ok(Self::MapReduce),
            _ => Err(format!(
                "`{name}` is no strategy; take `mechanical`, `batch`, `iterative`, `retry`, `best-of-n`, \
                 `best-of-n-oracle` or `map-reduce`"
            )),
        }
    }
}

/// What matters more: which broken contract is mended first, and which of two candidates is better.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priorities {
    /// Each contract's own [`Priority`](portcullis_contracts::Priority), such as those of the tags: one more contract of a
    /// higher priority outweighs any number of lower ones. Contracts of one priority count alike.
    #[default]
    Contracts,
    /// A rank for each contract, 1 the first: as with priorities, a higher rank outweighs all lower ones.
    Ranks(Vec<u32>),
    /// A weight for each contract: the candidate is better whose contracts that hold weigh more together.
    Weights(Vec<u32>),
}

/// How to repair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Whether the reply and every rewrite are repaired mechanically first.
    pub mechanical: bool,
    /// In which way a model is asked for what is left.
    pub strategy: Strategy,
    /// How judged contracts are asked about.
    pub detect: Detect,
    /// Whether a rewrite is refused that breaks, or leaves undecided, a contract that held before, whatever it mends.
    pub no_degrade: bool,
    /// Whether `batch` and `map-reduce` judge their rewrite. Without, its judged contracts stay undecided.
    pub verify: bool,
    /// Whether a rewrite is asked about once more: whether it still answers the request.
    pub post_check: bool,
    /// Temperature of rewrites after the first of `retry` and `best-of-n`; all others have 0.
    pub temperature: f64,
    /// What matters more.
    pub priorities: Priorities,
    /// What all of it may use up.
    pub budget: Budget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mechanical: true,
            strategy: Strategy::Batch,
            detect: Detect::Batch,
            no_degrade: false,
            verify: false,
            post_check: true,
            temperature: 0.5,
            priorities: Priorities::Contracts,
            budget: Budget::default(),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// Too many contracts.
    #[error("{0} contracts; at most {MAX_STATEMENTS} are repaired at once: take fewer")]
    TooManyContracts(usize),
    /// A strategy that asks a model, and no model.
    #[error("the strategy `{0}` asks a model, and none is named; name one, or take `mechanical`")]
    NoModel(Strategy),
    /// A number of rewrites.
    #[error("{0} rewrites; from 1 to {MAX_REWRITES} can be asked for")]
    Rewrites(u32),
    /// Ranks or weights.
    #[error("{given} {what} for {contracts} contracts; give one for each")]
    Priorities {
        /// `ranks` or `weights`.
        what: &'static str,
        /// How many there are.
        given: usize,
        /// How many contracts.
        contracts: usize,
    },
    /// The temperature.
    #[error("the temperature {0} is not from 0 to 2")]
    Temperature(f64),
    /// A budget of cost without prices.
    #[error(transparent)]
    Budget(Exhausted),
}

impl Settings {
    pub(super) fn check(&self, task: &Task<'_>) -> Result<(), SettingsError> {
        if task.contracts.len() > MAX_STATEMENTS {
            return Err(SettingsError::TooManyContracts(task.contracts.len()));
        }
        if let Strategy::Retry { attempts: rewrites } | Strategy::BestOf { samples: rewrites, .. } =
            self.strategy
            && !(1..=MAX_REWRITES).contains(&rewrites)
        {
            return Err(SettingsError::Rewrites(rewrites));
        }
        if !(0.0..=2.0).contains(&self.temperature) {
            return Err(SettingsError::Temperature(self.temperature));
        }
        if self.budget.cost_micros.is_some() && self.budget.prices.is_none() {
            return Err(SettingsError::Budget(Exhausted::NoPrices));
        }
        Ok(())
    }

    /// Whether a rewrite of `batch` or `map-reduce` is judged.
    pub(super) const fn judges_once(&self) -> bool {
        self.verify || self.no_degrade
    }
}
