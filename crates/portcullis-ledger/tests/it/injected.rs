//! Calls to the system that fail, hang, or are the last one: `strace` changes what the kernel answers.
//!
//! A child process, this test binary itself, writes runs and keeps the log up with them, as the daemon does. In one
//! run after another, the n-th call of a kind fails, or the process is killed when it makes it. Whatever was
//! acknowledged has to be there afterwards, every checkpoint that anybody could have seen has to be the beginning of
//! the last one, and recovery has to get by without help.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::id::RunId;
use portcullis_ledger::log::{Log, LogError, LogPlaces, LogReader, check, verifier_key};
use portcullis_ledger::{SegmentState, SqliteReader};
use portcullis_proof::Status;
use portcullis_proof::log::tree::verify_consistency;
use portcullis_proof::log::{Checkpoint, TileReader};

use crate::log::{closed, judged};
use crate::sample::{Run, open, try_open};

const CHILD: &str = "PORTCULLIS_LEDGER_INJECTED_CHILD";

/// Calls that change what is on the disk, or open what is.
const CALLS: &str = "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,ftruncate,fallocate";
/// Rounds of the child; each has a run and a round of the log.
const ROUNDS: usize = 3;
/// How long a case may take.
const CASE_MAX: Duration = Duration::from_secs(60);
/// Cases of each kind in the short form.
const SAMPLE: usize = 9;

/// What the child process does: three runs and three rounds. What fails is tried again in the next round, as by the
/// daemon; nothing else is done about it.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let places = LogPlaces::beside(&Path::new(&folder).join("ledger"));
    let mut out = std::io::stdout().lock();
    let (mut ledger, mut log) = (None, None);
    for _ in 0..ROUNDS {
        if ledger.is_none() {
            ledger = try_open(&places.database).ok();
        }
        let Some(ledger) = &ledger else { continue };
        let written = (|| {
            let mut run = Run::start_for(ledger, None)?;
            let action = run.act();
            let head = run.commit(ledger)?;
            writeln!(out, "\ndone {} {} {}", head.run, head.count, head.link).unwrap();
            run.outcome(action);
            run.close();
            let head = run.commit(ledger)?;
            writeln!(out, "\ndone {} {} {}", head.run, head.count, head.link).unwrap();
            Ok::<_, portcullis_ledger::LedgerError>(())
        })();
        if let Err(error) = written {
            writeln!(out, "\nfailed {error}").unwrap();
        }
        let kept_up = (|| {
            if log.is_none() {
                log = Some(Log::open(&places)?);
            }
            log.as_mut().map_or(Ok(Default::default()), Log::round)
        })();
        if let Err(error) = kept_up {
            log = None;
            writeln!(out, "\nfailed {error}").unwrap();
        }
        tell_checkpoint(&mut out, &places);
    }
    writeln!(out, "\nended").unwrap();
}

fn tell_checkpoint(out: &mut impl std::io::Write, places: &LogPlaces) {
    if let Ok(note) = fs::read_to_string(places.checkpoint()) {
        writeln!(out, "\nseen {}", note.replace('\n', "|")).unwrap();
    }
}

/// What a child said before it ended.
#[derive(Default)]
struct Said {
    /// The last acknowledged head of each run.
    heads: BTreeMap<RunId, (u64, String)>,
    notes: Vec<String>,
    failed: usize,
    ended: bool,
}

fn said(out: &[u8]) -> Said {
    let mut said = Said::default();
    for line in String::from_utf8_lossy(out).lines() {
        match line.split_once(' ') {
            Some(("done", rest)) => {
                let words: Vec<&str> = rest.split(' ').collect();
                // The last line of a child that was killed may be cut.
                if let [run, count, link] = words[..]
                    && link.len() == 64
                {
                    said.heads.insert(run.parse().unwrap(), (count.parse().unwrap(), link.to_owned()));
                }
            }
            Some(("seen", note)) => said.notes.push(note.replace('|', "\n")),
            Some(("failed", _)) => said.failed += 1,
            _ => said.ended |= line == "ended",
        }
    }
    said
}

/// Runs the child under `strace`, whose own words go to a file.
fn trace(folder: &Path, options: &[String], words: &Path) -> Said {
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-o"]).arg(words).args(["-e", &format!("trace={CALLS}"), "-e", "signal=none"]);
    for option in options {
        command.args(["-e", option]);
    }
    let mut child = command
        .arg(std::env::current_exe().unwrap())
        .args(["injected::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder)
        .env_remove("RUST_BACKTRACE")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut out = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut out, &mut bytes).unwrap();
        bytes
    });
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < CASE_MAX, "{options:?}: the child does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    said(&reading.join().unwrap())
}

/// Whether `strace` is there and may trace.
fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|output| output.status.success())
}

/// A call of a kind that a thread makes as its n-th one, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    name: String,
    number: usize,
}

