//! Typed denials: what an agent receives when its action is not executed, in a form a model can act on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ActionId, ApprovalId, RunId};
use crate::verdict::Verdict;

/// Why an action was not executed and what to do next. The object is the same on every surface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// What kind of "no" it is.
    pub class: DenialClass,
    /// The verdict behind it.
    pub verdict: Verdict,
    /// The deciding rule.
    pub rule: String,
    /// What was refused: the tool's name.
    pub target: String,
    /// The reason, for people.
    pub message: String,
    /// What would be allowed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Whether and how to try again.
    pub retry: Retry,
    /// The approval that the call is waiting for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The run, for later inspection.
    pub run: RunId,
    /// The action, or `None` if an input or a reply is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
}

/// The kinds of "no".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DenialClass {
    /// The policy forbids it.
    Denied,
    /// A person has not decided yet.
    ApprovalPending,
    /// A person refused it.
    ApprovalRefused,
    /// The user is asked something first.
    ClarificationNeeded,
    /// The run is paused.
    Paused,
    /// The run has ended.
    Halted,
    /// A person froze the run.
    Frozen,
    /// The call was executed, but its result must not be shown.
    ResultWithheld,
}

/// Whether repeating the call can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Retry {
    /// The same call will be refused again; `left` more identical tries are judged before the loop breaker.
    Never {
        /// Identical tries left.
        left: u32,
    },
    /// Repeat the identical call after this many seconds to learn the decision or to use the grant.
    After {
        /// Seconds to wait.
        seconds: u32,
    },
    /// Ask the user first.
    AfterInput,
}
