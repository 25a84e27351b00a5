//! What becomes of a daemon whose files are taken away, of one that is asked to listen elsewhere, and of those who wait.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use portcullis_gateway::client::Proposed;
use portcullis_session::surface::Surface as _;

use crate::command::Ran;
use crate::daemon::{State, open, proposal, runtime};

#[test]
fn serving_elsewhere_beside_a_daemon_is_an_error() {
    let state = State::new();
    let mut first = state
        .command(&["serve", "--http", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The second waits until the first listens.
    let same = state.run(&["serve", "--http", "127.0.0.1:0"]);
    assert_eq!(same.code, 0, "any port of that address is as asked: {}", same.stderr);
    let other = state.run(&["serve", "--http", "127.0.0.1:7"]);
    assert_eq!(other.code, 1, "{}", other.stderr);
    for words in ["not HTTP on 127.0.0.1:7", "it serves HTTP on 127.0.0.1:", &first.id().to_string()] {
        assert!(other.stderr.contains(words), "{words}: {}", other.stderr);
    }
    let console = state.run(&["serve", "--console", "127.0.0.1:0"]);
    assert_eq!(console.code, 1, "{}", console.stderr);
    assert!(console.stderr.contains("not the console on"), "{}", console.stderr);
    assert_eq!(state.run(&["serve"]).code, 0);
    for wrong in ["7777", "localhost:7777"] {
        let ran = state.run(&["serve", "--http", wrong]);
        assert_eq!(ran.code, 64);
        assert!(ran.stderr.contains("such as 127.0.0.1:7777"), "{}", ran.stderr);
    }
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = state.path("elsewhere");
    let taken = held.local_addr().unwrap().to_string();
    let ran = state.run(&["serve", "--http", &taken, "--home", elsewhere.to_str().unwrap()]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("choose another port"), "{}", ran.stderr);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_socket_that_was_removed_comes_back() {
    let state = State::new();
    assert_eq!(state.run(&["runs", "list"]).code, 0);
    let pid = fs::read_to_string(state.home().join("daemon.pid")).unwrap();
    fs::remove_file(state.home().join("gate.sock")).unwrap();
    let after = state.run(&["runs", "list"]);
    assert_eq!(after.code, 0, "{}", after.stderr);
    assert_eq!(fs::read_to_string(state.home().join("daemon.pid")).unwrap(), pid, "it is the same daemon");
}

/// Ends a daemon and waits until it is gone.
fn end(pid: &str) {
    std::process::Command::new("kill").arg(pid).status().unwrap();
    for _ in 0..200 {
        if !std::path::Path::new("/proc").join(pid).exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("process {pid} did not end");
}

#[test]
fn a_token_that_is_gone_or_other_is_told_as_that() {
    let state = State::new();
    assert_eq!(state.run(&["runs", "list"]).code, 0);
    let token = state.home().join("credentials/approver.token");
    let kept = fs::read_to_string(&token).unwrap();
    fs::remove_file(&token).unwrap();
    let asked = Instant::now();
    let gone = state.run(&["approvals", "list"]);
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    assert!(
        gone.stderr.contains("put the file back") && gone.stderr.contains("approver.token"),
        "{}",
        gone.stderr
    );
    assert!(asked.elapsed() < Duration::from_secs(8), "nothing is waited for");
    let doctor = state.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{}", doctor.stdout);
    assert!(doctor.stdout.contains("approver.token is gone"), "{}", doctor.stdout);

    // One that could be guessed is none, for the doctor and for the next daemon.
    fs::write(&token, "wrong\n").unwrap();
    std::process::Command::new("chmod").arg("600").arg(&token).status().unwrap();
    let other = state.run(&["approvals", "list"]);
    assert!(other.stderr.contains("put the old one back"), "{}", other.stderr);
    let doctor = state.run(&["doctor"]);
    assert!(doctor.stdout.contains("holds no token that was made here"), "{}", doctor.stdout);
    let pid = fs::read_to_string(state.home().join("daemon.pid")).unwrap();
    end(pid.trim());
    let refused = state.run(&["serve"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("holds no token that was made here"), "{}", refused.stderr);
    fs::write(&token, kept).unwrap();
    assert_eq!(state.run(&["approvals", "list"]).code, 0);
}

#[test]
fn an_approval_whose_run_has_ended_says_so() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let Proposed::Stopped(held) = runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap() else {
        panic!()
    };
    let approval = held.judged.approval.unwrap().to_string();
    runtime.block_on(run.close()).unwrap();
    drop(run);
    state.until_closed();
    let shown = state.run(&["approvals", "show", &approval]);
    assert!(
        shown.stdout.starts_with("expired") && shown.stdout.contains("its run has ended"),
        "{}",
        shown.stdout
    );
    for args in [&["grant", &approval, "--shown", "0123456789ab"][..], &["refuse", &approval]] {
        let ran = state.run(&[&["approvals"], args].concat());
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("no live run"), "{}", ran.stderr);
    }
    let refused = state.run(&["approvals", "refuse", &approval]);
    assert!(refused.stderr.contains("its run has ended"), "{}", refused.stderr);
}

#[test]
fn a_list_says_that_there_is_more_and_its_reader_may_leave() {
    let state = State::new();
    let runtime = runtime();
    for _ in 0..3 {
        let run = runtime.block_on(open(&state));
        runtime.block_on(run.close()).unwrap();
    }
    let some = state.run(&["runs", "list", "--limit", "2"]);
    assert_eq!(some.stdout.lines().count(), 4, "{}", some.stdout);
    assert!(some.stdout.contains("there are more: --limit 4"), "{}", some.stdout);
    let all = state.run(&["runs", "list", "--limit", "3"]).stdout;
    assert!(!all.contains("more"), "{all}");
    assert_eq!(state.run(&["runs", "list", "--limit", "2", "--json"]).json().len(), 2);
    let mut left =
        state.command(&["runs", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(left.stdout.take());
    let left = Ran::from(left.wait_with_output().unwrap());
    assert_eq!((left.code, left.stderr.as_str()), (0, ""));
    let other = state.run(&["export", "zzz"]);
    assert!(!other.stderr.contains("ledger rejected"), "{}", other.stderr);
}

#[test]
fn what_cannot_be_undone_is_not_done_unseen() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let id = run.id().to_string();
    runtime.block_on(run.close()).unwrap();
    drop(run);
    state.until_closed();
    let refused = state.run(&["erase", &id]);
    assert_eq!(refused.code, 64, "{}", refused.stderr);
    assert!(refused.stderr.contains("--dry-run") && refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert_eq!(state.run(&["erase", &id, "--yes"]).code, 0);
    let accept = state.run(&["tools", "accept", "rotate_keys"]);
    assert_eq!(accept.code, 64, "{}", accept.stderr);
    assert!(accept.stderr.contains("--digest"), "{}", accept.stderr);
}
