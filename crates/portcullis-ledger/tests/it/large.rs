//! Erasure in a large store while somebody writes: nobody is refused, and nobody waits for long.
//!
//! 160 MiB in every test run, 1 GiB with `PORTCULLIS_TEST_LONG=1`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::event::{EventBody, GrantScope, GrantedEffects, Proposed};
use portcullis_core::id::{ActionId, ApprovalId, RunId};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    ApprovalRow, ApprovalState, Erased, LedgerError, Refusal, Selection, SqliteEraser, SqliteLedger,
    SqliteReader, Tombstone,
};
use portcullis_proof::Status;

use crate::sample::{Run, digest, open, verified};

/// Bytes of payloads.
const BYTES: usize = 160 << 20;
const BYTES_LONG: usize = 1 << 30;
/// The texts of a turn: those that fit into their row, and those that fill pages of their own.
const SIZES: [usize; 6] = [300, 300, 2_000, 9_000, 40_000, 200_000];
/// Turns of a run.
const TURNS: usize = 40;
/// Approvals.
const ASKED: u64 = 600;
/// What a writer gives up after.
const BUSY: Duration = Duration::from_secs(5);
/// What it may wait at most here: far less, on a machine that does other things too.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Closed runs of this many bytes, with texts to erase and as many to keep.
fn filled(ledger: &SqliteLedger, bytes: usize, mut asks: bool) -> Vec<RunId> {
    let mut written = 0;
    let mut runs = Vec::new();
    while written < bytes {
        let mut run = Run::start(ledger);
        if std::mem::take(&mut asks) {
            asked(ledger, &mut run);
        }
        for turn in 0..TURNS {
            for (number, size) in SIZES.into_iter().enumerate() {
                for name in ["goes", "stays"] {
                    let mut text = format!("{name} {turn} {number} ").into_bytes();
                    text.resize(size, b'.');
                    run.chain_with(EventBody::Output {}, &[(name, &text)]);
                    written += size;
                }
            }
            run.commit(ledger).unwrap();
        }
        run.close();
        run.commit(ledger).unwrap();
        runs.push(run.head.run);
    }
    runs
}

/// Writes for as long as `work` lasts; what it came to, how often was written, and the longest wait.
fn beside<T: Send>(ledger: &SqliteLedger, work: impl FnOnce() -> T + Send) -> (T, u32, Duration) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut times, mut longest) = (0, Duration::ZERO);
            let mut run = Run::start(ledger);
            while !done.load(Ordering::Relaxed) {
                let action = run.act();
                run.outcome(action);
                let start = Instant::now();
                run.commit(ledger).expect("a writer is refused while somebody erases");
                longest = longest.max(start.elapsed());
                times += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            (times, longest)
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        let (times, longest) = writer.join().unwrap();
        (result, times, longest)
    })
}

/// How often a text stands in the files of the store.
fn found(store: &Path, text: &str) -> usize {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).matches(text).count()).sum()
}

/// Approvals that ask about the run's events, and are then decided out of turn, so that their rows grow and move; some
/// of what moves leaves a copy. Every other one speaks of a text to erase.
fn asked(ledger: &SqliteLedger, run: &mut Run) {
    let id = run.head.run;
    let action =
        |place: u64| ActionId::from_bytes([place.to_be_bytes(), [2; 8]].concat().try_into().unwrap());
    let name = |place: u64| if place.is_multiple_of(2) { "goes" } else { "stays" };
    for place in 0..ASKED {
        let proposed = Proposed {
            action: action(place),
            step: 1,
            tool: None,
            server: None,
            side_effecting: false,
            likeness: None,
            cost_micros: 0,
            digest: digest(),
            directory: None,
            call: None,
            confidence: None,
        };
        run.chain_with(EventBody::Proposed(proposed), &[(name(place), b"asked")]);
    }
    let row = |place: u64, decided_by: Option<String>| {
        let (name, pad) = (name(place), "/".repeat(50 + (place * 397 % 850) as usize));
        let resources = vec![format!("shown {name} {place} {pad}")];
        let granted = GrantedEffects { rule: "test".to_owned(), resources };
        ApprovalRow {
            approval: ApprovalId::from_bytes([place.to_be_bytes(), [1; 8]].concat().try_into().unwrap()),
            run: id,
            action: Some(action(place)),
            digest: digest(),
            principal: "alice".to_owned(),
            state: ApprovalState::Granted,
            scope: Some(GrantScope::Effects(vec![granted])),
            requested: Timestamp::from_micros(1),
            decided: None,
            decided_by,
            tool: "write_file".to_owned(),
            policy: "strict".to_owned(),
            proposed: None,
            note: None,
            rule: None,
        }
    };
    let mut append = run.take();
    append.approvals = (0..ASKED).map(|place| row(place, None)).collect();
    ledger.append_blocking(append).unwrap();
    run.chain(EventBody::Output {});
    let mut append = run.take();
    // A step that has no divisor in common with their number comes to each of them once.
    append.approvals = (0..ASKED)
        .map(|turn| turn * 257 % ASKED)
        .map(|place| row(place, Some("b".repeat(1 + (place * 131 % 200) as usize))))
        .collect();
    ledger.append_blocking(append).unwrap();
}

