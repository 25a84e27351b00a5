//! All short runs: every sequence of up to three calls over the values at which rules change their minds. What comes of
//! each is computed by [`meaning`](crate::meaning), and the files of the draft are held to it. A generated test shows what
//! somebody thought of; this shows what nobody did, as far as it reaches.

use crate::cases::{self, Run};
use crate::meaning::{Call, Caller};
use crate::rule::{Rule, Window};
use crate::spec::Spec;

/// Calls of the longest run.
const LENGTH_MAX: usize = 3;
/// Different calls that runs are made of: with seven there are 399 runs of up to three.
const LETTERS_MAX: usize = 7;
/// Most runs of all callers together.
pub const RUNS_MAX: usize = 800;
/// Callers that make them.
const CALLERS_MAX: usize = 2;

/// The runs, and whether there would have been more letters or callers.
#[derive(Debug, Clone, PartialEq)]
pub struct Enumerated {
    /// The runs, the short ones first, in an order that depends on the rules alone.
    pub runs: Vec<Run>,
    /// Not all values of the rules are among them.
    pub is_cut: bool,
}

/// All short runs for rules.
pub fn enumerated(rules: &[Rule], spec: &Spec) -> Enumerated {
    let generated = cases::runs(rules, spec);
    let (callers, more_callers) = callers(&generated);
    let (letters, more_letters) = letters(&generated);
    let gap = gap(rules);
    let mut runs = Vec::new();
    for caller in &callers {
        let mut words: Vec<Vec<&Call>> = vec![Vec::new()];
        for _ in 0..LENGTH_MAX {
            words = words
                .iter()
                .flat_map(|word| letters.iter().map(move |letter| [word.as_slice(), &[letter]].concat()))
                .collect();
            runs.extend(words.iter().map(|word| run(caller, word, gap)));
        }
    }
    let is_cut = more_callers || more_letters || runs.len() > RUNS_MAX;
    runs.truncate(RUNS_MAX);
    Enumerated { runs, is_cut }
}

/// Those who call in the generated tests.
fn callers(generated: &[Run]) -> (Vec<Caller>, bool) {
    let mut callers: Vec<Caller> = Vec::new();
    for run in generated {
        if !callers.contains(&run.caller) {
            callers.push(run.caller.clone());
        }
    }
    let is_cut = callers.len() > CALLERS_MAX;
    callers.truncate(CALLERS_MAX);
    (callers, is_cut)
}

/// Different calls of the generated tests, of each tool in turn.
fn letters(generated: &[Run]) -> (Vec<Call>, bool) {
    let mut of_tools: Vec<Vec<Call>> = Vec::new();
    for call in generated.iter().flat_map(|run| &run.calls) {
        let same = |other: &Call| other.tool == call.tool && other.args == call.args;
        match of_tools.iter_mut().find(|calls| calls.iter().any(|other| other.tool == call.tool)) {
            Some(calls) if calls.iter().any(same) => {}
            Some(calls) => calls.push(call.clone()),
            None => of_tools.push(vec![call.clone()]),
        }
    }
    let all: usize = of_tools.iter().map(Vec::len).sum();
    let most = of_tools.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..most).flat_map(|place| of_tools.iter().filter_map(move |calls| calls.get(place)));
    (in_turn.take(LETTERS_MAX).cloned().collect(), all > LETTERS_MAX)
}

/// Minutes between two calls: with the shortest window, the first of three is still within it, or is not any more.
fn gap(rules: &[Rule]) -> i64 {
    let windows = rules.iter().filter_map(|rule| match rule.past.as_ref()?.within? {
        Window::Seconds(seconds) => i64::try_from(seconds / 60).ok(),
        Window::Calendar(_) => None,
    });
    windows.min().map_or(1, |minutes| minutes / 2 + 1)
}

fn run(caller: &Caller, word: &[&Call], gap: i64) -> Run {
    let from = word.first().map_or(0, |call| call.at);
    let at = |place: usize| from + gap * i64::try_from(place).unwrap_or(0);
    let calls: Vec<Call> =
        word.iter().enumerate().map(|(place, call)| Call { at: at(place), ..(*call).clone() }).collect();
    let written: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {}", call.tool, serde_json::Value::Object(call.args.clone())))
        .collect();
    Run { title: written.join(", then ").replace('`', "'"), caller: caller.clone(), calls }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::draft::Draft;
    use crate::meaning::{self, Must};

    #[test]
    fn short_runs_come_in_one_order_and_reach_what_rules_ask() {
        let tools = json!([{"name": "read_file", "arguments": {}}, {"name": "send_email", "arguments": {}}]);
        let spec = Spec::of_json(&tools).unwrap();
        let draft = Draft::compile("x", "Never use send_email after read_file.", &spec, &[]);
        assert_eq!(draft.rules.len(), 1, "{:?}", draft.questions);
        let all = enumerated(&draft.rules, &spec);
        assert_eq!(all, enumerated(&draft.rules, &spec));
        // Two letters: 2 + 4 + 8 runs, for each caller.
        assert_eq!((all.runs.len() % 14, all.is_cut), (0, false), "{}", all.runs.len());
        let stopped = all
            .runs
            .iter()
            .filter(|run| meaning::judge(&draft.rules, &run.caller, &run.calls).last() == Some(&Must::Deny));
        let stopped: Vec<&str> = stopped.map(|run| run.title.as_str()).collect();
        assert!(stopped.contains(&"read_file {}, then send_email {}"), "{stopped:?}");
        assert!(!stopped.contains(&"send_email {}, then read_file {}"), "{stopped:?}");
    }

    #[test]
    fn many_values_are_cut_and_said_to_be() {
        let tools = json!([{"name": "issue_refund", "arguments": {"amount": {"type": "number"}}}]);
        let spec = Spec::of_json(&tools).unwrap();
        let request = "Refunds above 200 need approval from a team lead. Refunds above 900 are forbidden.";
        let draft = Draft::compile("x", request, &spec, &[]);
        let all = enumerated(&draft.rules, &spec);
        assert!(!all.runs.is_empty() && all.runs.len() <= RUNS_MAX);
        assert!(all.runs.iter().all(|run| run.calls.len() <= LENGTH_MAX));
    }
}
