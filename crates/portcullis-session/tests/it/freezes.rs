//! Freezes over a real ledger: what is stopped, what goes on, and what a record says of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::denial::{DenialClass, Retry};
use portcullis_core::event::{ClosedState, Control, Enforced, EventBody, GrantScope, OutcomeStatus};
use portcullis_core::freeze::{FreezeScope, Frozen};
use portcullis_core::label::Label;
use portcullis_core::pipeline::reserved;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{FreezeFilter, OpenOptions, SqliteLedger, SqliteReader};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Judgement, Proposal, Reach, Says};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{Gate, Opened, Release, RunRequest};
use portcullis_session::policy;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{POLICY, call, events, files, gate, open};

/// A gate that holds every call with a side effect; grants last for two seconds.
fn asking(folder: &Path) -> Arc<Gate> {
    let mut files = files("approval_grant_ttl_s = 2\n");
    files
        .insert("policies/p.toml".into(), format!("{POLICY}approval_for_side_effects = true\n").into_bytes());
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &files).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), bundles)
}

async fn propose(gate: &Gate, opened: &Opened, proposal: Proposal) -> (Judgement, bool) {
    let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    (judgement, permit.is_some())
}

fn read() -> Proposal {
    call("read", json!({"text": "a"}))
}

fn send() -> Proposal {
    call("send", json!({"text": "a"}))
}

fn think() -> Proposal {
    Proposal { planned: Some("what next?".into()), ..Proposal::default() }
}

async fn freeze_all(gate: &Gate) {
    let done = gate.freeze(FreezeScope::All, "ann", Some("odd payments".into())).await.unwrap();
    assert!(!done.already && done.unrecorded.is_empty());
}

async fn release_all(gate: &Gate) {
    gate.release(&FreezeScope::All, Release::All, "bob", None).await.unwrap();
}

