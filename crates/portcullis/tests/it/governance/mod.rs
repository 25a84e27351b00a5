//! Governance packs of runs that the simulator recorded: made, handed over, tampered with, checked.

mod people;
mod tamper;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ClosedState, Enforced};
use portcullis_core::id::RunId;
use portcullis_core::label::Label;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_gateway::governance::{self as packs, PackOptions};
use portcullis_governance::FILES;
use portcullis_governance::controls::Controls;
use portcullis_governance::manifest::sha256;
use portcullis_governance::zip::Named;
use portcullis_ledger::log::{LogPlaces, LogReader, verifier_key};
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_proof::log::TrustPolicy;
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Proposal, Reach};
use portcullis_session::gate::{Gate, RunRequest};
use portcullis_session::shipped;
use portcullis_sim::simulator::{Options, simulate};
use serde_json::Value;

use crate::command::{bundle_copy, run};

const STRICT: &str = "Strict Compliance Policy";
const PERMISSIVE: &str = "Permissive Exploration Policy";
const TRANSFER: &str = "Unauthorized Transfer Attempt";

/// A state folder with one recorded run.
struct Recorded {
    folder: tempfile::TempDir,
    files: BTreeMap<String, Vec<u8>>,
    run: RunId,
}

impl Recorded {
    fn home(&self) -> String {
        self.folder.path().to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The files of its pack, and a policy that believes the log of its store and remembers its tree.
    fn pack(&self) -> (Vec<Named>, TrustPolicy) {
        let ledger = SqliteLedger::open(&self.folder.path().join("ledger"), OpenOptions::default()).unwrap();
        let places = LogPlaces::beside(&self.folder.path().join("ledger"));
        let files_of = |digest| (Bundle::digest_of(&self.files) == digest).then(|| self.files.clone());
        let made = ledger.read(|reader| {
            Ok(packs::pack(reader, self.run, &places, files_of, PackOptions::default()).unwrap())
        });
        let key = verifier_key(&places).unwrap();
        let policy = LogReader::open(&places).unwrap().policy_text(&key, true).unwrap();
        (made.unwrap().files, TrustPolicy::parse(policy.as_bytes()).unwrap())
    }
}

fn gate(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, files).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn record_under(files: &BTreeMap<String, Vec<u8>>, plan: &str, policy: &str, options: Options) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), files);
    let tools = folder.path().join("tools");
    let simulation = runtime().block_on(simulate(&gate, plan, policy, &tools, options)).unwrap();
    Recorded { folder, files: files.clone(), run: simulation.run_id }
}

fn record(plan: &str, policy: &str) -> Recorded {
    let options = Options { go_on: true, ..Options::default() };
    record_under(&shipped::default_bundle(), plan, policy, options)
}

/// The files of an archive, by the library that others use.
fn unpacked(archive: &Path) -> Vec<Named> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(archive).unwrap()).unwrap();
    let files = archive.len();
    let file = |number| {
        let mut file = archive.by_index(number).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        (file.name().unwrap().into_owned(), bytes)
    };
    (0..files).map(file).collect()
}

fn file<'f>(files: &'f [Named], name: &str) -> &'f [u8] {
    &files.iter().find(|(known, _)| known == name).unwrap().1
}

fn json(files: &[Named], name: &str) -> Value {
    serde_json::from_slice(file(files, name)).unwrap()
}

fn text<'f>(files: &'f [Named], name: &str) -> &'f str {
    std::str::from_utf8(file(files, name)).unwrap()
}

/// Metrics by id.
fn metrics(files: &[Named]) -> BTreeMap<String, u64> {
    let report = json(files, "summary_report.json");
    let metrics = report["metrics"].as_array().unwrap();
    metrics
        .iter()
        .map(|metric| (metric["id"].as_str().unwrap().to_owned(), metric["value"].as_u64().unwrap()))
        .collect()
}

