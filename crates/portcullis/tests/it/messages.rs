//! What commands say: numbers with their nouns, and where a credential is looked for.

use std::time::Duration;

use crate::command::Ran;
use crate::daemon::State;

#[test]
fn one_thing_is_not_said_to_be_several() {
    let state = State::new();
    assert_eq!(state.run(&["simulate", "--plan", "Calculation Task"]).code, 0);
    assert_eq!(state.run(&["runs", "list"]).code, 0, "starts the daemon, which makes the log");
    for _ in 0..100 {
        if state.home().join("log/checkpoint").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let checked = state.run(&["fsck"]);
    assert!(checked.stdout.contains("1 run, 14 events"), "{}{}", checked.stdout, checked.stderr);
    for args in [&["fsck"][..], &["log", "status"], &["doctor"]] {
        let shown = state.run(args).stdout;
        for wrong in ["1 runs", "1 leaves", "1 segments", "1 heads", "1 tiles", "1 events"] {
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(!words.starts_with(wrong) && !words.contains(&format!(" {wrong}")), "{args:?}: {shown}");
        }
    }
}

#[test]
fn a_missing_approvers_token_names_its_variable() {
    let state = State::new();
    assert_eq!(state.run(&["runs", "list"]).code, 0, "starts the daemon");
    let with = |args: &[&str]| -> Ran {
        let mut command = state.command(args);
        command.env("PORTCULLIS_APPROVER_TOKEN_FILE", "/no/such/file").output().unwrap().into()
    };
    let listed = with(&["approvals", "list"]);
    assert_eq!(listed.code, 3, "{}", listed.stderr);
    let doctor = with(&["doctor"]);
    for told in [listed.stderr, doctor.stdout] {
        assert!(told.contains("/no/such/file") && told.contains("PORTCULLIS_APPROVER_TOKEN_FILE"), "{told}");
    }
    std::fs::remove_file(state.home().join("credentials/approver.token")).unwrap();
    let removed = state.run(&["approvals", "list"]).stderr;
    assert!(
        removed.contains("approver.token") && removed.contains("PORTCULLIS_APPROVER_TOKEN_FILE"),
        "{removed}"
    );
}
