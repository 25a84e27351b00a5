//! Appending, reading back, and what is refused.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use portcullis_core::event::{About, EventBody, GrantScope};
use portcullis_core::id::{ApprovalId, RunId, SegmentId};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    Append, ApprovalFilter, ApprovalRow, ApprovalState, ExportOptions, LedgerError, NewSegment, OpenOptions,
    Refusal, RunFilter, SegmentState, SqliteLedger, SqliteReader, StoredPayload,
};
use portcullis_proof::Status;

use crate::sample::{Run, digest, fresh, open, verified};

fn refusal<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Refusal {
    match result {
        Err(LedgerError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn nothing_is_stored_in_files_that_were_removed_or_replaced() {
    for (name, replace) in [("ledger.db", false), ("ledger.db-wal", false), ("ledger.db", true)] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let ledger = open(&store);
        let mut run = Run::start_for(&ledger, None).unwrap();
        run.commit(&ledger).unwrap();
        ledger.check_present().unwrap();
        let path = store.join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        if replace {
            std::fs::write(&path, bytes).unwrap();
        }
        run.act();
        let refused = run.commit(&ledger);
        assert!(matches!(refused, Err(LedgerError::Gone { .. })), "{name}: {refused:?}");
        assert!(ledger.check_present().is_err());
    }
}

/// What SQLite keeps in memory would hide it until the next start, which would find nothing of what was acknowledged.
#[test]
fn nothing_is_stored_behind_a_write_ahead_log_that_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start_for(&ledger, None).unwrap();
    run.act();
    run.commit(&ledger).unwrap();
    // Whoever erases copies the log into the database before cutting it, and nothing is lost.
    let other = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let log = folder.path().join("ledger.db-wal");
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    run.act();
    run.commit(&ledger).unwrap();
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(0).unwrap();
    for _ in 0..2 {
        run.act();
        let refused = run.commit(&ledger);
        assert!(matches!(refused, Err(LedgerError::Cut { .. })), "{refused:?}");
    }
}

#[test]
fn a_run_is_written_read_exported_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ledger = open(&store);
    let mut run = Run::start_for(&ledger, Some("session-1")).unwrap();
    run.commit(&ledger).unwrap();
    for _ in 0..5 {
        let action = run.act();
        run.commit(&ledger).unwrap();
        run.outcome(action);
    }
    run.chain_with(EventBody::Output {}, &[("text", b"\xffnot utf-8")]);
    let open_head = run.commit(&ledger).unwrap();
    let id = run.head.run;
    let summary = ledger.read(|reader| reader.run(id)).unwrap().unwrap();
    assert_eq!((summary.events, summary.segments, summary.state), (22, 1, SegmentState::Open));
    assert_eq!(ledger.read(|reader| reader.head(id)).unwrap(), Some(open_head));
    assert_eq!(verified(&store, id).status, Status::Incomplete);
    run.close();
    run.commit(&ledger).unwrap();
    let report = verified(&store, id);
    assert_eq!(report.status, Status::Valid, "{report}");
    assert_eq!((report.events, report.payloads.verified, report.payloads.withheld), (23, 6, 0));
    // Payloads may be left out of an export.
    let mut text = Vec::new();
    let exported = ledger.read(|r| r.export_run(id, &mut text, ExportOptions { payloads: false })).unwrap();
    assert_eq!((exported.payloads, exported.state), (0, SegmentState::Closed));
    // Pages of events, and the bytes of a payload.
    let page = ledger.read(|reader| reader.events(id, 20, 2)).unwrap();
    assert_eq!(page.iter().map(|event| event.seq).collect::<Vec<_>>(), [21, 22]);
    let output = portcullis_core::event::Event::from_line(&page[1].line).unwrap();
    let payload = ledger.read(|r| r.payload(id, output.payloads["text"].commitment)).unwrap().unwrap();
    assert_eq!((payload.bytes(), payload.media_type()), (&b"\xffnot utf-8"[..], "text/plain"));
    let integrity = ledger.read(SqliteReader::integrity_check).unwrap();
    assert_eq!((integrity.runs, integrity.events, integrity.problems), (1, 23, Vec::new()));
}

