//! `portcullis erase` and `retention`: what they say, what exports say then, and what is in the files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::action::Action;
use portcullis_core::aside::DIGEST_KEY;
use portcullis_core::event::{ClosedState, Enforced, Event, GrantScope, GrantedEffects, OutcomeStatus};
use portcullis_core::id::{ActionId, Digest, RunId};
use portcullis_core::label::Label;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_ledger::{OpenOptions, SqliteLedger, SqliteReader};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Proposal, Reach, Says};
use portcullis_session::gate::{Gate, RunRequest};
use portcullis_session::shipped;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Ran, run};

/// Whose request it is that the test is about.
const PERSON: &str = "mallory-7731";

struct Home(TempDir);

impl Drop for Home {
    /// Ends the daemon, which a command such as `runs events` starts.
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.path("state/daemon.pid")) {
            let _gone = Command::new("kill").arg(pid.trim()).stderr(Stdio::null()).status();
        }
    }
}

impl Home {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Ran {
        let state = self.path("state");
        run(&[&["--home", state.to_str().unwrap()], args].concat())
    }

    fn simulate(&self) -> String {
        let ran = self.run(&["simulate", "--plan", "Handle Data Access Request"]);
        ran.stdout.lines().rev().find_map(|line| line.strip_prefix("run ")).unwrap().to_owned()
    }

    /// Exports a run and verifies it: what is said of its payloads.
    fn payloads(&self, run: &str) -> serde_json::Value {
        let (export, trust) = (self.path("run.export"), self.path("run.trust"));
        let (export, trust) = (export.to_str().unwrap(), trust.to_str().unwrap());
        let ran = self.run(&["export", run, "-o", export, "--trust-out", trust]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = self.run(&["verify", export, "--trust", trust, "--json"]);
        let [report] = ran.json().try_into().unwrap();
        assert_eq!(report["status"], "VALID");
        report["payloads"].clone()
    }
}

fn holds(folder: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => holds(&entry.path(), text),
        kind if kind.is_file() => {
            std::fs::read(entry.path()).unwrap().windows(text.len()).any(|window| window == text)
        }
        _ => false,
    })
}

#[test]
fn a_run_is_erased_and_verifies_and_says_so() {
    let home = Home(tempfile::tempdir().unwrap());
    let (run, other) = (home.simulate(), home.simulate());
    let before = home.payloads(&run);
    let all = before["verified"].as_u64().unwrap();
    assert!(all > 2, "{before}");
    let [counted] = home.run(&["erase", &run, "--dry-run", "--json"]).json().try_into().unwrap();
    assert_eq!((counted["payloads"].as_u64(), &counted["dry_run"]), (Some(all), &true.into()));
    assert_eq!(home.payloads(&run), before);
    let arguments =
        home.run(&["erase", &run, "--name", "arguments", "--reason", "request 17", "--yes", "--json"]);
    let [erased] = arguments.json().try_into().unwrap();
    assert_eq!((arguments.code, &erased["purged"]), (0, &true.into()));
    let some = erased["payloads"].as_u64().unwrap();
    assert!(0 < some && some < all);
    let counts = home.payloads(&run);
    assert_eq!((counts["verified"].as_u64(), counts["erased"].as_u64()), (Some(all - some), Some(some)));
    let rest = home.run(&["erase", &run, "--yes"]);
    assert_eq!(rest.code, 0, "{}", rest.stderr);
    assert!(rest.stdout.contains("of 1 run erased: "), "{}", rest.stdout);
    assert!(rest.stdout.contains("no file of the store holds them"), "{}", rest.stdout);
    assert_eq!(home.payloads(&run)["erased"].as_u64(), Some(all));
    assert_eq!(home.payloads(&other)["verified"].as_u64(), Some(all));
    let ran = home.run(&["export", &run, "-o", home.path("again.export").to_str().unwrap()]);
    assert!(ran.stdout.contains(&format!("{all} payloads were erased from the store")), "{}", ran.stdout);
}

