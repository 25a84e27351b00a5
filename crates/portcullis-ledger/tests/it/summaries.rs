//! Summaries of runs: kept up with the events, computed for runs of earlier releases, and read fast.

use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::event::{About, ApprovalDecision, Control, EventBody, GrantScope, Lasting};
use portcullis_core::id::ApprovalId;
use portcullis_core::label::LabelSet;
use portcullis_core::state::progress::{Progress, RunPhase};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    ApprovalFilter, ApprovalRow, ApprovalState, LedgerError, OpenOptions, RunFilter, RunSummary,
    SqliteEraser, SqliteLedger, SqliteReader,
};

use crate::sample::{Run, digest, fresh, open, version_1};

/// A run with an action, and a question about it that nobody has answered.
fn asking(ledger: &SqliteLedger) -> (Run, ApprovalRow) {
    let mut run = Run::start(ledger);
    let action = run.act();
    let (approval, tool) = (ApprovalId::from_bytes(fresh()), "write_file".to_owned());
    run.chain(EventBody::ApprovalRequested {
        approval,
        about: About::Action(action),
        digest: digest(),
        tool: tool.clone(),
        effects: None,
        patterns: false,
    });
    let row = ApprovalRow {
        approval,
        run: run.head.run,
        action: Some(action),
        digest: digest(),
        principal: "alice".to_owned(),
        state: ApprovalState::Pending,
        scope: None,
        requested: run.now,
        decided: None,
        decided_by: None,
        tool,
        policy: "strict".to_owned(),
        proposed: Some(2),
        note: None,
        rule: None,
    };
    let mut append = run.take();
    append.approvals.push(row.clone());
    ledger.append_blocking(append).unwrap();
    (run, row)
}

/// The summary of a run, which says what its events say.
fn summary(ledger: &SqliteLedger, run: &Run) -> (RunSummary, Progress) {
    let id = run.head.run;
    let summary = ledger.read(|reader| reader.run(id)).unwrap().unwrap();
    let progress = summary.progress.clone().unwrap();
    assert_eq!(ledger.read(|reader| reader.progress(id)).unwrap().unwrap(), progress);
    assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
    (summary, progress)
}

#[test]
fn a_summary_is_kept_up_with_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let (mut run, mut row) = asking(&ledger);
    let (seen, progress) = summary(&ledger, &run);
    assert_eq!((seen.events, seen.segments, seen.pending_approvals), (5, 1, 1));
    assert_eq!((progress.surface.as_str(), progress.policy.as_str()), ("test", "strict"));
    assert_eq!((progress.steps, progress.side_effects, progress.verdicts.allow), (1, 1, 1));
    assert_eq!((progress.phase, progress.bundle), (RunPhase::Running, Some(digest())));

    let (approval, scope) = (row.approval, Some(GrantScope::Once));
    run.now = Timestamp::from_micros(1_795_225_535_000_000);
    run.chain(EventBody::ApprovalDecided {
        approval,
        decision: ApprovalDecision::Granted,
        scope: scope.clone(),
        lasting: Lasting::default(),
        shown: None,
        labels: LabelSet::default(),
        note: None,
    });
    run.chain(EventBody::Control { control: Control::Halt, note: None });
    (row.state, row.scope, row.decided_by) = (ApprovalState::Granted, scope, Some("gate".to_owned()));
    let mut append = run.take();
    append.approvals.push(row);
    ledger.append_blocking(append).unwrap();
    let (seen, progress) = summary(&ledger, &run);
    assert_eq!((seen.events, seen.pending_approvals, progress.phase), (7, 0, RunPhase::Halted));
    assert_eq!(seen.last_event, Some(run.now));

    run.close();
    run.commit(&ledger).unwrap();
    assert_eq!(summary(&ledger, &run).1.phase, RunPhase::Closed);
}

#[test]
fn the_summary_of_a_run_whose_writer_died_says_that_it_is_abandoned() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let (run, _) = asking(&ledger);
    drop(ledger);
    let ledger = open(folder.path());
    let (seen, progress) = summary(&ledger, &run);
    assert_eq!((seen.events, seen.pending_approvals, progress.phase), (7, 1, RunPhase::Abandoned));
    assert_eq!((progress.steps, progress.side_effects), (1, 1));
}

