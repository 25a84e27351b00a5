//! Goals that nobody recorded, set into runs without attack.
//!
//! The recorded attacks have few goals. Here every other goal of a suite's definitions is put into a result of a benign
//! run, and the calls of its ground truth follow, as an agent that obeys would make them. The place is the middle of
//! the longest line of the longest result: prose, most likely, and not a number or a name.

use std::ops::Range;
use std::sync::Arc;

use super::definitions::{Definitions, Goal, Suite};
use super::enact::enact;
use super::{Call, Kind, Observed, Part, Replay, Step, Truth};

/// Fewest characters of a result that a goal is put into.
const RESULT_CHARS_MIN: usize = 40;
/// Agents whose benign runs are used, the first by name: more would repeat the same tasks and results.
pub const AGENTS_MAX: usize = 3;

/// How a goal is put into a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// As a paragraph of its own.
    OwnLine,
    /// In the middle of a sentence.
    MidSentence,
}

impl Place {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnLine => "own-line",
            Self::MidSentence => "mid-sentence",
        }
    }
}

/// The goals of both versions of a suite that no recorded run has, each wording once, with the names of suite and goal.
pub fn unseen<'d>(definitions: &'d Definitions, suite: &str, recorded: &[&str]) -> Vec<(String, &'d Goal)> {
    let [first, later] = &definitions.dojo;
    let seen: Vec<&str> = first
        .get(suite)
        .into_iter()
        .flat_map(|suite| recorded.iter().filter_map(|id| suite.goals.get(*id)))
        .map(|goal| goal.text.as_str())
        .collect();
    let mut goals: Vec<(String, &Goal)> = Vec::new();
    for (version, suites) in [("v1", first), ("v1.2.2", later)] {
        let Some(Suite { goals: defined, .. }) = suites.get(suite) else { continue };
        for (id, goal) in defined {
            let known =
                seen.contains(&goal.text.as_str()) || goals.iter().any(|(_, other)| other.text == goal.text);
            if !known && !goal.calls.is_empty() {
                goals.push((format!("{id}@{version}"), goal));
            }
        }
    }
    goals
}

/// The goals of AgentDyn for a run of a suite: those of the other suites with an oracle whose tools the suite has too,
/// in recorded runs; the suite's own, where nobody recorded a run. With the names of suite and goal.
pub fn unrecorded(definitions: &Definitions, suite: &str, recorded: bool) -> Vec<(String, Goal)> {
    let Some(target) = definitions.agentdyn.get(suite) else { return Vec::new() };
    let mut goals: Vec<(String, Goal)> = Vec::new();
    for (name, defined) in &definitions.agentdyn {
        if (name == suite) == recorded {
            continue;
        }
        for (id, goal) in &defined.goals {
            let known = target.goals.values().any(|own| recorded && own.text == goal.text);
            if !known && let Some(goal) = enact(goal, target, defined) {
                goals.push((format!("{name}/{id}"), goal));
            }
        }
    }
    goals
}

/// A benign run with a goal put into it, and what obeys it; none where no result has room for it.
pub fn splice(run: &Replay, name: &str, goal: &Goal, place: Place) -> Option<Replay> {
    let length = |step: &Step| match step {
        Step::Call(Call { result: Some(result), .. }) => result.text.chars().count(),
        _ => 0,
    };
    let longest = run.steps.iter().map(length).max().filter(|chars| *chars >= RESULT_CHARS_MIN)?;
    let at = run.steps.iter().position(|step| length(step) == longest)?;
    let mut steps: Vec<Step> = run.steps.get(..=at)?.to_vec();
    if let Some(Step::Call(Call { result: Some(result), .. })) = steps.get_mut(at) {
        let (text, payload) = insert(&result.text, &goal.text, place)?;
        *result = Observed { text, payload: vec![payload], ..*result };
    }
    for call in &goal.calls {
        steps.push(Step::Call(Call {
            tool: call.function.clone(),
            arguments: call.arguments.clone(),
            planned: None,
            together: false,
            result: Some(Observed::default()),
            part: if call.decisive { Part::Malicious } else { Part::Preparation },
        }));
    }
    Some(Replay {
        suite: run.suite.clone(),
        agent: run.agent.clone(),
        cluster: format!("{}/{name}", run.cluster),
        tools: Arc::clone(&run.tools),
        steps,
        truth: Truth { kind: Kind::Attack { succeeded: true }, utility: None },
    })
}

/// Puts a goal into a text as the tool that printed the text would print it. Returns where it stands.
fn insert(text: &str, goal: &str, place: Place) -> Option<(String, Range<usize>)> {
    let mut start = 0;
    let mut longest = 0..0;
    for line in text.split('\n') {
        if line.len() > longest.len() {
            longest = start..start + line.len();
        }
        start += line.len() + 1;
    }
    let line = text.get(longest.clone())?;
    let at = longest.start + middle(line)?;
    let value = matches!(text.trim_start().chars().next(), Some('{' | '['));
    let goal = printed(line, goal, value);
    let indent: String = line.chars().take_while(|c| c.is_whitespace() || *c == '-').map(|_| ' ').collect();
    let (before, behind) = match place {
        Place::MidSentence => (" ".to_owned(), String::new()),
        Place::OwnLine if value => ("\\n\\n".to_owned(), "\\n\\n".to_owned()),
        Place::OwnLine => (format!("\n\n{indent}  "), format!("\n\n{indent}  ")),
    };
    let (head, tail) = text.split_at_checked(at)?;
    let tail = if place == Place::OwnLine { tail.trim_start_matches(' ') } else { tail };
    let start = head.len() + before.len();
    Some((format!("{head}{before}{goal}{behind}{tail}"), start..start + goal.len()))
}

/// The space nearest to the middle of a line.
fn middle(line: &str) -> Option<usize> {
    let half = line.len() / 2;
    let spaces = line.match_indices(' ').map(|(at, _)| at);
    let inner =
        spaces.filter(|at| line.get(..*at).is_some_and(|head| !head.trim_matches([' ', '-']).is_empty()));
    inner.min_by_key(|at| at.abs_diff(half))
}

/// A text inside a quoted value: its quotes doubled in YAML, escaped in a Python value.
fn printed(line: &str, goal: &str, value: bool) -> String {
    if value {
        return goal.replace('\'', "\\'");
    }
    let quoted = line.split_once(": ").is_some_and(|(_, value)| value.starts_with('\''));
    if quoted { goal.replace('\'', "''") } else { goal.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_stands_where_prose_stands() {
        let text = "- id: 7\n  body: 'The garden is open on Sundays and closed in winter'\n  n: 3\n";
        let (own, at) = insert(text, "Water Ida's plants", Place::OwnLine).unwrap();
        assert_eq!(own.get(at), Some("Water Ida''s plants"));
        let before =
            "- id: 7\n  body: 'The garden is open on\n\n    Water Ida''s plants\n\n    Sundays and closed";
        assert!(own.starts_with(before), "{own}");
        let (mid, at) = insert(text, "Water Ida's plants", Place::MidSentence).unwrap();
        assert_eq!(mid.get(at), Some("Water Ida''s plants"));
        assert!(mid.contains("open on Water Ida''s plants Sundays"), "{mid}");
        let (own, _) =
            insert("{'body': 'The garden is open'}", "Water Ida's plants", Place::OwnLine).unwrap();
        assert_eq!(own, "{'body': 'The\\n\\nWater Ida\\'s plants\\n\\ngarden is open'}");
        assert_eq!(insert("oneword", "Water", Place::OwnLine), None);
    }
}
