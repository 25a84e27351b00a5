//! What can be done to items, and by whom.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CheckResult, Covers, Criterion, ItemId, Owner};
use crate::id::ActionId;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// The agent whose run it is.
    Agent,
    /// The gate, which checks criteria.
    Harness,
    /// A person, by the approver's credential.
    Person,
}

/// What is done, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// An item is made.
    Create,
    /// The agent proposes criteria.
    Propose,
    /// A person accepts them.
    Accept,
    /// A person does not accept them.
    Decline,
    /// A person sets criteria.
    Require,
    /// The agent starts.
    Start,
    /// The agent claims that it is done.
    Claim,
    /// The harness has checked the criteria.
    Check,
    /// A person says that it is done.
    Attest,
    /// A person asks for changes.
    AskChanges,
    /// A person takes the item out of the list.
    Bury,
    /// Something was written after what evidence says.
    Stale,
}

impl Op {
    /// The word in records and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Propose => "propose",
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Require => "require",
            Self::Start => "start",
            Self::Claim => "claim",
            Self::Check => "check",
            Self::Attest => "attest",
            Self::AskChanges => "ask_changes",
            Self::Bury => "bury",
            Self::Stale => "stale",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Make an item. Criteria of an agent are a proposal.
    Create {
        /// What is to be done.
        title: String,
        /// What it is measured by.
        criteria: Vec<Criterion>,
        /// Whose criteria they are, where a person asks.
        owner: Owner,
        /// What has to stay as it is for evidence to count.
        covers: Covers,
    },
    /// Propose criteria for an item that has not started.
    Propose {
        /// The item.
        item: ItemId,
        /// What it is to be measured by.
        criteria: Vec<Criterion>,
    },
    /// Accept what the agent proposes.
    Accept {
        /// The item.
        item: ItemId,
    },
    /// Do not accept it.
    Decline {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
    /// Set criteria of an item that has not started.
    Require {
        /// The item.
        item: ItemId,
        /// What it is measured by.
        criteria: Vec<Criterion>,
        /// Whose criteria they are.
        owner: Owner,
    },
    /// Start.
    Start {
        /// The item.
        item: ItemId,
    },
    /// Claim that it is done.
    Claim {
        /// The item.
        item: ItemId,
        /// The calls that show it.
        evidence: Vec<ActionId>,
        /// What was done.
        statement: String,
    },
    /// Give the results of checking all criteria.
    Check {
        /// The item.
        item: ItemId,
        /// The event that had changed it last when the checks began.
        version: u64,
        /// One for each criterion.
        results: Vec<CheckResult>,
    },
    /// Say that it is done.
    Attest {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
    /// Ask for changes.
    AskChanges {
        /// The item.
        item: ItemId,
        /// Which.
        reason: String,
    },
    /// Take it out of the list.
    Bury {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
}

impl Operation {
    /// What it is, in a word.
    #[must_use]
    pub fn op(&self) -> Op {
        match self {
            Self::Create { .. } => Op::Create,
            Self::Propose { .. } => Op::Propose,
            Self::Accept { .. } => Op::Accept,
            Self::Decline { .. } => Op::Decline,
            Self::Require { .. } => Op::Require,
            Self::Start { .. } => Op::Start,
            Self::Claim { .. } => Op::Claim,
            Self::Check { .. } => Op::Check,
            Self::Attest { .. } => Op::Attest,
            Self::AskChanges { .. } => Op::AskChanges,
            Self::Bury { .. } => Op::Bury,
        }
    }

    /// The item that it is about, unless it makes one.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        match self {
            Self::Create { .. } => None,
            Self::Propose { item, .. }
            | Self::Accept { item }
            | Self::Decline { item, .. }
            | Self::Require { item, .. }
            | Self::Start { item }
            | Self::Claim { item, .. }
            | Self::Check { item, .. }
            | Self::Attest { item, .. }
            | Self::AskChanges { item, .. }
            | Self::Bury { item, .. } => Some(*item),
        }
    }
}
