//! A store that another release wrote: an older one is migrated, a newer one is refused and left as it is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;

use crate::command::Ran;
use crate::daemon::State;

fn database(state: &State) -> PathBuf {
    state.home().join("ledger/ledger.db")
}

fn connect(state: &State) -> Connection {
    Connection::open(database(state)).unwrap()
}

fn format(state: &State) -> i64 {
    connect(state).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn simulated(state: &State) {
    let ran = state.run(&["simulate", "--plan", "Calculation Task"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn runs(state: &State) -> Vec<String> {
    let listed = state.run(&["runs", "list", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    listed.json().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

/// Ends the daemon that `runs list` started, so that nothing has the store open.
fn stop(state: &State) {
    let home = state.home();
    let pid = fs::read_to_string(home.join("daemon.pid")).unwrap();
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    for _ in 0..500 {
        if !home.join("gate.sock").exists() && !home.join("daemon.pid").exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the daemon does not end");
}

#[test]
fn a_store_of_the_release_before_is_read_as_it_is_and_migrated_by_the_first_that_writes() {
    let state = State::new();
    simulated(&state);
    let old = runs(&state).remove(0);
    stop(&state);
    let present = format(&state);
    // As releases of format 6 left it: without facts, and without their name.
    connect(&state)
        .execute_batch("DROP TABLE facts; DELETE FROM meta WHERE key = 'release'; PRAGMA user_version = 6;")
        .unwrap();
    let file = state.home().join("before");
    assert_eq!(state.run(&["export", &old, "-o", file.to_str().unwrap()]).code, 0);
    assert_eq!(state.run(&["fsck"]).code, 0);
    assert_eq!(format(&state), 6, "readers change nothing");

    simulated(&state);
    assert_eq!(format(&state), present);
    let release: String = connect(&state)
        .query_row("SELECT value FROM meta WHERE key = 'release'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(release, env!("CARGO_PKG_VERSION"));
    let all = runs(&state);
    assert!(all.len() == 2 && all.contains(&old), "{all:?}");
    for run in all {
        let file = state.home().join(&run);
        let file = file.to_str().unwrap();
        let trust = format!("{file}.trust");
        assert_eq!(state.run(&["export", &run, "-o", file, "--trust-out", &trust]).code, 0);
        assert_eq!(state.run(&["verify", file, "--trust", &trust]).code, 0, "{run}");
    }
    assert_eq!(state.run(&["fsck"]).code, 0);
}

#[test]
fn a_store_of_a_later_release_is_refused_by_every_command_with_its_name_and_left_as_it_is() {
    let state = State::new();
    simulated(&state);
    let run = runs(&state).remove(0);
    stop(&state);
    connect(&state)
        .execute_batch("UPDATE meta SET value = '9.9.9' WHERE key = 'release'; PRAGMA user_version = 99;")
        .unwrap();
    let before = fs::read(database(&state)).unwrap();
    let refused = |args: &[&str]| {
        let Ran { code, stdout, stderr } = state.run(args);
        let said = format!("{stdout}{stderr}").replace('\n', " ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_ne!(code, 0, "{args:?}: {said}");
        let own = format!("this is release {}", env!("CARGO_PKG_VERSION"));
        for words in ["has format 99, written by release 9.9.9", &own, "install release 9.9.9 again"] {
            assert!(said.contains(words), "{args:?}: {said}");
        }
    };
    refused(&["runs", "list"]);
    refused(&["runs", "show", &run]);
    refused(&["export", &run]);
    refused(&["fsck"]);
    refused(&["doctor"]);
    refused(&["simulate", "--plan", "Calculation Task"]);
    refused(&["serve"]);
    refused(&["erase", &run, "--yes"]);
    assert!(fs::read(database(&state)).unwrap() == before, "the store was changed");

    // Nor is a name believed that a person should not see as it is.
    let name = format!("UPDATE meta SET value = char(27) || '{}'", "x".repeat(99));
    connect(&state).execute_batch(&format!("{name} WHERE key = 'release'")).unwrap();
    let said = state.run(&["fsck"]);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(!said.contains('\u{1b}') && !said.contains(&"x".repeat(41)), "{said}");
    connect(&state).execute_batch("DROP TABLE meta").unwrap();
    let said = state.run(&["fsck"]);
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("written by a later release"), "{said}");
}
