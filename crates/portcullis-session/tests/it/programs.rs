//! Guard programs at a gate: asked while the run is not locked, recorded, run again by a replay, and never a way to more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, EventBody, VerdictRecord};
use portcullis_core::fact::{FactAnswer, FactRecord};
use portcullis_core::program::SOURCE;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::dry::DryRun;
use portcullis_session::gate::{Gate, Opened};
use portcullis_session::policy;
use serde_json::json;

use crate::{call, files, open};

const CHECK: &str = r#"
WORDS = ["secret", "salary"]

def check(action, run, principal):
    text = action.args.get("text", "")
    found = [word for word in WORDS if word in text]
    if found:
        return deny("the text has " + " and ".join(found), found)
    if action.tool == "send" and run.steps > 2:
        return hold("mail after the second step")
"#;

fn with_programs(programs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    super::engine::put_into(std::env::current_exe().unwrap().parent().unwrap());
    let mut all = files("");
    all.extend(
        programs.iter().map(|(name, text)| (format!("programs/{name}.star"), text.as_bytes().to_vec())),
    );
    all
}

fn gate_of(folder: &std::path::Path, programs: &[(&str, &str)]) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &with_programs(programs)).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), bundles)
}

fn verdicts(gate: &Gate, opened: &Opened) -> Vec<VerdictRecord> {
    let lines = gate.ledger().read(|reader| reader.events(opened.run.id(), 0, 10_000)).unwrap();
    let events = lines.iter().map(|stored| Event::from_line(&stored.line).unwrap());
    events
        .filter_map(|event| match event.body {
            EventBody::Verdict(record) if record.action.is_some() => Some(record),
            _ => None,
        })
        .collect()
}

