//! Work items: what is asked and answered.

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::ActionId;
use portcullis_core::work::{ItemId, Owner, WorkItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Checks that run at once.
pub const CHECKS_AT_ONCE: usize = 2;
/// How long a claim, or a request to verify, waits for its checks where it does not say, in milliseconds.
pub const CHECK_WAIT_MS: u32 = 20_000;
/// Calls that a list of items has with it, the latest ones.
pub const CALLS_LISTED_MAX: usize = 32;

/// Does something to a work item. Which operations a caller may ask for depends on its credential.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkRequest {
    /// What.
    pub operation: WorkOperation,
    /// The call of a tool that asks for it: an action, or the surface's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How long to wait for checks, in milliseconds: [`CHECK_WAIT_MS`] where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkOperation {
    /// Make an item. Criteria of an agent wait for a person, unless the bundle accepts them.
    Create {
        /// What is to be done.
        title: String,
        /// What it is measured by: see `specs/work.md`.
        #[serde(default)]
        criteria: Vec<Value>,
        /// Whose criteria they are: `user` where a person leaves it out.
        #[serde(default)]
        owner: Option<Owner>,
        /// Paths and tables that have to stay as they are for evidence to count.
        #[serde(default)]
        covers: Vec<String>,
    },
    /// The agent proposes criteria.
    Propose {
        /// The item.
        item: ItemId,
        /// What it is to be measured by.
        criteria: Vec<Value>,
    },
    /// A person accepts them.
    Accept {
        /// The item.
        item: ItemId,
    },
    /// A person does not accept them.
    Decline {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
    /// A person sets criteria.
    Require {
        /// The item.
        item: ItemId,
        /// What it is measured by.
        criteria: Vec<Value>,
        /// Whose criteria they are: `user` where left out.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// The agent starts.
    Start {
        /// The item.
        item: ItemId,
    },
    /// The agent claims that it is done. Its criteria are then checked.
    Claim {
        /// The item.
        item: ItemId,
        /// The calls that show it: actions, or the surface's own ids of calls.
        evidence: Vec<String>,
        /// What was done.
        statement: String,
    },
    /// Has the criteria of a claimed item checked.
    Verify {
        /// The item.
        item: ItemId,
    },
    /// A person says that it is done.
    Attest {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
    /// A person asks for changes.
    AskChanges {
        /// The item.
        item: ItemId,
        /// Which.
        reason: String,
    },
    /// A person takes it out of the list.
    Bury {
        /// The item.
        item: ItemId,
        /// Why.
        reason: String,
    },
}

/// An item as it is after an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkAnswer {
    /// The item.
    pub item: WorkItem,
    /// Its criteria are being checked; read it again.
    #[serde(default)]
    pub checking: bool,
}

/// The items of a run, and what can be cited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkList {
    /// The items, in the order in which they were made.
    pub items: Vec<WorkItem>,
    /// The latest finished calls, the latest first.
    pub calls: Vec<CallInfo>,
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallInfo {
    /// The action.
    pub action: ActionId,
    /// The tool.
    pub tool: String,
    /// The surface's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How it ended.
    pub status: OutcomeStatus,
    /// Number of the event with its outcome.
    pub outcome: u64,
    /// Whether evidence may cite it.
    pub succeeded: bool,
}
