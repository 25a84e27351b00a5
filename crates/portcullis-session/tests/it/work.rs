//! Work items of a run over a real ledger: evidence of its calls, what outdates it, and a record that verifies.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{ClosedState, EventBody, OutcomeStatus, Place};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::time::Timestamp;
use portcullis_core::work::{
    Came, CheckResult, Covers, Criterion, ItemId, ItemState, Operation, Owner, Party, Refusal, WORK,
    WorkError, WorkItem,
};
use portcullis_ledger::{ExportOptions, OpenOptions, Selection, SqliteEraser, SqliteLedger, Tombstone};
use portcullis_proof::Status;
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Reach, WorkBy};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{Gate, Opened, RunRequest};
use portcullis_session::policy;
use serde_json::json;

const SHELL: &str = "[[tool]]\nname = 'shell'\ntype = 'QUERY_DB'\nside_effecting = true\n\
                     effects = { line = 'shell' }\n";
const POLICY: &str =
    "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB']\nmax_steps = 100\nmax_side_effects = 50\n";
const ITEM: ItemId = ItemId(1);

fn gate(folder: &Path) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let files = [("portcullis.toml", "version = 1\n"), ("tools/t.toml", SHELL), ("policies/p.toml", POLICY)];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
    Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), Bundles::new(None, &files).unwrap())
}

async fn open(gate: &Gate, resume: Option<RunId>) -> Opened {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    let workspace = Some("/home/u/project".to_owned());
    let place = Place { workspace, home: None, gate: None };
    gate.open(RunRequest { resume, place: Some(place), ..RunRequest::new(identity, "test") }).await.unwrap()
}

/// A command line that goes ahead and succeeds.
async fn run(gate: &Gate, opened: &Opened, line: &str) -> ActionId {
    let proposal = crate::call("shell", json!({"line": line}));
    let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    let action = permit.unwrap_or_else(|| panic!("{line}: {:?}", judgement.denial)).action();
    let content = Some(format!("ran {line}"));
    opened.run.outcome(action, OutcomeStatus::Ok, content, Reach::Tell).await.unwrap();
    action
}

