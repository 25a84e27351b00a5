//! Full disks, locked and damaged databases, foreign files.

use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::event::EventBody;
use portcullis_ledger::log::{Log, LogPlaces, LogReader, check, verifier_key};
use portcullis_ledger::{LedgerError, OpenOptions, SegmentState, SqliteLedger, SqliteReader};

use crate::log::judged;
use crate::sample::{Run, open, verified};

fn options() -> OpenOptions {
    OpenOptions { busy_timeout: Duration::from_millis(200), ..OpenOptions::default() }
}

/// Appends until the store is full; what was acknowledged.
fn fill(ledger: &SqliteLedger, run: &mut Run) -> (u64, LedgerError) {
    for _ in 0..10_000 {
        let head = run.head;
        run.chain_with(EventBody::Output {}, &[("text", &[b'x'; 8_000])]);
        if let Err(error) = run.commit(ledger) {
            run.head = head;
            return (head.count, error);
        }
    }
    panic!("the store never filled up");
}

#[test]
fn a_size_limit_is_a_full_disk_and_can_be_raised() {
    let folder = tempfile::tempdir().unwrap();
    let limited = OpenOptions { bytes_max: Some(1 << 20), ..options() };
    let ledger = SqliteLedger::open(folder.path(), limited).unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    let (count, error) = fill(&ledger, &mut run);
    assert!(matches!(error, LedgerError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains("free space"), "{error}");
    assert!(count > 20);
    assert_eq!(ledger.read(|reader| reader.head(run.head.run)).unwrap().unwrap().count, count);
    drop(ledger);
    let ledger = SqliteLedger::open(folder.path(), options()).unwrap();
    assert_eq!(ledger.recovery_report().recovered[0].count, count + 1);
    let mut next = Run::segment(&ledger, run.head.run, None).unwrap();
    next.act();
    next.commit(&ledger).unwrap();
    assert_eq!(verified(folder.path(), run.head.run).events, count + 4);
}

#[test]
fn one_request_that_cannot_be_written_does_not_fail_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let limited = OpenOptions { bytes_max: Some(1 << 20), ..OpenOptions::default() };
    let ledger = SqliteLedger::open(folder.path(), limited).unwrap();
    let mut runs: Vec<Run> = (0..8).map(|_| Run::start(&ledger)).collect();
    let before = ledger.stats().transactions;
    // While another program holds the database for a moment, everything gathers into one batch.
    let foreign = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut answers = Vec::new();
    for (number, run) in runs.iter_mut().enumerate() {
        if number == 3 {
            run.chain_with(EventBody::Output {}, &[("text", &[b'x'; 4 << 20])]);
        }
        answers.push(ledger.submit(run.take()).unwrap());
        if number == 0 {
            // The writer takes the first alone and waits with it.
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    foreign.execute_batch("ROLLBACK").unwrap();
    for (number, answer) in answers.into_iter().enumerate() {
        match answer.blocking_recv().unwrap() {
            Ok(_) => assert_ne!(number, 3),
            Err(error) => {
                assert!(number == 3 && matches!(error, LedgerError::DiskFull { .. }), "{number}: {error}")
            }
        }
    }
    // The first alone, the others together in vain, and then each of them alone.
    assert_eq!(ledger.stats().transactions - before, 1 + 1 + 7);
    for (number, run) in runs.iter().enumerate() {
        let stored = ledger.read(|reader| reader.head(run.head.run)).unwrap().unwrap().count;
        assert_eq!(stored, u64::from(number != 3));
    }
}

/// A folder on a file system of a few MiB, where the tests may make one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(mebibytes: usize) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_the_ledger_goes_on_when_there_is_space() {
    let Some(disk) = SmallDisk::mount(1) else {
        println!("SKIPPED a_full_disk: mounting a small tmpfs needs root");
        return;
    };
    let folder = disk.0.path().join("store");
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![0; 300_000]).unwrap();
    let ledger = SqliteLedger::open(&folder, options()).unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    let (count, error) = fill(&ledger, &mut run);
    assert!(matches!(error, LedgerError::DiskFull { .. }), "{error:?}");
    // The same process goes on as soon as there is space.
    std::fs::remove_file(&ballast).unwrap();
    run.take();
    run.act();
    assert_eq!(run.commit(&ledger).unwrap().count, count + 3);
    run.close();
    run.commit(&ledger).unwrap();
    assert_eq!(ledger.read(SqliteReader::integrity_check).unwrap().problems, Vec::<String>::new());
    let report = verified(&folder, run.head.run);
    assert_eq!((report.events, report.state), (count + 4, Some(SegmentState::Closed)));
}

