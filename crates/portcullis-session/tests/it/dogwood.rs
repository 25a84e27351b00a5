//! Rules and traces that others wrote: the regression corpus of Dogwood, Cedar with conditions on the past.
//!
//! `tests/dogwood.jsonl` has the cases of `dogwood-language` 1.1.0 (Apache-2.0, commit 4ec5e2c) whose meaning our sequences
//! can state: the rule in our words, the facts of each trace (which call, when, with which arguments, what came of it),
//! and for each judged call what Dogwood decides. Where we decide otherwise, the step says what and why, and the test
//! fails when that is no longer so. `docs/sequences.md` counts the cases, those that cannot be stated included.
//!
//! Arguments of which several together are the key are there once more as a list, such as `document+user`: `same` names
//! one argument. A trace that is `completed` records requests alone; each call that goes ahead is taken to have succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::ActionId;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::policy;
use serde::Deserialize;
use serde_json::Value;

use crate::call;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    sequences: String,
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    trace: u32,
    #[serde(default)]
    completed: bool,
    steps: Vec<Step>,
}

/// A call or what came of one, in seconds since the trace began.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at: i64,
    call: Option<String>,
    #[serde(default)]
    arguments: Value,
    id: Option<String>,
    result: Option<Came>,
    dogwood: Option<Says>,
    ours: Option<Says>,
    because: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Came {
    Ok,
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Says {
    Allow,
    Deny,
    /// It is stopped by another rule, whatever sequences say.
    Else,
}

fn cases() -> Vec<Case> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dogwood.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A bundle that judges by the rules of the case alone.
fn bundle(case: &Case) -> Arc<Bundle> {
    let steps = case.traces.iter().flat_map(|trace| &trace.steps);
    // A rule may be about a tool that no trace calls.
    let named =
        case.sequences.lines().filter_map(|line| line.strip_prefix("tools = [\"")?.strip_suffix("\"]"));
    let names: BTreeSet<&str> = steps.filter_map(|step| step.call.as_deref()).chain(named).collect();
    let mut tools = String::new();
    for name in names {
        let _ = writeln!(tools, "[[tool]]\nname = \"{name}\"\ntype = \"CALCULATE\"\nside_effecting = false");
    }
    let policy = "[[policy]]\nname = 'p'\nallowed_types = ['CALCULATE']\nmax_steps = 100000\n\
                  max_side_effects = 100000\n";
    let files = [
        ("portcullis.toml", "version = 1\n[loops]\nalike = 0\ndenials = 0\n"),
        ("tools/t.toml", &tools),
        ("policies/p.toml", policy),
        ("sequences/s.toml", &case.sequences),
    ];
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
    Arc::new(policy::load(&files).unwrap_or_else(|mistakes| panic!("{}: {mistakes:?}", case.case)))
}

/// What is decided on a call, by the rules of the case.
fn decides(run: &mut DryRun, step: &Step, tool: &str) -> (Says, ActionId) {
    let judged = run.propose(call(tool, step.arguments.clone()));
    let rules: Vec<String> =
        judged.decision.findings.iter().map(|finding| finding.rule.to_string()).collect();
    let says = match judged.decision.verdict {
        Verdict::Allow => Says::Allow,
        Verdict::Deny if rules.iter().any(|rule| rule.starts_with("policy/sequence/")) => Says::Deny,
        _ => Says::Else,
    };
    (says, judged.action.id)
}

/// What was decided on the judged calls otherwise than the trace says.
fn play(bundle: &Arc<Bundle>, trace: &Trace) -> Vec<String> {
    let pipeline = Arc::new(policy::pipeline());
    let mut run = DryRun::open(Arc::clone(bundle), pipeline, "p").unwrap();
    let (mut open, mut wrong) = (BTreeMap::new(), Vec::new());
    for (number, step) in trace.steps.iter().enumerate() {
        run.not_before(Timestamp::from_micros((step.at + 1_000) * 1_000_000));
        if let Some(tool) = &step.call {
            let (says, action) = decides(&mut run, step, tool);
            if says == Says::Allow && trace.completed {
                run.outcome(action, OutcomeStatus::Ok, None);
            } else if says == Says::Allow {
                open.insert(step.id.clone(), action);
            }
            // A call that no rule judges goes ahead.
            let expected = step.ours.or(step.dogwood).unwrap_or(Says::Allow);
            if expected != says {
                wrong.push(format!("{number} {says:?}, expected {expected:?}"));
            }
        } else if let Some(action) = open.remove(&step.id) {
            let status = match step.result.as_ref().unwrap() {
                Came::Ok => OutcomeStatus::Ok,
                Came::Error => OutcomeStatus::Error,
            };
            run.outcome(action, status, None);
        }
    }
    wrong
}

#[test]
fn traces_of_others_get_their_verdicts_or_ours_with_a_reason() {
    let (mut traces, mut judged, mut otherwise, mut wrong) = (0, 0, 0, String::new());
    for case in cases() {
        let bundle = bundle(&case);
        for trace in &case.traces {
            traces += 1;
            for step in &trace.steps {
                judged += u32::from(step.dogwood.is_some());
                otherwise += u32::from(step.dogwood.is_some() && step.ours.is_some());
                assert_eq!(step.ours.is_some(), step.because.is_some(), "{}", case.case);
                assert!(step.ours.is_none() || step.ours != step.dogwood, "{}: no difference", case.case);
            }
            for found in play(&bundle, trace) {
                let _ = writeln!(wrong, "{}/{}/{found}", case.case, trace.trace);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!((traces, judged, otherwise), (364, 694, 93), "docs/sequences.md has the counts");
}
