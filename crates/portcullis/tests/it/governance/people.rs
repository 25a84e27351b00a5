//! Who decided, what was erased, and what a run of a real agent is called.

use crate::daemon::{State, open, proposal, runtime};
use portcullis_session::surface::Surface as _;

#[test]
fn a_pack_names_who_decided_with_which_note_and_what_was_erased_and_why() {
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap();
    let [waiting] = state.run(&["approvals", "list", "--json"]).json().try_into().unwrap();
    let approval = waiting["approval"].as_str().unwrap();
    let [asked] = state.run(&["approvals", "show", approval, "--json"]).json().try_into().unwrap();
    let shown = asked["shown"].as_str().unwrap();
    let granted =
        state.run(&["approvals", "grant", approval, "--shown", shown, "--note", "checked the `vault`"]);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    let id = run.id().to_string();
    for (control, note) in [("pause", "wrong folder"), ("resume", "right after all")] {
        let noted = state.run(&["runs", control, &id, "--note", note]);
        assert_eq!(noted.code, 0, "{}", noted.stderr);
    }
    runtime.block_on(run.close()).unwrap();
    drop((run, runtime));
    state.until_closed();
    let erased =
        state.run(&["erase", &id, "--name", "arguments", "--reason", "asked to by the customer", "--yes"]);
    assert_eq!(erased.code, 0, "{}", erased.stderr);

    let made = |name: &str| {
        let ran = state.run(&["governance", &id, "--file", name]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let risks = made("residual_risk_summary.md");
    for told in [
        "## Who decided",
        "granted `rotate_keys` (this call, once; requested in event ",
        "Note: `checked the 'vault'`",
        "paused the run (event ",
        "let the run go on (event ",
        "Note: `wrong folder`",
        "## What was erased",
        "erased 3 payloads on ",
        "Reason: `asked to by the customer`",
        "- `arguments` of event ",
        "3 erased, 0 withheld from this export",
    ] {
        assert!(risks.contains(told), "{told}: {risks}");
    }
    let summary = made("summary_report.md");
    assert!(summary.contains("| Total Agent Steps |") && !summary.contains("Simulated"), "{summary}");
    for file in portcullis_governance::FILES.iter().filter(|file| file.ends_with(".md")) {
        assert!(!made(file).contains("imulated"), "{file}");
    }
}
