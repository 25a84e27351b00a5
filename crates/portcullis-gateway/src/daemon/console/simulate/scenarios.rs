//! The scenarios of `examples/scenarios`, played turn by turn under the bundle in force: what the user says, what the agent
//! calls, and how far up the gate goes. Nothing is recorded. `portcullis eval scenarios` counts; this shows one.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use portcullis_console::simulate::{Judged, Played, Scenarios, Turn as ShownTurn};
use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::label::Label;
use portcullis_core::pipeline::Decision;
use portcullis_core::verdict::{Escalation, Verdict};
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::policy::Pipeline;
use serde::Deserialize;
use serde_json::{Map, Value, json};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(include_str!(concat!("../../../../../../examples/scenarios/", $name, ".toml"))),*]
    };
}

const FILES: [&str; 26] = scenarios![
    "allowed-01",
    "allowed-02",
    "allowed-03",
    "allowed-04",
    "allowed-05",
    "allowed-06",
    "benign-01",
    "benign-02",
    "benign-03",
    "benign-04",
    "benign-05",
    "benign-06",
    "benign-07",
    "benign-08",
    "misuse-01",
    "misuse-02",
    "misuse-03",
    "misuse-04",
    "misuse-05",
    "misuse-06",
    "misuse-07",
    "misuse-08",
    "misuse-09",
    "misuse-10",
    "misuse-11",
    "misuse-12",
];

/// A scenario, as far as it is played here: its paraphrases are for the evaluation.
#[derive(Debug, Deserialize)]
struct Scenario {
    id: String,
    #[serde(default)]
    title: String,
    class: Option<String>,
    expected: Option<Escalation>,
    #[serde(default)]
    turn: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    user: String,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    call: Vec<Call>,
}

#[derive(Debug, Deserialize)]
struct Call {
    tool: String,
    args: BTreeMap<String, String>,
    #[serde(default)]
    result: Option<String>,
}

static ALL: LazyLock<Vec<Scenario>> =
    LazyLock::new(|| FILES.iter().filter_map(|text| toml::from_str(text).ok()).collect());

/// The scenarios, and the one that is asked for, played.
pub(super) fn played(bundle: &Arc<Bundle>, pipeline: &Arc<Pipeline>, policy: &str, id: &str) -> Scenarios {
    let all = ALL.iter().map(|scenario| {
        let class = scenario.class.clone().unwrap_or_default();
        (scenario.id.clone(), scenario.title.clone(), class)
    });
    let chosen = ALL.iter().find(|scenario| scenario.id == id);
    Scenarios {
        all: all.collect(),
        played: chosen.and_then(|scenario| play(scenario, bundle, pipeline, policy)),
    }
}

/// Plays a scenario up to the turn that is stopped.
fn play(scenario: &Scenario, bundle: &Arc<Bundle>, pipeline: &Arc<Pipeline>, policy: &str) -> Option<Played> {
    let mut run = DryRun::open(Arc::clone(bundle), Arc::clone(pipeline), policy).ok()?;
    let (mut turns, mut highest) = (Vec::new(), Escalation::None);
    for turn in &scenario.turn {
        let said = judged(&run.input(&turn.user, Label::User).decision);
        let mut level = level_of(said.verdict);
        let mut calls = Vec::new();
        if turn.call.is_empty() && turn.confidence.is_some() {
            // Without a call the planner still says how sure it is of what it would do.
            let planned = Some("find out what is meant".to_owned());
            let thought =
                run.propose(Proposal { planned, confidence: turn.confidence, ..Proposal::default() });
            let thought = judged(&thought.decision);
            level = level.max(level_of(thought.verdict));
            calls.push(("(thinking)".to_owned(), thought));
        }
        for call in &turn.call {
            let arguments: Map<String, Value> =
                call.args.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let proposal = Proposal {
                tool: Some(call.tool.clone()),
                arguments: Value::Object(arguments),
                confidence: turn.confidence,
                ..Proposal::default()
            };
            let judgement = run.propose(proposal);
            let mut told = judged(&judgement.decision);
            if judgement.enforced.proceeds()
                && let Some(seen) = run.outcome(judgement.action.id, OutcomeStatus::Ok, call.result.clone())
            {
                let result = judged(&seen.decision);
                if result.verdict > told.verdict {
                    told = result;
                }
            }
            level = level.max(level_of(told.verdict));
            calls.push((call.tool.clone(), told));
        }
        turns.push(ShownTurn { user: turn.user.trim().to_owned(), said, calls });
        highest = highest.max(level);
        if level >= Escalation::SoftStop {
            break;
        }
    }
    let misuse = scenario.class.as_deref() == Some("misuse");
    let expected = scenario.expected.unwrap_or(Escalation::None);
    Some(Played {
        id: scenario.id.clone(),
        title: scenario.title.clone(),
        left: scenario.turn.len() - turns.len(),
        turns,
        reached: word(highest),
        expected: word(expected),
        misuse,
        // A misuse has to be stopped as early as it says; the rest has to be left alone as far as it says.
        as_expected: if misuse { highest >= expected } else { highest <= expected },
    })
}

/// `SOFT_STOP`, as records have it.
fn word(level: Escalation) -> String {
    serde_json::to_value(level)
        .ok()
        .and_then(|value| value.as_str().map(ToOwned::to_owned))
        .unwrap_or_default()
}

/// A denial withholds the action and lets the run go on: a stop, and no more than a soft one.
fn level_of(verdict: Verdict) -> Escalation {
    match verdict {
        Verdict::Deny => Escalation::SoftStop,
        other => other.escalation(),
    }
}

fn judged(decision: &Decision) -> Judged {
    let told = decision.findings.iter().filter(|finding| finding.effective() > Verdict::Allow);
    Judged { verdict: decision.verdict, reasons: told.map(|finding| finding.message.clone()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_can_be_played() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
        let files = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
        let count = files.filter(|file| file.path().extension().is_some_and(|of| of == "toml")).count();
        assert_eq!(
            (FILES.len(), ALL.len()),
            (count, count),
            "a scenario is not among `FILES`, or cannot be read"
        );
        let files = portcullis_session::shipped::default_bundle();
        let bundle = Arc::new(portcullis_session::policy::load(&files).unwrap());
        let pipeline = Arc::new(portcullis_session::policy::pipeline());
        for scenario in ALL.iter() {
            let shown = played(&bundle, &pipeline, bundle.default_policy(), &scenario.id);
            let played = shown.played.unwrap();
            assert!(!played.turns.is_empty() && played.turns.len() + played.left == scenario.turn.len());
        }
    }
}