/// Opens a store of an earlier release for writing, and waits until its summaries are computed.
fn migrated(folder: &Path) -> SqliteLedger {
    let ledger = SqliteLedger::open(folder, OpenOptions::default()).unwrap();
    let start = Instant::now();
    while ledger.summaries_computed().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "the summaries are not computed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ledger.summaries_computed(), Some(Ok(())));
    assert_eq!(ledger.summaries_due().unwrap(), 0);
    ledger
}

#[test]
fn runs_of_an_earlier_release_get_their_summaries_once_the_store_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [today, earlier] = ["today", "earlier"].map(|name| folder.path().join(name));
    // More than are written in one transaction.
    let ledger = open(&today);
    for _ in 0..150 {
        let (mut run, _) = asking(&ledger);
        run.close();
        run.commit(&ledger).unwrap();
    }
    version_1(&today, &earlier);
    let listed = |reader: &SqliteReader| reader.runs(&RunFilter::default()).unwrap();
    let asked = |reader: &SqliteReader| {
        let mut rows = reader.approvals(&ApprovalFilter::default()).unwrap();
        rows.sort_by_key(|row| row.approval);
        rows
    };
    let expected = ledger.read(|reader| Ok((listed(reader), asked(reader)))).unwrap();

    // Who only reads finds all but what is not computed, and may compute that.
    let reader = SqliteReader::open(&earlier).unwrap();
    let unfinished: Vec<_> =
        expected.0.iter().map(|run| RunSummary { progress: None, ..run.clone() }).collect();
    assert_eq!((listed(&reader), asked(&reader)), (unfinished, expected.1.clone()));
    assert_eq!(reader.progress(expected.0[0].run).unwrap(), expected.0[0].progress);
    assert_eq!(reader.integrity_check().unwrap().problems, Vec::<String>::new());
    drop(reader);

    let ledger = migrated(&earlier);
    assert_eq!(ledger.read(|reader| Ok((listed(reader), asked(reader)))).unwrap(), expected);
    assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
    // What the rows of approvals quoted of payloads is in no file any more.
    drop(ledger);
    for file in std::fs::read_dir(&earlier).unwrap().map(|entry| entry.unwrap().path()) {
        let holds =
            file.is_file() && std::fs::read(&file).unwrap().windows(9).any(|bytes| bytes == b"old words");
        assert!(!holds, "{}", file.display());
    }
}

#[test]
fn a_process_that_ends_early_leaves_the_rest_of_the_summaries_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let [today, earlier] = ["today", "earlier"].map(|name| folder.path().join(name));
    let ledger = open(&today);
    let runs: Vec<Run> = (0..100)
        .map(|_| {
            let mut run = Run::start(&ledger);
            run.close();
            run.commit(&ledger).unwrap();
            run
        })
        .collect();
    version_1(&today, &earlier);
    drop(SqliteLedger::open(&earlier, OpenOptions::default()).unwrap());
    // A check does not miss what is still due.
    assert_eq!(
        SqliteReader::open(&earlier).unwrap().integrity_check().unwrap().problems,
        Vec::<String>::new()
    );
    let ledger = migrated(&earlier);
    for run in &runs {
        summary_is_there(&ledger, run);
    }
    // A run that is gone on with writes its own.
    let mut again = Run::segment(&ledger, runs[0].head.run, None).unwrap();
    again.act();
    again.commit(&ledger).unwrap();
    assert_eq!(summary(&ledger, &again).0.segments, 2);
}

fn summary_is_there(ledger: &SqliteLedger, run: &Run) {
    let summary = ledger.read(|reader| reader.run(run.head.run)).unwrap().unwrap();
    assert_eq!(summary.progress.map(|progress| progress.phase), Some(RunPhase::Closed));
}

#[test]
fn a_store_that_an_earlier_release_is_writing_is_not_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let [today, earlier] = ["today", "earlier"].map(|name| folder.path().join(name));
    let ledger = open(&today);
    asking(&ledger).0.close();
    version_1(&today, &earlier);
    let lock = std::fs::File::create(earlier.join("writers/earlier.lock")).unwrap();
    lock.lock().unwrap();
    let refused = || SqliteLedger::open(&earlier, OpenOptions::default()).map(drop);
    assert!(matches!(refused(), Err(LedgerError::EarlierAtWork { writers: 1, .. })), "{:?}", refused());
    assert!(matches!(SqliteEraser::open(&earlier), Err(LedgerError::EarlierAtWork { .. })));
    drop(lock);
    migrated(&earlier);
}