#[test]
fn the_folder_is_for_this_user_only_and_a_clean_end_leaves_no_lock() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ledger = open(&store);
    let mut run = Run::start(&ledger);
    run.close();
    run.commit(&ledger).unwrap();
    let mode = |path: &str| std::fs::metadata(store.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(""), mode("writers"), mode("ledger.db"), mode("ledger.db-wal")),
        (0o700, 0o700, 0o600, 0o600)
    );
    let lock = store.join(format!("writers/{}.lock", ledger.writer_id()));
    assert!(lock.exists());
    drop(ledger);
    assert!(!lock.exists());
}

#[test]
fn the_origin_is_fixed_when_the_store_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let origin = SqliteLedger::open(folder.path(), OpenOptions::default()).unwrap().origin().to_owned();
    assert!(origin.starts_with("portcullis/") && origin.len() == 19, "{origin}");
    assert_eq!(SqliteLedger::open(folder.path(), OpenOptions::default()).unwrap().origin(), origin);
    assert_eq!(SqliteReader::open(folder.path()).unwrap().origin().unwrap(), origin);
    for other in ["portcullis/other", "with space"] {
        let options = OpenOptions { origin: Some(other.to_owned()), ..OpenOptions::default() };
        assert!(matches!(refusal(SqliteLedger::open(folder.path(), options)), Refusal::Origin { .. }));
    }
}

#[test]
fn what_does_not_follow_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    let first = run.take();
    ledger.append_blocking(first.clone()).unwrap();
    // The same event again, and an event that skips one.
    assert!(matches!(refusal(ledger.append_blocking(first)), Refusal::OutOfOrder { count: 1, after: 0, .. }));
    run.act();
    let skipped = run.take();
    run.act();
    assert!(matches!(refusal(run.commit(&ledger)), Refusal::OutOfOrder { count: 1, after: 4, .. }));
    // Lines that are not chained to each other.
    let mut torn = skipped.clone();
    torn.events.remove(1);
    assert!(matches!(refusal(ledger.append_blocking(torn)), Refusal::OutOfOrder { .. }));
    // A payload that nobody names.
    let mut stray = skipped.clone();
    stray.payloads.push(StoredPayload::new([1; 32], "text/plain", b"stray".to_vec()).unwrap());
    assert!(matches!(refusal(ledger.append_blocking(stray)), Refusal::PayloadUnnamed(_)));
    assert!(matches!(refusal(ledger.append_blocking(Append::default())), Refusal::Event(_)));
    // A segment that was never opened here.
    let mut elsewhere = Run::start(&ledger);
    elsewhere.head.segment = SegmentId::from_bytes(fresh());
    elsewhere.take();
    elsewhere.act();
    assert!(matches!(refusal(elsewhere.commit(&ledger)), Refusal::SegmentUnknown(_)));
    // After all that, what follows is taken, and a closed segment takes nothing.
    let head = ledger.append_blocking(skipped).unwrap();
    run.take();
    run.head = head;
    run.close();
    run.commit(&ledger).unwrap();
    run.act();
    let ended = refusal(run.commit(&ledger));
    assert!(matches!(ended, Refusal::SegmentEnded { state: SegmentState::Closed, .. }));
    assert_eq!(verified(folder.path(), head.run).events, 5);
}

#[test]
fn a_run_has_one_writer_at_a_time_and_goes_on_in_a_new_segment() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()), open(folder.path()));
    let mut run = Run::start(&one);
    run.commit(&one).unwrap();
    let id = run.head.run;
    for ledger in [&one, &two] {
        let owned = refusal(Run::segment(ledger, id, None).map(drop));
        assert_eq!(owned, Refusal::RunOwned { run: id, writer: one.writer_id().to_owned() });
    }
    // The other process cannot append to the segment either.
    run.act();
    assert!(matches!(refusal(two.append_blocking(run.take())), Refusal::SegmentUnknown(_)));
    run.head = one.read(|reader| reader.head(id)).unwrap().unwrap();
    run.close();
    run.commit(&one).unwrap();
    let mut next = Run::segment(&two, id, None).unwrap();
    assert_eq!(next.head.count, 2);
    let action = next.act();
    next.outcome(action);
    next.close();
    next.commit(&two).unwrap();
    let report = verified(folder.path(), id);
    assert_eq!((report.status, report.segments, report.events), (Status::Valid, 2, 7));
    let segments = one.read(|reader| reader.segments(id)).unwrap();
    assert_eq!(
        (segments[1].ordinal, segments[1].after, segments[1].writer.as_str()),
        (1, 2, two.writer_id())
    );
    let stranger = NewSegment {
        run: id,
        segment: SegmentId::from_bytes(fresh()),
        principal: "mallory".to_owned(),
        session_key: None,
        opened: Timestamp::from_micros(0),
    };
    let again =
        NewSegment { segment: segments[0].segment, principal: "alice".to_owned(), ..stranger.clone() };
    assert!(matches!(refusal(one.open_segment_blocking(stranger)), Refusal::PrincipalMismatch { .. }));
    assert!(matches!(refusal(one.open_segment_blocking(again)), Refusal::SegmentExists(_)));
}

