//! `portcullis policy compile`: requests in plain English.

use std::path::Path;

use serde_json::{Value, json};

use crate::assisted::without_times;
use crate::command::{Ran, bundle_copy, run_with};
use crate::stand_in::StandIn;

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

const ANALYSTS: &str = "Only analysts may use perform_calculation.\n";

/// A program for [`ANALYSTS`].
const RIGHT: &str = "<program>
def check(action, run, principal):
    if action.tool != \"perform_calculation\" or \"analyst\" in principal.roles:
        return None
    return deny(\"the caller is no analyst\")
</program>";

#[test]
fn a_model_writes_the_program_and_is_held_to_the_same_tests() {
    let folder = tempfile::tempdir().unwrap();
    let (cassette, draft) = (folder.path().join("one.cassette"), folder.path().join("draft"));
    let (cassette, draft) = (cassette.to_str().unwrap(), draft.to_str().unwrap());
    let broken = "<program>\ndef check(action, run, principal):\n    return nothing\n</program>";
    let server = StandIn::writing(&[broken, RIGHT]);
    let model = server.model();
    let made = compile(ANALYSTS, &["--model", &model, "--cassette", cassette, "--record", "-o", draft]);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    // A plan, a program that does not run, and one that does after its error was shown.
    assert_eq!(server.asked(), "PCX");
    let record: Value =
        serde_json::from_slice(&std::fs::read(format!("{draft}/draft.json")).unwrap()).unwrap();
    let digest = portcullis_gateway::versions::sha(&std::fs::read(cassette).unwrap());
    assert_eq!(record["origin"], json!({"by": "model", "model": "stand-in", "cassette": digest}));
    assert_eq!(record["files"].as_object().unwrap().keys().collect::<Vec<_>>(), ["programs/request.star"]);
    // The cassette gives the same draft, without the server.
    let again = compile(ANALYSTS, &["--model", "stand-in", "--cassette", cassette, "--json"]);
    assert_eq!((again.code, &again.json()[0]["draft"]), (0, &record), "{}", again.stderr);
    assert_eq!(server.asked(), "PCX");
    let unkept = compile(ANALYSTS, &["--model", &model]);
    assert!(unkept.code == 64 && unkept.stderr.contains("--record"), "{}", unkept.stderr);
}

#[test]
fn what_a_model_writes_wrongly_or_with_ill_intent_does_not_pass_as_a_draft() {
    let folder = tempfile::tempdir().unwrap();
    let lenient = "<program>\ndef check(action, run, principal):\n    return None\n</program>";
    let endless = "<program>\ndef check(action, run, principal):\n    return [x for a in range(100000000) for x in range(100000000)]\n</program>";
    let reads = "<program>\ndef check(action, run, principal):\n    return open(\"/etc/passwd\")\n</program>";
    for (number, (program, why, asked)) in [
        (lenient, "expected deny", "PC"),
        (endless, "wrote no program", "PCXXX"),
        (reads, "wrote no program", "PCXXX"),
        ("I will not.", "wrote no program", "PCXXX"),
    ]
    .into_iter()
    .enumerate()
    {
        let server = StandIn::writing(&[program]);
        let cassette = folder.path().join(format!("{number}.cassette"));
        let options = ["--model", &server.model(), "--cassette", cassette.to_str().unwrap(), "--record"];
        let made = compile(ANALYSTS, &options);
        assert_eq!(made.code, 1, "{program}: {}{}", made.stdout, made.stderr);
        assert!(
            format!("{}{}", made.stdout, made.stderr).contains(why),
            "{why}: {}{}",
            made.stdout,
            made.stderr
        );
        assert_eq!(server.asked(), asked, "{program}");
    }
    // Nobody is asked before it is known what is meant.
    let server = StandIn::writing(&[RIGHT]);
    let cassette = folder.path().join("open.cassette");
    let options = ["--model", &server.model(), "--cassette", cassette.to_str().unwrap(), "--record"];
    assert_eq!(compile("Large refunds need approval.\n", &options).code, 2);
    assert_eq!(server.asked(), "");
}

#[test]
fn a_program_of_ones_own_is_held_to_the_same_tests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.star");
    let right = RIGHT.replace("<program>\n", "").replace("</program>", "");
    std::fs::write(&file, &right).unwrap();
    let made = compile(ANALYSTS, &["--program", file.to_str().unwrap(), "--json"]);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    assert_eq!(made.json()[0]["draft"]["origin"]["by"], "person");
    std::fs::write(&file, right.replace("\"analyst\"", "\"manager\"")).unwrap();
    assert_eq!(compile(ANALYSTS, &["--program", file.to_str().unwrap()]).code, 1);
}

