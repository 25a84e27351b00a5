//! `portcullis freeze` as people use it, and what agents are told on each surface.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use portcullis_gateway::api::ProposeAction;
use portcullis_gateway::client::Run;
use portcullis_session::surface::Surface as _;
use serde_json::{Value, json};

use crate::command::{Ran, project, run_with};
use crate::daemon::{State, open, runtime};

const NOTE: &str = "odd payments";

fn search(query: &str) -> ProposeAction {
    ProposeAction {
        tool: Some("retrieve_compliance_documents".into()),
        arguments: json!({"query": query}),
        ..ProposeAction::default()
    }
}

fn ok(state: &State, args: &[&str]) -> Ran {
    let ran = state.run(args);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}: {}", ran.stdout);
    ran
}

/// The rule of the denial, or `None` for a permit.
fn denied(runtime: &tokio::runtime::Runtime, run: &Run, query: &str) -> Option<String> {
    let proposed = runtime.block_on(run.propose(search(query))).unwrap();
    proposed.denial().map(|denial| denial.rule.clone())
}

#[test]
fn the_gate_in_front_of_a_server_tells_the_agent_that_a_person_froze_it() {
    let state = State::new();
    let workspace = state.home().join("workspace");
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let args = ["mcp", "--session", "one", "--", binary, "demo-server", workspace.to_str().unwrap()];
    let mut gate = state.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut to_gate = gate.stdin.take().unwrap();
    let mut answers = BufReader::new(gate.stdout.take().unwrap()).lines();
    let mut ask = |id: u32, method: &str, params: Value| -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(to_gate, "{request}").unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    let client = json!({"name": "test", "version": "1"});
    ask(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
    let sum = json!({"name": "perform_calculation", "arguments": {"expression": "40 + 2"}});
    assert_eq!(ask(2, "tools/call", sum.clone())["result"]["isError"], false);
    ok(&state, &["freeze", "--all", "--note", NOTE]);
    let frozen = ask(3, "tools/call", sum.clone());
    assert_eq!(frozen["result"]["isError"], true, "{frozen}");
    assert_eq!(frozen["result"]["structuredContent"]["class"], "frozen");
    let text = frozen["result"]["content"][0]["text"].as_str().unwrap();
    for part in ["a person froze the run", NOTE, "Repeating the same call will not help"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let mail = json!({"name": "send_email", "arguments": {"recipient": "a@example.com", "subject": "x", "body": "y"}});
    ok(&state, &["freeze", "release", "--all", "--reads"]);
    assert_eq!(ask(4, "tools/call", sum)["result"]["isError"], false);
    assert_eq!(ask(5, "tools/call", mail.clone())["result"]["structuredContent"]["rule"], "run/frozen");
    ok(&state, &["freeze", "release", "--all"]);
    let by_policy = ask(6, "tools/call", mail);
    assert_eq!(by_policy["result"]["structuredContent"]["rule"], "runtime-policy/tool-type");
    drop(to_gate);
    assert_eq!(gate.wait().unwrap().code(), Some(0));
}

#[test]
fn the_hook_of_a_coding_agent_denies_while_it_is_frozen() {
    let state = State::new();
    let decision = || -> (String, String) {
        let input = fs::File::open(project().join("crates/portcullis/tests/it/hook/pre-read.json")).unwrap();
        let mut hook = state.command(&["hook"]);
        let ran = Ran::from(hook.env("HOME", "/home/dev").stdin(input).output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
        let [answer] = ran.json().try_into().unwrap();
        let of = |name: &str| answer["hookSpecificOutput"][name].as_str().unwrap_or_default().to_owned();
        (of("permissionDecision"), of("permissionDecisionReason"))
    };
    assert_eq!(decision().0, "allow");
    ok(&state, &["freeze", "--all", "--note", NOTE]);
    let (decided, reason) = decision();
    assert_eq!(decided, "deny");
    assert!(reason.contains("a person froze the run") && reason.contains(NOTE), "{reason}");
    ok(&state, &["freeze", "release", "--all"]);
    assert_eq!(decision().0, "allow");
}

#[test]
fn a_freeze_survives_the_death_of_the_daemon() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    assert_eq!(denied(&runtime, &run, "a"), None);
    ok(&state, &["freeze", "--all", "--note", NOTE]);
    let pid = fs::read_to_string(state.home().join("daemon.pid")).unwrap();
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    // The client starts another daemon and takes up its run.
    assert_eq!(denied(&runtime, &run, "b").as_deref(), Some("run/frozen"));
    assert_ne!(fs::read_to_string(state.home().join("daemon.pid")).unwrap(), pid);
    let [freeze] = ok(&state, &["freeze", "list", "--json"]).json().try_into().unwrap();
    assert_eq!((&freeze["scope"], &freeze["stops"]), (&"all".into(), &"everything".into()));
    assert_eq!(
        (&freeze["frozen"]["by"], &freeze["frozen"]["note"]),
        (&"local-approver".into(), &NOTE.into())
    );
    let listed = ok(&state, &["runs", "list"]).stdout;
    assert!(listed.contains("  frozen  "), "{listed}");
    let checks = ok(&state, &["doctor", "--json"]).json();
    assert!(checks.iter().any(|check| check["name"] == "freezes" && check["result"] == "warn"), "{checks:?}");

    ok(&state, &["freeze", "release", "--all"]);
    assert_eq!(denied(&runtime, &run, "b"), None);
    // The record has both, and its verdicts can be computed again from it.
    let id = run.id().to_string();
    let export = state.home().join("run.export");
    ok(&state, &["export", &id, "-o", export.to_str().unwrap()]);
    let bytes = fs::read(&export).unwrap();
    let ran = run_with(&["verify", "-", "--replay", "--json"], &bytes);
    let lines = ran.json();
    let sums = lines.last().unwrap();
    assert!(
        sums["record"] == "replay" && sums["differ"] == 0 && sums["same"] == sums["verdicts"],
        "{}",
        ran.stdout
    );
    let told = ok(&state, &["runs", "events", &id]).stdout;
    for event in ["freeze by approver:local-approver: odd payments", "release by approver:local-approver"] {
        assert!(told.contains(event), "{event} in {told}");
    }
}

#[test]
fn what_is_frozen_or_released_twice_is_said() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let id = run.id().to_string();
    let prefix: String = id.chars().take(16).collect();
    let frozen = ok(&state, &["freeze", "--run", &prefix]).stdout;
    assert!(frozen.starts_with(&format!("frozen  run {id}, 1 live run stopped\n")), "{frozen}");
    assert!(frozen.contains(&format!("portcullis freeze release --run {prefix}`")), "{frozen}");
    let again = ok(&state, &["freeze", "--run", &id]).stdout;
    assert!(again.starts_with("already frozen  ") && again.contains("nothing changed"), "{again}");
    let nobody = ok(&state, &["freeze", "--principal", "no body"]).stdout;
    assert!(nobody.contains("no run of this principal"), "{nobody}");
    assert!(nobody.contains("release --principal 'no body'`"), "{nobody}");
    // Another freeze does not release this one.
    ok(&state, &["freeze", "--all"]);
    let held = ok(&state, &["freeze", "release", "--all"]).stdout;
    assert!(held.contains("still frozen by other freezes: 1 live run;"), "{held}");
    assert_eq!(denied(&runtime, &run, "a").as_deref(), Some("run/frozen"));
    let not = state.run(&["freeze", "release", "--all"]);
    assert_eq!(not.code, 1);
    assert!(
        not.stderr.contains("there is no freeze of all runs; `portcullis freeze list`"),
        "{}",
        not.stderr
    );
    let reads = ok(&state, &["freeze", "release", "--run", &id, "--reads"]).stdout;
    assert!(reads.starts_with("reads released  run "), "{reads}");
    let twice = ok(&state, &["freeze", "release", "--run", &id, "--reads"]).stdout;
    assert!(twice.starts_with("reads already released  run "), "{twice}");
    ok(&state, &["freeze", "release", "--run", &id]);
    assert_eq!(denied(&runtime, &run, "a"), None);
    assert_eq!(ok(&state, &["freeze", "list", "--history", "--json"]).json().len(), 3);

    for (wrong, says) in [
        (&["freeze", "--note", "x"][..], "--run <ID>|--principal <NAME>|--all"),
        (&["freeze", "--all", "--run", "0199ab3c"], "cannot be used with"),
        (&["freeze", "--all", "list"], "stand after `list` or `release`"),
        (&["freeze", "release"], "--run <ID>|--principal <NAME>|--all"),
    ] {
        let ran = state.run(wrong);
        assert_eq!(ran.code, 64, "{wrong:?}");
        assert!(ran.stderr.contains(says), "{says} in {}", ran.stderr);
    }
    assert_eq!(state.run(&["freeze", "--run", "00000000"]).code, 1);
}
