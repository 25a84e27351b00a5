//! Secrets are kept from the store, and from nobody else.

use std::path::Path;
use std::time::Duration;

use portcullis_core::event::{Event, OutcomeStatus};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{ExportOptions, OpenOptions};
use portcullis_session::engine::Reach;
use portcullis_session::gate::{Gate, Opened};
use serde_json::json;

use super::{call, events, gate, open};

/// Put together here, so that no scanner takes this file for a leak.
fn secret() -> String {
    format!("ghp_{}", "q7RtZ0aKf3XbW9mEs1LcYh5VdGu8NjPi2TkoO4xB")
}

fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        if entry.file_type().unwrap().is_dir() {
            return holds(&entry.path(), text);
        }
        std::fs::read(entry.path()).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

fn payload(gate: &Gate, opened: &Opened, event: &Event, name: &str) -> (String, String) {
    let named = &event.payloads[name];
    let stored =
        gate.ledger().read(|reader| reader.payload(opened.run.id(), named.commitment)).unwrap().unwrap();
    assert_eq!((stored.media_type(), stored.bytes().len() as u64), (named.media_type.as_str(), named.bytes));
    (String::from_utf8(stored.bytes().to_vec()).unwrap(), named.media_type.clone())
}

/// A run in which a secret is said, returned by a tool, sent and told: the verdicts, and what the agent saw.
async fn leak(gate: &Gate, opened: &Opened) -> (Vec<Verdict>, Vec<Option<String>>) {
    let secret = secret();
    let (mut verdicts, mut shown) = (Vec::new(), Vec::new());
    let said = opened.run.input(format!("log in with {secret}"), Label::User, Reach::Replace).await.unwrap();
    verdicts.push(said.decision.verdict);
    for (tool, text) in [("read", "the settings"), ("send", &*secret)] {
        let proposal = call(tool, json!({"text": text}));
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        verdicts.push(judgement.decision.verdict);
        // What executes is what was proposed.
        assert_eq!(judgement.action.arguments["text"], text);
        if let Some(permit) = permit {
            let content = format!("token={secret} and postgres://app:hunter22@db/main");
            let seen = opened
                .run
                .outcome(permit.action(), OutcomeStatus::Ok, Some(content), Reach::Replace)
                .await
                .unwrap();
            let seen = seen.1.unwrap();
            verdicts.push(seen.decision.verdict);
            shown.push(seen.shown);
        }
    }
    let reply = opened.run.output(format!("it is {secret}"), Reach::Replace).await.unwrap();
    verdicts.push(reply.decision.verdict);
    (verdicts, shown)
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_kept_from_the_store_and_judged_as_they_were() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let with = gate(folders[0].path(), "", OpenOptions::default());
    let without = gate(folders[1].path(), "[ledger]\nredact = false\n", OpenOptions::default());
    let runs = [open(&with).await, open(&without).await];
    let judged = leak(&with, &runs[0]).await;
    assert_eq!(judged, leak(&without, &runs[1]).await);
    assert!(holds(folders[1].path(), &secret()), "the search finds what is there");
    assert!(!holds(folders[0].path(), &secret()));
    assert!(!holds(folders[0].path(), "hunter22"));
    let events = events(&with, &runs[0]);
    let of = |kind: &str, name: &str| -> Vec<(String, String)> {
        let named = |event: &&Event| event.body.kind() == kind && event.payloads.contains_key(name);
        events.iter().filter(named).map(|event| payload(&with, &runs[0], event, name)).collect()
    };
    let text = "text/plain; charset=utf-8";
    assert_eq!(
        of("input", "text"),
        [("log in with [secret:github-token]".into(), format!("{text}; redacted=1"))]
    );
    assert_eq!(
        of("observation", "content")[0],
        (
            "token=[secret:github-token] and postgres://app:[secret:password]@db/main".into(),
            format!("{text}; redacted=2")
        )
    );
    assert_eq!(
        of("proposed", "arguments"),
        [
            (json!({"text": "the settings"}).to_string(), "application/json".to_owned()),
            (json!({"text": "[secret:github-token]"}).to_string(), "application/json; redacted=1".to_owned()),
        ]
    );
    assert_eq!(of("output", "text")[0].0, "it is [secret:github-token]");
    // What is stored verifies.
    let mut export = Vec::new();
    with.ledger()
        .read(|reader| reader.export_run(runs[0].run.id(), &mut export, ExportOptions { payloads: true }))
        .unwrap();
    let report = portcullis_proof::verify(&*export, None).unwrap();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!(report.payloads.named, report.payloads.verified);
}