/// The calls of an untouched child that are about its folder, each with the line that tells of it.
fn calls(folder: &Path, words: &Path) -> Vec<(Call, String)> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in fs::read_to_string(words).unwrap().lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        let count = counts.entry((thread.to_owned(), name.to_owned())).or_default();
        *count += 1;
        if line.contains(&*folder.to_string_lossy()) {
            found.push((Call { name: name.to_owned(), number: *count }, line.to_owned()));
        }
    }
    found
}

/// What holds after whatever happened: a successor opens the store and the log, and everything is as it should be.
fn recovers(folder: &Path, said: &Said, case: &str) {
    let places = LogPlaces::beside(&folder.join("ledger"));
    // What others could have seen when the child was gone.
    let mut notes = said.notes.clone();
    notes.extend(fs::read_to_string(places.checkpoint()));
    let ledger = open(&places.database);
    assert_eq!(ledger.recovery_report().damaged, [], "{case}");
    let mut log = Log::open(&places).unwrap_or_else(|error| panic!("{case}: {error}"));
    notes.extend(fs::read_to_string(places.checkpoint()));
    let later = closed(&ledger);
    log.round().unwrap_or_else(|error| panic!("{case}: {error}"));
    let integrity = ledger.read(SqliteReader::integrity_check).unwrap();
    assert_eq!(integrity.problems, Vec::<String>::new(), "{case}");
    let key = verifier_key(&places).unwrap();
    let found = check(&places, &key).unwrap();
    assert_eq!((found.problems, found.open), (Vec::new(), 0), "{case}");
    let log = LogReader::open(&places).unwrap();
    let policy = log.policy_text(&key, true).unwrap();
    for (run, (count, link)) in &said.heads {
        let events = ledger.read(|reader| reader.events(*run, count - 1, 1)).unwrap();
        assert_eq!((events[0].seq, &events[0].link.to_string()), (*count, link), "{case}");
        let state = ledger.read(|reader| reader.run(*run)).unwrap().unwrap().state;
        assert_ne!(state, SegmentState::Open, "{case}");
    }
    for run in said.heads.keys().chain([&later]) {
        let report = judged(&places, *run, &policy);
        assert_eq!(report.status, Status::Valid, "{case}: {report:?}");
    }
    consistent(&places, &notes, case);
}

/// Every checkpoint that was ever seen is the beginning of the last one, and so of each that came after it.
fn consistent(places: &LogPlaces, notes: &[String], case: &str) {
    let key = verifier_key(places).unwrap();
    let (last, head) = places.published().unwrap().unwrap();
    assert!(Checkpoint::from_note(last.as_bytes()).unwrap().0.verify([&key]).is_ok(), "{case}");
    let tiles = places.tiles();
    let reader = TileReader::new(&tiles, head.head());
    reader.check_root().unwrap();
    for text in notes {
        let (note, seen) = Checkpoint::from_note(text.as_bytes()).unwrap();
        note.verify([&key]).unwrap_or_else(|error| panic!("{case}: {error}"));
        let path = reader.consistency(seen.size()).unwrap_or_else(|error| panic!("{case}: {error}"));
        verify_consistency(seen.head(), head.head(), &path).unwrap_or_else(|error| panic!("{case}: {error}"));
    }
}

/// The calls of a child that nothing happens to.
fn untouched() -> Vec<(Call, String)> {
    let folder = tempfile::tempdir().unwrap();
    let words = tempfile::NamedTempFile::new().unwrap();
    let said = trace(folder.path(), &[], words.path());
    assert!(said.ended && said.failed == 0);
    assert_eq!((said.heads.len(), said.notes.len()), (ROUNDS, ROUNDS));
    recovers(folder.path(), &said, "untouched");
    calls(folder.path(), words.path())
}

fn inject(call: &Call, what: &str) -> (Said, String) {
    let folder = tempfile::tempdir().unwrap();
    let words = tempfile::NamedTempFile::new().unwrap();
    let option = format!("inject={}:{what}:when={}", call.name, call.number);
    let said = trace(folder.path(), std::slice::from_ref(&option), words.path());
    recovers(folder.path(), &said, &option);
    (said, fs::read_to_string(words.path()).unwrap())
}

