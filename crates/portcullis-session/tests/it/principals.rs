//! Budgets of all runs of a principal: counted over live runs and over the store, taken once, recorded as a fact.

use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{EventBody, Mode, OutcomeStatus, RunOpened, VerdictRecord};
use portcullis_core::fact::FactAnswer;
use portcullis_core::id::RunId;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::usage::Used;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Engine, Proposal, Reach};
use portcullis_session::env::CountingEnv;
use portcullis_session::facts::NoSources;
use portcullis_session::gate::{Gate, Opened, RunRequest};
use portcullis_session::policy;
use serde_json::json;

use crate::{call, events, files};

const SHARED: &str = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL']\nmax_steps = 1000\n\
                      max_side_effects = 1000\n[policy.principal]\nper = 'day'\nmax_steps = 60\nmax_side_effects = 10\n";

fn gate(folder: &std::path::Path) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let mut files = files("");
    files.insert("policies/p.toml".into(), SHARED.into());
    Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), Bundles::new(None, &files).unwrap())
}

async fn open(gate: &Gate, principal: &str) -> Opened {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named(principal),
        policy: None,
        of_this_machine: true,
    };
    gate.open(RunRequest::new(identity, "test")).await.unwrap()
}

fn send(number: u32) -> Proposal {
    call("send", json!({"text": format!("mail number {number}")}))
}

/// The records of a run's verdicts.
fn verdicts(gate: &Gate, opened: &Opened) -> Vec<VerdictRecord> {
    let record = |body| match body {
        EventBody::Verdict(record) => Some(record),
        _ => None,
    };
    events(gate, opened).into_iter().filter_map(|event| record(event.body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_principal_share_a_budget_that_a_restart_does_not_fill_up() {
    let folder = tempfile::tempdir().unwrap();
    let first = gate(folder.path());
    let (one, two, other) = (open(&first, "ann").await, open(&first, "ann").await, open(&first, "bob").await);
    for number in 0..10 {
        let run = if number % 2 == 0 { &one } else { &two };
        let (judgement, permit) = first.propose(&run.run, send(number), Duration::ZERO).await.unwrap();
        assert_eq!(judgement.decision.verdict, Verdict::Allow, "{number}");
        let action = permit.unwrap().action();
        run.run.outcome(action, OutcomeStatus::Ok, Some("sent".into()), Reach::Replace).await.unwrap();
    }
    let (denied, permit) = first.propose(&two.run, send(11), Duration::ZERO).await.unwrap();
    assert!(permit.is_none());
    let headline = denied.decision.headline().unwrap();
    assert_eq!(headline.rule, "run/budget/principal-side-effects", "{}", headline.message);
    assert!(
        first.propose(&other.run, send(1), Duration::ZERO).await.unwrap().1.is_some(),
        "bob's is his own"
    );

    // What was known is in the record: ten steps in two runs, before the eleventh.
    let [fact] = verdicts(&first, &two).pop().unwrap().facts.try_into().unwrap();
    let FactAnswer::Known(known) = fact.answer else { panic!("{:?}", fact.answer) };
    let known: Used = serde_json::from_value(known).unwrap();
    assert_eq!((known.steps, known.side_effects), (10, 10));
    let bytes: u64 = [&one, &two]
        .iter()
        .flat_map(|run| events(&first, run))
        .flat_map(|event| event.payloads)
        .filter(|(name, _)| ["arguments", "content"].contains(&name.as_str()))
        .map(|(_, payload)| payload.bytes)
        .sum();
    let last = json!({"text": "mail number 11"}).to_string().len() as u64;
    assert_eq!(known.bytes, bytes - last, "what was charged beforehand was set right");

    // The daemon ends; the next one finds the same in the store.
    first.close_all().await;
    drop((one, two, other, first));
    let second = gate(folder.path());
    let again = open(&second, "ann").await;
    let (denied, _) = second.propose(&again.run, send(12), Duration::ZERO).await.unwrap();
    assert_eq!(denied.decision.headline().unwrap().rule, "run/budget/principal-side-effects");
    let read = second.propose(&again.run, call("read", json!({})), Duration::ZERO).await.unwrap();
    assert_eq!(read.0.decision.verdict, Verdict::Allow);
    let counted: Vec<u64> = verdicts(&second, &again)
        .into_iter()
        .map(|record| match &record.facts[0].answer {
            FactAnswer::Known(used) => used["steps"].as_u64().unwrap(),
            FactAnswer::Failed(why) => panic!("{why}"),
        })
        .collect();
    assert_eq!(counted, [11, 12], "a denied step is one, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_for_one_is_not_taken_twice() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let mut tasks = Vec::new();
    for number in 0..30 {
        let gate = Arc::clone(&gate);
        let opened = open(&gate, "ann").await;
        tasks.push(tokio::spawn(async move {
            gate.propose(&opened.run, send(number), Duration::ZERO).await.unwrap().1.is_some()
        }));
    }
    let mut permitted = 0;
    for task in tasks {
        permitted += u32::from(task.await.unwrap());
    }
    assert_eq!(permitted, 10);
}

/// Whether the call before it acted is the word of its server: what takes it up counts like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_up_another_counts_against_every_limit() {
    let folder = tempfile::tempdir().unwrap();
    let policy = SHARED.replace("max_side_effects = 10\n", "max_side_effects = 7\n");
    for (text, limit) in
        [(policy.clone(), 7), (policy.replace("max_side_effects = 1000\n", "max_side_effects = 5\n"), 5)]
    {
        let ledger =
            SqliteLedger::open(&folder.path().join(limit.to_string()), OpenOptions::default()).unwrap();
        let mut files = files("");
        files.insert("policies/p.toml".into(), text.into());
        let bundles = Bundles::new(None, &files).unwrap();
        let gate = Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), bundles);
        let opened = open(&gate, "ann").await;
        let mut permitted = 0;
        for number in 0..40 {
            let continuation = (number > 0).then(|| json!({"requestState": format!("state {number}")}));
            let proposal = Proposal { continuation, ..send(number) };
            let (_, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
            let Some(permit) = permit else { continue };
            permitted += 1;
            let asked = OutcomeStatus::InputRequired;
            opened.run.outcome(permit.action(), asked, Some("which?".into()), Reach::Replace).await.unwrap();
        }
        assert_eq!(permitted, limit);
    }
}

/// Law 3: what cannot be counted denies.
#[test]
fn a_budget_that_nobody_counts_denies() {
    let mut files = files("");
    files.insert("policies/p.toml".into(), SHARED.into());
    let bundle = Arc::new(policy::load(&files).unwrap());
    let mut env = CountingEnv::default();
    let mut engine = Engine::new(RunId::from_bytes([1; 16]), bundle.clone(), Arc::new(policy::pipeline()));
    let opened = RunOpened {
        principal: Principal::named("ann"),
        surface: "test".into(),
        session: None,
        policy: "p".into(),
        bundle: bundle.digest(),
        configuration: None,
        mode: Mode::Enforce,
        place: None,
        parent: None,
    };
    let batch = engine.open(&mut env, opened);
    engine.commit(&batch.events, batch.said);
    let (_, judgement) = engine.propose(&mut env, call("read", json!({})), &NoSources);
    assert_eq!(judgement.decision.headline().unwrap().rule, "gate/fact-missing");
    assert_eq!(judgement.decision.verdict, Verdict::Deny);
}
