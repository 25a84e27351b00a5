//! The table: one action, or one list of tools, a line.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_core::verdict::Verdict;
use serde::Deserialize;
use serde_json::Value;

/// A call, and what becomes of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) verdict: Verdict,
    /// The rule that decides.
    pub(super) rule: Option<String>,
    /// What the user said before.
    pub(super) user: Option<String>,
    /// What the tool answers, where that is judged.
    pub(super) result: Option<String>,
    /// The verdict on the answer, and its rule, if there is an objection.
    pub(super) seen: Option<Verdict>,
    pub(super) seen_rule: Option<String>,
}

/// What a server lists, time after time, and which tools of the last list clients are not shown.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    pub(super) what: String,
    pub(super) lists: Vec<Vec<Value>>,
    pub(super) hidden: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Row {
    Action(Action),
    Listing(Listing),
}

/// A file beside this one.
pub(super) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/parity").join(name)
}

pub(super) fn rows() -> Vec<Row> {
    let text = fs::read_to_string(beside("actions.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The name of a tool in a list.
pub(super) fn name_of(tool: &Value) -> String {
    tool["name"].as_str().unwrap().to_owned()
}
