//! The permit: the value without which no action executes.
//!
//! A [`Permit`] can only be made here, and it is made only after the verdict on its action, and the fact that
//! the action goes ahead, are durable in the ledger. Whatever executes actions takes a permit by value, so no
//! code path executes an action that was not judged and recorded, and none executes it twice.

use portcullis_core::event::Enforced;
use portcullis_core::id::{ActionId, RunId};
use serde_json::Value;

use crate::engine::Judgement;

/// The right to execute one action, once.
#[derive(Debug)]
#[must_use = "a permit that is dropped leaves its action without an outcome"]
pub struct Permit {
    run: RunId,
    action: ActionId,
    tool: Option<String>,
    arguments: Value,
    edited: bool,
    seq: u64,
}

impl Permit {
    /// The permit of a judgement whose events up to number `seq` are durable, or `None` if the action does not go
    /// ahead.
    pub(crate) fn issue(run: RunId, judgement: &Judgement, seq: u64) -> Option<Self> {
        if !judgement.enforced.proceeds() {
            return None;
        }
        let edited =
            judgement.decision.modified.as_ref().filter(|_| judgement.enforced == Enforced::Replaced);
        Some(Self {
            run,
            action: judgement.action.id,
            tool: judgement.action.tool().map(str::to_owned),
            arguments: edited.unwrap_or(&judgement.action.arguments).clone(),
            edited: edited.is_some(),
            seq,
        })
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The action.
    pub fn action(&self) -> ActionId {
        self.action
    }

    /// The tool, or `None` for a thinking step.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The arguments to execute with: those proposed, or those that the findings' edits made of them.
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Whether the arguments differ from those proposed.
    pub fn is_edited(&self) -> bool {
        self.edited
    }

    /// Number of the last event that was durable when the permit was made.
    pub fn seq(&self) -> u64 {
        self.seq
    }
}
