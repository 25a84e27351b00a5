//! Sequences over all runs of a principal: counted over live runs and over the store, taken once, recorded as a fact.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{ClosedState, EventBody, OutcomeStatus};
use portcullis_core::fact::FactAnswer;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{OpenOptions, Selection, SqliteEraser, SqliteLedger, Tombstone};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Judgement, Proposal, Reach};
use portcullis_session::gate::{Gate, Opened, RunRequest};
use portcullis_session::policy;
use serde_json::json;

use crate::{call, events, files};

const POLICY: &str = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL']\nmax_steps = 1000\n\
                      max_side_effects = 1000\n";
const SEQUENCES: &str = r#"
[[mark]]
name = "mail"
tools = ["send"]
key = "/to"

[[mark]]
name = "lookup"
tools = ["read"]
key = "/to"

[[sequence]]
id = "three-mails-a-day"
tools = ["send"]
count = "mail"
at_most = 3
within = "24h"
same = "/to"
over = "principal"

[[sequence]]
id = "looked-up-this-week"
tools = ["send"]
before = "lookup"
within = "7d"
same = "/to"
over = "principal"
"#;

fn gate(folder: &Path) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let mut files = files("");
    files.insert("policies/p.toml".into(), POLICY.into());
    files.insert("sequences/s.toml".into(), SEQUENCES.into());
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

fn send(to: &str, number: u32) -> Proposal {
    call("send", json!({"to": to, "text": format!("mail number {number}")}))
}

/// Proposes a call, and lets it succeed if it may go ahead.
async fn makes(gate: &Gate, opened: &Opened, proposal: Proposal) -> Judgement {
    let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    if let Some(permit) = permit {
        let done = (OutcomeStatus::Ok, Some("done".into()));
        opened.run.outcome(permit.action(), done.0, done.1, Reach::Replace).await.unwrap();
    }
    judgement
}

fn rule(judgement: &Judgement) -> Option<String> {
    judgement.decision.headline().map(|finding| finding.rule.to_string())
}

const COUNT: Option<&str> = Some("policy/sequence/three-mails-a-day");
const BEFORE: Option<&str> = Some("policy/sequence/looked-up-this-week");

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_principal_share_a_past_that_a_restart_does_not_forget() {
    let folder = tempfile::tempdir().unwrap();
    let first = gate(folder.path());
    let (one, two, bob) = (open(&first, "ann").await, open(&first, "ann").await, open(&first, "bob").await);
    assert_eq!(rule(&makes(&first, &one, send("eve", 0)).await).as_deref(), BEFORE);
    for to in ["eve", "zoe"] {
        makes(&first, &one, call("read", json!({"to": to}))).await;
    }
    for number in 0..3 {
        let run = if number % 2 == 0 { &one } else { &two };
        assert_eq!(
            makes(&first, run, send("eve", number)).await.decision.verdict,
            Verdict::Allow,
            "{number}"
        );
    }
    assert_eq!(rule(&makes(&first, &two, send("eve", 3)).await).as_deref(), COUNT);
    assert_eq!(
        makes(&first, &two, send("zoe", 1)).await.decision.verdict,
        Verdict::Allow,
        "another recipient"
    );
    assert_eq!(rule(&makes(&first, &bob, send("zoe", 1)).await).as_deref(), BEFORE, "bob looked nothing up");

    let verdicts = events(&first, &two).into_iter().filter_map(|event| match event.body {
        EventBody::Verdict(record) => Some(record),
        _ => None,
    });
    let facts: Vec<_> = verdicts.flat_map(|record| record.facts).collect();
    assert_eq!(facts[1].request.question, "three-mails-a-day looked-up-this-week");
    let tally = |count: u32, sum: u64, has_succeeded: bool| json!({"count": count, "sum_micros": sum, "unread": count, "has_succeeded": has_succeeded});
    assert_eq!(facts[1].answer, FactAnswer::Known(json!([tally(3, 0, true), tally(1, 0, true)])));

    // The daemon ends; the next one finds the same in the store, under another key of each run.
    first.close_all().await;
    drop((one, two, bob, first));
    let second = gate(folder.path());
    let again = open(&second, "ann").await;
    assert_eq!(rule(&makes(&second, &again, send("eve", 4)).await).as_deref(), COUNT);
    assert_eq!(makes(&second, &again, send("zoe", 2)).await.decision.verdict, Verdict::Allow);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_for_one_is_not_taken_twice() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let first = open(&gate, "ann").await;
    makes(&gate, &first, call("read", json!({"to": "eve"}))).await;
    let mut tasks = Vec::new();
    for number in 0..20 {
        let gate = Arc::clone(&gate);
        let opened = open(&gate, "ann").await;
        tasks.push(tokio::spawn(async move {
            gate.propose(&opened.run, send("eve", number), Duration::ZERO).await.unwrap().1.is_some()
        }));
    }
    let mut permitted = 0;
    for task in tasks {
        permitted += u32::from(task.await.unwrap());
    }
    assert_eq!(permitted, 3);
}

/// Whose the erased calls were cannot be told any more: they count for everybody, and none is enough where one is required.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_arguments_were_erased_counts_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let first = gate(folder.path());
    let one = open(&first, "ann").await;
    makes(&first, &one, call("read", json!({"to": "eve"}))).await;
    for number in 0..3 {
        makes(&first, &one, send("eve", number)).await;
    }
    let run = one.run.id();
    one.run.close(ClosedState::Closed).await.unwrap();
    first.close_all().await;
    drop((one, first));
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "ann".into(), reason: None };
    let selection = Selection { run: Some(run), name: Some("arguments".into()), ..Selection::default() };
    SqliteEraser::open(&folder.path().join("ledger")).unwrap().erase(&selection, &tombstone).unwrap();

    let second = gate(folder.path());
    let again = open(&second, "ann").await;
    assert_eq!(rule(&makes(&second, &again, send("eve", 9)).await).as_deref(), COUNT);
    makes(&second, &again, call("read", json!({"to": "zoe"}))).await;
    assert_eq!(rule(&makes(&second, &again, send("zoe", 9)).await).as_deref(), COUNT);
}
