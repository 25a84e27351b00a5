//! What becomes durable is told to whoever watches, and the store says the same.

use std::time::Duration;

use portcullis_core::event::ClosedState;
use portcullis_core::id::Digest;
use portcullis_core::state::RunState;
use portcullis_core::state::progress::RunPhase;
use portcullis_ledger::OpenOptions;
use portcullis_session::commits::{COMMITS_KEPT, Commit, CommitWatch, Missed};
use portcullis_session::gate::{Gate, Opened};
use serde_json::json;

use crate::{call, events, gate, open};

/// The commits that were told so far and are kept.
async fn told(watch: &mut CommitWatch) -> Vec<Commit> {
    let mut told = Vec::new();
    while let Ok(commit) = tokio::time::timeout(Duration::from_millis(50), watch.next()).await {
        told.push(commit.unwrap());
    }
    told
}

/// The last commit and the stored summary say what the events of the run add up to.
fn agrees(gate: &Gate, opened: &Opened, last: &Commit) {
    let state = RunState::fold(&events(gate, opened));
    assert_eq!((last.last, &last.progress), (state.seq(), &state.progress()));
    let stored = gate.ledger().read(|reader| reader.run(opened.run.id())).unwrap().unwrap();
    assert_eq!((stored.events, stored.progress.as_ref()), (last.last, Some(&last.progress)));
    assert_eq!(gate.ledger().read(|reader| reader.integrity_check()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_commit_is_told_with_the_summary_that_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let mut watch = gate.watch();
    let opened = open(&gate).await;
    for proposal in [call("read", json!({})), call("unheard_of", json!({})), call("send", json!({}))] {
        gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
    }
    let told_open = told(&mut watch).await;
    assert_eq!(told_open.iter().filter(|commit| commit.approvals).count(), 1, "one is held for a person");
    let mut next = 1;
    for commit in &told_open {
        assert_eq!((commit.run, commit.first), (opened.run.id(), next));
        next = commit.last + 1;
    }
    let last = told_open.last().unwrap();
    assert_eq!((last.progress.steps, last.progress.phase), (3, RunPhase::Running));
    agrees(&gate, &opened, last);
    gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
    let last = told(&mut watch).await.pop().unwrap();
    assert_eq!(last.progress.phase, RunPhase::Closed);
    agrees(&gate, &opened, &last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_lags_is_told_so_and_goes_on_with_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    let mut watch = gate.watch();
    for _ in 0..COMMITS_KEPT + 7 {
        opened.run.evidence("test".to_owned(), Digest::from_bytes([7; 32])).await.unwrap();
    }
    assert_eq!(watch.next().await, Err(Missed::Lagged(7)));
    let kept = told(&mut watch).await;
    assert_eq!(kept.len(), COMMITS_KEPT);
    agrees(&gate, &opened, kept.last().unwrap());
    drop((opened, gate));
    assert_eq!(watch.next().await, Err(Missed::Closed));
}
