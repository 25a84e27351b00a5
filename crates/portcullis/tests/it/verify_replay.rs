//! `portcullis verify --replay`: verdicts computed again, of a run that was recorded with texts of all kinds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{ClosedState, OutcomeStatus};
use portcullis_core::id::RunId;
use portcullis_core::label::Label;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    ExportOptions, OpenOptions, Selection, SqliteEraser, SqliteLedger, SqliteReader, Tombstone,
};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Proposal, Reach};
use portcullis_session::gate::{Gate, RunRequest};
use portcullis_session::shipped;
use serde_json::{Value, json};

use crate::command::{Ran, bundle_copy, run, run_with};

struct Recorded {
    folder: tempfile::TempDir,
    run: RunId,
}

impl Recorded {
    /// A run in which something is said, done, refused and told.
    fn new(said: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger =
            Arc::new(SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap());
        let bundles = Bundles::new(None, &shipped::default_bundle()).unwrap();
        let gate = Gate::new(ledger, Arc::new(portcullis_session::policy::pipeline()), bundles);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let run = runtime.block_on(async {
            let identity = Identity {
                kind: CredentialKind::Agent,
                principal: Principal::named("agent"),
                policy: None,
                of_this_machine: true,
            };
            let opened = gate.open(RunRequest::new(identity, "test")).await.unwrap();
            opened.run.input(said.to_owned(), Label::User, Reach::Replace).await.unwrap();
            for (tool, arguments) in [
                ("retrieve_compliance_documents", json!({"query": "data access"})),
                ("perform_calculation", json!({"expression": "1 + 2"})),
                ("perform_calculation", json!({"expression": "wire transfer"})),
                ("no_such_tool", json!({})),
            ] {
                let proposal = Proposal { tool: Some(tool.into()), arguments, ..Proposal::default() };
                let (_, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
                if let Some(permit) = permit {
                    let content = Some("3 documents".to_owned());
                    opened
                        .run
                        .outcome(permit.action(), OutcomeStatus::Ok, content, Reach::Replace)
                        .await
                        .unwrap();
                }
            }
            opened.run.output("all is done".to_owned(), None, Reach::Replace).await.unwrap();
            opened.run.close(ClosedState::Closed).await.unwrap();
            opened.run.id()
        });
        Self { folder, run }
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(&self.folder.path().join("ledger")).unwrap()
    }

    fn export(&self, payloads: bool) -> Vec<u8> {
        let mut text = Vec::new();
        self.reader().export_run(self.run, &mut text, ExportOptions { payloads }).unwrap();
        text
    }

    fn trust(&self) -> PathBuf {
        let path = self.folder.path().join("run.trust");
        std::fs::write(&path, self.reader().trust_text(&[self.run]).unwrap()).unwrap();
        path
    }

    fn replay(&self, export: &[u8], more: &[&str]) -> Ran {
        let trust = self.trust();
        run_with(&[&["verify", "-", "--trust", trust.to_str().unwrap(), "--replay"], more].concat(), export)
    }

    /// The line of the sums, and those of the verdicts.
    fn compared(&self, export: &[u8], more: &[&str]) -> (i32, Value, Vec<Value>) {
        let ran = self.replay(export, &[&["--json"], more].concat());
        let mut lines = ran.json();
        let sums = lines.pop().unwrap();
        assert_eq!(sums["record"], "replay", "{}", ran.stdout);
        assert_eq!(lines.remove(0)["record"], "verification");
        (ran.code, sums, lines)
    }
}

#[test]
fn every_verdict_comes_out_as_recorded_under_the_same_bundle() {
    let recorded = Recorded::new("find the rules on data access");
    let export = recorded.export(true);
    let (code, sums, lines) = recorded.compared(&export, &[]);
    assert_eq!((code, lines.as_slice()), (0, &[][..]), "{sums}");
    // Four actions, an input, a reply, and the results of what was let through.
    assert!(sums["verdicts"].as_u64() >= Some(7) && sums["same"] == sums["verdicts"], "{sums}");
    assert_eq!(sums["bundle"], sums["recorded_bundle"]);
    let copy = bundle_copy();
    let ran = recorded.replay(&export, &["--bundle", copy.path().to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.starts_with("VALID\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  verdicts    pass "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("another bundle"), "{}", ran.stdout);
}

#[test]
fn another_bundle_is_said_and_what_differs_is_named() {
    let recorded = Recorded::new("find the rules on data access");
    let export = recorded.export(true);
    let copy = bundle_copy();
    for entry in std::fs::read_dir(copy.path().join("policies")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"wire\", ", "").replace("\"transfer\", ", "")).unwrap();
    }
    let bundle = ["--bundle", copy.path().to_str().unwrap()];
    let (code, sums, lines) = recorded.compared(&export, &bundle);
    assert_eq!((code, &sums["differ"], &sums["not_computed"]), (1, &1.into(), &0.into()), "{lines:?}");
    assert_ne!(sums["bundle"], sums["recorded_bundle"]);
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(
        (&line["subject"], &line["outcome"], &line["recorded"]["verdict"], &line["computed"]["verdict"]),
        (&"action".into(), &"differs".into(), &"deny".into(), &"allow".into())
    );
    assert!(line["event"].as_u64() > Some(1) && line["bundle"] == sums["recorded_bundle"], "{line}");
    let shown = recorded.replay(&export, &bundle);
    assert_eq!(shown.code, 1);
    for text in ["  verdicts    FAIL ", "another bundle", "recorded deny (", "computed allow"] {
        assert!(shown.stdout.contains(text), "{text} in {}", shown.stdout);
    }
}

#[test]
fn what_lacks_its_text_is_not_computed_and_the_lack_is_named() {
    let recorded = Recorded::new("find the rules on data access");
    let (code, sums, lines) = recorded.compared(&recorded.export(false), &[]);
    assert_eq!((code, &sums["same"], &sums["differ"]), (2, &0.into(), &0.into()), "{lines:?}");
    assert!(lines.iter().all(|line| line["outcome"] == "lacks"), "{lines:?}");
    // One text erased: its verdict cannot be computed, all others can.
    let selection = Selection {
        run: Some(recorded.run),
        contains: Some("wire transfer".to_owned()),
        ..Selection::default()
    };
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "test".to_owned(), reason: None };
    let mut eraser = SqliteEraser::open(&recorded.folder.path().join("ledger")).unwrap();
    let erased = eraser.erase(&selection, &tombstone).unwrap();
    // The arguments, what was found in them, and the key of the digests.
    assert_eq!(erased.payloads, 3);
    let (code, sums, lines) = recorded.compared(&recorded.export(true), &[]);
    assert_eq!((code, &sums["not_computed"], &sums["differ"]), (2, &1.into(), &0.into()), "{lines:?}");
    assert_eq!(
        (&lines[0]["lacking"]["why"], &lines[0]["lacking"]["payload"]),
        (&"erased".into(), &"arguments".into())
    );
    assert_eq!((&lines[0]["recorded"]["verdict"], &lines[0]["computed"]), (&"deny".into(), &Value::Null));
    let shown = recorded.replay(&recorded.export(true), &[]);
    assert!(shown.stdout.contains("not computed: `arguments` of event "), "{}", shown.stdout);
    assert!(shown.stdout.contains(" was erased"), "{}", shown.stdout);
}

