//! Runs under a policy, with legitimate users: tau-bench (airline, gpt-4o) and tau2 retail (Claude).
//!
//! Neither set describes its tools; they are drafted from their names and from the arguments that calls of the same
//! file gave.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::tools::ToolSpec;
use super::{Kind, Replay, Step, Truth, chat};
use crate::data::DataError;
use crate::stream;

/// Calls of a tool that are looked at for its arguments.
const CALLS_PER_TOOL_MAX: usize = 200;
/// Model of records whose session ended before the agent did.
const NOT_RUN: &str = "<synthetic>";

/// Which of the two sets a record is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// tau-bench.
    Tau,
    /// tau2.
    Tau2,
}

/// Tells by the form of a record; none of either.
pub fn set_of(record: &Value) -> Option<Set> {
    if record.get("traj").is_some() && record.get("reward").is_some() {
        return Some(Set::Tau);
    }
    let tau2 =
        record.get("run").is_some() && record.get("eval").is_some() && record.get("messages").is_some();
    (tau2 && record.get("model").and_then(Value::as_str) != Some(NOT_RUN)).then_some(Set::Tau2)
}

fn steps(record: &Value, set: Set) -> Vec<Step> {
    let key = if set == Set::Tau { "traj" } else { "messages" };
    let messages = record.get(key).and_then(Value::as_array);
    chat::steps(messages.map(Vec::as_slice).unwrap_or_default())
}

/// The tools of all runs of a file.
///
/// # Errors
/// Those of reading.
pub fn tools(path: &Path) -> Result<Arc<Vec<ToolSpec>>, DataError> {
    let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    stream::records::<DataError>(path, |_, record| {
        let Ok(record) = record else { return Ok(true) };
        let Some(set) = set_of(&record) else { return Ok(true) };
        for step in steps(&record, set) {
            let Step::Call(call) = step else { continue };
            let calls = seen.entry(call.tool).or_default();
            if calls.len() < CALLS_PER_TOOL_MAX {
                calls.push(call.arguments);
            }
        }
        Ok(true)
    })?;
    let spec = |(name, calls): (&String, &Vec<Value>)| {
        ToolSpec::observed(name, &calls.iter().collect::<Vec<&Value>>())
    };
    Ok(Arc::new(seen.iter().map(spec).collect()))
}

/// Reads a run.
pub fn read(record: &Value, set: Set, tools: &Arc<Vec<ToolSpec>>) -> Replay {
    let text = |key: &str| match record.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let task = text("task_id");
    let (suite, agent, utility) = match set {
        Set::Tau => (
            "tau/airline",
            "gpt-4o".to_owned(),
            record.get("reward").and_then(Value::as_f64).map(|r| r >= 1.0),
        ),
        Set::Tau2 => {
            let right = record.get("eval").and_then(|eval| eval.get("db_match")).and_then(Value::as_bool);
            ("tau2/retail", text("model"), right)
        }
    };
    Replay {
        suite: suite.to_owned(),
        agent,
        cluster: format!("{suite}/{task}"),
        tools: Arc::clone(tools),
        steps: steps(record, set),
        truth: Truth { kind: Kind::Benign, utility },
    }
}
