//! `portcullis policy compile`: requests in plain English.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::{Ran, bundle_copy, run_with};

const REQUEST: &str =
    "At most three emails to the same recipient per day.\nFiles may only be written under /storage.\n";

fn compile(request: &str, more: &[&str]) -> Ran {
    // Generated tests run the programs of a draft.
    crate::engine::put_into(Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().unwrap());
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bundle");
    let bundle = ["--bundle", bundle.to_str().unwrap()];
    run_with(&[&["policy", "compile", "-"], &bundle[..], more].concat(), request.as_bytes())
}

#[test]
fn what_is_open_is_underlined_and_can_be_answered() {
    let open = compile(REQUEST, &[]);
    assert_eq!(open.code, 2, "{}{}", open.stdout, open.stderr);
    assert!(open.stdout.contains("[window]") && open.stdout.contains("^^^^^^^"), "{}", open.stdout);
    let answered = compile(REQUEST, &["--accept-defaults"]);
    assert_eq!(answered.code, 0, "{}{}", answered.stdout, answered.stderr);
    assert!(answered.stdout.contains("generated tests pass"), "{}", answered.stdout);
    let wrong = compile(REQUEST, &["--answer", "nothing"]);
    assert_eq!(wrong.code, 64, "{}", wrong.stderr);
}

#[test]
fn a_draft_is_a_folder_whose_files_make_a_bundle_stricter() {
    let folder = tempfile::tempdir().unwrap();
    let draft = folder.path().join("draft");
    let options = ["--accept-defaults", "--json", "-o", draft.to_str().unwrap()];
    let made = compile(REQUEST, &options);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let [record]: [Value; 1] = made.json().try_into().unwrap();
    assert_eq!(record["failures"], json!([]));
    assert_eq!(record["draft"]["meaning"].as_array().unwrap().len(), 2, "{record}");
    let again = compile(REQUEST, &options);
    assert_eq!(again.code, 3, "what is there is not written over: {}{}", again.stdout, again.stderr);

    let bundle = bundle_copy();
    for part in ["sequences", "programs"] {
        let into = bundle.path().join(part);
        std::fs::create_dir_all(&into).unwrap();
        for file in std::fs::read_dir(draft.join(part)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), into.join(file.file_name())).unwrap();
        }
    }
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bundle");
    let (before, after) = (before.to_str().unwrap(), bundle.path().to_str().unwrap());
    let tests = draft.join("tests/request.md");
    let tested = crate::command::run(&["policy", "test", "--bundle", after, tests.to_str().unwrap()]);
    assert_eq!(tested.code, 0, "{}{}", tested.stdout, tested.stderr);
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/assistant.jsonl");
    let differs = crate::command::run(&["policy", "diff", before, after, traces.to_str().unwrap(), "--json"]);
    let summary = differs.json().pop().unwrap();
    assert_eq!((&summary["loosened"], &summary["parts"]), (&json!(0), &json!(3)), "{}", differs.stdout);
}

#[test]
fn what_nothing_can_do_is_refused_and_never_guessed() {
    let refused = compile("Faxes to competitors need a signature.\n", &["--accept-defaults"]);
    assert_eq!(refused.code, 2, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stdout.contains("0 rules"), "{}", refused.stdout);
}

#[test]
fn recorded_runs_show_what_a_draft_would_stop() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/assistant.jsonl");
    let request = "Only analysts may use perform_calculation.\nFiles may only be written under /storage.\n";
    let judged = compile(request, &["--accept-defaults", "--runs", traces.to_str().unwrap(), "--json"]);
    assert_eq!(judged.code, 0, "{}{}", judged.stdout, judged.stderr);
    let recorded = &judged.json()[0]["recorded"];
    assert_eq!((&recorded["runs"], &recorded["calls"]), (&4.into(), &9.into()), "{recorded}");
    let stopped = recorded["stopped"]["perform_calculation"].as_u64().unwrap();
    assert!(stopped > 0 && recorded["stopped_runs"].as_u64().unwrap() > 0, "{recorded}");
    let examples = recorded["examples"].as_array().unwrap();
    assert!(
        examples.len() <= 3 && examples[0]["place"].as_str().unwrap().contains("run 1 call"),
        "{recorded}"
    );
    let shown = compile(request, &["--accept-defaults", "--runs", traces.to_str().unwrap()]);
    assert!(shown.stdout.contains("would newly stop"), "{}", shown.stdout);
    let missing = compile(request, &["--accept-defaults", "--runs", "no-such-file"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
}
