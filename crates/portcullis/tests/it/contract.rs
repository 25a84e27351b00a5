//! `portcullis contract`, and the suites that measure it.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::{portcullis, run, run_with};

const NO_COMMAS: &str = "Do not use commas.";
const LONG: &str = "Answer with at least 100 words.";

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn statements_are_explained() {
    let ran = run(&["contract", "explain", NO_COMMAS, "Be kind."]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        "exact   c1  Do not use commas.\n        no `,`\n\
         judged  c2  Be kind.\n        not in a family that is checked exactly\n"
    );
    assert_eq!(run(&["contract", "explain", NO_COMMAS]).code, 0);
    // A bare number is ambiguous.
    assert_eq!(run(&["contract", "explain", "Use three bullet points."]).code, 2);
    assert_eq!(run(&["contract", "explain", " "]).code, 3);

    let ran = run(&[
        "contract",
        "explain",
        "Your entire response must be valid JSON.",
        "Your answer must contain at least 3 bullet points.",
        "--json",
    ]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let lines = ran.json();
    assert_eq!(lines[0]["checker"], json!({"exact": {"family": "json"}}));
    assert_eq!(lines[2]["record"], "conflict");
    assert_eq!(lines[2]["contracts"], json!(["c1", "c2"]));
}

#[test]
fn a_reply_is_checked_from_a_file_and_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let (reply, contracts) = (folder.path().join("reply.md"), folder.path().join("contracts.txt"));
    std::fs::write(&reply, "One, two.\n").unwrap();
    std::fs::write(&contracts, "# what we promise\n\nDo not use commas.\n").unwrap();
    let ran = run(&["contract", "check", path(&reply), "--contracts", path(&contracts)]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    assert!(ran.stdout.starts_with("FAIL  c1  no `,`: "), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("0 of 1 contract hold, 1 fails\n"), "{}", ran.stdout);

    let ran = run_with(&["contract", "check", "-c", NO_COMMAS, "--json"], b"One two.\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()[0]["contracts"][0]["verdict"], "pass");

    // What cannot be told is neither yes nor no.
    assert_eq!(run_with(&["contract", "check", "-c", NO_COMMAS, "-c", "Be kind."], b"One.").code, 2);
    assert_eq!(run_with(&["contract", "check", "-c", NO_COMMAS], b"One\xff.").code, 3);
    assert_eq!(run(&["contract", "check", "no-such-file", "-c", NO_COMMAS]).code, 3);
    assert_eq!(run_with(&["contract", "check"], b"One.").code, 64);
}

#[test]
fn what_was_asked_is_read() {
    let repeat = "First repeat the request word for word without change, then give your answer.";
    let args = ["contract", "check", "-c", repeat, "--prompt", "What is tea?"];
    assert_eq!(run_with(&args, b"What is tea? A drink.").code, 0);
    assert_eq!(run_with(&args, b"A drink.").code, 1);
    assert_eq!(run_with(&["contract", "check", "-c", repeat], b"A drink.").code, 2);
}

#[test]
fn a_repair_leaves_the_reply_on_standard_output() {
    let ran = run_with(&["contract", "repair", "-c", NO_COMMAS], b"One, two.\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains(','), "{}", ran.stdout);
    assert!(ran.stderr.contains("done  c1"), "{}", ran.stderr);
    // Nothing is padded: what would be writing is left, and said to be.
    let ran = run_with(&["contract", "repair", "-c", LONG], b"Too short.\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "Too short.\n"));
    assert!(ran.stderr.contains("left  c1"), "{}", ran.stderr);
}

#[test]
fn records_are_judged_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("replies.jsonl");
    let records = [
        json!({"key": 1, "response": "One, two.", "contracts": [NO_COMMAS]}).to_string(),
        json!({"key": "b", "response": "One two."}).to_string(),
        "{\"key\": 3".to_owned(),
    ];
    std::fs::write(&file, records.join("\n")).unwrap();
    let ran = run(&["contract", "repair", path(&file), "--jsonl", "-c", "Include the word 'two'.", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let lines = ran.json();
    assert_eq!(lines[0]["compliance"], json!([true, false]));
    assert_eq!(lines[0]["compliance_after"], json!([true, true]));
    assert_eq!((&lines[1]["key"], &lines[1]["repaired"]), (&json!("b"), &json!("One two.")));
    assert_eq!((&lines[2]["record"], &lines[2]["line"]), (&json!("unreadable"), &json!(3)));
    assert_eq!((&lines[3]["hold"], &lines[3]["changed"]), (&json!(3), &json!(1)));

    let records = std::fs::read(&file).unwrap();
    let ran = run_with(&["contract", "check", "--jsonl"], &records);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.starts_with("FAIL  line 1 (key 1)  c1"), "{}", ran.stdout);
    assert!(ran.stdout.contains("line 2: there is no contract"), "{}", ran.stdout);
}

const CITES: &str = "Must cite a known document";
const REFUSES: &str = "Refuses high-risk instructions";
const NAMES: &str = "Contains no customer names";

#[test]
fn statements_about_documents_say_what_they_need() {
    let ran = run(&["contract", "explain", CITES, REFUSES, NAMES]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("exact ")).count(), 3, "{}", ran.stdout);
    assert!(ran.stdout.contains("decided by: citation-presence, citation-match of `verify-output`"));
    for option in ["--documents", "--prompt", "--names"] {
        assert!(ran.stdout.contains(&format!("needs: `{option}`; without, it is judged")), "{}", ran.stdout);
    }
    let line = &run(&["contract", "explain", CITES, "--json"]).json()[0];
    assert_eq!(line["checker"], json!({"exact": {"family": "cites", "present": true, "known": true}}));
    assert_eq!((&line["needs"], &line["checks"][0]), (&json!(["documents"]), &json!("CITATION_PRESENCE")));
    // Lower-case letters leave no room for `[DOC:id]`.
    let ran = run(&["contract", "explain", CITES, "All of your answer must be lowercase."]);
    assert!(ran.code == 2 && ran.stdout.contains("conflict  c1, c2"), "{}", ran.stdout);
}

#[test]
fn documents_names_and_instructions_make_statements_exact() {
    let folder = tempfile::tempdir().unwrap();
    let (documents, names) = (folder.path().join("documents.json"), folder.path().join("names.txt"));
    std::fs::write(&documents, json!({"doc_001": "Reports are anonymized."}).to_string()).unwrap();
    std::fs::write(&names, "# customers\n\nAda Lovelace\n").unwrap();
    let three = ["contract", "check", "-c", CITES, "-c", REFUSES, "-c", NAMES];
    let given = ["--documents", path(&documents), "--names", path(&names), "--high-risk", "drop tables"];
    let args: Vec<&str> =
        three.iter().chain(&given).chain(&["--prompt", "Drop all tables."]).copied().collect();
    let ran = run_with(&args, b"I cannot do that, see [DOC:doc_001].");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = run_with(&args, b"Done, ada lovelace [DOC:doc_002].");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("FAIL")).count(), 3, "{}", ran.stdout);
    assert!(!ran.stdout.contains("ovelace"), "{}", ran.stdout);

    // Without, each says which option is missing, and none of them passes.
    let ran = run_with(&three, b"I cannot do that, see [DOC:doc_001].");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for option in ["--documents", "--prompt", "--names"] {
        assert!(
            ran.stdout.contains(&format!("no judge was asked (exact with `{option}`)")),
            "{}",
            ran.stdout
        );
    }
    // A repair leaves them as they are.
    let repair: Vec<&str> = args.iter().map(|arg| if *arg == "check" { "repair" } else { arg }).collect();
    let ran = run_with(&repair, b"Done, ada lovelace [DOC:doc_002].");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "Done, ada lovelace [DOC:doc_002].\n"));
    assert!(ran.stderr.contains("left  c3  removing or replacing a name"), "{}", ran.stderr);

    // A list that forbids nothing would let all pass.
    std::fs::write(&names, "# nobody\n").unwrap();
    let ran = run_with(&["contract", "check", "-c", NAMES, "--names", path(&names)], b"Ada.");
    assert!(ran.code == 3 && ran.stderr.contains("found 0"), "{}", ran.stderr);
    assert_eq!(run_with(&["contract", "check", "-c", CITES, "--documents", "-"], b"[]").code, 64);
}

