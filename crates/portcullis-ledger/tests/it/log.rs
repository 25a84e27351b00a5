//! The log on real files: what it makes of runs, and when it refuses to sign.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_core::event::EventBody;
use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::log::{Log, LogError, LogPlaces, LogReader, LogThread, NotAnchored, check_standing};
use portcullis_ledger::{ExportOptions, SegmentState, SqliteLedger, SqliteReader};
use portcullis_proof::log::{File, Monitor, TileReader, TrustPolicy};
use portcullis_proof::{LoggedReport, Status, verify_files};
use tempfile::TempDir;

use crate::sample::{Run, open};

pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    pub(crate) fn places(&self) -> LogPlaces {
        LogPlaces::beside(&self.ledger())
    }
}

/// A closed run of one action.
pub(crate) fn closed(ledger: &SqliteLedger) -> RunId {
    let mut run = Run::start(ledger);
    let action = run.act();
    run.outcome(action);
    run.close();
    run.commit(ledger).unwrap().run
}

/// What a stranger says about a run, given the export and a policy.
pub(crate) fn judged(places: &LogPlaces, run: RunId, policy: &str) -> LoggedReport {
    let mut export = Vec::new();
    let reader = SqliteReader::open(&places.database).unwrap();
    reader.export_run(run, &mut export, ExportOptions { payloads: true }).unwrap();
    let evidence = LogReader::open(places).unwrap().evidence(run, &[]).unwrap();
    let mut files = vec![File { name: "run.export", bytes: &export }];
    files.extend(evidence.iter().map(|file| File { name: &file.name, bytes: &file.bytes }));
    verify_files(&files, None, &TrustPolicy::parse(policy.as_bytes()).unwrap()).unwrap()
}

fn policy(places: &LogPlaces, remember: bool) -> String {
    let key = portcullis_ledger::log::verifier_key(places).unwrap();
    LogReader::open(places).unwrap().policy_text(&key, remember).unwrap()
}

/// Reads the whole log as a monitor does: its alerts, the numbers it misses, the segments without end.
fn monitored(places: &LogPlaces) -> (Vec<String>, usize, usize) {
    let (_, checkpoint) = LogReader::open(places).unwrap().checkpoint().unwrap();
    let key = portcullis_ledger::log::verifier_key(places).unwrap();
    let mut monitor = Monitor::new(checkpoint.origin(), vec![key]);
    let tiles = places.tiles();
    let reader = TileReader::new(&tiles, checkpoint.head());
    reader.check_root().unwrap();
    let mut alerts = Vec::new();
    for index in 0..checkpoint.size() {
        let leaf = reader.leaf(index).unwrap();
        alerts.extend(monitor.read(&leaf.entry).unwrap().into_iter().map(|alert| alert.message));
    }
    (alerts, monitor.missing().count(), monitor.open().count())
}

#[test]
fn a_closed_run_is_valid_for_whoever_remembers_the_tree() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let run = closed(&ledger);
    let mut log = Log::open(&place.places()).unwrap();
    let round = log.round().unwrap();
    assert_eq!((round.leaves, round.size), (3, 3), "the enrolment, an open head, a closed one");
    let report = judged(&place.places(), run, &policy(&place.places(), true));
    assert_eq!(report.status, Status::Valid, "{report:?}");
    let report = judged(&place.places(), run, &policy(&place.places(), false));
    assert_eq!(report.status, Status::Incomplete, "nobody saw the tree but its log");
    assert_eq!(log.round().unwrap().leaves, 0);
}

