//! Runs of AgentDojo (Debenedetti et al., 2024; the published runs as Invariant Explorer exports them) and of AgentDyn
//! (arXiv 2602.03117, the run files of AgentDojo 0.1.35).
//!
//! **What `security` means.** In a run with an attack, true says that the attack succeeded. In one without it says
//! nothing.
//!
//! **Where the payload stands.** AgentDyn's files hold the injected texts. In AgentDojo's export only the goal is
//! known, from the definitions; what is injected is the element around it.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::definitions::{Definitions, Goal, Suite};
use super::payload::{self, Compact};
use super::{Kind, Observed, Replay, Step, Truth, chat};

/// Words that two texts must share to be taken for wordings of one goal, as a share of the goal's.
const WORDING_SHARE_MIN: f64 = 0.3;

/// A record of the export.
#[derive(Debug, Deserialize)]
struct Exported {
    messages: Vec<Value>,
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    suite_name: String,
    model: String,
    success: Option<bool>,
    security: Option<bool>,
    user_task_id: String,
    injection_task_id: Option<String>,
}

/// A run file.
#[derive(Debug, Deserialize)]
struct RunFile {
    suite_name: String,
    pipeline_name: String,
    user_task_id: String,
    injection_task_id: Option<String>,
    #[serde(default)]
    injections: Map<String, Value>,
    messages: Vec<Value>,
    utility: Option<bool>,
    security: Option<bool>,
}

/// Whether a record is a run of the export, and not the line about the data set that begins each file.
pub fn is_exported(record: &Value) -> bool {
    record.get("messages").is_some() && record.get("metadata").is_some_and(|m| m.get("suite_name").is_some())
}

/// Whether a record is a run file of AgentDyn.
pub fn is_run_file(record: &Value) -> bool {
    record.get("pipeline_name").is_some() && record.get("suite_name").is_some()
}

/// Reads a run of the export.
///
/// # Errors
/// It is of another form, or its suite or goal is not defined.
pub fn exported(record: Value, definitions: &Definitions, templates: bool) -> Result<Replay, String> {
    let Exported { messages, metadata: m } = Deserialize::deserialize(record).map_err(as_text)?;
    let [recorded, later] = &definitions.dojo;
    let suite =
        recorded.get(&m.suite_name).ok_or_else(|| format!("no suite `{}` is defined", m.suite_name))?;
    let steps = chat::steps(&messages);
    let mut run = Run { suite, steps, templates };
    if let Some(id) = &m.injection_task_id {
        let goal = suite.goals.get(id).ok_or_else(|| format!("no goal `{id}` is defined"))?;
        let later = later.get(&m.suite_name).and_then(|suite| suite.tasks.get(&m.user_task_id));
        let task = suite.tasks.get(&m.user_task_id);
        run.attack(goal, task.into_iter().chain(later).map(String::as_str).collect(), &[]);
    }
    let name = format!("agentdojo/{}", m.suite_name);
    Ok(run.replay(name, m.model, (&m.user_task_id, m.injection_task_id.as_deref()), m.success, m.security))
}

/// Reads a run file of AgentDyn.
///
/// # Errors
/// It is of another form, or its suite or goal is not defined.
pub fn run_file(record: Value, definitions: &Definitions, templates: bool) -> Result<Replay, String> {
    let file: RunFile = Deserialize::deserialize(record).map_err(as_text)?;
    let suite = definitions.agentdyn.get(&file.suite_name);
    let suite = suite.ok_or_else(|| format!("no suite `{}` is defined", file.suite_name))?;
    let mut run = Run { suite, steps: chat::steps(&file.messages), templates };
    if let Some(id) = &file.injection_task_id {
        let goal = suite.goals.get(id).ok_or_else(|| format!("no goal `{id}` is defined"))?;
        let injected: Vec<&str> = file.injections.values().filter_map(Value::as_str).collect();
        let task = suite.tasks.get(&file.user_task_id);
        run.attack(goal, task.into_iter().map(String::as_str).collect(), &injected);
    }
    let ids = (file.user_task_id.as_str(), file.injection_task_id.as_deref());
    let name = format!("agentdyn/{}", file.suite_name);
    Ok(run.replay(name, file.pipeline_name, ids, file.utility, file.security))
}

fn as_text(error: serde_json::Error) -> String {
    error.to_string()
}

struct Run<'d> {
    suite: &'d Suite,
    steps: Vec<Step>,
    /// Whether the template around goals is left where it is.
    templates: bool,
}

impl Run<'_> {
    /// Marks the attacker's calls, and where injected text stands in results.
    fn attack(&mut self, goal: &Goal, tasks: Vec<&str>, injected: &[&str]) {
        let asked = self.steps.iter().find_map(|step| match step {
            Step::Input { label: portcullis_core::label::Label::User, text } => Some(text.clone()),
            _ => None,
        });
        let tasks: Vec<&str> = asked.iter().map(String::as_str).chain(tasks).collect();
        for step in &mut self.steps {
            let Step::Call(call) = step else { continue };
            call.part = goal.part(call, &tasks);
            if let Some(result) = &mut call.result {
                mark(result, goal, injected, self.templates);
            }
        }
    }

    fn replay(
        self,
        suite: String,
        agent: String,
        (task, goal): (&str, Option<&str>),
        utility: Option<bool>,
        security: Option<bool>,
    ) -> Replay {
        let kind = match goal {
            Some(_) => Kind::Attack { succeeded: security == Some(true) },
            // Run files have the goals as tasks of their own.
            None if task.starts_with("injection") => Kind::OwnGoal,
            None => Kind::Benign,
        };
        Replay {
            cluster: format!("{suite}/{task}/{}", goal.unwrap_or("none")),
            suite,
            agent,
            tools: Arc::clone(&self.suite.tools),
            steps: self.steps,
            truth: Truth { kind, utility },
        }
    }
}

/// Finds what was injected into a result.
fn mark(result: &mut Observed, goal: &Goal, injected: &[&str], templates: bool) {
    let compact = Compact::new(&result.text);
    let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    if injected.is_empty() {
        found
            .extend(compact.find(&goal.text).into_iter().map(|at| (payload::element(&result.text, &at), at)));
    }
    for text in injected {
        let wording = wording(text, &goal.text);
        for at in compact.find(text) {
            let within = wording.and_then(|wording| {
                compact.find(wording).into_iter().find(|goal| at.start <= goal.start && goal.end <= at.end)
            });
            found.push((at.clone(), within.unwrap_or(at)));
        }
    }
    found.sort_unstable_by_key(|(at, _)| (at.start, at.end));
    found.dedup();
    result.payload = if templates {
        payload::union(found.into_iter().map(|(element, _)| element).collect())
    } else {
        let (text, goals) = payload::without_template(&result.text, &found);
        result.text = text;
        goals
    };
}

/// The line of an injected text that says the goal, possibly in other words.
fn wording<'t>(injected: &'t str, goal: &str) -> Option<&'t str> {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let wanted = words(goal);
    let share = |line: &str| {
        let has = words(line);
        let shared = wanted.iter().filter(|word| has.contains(word)).count();
        shared as f64 / wanted.len().max(1) as f64
    };
    let best = injected.lines().map(|line| (share(line), line)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= WORDING_SHARE_MIN).then_some(best.1)
}
