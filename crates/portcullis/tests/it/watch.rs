//! A daemon that comes and goes: who watches it, and the store that it finds. And notes that are too long.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::daemon::{State, ailing, open, proposal, runtime};
use portcullis_session::surface::Surface as _;

/// A daemon that serves.
fn serve(state: &State) -> Child {
    let mut daemon = state.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("serving")));
    // What it says further is read, or it would wait.
    std::thread::spawn(move || log.count());
    // It answers before it is ended: by then it listens for signals too.
    assert_eq!(state.run(&["approvals", "list"]).code, 0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    daemon
}

fn end(mut daemon: Child) {
    let ended = std::process::Command::new("kill").arg(daemon.id().to_string()).status();
    assert!(ended.unwrap().success() && daemon.wait().unwrap().success());
}

#[test]
fn watching_goes_on_when_the_daemon_is_back() {
    let state = State::new();
    let first = serve(&state);
    let mut watch = state
        .command(&["approvals", "watch", "--once", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap()).lines();
    // It has looked once before the daemon goes, or it would take what waits then for known.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    end(first);
    let waits = said.next().unwrap().unwrap();
    assert!(waits.starts_with("waiting for the daemon: "), "{waits}");
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let second = serve(&state);
    assert_eq!(said.next().unwrap().unwrap(), "the daemon is back", "said once");
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    assert!(!runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap().is_permitted());
    let ran: crate::command::Ran = watch.wait_with_output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.json()[0]["tool"], "rotate_keys");
    drop(run);
    end(second);
}

#[test]
fn a_long_note_is_refused_before_anything_is_asked() {
    let state = State::new();
    let note = "x".repeat((16 << 10) + 1);
    for decide in ["grant", "refuse"] {
        let ran = state.run(&["approvals", decide, "3f81c2", "--note", &note]);
        assert_eq!(ran.code, 64, "{}", ran.stderr);
        assert!(ran.stderr.contains("the limit is 16384"), "{}", ran.stderr);
    }
    assert!(!state.home().exists(), "no daemon is started for it");
}

/// A store that is emptied is refused before anything is written, and one that cannot be written is told.
#[test]
fn the_doctor_finds_a_store_that_cannot_be_written_or_is_cut_off() {
    let state = State::new();
    end(serve(&state));
    // One that was never used is well.
    end(serve(&state));
    let database = state.home().join("ledger/ledger.db");
    let aside = state.home().join("ledger/aside");
    // Nobody can write to a folder as to a file, the superuser neither.
    fs::rename(&database, &aside).unwrap();
    fs::create_dir(&database).unwrap();
    let [(name, detail, remedy)] = ailing(&state, &[]).try_into().unwrap();
    assert_eq!(name, "store");
    assert!(detail.contains("could not write `") && detail.contains("ledger.db"), "{detail}");
    assert!(remedy.as_str().unwrap().contains("nothing is decided"), "{remedy}");
    fs::remove_dir(&database).unwrap();
    fs::rename(&aside, &database).unwrap();

    fs::write(&database, "").unwrap();
    let refused = state.run(&["serve"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is truncated") && refused.stderr.contains("ledger.db"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::metadata(&database).unwrap().len(), 0, "nothing is built into it");
    let found = ailing(&state, &[]);
    assert!(found.iter().any(|(_, detail, _)| detail.contains("is truncated")), "{found:?}");
}