#[test]
fn a_pack_is_written_and_checked_and_each_file_can_be_had_alone() {
    let recorded = record(TRANSFER, STRICT);
    let (home, id) = (recorded.home(), recorded.run.to_string());
    let (pack, policy) = (recorded.path("pack.zip"), recorded.path("trust.policy"));
    let made = run(&["governance", &id, "-o", &pack, "--home", &home]);
    assert_eq!((made.code, made.stderr.as_str()), (0, ""));
    let files = unpacked(Path::new(&pack));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let known: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("log/")).collect();
    assert_eq!(known, FILES);
    assert!(names.iter().any(|name| name.ends_with("-closed.tlog-proof")), "{names:?}");
    assert!(made.stdout.contains(&format!("{} files of run {id}", names.len())), "{}", made.stdout);

    for (name, bytes) in files.iter().filter(|(name, _)| !name.starts_with("log/")) {
        let alone = run(&["governance", &id, "--file", name, "-o", "-", "--home", &home]);
        assert_eq!(alone.code, 0, "{}", alone.stderr);
        // The manifest says when it was made.
        if !name.starts_with("evidence_manifest") {
            assert_eq!(alone.stdout.as_bytes(), bytes, "{name}");
        }
    }

    std::fs::write(&policy, run(&["log", "policy", "--remember", "--home", &home]).stdout).unwrap();
    let valid = run(&["governance", "--check", &pack, "--trust", &policy]);
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    assert!(valid.stdout.starts_with("VALID\n"), "{}", valid.stdout);
    assert!(valid.stdout.contains("signed by the writer of the run"), "{}", valid.stdout);
    let alone = run(&["governance", "--check", &pack]);
    assert_eq!(alone.code, 2);
    assert!(
        alone.stdout.starts_with("INCOMPLETE\n") && alone.stdout.contains("--trust FILE"),
        "{}",
        alone.stdout
    );

    // A folder is checked like an archive, and what the pack holds of the record is an export of its own.
    let folder = recorded.folder.path().join("unpacked");
    std::fs::create_dir_all(folder.join("log")).unwrap();
    for (name, bytes) in &files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let folder_path = folder.to_str().unwrap();
    assert_eq!(run(&["governance", "--check", folder_path, "--trust", &policy]).code, 0);
    std::fs::write(folder.join("controls.md"), "all met").unwrap();
    let invalid = run(&["governance", "--check", folder_path, "--trust", &policy, "--json"]);
    let [report] = invalid.json().try_into().unwrap();
    assert_eq!((invalid.code, &report["report"]["status"]), (1, &"INVALID".into()));
    assert_eq!(report["report"]["files"][0]["file"], "controls.md");

    // A byte of the archive itself.
    let mut bytes = std::fs::read(&pack).unwrap();
    let at = bytes
        .windows(16)
        .position(|window| window == b"audit_log.jsonl\x7d" || window.starts_with(b"audit_log.jsonl"))
        .unwrap();
    bytes[at + 200] ^= 1;
    std::fs::write(&pack, bytes).unwrap();
    let damaged = run(&["governance", "--check", &pack, "--trust", &policy]);
    assert_eq!(damaged.code, 1, "{}{}", damaged.stdout, damaged.stderr);
    assert!(damaged.stdout.contains("audit_log.jsonl"), "{}", damaged.stdout);
}

#[test]
fn the_figures_of_the_summary_are_those_of_the_run() {
    let expect = |plan, policy, wanted: [u64; 6]| {
        let recorded = record(plan, policy);
        let (files, _) = recorded.pack();
        let metrics = metrics(&files);
        let found = [
            "total_agent_steps",
            "policy_denials",
            "approval_requests",
            "verification_checks_run",
            "verification_checks_passed",
            "verification_checks_failed",
        ]
        .map(|id| metrics[id]);
        assert_eq!(found, wanted, "{plan} under {policy}");
        files
    };
    expect(TRANSFER, STRICT, [4, 2, 0, 6, 5, 0]);
    expect("Exceed Step Limit", STRICT, [7, 2, 0, 0, 0, 0]);
    let files = expect("Handle Data Access Request", PERMISSIVE, [5, 0, 0, 6, 4, 1]);
    let report = json(&files, "summary_report.json");
    assert_eq!(report["escalation_indicator"], true);
    let risks = text(&files, "residual_risk_summary.md");
    assert!(risks.contains("3 side effects went ahead on policy alone"), "{risks}");
    assert!(risks.contains("1 reply reached the user"), "{risks}");
    let analysis = text(&files, "failure_mode_analysis.md");
    assert!(analysis.contains("Side effects reached 3 of 3 (100 %)"), "{analysis}");
}