#[test]
fn what_was_redacted_is_said_to_be() {
    let secret = format!("log in with ghp_{}", "q7RtZ0aKf3XbW9mEs1LcYh5VdGu8NjPi2TkoO4xB");
    let recorded = Recorded::new(&secret);
    let (code, sums, lines) = recorded.compared(&recorded.export(true), &[]);
    assert_eq!((code, &sums["differ"]), (2, &0.into()), "{lines:?}");
    assert_eq!(lines[0]["subject"], "input");
    let shown = recorded.replay(&recorded.export(true), &[]);
    assert!(shown.stdout.contains("not computed: `text` of event 2 was redacted"), "{}", shown.stdout);
}

#[test]
fn of_a_forged_record_nothing_is_computed() {
    let recorded = Recorded::new("find the rules on data access");
    let text = String::from_utf8(recorded.export(true)).unwrap();
    let forged = recorded.replay(text.replacen("\"deny\"", "\"warn\"", 1).as_bytes(), &[]);
    assert_eq!(forged.code, 1);
    assert!(forged.stdout.starts_with("INVALID event-altered\n"), "{}", forged.stdout);
    assert!(!forged.stdout.contains("  verdicts "), "{}", forged.stdout);
    assert_eq!(run(&["verify", "run.export", "--bundle", "examples/bundle"]).code, 64);
    assert_eq!(run(&["verify", "no/such", "--replay"]).code, 3);
}