#[test]
fn runs_of_many_rounds_are_numbered_without_holes_and_a_monitor_has_nothing_to_say() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut log = Log::open(&place.places()).unwrap();
    let mut runs = Vec::new();
    let mut open_run = Run::start(&ledger);
    open_run.act();
    open_run.commit(&ledger).unwrap();
    // Past 256 and 512 leaves, so that tiles fill and partial ones go away.
    for round in 0..12 {
        runs.extend((0..30).map(|_| closed(&ledger)));
        let size = log.round().unwrap().size;
        assert_eq!(size, 2 + 60 * (round + 1));
    }
    assert_eq!(monitored(&place.places()), (Vec::new(), 0, 1));
    assert!(place.places().public.join("tile/0/000").is_file());
    assert!(!place.places().public.join("tile/0/000.p").exists(), "a full tile needs no partial ones");
    let policy = policy(&place.places(), true);
    for run in [runs[0], runs[100], runs[359]] {
        assert_eq!(judged(&place.places(), run, &policy).status, Status::Valid);
    }
    let report = judged(&place.places(), open_run.head.run, &policy);
    assert_eq!(report.status, Status::Incomplete, "an open run has no end in the log");
}

#[test]
fn a_process_that_comes_later_goes_on_where_the_first_one_was() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let first = closed(&ledger);
    let mut log = Log::open(&place.places()).unwrap();
    log.round().unwrap();
    let busy = Log::open(&place.places()).unwrap_err();
    assert!(matches!(busy, LogError::Busy { .. }), "{busy}");
    drop(log);
    let second = closed(&ledger);
    let mut log = Log::open(&place.places()).unwrap();
    assert_eq!(log.round().unwrap().leaves, 2);
    assert_eq!(monitored(&place.places()), (Vec::new(), 0, 0));
    for run in [first, second] {
        assert_eq!(judged(&place.places(), run, &policy(&place.places(), true)).status, Status::Valid);
    }
}

#[test]
fn a_run_whose_writer_died_is_logged_as_abandoned() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut run = Run::start(&ledger);
    run.act();
    let id = run.commit(&ledger).unwrap().run;
    let mut log = Log::open(&place.places()).unwrap();
    log.round().unwrap();
    // Without a word: the lock is let go and the segment stays open.
    drop(ledger);
    let ledger = open(&place.ledger());
    assert_eq!(ledger.recovery_report().recovered.len(), 1);
    log.round().unwrap();
    let report = judged(&place.places(), id, &policy(&place.places(), true));
    assert_eq!(report.status, Status::Valid, "{report:?}");
    assert_eq!(
        SqliteReader::open(&place.ledger()).unwrap().run(id).unwrap().unwrap().state,
        SegmentState::Abandoned
    );
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_log_restored_from_an_old_copy_refuses_to_sign() {
    let place = Place::new();
    {
        let ledger = open(&place.ledger());
        closed(&ledger);
        Log::open(&place.places()).unwrap().round().unwrap();
    }
    let backup = place.folder.path().join("backup");
    copy(&place.ledger(), &backup);
    {
        let ledger = open(&place.ledger());
        closed(&ledger);
        Log::open(&place.places()).unwrap().round().unwrap();
    }
    fs::remove_dir_all(place.ledger()).unwrap();
    copy(&backup, &place.ledger());
    let error = Log::open(&place.places()).unwrap_err();
    assert!(matches!(error, LogError::RolledBack { known: 3, seen: 5, .. }), "{error}");
}

/// Where every segment has its end in the log, too.
#[test]
fn an_old_ledger_beside_a_newer_log_is_noticed() {
    let place = Place::new();
    let database = place.ledger().join("ledger.db");
    let backup = place.folder.path().join("ledger.db");
    {
        let ledger = open(&place.ledger());
        closed(&ledger);
        Log::open(&place.places()).unwrap().round().unwrap();
    }
    check_standing(&place.places()).unwrap();
    fs::copy(&database, &backup).unwrap();
    {
        let ledger = open(&place.ledger());
        closed(&ledger);
        Log::open(&place.places()).unwrap().round().unwrap();
        check_standing(&place.places()).unwrap();
    }
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(place.ledger().join(name));
    }
    fs::copy(&backup, &database).unwrap();
    for error in [check_standing(&place.places()).unwrap_err(), Log::open(&place.places()).unwrap_err()] {
        assert!(matches!(error, LogError::LedgerBehind { stored: 0, .. }), "{error}");
    }
}

