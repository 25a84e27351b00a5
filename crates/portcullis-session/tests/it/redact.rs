//! Secrets are kept from the store, and from nobody else.

use std::path::Path;
use std::time::Duration;

use portcullis_core::event::{Control, Enforced, Event, ListedTool, OutcomeStatus};
use portcullis_core::id::Digest;
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
    let reply = opened.run.output(format!("it is {secret}"), None, Reach::Replace).await.unwrap();
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
    assert!(
        events.iter().all(|event| !event
            .to_line()
            .unwrap()
            .windows(40)
            .any(|part| part == secret().as_bytes()))
    );
    // What is stored verifies.
    let mut export = Vec::new();
    with.ledger()
        .read(|reader| reader.export_run(runs[0].run.id(), &mut export, ExportOptions { payloads: true }))
        .unwrap();
    let report = portcullis_proof::verify(&*export, None).unwrap();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!(report.payloads.named, report.payloads.verified);
}

/// Names and notes that stand in the line itself, where nothing can be erased.
#[tokio::test(flavor = "multi_thread")]
async fn free_texts_of_events_are_noted_too() {
    let harmless = "peek_4f1c90aa2c6f4e4f8d0d5b8c1f7e3a99";
    for (redact, left) in [("", false), ("[ledger]\nredact = false\n", true)] {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), redact, OpenOptions::default());
        let opened = open(&gate).await;
        let run = &opened.run;
        let listed = |name: String| ListedTool {
            name,
            digest: Digest::from_bytes([0; 32]),
            read_only_hint: None,
            destructive_hint: None,
            changed_from: None,
        };
        run.tools_listed("server", None, vec![listed(harmless.to_owned()), listed(secret())]).await.unwrap();
        run.evidence(format!("see {}", secret()), Digest::from_bytes([1; 32])).await.unwrap();
        run.control(Control::Pause, "ann", Some(format!("it has {}", secret()))).await.unwrap();
        run.control(Control::Resume, "ann", Some("commit 4f1c90aa2c6f4e4f8d0d5b8c1f7e3a994f1c90aa".into()))
            .await
            .unwrap();
        // The tool is not known: the finding names it.
        let mut proposal = call(&secret(), json!({}));
        proposal.call = Some("toolu_01A09q90qw90lq917835lq9".into());
        proposal.directory = Some(format!("/tmp/{}", secret()));
        let (judgement, _) = gate.propose(run, proposal, Duration::ZERO).await.unwrap();
        assert_eq!(judgement.enforced, Enforced::Held);
        assert!(judgement.denial.unwrap().target.contains(&secret()), "the agent sees what it said");
        assert_eq!(holds(folder.path(), &secret()), left);
        for kept in [harmless, "4f1c90aa2c6f4e4f8d0d5b8c1f7e3a994f1c90aa", "toolu_01A09q90qw90lq917835lq9"] {
            assert!(holds(folder.path(), kept), "{kept}");
        }
        assert_eq!(holds(folder.path(), "see [secret:github-token]"), !left);
        assert_eq!(holds(folder.path(), "/tmp/[secret:github-token]"), !left);
    }
}

/// A server cannot hide that a tool changed by giving it a name that looks like a secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tool_with_a_secret_for_a_name_counts_as_changed() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    let listed = ListedTool {
        name: secret(),
        digest: Digest::from_bytes([2; 32]),
        read_only_hint: None,
        destructive_hint: None,
        changed_from: Some(Digest::from_bytes([1; 32])),
    };
    opened.run.tools_listed("server", None, vec![listed]).await.unwrap();
    assert!(opened.run.with_state(|state, _| state.tool_changed(&secret(), None)).await);
}

/// What a wrapped file server returns from the state folder, as it is in a run whose bundle keeps secrets.
#[tokio::test(flavor = "multi_thread")]
async fn the_gates_own_tokens_are_in_no_record() {
    let token = format!("pcap_{}", "0123456789abcdef".repeat(4));
    is_in_no_record(&token, "[ledger]\nredact = false\n").await;
}

/// A token without a form, which the bundle maps to a principal by its digest.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_the_bundle_maps_are_in_no_record() {
    let token = "Zq8x.not-a-known-form/1";
    let digest = portcullis_session::credentials::sha256_hex(token);
    let bundle =
        format!("[[credential]]\ntoken_sha256 = '{digest}'\nprincipal = 'ann'\n[ledger]\nredact = false\n");
    is_in_no_record(token, &bundle).await;
}

async fn is_in_no_record(token: &str, bundle: &str) {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), bundle, OpenOptions::default());
    let opened = open(&gate).await;
    opened.run.input(format!("use {token}"), Label::User, Reach::Replace).await.unwrap();
    let proposal = call("read", json!({"text": token, token: 1}));
    let (_, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    if let Some(permit) = permit {
        let content = Some(format!("{{\"content\":\"{token}\\n\"}}"));
        opened.run.outcome(permit.action(), OutcomeStatus::Ok, content, Reach::Replace).await.unwrap();
    }
    let _ = gate.propose(&opened.run, call(token, json!({})), Duration::ZERO).await.unwrap();
    opened.run.output(format!("it is {token}"), None, Reach::Replace).await.unwrap();
    assert!(!holds(folder.path(), token), "the store has it");
    let mut export = Vec::new();
    let written = |reader: &dyn portcullis_ledger::Reader| {
        reader.export_run(opened.run.id(), &mut export, ExportOptions { payloads: true })
    };
    gate.ledger().read(written).unwrap();
    assert!(!String::from_utf8(export).unwrap().contains(token), "an export has it");
}