#[test]
fn runs_are_found_by_the_start_of_their_id() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let id = |first: u8| {
        let mut id = fresh();
        id[0] = 0xab;
        id[1] = first;
        RunId::from_bytes(id)
    };
    let ids = [id(0xc1), id(0xc2), id(0xd1)];
    for run in ids {
        Run::segment(&ledger, run, None).unwrap();
    }
    let find = |prefix: &str| ledger.read(|reader| reader.find_run(prefix));
    assert_eq!(find("abd").unwrap(), ids[2]);
    assert_eq!(find(&ids[0].to_string()).unwrap(), ids[0]);
    let Refusal::RunAmbiguous { candidates, .. } = refusal(find("abc")) else { panic!() };
    assert_eq!(candidates, [ids[1], ids[0]]);
    assert!(refusal(find("abc")).to_string().contains(&ids[0].to_string()));
    for wrong in ["ffff", "xyz", "AB", &"0".repeat(33), "é"] {
        assert!(matches!(refusal(find(wrong)), Refusal::RunUnknown(_)), "{wrong}");
    }
    let listed = ledger
        .read(|r| {
            r.runs(&RunFilter { limit: Some(2), principal: Some("alice".into()), ..RunFilter::default() })
        })
        .unwrap();
    assert_eq!(listed.iter().map(|run| run.run).collect::<Vec<_>>(), [ids[2], ids[1]]);
    let older = |than| {
        let filter = RunFilter { older_than: Some(than), ..RunFilter::default() };
        ledger.read(|reader| reader.runs(&filter)).unwrap().iter().map(|run| run.run).collect::<Vec<_>>()
    };
    assert_eq!(older(ids[1]), [ids[0]], "the next page begins behind the last run of this one");
    assert_eq!(older(RunId::from_bytes(fresh())), [], "behind a run that nobody knows there is nothing");
}

#[test]
fn approvals_are_listed_by_state_and_keep_their_action() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    let action = run.act();
    let approval = ApprovalId::from_bytes(fresh());
    let mut row = ApprovalRow {
        approval,
        run: run.head.run,
        action: Some(action),
        digest: digest(),
        principal: "alice".to_owned(),
        state: ApprovalState::Pending,
        scope: None,
        requested: Timestamp::from_micros(5),
        decided: None,
        decided_by: None,
        tool: "write_file".to_owned(),
        policy: "strict".to_owned(),
        proposed: Some(2),
        note: None,
        rule: None,
    };
    let mut append = run.take();
    append.approvals.push(row.clone());
    ledger.append_blocking(append).unwrap();
    let list = |state| {
        let filter = ApprovalFilter { state: Some(state), ..ApprovalFilter::default() };
        ledger.read(|reader| reader.approvals(&filter)).unwrap()
    };
    assert_eq!(list(ApprovalState::Pending), std::slice::from_ref(&row));
    assert_eq!(ledger.read(|reader| reader.run(row.run)).unwrap().unwrap().pending_approvals, 1);
    row.state = ApprovalState::Granted;
    row.scope = Some(GrantScope::Tool("write_file".to_owned()));
    row.decided = Some(Timestamp::from_micros(9));
    row.decided_by = Some("bob".to_owned());
    row.note = Some("for today".to_owned());
    run.outcome(action);
    let mut append = run.take();
    append.approvals.push(row.clone());
    ledger.append_blocking(append).unwrap();
    assert_eq!(list(ApprovalState::Pending), []);
    assert_eq!(ledger.read(|reader| reader.approval(approval)).unwrap(), Some(row.clone()));
    // A row cannot be turned to another action, nor follow events of another run.
    let head = run.head;
    for change in [
        |row: &mut ApprovalRow| row.digest = portcullis_core::id::Digest::from_bytes([8; 32]),
        |row: &mut ApprovalRow| row.run = RunId::from_bytes([9; 16]),
    ] {
        let mut wrong = row.clone();
        change(&mut wrong);
        run.head = head;
        run.act();
        let mut append = run.take();
        append.approvals.push(wrong);
        assert!(matches!(refusal(ledger.append_blocking(append)), Refusal::ApprovalMismatch(_)));
    }
    assert_eq!(ledger.read(|reader| reader.head(head.run)).unwrap(), Some(head));
}