#[test]
fn a_ledger_restored_from_an_old_copy_is_not_logged() {
    let place = Place::new();
    let database = place.ledger().join("ledger.db");
    let backup = place.folder.path().join("ledger.db");
    {
        let ledger = open(&place.ledger());
        closed(&ledger);
    }
    fs::copy(&database, &backup).unwrap();
    {
        let ledger = open(&place.ledger());
        let mut run = Run::start(&ledger);
        run.act();
        run.commit(&ledger).unwrap();
        Log::open(&place.places()).unwrap().round().unwrap();
    }
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(place.ledger().join(name));
    }
    fs::copy(&backup, &database).unwrap();
    drop(open(&place.ledger()));
    let error = Log::open(&place.places()).unwrap_err();
    assert!(matches!(error, LogError::LedgerBehind { stored: 0, .. }), "{error}");
}

#[test]
fn what_is_lost_is_named_and_nothing_is_signed_in_its_place() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    closed(&ledger);
    Log::open(&place.places()).unwrap().round().unwrap();
    let places = place.places();
    let moved = place.folder.path().join("moved");

    fs::rename(places.log_key(), &moved).unwrap();
    let error = Log::open(&places).unwrap_err();
    assert!(matches!(error, LogError::KeyMissing { .. }), "{error}");
    fs::rename(&moved, places.log_key()).unwrap();

    fs::rename(places.database_file(), &moved).unwrap();
    let error = Log::open(&places).unwrap_err();
    assert!(matches!(error, LogError::StateLost { .. }), "{error}");
    fs::rename(&moved, places.database_file()).unwrap();

    let tile = places.public.join("tile/0/000.p/3");
    let mut bytes = fs::read(&tile).unwrap();
    bytes[7] ^= 1;
    fs::write(&tile, bytes).unwrap();
    closed(&ledger);
    let error = Log::open(&places).unwrap().round().unwrap_err();
    assert!(matches!(error, LogError::Tiles { .. }), "{error}");
}

#[test]
fn keys_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let ledger = open(&place.ledger());
    closed(&ledger);
    Log::open(&place.places()).unwrap().round().unwrap();
    let places = place.places();
    for entry in fs::read_dir(&places.keys).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::metadata(&places.keys).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(places.database_file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_first_head_is_in_the_published_log_when_the_wait_for_it_ends() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut run = Run::start(&ledger);
    run.act();
    run.commit(&ledger).unwrap();
    let thread = LogThread::start(place.places(), |_| (), |_| Ok(())).unwrap();
    let anchor = thread.anchor();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let segment = run.head.segment;
    runtime.block_on(anchor.opened(segment)).unwrap();
    let (_, published) = place.places().published().unwrap().unwrap();
    assert_eq!(published.size(), 2, "the enrolment and the open head");
    // A segment without an event has no head yet; whoever waits for it gives up.
    let silent = Run::start(&ledger);
    let waiting = anchor.opened(silent.head.segment);
    let waited = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(900), waiting).await });
    assert!(waited.is_err());
    // The thread ends although somebody still holds a hand of it, and tells whoever comes later.
    drop(thread);
    assert_eq!(runtime.block_on(anchor.opened(segment)), Err(NotAnchored));
}

#[test]
fn a_clock_that_jumps_changes_nothing() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut log = Log::open(&place.places()).unwrap();
    let mut runs = Vec::new();
    // Forward by a century, back to the beginning of time, and to before the run began.
    for times in [[0, 3_155_760_000_000_000, 1], [1_795_225_534_000_042, 0, 1_795_225_533_000_000]] {
        let mut run = Run::start(&ledger);
        let action = run.act();
        for micros in times {
            run.now = Timestamp::from_micros(micros);
            run.chain(EventBody::Output {});
        }
        run.outcome(action);
        run.close();
        runs.push(run.commit(&ledger).unwrap().run);
        log.round().unwrap();
    }
    assert_eq!(monitored(&place.places()), (Vec::new(), 0, 0));
    for run in runs {
        assert_eq!(judged(&place.places(), run, &policy(&place.places(), true)).status, Status::Valid);
    }
}
