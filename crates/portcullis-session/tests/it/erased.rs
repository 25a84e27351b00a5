//! What erasing an action's payloads leaves: a record that verifies, in which nothing of them can be read or tried out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::action::Action;
use portcullis_core::aside::{DIGEST_KEY, FINDINGS, SCOPE};
use portcullis_core::event::{ClosedState, Enforced, EventBody, GrantScope, GrantedEffects};
use portcullis_core::id::{ActionId, ApprovalId, RunId};
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    ApprovalFilter, Erased, ExportOptions, OpenOptions, Selection, SqliteEraser, SqliteLedger, Tombstone,
};
use portcullis_proof::Status;
use portcullis_session::bundle_dir::read_files;
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Edit, Judgement, Lasts, Proposal, Says};
use portcullis_session::gate::{Gate, Opened, RunRequest};
use serde_json::{Value, json};

use super::{call, events};

const PERSON: &str = "mallory-7731";

fn gate(folder: &Path) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let developer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/developer");
    let bundles = Bundles::new(None, &read_files(&developer).unwrap()).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles)
}

async fn open(gate: &Gate, resume: Option<RunId>) -> Opened {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    gate.open(RunRequest { resume, ..RunRequest::new(identity, "test") }).await.unwrap()
}

/// Writes outside the project, which a person has to approve.
fn arguments() -> Value {
    json!({"file_path": format!("/srv/{PERSON}/notes"), "content": "x"})
}

fn write() -> Proposal {
    call("Write", arguments())
}

async fn propose(gate: &Gate, opened: &Opened, proposal: Proposal) -> Judgement {
    gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap().0
}

async fn close(opened: &Opened) {
    opened.run.close(ClosedState::Closed).await.unwrap();
}

fn erase(folder: &Path, selection: &Selection) -> Erased {
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "ann".into(), reason: None };
    SqliteEraser::open(&folder.join("ledger")).unwrap().erase(selection, &tombstone).unwrap()
}

fn arguments_of(run: RunId) -> Selection {
    Selection { run: Some(run), name: Some("arguments".into()), ..Selection::default() }
}

/// Whether a file below the folder has these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        if entry.file_type().unwrap().is_dir() {
            return holds(&entry.path(), bytes);
        }
        std::fs::read(entry.path()).unwrap().windows(bytes.len()).any(|window| window == bytes)
    })
}

fn export(gate: &Gate, run: RunId) -> Vec<u8> {
    let mut export = Vec::new();
    gate.ledger()
        .read(|reader| reader.export_run(run, &mut export, ExportOptions { payloads: true }))
        .unwrap();
    export
}

fn valid(gate: &Gate, run: RunId) -> portcullis_proof::Report {
    let trust = gate.ledger().read(|reader| reader.trust_text(&[run])).unwrap();
    let trust = portcullis_proof::Trust::parse(&trust).unwrap();
    let report = portcullis_proof::verify(export(gate, run).as_slice(), Some(&trust)).unwrap();
    assert_eq!(report.status, Status::Valid, "{report}");
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_erased_arguments_can_be_read_or_tried_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let gate = gate(store);
    let opened = open(&gate, None).await;
    let run = opened.run.id();
    let held = propose(&gate, &opened, write()).await;
    assert_eq!(held.enforced, Enforced::Held);
    let effects = held.decision.findings.iter().filter_map(GrantedEffects::of).collect::<Vec<_>>();
    assert!(effects.iter().any(|granted| granted.resources.iter().any(|named| named.contains(PERSON))));
    let answer = Answer::rehearsed(Says::grant(GrantScope::Effects(effects)), "ann");
    gate.answer(held.approval.unwrap(), run, answer).await.unwrap();
    close(&opened).await;

    // What somebody who knows all arguments can compute without the run's key.
    let guess = Action::new(ActionId::from_bytes([9; 16]), Some("Write".into()), arguments(), None);
    let bundle = opened.bundle.digest();
    for digest in [guess.digest(), guess.grant_digest(bundle, "agent")] {
        assert!(!holds(store, digest.as_bytes()) && !holds(store, digest.to_string().as_bytes()));
    }
    assert!(!holds(store, guess.likeness().unwrap().to_string().as_bytes()));
    // With it, digests and likeness are those of the record.
    let key = events(&gate, &opened)[0].payloads[DIGEST_KEY].commitment;
    let key = gate.ledger().read(|reader| reader.payload(run, key)).unwrap().unwrap();
    let key = String::from_utf8(key.bytes().to_vec()).unwrap();
    let keyed = guess.keyed(Some(&key.parse().unwrap()));
    for text in [
        PERSON.to_owned(),
        key.clone(),
        keyed.digest().to_string(),
        keyed.grant_digest(bundle, "agent").to_string(),
        keyed.likeness().unwrap().to_string(),
    ] {
        assert!(holds(store, text.as_bytes()), "the search finds what is there: {text}");
    }
    // The lines never had the words.
    for event in events(&gate, &opened) {
        assert!(!String::from_utf8(event.to_line().unwrap()).unwrap().contains(PERSON));
    }
    assert_eq!(valid(&gate, run).payloads.erased, 0);

    let erased = erase(store, &arguments_of(run));
    let names = |name: &str| {
        events(&gate, &opened).iter().filter(|event| event.payloads.contains_key(name)).count() as u64
    };
    assert_eq!((names(FINDINGS), names(SCOPE)), (1, 1));
    // Arguments, findings, scope of the grant, key.
    assert_eq!((erased.payloads, erased.purged), (4, true));
    for text in [PERSON, &key] {
        assert!(!holds(store, text.as_bytes()), "{text}");
    }
    let report = valid(&gate, run);
    assert_eq!((report.payloads.erased, report.payloads.withheld), (4, 0));
    assert!(!String::from_utf8(export(&gate, run)).unwrap().contains(PERSON));
    let rows = gate.ledger().read(|reader| reader.approvals(&ApprovalFilter::default())).unwrap();
    assert_eq!(rows[0].scope, Some(GrantScope::Effects(Vec::new())));
}

