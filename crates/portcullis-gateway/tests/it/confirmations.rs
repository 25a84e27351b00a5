//! Calls that the user is asked about, and confirms, over `/v1`.

use std::path::Path;

use portcullis_core::denial::DenialClass;
use portcullis_core::event::{Event, EventBody};
use portcullis_gateway::api::{ProposeAction, ReportConfirmation, ReportEvidence, ReportInput, Role};
use portcullis_session::engine::Reach;
use serde_json::json;

use crate::daemon::{Daemon, call, open};

const ASKING: &str = "permit (principal, action, resource);\n\
     @decision(\"clarify\") @reason(\"about these fees?\")\n\
     forbid (principal, action in Action::\"call\", resource == Tool::\"Retrieve Compliance Documents\");\n";

fn search(number: u32) -> ProposeAction {
    call("retrieve_compliance_documents", json!({"query": format!("fees {number}")}), 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_confirmation_lets_a_call_go_ahead_that_the_user_is_asked_about() {
    let daemon = Daemon::start_with_bundle(|bundle: &Path| {
        std::fs::create_dir_all(bundle.join("access")).unwrap();
        std::fs::write(bundle.join("access/asking.cedar"), ASKING).unwrap();
    })
    .await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let asked = async |number: u32| {
        let denial = agent.propose(run, &search(number)).await.unwrap().denial().cloned().unwrap();
        assert_eq!(denial.class, DenialClass::ClarificationNeeded, "{denial:?}");
        denial
    };
    let first = asked(1).await;
    let action = first.action.unwrap();
    let said = |text: &str| ReportInput { text: text.into(), role: Role::User, reach: Reach::Replace };
    let page = agent.events(&run.to_string(), 0, 1_000).await.unwrap();
    let proposed = page.lines.split(|byte| *byte == b'\n').find_map(|line| match Event::from_line(line) {
        Ok(Event { body: EventBody::Proposed(proposed), .. }) => Some(proposed),
        _ => None,
    });
    // What an agent records by the name of a confirmation is none.
    let name = "user-confirmed".to_owned();
    let forged = ReportEvidence { name, digest: proposed.unwrap().digest };
    agent.evidence(run, &forged).await.unwrap();
    agent.input(run, &said("yes")).await.unwrap();
    let second = asked(1).await;

    let confirm = |action| ReportConfirmation { action, text: "yes".into() };
    let late = agent.confirm(run, &confirm(action)).await.unwrap_err();
    assert_eq!(late.code(), Some("not_asked"), "that question is over");
    agent.confirm(run, &confirm(second.action.unwrap())).await.unwrap();
    assert!(agent.propose(run, &search(1)).await.unwrap().is_permitted());
    let again = agent.confirm(run, &confirm(second.action.unwrap())).await.unwrap_err();
    assert_eq!(again.code(), Some("not_asked"));
    asked(1).await;
}
