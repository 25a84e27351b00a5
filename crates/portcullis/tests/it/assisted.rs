//! `portcullis contract` with a model and with a guard program as the judge.
//!
//! The cassettes of `examples/contracts` are recorded here, from a stand-in that answers by rule, whenever the tests run
//! with `UPDATE_EXPECT=1`. Otherwise they are held to be what would be recorded, and replayed without a server.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::{Ran, portcullis, project, run, run_with};
use crate::stand_in::StandIn;

const PROMPT: &str = "What is served?";
const NO_COMMAS: &str = "Do not use commas.";
const THANKS: &str = "The reply thanks the reader for asking.";
/// Mends the length, then also the thanks.
const REWRITES: &[&str] = &[
    "We serve tea to all of our guests and after that coffee.",
    "Thank you for asking. We serve tea first and after that, coffee.",
];

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

/// What is shown in the manual, with the cassette that it runs from.
struct Example {
    cassette: &'static str,
    args: &'static [&'static str],
    rewrites: &'static [&'static str],
    asked: &'static str,
    code: i32,
}

const EXAMPLES: &[Example] = &[
    Example {
        cassette: "check.cassette",
        args: &[
            "contract",
            "check",
            "examples/contracts/reply.md",
            "--contracts",
            "examples/contracts/contracts.json",
        ],
        rewrites: &[""],
        asked: "D",
        code: 1,
    },
    Example {
        cassette: "repair.cassette",
        args: &[
            "contract",
            "repair",
            "examples/contracts/reply.md",
            "--contracts",
            "examples/contracts/contracts.json",
            "--prompt",
            PROMPT,
            "--strategy",
            "retry",
        ],
        rewrites: REWRITES,
        asked: "DRDRDA",
        code: 0,
    },
    Example {
        cassette: "eval.cassette",
        args: &[
            "eval",
            "policy-guard",
            "--data",
            "examples/contracts/replies.jsonl",
            "--strategy",
            "mechanical",
            "--strategy",
            "batch",
            "--strategy",
            "best-of-n",
            "--candidates",
            "2",
        ],
        rewrites: &[
            "Tea is a drink of leaves and hot water that many people enjoy in the morning. Thank you for asking.",
        ],
        asked: "",
        code: 0,
    },
];

/// A cassette without what differs from one recording to the next.
pub(crate) fn without_times(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if let Some(ms) = value.get_mut("ms") {
            *ms = json!(25);
        }
        value.to_string() + "\n"
    };
    text.lines().map(line).collect()
}

fn example(name: &str) -> PathBuf {
    project().join("examples/contracts").join(name)
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

/// Standard output without how long things took.
fn untimed(ran: &Ran) -> String {
    ran.stdout.lines().filter(|line| !line.contains(" us p50")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_examples_run_from_cassettes_that_are_what_would_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    for Example { cassette, args, rewrites, asked, code } in EXAMPLES {
        let server = StandIn::start(rewrites);
        let (model, fresh) = (server.model(), folder.path().join(cassette));
        let live = run(&with(args, &["--model", &model, "--cassette", path(&fresh), "--record"]));
        assert_eq!(live.code, *code, "{}\n{}", live.stdout, live.stderr);
        if !asked.is_empty() {
            assert_eq!(server.asked(), *asked, "{cassette}");
        }
        let (recorded, kept) = (without_times(&fresh), example(cassette));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&kept, &recorded).unwrap();
        }
        assert_eq!(recorded, without_times(&kept), "record it again with UPDATE_EXPECT=1");
        // Without a server, the same comes out.
        let replayed = run(&with(args, &["--model", "stand-in", "--cassette", path(&kept)]));
        assert_eq!((replayed.code, untimed(&replayed)), (*code, untimed(&live)), "{}", replayed.stderr);
    }
}

fn repair(server: &StandIn, more: &[&str]) -> (Ran, Value) {
    let model = server.model();
    let args = ["contract", "repair", "-c", NO_COMMAS, "-c", THANKS, "--model", &model, "--json"];
    let ran = run_with(&with(&args, more), b"Tea, then coffee.\n");
    let lines = ran.json();
    let record = lines.into_iter().next().unwrap();
    (ran, record)
}

