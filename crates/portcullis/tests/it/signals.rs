//! Ctrl-C and the end of a terminal, which reach every process that runs in it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::daemon::State;

/// Sends a signal to a process and all others of its group.
fn signal(name: &str, group: u32) {
    let target = format!("-{group}");
    assert!(Command::new("kill").args(["-s", name, "--", &target]).status().unwrap().success());
}

#[test]
fn a_signal_from_the_terminal_ends_the_gate_and_its_run_in_good_order() {
    for name in ["INT", "HUP", "TERM"] {
        let state = State::new();
        let workspace = state.home().parent().unwrap().join("workspace");
        let binary = env!("CARGO_BIN_EXE_portcullis");
        let args = ["mcp", "--", binary, "demo-server", workspace.to_str().unwrap()];
        let mut command = state.command(&args);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut gate = command.spawn().unwrap();
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}});
        writeln!(gate.stdin.as_mut().unwrap(), "{hello}").unwrap();
        let mut answers = BufReader::new(gate.stdout.take().unwrap()).lines();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], 1);
        signal(name, gate.id());
        let mut told = String::new();
        gate.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(gate.wait().unwrap().code(), Some(0), "{told}");
        let run = state.until_closed();
        assert!(told.contains(&format!("SIG{name}: run {} ended", run["run"].as_str().unwrap())), "{told}");
        assert!(!told.contains("by itself"), "{told}");
    }
}

#[test]
fn a_daemon_that_loses_its_terminal_closes_its_runs() {
    let state = State::new();
    let mut daemon = state.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("serving")));
    let runtime = crate::daemon::runtime();
    let _run = runtime.block_on(crate::daemon::open(&state));
    assert!(Command::new("kill").args(["-s", "HUP", &daemon.id().to_string()]).status().unwrap().success());
    assert!(log.any(|line| line.unwrap().contains("SIGHUP")));
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    assert_eq!(state.until_closed()["phase"], "closed");
}

#[test]
fn an_interrupted_demo_says_so() {
    let mut command = crate::command::portcullis(&["demo"]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = command.spawn().unwrap();
    let mut shown = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(shown.any(|line| line.unwrap().contains("user:")));
    signal("INT", demo.id());
    let mut told = String::new();
    demo.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("SIGINT: the demo was stopped"), "{told}");
    assert_eq!(demo.wait().unwrap().code(), Some(2), "{told}");
}
