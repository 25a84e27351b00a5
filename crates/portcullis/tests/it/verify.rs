//! `portcullis verify` on a run that the simulator recorded.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_ledger::{ExportOptions, OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::gate::Gate;
use portcullis_session::shipped;
use portcullis_sim::simulator::{Options, simulate};

use crate::command::{run, run_with};

/// A recorded run: its export and its trust file.
struct Recorded {
    _folder: tempfile::TempDir,
    export: PathBuf,
    trust: PathBuf,
}

fn record(plan: &str, policy: &str) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &shipped::default_bundle()).unwrap();
    let gate = Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let options = Options { go_on: true, ..Options::default() };
    let simulation =
        runtime.block_on(simulate(&gate, plan, policy, &folder.path().join("tools"), options)).unwrap();
    let mut export = Vec::new();
    let trust = gate
        .ledger()
        .read(|reader| {
            reader.export_run(simulation.run_id, &mut export, ExportOptions { payloads: true })?;
            reader.trust_text(&[simulation.run_id])
        })
        .unwrap();
    let recorded = Recorded {
        export: folder.path().join("run.export"),
        trust: folder.path().join("run.trust"),
        _folder: folder,
    };
    std::fs::write(&recorded.export, export).unwrap();
    std::fs::write(&recorded.trust, trust).unwrap();
    recorded
}

const PLAN: &str = "Handle Data Access Request";
const STRICT: &str = "Strict Compliance Policy";

#[test]
fn valid_incomplete_invalid_and_unreadable() {
    let recorded = record(PLAN, STRICT);
    let (export, trust) = (recorded.export.to_str().unwrap(), recorded.trust.to_str().unwrap());
    let valid = run(&["verify", export, "--trust", trust]);
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    assert!(valid.stdout.starts_with("VALID\n"), "{}", valid.stdout);
    for check in ["format", "chain", "trajectory", "payloads", "anchor", "closure"] {
        assert!(valid.stdout.contains(&format!("  {check:<11} pass")), "{check} in {}", valid.stdout);
    }
    let text = std::fs::read(export).unwrap();
    let alone = run_with(&["verify", "-"], &text);
    assert_eq!(alone.code, 2);
    assert!(
        alone.stdout.starts_with("INCOMPLETE\n") && alone.stdout.contains("--trust FILE"),
        "{}",
        alone.stdout
    );

    let tampered = String::from_utf8(text).unwrap().replacen("\"deny\"", "\"warn\"", 1);
    let invalid = run_with(&["verify", "-", "--trust", trust], tampered.as_bytes());
    assert_eq!(invalid.code, 1);
    assert!(invalid.stdout.starts_with("INVALID event-altered\n  at line "), "{}", invalid.stdout);
    let json = run_with(&["verify", "-", "--trust", trust, "--json"], tampered.as_bytes());
    let [report] = json.json().try_into().unwrap();
    assert_eq!(
        (&report["status"], &report["failure"]["attack"]),
        (&"INVALID".into(), &"event-altered".into())
    );
    for field in ["line", "byte", "seq"] {
        assert!(report["failure"][field].as_u64() > Some(0), "{field} in {report}");
    }

    assert_eq!(run(&["verify", "no/such"]).code, 3);
    let wrong = run(&["verify", export, "--trust", export]);
    assert_eq!(wrong.code, 3);
    assert!(wrong.stderr.contains("line 1, byte 0"), "{}", wrong.stderr);
}

#[test]
fn check_judges_an_export_again_and_comes_to_the_same_verdicts() {
    let recorded = record(PLAN, STRICT);
    let export = recorded.export.to_str().unwrap();
    let ran = run(&["check", export, "--json"]);
    let lines = ran.json();
    let summary = lines.last().unwrap();
    assert_eq!((&summary["changed"], &summary["not_judged"]), (&0.into(), &0.into()), "{}", ran.stdout);
    assert_eq!((ran.code, &summary["policies"][0]), (1, &STRICT.into()));
    assert!(lines.iter().all(|line| line["record"] != "decision" || line["recorded"] == line["verdict"]));

    let other = run(&["check", export, "--policy", "Permissive Exploration Policy"]);
    assert!(other.stdout.contains("recorded deny; "), "{}", other.stdout);
    assert_eq!(other.code, 0, "{}", other.stdout);

    let text = std::fs::read_to_string(export).unwrap();
    let tampered = run_with(&["check", "-"], text.replacen("\"deny\"", "\"warn\"", 1).as_bytes());
    assert_eq!(tampered.code, 3);
    assert!(tampered.stderr.contains("event-altered"), "{}", tampered.stderr);
}