#[test]
fn strategies_ask_as_they_say() {
    let clean = "Thank you for asking. Tea then coffee.";
    for (more, asked, code) in [
        (&["--strategy", "mechanical"][..], "D", 1),
        (&[], "DR", 2),
        (&["--strategy", "batch", "--verify"], "DRD", 0),
        (&["--no-degrade"], "DRD", 0),
        (&["--strategy", "iterative"], "DRD", 0),
        (&["--strategy", "retry"], "DRD", 0),
        (&["--strategy", "best-of-n"], "DRD", 0),
        (&["--strategy", "map-reduce", "--verify"], "DRMD", 0),
        (&["--strategy", "retry", "--prompt", PROMPT], "DRDA", 0),
        (&["--strategy", "retry", "--prompt", PROMPT, "--no-post-check"], "DRD", 0),
        (&["--strategy", "retry", "--budget-calls", "2"], "DR", 1),
    ] {
        let server = StandIn::start(&[clean]);
        let (ran, record) = repair(&server, more);
        assert_eq!((server.asked().as_str(), ran.code), (asked, code), "{more:?} {}", ran.stdout);
        assert_eq!(record["assist"]["spent"]["calls"], asked.len(), "{more:?}");
    }
    // Candidates that stay broken use up their number, and the reply that came stays.
    let server = StandIn::start(&["Coffee."]);
    let (ran, record) = repair(&server, &["--strategy", "best-of-n", "--candidates", "3"]);
    assert_eq!((server.asked().as_str(), ran.code), ("DRDRDRD", 1));
    assert_eq!((&record["repaired"], &record["assist"]["chosen"]), (&json!("Tea; then coffee."), &json!(0)));
}

#[test]
fn what_code_decides_is_not_asked() {
    let server = StandIn::start(&[""]);
    let model = server.model();
    let args = ["contract", "repair", "-c", NO_COMMAS, "--model", &model, "--strategy", "best-of-n"];
    let ran = run_with(&args, b"Tea, then coffee.\n");
    assert_eq!((ran.code, server.asked().as_str(), ran.stdout.as_str()), (0, "", "Tea; then coffee.\n"));
    let single = ["contract", "check", "-c", NO_COMMAS, "-c", THANKS, "-c", "Be kind.", "--model", &model];
    let ran = run_with(&with(&single, &["--detect", "single"]), b"Thank you.");
    assert_eq!((ran.code, server.asked().as_str()), (1, "DD"));
    assert!(ran.stdout.contains(
        "pass  c2  The reply thanks the reader for asking.: The reply says thank you. (by the model)"
    ));
}

#[test]
fn a_dead_server_is_named_and_the_reply_is_not_lost() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let model = format!("http://127.0.0.1:{port}/v1/m");
    let args = ["contract", "repair", "-c", NO_COMMAS, "-c", THANKS, "--model", &model];
    let ran = run_with(&args, b"Tea, then coffee.\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "Tea; then coffee.\n"));
    assert!(ran.stderr.contains("error: cannot reach the model's server"), "{}", ran.stderr);

    // Of many replies, the first that nobody answers for ends it.
    let lines = [json!({"key": 1, "response": "Tea."}), json!({"key": 2, "response": "Tea."})];
    let input = format!("{}\n{}\n", lines[0], lines[1]);
    let args = ["contract", "check", "--jsonl", "-c", THANKS, "--model", &model];
    let ran = run_with(&args, input.as_bytes());
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("stopped at line 1: cannot reach"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("line 2"), "{}", ran.stdout);
}

#[test]
fn command_lines_that_cannot_be_meant_are_refused() {
    for (args, says) in [
        (&["contract", "repair", "-c", NO_COMMAS, "--strategy", "retry"][..], "none is named"),
        (&["contract", "repair", "-c", NO_COMMAS, "--strategy", "magic"], "is no strategy"),
        (&["contract", "check", "-c", NO_COMMAS, "--model", "m"], "where it is served"),
        (&["contract", "check", "-c", NO_COMMAS, "--cassette", "c"], "--model"),
        (&["contract", "check", "-c", NO_COMMAS, "--model", "m", "--budget-cost", "1"], "--prices"),
        (
            &[
                "contract",
                "repair",
                "-c",
                NO_COMMAS,
                "--model",
                "http://127.0.0.1:9/v1/m",
                "--candidates",
                "0",
                "--strategy",
                "retry",
            ],
            "rewrites",
        ),
    ] {
        let ran = run_with(args, b"Tea.");
        assert_eq!(ran.code, 64, "{args:?} {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?} {}", ran.stderr);
    }
    let mut command = portcullis(&[
        "contract",
        "check",
        "-c",
        "Be kind.",
        "--model",
        "http://127.0.0.1:9/v1/m",
        "--key-env",
        "NO_SUCH_KEY",
    ]);
    let ran: Ran = command.output().unwrap().into();
    assert!(ran.code == 3 && ran.stderr.contains("no variable `NO_SUCH_KEY`"), "{}", ran.stderr);
}

