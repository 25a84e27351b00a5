//! Stores that cannot be used: a full disk, a locked database, a corrupt one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use portcullis_core::event::OutcomeStatus;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{OpenRun, ProposeAction, ReportOutcome};
use portcullis_gateway::client::{ClientError, Judged, Run, StartOptions};
use portcullis_gateway::home::Home;
use portcullis_ledger::{OpenOptions, SqliteLedger, SqliteReader};
use portcullis_session::surface::Surface as _;
use serde_json::json;

use super::audit::{events, verify};
use super::world::{daemon, signal, stop_daemon, within, write_bundle};
use crate::command::{Ran, portcullis};

/// A file system so small that a few hundred calls fill it, and the part of it that is freed later.
const DISK: &str = "size=8m";
const BALLAST_BYTES: usize = 3 << 20;
/// Calls after which the disk must be full: each takes more than a kilobyte.
const CALLS_MAX: usize = 4_000;

/// A memory file system, unmounted with this value; none where this user may not mount.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Some(pid) = Home::at(&self.0.join("home")).ok().and_then(|home| daemon(&home)) {
            signal(pid, "KILL");
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_denies_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = SmallDisk::mount(&disk) else {
        println!("SKIPPED: this user may not mount a small file system");
        return;
    };
    write_bundle(&folder.path().join("bundle"));
    let home = Home::at(&disk.join("home")).unwrap();
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![0; BALLAST_BYTES]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (run, acknowledged) = runtime.block_on(fill(&home, &folder.path().join("bundle"), &ballast));
    stop_daemon(&home);

    let reader = SqliteReader::open(&home.ledger()).unwrap();
    verify(&reader, run);
    let events = events(&reader, run);
    for (answer, outcome) in acknowledged {
        let at = |seq: u64| events.get(&seq).and_then(|event| event.body.action());
        assert_eq!(at(answer.seq), Some(answer.action), "the verdict was acknowledged");
        if let Some(outcome) = outcome {
            assert_eq!(at(outcome), Some(answer.action), "the outcome was acknowledged");
        }
    }
}

type Acknowledged = Vec<(Judged, Option<u64>)>;

/// Calls until the disk is full, looks at what the agent is told, frees some of it, and calls again.
async fn fill(home: &Home, bundle: &Path, ballast: &Path) -> (portcullis_core::id::RunId, Acknowledged) {
    let start = StartOptions {
        program: Some(env!("CARGO_BIN_EXE_portcullis").into()),
        bundle: Some(bundle.to_owned()),
        credential: CredentialKind::Agent,
    };
    let open = OpenRun { surface: "test".into(), ..OpenRun::default() };
    let run = Run::open(home, start, open).await.unwrap();
    let mut acknowledged = Vec::new();
    let mut full = None;
    for number in 0..CALLS_MAX {
        match call(&run, number, &mut acknowledged).await {
            Ok(()) => {}
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let before = acknowledged.len();
    let error = full.expect("the disk was never full");
    println!("after {before} calls: {error}");
    let words = error.to_string().to_lowercase();
    assert!(words.contains("full") || words.contains("space"), "the agent is not told why: {error}");
    // No permit comes out of a store that cannot write. A checkpoint may make room in the
    // write-ahead log meanwhile: what is answered then must be in the record like everything else.
    let mut refused_in_a_row = 0;
    for number in 0..CALLS_MAX {
        refused_in_a_row =
            if call(&run, number, &mut acknowledged).await.is_err() { refused_in_a_row + 1 } else { 0 };
        if refused_in_a_row == 5 {
            break;
        }
    }
    assert_eq!(refused_in_a_row, 5, "the disk did not stay full");
    fs::remove_file(ballast).unwrap();
    for number in 0..20 {
        call(&run, number, &mut acknowledged).await.unwrap();
    }
    let id = run.id();
    run.close().await.unwrap();
    (id, acknowledged)
}

async fn call(run: &Run, number: usize, acknowledged: &mut Acknowledged) -> Result<(), ClientError> {
    let proposal = ProposeAction {
        tool: Some("note".into()),
        arguments: json!({"number": number, "text": "x".repeat(1_000)}),
        ..ProposeAction::default()
    };
    let permit = run.propose(proposal).await?.permit().expect("nothing forbids it");
    acknowledged.push((permit.judged().clone(), None));
    let (answer, reported) = acknowledged.last_mut().unwrap();
    let outcome = ReportOutcome::of(answer.action, OutcomeStatus::Ok, Some("noted".into()));
    *reported = Some(run.outcome(outcome).await?.seq);
    Ok(())
}

/// A state folder whose store was used once.
fn used_home(folder: &Path) -> Home {
    let home = Home::at(&folder.join("home")).unwrap();
    fs::create_dir(home.path()).unwrap();
    drop(SqliteLedger::open(&home.ledger(), OpenOptions::default()).unwrap());
    home
}

fn serve(home: &Home) -> Ran {
    let mut child = portcullis(&["serve", "--home"])
        .arg(home.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    if within(Duration::from_secs(30), || child.try_wait().unwrap()).is_none() {
        child.kill().unwrap();
        panic!("it serves a store that cannot be used: {:?}", child.wait_with_output());
    }
    child.wait_with_output().unwrap().into()
}

fn check_refused(ran: &Ran, word: &str) {
    assert!(ran.code == 1 || ran.code == 3, "{}: {}", ran.code, ran.stderr);
    assert!(ran.stderr.contains(word) && ran.stderr.contains("ledger"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn a_corrupt_store_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let home = used_home(folder.path());
    let database = home.ledger().join("ledger.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[..2_048].fill(0x2a);
    fs::write(&database, &bytes).unwrap();
    check_refused(&serve(&home), "not a");
    assert_eq!(fs::read(&database).unwrap(), bytes, "the evidence was changed");
}

#[test]
fn a_locked_store_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let home = used_home(folder.path());
    let holder = rusqlite::Connection::open(home.ledger().join("ledger.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    check_refused(&serve(&home), "lock");
    holder.execute_batch("ROLLBACK").unwrap();
}