async fn propose(gate: &Gate, opened: &Opened, tool: &str, text: &str) -> (Verdict, Option<String>, bool) {
    let (judgement, permit) =
        gate.propose(&opened.run, call(tool, json!({"text": text})), Duration::ZERO).await.unwrap();
    let headline = judgement.decision.headline().map(|finding| finding.rule.to_string());
    (judgement.decision.verdict, headline, permit.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_deny_and_hold_and_their_answer_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate_of(folder.path(), &[("words", CHECK)]);
    let opened = open(&gate).await;
    assert_eq!(propose(&gate, &opened, "read", "tea").await, (Verdict::Allow, None, true));
    let rule = Some("program/check/words".to_owned());
    assert_eq!(propose(&gate, &opened, "read", "a secret").await, (Verdict::Deny, rule.clone(), false));
    assert_eq!(propose(&gate, &opened, "read", "coffee").await.0, Verdict::Allow);
    assert_eq!(propose(&gate, &opened, "send", "coffee").await, (Verdict::Review, rule, false));
    let answers: Vec<FactAnswer> = verdicts(&gate, &opened)
        .iter()
        .map(|record| {
            let fact = record.facts.iter().find(|fact| fact.request.source == SOURCE).unwrap();
            assert!(!fact.request.question.contains("secret"), "a question quotes nothing");
            fact.answer.clone()
        })
        .collect();
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0], FactAnswer::Known(json!({})));
    // Words are beside the line, where they can be erased.
    assert!(!format!("{:?}", answers[1]).contains("secret"), "{:?}", answers[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_proposed_at_once_are_not_denied_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate_of(folder.path(), &[("words", CHECK)]);
    let opened = Arc::new(open(&gate).await);
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let (gate, opened) = (Arc::clone(&gate), Arc::clone(&opened));
            tokio::spawn(async move { propose(&gate, &opened, "read", &format!("tea {n}")).await })
        })
        .collect();
    for call in calls {
        let (verdict, rule, _) = call.await.unwrap();
        assert_eq!(verdict, Verdict::Allow, "{rule:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_worker_and_a_failing_program_deny_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "def check(action, run, principal):\n    if action.args.get(\"text\") == \"grow\":\n        return action.args[\"text\"] * 500000000\n    if action.args.get(\"text\") == \"fail\":\n        return 1 // run.steps * 0 + [][1]\n";
    let gate = gate_of(folder.path(), &[("a-words", CHECK), ("hostile", hostile)]);
    let opened = open(&gate).await;
    assert_eq!(propose(&gate, &opened, "read", "tea").await.0, Verdict::Allow);
    let lost = propose(&gate, &opened, "read", "grow").await;
    assert_eq!(lost, (Verdict::Deny, Some("gate/fact-missing".into()), false));
    let failed = propose(&gate, &opened, "read", "fail").await;
    assert_eq!(failed, (Verdict::Deny, Some("gate/guard-failed".into()), false));
    assert_eq!(propose(&gate, &opened, "read", "tea").await.0, Verdict::Allow);
    let records = verdicts(&gate, &opened);
    let failed =
        |record: &VerdictRecord| record.facts.iter().find(|fact| fact.request.source == SOURCE).cloned();
    let Some(FactRecord { answer: FactAnswer::Failed(why), .. }) = failed(&records[1]) else {
        panic!("{:?}", records[1].facts)
    };
    assert!(why.contains("the program `hostile`"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_slow_by_its_own_doing_does_not_slow_others() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "def check(action, run, principal):\n    if action.args.get(\"text\") == \"slow\":\n        return sorted([-x for x in range(1000000)] * 2)[0]\n";
    let gate = gate_of(folder.path(), &[("hostile", hostile)]);
    let (slow, quick) = (open(&gate).await, open(&gate).await);
    propose(&gate, &quick, "read", "tea").await;
    let slowly = {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            for _ in 0..3 {
                propose(&gate, &slow, "read", "slow").await;
            }
        })
    };
    let mut times = Vec::new();
    while !slowly.is_finished() {
        let began = Instant::now();
        assert_eq!(propose(&gate, &quick, "think", "tea").await.0, Verdict::Review);
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    slowly.await.unwrap();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    assert!(times.len() > 5 && middle < Duration::from_millis(50), "{middle:?} of {}", times.len());
}

fn bundle(programs: &[(&str, &str)]) -> Arc<Bundle> {
    Arc::new(policy::load(&with_programs(programs)).unwrap())
}

#[test]
fn a_dry_run_asks_the_programs_and_a_false_record_does_not_pass() {
    let pipeline = Arc::new(policy::pipeline());
    let judge = |programs: &[(&str, &str)], facts: Vec<FactRecord>| {
        let mut run = DryRun::open(bundle(programs), Arc::clone(&pipeline), "p").unwrap().keeping_events();
        run.recall_facts(facts);
        let judgement = run.propose(call("read", json!({"text": "secret"})));
        let facts = run.events().iter().find_map(|event| match &event.body {
            EventBody::Verdict(record) => Some(record.facts.clone()),
            _ => None,
        });
        (judgement.decision.verdict, facts.unwrap())
    };
    let (verdict, facts) = judge(&[("words", CHECK)], Vec::new());
    assert_eq!(verdict, Verdict::Deny);
    let forged: Vec<FactRecord> = facts
        .iter()
        .map(|fact| FactRecord { answer: FactAnswer::Known(json!({})), ..fact.clone() })
        .collect();
    assert_eq!(judge(&[("words", CHECK)], forged.clone()).0, Verdict::Deny);
    // The record is about other programs.
    let milder = CHECK.replace("\"secret\", ", "");
    assert_eq!(judge(&[("words", &milder)], forged).0, Verdict::Allow);
}

#[test]
fn mistakes_have_their_place_and_the_nearest_name() {
    let mistakes = |text: &str| {
        policy::load(&with_programs(&[("words", text)]))
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let check = "def check(action, run, principal):\n    ";
    for (text, wanted) in [
        (
            format!("{check}return denny(\"x\")\n"),
            "programs/words.star:2:12: there is nothing called `denny`, did you mean `deny`?",
        ),
        (format!("{check}return (\n"), "programs/words.star:3:1: "),
        ("x = 1\n".to_owned(), "there is no `check`"),
        ("def check(action):\n    return None\n".to_owned(), "takes other things"),
        ("check = 1\n".to_owned(), "is no function"),
        (format!("{check}return {}1{}\n", "[".repeat(100), "]".repeat(100)), "nested deeper than 64 levels"),
        ("x = [0] * 300000000\n".to_owned(), "the worker was lost while it read this"),
        (format!("load(\"a.star\", \"b\")\n{check}return None\n"), "load"),
        ("#".repeat(70_000), "the limit is 65536"),
    ] {
        let found = mistakes(&text);
        assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
    }
    let misnamed = {
        let mut all = with_programs(&[]);
        all.insert("programs/Big Name.star".into(), b"x".to_vec());
        policy::load(&all).unwrap_err()[0].to_string()
    };
    assert!(misnamed.contains("is no name of a program"), "{misnamed}");
}
