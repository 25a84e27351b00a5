//! What a draft would have stopped of what agents did: recorded runs judged with it and without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_compile::draft::Draft;
use portcullis_compile::emit;
use portcullis_sim::replay::Source;
use serde_json::{Value, json};

use super::diff::{self, Comparison};
use crate::bundle::{self, Opened};
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};
use portcullis_gateway::home::Home;

/// Runs of a store that are judged, the latest first.
const RUNS_MAX: u32 = 200;
/// Calls that are shown.
const EXAMPLES: usize = 3;

/// What recorded runs say of a draft.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    runs: usize,
    calls: usize,
    /// Runs with a call that would be stopped.
    stopped_runs: usize,
    /// Calls that would be stopped and are not, by tool.
    stopped: BTreeMap<String, usize>,
    examples: Vec<Example>,
    /// The rules of the draft, as findings name them, that stop one of these calls.
    reached: BTreeSet<String>,
}

#[derive(Debug)]
struct Example {
    place: String,
    tool: String,
    verdict: String,
    rule: String,
    message: String,
}

/// Judges runs with a draft in a bundle and without it.
pub(super) fn judged(draft: &Draft, old: &Opened, paths: &[PathBuf]) -> Result<Recorded, Failure> {
    let folder = Path::new("draft");
    let new = bundle::load_files(folder, draft.laid_over(&old.files))?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let mut comparison = Comparison::default();
    for path in paths {
        for (name, source) in sources(path)? {
            comparison.add(&name, &source, [&old.bundle, &new.bundle], &pipeline, None)?;
        }
    }
    let mut found = Recorded { runs: comparison.runs(), calls: comparison.calls(), ..Recorded::default() };
    let mut runs = BTreeSet::new();
    for (source, old, new) in comparison.newly_stopped() {
        let tool = new.tool.clone().unwrap_or_else(|| "(thinking)".to_owned());
        *found.stopped.entry(tool.clone()).or_default() += 1;
        runs.insert((source.to_owned(), old.run));
        found.reached.extend(new.rule.clone());
        if found.examples.len() < EXAMPLES {
            found.examples.push(Example {
                place: diff::place(source, old),
                tool,
                verdict: new.verdict.to_string(),
                rule: new.rule.clone().unwrap_or_default(),
                message: new.message.clone().unwrap_or_default(),
            });
        }
    }
    found.stopped_runs = runs.len();
    Ok(found)
}

/// A state folder's latest runs, or a file.
fn sources(path: &Path) -> Result<Vec<(String, Source)>, Failure> {
    if path.is_dir() {
        return diff::stored(&Home::at(path).map_err(Failure::unreadable)?, RUNS_MAX);
    }
    let source = Source::file(path)
        .map_err(|error| Failure::unreadable(format!("cannot read `{}`: {error}", path.display())))?;
    Ok(vec![(path.display().to_string(), source)])
}

impl Recorded {
    /// Whether a rule of the draft stops a recorded call that passes without it.
    pub(super) fn reaches(&self, draft: &Draft, rule: usize) -> bool {
        let rule = draft.rules.get(rule).map(|rule| emit::finding(&draft.name, rule));
        rule.is_some_and(|rule| self.reached.contains(&rule))
    }

    pub(super) fn record(&self) -> Value {
        let example = |example: &Example| {
            json!({
                "place": example.place, "tool": example.tool, "verdict": example.verdict,
                "rule": example.rule, "message": example.message,
            })
        };
        json!({
            "runs": self.runs, "calls": self.calls, "stopped_runs": self.stopped_runs,
            "stopped": self.stopped, "examples": self.examples.iter().map(example).collect::<Vec<_>>(),
        })
    }

    pub(super) fn show(&self, out: &mut Out) -> Result<(), Failure> {
        let stopped: usize = self.stopped.values().sum();
        let style = if stopped == 0 { out::GOOD } else { out::NOTICE };
        let calls = count(self.calls, "recorded call", "recorded calls");
        out.line(format_args!(
            "{style}would newly stop {stopped} of {calls}{style:#}, in {} of {}",
            self.stopped_runs,
            count(self.runs, "run", "runs")
        ))?;
        for (tool, times) in &self.stopped {
            out.line(format_args!("{times:>6}x  {}", clean_line(tool)))?;
        }
        for Example { place, tool, verdict, rule, message } in &self.examples {
            out.line(format_args!(
                "         {}: {}: {verdict} {rule}: {}",
                clean_line(place),
                clean_line(tool),
                clean_line(message)
            ))?;
        }
        Ok(())
    }
}
