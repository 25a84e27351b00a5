//! Erasure in a large store while somebody writes: nobody is refused, and nobody waits for long.
//!
//! 160 MiB in every test run, 1 GiB with `PORTCULLIS_TEST_LONG=1`.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::event::EventBody;
use portcullis_core::id::{ActionId, ApprovalId, RunId};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{
    ApprovalRow, ApprovalState, Eraser, Ledger, LedgerError, Reader, Refusal, Selection, Tombstone,
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
/// What a writer gives up after.
const BUSY: Duration = Duration::from_secs(5);
/// What it may wait at most here: far less, on a machine that does other things too.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Closed runs of this many bytes, with texts to erase and as many to keep.
fn filled(ledger: &Ledger, bytes: usize) -> Vec<RunId> {
    let mut written = 0;
    let mut runs = Vec::new();
    while written < bytes {
        let mut run = Run::start(ledger);
        if runs.is_empty() {
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
fn beside<T: Send>(ledger: &Ledger, work: impl FnOnce() -> T + Send) -> (T, u32, Duration) {
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
    let text = text.as_bytes();
    files
        .map(|file| {
            let bytes = fs::read(file).unwrap();
            let begins = bytes.iter().enumerate().filter(|(_, byte)| **byte == text[0]);
            begins.filter(|(at, _)| bytes[*at..].starts_with(text)).count()
        })
        .sum()
}

/// Approvals that ask about the run's events, and are then decided, so that their rows grow and move. As many as there
/// are turns speak of texts to erase, as many of texts to keep.
fn asked(ledger: &Ledger, run: &mut Run) {
    let id = run.head.run;
    let first = run.head.count;
    for (name, count) in [("goes", TURNS), ("stays", TURNS)] {
        for _ in 0..count {
            run.chain_with(EventBody::Output {}, &[(name, b"asked")]);
        }
    }
    for decided_by in [None, Some("bob, who has decided this with all due care".to_owned())] {
        let mut append = run.take();
        append.approvals = (1..=2 * TURNS as u64)
            .map(|place| ApprovalRow {
                approval: ApprovalId::from_bytes([u8::try_from(place).unwrap(); 16]),
                run: id,
                action: ActionId::from_bytes([1; 16]),
                digest: digest(),
                principal: "alice".to_owned(),
                state: ApprovalState::Granted,
                scope: None,
                requested: Timestamp::from_micros(1),
                decided: None,
                decided_by: decided_by.clone(),
                detail: format!(
                    r#"{{"proposed":{},"effects":["shown {} {}"]}}"#,
                    first + place,
                    if place <= TURNS as u64 { "goes" } else { "stays" },
                    "/".repeat(300)
                ),
            })
            .collect();
        if append.events.is_empty() {
            run.chain(EventBody::Output {});
            append.events = run.take().events;
        }
        ledger.append_blocking(append).unwrap();
    }
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
    let runs = filled(&ledger, if long { BYTES_LONG } else { BYTES });
    let before = size(store);
    let selection = Selection {
        name: Some("goes".to_owned()),
        before: Some(Timestamp::from_micros(i64::MAX)),
        ..Selection::default()
    };
    let tombstone = Tombstone { at: Timestamp::from_micros(1), by: "uid 1000".to_owned(), reason: None };
    let start = Instant::now();
    let (mut erased, times, longest) =
        beside(&ledger, || Eraser::open(store).unwrap().erase(&selection, &tombstone).unwrap());
    println!(
        "{} payloads of {} MiB in a store of {before} MiB erased in {:.1?}; {times} commits meanwhile, the longest took {longest:.1?}; {} MiB now",
        erased.payloads,
        erased.bytes >> 20,
        start.elapsed(),
        size(store),
    );
    assert_eq!(erased.payloads, (TURNS + runs.len() * TURNS * SIZES.len()) as u64);
    assert!(erased.purged && !erased.needs_compaction && erased.free_bytes > erased.bytes / 2);
    assert!(
        WAIT_MAX < BUSY && times > 10 && longest < WAIT_MAX,
        "{times} commits, the longest took {longest:?}"
    );
    assert_eq!((found(store, "shown goes"), found(store, "shown stays")), (0, TURNS));
    for turn in [0, TURNS / 2] {
        assert_eq!(found(store, &format!("goes {turn} ")), 0);
        assert_eq!(found(store, &format!("stays {turn} ")), runs.len() * SIZES.len());
    }
    let report = verified(store, runs[0]);
    let each = (TURNS + TURNS * SIZES.len()) as u64;
    let counted = (report.payloads.verified, report.payloads.erased);
    assert_eq!((report.status, counted), (Status::Valid, (each, each)));
    let sound = || assert_eq!(Reader::open(store).unwrap().integrity_check().unwrap().problems, [""; 0]);
    sound();
    // What was freed is filled again, and given back once nobody writes.
    let most = size(store);
    filled(&ledger, BYTES / 8);
    assert_eq!(size(store), most);
    // Pages of a store that an earlier release made may hold copies of rows that were moved.
    let as_earlier = rusqlite::Connection::open(store.join("ledger.db")).unwrap();
    assert_eq!(as_earlier.execute("DELETE FROM meta WHERE key <> 'origin'", []).unwrap(), 1);
    let mut eraser = Eraser::open(store).unwrap();
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