/// The approval that a call waits for after the run was taken up again.
async fn asked_again(folder: &Path, run: RunId) -> ApprovalId {
    let gate = gate(folder);
    let opened = open(&gate, Some(run)).await;
    let approval = propose(&gate, &opened, write()).await.approval.unwrap();
    close_unanswered(opened, gate);
    approval
}

/// Ends the process, as it were: nothing is written any more, and what waits goes on waiting.
fn close_unanswered(opened: Opened, gate: Arc<Gate>) {
    drop((opened, gate));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_is_known_again_until_its_payloads_are_erased() {
    let folder = tempfile::tempdir().unwrap();
    let (run, asked) = {
        let gate = gate(folder.path());
        let opened = open(&gate, None).await;
        let asked = propose(&gate, &opened, write()).await.approval.unwrap();
        let run = opened.run.id();
        close_unanswered(opened, gate);
        (run, asked)
    };
    assert_eq!(asked_again(folder.path(), run).await, asked);
    assert_eq!(asked_again(folder.path(), run).await, asked);
    // A run whose writer is gone is in progress until somebody closes it.
    {
        let gate = gate(folder.path());
        let opened = open(&gate, Some(run)).await;
        let keys =
            events(&gate, &opened).iter().filter(|event| event.payloads.contains_key(DIGEST_KEY)).count();
        assert_eq!(keys, 1, "one key for all segments");
        close(&opened).await;
    }
    erase(folder.path(), &arguments_of(run));
    let after = asked_again(folder.path(), run).await;
    assert_ne!(after, asked);
    assert_eq!(asked_again(folder.path(), run).await, after, "under the new key");
    let gate = gate(folder.path());
    let opened = open(&gate, Some(run)).await;
    let keys: Vec<bool> = events(&gate, &opened)
        .iter()
        .filter(|event| event.payloads.contains_key(DIGEST_KEY))
        .map(|event| matches!(event.body, EventBody::RunOpened(_)))
        .collect();
    assert_eq!(keys, [true, false]);
    close(&opened).await;
    valid(&gate, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_a_person_gave_hold_after_a_restart_and_are_erased_with_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let given = json!({"file_path": format!("/srv/{PERSON}/given"), "content": "y"});
    let run = {
        let gate = gate(folder.path());
        let opened = open(&gate, None).await;
        let held = propose(&gate, &opened, write()).await;
        let edit = Some(Edit::Arguments(given.clone()));
        let says = Says::Grant { scope: GrantScope::Once, lasts: Lasts::Usual, edit };
        let answer = Answer::rehearsed(says, "ann");
        gate.answer(held.approval.unwrap(), opened.run.id(), answer).await.unwrap();
        let run = opened.run.id();
        close_unanswered(opened, gate);
        run
    };
    let gate = gate(folder.path());
    let opened = open(&gate, Some(run)).await;
    let replaced = propose(&gate, &opened, write()).await;
    assert_eq!((replaced.enforced, replaced.decision.modified), (Enforced::Replaced, Some(given)));
    assert_eq!(propose(&gate, &opened, write()).await.enforced, Enforced::Held, "once");
    close(&opened).await;
    assert!(holds(folder.path(), b"/given"));
    erase(folder.path(), &arguments_of(run));
    for text in [PERSON, "/given"] {
        assert!(!holds(folder.path(), text.as_bytes()), "{text}");
    }
    valid(&gate, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_effects_holds_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let other = || call("Write", json!({"file_path": format!("/srv/{PERSON}/notes"), "content": "another"}));
    let run = {
        let gate = gate(folder.path());
        let opened = open(&gate, None).await;
        let held = propose(&gate, &opened, write()).await;
        let scope =
            GrantScope::Effects(held.decision.findings.iter().filter_map(GrantedEffects::of).collect());
        let answer = Answer::rehearsed(Says::grant(scope), "ann");
        gate.answer(held.approval.unwrap(), opened.run.id(), answer).await.unwrap();
        opened.run.id()
    };
    let gate = gate(folder.path());
    let opened = open(&gate, Some(run)).await;
    let judged = propose(&gate, &opened, other()).await;
    assert_eq!(judged.enforced, Enforced::Executed, "{:?}", judged.decision);
}

/// Ids that a surface makes of the call itself are no way to try out arguments either.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_a_digest_is_keyed_and_found() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    let named = |call: &str| Proposal {
        call: Some(call.to_owned()),
        ..super::call("Read", json!({"file_path": "a"}))
    };
    for id in ["unnamed:0123abcd", "toolu_01"] {
        let judged = propose(&gate, &opened, named(id)).await;
        assert_eq!(judged.enforced, Enforced::Executed);
        assert_eq!(opened.run.awaits_outcome_of_call(id).await, Some(judged.action.id));
    }
    assert_eq!(opened.run.awaits_outcome_of_call("unnamed:0123abce").await, None);
    assert!(!holds(folder.path(), b"0123abcd"));
    assert!(holds(folder.path(), b"toolu_01"));
}
