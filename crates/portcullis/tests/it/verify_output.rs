//! `portcullis verify-output`, and replies in simulations and recorded runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::{bundle_copy, run, run_with};

const PROMPT: &str = "How are external reports anonymized?";
const DOCUMENTS: &str = "examples/bundle/knowledge.json";

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

fn verify(reply: &str, more: &[&str]) -> (i32, String) {
    let args = [&["verify-output", "--prompt", PROMPT, "--documents", DOCUMENTS], more].concat();
    let ran = run_with(&args, reply.as_bytes());
    assert_eq!(ran.stderr, "");
    (ran.code, ran.stdout)
}

fn status<'v>(record: &'v Value, check: &str) -> &'v str {
    let checks = record["checks"].as_array().unwrap();
    checks.iter().find(|result| result["check"] == check).unwrap()["status"].as_str().unwrap()
}

#[test]
fn v8_citations_pass_and_fail() {
    let (code, shown) = verify("Every report is anonymized first [DOC:doc_001].\n", &[]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.starts_with("pass  citation-presence    the reply has 1 citation\n"), "{shown}");
    assert!(shown.ends_with("6 checks: 3 pass, 0 fail, 3 do not apply\n"), "{shown}");
    let (code, shown) = verify("Every report is anonymized first [DOC:doc_999].", &[]);
    assert_eq!(code, 1);
    assert!(
        shown.contains("FAIL  citation-match       1 of 1 citation names no known document: `doc_999`\n"),
        "{shown}"
    );
    let (code, shown) = verify("Every report is anonymized first [DOC:", &["--json"]);
    let record: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, status(&record, "CITATION_PRESENCE")), (1, "FAIL"));
    assert_eq!(record["status"], "FAIL");
}

#[test]
fn what_cannot_be_told_is_neither_yes_nor_no() {
    let ran = run_with(&["verify-output", "--citations", "with-documents"], b"Nothing to see.");
    assert_eq!((ran.code, ran.stderr.as_str()), (2, ""));
    assert!(ran.stdout.ends_with("6 checks: 0 pass, 0 fail, 6 do not apply\n"), "{}", ran.stdout);
    assert_eq!(run_with(&["verify-output", "--documents", "nowhere.json"], b"x").code, 3);
    assert_eq!(run(&["verify-output", "nowhere.md"]).code, 3);
    assert_eq!(run(&["verify-output", "--bundle", "examples/bundle"]).code, 64);
    assert_eq!(run_with(&["verify-output", "--documents", "-"], b"{}").code, 64);
    let refused = run_with(
        &["verify-output", "--prompt", "Please reset it.", "--high-risk", "reset", "--citations", "never"],
        b"I cannot do that.",
    );
    assert_eq!(refused.code, 0, "{}", refused.stdout);
}

