//! The example of a daemon with extensions of one's own, as a process.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use portcullis_core::event::Enforced;
use portcullis_core::principal::CredentialKind;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{OpenRun, ProposeAction, ReportInput, ReportOutput, ReportTold, Role};
use portcullis_gateway::client::{Client, ClientRun, Judged};
use portcullis_gateway::home::Home;
use portcullis_session::engine::Reach;
use portcullis_session::surface::Surface as _;

/// Cargo builds the examples of a package with its tests, unless only some tests are asked for.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test.ancestors().nth(2).unwrap().join("examples/own_daemon");
    if !example.exists() {
        let build = ["build", "--quiet", "--package", "portcullis-gateway", "--example", "own_daemon"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    example
}

fn rule(judged: &Judged) -> &str {
    judged.findings.first().map_or("", |finding| &finding.rule)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_takes_guards_an_escalation_policy_and_a_metrics_subscriber_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(&folder.path().join("home")).unwrap();
    let mut daemon = Command::new(example())
        .arg(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = Client::new(home, CredentialKind::Agent);
    let mut tries = 0;
    let opened = loop {
        match client.open_run(&OpenRun { surface: "test".into(), ..OpenRun::default() }).await {
            Ok(opened) => break opened,
            Err(error) if tries > 200 => panic!("{error}"),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let run = ClientRun::new(client, opened.run);
    let think = |what: &str| {
        let action = ProposeAction { planned: Some("think".into()), ..ProposeAction::default() };
        run.propose(ProposeAction { arguments: serde_json::json!({ "about": what }), ..action })
    };

    // The safeguard at each hook.
    let said = |text: &str| ReportInput { text: text.into(), role: Role::User, reach: Reach::Withhold };
    assert_eq!(run.input(said("What is Heron?")).await.unwrap().enforced, Enforced::Withheld);
    let told = |text: &str| ReportTold { server: "s".into(), content: text.into(), reach: Reach::Replace };
    assert_eq!(run.told(told("Heron is late")).await.unwrap().enforced, Enforced::Withheld);
    let reply = |text: &str| ReportOutput {
        text: text.into(),
        documents: None,
        reach: Reach::Withhold,
        wait_ms: None,
        last: false,
    };
    assert_eq!(run.output(reply("Heron is late")).await.unwrap().enforced, Enforced::Withheld);
    assert_eq!(run.output(reply("It is late")).await.unwrap().enforced, Enforced::Executed);
    assert_eq!(rule(think("Heron").await.unwrap().judged()), "house/code-name");

    // The escalation policy.
    assert!(think("the second step").await.unwrap().is_permitted());
    let third = think("the third step").await.unwrap();
    assert!(third.is_permitted() && third.judged().verdict == Verdict::Warn);
    let fourth = run.propose(ProposeAction { wait_ms: Some(0), ..ProposeAction::default() }).await.unwrap();
    assert_eq!((fourth.judged().enforced, rule(fourth.judged())), (Enforced::Held, "house/steps"));
    run.close().await.unwrap();

    // The metrics, and an end in good order.
    let id = daemon.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    let lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let last = lines.last().unwrap().unwrap();
    assert!(last.contains("\"proposed\": 4") && last.contains("\"run-closed\": 1"), "{last}");
    assert!(daemon.wait().unwrap().success());
}
