//! Session state and facts: what is asked and answered.

use portcullis_core::denial::Denial;
use portcullis_core::id::RequestId;
use portcullis_core::kept::{KeptId, KeptScope};
use portcullis_core::label::LabelSet;
use portcullis_session::kept::{FactTold, StateVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Facts that are read where a request does not say how many.
pub const FACTS_READ_DEFAULT: usize = 20;
/// Versions of a key that are told where a request does not say how many.
pub const HISTORY_DEFAULT: usize = 20;

/// Does something to the session state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateRequest {
    /// What.
    pub operation: StateOperation,
    /// The call of a tool that asks for it: an action, or the surface's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// A random name of this request: made again under the same name, it counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
}

/// What to do with the session state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum StateOperation {
    /// Read a key.
    Get {
        /// The key; without one, all keys are listed without their values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Put one key.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Value,
        /// The version that it replaces; left out for a new key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<u64>,
    },
    /// Tell the versions of a key, the newest first.
    History {
        /// The key.
        key: String,
        /// Only those before this version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
        /// At most so many: [`HISTORY_DEFAULT`] where left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
}

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateAnswer {
    /// The keys: the one that was read or put, with its value, or all of them without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<StateKey>,
    /// The versions of a key, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<StateVersion>,
    /// There are older ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A key of the session state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateKey {
    /// The key.
    pub key: String,
    /// The version: the number of the event that put it. To put another value, name it as `replaces`.
    pub version: u64,
    /// The value, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// Labels of the run when it was put.
    #[serde(default, skip_serializing_if = "LabelSet::is_empty")]
    pub labels: LabelSet,
}

/// Does something to facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactRequest {
    /// What.
    pub operation: FactOperation,
    /// The call of a tool that asks for it: an action, or the surface's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// A random name of this request: made again under the same name, it counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
}

/// What to do with facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum FactOperation {
    /// Establish one.
    Write {
        /// The fact.
        text: String,
        /// What it is about.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        topic: String,
        /// The facts that it replaces.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaces: Vec<KeptId>,
        /// Which runs read it: those in this folder, unless it says `principal`.
        #[serde(default)]
        scope: KeptScope,
    },
    /// Read some.
    Read {
        /// These, by name; otherwise those that were not replaced, the newest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<KeptId>,
        /// Only those about this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
        /// At most so many: [`FACTS_READ_DEFAULT`] where left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        /// Where the page before said to go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
    },
    /// Forget one.
    Forget {
        /// Which.
        fact: KeptId,
        /// Why.
        reason: String,
    },
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactAnswer {
    /// The fact that was established or forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<KeptId>,
    /// The facts that were read: a list of `{fact, text, topic}`, or, where a guard replaced some of it, a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Value>,
    /// Why they may not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
    /// Where to go on for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Facts that were asked for by name and whose text was erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased: Vec<KeptId>,
}

/// Facts of a store, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactList {
    /// They.
    pub facts: Vec<FactTold>,
    /// Where to go on for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
