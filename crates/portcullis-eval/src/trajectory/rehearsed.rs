//! Runs of suites that nobody recorded, made of their definitions, for goals to be put into ([`splice`](super::splice)).
//!
//! A suite defines tools, tasks with their ground-truth calls, and an environment. From these a run is made: the user's
//! task, then the calls of its ground truth up to the first that only reads. What that call returns is not known; it
//! gets a **stand-in**, an object of the suite's own environment in which the suite would let an attacker write, printed
//! line by line. So the text is of the right kind, if not always of the right place.

use std::sync::Arc;

use portcullis_core::label::Label;
use serde_json::Value;

use super::definitions::Suite;
use super::tools::acts;
use super::{Call, Kind, Observed, Part, Replay, Step, Truth};

/// The agent of these runs, who follows the ground truth.
pub const AGENT: &str = "ground truth";
/// Fewest bytes of a text that tell where an attacker may write: shorter ones stand anywhere.
const WRITABLE_BYTES_MIN: usize = 12;
/// Levels of an environment that are looked at.
const DEPTH_MAX: usize = 12;

/// A run for each task of a suite, without attack.
pub fn runs(name: &str, suite: &Suite) -> Vec<Replay> {
    let carriers = carriers(suite);
    if carriers.is_empty() {
        return Vec::new();
    }
    let tasks = suite.tasks.iter().zip(carriers.iter().cycle());
    let made = tasks.filter_map(|((id, prompt), carrier)| {
        let calls = suite.task_calls.get(id)?;
        let reads = calls.iter().position(|call| !acts(&suite.tools, &call.function)).unwrap_or(0);
        let mut steps = vec![Step::Input { label: Label::User, text: prompt.clone() }];
        for (number, call) in calls.iter().take(reads + 1).enumerate() {
            let text = if number == reads { carrier.clone() } else { String::new() };
            steps.push(Step::Call(Call {
                tool: call.function.clone(),
                arguments: call.arguments.clone(),
                result: Some(Observed { text, ..Observed::default() }),
                part: Part::Innocent,
                ..Call::default()
            }));
        }
        (steps.len() > 1).then(|| Replay {
            suite: format!("agentdyn/{name}"),
            agent: AGENT.to_owned(),
            cluster: format!("agentdyn/{name}/{id}"),
            tools: Arc::clone(&suite.tools),
            steps,
            truth: Truth { kind: Kind::Benign, utility: None },
        })
    });
    made.collect()
}

/// Objects of the environment that hold a text at a place where an attacker may write, each once.
fn carriers(suite: &Suite) -> Vec<String> {
    let writable: Vec<&str> = suite
        .writable
        .iter()
        .map(|text| text.trim())
        .filter(|text| text.len() >= WRITABLE_BYTES_MIN)
        .collect();
    let mut found = Vec::new();
    collect(&suite.environment, &writable, 0, &mut found);
    found
}

fn collect(value: &Value, writable: &[&str], depth: usize, found: &mut Vec<String>) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            let holds = |text: &str| writable.iter().any(|writable| text.contains(writable));
            if map.values().filter_map(Value::as_str).any(holds) {
                let text = printed(map);
                if !found.contains(&text) {
                    found.push(text);
                }
            }
            map.values().for_each(|value| collect(value, writable, depth + 1, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, writable, depth + 1, found)),
        _ => {}
    }
}

/// The texts and numbers of an object, one a line.
fn printed(map: &serde_json::Map<String, Value>) -> String {
    let lines = map.iter().filter_map(|(key, value)| match value {
        Value::String(text) => Some(format!("{key}: {text}\n")),
        Value::Number(number) => Some(format!("{key}: {number}\n")),
        _ => None,
    });
    lines.collect()
}
