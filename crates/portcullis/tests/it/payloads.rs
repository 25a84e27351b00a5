//! Arguments and results of a run, for whoever may read them.

use portcullis_gateway::api::ProposeAction;
use portcullis_session::surface::Surface as _;
use serde_json::json;

use crate::daemon::{State, open, proposal, runtime};

#[test]
fn the_texts_of_a_run_are_shown_in_its_order() {
    let state = State::new();
    assert_eq!(state.run(&["simulate", "--plan", "Calculation Task"]).code, 0);
    let [listed] = state.run(&["runs", "list", "--json"]).json().try_into().unwrap();
    let run = listed["run"].as_str().unwrap();
    let plain = state.run(&["runs", "show", run]).stdout;
    assert!(!plain.contains("1240000"), "{plain}");
    let shown = state.run(&["runs", "show", run, "--payloads"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let arguments = shown.stdout.find("\"expression\": \"1240000 * 2.5 / 100\"").expect(&shown.stdout);
    let result = shown.stdout.find("1240000 * 2.5 / 100 = 31000").expect(&shown.stdout);
    assert!(arguments < result && !shown.stdout.contains("digest-key"), "{}", shown.stdout);
    let lines = state.run(&["runs", "show", run, "--payloads", "--json"]).json();
    assert_eq!(lines[0]["run"], run);
    let of = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!(of("arguments")["text"], r#"{"expression":"1240000 * 2.5 / 100"}"#);
    assert_eq!(
        (of("content")["kind"].as_str(), of("content")["erased"].as_bool()),
        (Some("observation"), Some(false))
    );

    let erased = state.run(&["erase", run, "--reason", "asked to", "--yes"]);
    assert_eq!(erased.code, 0, "{}{}", erased.stdout, erased.stderr);
    let gone = state.run(&["runs", "show", run, "--payloads"]).stdout;
    assert!(gone.contains("bytes, erased)") && !gone.contains("1240000"), "{gone}");
}

/// What an agent writes cannot clear the screen of a person, nor pass for a line of the display.
#[test]
fn texts_of_others_are_shown_as_such_and_only_to_those_who_may_read_them() {
    let state = State::new();
    assert_eq!(state.run(&["simulate", "--plan", "Calculation Task"]).code, 0);
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let arguments = json!({"path": "/srv/\u{1b}[2Ja"});
    let planned = Some("Go.\n     9  verdict".to_owned());
    let proposal = ProposeAction { arguments, planned, ..proposal("rotate_keys") };
    runtime.block_on(run.propose(proposal.clone())).unwrap();
    let id = run.id().to_string();
    let shown = state.run(&["runs", "show", &id, "--payloads"]).stdout;
    assert!(!shown.contains('\u{1b}') && shown.contains("| "), "{shown}");

    // Without the approver's token, the agent's: for runs of its own principal.
    let other = state.run(&["runs", "list", "--json"]).json();
    let other = other.iter().find(|listed| listed["run"] != id.as_str()).unwrap()["run"].clone();
    std::fs::remove_file(state.home().join("credentials/approver.token")).unwrap();
    assert!(state.run(&["runs", "show", &id, "--payloads"]).stdout.contains("rotate"));
    let refused = state.run(&["runs", "show", other.as_str().unwrap(), "--payloads"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
}