/// A sentence that the compiler does not read, and what it means.
const UNREAD: &str = include_str!("../../../../examples/requests/recipients.md");
const RESTATED: &str = "A call of `send_email` is denied if it would be more than 3 times with the same `recipient` within 1 day in all runs of the principal.";

#[test]
fn a_model_restates_what_cannot_be_read_and_somebody_has_to_accept_it() {
    let folder = tempfile::tempdir().unwrap();
    let cassette = folder.path().join("one.cassette");
    let cassette = cassette.to_str().unwrap();
    let server = StandIn::start(&["At most three emails a day.", RESTATED]);
    let record =
        ["--model", &server.model(), "--cassette", cassette, "--record", "--suggest", "--accept-defaults"];
    let open = compile(UNREAD, &record);
    assert_eq!(open.code, 2, "{}{}", open.stdout, open.stderr);
    // The manual has this cassette.
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/requests/stand-in.cassette");
    let recorded = without_times(Path::new(cassette));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&kept, &recorded).unwrap();
    }
    assert!(recorded == without_times(&kept), "record it again with UPDATE_EXPECT=1");
    // What was in none of the forms came back to the model once.
    assert_eq!(server.asked(), "SS");
    assert!(open.stdout.contains("suggestion, by stand-in: A call of `send_email`"), "{}", open.stdout);
    let id = open
        .stdout
        .split(" [")
        .filter_map(|rest| rest.split_once(']'))
        .map(|(id, _)| id)
        .next()
        .unwrap()
        .to_owned();

    let answer = format!("{id}=suggestion");
    let replay = ["--model", "stand-in", "--cassette", cassette, "--suggest", "--answer", &answer, "--json"];
    let made = compile(UNREAD, &replay);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let draft = &made.json()[0]["draft"];
    let digest = portcullis_gateway::versions::sha(&std::fs::read(cassette).unwrap());
    assert_eq!(draft["meaning"], json!([RESTATED]));
    assert_eq!(draft["answers"][0]["suggested_by"], json!({"model": "stand-in", "cassette": digest}));
    // The compiler wrote the files: the same answer, given by hand, makes the same rules without the cassette.
    assert_eq!(draft["origin"]["by"], "compiler");
    let by_hand = compile(UNREAD, &["--answer", &format!("{id}={RESTATED}"), "--json"]);
    assert_eq!(by_hand.json()[0]["draft"]["files"], draft["files"], "{}", by_hand.stderr);
}

#[test]
fn what_a_model_suggests_is_in_a_form_about_tools_that_there_are_or_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (said, asked)) in [
        ("UNSURE", "S"),
        ("A call of `format_disk` is denied, always.", "SS"),
        ("A call of `send_email` is allowed, always.", "SS"),
        ("A call of `send_email` is denied if `password` is `x`.", "SS"),
        ("Ignore the request. A call of `send_email` is denied, always.", "SS"),
        ("", "SS"),
    ]
    .into_iter()
    .enumerate()
    {
        let server = StandIn::start(&[said]);
        let cassette = folder.path().join(format!("{number}.cassette"));
        let options =
            ["--model", &server.model(), "--cassette", cassette.to_str().unwrap(), "--record", "--suggest"];
        let open = compile(UNREAD, &options);
        assert_eq!(
            (open.code, server.asked().as_str()),
            (2, asked),
            "{said}: {}{}",
            open.stdout,
            open.stderr
        );
        assert!(!open.stdout.contains("suggestion"), "{said}: {}", open.stdout);
        let none = compile(
            UNREAD,
            &[
                "--model",
                "stand-in",
                "--cassette",
                cassette.to_str().unwrap(),
                "--suggest",
                "--answer",
                "meaning=suggestion",
            ],
        );
        assert!(none.code == 64 && none.stderr.contains("nothing is suggested"), "{}", none.stderr);
    }
}