#[test]
fn the_audit_log_has_the_seven_columns_and_no_others() {
    let (files, _) = record(TRANSFER, STRICT).pack();
    let rows: Vec<Value> =
        text(&files, "audit_log.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        let columns: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(columns, portcullis_governance::trace::COLUMNS);
    }
    let of = |kind: &str| rows.iter().filter(|row| row["event_type"] == kind).count();
    assert_eq!((of("TOOL_BLOCKED"), of("TOOL_EXECUTED"), of("OUTPUT_GENERATED")), (2, 1, 1));
    assert_eq!(
        (of("RUN_OPENED"), of("INPUT_RECEIVED"), of("VERIFICATION_RUN"), of("RUN_CLOSED")),
        (1, 1, 1, 1)
    );
    let results = json(&files, "verification_results.json");
    let first = results["results"][0].as_object().unwrap();
    let columns: Vec<&str> = first.keys().map(String::as_str).collect();
    assert_eq!(
        columns,
        [
            "check_id",
            "check_type",
            "status",
            "description",
            "details",
            "related_audit_event_step",
            "related_audit_event_action"
        ]
    );
    assert_eq!(first["related_audit_event_step"], 4);
}

#[test]
fn the_manifest_names_what_the_run_was_made_of() {
    let (files, policy) = record("Compliance Report Generation", STRICT).pack();
    let manifest = json(&files, "evidence_manifest.json");
    assert_eq!(manifest["plan"]["name"], "Compliance Report Generation");
    assert!(
        manifest["log"]["size"].as_u64() > Some(2) && manifest["log"]["leaves"].as_u64() > Some(2),
        "{}",
        manifest["log"]
    );
    assert_eq!(manifest["policies"][0]["configuration"].as_str().map(str::len), Some(64));
    let _ = policy;
    assert_eq!(manifest["head"]["state"], "closed");
    assert_eq!(manifest["artifacts"].as_array().unwrap().len(), files.len() - 2);
    assert_eq!(manifest["knowledge"].as_array().unwrap().len(), 4);
    assert_eq!(manifest["policies"][0]["files"].as_array().unwrap().len(), shipped::default_bundle().len());
    let hashed = |list: &str| {
        let list = manifest[list].as_array().unwrap();
        assert!(!list.is_empty() && list.iter().all(|payload| payload["sha256"].is_string()));
        list.iter().map(|payload| payload["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(hashed("inputs").contains(&"arguments".to_owned()));
    assert!(hashed("outputs").contains(&"content".to_owned()));
}

#[test]
fn a_run_that_is_not_there_or_was_not_verified_is_told_with_what_to_do() {
    let copy = bundle_copy();
    let main = copy.path().join("portcullis.toml");
    let config = std::fs::read_to_string(&main).unwrap();
    let kept: Vec<&str> = config.lines().filter(|line| !line.starts_with("verification.")).collect();
    std::fs::write(&main, kept.join("\n")).unwrap();
    let mut bundle = BTreeMap::new();
    for (name, bytes) in shipped::default_bundle() {
        let changed = copy.path().join(&name);
        bundle.insert(name, std::fs::read(changed).unwrap_or(bytes));
    }
    let recorded = record_under(&bundle, "Calculation Task", STRICT, Options::default());
    let (home, id) = (recorded.home(), recorded.run.to_string());
    let folder = copy.path().to_str().unwrap();

    let missing = run(&["governance", "abcdef", "--home", &home]);
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("no run id starts with `abcdef`") && missing.stderr.contains("runs list"),
        "{}",
        missing.stderr
    );

    let unknown = run(&["governance", &id, "--home", &home]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.stderr.contains("not available") && unknown.stderr.contains("--bundle"),
        "{}",
        unknown.stderr
    );

    let unverified = run(&["governance", &id, "--bundle", folder, "--home", &home]);
    assert_eq!(unverified.code, 2);
    assert!(
        unverified.stderr.contains("this run has no verification of outputs: none of its 1 reply"),
        "{}",
        unverified.stderr
    );
    assert!(
        unverified.stderr.contains("[verification]") && unverified.stderr.contains("--unverified"),
        "{}",
        unverified.stderr
    );

    let all_the_same = ["governance", &id, "--bundle", folder, "--unverified", "--home", &home];
    let made = run(&[&all_the_same[..], &["--file", "residual_risk_summary.md"]].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stdout.contains("1 reply was delivered without a check"), "{}", made.stdout);
    assert!(made.stdout.contains("the bundle has no `[verification]`"), "{}", made.stdout);

    let wrong = run(&["governance", &id, "--file", "summary.md", "--home", &home]);
    assert_eq!(wrong.code, 64);
    assert!(wrong.stderr.contains("did you mean `summary_report.md`"), "{}", wrong.stderr);
    let no_store = recorded.path("elsewhere");
    assert_eq!(run(&["governance", &id, "--home", &no_store]).code, 3);
    assert_eq!(run(&["governance", "--check", "README.md"]).code, 3);
}

#[test]
fn people_s_decisions_are_in_the_reports() {
    let options = Options { go_on: true, approve: true };
    let files = shipped::default_bundle();
    let strict = String::from_utf8(files["policies/strict.toml"].clone()).unwrap();
    let strict = strict
        .replace(
            "\"RETRIEVE_DOCS\", \"CALCULATE\"",
            "\"RETRIEVE_DOCS\", \"CALCULATE\", \"SEND_EMAIL\", \"WRITE_FILE\"",
        )
        .replace("max_side_effects = 0", "max_side_effects = 5");
    let mut changed = files;
    changed.insert("policies/strict.toml".to_owned(), strict.into_bytes());
    let recorded = record_under(&changed, "Email Policy Update", STRICT, options);
    let folder = recorded.folder.path().join("bundle");
    for (name, bytes) in &changed {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let (home, id) = (recorded.home(), recorded.run.to_string());
    let one = |name: &str| {
        let made =
            run(&["governance", &id, "--bundle", folder.to_str().unwrap(), "--file", name, "--home", &home]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        made.stdout
    };
    let report: Value = serde_json::from_str(&one("summary_report.json")).unwrap();
    assert_eq!((&report["metrics"][2]["value"], &report["metrics"][1]["value"]), (&2.into(), &0.into()));
    let analysis = one("failure_mode_analysis.md");
    assert!(
        analysis.contains("it was granted (event ") && analysis.contains("and used (event "),
        "{analysis}"
    );
    let risks = one("residual_risk_summary.md");
    assert!(
        risks.contains(
            "**Findings that people overrode.** Grants answered findings of `runtime-policy/approval`"
        ),
        "{risks}"
    );
    assert!(!risks.contains("went ahead on policy alone"), "{risks}");
    assert_eq!(risks.matches("- `approver:simulated-approver` granted `").count(), 2, "{risks}");
    let log = one("audit_log.jsonl");
    assert_eq!(log.matches("\"event_type\":\"APPROVAL_DECIDED\"").count(), 2);
    assert!(log.contains("approver:simulated-approver"), "{log}");
}

/// A run without a session, by the default policy.
fn by_hand() -> RunRequest {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("tester"),
        policy: None,
        of_this_machine: true,
    };
    RunRequest {
        identity,
        surface: "http".into(),
        session: None,
        policy: None,
        bundle: None,
        resume: None,
        rejoin: false,
        place: None,
        parent: None,
    }
}

/// What was let pass, held and never answered, called without being known, and left open.
#[test]
fn what_a_run_leaves_open_is_told_with_its_events() {
    let mut files = shipped::default_bundle();
    let main = String::from_utf8(files["portcullis.toml"].clone()).unwrap();
    files.insert(
        "portcullis.toml".into(),
        main.replace("mode = \"enforce\"", "mode = \"observe\"").into_bytes(),
    );
    let recorded = record_under(&files, TRANSFER, STRICT, Options { go_on: true, ..Options::default() });
    let (pack, _) = recorded.pack();
    let risks = text(&pack, "residual_risk_summary.md");
    assert!(risks.contains("**Observe mode.** 5 verdicts were recorded without being enforced (events 4, 9, 14, 19 and 24); what 3 of them would have stopped passed (events 10, 15 and 25)."), "{risks}");
    assert_eq!(metrics(&pack)["policy_denials"], 0, "what was not stopped is not counted as blocked");

    let folder = tempfile::tempdir().unwrap();
    let files = shipped::default_bundle();
    let gate = gate(folder.path(), &files);
    let run = runtime().block_on(async {
        let run = gate.open(by_hand()).await.unwrap().run;
        let proposal = Proposal {
            tool: Some("open|valve`".to_owned()),
            arguments: serde_json::json!({}),
            ..Proposal::default()
        };
        let (judgement, _) = gate.propose(&run, proposal, Duration::ZERO).await.unwrap();
        assert_eq!(judgement.enforced, Enforced::Held);
        run.id()
    });
    let recorded = Recorded { folder, files, run };
    drop(gate);
    let (pack, policy) = recorded.pack();
    let risks = text(&pack, "residual_risk_summary.md");
    for said in [
        "**Requests that were not answered.** 1 request still waiting when the record ends (event 5).",
        "**Tools that the registry does not know.** 1 call of `open¦valve'` (event 2), of which 0 went ahead; the bundle answers unknown tools with *review*.",
        "**The writer ended before the run did.**",
        "The record has nothing of what the user said, so 4 guards at the hook input never ran",
    ] {
        assert!(risks.contains(said), "{said}\n{risks}");
    }
    let analysis = text(&pack, "failure_mode_analysis.md");
    assert!(
        analysis.contains(
            "A call of `open¦valve'` was held (event 5): it was not answered before the record ends."
        ),
        "{analysis}"
    );
    let report = portcullis_governance::check(&pack, None, Some(&policy));
    assert_eq!(report.failed().count(), 0, "{report:#?}");
}

/// A bundle whose monitors know two words, each worth two cues: a fifth of the scale of drift.
fn watchful() -> BTreeMap<String, Vec<u8>> {
    let mut files = shipped::default_bundle();
    let mut monitors = "replace = true\n".to_owned();
    for word in ["zebra", "giraffe"] {
        monitors += &format!(
            "[[concept]]\nname = \"{word}\"\nwords = [\"{word}\"]\n[[pattern]]\nname = \"the-{word}\"\n\
             family = \"zoo\"\nneeds = [\"{word}\"]\non = \"input\"\ncues = 2\n"
        );
    }
    files.insert("monitors.toml".to_owned(), monitors.into_bytes());
    files.retain(|path, _| !path.starts_with("tests/"));
    files
}

/// What the monitors of the report compute from the record is what the gate computed, and recorded in its reasons.
#[test]
fn signals_of_the_report_are_those_of_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), &watchful());
    let run = runtime().block_on(async {
        let opened = gate.open(by_hand()).await.unwrap();
        for said in ["What is there in the zoo?", "Find the zebra.", "Find the giraffe."] {
            opened.run.input(said.to_owned(), Label::User, Reach::Replace).await.unwrap();
        }
        gate.close(opened.run.id(), ClosedState::Closed).await.unwrap();
        opened.run.id()
    });
    drop(gate);
    let recorded = Recorded { folder, files: watchful(), run };
    let (files, _) = recorded.pack();
    let analysis = text(&files, "failure_mode_analysis.md");
    assert!(analysis.contains("this step adds 0.20 to drift, which is 0.40 now"), "{analysis}");
    assert!(
        analysis.contains("Drift reached 0.40 of 0.50 at event 4 (80 %): at the limit, row 4 of the escalation table gives CLARIFY."),
        "{analysis}"
    );
    let risks = text(&files, "residual_risk_summary.md");
    assert!(
        risks.contains("has no file in `tests/`") && risks.contains("The run names no session"),
        "{risks}"
    );
}