/// What people did to the run, in order.
fn controls(gate: &Gate, opened: &Opened) -> Vec<(Control, String)> {
    let events = events(gate, opened);
    let controls = events.iter().filter_map(|event| match &event.body {
        EventBody::Control { control, .. } => Some((*control, event.actor.to_string())),
        _ => None,
    });
    controls.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_run_is_denied_everything_and_told_why() {
    for mode in ["", "mode = 'observe'\n"] {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), mode, OpenOptions::default());
        let opened = open(&gate).await;
        let (_, permit) = gate.propose(&opened.run, read(), Duration::ZERO).await.unwrap();
        let running = permit.unwrap().action();
        freeze_all(&gate).await;
        for proposal in [read(), send(), think()] {
            let (judgement, permitted) = propose(&gate, &opened, proposal).await;
            let denial = judgement.denial.unwrap();
            assert!(!permitted && judgement.enforced == Enforced::Withheld, "{mode}: {denial:?}");
            assert_eq!((denial.class, &*denial.rule), (DenialClass::Frozen, reserved::FROZEN));
            assert_eq!(denial.message, "a person froze the run: odd payments");
            assert_eq!(denial.retry, Retry::Never { left: 0 });
        }
        let reply = opened.run.output("done".into(), None, Reach::Replace).await.unwrap();
        assert_eq!((reply.enforced, reply.denial.unwrap().class), (Enforced::Withheld, DenialClass::Frozen));
        // What was on its way, and what people say, is recorded and judged as ever.
        let (_, seen) = opened
            .run
            .outcome(running, OutcomeStatus::Ok, Some("found".into()), Reach::Replace)
            .await
            .unwrap();
        assert_eq!(seen.unwrap().enforced, Enforced::Executed);
        let said = opened.run.input("what is going on?".into(), Label::User, Reach::Replace).await.unwrap();
        assert_eq!(said.enforced, Enforced::Executed);

        release_all(&gate).await;
        assert!(propose(&gate, &opened, read()).await.1, "{mode}");
        let expected = [(Control::Freeze, "approver:ann"), (Control::Release, "approver:bob")];
        assert_eq!(controls(&gate, &opened), expected.map(|(control, by)| (control, by.to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_in_two_steps_lets_reads_go_on_first() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    freeze_all(&gate).await;
    let scope = FreezeScope::All;
    let reads = gate.release(&scope, Release::Reads, "bob", None).await.unwrap();
    assert_eq!((reads.already, reads.freeze.stops()), (false, Some(Frozen::SideEffects)));
    assert!(gate.release(&scope, Release::Reads, "bob", None).await.unwrap().already);
    assert!(propose(&gate, &opened, read()).await.1 && propose(&gate, &opened, think()).await.1);
    let (judgement, permitted) = propose(&gate, &opened, send()).await;
    let denial = judgement.denial.unwrap();
    assert!(!permitted && denial.class == DenialClass::Frozen);
    assert_eq!(
        denial.instead.as_deref(),
        Some("calls without side effects; a person has to release the rest")
    );
    // A second freeze takes the step back.
    freeze_all(&gate).await;
    assert!(!propose(&gate, &opened, read()).await.1);
    release_all(&gate).await;
    assert!(propose(&gate, &opened, send()).await.1);
    let done: Vec<Control> = controls(&gate, &opened).into_iter().map(|(control, _)| control).collect();
    assert_eq!(done, [Control::Freeze, Control::ReleaseReads, Control::Freeze, Control::Release]);
    let history = gate.ledger().read(|reader| reader.freezes(&FreezeFilter::Latest(10))).unwrap();
    assert_eq!(history.len(), 2);
    assert!(history.iter().all(|freeze| freeze.released.is_some()), "{history:?}");
    assert_eq!(history[1].reads_released.as_ref().map(|order| order.by.as_str()), Some("bob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn denials_of_a_freeze_do_not_count_against_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    freeze_all(&gate).await;
    for _ in 0..30 {
        assert!(!propose(&gate, &opened, read()).await.1);
    }
    release_all(&gate).await;
    assert!(propose(&gate, &opened, read()).await.1, "the loop breaker counts none of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn freezes_that_overlap_are_released_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let (one, other) = (open(&gate).await, open(&gate).await);
    let run = FreezeScope::Run(one.run.id());
    let principal = FreezeScope::Principal("agent".into());
    assert_eq!(gate.freeze(run.clone(), "ann", None).await.unwrap().runs, 1);
    assert!(!propose(&gate, &one, read()).await.1 && propose(&gate, &other, read()).await.1);
    assert_eq!(gate.freeze(principal.clone(), "ann", None).await.unwrap().runs, 2);
    assert!(!propose(&gate, &other, read()).await.1);
    let released = gate.release(&principal, Release::All, "bob", None).await.unwrap();
    assert_eq!((released.runs, released.held_by_others), (2, 1));
    assert!(!propose(&gate, &one, read()).await.1 && propose(&gate, &other, read()).await.1);
    let again = gate.release(&principal, Release::All, "bob", None).await.unwrap_err();
    assert!(matches!(again, SessionError::NotFrozen { .. }), "{again}");
    gate.release(&run, Release::All, "bob", None).await.unwrap();
    assert!(propose(&gate, &one, read()).await.1);
    assert_eq!(controls(&gate, &one).len(), 2, "how the run stands changed twice");
}

/// Answers what waits, as the approver `ann`.
async fn grant(opened: &Opened, judgement: &Judgement) {
    let answer = Answer::rehearsed(Says::grant(GrantScope::Once), "ann");
    opened.run.answer(judgement.approval.unwrap(), answer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_outlasts_a_freeze_by_the_time_it_had_left() {
    let folder = tempfile::tempdir().unwrap();
    let gate = asking(folder.path());
    let opened = open(&gate).await;
    let (held, _) = propose(&gate, &opened, send()).await;
    grant(&opened, &held).await;
    freeze_all(&gate).await;
    // Longer than the grant holds.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let (stopped, permitted) = propose(&gate, &opened, send()).await;
    assert!(!permitted && stopped.denial.unwrap().class == DenialClass::Frozen);
    release_all(&gate).await;
    let (claimed, permitted) = propose(&gate, &opened, send()).await;
    assert!(permitted, "{:?}", claimed.denial);
    assert_eq!(claimed.grant, held.approval);

    // Its time runs again once it is released.
    let other = call("send", json!({"text": "b"}));
    let (held, _) = propose(&gate, &opened, other.clone()).await;
    freeze_all(&gate).await;
    grant(&opened, &held).await;
    release_all(&gate).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert!(!propose(&gate, &opened, other).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_answered_at_once_and_waits_on_after_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let gate = asking(folder.path());
    let opened = open(&gate).await;
    let waiting = {
        let (gate, run) = (Arc::clone(&gate), Arc::clone(&opened.run));
        tokio::spawn(async move { gate.propose(&run, send(), Duration::from_secs(60)).await })
    };
    while opened.run.with_state(|state, _| state.pending_approvals().is_empty()).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = Instant::now();
    freeze_all(&gate).await;
    let (answered, permit) = waiting.await.unwrap().unwrap();
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    assert!(permit.is_none() && answered.denial.unwrap().class == DenialClass::Frozen);
    let pending = opened.run.with_state(|state, _| state.pending_approvals()).await;
    assert_eq!(pending.len(), 1, "the request is not lost");
    // The control channel stays up: a person answers meanwhile.
    let approval = answered.approval.unwrap();
    let (again, _) = propose(&gate, &opened, send()).await;
    assert_eq!((again.approval, again.enforced), (Some(approval), Enforced::Withheld));
    grant(&opened, &again).await;
    assert!(!propose(&gate, &opened, send()).await.1);
    release_all(&gate).await;
    assert!(propose(&gate, &opened, send()).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_opened_or_resumed_under_a_freeze_begins_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let id = {
        let gate = gate(folder.path(), "", OpenOptions::default());
        let opened = open(&gate).await;
        opened.run.close(ClosedState::Closed).await.unwrap();
        gate.freeze(FreezeScope::Principal("agent".into()), "ann", None).await.unwrap();
        let new = open(&gate).await;
        assert_eq!(controls(&gate, &new), [(Control::Freeze, "approver:ann".to_owned())]);
        assert!(!propose(&gate, &new, read()).await.1);
        opened.run.id()
    };
    // Another process, and the run that was closed before the freeze.
    let gate = gate(folder.path(), "", OpenOptions::default());
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    let request = RunRequest { resume: Some(id), ..RunRequest::new(identity, "test") };
    let resumed = gate.open(request.clone()).await.unwrap();
    assert!(!propose(&gate, &resumed, read()).await.1);
    resumed.run.close(ClosedState::Closed).await.unwrap();
    gate.close(id, ClosedState::Closed).await.unwrap();

    // Released while it was not live: the next segment says so first, in the name of who did.
    gate.release(&FreezeScope::Principal("agent".into()), Release::All, "bob", None).await.unwrap();
    let resumed = gate.open(request).await.unwrap();
    assert!(propose(&gate, &resumed, read()).await.1);
    let expected = [(Control::Freeze, "approver:ann"), (Control::Release, "approver:bob")];
    assert_eq!(controls(&gate, &resumed), expected.map(|(control, by)| (control, by.to_owned())));
    let problems =
        SqliteReader::open(&folder.path().join("ledger")).unwrap().integrity_check().unwrap().problems;
    assert_eq!(problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn freezing_and_releasing_in_turn_leaves_no_run_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "[loops]\nalike = 0\ndenials = 0\n", OpenOptions::default());
    let mut runs = Vec::new();
    let mut asking = JoinSet::new();
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..8 {
        let opened = open(&gate).await;
        runs.push(opened.clone());
        let (gate, stop) = (Arc::clone(&gate), Arc::clone(&stop));
        asking.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                gate.propose(&opened.run, think(), Duration::ZERO).await.unwrap();
            }
        });
    }
    for _ in 0..40 {
        let (freeze, release) = (gate.freeze(FreezeScope::All, "ann", None), async {
            while gate.release(&FreezeScope::All, Release::All, "bob", None).await.is_err() {
                tokio::task::yield_now().await;
            }
        });
        // The release comes as soon as there is something to release, while runs still record the freeze.
        let (frozen, ()) = tokio::join!(freeze, release);
        frozen.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    asking.join_all().await;
    for opened in &runs {
        let frozen = opened.run.with_state(|state, _| state.freeze().cloned()).await;
        assert_eq!(frozen, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_is_in_force_even_where_it_cannot_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { bytes_max: Some(400_000), ..OpenOptions::default() };
    let gate = gate(folder.path(), "", options);
    let opened = open(&gate).await;
    // Large calls until the store is full, and then small ones until it is full to the last page.
    for length in [5_000, 1] {
        for number in 0.. {
            let text = format!("{number} {}", "x".repeat(length));
            if gate.propose(&opened.run, call("read", json!({"text": text})), Duration::ZERO).await.is_err() {
                break;
            }
            assert!(number < 1_000, "the store never filled up");
        }
    }
    let note = "y".repeat(10_000);
    let failed = gate.freeze(FreezeScope::All, "ann", Some(note)).await.unwrap_err();
    assert!(matches!(failed, SessionError::FreezeNotStored(_)), "{failed}");
    assert_eq!(gate.freezes().await.unwrap().len(), 1);
    assert!(
        gate.propose(&opened.run, read(), Duration::ZERO).await.is_err(),
        "nothing is recorded or permitted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_of_one_run_freezes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    for control in [Control::Freeze, Control::ReleaseReads, Control::Release] {
        let refused = opened.run.control(control, "ann", None).await.unwrap_err();
        assert!(matches!(refused, SessionError::ControlOfFreeze), "{refused}");
    }
    let (judgement, permitted) = propose(&gate, &opened, read()).await;
    assert!(permitted && judgement.decision.verdict == Verdict::Allow);
}

/// How long a freeze of everything takes until each run has its event. Its figure is in `docs/freeze.md`.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_runs_are_frozen_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let mut opening = JoinSet::new();
    for _ in 0..1_000 {
        let gate = Arc::clone(&gate);
        opening.spawn(async move { open(&gate).await });
    }
    let runs = opening.join_all().await;
    let before = Instant::now();
    let done = gate.freeze(FreezeScope::All, "ann", None).await.unwrap();
    let took = before.elapsed();
    eprintln!("1,000 live runs have recorded a freeze after {took:?}");
    assert_eq!((done.runs, done.unrecorded.len()), (1_000, 0));
    for opened in &runs {
        let frozen = opened.run.with_state(|state, _| state.freeze().is_some()).await;
        assert!(frozen, "run {} has its event", opened.run.id());
    }
    assert!(took < Duration::from_secs(1), "{took:?}");
}