/// A program in a folder of its own.
fn program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("judge.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_guard_program_judges() {
    let folder = tempfile::tempdir().unwrap();
    let judge = |script: &str, more: &[&str]| {
        let program = program(folder.path(), script);
        let args = ["contract", "check", "-c", NO_COMMAS, "-c", THANKS, "--judge", path(&program)];
        run_with(&with(&args, more), b"Tea.")
    };
    let says = |verdicts: &str| format!("cat > \"$0.in\"; echo '{{\"verdicts\": [{verdicts}]}}'");
    let ran = judge(&says(r#"{"id": "c2", "holds": true, "explanation": "It does."}"#), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("It does. (by the judge)"), "{}", ran.stdout);
    let asked: Value = serde_json::from_slice(&fs::read(folder.path().join("judge.sh.in")).unwrap()).unwrap();
    assert_eq!(asked, json!({"reply": "Tea.", "statements": [{"id": "c2", "statement": THANKS}]}));
    assert_eq!(judge(&says(r#"{"id": "c2", "holds": false}"#), &[]).code, 1);
    assert_eq!(judge(&says(r#"{"id": "c2", "holds": null}"#), &[]).code, 2);

    // Whatever else it does, nothing passes.
    for (script, more, why) in [
        (says(""), &[][..], "did not judge `c2`"),
        (says(r#"{"id": "c2", "holds": true}, {"id": "c2", "holds": true}"#), &[], "judged `c2` twice"),
        (says(r#"{"id": "c2", "holds": true}, {"id": "c1", "holds": true}"#), &[], "was not asked about"),
        (says(r#"{"id": "c2", "holds": "Yes"}"#), &[], "something else than verdicts"),
        ("echo Yes".to_owned(), &[], "something else than verdicts"),
        (
            says(r#"{"id": "c2", "holds": true}"#) + "; echo broken pipe >&2; exit 3",
            &[],
            "exit status: 3: broken pipe",
        ),
        ("exec sleep 60".to_owned(), &["--judge-timeout", "0.3"], "did not answer within 0.3 s"),
        ("exec tr '\\0' x < /dev/zero".to_owned(), &["--judge-timeout", "1"], "judge"),
    ] {
        let ran = judge(&script, more);
        assert_eq!(ran.code, 3, "{script}: {}", ran.stdout);
        assert!(ran.stdout.contains("n/a   c2") && ran.stderr.contains(why), "{script}: {}", ran.stderr);
    }
    let args = ["contract", "check", "-c", THANKS, "--judge", "/no/such/program"];
    assert!(run_with(&args, b"Tea.").stderr.contains("cannot be started"));
}

#[test]
fn contracts_of_a_file_say_what_they_are_worth() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contracts.json");
    let phrase = "Include the phrase \"tea, please\".";
    let contracts = json!([{"statement": NO_COMMAS, "rank": 2}, {"statement": phrase, "rank": 1}]);
    fs::write(&file, contracts.to_string()).unwrap();
    let server = StandIn::start(&["I want tea, please."]);
    let model = server.model();
    let args = [
        "contract",
        "repair",
        "--contracts",
        path(&file),
        "--model",
        &model,
        "--strategy",
        "retry",
        "--json",
    ];
    let ran = run_with(&args, b"I want coffee.");
    let record = &ran.json()[0];
    // Both cannot hold; the one of rank 2 gives way.
    assert_eq!(record["assist"]["gave_way"], json!(["c1"]), "{}", ran.stdout);
    assert_eq!(record["repaired"], "I want tea, please.");
    fs::write(&file, json!([{"statement": NO_COMMAS, "rank": 2}, phrase]).to_string()).unwrap();
    let ran = run_with(&["contract", "check", "--contracts", path(&file)], b"I want coffee.");
    assert!(ran.code == 3 && ran.stderr.contains("contract 2 has no rank"), "{}", ran.stderr);
}