#[test]
fn text_is_found_in_all_runs_and_retention_goes_by_age() {
    let home = Home(tempfile::tempdir().unwrap());
    let run = home.simulate();
    let export = home.path("run.export");
    assert_eq!(home.run(&["export", &run, "-o", export.to_str().unwrap()]).code, 0);
    let text = std::fs::read_to_string(&export).unwrap();
    let payload = text.lines().rev().find(|line| line.contains(r#""record":"payload""#)).unwrap();
    let words = payload.split(r#""text":""#).nth(1).unwrap().get(..12).unwrap().replace('\\', "");
    let ledger = home.path("state").join("ledger");
    assert!(holds(&ledger, words.trim_matches('"').as_bytes()) || words.contains('"'));
    // Nothing is that old.
    let old = home.run(&["retention", "--payloads-older-than", "180d", "--json"]);
    assert_eq!((old.code, &old.json()[0]["payloads"]), (0, &0.into()));
    let none = home.run(&["erase", "--principal", "nobody", "--yes", "--json"]);
    assert_eq!((none.code, &none.json()[0]["payloads"]), (0, &0.into()));
    let refused = home.run(&["erase", "--contains", "ab", "--yes"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for wrong in [
        &["erase"][..],
        &["erase", "--name", "text", "--yes"],
        &["erase", "--before", "2026-13-01"],
        &["erase", "--contains", "abc", "--event", "3", "--yes"],
        &["retention", "--payloads-older-than", "180"],
        &["retention", "--payloads-older-than", "0d"],
    ] {
        assert_ne!(home.run(wrong).code, 0, "{wrong:?}");
        assert_eq!(home.payloads(&run)["erased"].as_u64(), Some(0), "{wrong:?}");
    }
    let tomorrow = home.run(&["erase", "--before", "2999-01-01", "--yes", "--json"]);
    assert_eq!(tomorrow.code, 0);
    assert_eq!(home.payloads(&run)["verified"].as_u64(), Some(0));
    let compacted = home.run(&["retention", "--payloads-older-than", "1d", "--compact", "--json"]);
    let [said] = compacted.json().try_into().unwrap();
    assert_eq!(
        (compacted.code, &said["purged"], &said["needs_compaction"], &said["free_bytes"]),
        (0, &true.into(), &false.into(), &0.into())
    );
    assert_ne!(home.run(&["erase", "--before", "2999-01-01", "--compact", "--dry-run"]).code, 0);
}

fn arguments() -> Value {
    json!({"file_path": format!("/srv/{PERSON}/notes"), "content": "x"})
}

/// A run in which a file outside the project is written, after a person granted its effects, and then one that the
/// grant does not cover.
async fn record(state: &Path) -> (RunId, Digest) {
    let ledger = SqliteLedger::open(&state.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &shipped::developer_bundle()).unwrap();
    let gate = Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles);
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    let opened = gate.open(RunRequest::new(identity, "test")).await.unwrap();
    let run = &opened.run;
    run.input("write the notes".into(), Label::User, Reach::Replace).await.unwrap();
    let propose = async |arguments: Value| {
        let proposal = Proposal { tool: Some("Write".into()), arguments, ..Proposal::default() };
        gate.propose(run, proposal, Duration::ZERO).await.unwrap()
    };
    let (held, _) = propose(arguments()).await;
    assert_eq!(held.enforced, Enforced::Held);
    let effects = held.decision.findings.iter().filter_map(GrantedEffects::of).collect();
    let answer = Answer::rehearsed(Says::grant(GrantScope::Effects(effects)), "ann");
    gate.answer(held.approval.unwrap(), run.id(), answer).await.unwrap();
    let (judged, permit) = propose(arguments()).await;
    assert_eq!(judged.enforced, Enforced::Executed, "{:?}", judged.decision);
    let permit = permit.unwrap();
    run.outcome(permit.action(), OutcomeStatus::Ok, Some("written".into()), Reach::Replace).await.unwrap();
    let (held, _) = propose(json!({"file_path": format!("/opt/{PERSON}"), "content": "x"})).await;
    assert_eq!(held.enforced, Enforced::Held);
    run.output("The notes are written.".into(), None, Reach::Replace).await.unwrap();
    run.close(ClosedState::Closed).await.unwrap();
    (run.id(), opened.bundle.digest())
}

/// The key of the run's digests, as the store has it.
fn key(state: &Path, run: RunId) -> Option<String> {
    let reader = SqliteReader::open(&state.join("ledger")).unwrap();
    let opened = Event::from_line(&reader.events(run, 0, 1).unwrap()[0].line).unwrap();
    let key = reader.payload(run, opened.payloads[DIGEST_KEY].commitment).unwrap()?;
    Some(String::from_utf8(key.bytes().to_vec()).unwrap())
}

/// The files of an archive, as files.
fn unpack(archive: &Path, to: &Path) {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(archive).unwrap()).unwrap();
    archive.extract(to).unwrap();
}

/// Store, log, export, archive and pack after an erasure hold neither the words of the arguments nor anything by which
/// a guess of them could be tried out.
#[test]
fn what_guards_said_of_erased_arguments_goes_with_them() {
    let home = Home(tempfile::tempdir().unwrap());
    let state = home.path("state");
    std::fs::create_dir(&state).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (run, bundle) = runtime.block_on(record(&state));
    let id = run.to_string();
    // Everything that is handed over of the run, as files below one folder.
    let hand_over = |name: &str| -> PathBuf {
        let folder = home.path(name);
        std::fs::create_dir(&folder).unwrap();
        let out = |file: &str| folder.join(file).to_str().unwrap().to_owned();
        for args in [["export", &id, "-o", &out("run.export")], ["export", &id, "-o", &out("run.zip")]] {
            let ran = home.run(&args);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        let ran = home.run(&["governance", &id, "--unverified", "-o", &out("pack.zip")]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        unpack(&folder.join("run.zip"), &folder.join("archive"));
        unpack(&folder.join("pack.zip"), &folder.join("pack"));
        let policy = home.run(&["log", "policy", "--remember"]).stdout;
        std::fs::write(folder.join("trust.policy"), policy).unwrap();
        let ran = home.run(&["verify", &out("run.zip"), "--trust", &out("trust.policy")]);
        assert!(ran.stdout.starts_with("VALID"), "{}", ran.stdout);
        let ran = home.run(&["governance", "--check", &out("pack.zip"), "--trust", &out("trust.policy")]);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        folder
    };
    let before = hand_over("before");
    let key = key(&state, run).unwrap();
    let plain = Action::new(ActionId::from_bytes([0; 16]), Some("Write".into()), arguments(), None);
    let keyed = plain.clone().keyed(Some(&key.parse().unwrap()));
    for place in [&state, &before.join("archive"), &before.join("pack")] {
        for text in [PERSON, &key, &keyed.digest().to_string()] {
            assert!(holds(place, text.as_bytes()), "{} has {text}", place.display());
        }
    }
    // The search finds digests as bytes, too: those of the index of approvals.
    assert!(holds(&state, keyed.grant_digest(bundle, "agent").as_bytes()));
    let shown = home.run(&["runs", "events", &id]);
    assert!(shown.stdout.contains("developer/outside-write: "), "{}", shown.stdout);
    assert!(!shown.stdout.contains("erased"), "{}", shown.stdout);

    let erased = home.run(&["erase", &id, "--name", "arguments", "--yes", "--json"]);
    let [erased] = erased.json().try_into().unwrap();
    // Two arguments, the findings of two held calls and of the one that the grant let through, its scope, the key.
    assert_eq!((&erased["payloads"], &erased["purged"]), (&7.into(), &true.into()));
    let after = hand_over("after");
    for place in [&state, &after] {
        for text in [PERSON, &key] {
            assert!(!holds(place, text.as_bytes()), "{} has {text}", place.display());
        }
        for digest in [plain.digest(), plain.grant_digest(bundle, "agent"), keyed.digest()] {
            let known_without_the_key = digest != keyed.digest();
            for bytes in [&digest.as_bytes()[..], digest.to_string().as_bytes()] {
                assert!(!known_without_the_key || !holds(place, bytes), "{} has {digest}", place.display());
            }
        }
    }
    let shown = home.run(&["runs", "events", &id]);
    assert!(shown.stdout.contains("developer/outside-write: erased"), "{}", shown.stdout);
    let audit = std::fs::read_to_string(after.join("pack").join("audit_log.jsonl")).unwrap();
    assert!(audit.contains(r#""policy_reason":"erased""#), "{audit}");
}
