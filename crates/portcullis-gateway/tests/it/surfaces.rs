//! One surface over the socket and one in the process of the gate: the same requests, the same answers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{
    OpenRun, ProposeAction, ProposeTurn, ReportInput, ReportOutcome, ReportOutput, ReportTold, Role,
    TURN_ACTIONS_MAX,
};
use portcullis_gateway::client::{Client, ClientRun};
use portcullis_ledger::{Location, OpenOptions};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::Reach;
use portcullis_session::gate::Gate;
use portcullis_session::listings::Listings;
use portcullis_session::surface::{Local, LocalRun, Surface};
use portcullis_session::{policy, shipped};
use serde_json::json;

use crate::daemon::{Daemon, POLICY};

fn open() -> OpenRun {
    OpenRun { surface: "test".into(), policy: Some("mail".into()), ..OpenRun::default() }
}

fn call(tool: &str, number: u32) -> ProposeAction {
    ProposeAction {
        tool: Some(tool.into()),
        arguments: json!({"query": format!("q{number}")}),
        wait_ms: Some(50),
        ..ProposeAction::default()
    }
}

/// What a surface answers, request by request, in words that do not depend on ids and times.
async fn answers(run: &impl Surface) -> Vec<String> {
    let mut answers = Vec::new();
    let input = ReportInput { text: "find the plan".into(), role: Role::User, reach: Reach::Withhold };
    answers.push(format!("{:?}", run.input(input).await.unwrap().enforced));
    let turn = ProposeTurn {
        actions: vec![
            call("retrieve_compliance_documents", 1),
            call("unheard_of", 2),
            call("unheard_of", 3),
            call("retrieve_compliance_documents", 4),
        ],
    };
    for proposed in run.propose_turn(turn).await.unwrap() {
        let judged = proposed.judged();
        let rule = judged.findings.first().map(|finding| finding.rule.to_string());
        answers.push(format!(
            "step {} {} {:?} {rule:?}",
            judged.step,
            judged.verdict.as_str(),
            judged.enforced
        ));
        if let Some(permit) = proposed.permit() {
            let content = Some("a result".to_owned());
            let outcome = ReportOutcome::of(permit.action(), OutcomeStatus::Ok, content);
            answers.push(format!("{:?}", run.outcome(outcome).await.unwrap().enforced));
        }
    }
    let told = ReportTold { server: "s".into(), content: "half way".into(), reach: Reach::Replace };
    answers.push(format!("{:?}", run.told(told).await.unwrap().enforced));
    let output = ReportOutput {
        text: "done".into(),
        documents: None,
        reach: Reach::Withhold,
        wait_ms: None,
        last: false,
    };
    answers.push(format!("{:?}", run.output(output).await.unwrap().enforced));
    let wrong = ProposeAction { confidence: Some(2.0), ..call("retrieve_compliance_documents", 5) };
    answers.push(run.propose(wrong.clone()).await.unwrap_err().to_string());
    let turn = ProposeTurn { actions: vec![call("retrieve_compliance_documents", 6), wrong] };
    answers.push(run.propose_turn(turn).await.unwrap_err().to_string());
    let turn = ProposeTurn { actions: vec![call("retrieve_compliance_documents", 7); TURN_ACTIONS_MAX + 1] };
    answers.push(run.propose_turn(turn).await.unwrap_err().to_string());
    run.close().await.unwrap();
    answers
}

/// A run in this process.
async fn local_run(folder: &Path) -> LocalRun {
    let ledger = Location::Folder(folder.join("ledger")).open(OpenOptions::default()).unwrap();
    let mut files = shipped::default_bundle();
    files.insert("policies/mail.toml".into(), POLICY.into());
    let gate = Gate::new(ledger, Arc::new(policy::pipeline()), Bundles::new(None, &files).unwrap());
    let local = Local::new(gate, Arc::new(Listings::at(folder.join("listings"))), None);
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    let opened = local.open(identity.clone(), open()).await.unwrap();
    local.run(&identity, opened.run).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_of_a_turn_that_nobody_waits_for_any_more_are_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let run = local_run(folder.path()).await;
    let held = ProposeAction { wait_ms: Some(400), ..call("unheard_of", 2) };
    let turn = ProposeTurn { actions: vec![call("retrieve_compliance_documents", 1), held] };
    let given_up = tokio::time::timeout(Duration::from_millis(200), run.propose_turn(turn)).await;
    assert!(given_up.is_err(), "the second call waits for a person");
    let executing = || async {
        let run = run.clone().run();
        run.with_state(|state, _| state.executing_actions().len()).await
    };
    assert_eq!(executing().await, 1);
    for _ in 0..100 {
        if executing().await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the first call still counts as executing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surface_over_the_socket_and_one_in_the_process_answer_alike() {
    let daemon = Daemon::start().await;
    let client = Client::new(daemon.home.clone(), CredentialKind::Agent);
    let opened = client.open_run(&open()).await.unwrap();
    let socket = answers(&ClientRun::new(client, opened.run)).await;

    let folder = tempfile::tempdir().unwrap();
    let here = answers(&local_run(folder.path()).await).await;

    assert_eq!(socket, here);
    let judged: Vec<&String> = socket.iter().filter(|answer| answer.starts_with("step")).collect();
    for (number, judged) in judged.iter().enumerate() {
        assert!(
            judged.starts_with(&format!("step {}", number + 1)),
            "judged in the order of the turn: {judged}"
        );
    }
    let of = |verdict: Verdict, enforced: Enforced| {
        let wanted = format!("{} {enforced:?}", verdict.as_str());
        judged.iter().filter(|answer| answer.contains(&wanted)).count()
    };
    assert_eq!((judged.len(), of(Verdict::Review, Enforced::Held)), (4, 2), "{judged:?}");
}
