//! Completions, as a shell asks for them.

use std::io::Read as _;
use std::process::Stdio;

use crate::command::{Ran, run};
use crate::daemon::State;

/// What is offered for the last of these words.
fn offered(state: &State, words: &[&str]) -> Vec<String> {
    let mut command = state.command(&["--", "portcullis"]);
    command
        .args(words)
        .env("PORTCULLIS_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let ran: Ran = command.output().unwrap().into();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

/// The same without options.
fn ids(state: &State, words: &[&str]) -> Vec<String> {
    offered(state, words).into_iter().filter(|word| !word.starts_with('-')).collect()
}

#[test]
fn every_shell_has_a_script_that_asks_this_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("PORTCULLIS_COMPLETE"), "{shell}: {}", ran.stdout);
    }
}

#[test]
fn commands_options_and_ids_of_runs_are_completed() {
    let state = State::new();
    assert!(offered(&state, &["demo"]).contains(&"demo-server".to_owned()));
    assert!(offered(&state, &["verify", "--"]).contains(&"--trust".to_owned()));
    assert_eq!(ids(&state, &["runs", "show", ""]), Vec::<String>::new(), "there is no store yet");
    assert!(!state.home().exists(), "completing makes nothing");

    assert_eq!(state.run(&["simulate", "--plan", "Calculation Task"]).code, 0);
    let [listed] = state.run(&["runs", "list", "--json"]).json().try_into().unwrap();
    let run = listed["run"].as_str().unwrap();
    for words in [
        &["runs", "show"][..],
        &["runs", "events"],
        &["runs", "halt"],
        &["export"],
        &["governance"],
        &["erase"],
    ] {
        assert_eq!(ids(&state, &[words, &[""]].concat()), [run], "{words:?}");
        assert_eq!(ids(&state, &[words, &[run.get(..8).unwrap()]].concat()), [run], "{words:?}");
        assert_eq!(ids(&state, &[words, &["fffffff"]].concat()), Vec::<String>::new(), "{words:?}");
    }
    let home = state.home();
    let elsewhere = State::new();
    assert_eq!(ids(&elsewhere, &["--home", home.to_str().unwrap(), "runs", "show", ""]), [run]);
}

/// Nothing that is asked of a gate is taken for a question about completions.
#[test]
fn the_variable_alone_changes_nothing() {
    let state = State::new();
    let ran: Ran = state
        .command(&["runs", "list", "--no-such"])
        .env("PORTCULLIS_COMPLETE", "bash")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 64, "{}", ran.stderr);
}

#[test]
fn the_first_lines_of_a_script_or_of_help_are_enough() {
    for args in [&["completions", "bash"][..], &["--help"]] {
        let mut child =
            crate::command::portcullis(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""), "{args:?}");
    }
}