async fn work(opened: &Opened, party: Party, operation: Operation) -> Result<WorkItem, WorkError> {
    let by = WorkBy { party, person: "bo".into() };
    match opened.run.work(by, operation, None).await {
        Ok(item) => Ok(item),
        Err(SessionError::Work(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

fn claim(evidence: &[ActionId]) -> Operation {
    Operation::Claim { item: ITEM, evidence: evidence.to_vec(), statement: "the parser is fixed".into() }
}

async fn check(opened: &Opened, came: Came) -> Result<WorkItem, WorkError> {
    let to_check = opened.run.to_check(ITEM).await?;
    let result = CheckResult { came, detail: "2 passed".into(), took_ms: 3 };
    let results = vec![result; to_check.criteria.len()];
    let operation = Operation::Check { item: ITEM, version: to_check.version, results };
    work(opened, Party::Harness, operation).await
}

/// An item with one criterion that a person set and the agent started.
async fn started(opened: &Opened) {
    let criteria = json!([{"type": "command_exit_zero", "command": ["make", "test"]}]);
    let criteria = Criterion::read_all("criteria", &criteria).unwrap();
    let title = "fix the parser of Mallory".to_owned();
    let create = Operation::Create { title, criteria, owner: Owner::User, covers: Covers::default() };
    work(opened, Party::Person, create).await.unwrap();
    work(opened, Party::Agent, Operation::Start { item: ITEM }).await.unwrap();
}

fn is_valid(gate: &Gate, run: RunId) {
    let mut export = Vec::new();
    gate.ledger()
        .read(|reader| reader.export_run(run, &mut export, ExportOptions { payloads: true }))
        .unwrap();
    let trust = gate.ledger().read(|reader| reader.trust_text(&[run])).unwrap();
    let trust = portcullis_proof::Trust::parse(&trust).unwrap();
    let verified = portcullis_proof::verify(export.as_slice(), Some(&trust)).unwrap();
    assert_eq!(verified.status, Status::Valid, "{verified}");
}

/// C7: what a record says of before is a copy of then, and what comes later does not change it.
#[tokio::test(flavor = "multi_thread")]
async fn c7_an_item_is_recorded_with_what_it_was_before_whatever_becomes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    started(&opened).await;
    let attest = Operation::Attest { item: ITEM, reason: "trust me".into() };
    assert_eq!(work(&opened, Party::Agent, attest).await.unwrap_err().refusal, Refusal::NotPermitted);
    let tests = run(&gate, &opened, "cat tests.log").await;
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    let done = check(&opened, Came::Pass).await.unwrap();
    assert_eq!(done.state, ItemState::Verified);
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();

    let events = crate::events(&gate, &opened);
    let works: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Work(record) => Some((event.actor.as_str(), record.to_string(), record)),
            _ => None,
        })
        .collect();
    let told: Vec<_> = works.iter().map(|(actor, told, _)| format!("{actor} {told}")).collect();
    let wanted = [
        "approver:bo create #1: pending",
        "agent:agent start #1: pending -> in_progress",
        "agent:agent attest #1: refused, not_permitted",
        "agent:agent claim #1: in_progress -> claimed",
        "gate check #1: claimed -> verified",
    ];
    assert_eq!(told, wanted);
    for pair in works.iter().filter(|(.., record)| record.after.is_some()).collect::<Vec<_>>().windows(2) {
        assert_eq!(pair[0].2.after, pair[1].2.before, "each begins where the one before it ended");
    }
    let evidence = &works[3].2.after.as_ref().unwrap().evidence;
    let outcome = events.iter().find(|event| event.seq == evidence[0].outcome).unwrap();
    assert_eq!(outcome.body.action(), Some(tests));
    let lines: String =
        events.iter().map(|event| String::from_utf8(event.to_line().unwrap()).unwrap()).collect();
    assert!(!lines.contains("Mallory") && !lines.contains("2 passed"), "words are in payloads");
    is_valid(&gate, opened.run.id());
}

/// C5: by effects, wherever in the order the write is.
#[tokio::test(flavor = "multi_thread")]
async fn c5_what_is_written_after_a_call_makes_it_stale() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    started(&opened).await;
    let tests = run(&gate, &opened, "cat tests.log").await;
    run(&gate, &opened, "echo x > /home/u/project/src/a.rs").await;
    let error = work(&opened, Party::Agent, claim(&[tests])).await.unwrap_err();
    assert_eq!(error.refusal, Refusal::OldEvidence, "{error}");
    let tests = run(&gate, &opened, "cat tests.log").await;
    run(&gate, &opened, "ls src && echo x > /tmp/notes").await;
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    let stale = |item: &WorkItem| item.stale().is_some();
    let now = || opened.run.with_state(|state, _| state.works().item(ITEM).cloned().unwrap());
    assert!(!stale(&now().await));
    check(&opened, Came::Pass).await.unwrap();
    run(&gate, &opened, "rm -r /home/u/project/src").await;
    let item = now().await;
    assert!(stale(&item) && item.state == ItemState::Verified, "{item:?}");
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    is_valid(&gate, opened.run.id());
}

/// What is known of items, calls and writes outlives the process.
#[tokio::test(flavor = "multi_thread")]
async fn items_and_what_outdates_them_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    started(&opened).await;
    let old = run(&gate, &opened, "cat tests.log").await;
    run(&gate, &opened, "echo x > /home/u/project/src/a.rs").await;
    let new = run(&gate, &opened, "cat tests.log").await;
    let before = opened.run.with_state(|state, _| state.works().item(ITEM).cloned()).await;
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let resumed = open(&gate, Some(opened.run.id())).await;
    let after = resumed.run.with_state(|state, _| state.works().item(ITEM).cloned()).await;
    assert_eq!(before, after);
    let error = work(&resumed, Party::Agent, claim(&[old])).await.unwrap_err();
    assert_eq!(error.refusal, Refusal::OldEvidence);
    work(&resumed, Party::Agent, claim(&[new])).await.unwrap();
    check(&resumed, Came::Pass).await.unwrap();
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    is_valid(&gate, opened.run.id());
}