/// Many threads append to runs of their own; some of their appends are bad. All that was acknowledged is there,
/// every run is dense and verifies, and no bad append failed a good one.
#[test]
fn what_is_acknowledged_is_there_whoever_else_writes() {
    const THREADS: usize = 16;
    const APPENDS: usize = 60;
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let acknowledged = Mutex::new(HashMap::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (ledger, acknowledged) = (&ledger, &acknowledged);
            scope.spawn(move || {
                let mut run = Run::start(ledger);
                let mut head = run.commit(ledger).unwrap();
                for number in 0..APPENDS {
                    let action = run.act();
                    run.outcome(action);
                    let append = run.take();
                    if (number + thread) % 7 == 0 {
                        let mut bad = append.clone();
                        bad.payloads.push(bad.payloads[0].clone());
                        bad.events.remove(0);
                        bad.payloads.clear();
                        refusal(ledger.append_blocking(bad));
                    }
                    head = ledger.append_blocking(append).unwrap();
                }
                acknowledged.lock().unwrap().insert(head.run, head);
            });
        }
    });
    let stats = ledger.stats();
    assert_eq!(stats.events, (THREADS * (1 + APPENDS * 4)) as u64);
    assert!(stats.transactions < stats.appends, "no commit was shared: {stats:?}");
    drop(ledger);
    for (run, head) in acknowledged.into_inner().unwrap() {
        let report = verified(folder.path(), run);
        assert_eq!(report.events, 1 + APPENDS as u64 * 4);
        assert_eq!(report.head.unwrap().link, head.link);
    }
}

#[test]
fn submissions_are_written_in_order_and_awaited_without_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut answers = Vec::new();
        for _ in 0..100 {
            let action = run.act();
            run.outcome(action);
            answers.push(ledger.submit(run.take()).unwrap());
        }
        for (answer, number) in answers.into_iter().zip(1..) {
            assert_eq!(answer.await.unwrap().unwrap().count, 1 + number * 4);
        }
        run.close();
        ledger.append(run.take()).await.unwrap();
    });
    assert_eq!(verified(folder.path(), run.head.run).status, Status::Valid);
}

#[test]
fn who_writes_for_long_has_room_in_the_log_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ledger = open(&store);
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    let length = || std::fs::metadata(store.join("ledger.db-wal")).unwrap().len();
    let mut before = 0;
    for actions in 0..100 {
        run.act();
        run.commit(&ledger).unwrap();
        if actions == 30 {
            before = length();
        }
    }
    assert!(before < 4 << 20 && length() >= 16 << 20, "{before} {}", length());
    let database = rusqlite::Connection::open(store.join("ledger.db")).unwrap();
    let pages: i64 = database.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let free: i64 = database.pragma_query_value(None, "freelist_count", |row| row.get(0)).unwrap();
    assert!(pages < 200 && free == 0, "{pages} {free}");
    drop(database);
    let integrity = ledger.read(SqliteReader::integrity_check).unwrap();
    assert_eq!((integrity.events, integrity.problems), (301, Vec::new()));
}