#[test]
fn a_database_that_another_program_holds_is_locked_not_waited_for_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(folder.path(), options()).unwrap();
    let mut run = Run::start(&ledger);
    run.commit(&ledger).unwrap();
    let foreign = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    foreign.execute_batch("BEGIN EXCLUSIVE").unwrap();
    run.act();
    let append = run.take();
    // Several wait; none waits for the others' time-outs.
    let started = Instant::now();
    let answers: Vec<_> = (0..8).map(|_| ledger.submit(append.clone()).unwrap()).collect();
    for answer in answers {
        let error = answer.blocking_recv().unwrap().unwrap_err();
        assert!(matches!(error, LedgerError::Locked { .. }), "{error:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(matches!(SqliteLedger::open(folder.path(), options()), Err(LedgerError::Locked { .. })));
    // Readers go on meanwhile.
    assert_eq!(ledger.read(|reader| reader.head(run.head.run)).unwrap().unwrap().count, 1);
    foreign.execute_batch("ROLLBACK").unwrap();
    ledger.append_blocking(append).unwrap();
    assert_eq!(verified(folder.path(), run.head.run).events, 4);
}

/// A store with one closed run, on disk in the one file.
fn finished_store(folder: &Path) -> portcullis_core::id::RunId {
    let ledger = open(folder);
    let mut run = Run::start(&ledger);
    for _ in 0..200 {
        let action = run.act();
        run.outcome(action);
        run.commit(&ledger).unwrap();
    }
    run.close();
    run.commit(&ledger).unwrap();
    run.head.run
}

#[test]
fn a_damaged_database_is_an_error_and_never_a_panic() {
    let original = tempfile::tempdir().unwrap();
    let run = finished_store(original.path());
    let bytes = std::fs::read(original.path().join("ledger.db")).unwrap();
    let pages = bytes.len() / 4_096;
    let mut found = 0;
    for page in 0..pages {
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = bytes.clone();
        damaged[page * 4_096..(page + 1) * 4_096].fill(0xa5);
        std::fs::write(folder.path().join("ledger.db"), damaged).unwrap();
        let opened = SqliteLedger::open(folder.path(), options());
        let used = opened.and_then(|ledger| {
            let mut run = Run::start_for(&ledger, None)?;
            run.commit(&ledger)?;
            ledger.read(|reader| {
                let integrity = reader.integrity_check()?;
                let detail = integrity.problems.first().cloned();
                let mut text = Vec::new();
                reader.export_run(
                    run.head.run,
                    &mut text,
                    portcullis_ledger::ExportOptions { payloads: true },
                )?;
                match detail {
                    Some(detail) => {
                        Err(LedgerError::Corrupt { place: folder.path().display().to_string(), detail })
                    }
                    None => Ok(()),
                }
            })
        });
        match used {
            Err(LedgerError::Corrupt { .. }) => found += 1,
            Err(LedgerError::NotALedger { .. }) => assert_eq!(page, 0),
            // A page that was free: nothing was lost with it.
            Ok(()) => println!("page {page} of {pages} was not in use"),
            Err(other) => panic!("page {page}: {other:?}"),
        }
    }
    assert!(found + 3 > pages, "{found} of {pages}");
    assert_eq!(verified(original.path(), run).events, 802);
}

#[test]
fn an_event_changed_behind_the_ledgers_back_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let run = finished_store(folder.path());
    let foreign = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    let line: Vec<u8> = foreign
        .query_row("SELECT line FROM events WHERE kind = 'verdict' LIMIT 1", [], |row| row.get(0))
        .unwrap();
    let text = String::from_utf8(line).unwrap().replace("\"allow\"", "\"deny\"");
    let changed =
        "UPDATE events SET line = ?1 WHERE key = (SELECT min(key) FROM events WHERE kind = 'verdict')";
    assert_eq!(foreign.execute(changed, [text.as_bytes()]).unwrap(), 1);
    let reader = SqliteReader::open(folder.path()).unwrap();
    let problems = reader.integrity_check().unwrap().problems;
    let expected = [
        format!("run {run}: event 3 does not hash to its link"),
        format!("run {run}: its summary differs from its events in the counts of verdicts"),
    ];
    assert_eq!(problems, expected);
    let mut text = Vec::new();
    reader.export_run(run, &mut text, portcullis_ledger::ExportOptions { payloads: true }).unwrap();
    let failure = portcullis_proof::verify(&*text, None).unwrap().failure.unwrap();
    assert_eq!((failure.attack, failure.seq), (portcullis_proof::Attack::EventAltered, Some(3)));
}