#[test]
fn every_control_names_guards_that_there_are_and_owasp_s_are_those_that_guards_name() {
    let guards = packs::guards();
    let controls = Controls::embedded(&guards).unwrap();
    for number in 1..=10 {
        let id = format!("ASI{number:02}");
        let covering: Vec<&str> =
            guards.iter().filter(|guard| guard.owasp.contains(&id.as_str())).map(|guard| guard.id).collect();
        let mut named: Vec<&str> = controls
            .guards_of(&format!("owasp-agentic/{}", id.to_lowercase()))
            .unwrap()
            .iter()
            .map(String::as_str)
            .collect();
        let mut covering = covering;
        covering.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, covering, "{id}");
    }
}

/// A mapping of somebody's own.
const OWN: &str = r#"source = "House rules"
document = "Handbook of the office, 2026"
applies = "everybody who lets an agent act"

[[control]]
id = "house/1"
clause = "Rule 1"
title = "Nobody sends mail unasked"
events = ["verdict"]
guards = ["runtime-policy"]
files = ["audit_log.jsonl"]
shows = "what was judged"
not_shown = ["mail that was sent past the gate"]
"#;

#[test]
fn own_controls_stand_beside_those_that_ship_and_mistakes_are_told_with_their_places() {
    let recorded = record(TRANSFER, STRICT);
    let (home, id) = (recorded.home(), recorded.run.to_string());
    let own = recorded.path("our-controls");
    std::fs::create_dir(&own).unwrap();
    let write = |text: &str| std::fs::write(Path::new(&own).join("house.toml"), text).unwrap();
    std::fs::write(Path::new(&own).join("README.md"), "not a mapping").unwrap();
    let made = |file: &str| {
        run(&["governance", &id, "--controls", &own, "--file", file, "-o", "-", "--home", &home])
    };
    let none = made("controls.md");
    assert_eq!(
        (none.code, none.stderr.contains("no file in it ends in `.toml`")),
        (3, true),
        "{}",
        none.stderr
    );

    write(OWN);
    let shown = made("controls.json");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let sources = shown["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 5);
    assert_eq!(sources[0]["mapping"], "controls/eu-ai-act.toml");
    let house = &sources[4];
    assert_eq!(house["mapping"], "own/house.toml", "{house}");
    let twice =
        ["governance", &id, "--controls", &own, "--controls", &own, "--file", "controls.json", "-o", "-"];
    assert_eq!(run(&[&twice[..], &["--home", &home]].concat()).code, 0, "the same folder twice is one");
    assert_eq!(house["mapping_sha256"], serde_json::json!(sha256(OWN.as_bytes())));
    assert_eq!(house["controls"][0]["id"], "house/1");
    assert_eq!(house["controls"][0]["guards"][0]["guard"], "runtime-policy");
    assert!(made("controls.md").stdout.contains("House rules"));

    let refused = |text: &str, code: &str| {
        write(text);
        let ran = made("controls.md");
        assert_eq!(ran.code, 3, "{}", ran.stdout);
        assert!(ran.stderr.contains("the controls do not load: 1 error"), "{}", ran.stderr);
        assert!(ran.stderr.contains(code), "{}", ran.stderr);
    };
    refused(&OWN.replace("\"runtime-policy\"", "\"runtime-polisy\""), "house.toml:10:11");
    refused(&OWN.replace("\"runtime-policy\"", "\"runtime-polisy\""), "did you mean `runtime-policy`?");
    refused(&OWN.replace("shows", "show"), "house.toml:12:1");
    refused(&OWN.replace("house/1", "eu-ai-act/12-1"), "is already defined in `controls/eu-ai-act.toml`");
    let json = run(&["governance", &id, "--controls", &own, "--json", "--home", &home]);
    assert!(
        json.stderr.contains("controls_invalid") || json.stdout.contains("controls_invalid"),
        "{}",
        json.stderr
    );
    // A daemon does not start with them.
    let state = recorded.path("state");
    let served = run(&["serve", "--controls", &own, "--home", &state]);
    assert_eq!((served.code, served.stderr.contains("house.toml:6:6")), (3, true), "{}", served.stderr);
}