#[test]
fn no_call_that_fails_or_is_the_last_one_loses_or_forks_anything() {
    if !can_trace() {
        println!("SKIPPED no_call_that_fails_or_is_the_last_one: strace is missing, or may not trace");
        return;
    }
    let all: BTreeSet<Call> = untouched().into_iter().map(|(call, _)| call).collect();
    let all: Vec<Call> = all.into_iter().collect();
    assert!(all.len() > 60, "{}", all.len());
    let step =
        if std::env::var_os("PORTCULLIS_TEST_LONG").is_some() { 1 } else { all.len().div_ceil(SAMPLE) };
    let kinds = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"].into_iter().enumerate();
    let chosen: Vec<(&Call, &str)> = kinds
        .flat_map(|(number, what)| {
            // Each kind begins somewhere else, so that the short form is spread over more of the calls.
            all.iter().skip(number * step / 3).step_by(step).map(move |call| (call, what))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut killed, mut failed) = (0, 0);
        while let Some((call, what)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (said, _) = inject(call, what);
            killed += usize::from(!said.ended);
            failed += said.failed;
        }
        (killed, failed)
    };
    let (one, other) = std::thread::scope(|scope| {
        let threads = (scope.spawn(work), scope.spawn(work));
        (threads.0.join().unwrap(), threads.1.join().unwrap())
    });
    let (cases, killed, failed) = (chosen.len(), one.0 + other.0, one.1 + other.1);
    println!(
        "{cases} cases over {} calls: {killed} children ended early, {failed} requests failed",
        all.len()
    );
    assert!(killed >= cases / 4 && failed > 0, "{killed} killed, {failed} failed of {cases}");
}

/// A kind of call, and what stands in its line.
type Kind = (&'static str, &'static str);

/// The steps of writing and publishing, each by a call that makes it and by the one that comes when it has taken
/// effect.
const STEPS: &[(&str, Kind, Kind)] = &[
    ("append to the write-ahead log", ("pwrite64", "/ledger.db-wal>"), ("fdatasync", "/ledger.db-wal>")),
    ("sync of the write-ahead log", ("fdatasync", "/ledger.db-wal>"), ("pwrite64", "/log.db-wal>")),
    ("transaction of the lock", ("pwrite64", "/log.db-wal>"), ("fdatasync", "/log.db-wal>")),
    ("tile of hashes", ("openat", "/tile/0/000.p/."), ("fsync", "/tile/0/000.p>")),
    ("bundle of leaves", ("openat", "/tile/entries/000.p/."), ("fsync", "/tile/entries/000.p>")),
    ("checkpoint", ("openat", "/log/.checkpoint.new"), ("fsync", "/log>")),
];

/// A late call of a kind about something: by then the store and the log are there, and have something to lose. Not the
/// last one, for how many pages a transaction touches depends a little on keys and hashes.
fn late(calls: &[(Call, String)], kind: Kind) -> Call {
    let found: Vec<&Call> = calls
        .iter()
        .filter(|(call, line)| call.name == kind.0 && line.contains(kind.1))
        .map(|(call, _)| call)
        .collect();
    assert!(!found.is_empty(), "no call {kind:?}");
    found[found.len() * 3 / 4].clone()
}

#[test]
fn each_step_fails_before_and_after_it_took_effect_hangs_and_is_the_last_one() {
    if !can_trace() {
        println!("SKIPPED each_step_fails_before_and_after: strace is missing, or may not trace");
        return;
    }
    let calls = untouched();
    for (step, before, after) in STEPS {
        for (call, what) in [
            (before, "error=EIO"),
            (after, "error=EIO"),
            (before, "delay_enter=700000"),
            (before, "signal=SIGKILL"),
            (after, "signal=SIGKILL"),
        ] {
            let (said, words) = inject(&late(&calls, *call), what);
            let killed = what.ends_with("SIGKILL");
            assert_eq!(said.ended, !killed, "{step}: {what}");
            if what.starts_with("error") {
                let hit = words.lines().any(|line| line.contains("(INJECTED)") && line.contains(call.1));
                assert!(hit, "{step}: {what} hit something else");
                assert!(said.failed > 0 || said.heads.len() == ROUNDS, "{step}: {what}");
            }
        }
    }
}

#[test]
fn while_a_writer_hangs_in_a_sync_others_read_and_nobody_takes_its_log() {
    if !can_trace() {
        println!("SKIPPED while_a_writer_hangs: strace is missing, or may not trace");
        return;
    }
    let call = late(&untouched(), ("fdatasync", "/log.db-wal>"));
    let folder = tempfile::tempdir().unwrap();
    let words = tempfile::NamedTempFile::new().unwrap();
    let places = LogPlaces::beside(&folder.path().join("ledger"));
    let option = format!("inject=fdatasync:delay_enter=4000000:when={}", call.number);
    std::thread::scope(|scope| {
        let child = scope.spawn(|| trace(folder.path(), std::slice::from_ref(&option), words.path()));
        // It hangs once it has said all but the last checkpoint; until then it goes on at its own pace.
        let mut busy = 0;
        let start = Instant::now();
        while !child.is_finished() && start.elapsed() < CASE_MAX {
            // The child makes the log, else it comes to fewer calls. It is free again when the child is gone.
            if places.checkpoint().exists()
                && let Err(LogError::Busy { .. }) = Log::open(&places)
            {
                busy += 1;
            }
            if let Ok(reader) = SqliteReader::open(&places.database) {
                reader.integrity_check().unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let said = child.join().unwrap();
        assert!(busy > 10, "{busy}");
        recovers(folder.path(), &said, &option);
    });
}