/// Each commit takes some six pages of the log: it would grow to 64 MiB. How far it grows depends on the disk, too.
#[test]
fn who_writes_steadily_has_the_log_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let ledger = open(&store);
    let mut run = Run::start(&ledger);
    for _ in 0..4_000 {
        run.act();
        run.commit(&ledger).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    let length = std::fs::metadata(store.join("ledger.db-wal")).unwrap().len();
    assert!((16 << 20..32 << 20).contains(&length), "{length}");
    assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
}

/// A closed run in which a person was asked.
fn asking(ledger: &SqliteLedger) {
    let mut run = Run::start(ledger);
    let action = run.act();
    let approval = ApprovalId::from_bytes(fresh());
    let tool = "write_file".to_owned();
    run.chain(EventBody::ApprovalRequested {
        approval,
        about: About::Action(action),
        digest: digest(),
        tool,
        effects: None,
        patterns: false,
    });
    run.close();
    let row = ApprovalRow {
        approval,
        run: run.head.run,
        action: Some(action),
        digest: digest(),
        principal: "alice".to_owned(),
        state: ApprovalState::Pending,
        scope: None,
        requested: Timestamp::from_micros(5),
        decided: None,
        decided_by: None,
        tool: "write_file".to_owned(),
        policy: "strict".to_owned(),
        proposed: Some(2),
        note: None,
        rule: None,
    };
    let mut append = run.take();
    append.approvals.push(row);
    ledger.append_blocking(append).unwrap();
}

/// No link covers what events are found by, so it is held against them.
#[test]
fn a_check_names_index_rows_that_were_changed_and_payloads_that_are_gone() {
    let changes = [
        ("UPDATE runs SET principal = 'mallory'", "indexed under the principal"),
        ("UPDATE runs SET session_key = 'other'", "a different session"),
        ("UPDATE events SET kind = 'input' WHERE kind = 'verdict'", "does not match it"),
        ("UPDATE events SET action = zeroblob(16) WHERE kind = 'verdict'", "does not match it"),
        ("UPDATE segments SET state = 'abandoned'", "indexed as abandoned"),
        ("UPDATE approvals SET state = 'granted'", "indexed as granted"),
        ("UPDATE approvals SET digest = zeroblob(32)", "a different action or principal"),
        ("UPDATE approvals SET principal = 'mallory'", "a different action or principal"),
        ("UPDATE approvals SET scope = '\"once\"'", "a different scope"),
        ("UPDATE approvals SET decided_by = 'approver:ann'", "a different approver"),
        ("UPDATE approvals SET tool = 'read_file'", "a different `tool`"),
        ("UPDATE approvals SET proposed = 7", "a different `proposed`"),
        ("UPDATE approvals SET note = 'fine'", "a different `note`"),
        ("UPDATE approvals SET rule = 'a/b'", "a different `rule`"),
        (
            "INSERT INTO erasures (run, commitment, at, erased_by) VALUES (1, zeroblob(32), 0, 'ann')",
            "no event names it",
        ),
        ("UPDATE summaries SET events = 9", "its summary differs from its events in the number of events"),
        ("UPDATE summaries SET last_event = 9", "in the time of the last event"),
        ("UPDATE summaries SET pending_approvals = 0", "in the number of pending approvals"),
        ("UPDATE summaries SET surface = 'mcp', steps = 9", "in the surface, the number of steps"),
        ("UPDATE summaries SET policy = 'lax', mode = 'observe'", "in the policy, the mode"),
        ("UPDATE summaries SET bundle = NULL", "in the bundle"),
        ("UPDATE summaries SET phase = 'running'", "in the phase"),
        ("UPDATE summaries SET side_effects = 0", "in the number of side effects"),
        ("UPDATE summaries SET denied = 1", "in the counts of verdicts"),
        ("DELETE FROM summaries", "it has no summary"),
        ("DELETE FROM approvals", "missing from the index"),
        ("DELETE FROM payloads", "neither stored nor erased"),
    ];
    for (change, expected) in changes {
        let folder = tempfile::tempdir().unwrap();
        {
            let ledger = open(folder.path());
            asking(&ledger);
            assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
        }
        let database = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
        assert!(database.execute(change, []).unwrap() > 0, "{change}");
        let problems = SqliteReader::open(folder.path()).unwrap().integrity_check().unwrap().problems;
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{change}: {problems:?}");
    }
}
