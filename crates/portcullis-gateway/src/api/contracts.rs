//! Replies to be held against contracts. A line of `portcullis contract --jsonl` is a request, too.

use portcullis_assist::{Detect, Strategy, Written};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Asks what a reply keeps.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckReply {
    /// The caller's name for the reply; it comes back.
    #[serde(default)]
    pub key: Option<Value>,
    /// The request that it answers.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The reply.
    pub response: String,
    /// What it has to keep.
    pub contracts: Vec<Written>,
    /// The documents that it may cite: a list of `{"id", "text"}`, or an object from id to text.
    #[serde(default)]
    pub documents: Option<Value>,
    /// The names that statements about names mean.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// Instructions that have to be refused, in place of those that ship.
    #[serde(default)]
    pub high_risk: Option<Vec<String>>,
    /// How a model is asked about what code cannot decide.
    #[serde(default)]
    pub detect: Detect,
}

/// Asks for a reply that keeps more.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairReply {
    /// The caller's name for the reply; it comes back.
    #[serde(default)]
    pub key: Option<Value>,
    /// The request that it answers.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The reply.
    pub response: String,
    /// What it has to keep.
    pub contracts: Vec<Written>,
    /// The documents that it may cite: a list of `{"id", "text"}`, or an object from id to text.
    #[serde(default)]
    pub documents: Option<Value>,
    /// The names that statements about names mean.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// Instructions that have to be refused, in place of those that ship.
    #[serde(default)]
    pub high_risk: Option<Vec<String>>,
    /// How a model is asked about what code cannot decide.
    #[serde(default)]
    pub detect: Detect,
    /// In which way a model is asked for rewrites, by its name, or `None` for `mechanical`, which asks for none.
    #[serde(default, deserialize_with = "by_name")]
    #[schemars(with = "Option<String>")]
    pub strategy: Option<Strategy>,
    /// Most rewrites of `retry` and `best-of-n`.
    #[serde(default)]
    pub candidates: Option<u32>,
    /// Whether a rewrite is refused that breaks a contract that held.
    #[serde(default)]
    pub no_degrade: bool,
    /// Whether the rewrite of `batch` and `map-reduce` is judged too.
    #[serde(default)]
    pub verify: bool,
    /// Whether a rewrite is asked about: whether it still answers `prompt`.
    #[serde(default = "yes")]
    pub post_check: bool,
}

const fn yes() -> bool {
    true
}

fn by_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Strategy>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| name.parse().map_err(serde::de::Error::custom)).transpose()
}