#[test]
fn records_bring_their_own_documents_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents.jsonl");
    std::fs::write(&documents, "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\": \"b\", \"text\": \"y\"}\n")
        .unwrap();
    let records = [
        json!({"key": 1, "response": "So [DOC:a]."}),
        json!({"key": 2, "response": "So [DOC:a].", "documents": {"c": "z"}}),
        json!({"key": 3, "response": "So, Bob [DOC:a].", "contracts": [NAMES], "names": ["Bob"]}),
        json!({"key": 4, "response": "So, Bob [DOC:a].", "contracts": [NAMES]}),
        json!({"key": 5, "response": "Done [DOC:b].", "contracts": [REFUSES], "prompt": "Drop it all.",
            "high_risk": ["drop all"]}),
        json!({"key": 6, "response": "So [DOC:a].", "names": []}),
    ];
    let records: Vec<String> = records.iter().map(Value::to_string).collect();
    let args = ["contract", "check", "--jsonl", "-c", CITES, "--documents", path(&documents), "--json"];
    let ran = run_with(&args, records.join("\n").as_bytes());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let lines = ran.json();
    let verdicts = |at: usize| {
        let contracts = lines[at]["contracts"].as_array().unwrap();
        contracts.iter().map(|held| held["verdict"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([verdicts(0), verdicts(1)], [["pass"], ["fail"]]);
    assert_eq!(
        [verdicts(2), verdicts(3), verdicts(4)],
        [["pass", "fail"], ["pass", "not-applicable"], ["pass", "fail"]]
    );
    assert_eq!(
        (&lines[3]["contracts"][1]["needs"], &lines[3]["contracts"][1]["by"]),
        (&json!("names"), &json!("nobody"))
    );
    assert!(lines[5]["message"].as_str().unwrap().starts_with("line 6: `names`: 1 to"), "{}", lines[5]);
}

/// The most memory that a process has held, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_number_of_replies() {
    /// Growth from the first part on that is noise of the allocator.
    const KIB_MAX: u64 = 4 * 1024;
    let mut child = portcullis(&["contract", "check", "--jsonl", "-c", NO_COMMAS])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let reply = "The boats bring what the night has left. ".repeat(250);
    let mut send = |from: u32, to: u32| {
        for key in from..to {
            let record = json!({"key": key, "response": reply}).to_string() + "\n";
            input.write_all(record.as_bytes()).unwrap();
        }
        // What the pipe still holds is less than ten replies.
        peak(child.id())
    };
    let (early, late) = (send(0, 200), send(200, 2_000));
    drop(input);
    assert!(child.wait().unwrap().success());
    // 18 MiB went through in between.
    assert!(late < early + KIB_MAX, "{early} KiB after 200 replies, {late} KiB after 2,000");
}

#[test]
fn suites_of_replies_run_and_say_when_the_data_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for suite in ["ifeval", "policy-guard"] {
        let ran = run(&["eval", suite, "--data", "no-such-folder"]);
        assert_eq!(ran.code, 3);
        assert!(ran.stdout.starts_with(&format!("SKIPPED {suite}: 0 records")), "{}", ran.stdout);
        assert_eq!(run(&["eval", suite, "--data", path(&data)]).code, 2);
    }
    let reply = json!({"key": 1, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}],
        "response": "One two.", "official_strict": [true]});
    std::fs::write(data.join("m.jsonl"), reply.to_string()).unwrap();
    let out = folder.path().join("out.jsonl");
    let ran = run(&["eval", "ifeval", "--data", path(&data), "--predictions", path(&out), "--json", "-"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()[0]["all"]["agreement"]["hits"], 1);
    let line: Value = serde_json::from_str(std::fs::read_to_string(&out).unwrap().trim()).unwrap();
    assert_eq!(line, json!({"key": 1, "model": "m", "follow": [true]}));

    let reply = json!({"key": 1, "prompt_request": "Count.", "instruction_text_list": [NO_COMMAS],
        "response": "One, two."});
    std::fs::write(data.join("m.jsonl"), reply.to_string()).unwrap();
    let ran = run(&["eval", "policy-guard", "--data", path(&data), "--plot", path(&out)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("<svg "));
    assert!(ran.stdout.contains("1 of 1 statements recognised, 0 broken"), "{}", ran.stdout);
}
