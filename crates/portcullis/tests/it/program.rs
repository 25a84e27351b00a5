//! `portcullis program run`, and hostile programs through it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long the command may take, from its start to its end.
const ENDS_WITHIN: Duration = Duration::from_millis(1_500);
/// How often a program is run before it counts as slow.
const ATTEMPTS: usize = 3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Puts the engine beside `portcullis`, which may mean that it is built first.
fn with_engine() {
    crate::engine::put_into(Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().unwrap());
}

fn program_run(program: &Path, action: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["program", "run"])
        .arg(program)
        .arg("--action")
        .arg(action)
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_program_is_run_on_an_action_of_a_bundle() {
    with_engine();
    let example = root().join("examples/programs");
    let run = |program: &str, action: &str| {
        let bundle = example.to_str().unwrap();
        let program = example.join("programs").join(program);
        let output = program_run(
            &program,
            &root().join("examples/actions").join(action),
            &["--bundle", bundle, "--json"],
        );
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), answer)
    };
    let (code, held) = run("refunds.star", "refund.json");
    assert_eq!((code, held["verdict"].as_str()), (2, Some("review")), "{held}");
    let (code, denied) = run("columns.star", "query.json");
    assert_eq!((code, denied["verdict"].as_str()), (1, Some("deny")), "{denied}");
    assert_eq!(denied["answer"]["objections"][0]["denied"], serde_json::json!(["lab.labname"]));
    let (code, silent) = run("columns.star", "refund.json");
    assert_eq!((code, silent["verdict"].as_str()), (0, Some("allow")), "{silent}");
}

/// Its answer, and the time it took. Tests run beside each other, so what took too long is tried again.
fn quickest(program: &Path, action: &Path) -> (Output, Duration) {
    let timed = || {
        let began = Instant::now();
        let output = program_run(program, action, &["--json"]);
        (output, began.elapsed())
    };
    let mut attempts = (1..ATTEMPTS).map(|_| timed());
    attempts.find(|(_, took)| *took < ENDS_WITHIN).unwrap_or_else(timed)
}

#[test]
fn every_hostile_program_ends_soon_with_a_denial_and_its_reason() {
    with_engine();
    let folder = tempfile::tempdir().unwrap();
    let action = folder.path().join("action.json");
    std::fs::write(&action, r#"{"tool": "read", "args": {"text": "aaaa"}}"#).unwrap();
    let mut slowest = (Duration::ZERO, String::new());
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("crates/portcullis-program/tests/hostile")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (output, took) = quickest(&path, &action);
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(
            (output.status.code(), answer["verdict"].as_str()),
            (Some(1), Some("deny")),
            "{name}: {answer}"
        );
        assert!(answer["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{name}: {answer}");
        assert!(took < ENDS_WITHIN, "{name} took {took:?}");
        slowest = slowest.max((took, name));
        count += 1;
    }
    println!("{count} programs; the slowest took {slowest:?}");
    assert!(count >= 40);
}