#[test]
fn documents_come_in_three_forms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("documents");
    let reply = b"It is so [DOC:a].";
    for (text, code) in [
        (r#"{"a": "External reports are anonymized."}"#, 0),
        (r#"[{"id": "a", "text": "External reports are anonymized."}]"#, 0),
        (
            "{\"id\": \"a\", \"text\": \"External reports are anonymized.\"}\n{\"id\": \"b\", \"text\": \"\"}\n",
            0,
        ),
        (r#"{"id": "a", "text": "External reports are anonymized."}"#, 0),
        (r#"[{"id": "a"}]"#, 3),
        ("no JSON", 3),
    ] {
        std::fs::write(&file, text).unwrap();
        let ran = run_with(&["verify-output", "--prompt", PROMPT, "--documents", path(&file)], reply);
        assert_eq!(ran.code, code, "{text}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn records_are_verified_one_after_another() {
    let good = json!({"key": 1, "prompt": PROMPT, "response": "First they are anonymized [DOC:doc_001]."});
    let bad = json!({"key": 2, "prompt": PROMPT, "response": "They are not."});
    let own = json!({"key": 3, "response": "So [DOC:x].", "documents": {"x": ""}});
    let lines = format!("{good}\n\nno record\n{bad}\n{own}\n");
    let args = ["verify-output", "--jsonl", "--documents", DOCUMENTS, "--json"];
    let ran = run_with(&args, lines.as_bytes());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let records = ran.json();
    assert_eq!(records.len(), 5);
    let statuses: Vec<&Value> = [0, 2, 3].map(|number: usize| &records[number]["status"]).into();
    assert_eq!(statuses, ["PASS", "FAIL", "PASS"]);
    assert_eq!(records[1]["record"], "unreadable");
    assert_eq!((&records[4]["replies"], &records[4]["unreadable"]), (&json!(3), &json!(1)));
    let shown = run_with(&args[..4], lines.as_bytes()).stdout;
    assert!(shown.contains("FAIL  line 4 (key 2)  citation-presence"), "{shown}");
    assert_eq!(run_with(&args[..4], format!("{good}\nno record\n").as_bytes()).code, 3);
}

/// A simulated run, its export, and both read again.
#[test]
fn a_simulated_answer_is_verified_recorded_and_verified_again() {
    let home = tempfile::tempdir().unwrap();
    let home = path(home.path());
    let plan = ["simulate", "--plan", "Compliance Report Generation", "--json", "--home", home];
    let ran = run(&plan);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let simulation = ran.json().remove(0);
    let rows = simulation["verification"].as_array().unwrap();
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["PASS", "PASS", "PASS", "N/A", "PASS", "PASS"]);
    assert_eq!(rows[0]["check_type"], "CITATION_PRESENCE");
    assert_eq!(rows[0]["related_audit_event_step"], 4);
    assert_eq!(rows[0]["related_audit_event_action"], "OUTPUT_GENERATED");

    let run_id = simulation["run_id"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("run.export");
    std::fs::write(&export, run(&["export", run_id, "--home", home]).stdout).unwrap();
    let text = std::fs::read_to_string(&export).unwrap();
    let events: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line.split_once(' ')?.1).ok()).collect();
    let evidence = events.iter().find(|event| event["kind"] == "evidence").unwrap();
    assert_eq!((&evidence["body"]["name"], &evidence["actor"]), (&json!("verification"), &json!("gate")));
    let reply = events.iter().find(|event| event["kind"] == "output").unwrap();
    assert_eq!(evidence["cause"], reply["seq"]);

    let again = run(&["verify-output", "--recorded", path(&export), "--json"]);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    let record = again.json().remove(0);
    assert_eq!(record["checks"][0]["event"], reply["seq"], "the number in the record");
    assert_eq!(status(&record, "NUMBER_GROUNDING"), "PASS");
}

#[test]
fn replies_of_recorded_conversations_are_verified() {
    let call = json!({"id": "c1", "type": "function", "function": {
        "name": "retrieve_compliance_documents", "arguments": "{\"query\": \"external report\"}"}});
    let trace = |reply: &str| {
        json!({"messages": [
            {"role": "user", "content": PROMPT},
            {"role": "assistant", "content": "I look it up.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "doc_001: External reports are anonymized first."},
            {"role": "assistant", "content": reply},
        ]})
        .to_string()
    };
    let check = |reply: &str, command: &[&str]| run_with(command, trace(reply).as_bytes());
    let good = "External reports are anonymized first [DOC:doc_001].";
    let bad = "External reports are anonymized first [DOC:doc_002].";
    let recorded = ["verify-output", "--recorded", "-"];
    assert_eq!(check(good, &recorded).code, 0, "{}", check(good, &recorded).stdout);
    let ran = check(bad, &recorded);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("FAIL  run 1 reply 1  citation-match"), "{}", ran.stdout);
    // Under review the reply would not have got out, so the answer of `check` is neither yes nor no.
    assert_eq!(check(good, &["check", "-"]).code, 0);
    let ran = check(bad, &["check", "-"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("(reply)") && ran.stdout.contains("1 reply failed a check"),
        "{}",
        ran.stdout
    );
    let permissive = ["check", "-", "--policy", "Permissive Exploration Policy", "--json"];
    let ran = check(bad, &permissive);
    assert_eq!(ran.code, 0);
    let record = ran.json().into_iter().find(|line| line["record"] == "verification").unwrap();
    assert_eq!((&record["verdict"], &record["enforced"]), (&json!("warn"), &json!("executed")));
}

#[test]
fn a_simulated_answer_under_review_is_withheld() {
    let bundle = bundle_copy();
    let main = bundle.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, text.replace("\"with-documents\"", "\"always\"")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let args = ["simulate", "--plan", "Calculation Task", "--bundle", path(bundle.path()), "--home"];
    let ran = run(&[&args[..], &[path(home.path())]].concat());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stdout.contains("FAIL  CITATION_PRESENCE"), "{}", ran.stdout);
    assert!(ran.stdout.contains("The answer is withheld"), "{}", ran.stdout);
    assert!(ran.stdout.contains("REQUIRES_APPROVAL"), "{}", ran.stdout);
    // A bundle that verifies nothing has nothing to say of recorded replies.
    std::fs::write(&main, "version = 1\n").unwrap();
    let ran = run(&[
        "verify-output",
        "--recorded",
        "examples/traces/assistant.jsonl",
        "--bundle",
        path(bundle.path()),
    ]);
    assert_eq!(ran.code, 64, "{}", ran.stdout);
}
