//! Writers that die. The child process is this test binary itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use portcullis_core::id::RunId;
use portcullis_ledger::{LedgerError, Refusal, SegmentState, SqliteReader};
use portcullis_proof::Status;

use crate::sample::{Run, open, verified};

const CHILD: &str = "PORTCULLIS_LEDGER_TEST_CHILD";

/// What the child process does: writes runs until it is killed, and says so after every acknowledged append.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let ledger = open(Path::new(&folder));
    let mut out = std::io::stdout().lock();
    let mut runs: Vec<Run> = (0..4).map(|_| Run::start(&ledger)).collect();
    // A run in which nothing was ever recorded.
    let empty = Run::start(&ledger);
    writeln!(out, "empty {}", empty.head.run).unwrap();
    for number in 0.. {
        let run = &mut runs[number % 4];
        let action = run.act();
        if number % 3 == 0 {
            run.outcome(action);
        }
        let head = run.commit(&ledger).unwrap();
        writeln!(out, "done {} {} {}", head.run, head.count, head.link).unwrap();
        out.flush().unwrap();
    }
}

struct Writing {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Writing {
    fn start(folder: &Path) -> Writing {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["recovery::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Writing { child, out }
    }

    /// The next thing that the child says it has done; none when it is gone.
    fn next(&mut self) -> Option<Vec<String>> {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            // The test harness prints before the first line and on it.
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let start = words.iter().position(|word| word == "done" || word == "empty");
            if let Some(start) = start.filter(|_| line.ends_with('\n')) {
                return Some(words[start..].to_vec());
            }
            line.clear();
        }
        None
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The last acknowledged head of every run.
fn acknowledged(said: &[Vec<String>]) -> Vec<(RunId, u64, String)> {
    let mut last = std::collections::BTreeMap::new();
    for words in said.iter().filter(|words| words[0] == "done" && words.len() == 4) {
        last.insert(words[1].parse::<RunId>().unwrap(), (words[2].parse().unwrap(), words[3].clone()));
    }
    last.into_iter().map(|(run, (count, link))| (run, count, link)).collect()
}

#[test]
fn a_killed_writer_loses_nothing_that_was_acknowledged() {
    for acknowledgements in [1, 7, 40] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Writing::start(folder.path());
        let mut said: Vec<_> = (0..=acknowledgements).map(|_| child.next().unwrap()).collect();
        child.kill();
        said.extend(std::iter::from_fn(|| child.next()));
        let ledger = open(folder.path());
        let report = ledger.recovery_report();
        assert_eq!((report.recovered.len(), report.living, report.damaged.len()), (5, 0, 0));
        let empty: RunId = said[0][1].parse().unwrap();
        assert_eq!(ledger.read(|reader| reader.run(empty)).unwrap(), None);
        let acknowledged = acknowledged(&said);
        for (run, count, link) in &acknowledged {
            let events = ledger.read(|reader| reader.events(*run, count - 1, 1)).unwrap();
            assert_eq!((events[0].seq, &events[0].link.to_string()), (*count, link));
            let verified = verified(folder.path(), *run);
            assert_eq!((verified.status, verified.state), (Status::Valid, Some(SegmentState::Abandoned)));
        }
        let unknown: u64 = report.recovered.iter().map(|segment| segment.outcomes_unknown).sum();
        assert!(acknowledgements < 7 || unknown > 0);
        let integrity = ledger.read(SqliteReader::integrity_check).unwrap();
        assert_eq!(integrity.problems, Vec::<String>::new());
        // The run goes on: after the first recovery there is nothing left to recover.
        let (run, ..) = acknowledged[0].clone();
        let mut next = Run::segment(&ledger, run, None).unwrap();
        let action = next.act();
        next.outcome(action);
        next.close();
        next.commit(&ledger).unwrap();
        drop(ledger);
        assert_eq!(open(folder.path()).recovery_report().recovered, []);
        assert_eq!(verified(folder.path(), run).segments, 2);
        assert_eq!(std::fs::read_dir(folder.path().join("writers")).unwrap().count(), 0);
    }
}

#[test]
fn a_living_sibling_is_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Writing::start(folder.path());
    let said: Vec<_> = (0..10).map(|_| child.next().unwrap()).collect();
    let ledger = open(folder.path());
    assert_eq!(ledger.recovery_report().recovered, []);
    assert_eq!(ledger.recovery_report().living, 5);
    let (run, ..) = acknowledged(&said)[0].clone();
    assert!(matches!(
        Run::segment(&ledger, run, None).map(drop),
        Err(LedgerError::Refused(Refusal::RunOwned { .. }))
    ));
    // Both write.
    let mut own = Run::start(&ledger);
    for _ in 0..20 {
        let action = own.act();
        own.outcome(action);
        own.commit(&ledger).unwrap();
        child.next().unwrap();
    }
    assert_eq!(ledger.recover_blocking().unwrap().recovered, []);
    child.kill();
    // The dead writer's run can be taken over at once; recovery closes the others, and not ours.
    let mut taken = Run::segment(&ledger, run, None).unwrap();
    taken.act();
    taken.commit(&ledger).unwrap();
    let report = ledger.recover_blocking().unwrap();
    assert_eq!((report.recovered.len(), report.living), (4, 0));
    own.close();
    own.commit(&ledger).unwrap();
    assert_eq!(verified(folder.path(), own.head.run).status, Status::Valid);
    assert_eq!(verified(folder.path(), run).segments, 2);
}

/// A process that was stopped for so long that its lock was taken away by hand must not write into a segment
/// that a successor has closed.
#[test]
fn a_writer_that_was_taken_for_dead_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let mut run = Run::start(&ledger);
    run.act();
    run.commit(&ledger).unwrap();
    std::fs::remove_file(folder.path().join(format!("writers/{}.lock", ledger.writer_id()))).unwrap();
    let successor = open(folder.path());
    assert_eq!(successor.recovery_report().recovered.len(), 1);
    run.act();
    assert!(matches!(
        run.commit(&ledger),
        Err(LedgerError::Refused(Refusal::SegmentEnded { state: SegmentState::Abandoned, .. }))
    ));
    assert_eq!(verified(folder.path(), run.head.run).status, Status::Valid);
    std::thread::sleep(Duration::from_millis(1));
}