/// Criteria that were erased are not those that were frozen: nothing passes by them.
#[tokio::test(flavor = "multi_thread")]
async fn erased_criteria_are_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    started(&opened).await;
    let tests = run(&gate, &opened, "cat tests.log").await;
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let run = opened.run.id();
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "ann".into(), reason: None };
    let selection = Selection { run: Some(run), name: Some(WORK.into()), ..Selection::default() };
    SqliteEraser::open(&folder.path().join("ledger")).unwrap().erase(&selection, &tombstone).unwrap();
    let resumed = open(&gate, Some(run)).await;
    let error = resumed.run.to_check(ITEM).await.unwrap_err();
    assert_eq!((error.refusal, error.field.as_str()), (Refusal::Changed, "criteria"));
    work(&resumed, Party::Person, Operation::Attest { item: ITEM, reason: "I saw it".into() }).await.unwrap();
    gate.close(run, ClosedState::Closed).await.unwrap();
    is_valid(&gate, run);
}

/// Results of a check during which somebody wrote say nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_during_a_check_turns_the_claim_down() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    started(&opened).await;
    let tests = run(&gate, &opened, "cat tests.log").await;
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    let to_check = opened.run.to_check(ITEM).await.unwrap();
    run(&gate, &opened, "echo x > /home/u/project/src/a.rs").await;
    let results = vec![CheckResult { came: Came::Pass, detail: String::new(), took_ms: 1 }];
    let operation = Operation::Check { item: ITEM, version: to_check.version, results };
    let item = work(&opened, Party::Harness, operation).await.unwrap();
    assert_eq!(item.state, ItemState::InProgress);
    assert!(item.reason.contains("stale"), "{}", item.reason);
}

/// Told once for all that has happened, and again after something has.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_is_told_once_for_all_that_has_happened() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path());
    let opened = open(&gate, None).await;
    assert_eq!(opened.run.stopping().await.unwrap().open, None, "there is no work");
    started(&opened).await;
    let told = opened.run.stopping().await.unwrap().open.unwrap();
    assert!(told.contains("#1 fix the parser of Mallory: in_progress"), "{told}");
    assert_eq!(opened.run.stopping().await.unwrap().open, None, "nothing has happened since");
    let tests = run(&gate, &opened, "cat tests.log").await;
    assert!(opened.run.stopping().await.unwrap().open.is_some());
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    check(&opened, Came::Fail).await.unwrap();
    let told = opened.run.stopping().await.unwrap().open.unwrap();
    assert!(told.contains("criterion 1 (`command_exit_zero`) failed"), "{told}");
    let tests = run(&gate, &opened, "cat tests.log").await;
    work(&opened, Party::Agent, claim(&[tests])).await.unwrap();
    check(&opened, Came::Pass).await.unwrap();
    assert_eq!(opened.run.stopping().await.unwrap().open, None, "it is done");
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    is_valid(&gate, opened.run.id());
}

/// C8: commands that wipe are stopped however they are spelt. (As commands of criteria they are contained.)
#[test]
fn c8_commands_that_wipe_are_stopped_however_they_are_spelt() {
    use portcullis_session::dry::DryRun;
    use portcullis_session::engine::Proposal;
    let bundle = Arc::new(policy::load(&portcullis_session::shipped::developer_bundle()).unwrap());
    let pipeline = Arc::new(policy::pipeline());
    for command in [
        "rm -rf / --no-preserve-root",
        "rm -fr /",
        "rm -r -f /",
        "cat ../../../etc/shadow",
        "rm -rf /home/u/projectevil",
    ] {
        let place =
            Place { workspace: Some("/home/u/project".into()), home: Some("/home/u".into()), gate: None };
        let (bundle, pipeline, who) = (Arc::clone(&bundle), Arc::clone(&pipeline), Principal::named("agent"));
        let policy = bundle.default_policy().to_owned();
        let mut dry = DryRun::open_as(bundle, pipeline, &policy, who, Some(place)).unwrap();
        let arguments = json!({ "command": command });
        let judged = dry.propose(Proposal { tool: Some("Bash".into()), arguments, ..Proposal::default() });
        assert!(!judged.enforced.proceeds(), "{command}: {:?}", judged.decision);
    }
}