/// Approvals of a run without payloads that take more than is written anew in one transaction.
fn too_many_approvals(ledger: &SqliteLedger, store: &Path) {
    let mut run = Run::start(ledger);
    run.close();
    run.commit(ledger).unwrap();
    direct(store)
        .execute(
            "INSERT INTO approvals (approval, run, action, digest, principal, state, requested, tool,
                 policy) SELECT zeroblob(16), max(number), x'01', x'01', 'alice', 'refused', 1,
                 replace(hex(zeroblob(9000000)), '0', 'x'), '' FROM runs",
            [],
        )
        .unwrap();
}

fn direct(store: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(store.join("ledger.db")).unwrap();
    connection.busy_timeout(BUSY).unwrap();
    connection
}

fn size(store: &Path) -> u64 {
    fs::metadata(store.join("ledger.db")).unwrap().len() >> 20
}

#[test]
fn writers_go_on_while_much_is_erased() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path();
    let ledger = open(store);
    let long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    let runs = filled(&ledger, if long { BYTES_LONG } else { BYTES }, true);
    too_many_approvals(&ledger, store);
    let before = size(store);
    let selection = Selection {
        name: Some("goes".to_owned()),
        before: Some(Timestamp::from_micros(i64::MAX)),
        ..Selection::default()
    };
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "uid 1000".to_owned(), reason: None };
    let start = Instant::now();
    let ([first, second, third], times, longest) = beside(&ledger, || {
        let erase = || SqliteEraser::open(store).unwrap().erase(&selection, &tombstone).unwrap();
        let (first, second) = (erase(), erase());
        direct(store).execute("DELETE FROM approvals WHERE approval = zeroblob(16)", []).unwrap();
        [first, second, erase()]
    });
    // What the first could not do, the second has not forgotten, and the third does.
    assert!(!first.purged && first.needs_compaction, "{first:?}");
    assert!(second.payloads == 0 && !second.purged && second.needs_compaction, "{second:?}");
    assert_eq!(third.payloads, 0);
    let mut erased = Erased { payloads: first.payloads, bytes: first.bytes, ..third };
    println!(
        "{} payloads of {} MiB in a store of {before} MiB erased in {:.1?}; {times} commits meanwhile, the longest took {longest:.1?}; {} MiB now",
        erased.payloads,
        erased.bytes >> 20,
        start.elapsed(),
        size(store),
    );
    assert_eq!(erased.payloads, ASKED / 2 + (runs.len() * TURNS * SIZES.len()) as u64);
    assert!(erased.purged && !erased.needs_compaction && erased.free_bytes > erased.bytes / 2);
    assert!(
        WAIT_MAX < BUSY && times > 10 && longest < WAIT_MAX,
        "{times} commits, the longest took {longest:?}"
    );
    assert_eq!(found(store, "shown goes"), 0);
    // Writers go on, so a page of what stays may stand in the write-ahead log as well.
    assert!(found(store, "shown stays") >= ASKED as usize / 2);
    for turn in [0, TURNS / 2] {
        assert_eq!(found(store, &format!("goes {turn} ")), 0);
        assert!(found(store, &format!("stays {turn} ")) >= runs.len() * SIZES.len());
    }
    let report = verified(store, runs[0]);
    let each = ASKED / 2 + (TURNS * SIZES.len()) as u64;
    let counted = (report.payloads.verified, report.payloads.erased);
    assert_eq!((report.status, counted), (Status::Valid, (each, each)));
    // The approvals were written without the events that ask for them.
    let sound = || {
        let problems = SqliteReader::open(store).unwrap().integrity_check().unwrap().problems;
        assert!(problems.iter().all(|problem| problem.ends_with("but no event requests it")), "{problems:?}");
    };
    sound();
    // What was freed is filled again, and given back once nobody writes.
    let most = size(store);
    filled(&ledger, BYTES / 8, false);
    assert_eq!(size(store), most);
    // Pages of a store that an earlier release made may hold copies of rows that were moved.
    let as_earlier = rusqlite::Connection::open(store.join("ledger.db")).unwrap();
    assert_eq!(as_earlier.execute("DELETE FROM meta WHERE key = 'no copies since'", []).unwrap(), 1);
    let mut eraser = SqliteEraser::open(store).unwrap();
    let again = eraser.erase(&selection, &tombstone).unwrap();
    assert!(!again.purged && again.needs_compaction, "{again:?}");
    let refused = eraser.compact(&mut erased);
    assert_eq!(refused, Err(LedgerError::Refused(Refusal::WritersAtWork { writers: 1 })));
    drop(ledger);
    eraser.compact(&mut erased).unwrap();
    assert!(erased.purged && erased.free_bytes == 0 && size(store) < most * 3 / 4, "{erased:?}");
    assert_eq!(verified(store, runs[0]), report);
    sound();
}
