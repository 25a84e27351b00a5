//! What is done about a text depends on what its surface can still do, and the record says what was done.

use std::sync::Arc;
use std::time::Duration;

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::event::{Enforced, EventBody, OutcomeStatus};
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span, SpanEdit};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::engine::{Reach, TextJudgement};
use portcullis_session::gate::{Gate, Opened};
use portcullis_session::policy;
use portcullis_trajectory::memory::{Context, RunMemory};
use serde_json::json;

use crate::{call, events, files, open};

/// Cuts the word `plant` out of a text, and withholds one with the word `poison`.
#[derive(Debug)]
struct Gardener;

static META: GuardMeta = GuardMeta {
    id: "test/gardener",
    hooks: &[Hook::Input, Hook::Observation, Hook::Output],
    owasp: &[],
    unfaithful_to: None,
};

impl Guard<RunMemory> for Gardener {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        _: &Context<'_>,
        pending: &Pending<'_>,
        _: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let (Subject::Input { text, .. } | Subject::Observation { text, .. } | Subject::Output { text, .. }) =
            pending.subject
        else {
            return Ok(Vec::new());
        };
        let mut findings = Vec::new();
        if text.contains("poison") {
            findings.push(Finding::new("test/gardener", Verdict::Deny, "it is poisoned"));
        }
        if let Some(start) = text.find("plant") {
            let span = Span { pointer: "/text".into(), start, end: start + "plant".len() };
            let edit = SpanEdit { span, replacement: "[cut]".into() };
            findings.push(Finding::new("test/gardener", Verdict::Modify, "it is planted").edit(edit));
        }
        Ok(findings)
    }
}

fn gate_of_gardener(folder: &std::path::Path, main: &str) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let pipeline = policy::pipeline_of(vec![Box::new(Gardener)]);
    Gate::new(Arc::new(ledger), Arc::new(pipeline), Bundles::new(None, &files(main)).unwrap())
}

async fn seen(gate: &Arc<Gate>, opened: &Opened, content: &str, reach: Reach) -> TextJudgement {
    let proposal = call("read", json!({"text": content}));
    let (_, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    let action = permit.unwrap().action();
    let outcome = opened.run.outcome(action, OutcomeStatus::Ok, Some(content.into()), reach).await;
    outcome.unwrap().1.unwrap()
}

fn recorded(gate: &Gate, opened: &Opened) -> Vec<Enforced> {
    let enforced = |body| match body {
        EventBody::Enforcement { action: None, enforced, .. } => Some(enforced),
        _ => None,
    };
    events(gate, opened).into_iter().filter_map(|event| enforced(event.body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_says_what_the_surface_could_still_do() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate_of_gardener(folder.path(), "");
    let opened = open(&gate).await;
    let mut wanted = Vec::new();
    for (text, reach, enforced, shown, denied) in [
        ("a plant", Reach::Replace, Enforced::Replaced, Some("a [cut]"), false),
        ("a plant", Reach::Withhold, Enforced::Withheld, None, true),
        ("a plant", Reach::Tell, Enforced::LetPass, Some("a [cut]"), false),
        ("poison", Reach::Replace, Enforced::Withheld, None, true),
        ("poison", Reach::Withhold, Enforced::Withheld, None, true),
        ("poison", Reach::Tell, Enforced::LetPass, None, true),
    ] {
        for judged in [
            seen(&gate, &opened, text, reach).await,
            opened.run.input(text.into(), Label::User, reach).await.unwrap(),
            opened.run.output(text.into(), None, reach).await.unwrap(),
        ] {
            assert_eq!(judged.enforced, enforced, "{text} {reach:?}");
            assert_eq!(judged.shown.as_deref(), shown, "{text} {reach:?}");
            assert_eq!(judged.denial.is_some(), denied, "{text} {reach:?}");
            wanted.push(enforced);
        }
    }
    let passed = seen(&gate, &opened, "a weed", Reach::Tell).await;
    assert_eq!((passed.enforced, passed.denial.is_none()), (Enforced::Executed, true));
    assert_eq!(recorded(&gate, &opened), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_tells_nobody_anything() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate_of_gardener(folder.path(), "mode = 'observe'\n");
    let opened = open(&gate).await;
    for reach in [Reach::Replace, Reach::Withhold, Reach::Tell] {
        for text in ["a plant", "poison"] {
            let judged = seen(&gate, &opened, text, reach).await;
            assert_eq!(judged.enforced, Enforced::LetPass, "{text} {reach:?}");
            assert!(judged.shown.is_none() && judged.denial.is_none(), "{text} {reach:?}");
        }
    }
}