#[test]
fn other_files_and_newer_stores_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    std::fs::write(
        &path,
        b"this is some text that is longer than the header of a database file, and no database".repeat(3),
    )
    .unwrap();
    assert!(matches!(SqliteLedger::open(folder.path(), options()), Err(LedgerError::NotALedger { .. })));
    std::fs::remove_file(&path).unwrap();
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE mine (x)").unwrap();
    drop(foreign);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(SqliteLedger::open(folder.path(), options()), Err(LedgerError::NotALedger { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::remove_file(&path).unwrap();
    finished_store(folder.path());
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.pragma_update(None, "user_version", 99).unwrap();
    drop(foreign);
    let error = SqliteLedger::open(folder.path(), options()).unwrap_err();
    assert!(matches!(error, LedgerError::NewerVersion { found: 99, known: 7, .. }));
    assert!(error.to_string().contains(concat!("written by release ", env!("CARGO_PKG_VERSION"))), "{error}");
    assert!(matches!(SqliteReader::open(&folder.path().join("nowhere")), Err(LedgerError::Io { .. })));
    assert!(matches!(
        SqliteLedger::open(Path::new("/dev/null/store"), options()),
        Err(LedgerError::Io { .. })
    ));
}

#[test]
fn a_full_disk_stops_the_log_until_there_is_space() {
    let Some(disk) = SmallDisk::mount(4) else {
        println!("SKIPPED a_full_disk_stops_the_log: mounting a small tmpfs needs root");
        return;
    };
    let places = LogPlaces::beside(&disk.0.path().join("ledger"));
    let ledger = open(&places.database);
    let first = Log::open(&places).unwrap().round().unwrap().size;
    let runs: Vec<_> = (0..20)
        .map(|_| {
            let mut run = Run::start(&ledger);
            run.close();
            run.commit(&ledger).unwrap().run
        })
        .collect();
    // A file that takes all there is left.
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![0; 4 << 20]).unwrap_err();
    // As the daemon does: what failed is opened again, which is recovery.
    let failed = (0..3).filter(|_| Log::open(&places).and_then(|mut log| log.round()).is_err()).count();
    assert_eq!(failed, 3);
    let (_, published) = places.published().unwrap().unwrap();
    assert_eq!(published.size(), first, "nothing is published by halves");
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(Log::open(&places).unwrap().round().unwrap().size, first + 40);
    let key = verifier_key(&places).unwrap();
    assert_eq!(check(&places, &key).unwrap().problems, Vec::<String>::new());
    let policy = LogReader::open(&places).unwrap().policy_text(&key, true).unwrap();
    for run in runs {
        assert_eq!(judged(&places, run, &policy).status, portcullis_proof::Status::Valid);
    }
}

#[test]
fn a_log_in_the_middle_of_a_round_is_not_taken_for_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let places = LogPlaces::beside(&folder.path().join("ledger"));
    let _ledger = open(&places.database);
    Log::open(&places).unwrap().round().unwrap();
    let key = verifier_key(&places).unwrap();
    // As a fresh daemon leaves it for a moment: its database is there, and its first checkpoint is not published.
    let (published, aside) = (places.checkpoint(), folder.path().join("aside"));
    std::fs::rename(&published, &aside).unwrap();
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::fs::rename(&aside, &published).unwrap();
        });
        check(&places, &key).unwrap()
    });
    assert_eq!(found.problems, Vec::<String>::new());
    std::fs::remove_file(&published).unwrap();
    let found = check(&places, &key).unwrap();
    assert!(found.problems.len() == 1 && found.problems[0].ends_with("is missing"), "{found:?}");
}
