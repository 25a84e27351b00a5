//! The client against a scripted daemon stand-in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use portcullis_session::surface::Surface as _;
use serde_json::json;

use super::stand_in::{self, RUN, StandIn, now, refusal, usual};
use super::*;

fn script(dir: &std::path::Path, text: &str) -> StartOptions {
    let program = dir.join("program");
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    StartOptions { program: Some(program), ..StartOptions::default() }
}

fn proposal() -> ProposeAction {
    let arguments = json!({"a": 1});
    ProposeAction { tool: Some("t".into()), arguments, ..ProposeAction::default() }
}

fn permit(seq: u64) -> serde_json::Value {
    json!({"action": "a".repeat(32), "step": 1, "verdict": "allow", "enforced": "executed", "permit": true,
           "denial": null, "approval": null, "findings": [], "seq": seq})
}

fn open() -> OpenRun {
    OpenRun { surface: "mcp".into(), session: Some("s".into()), ..OpenRun::default() }
}

#[tokio::test]
async fn requests_run_side_by_side_and_connections_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let _daemon = StandIn::start(&home, |path, _| {
        let held = path.starts_with("POST /v1/runs/");
        let usual = usual(path);
        Box::pin(async move {
            if held {
                tokio::time::sleep(Duration::from_millis(300)).await;
                return (200, permit(1));
            }
            usual.unwrap().await
        })
    });
    let client = Client::new(home, CredentialKind::Agent);
    let begin = Instant::now();
    let run = RUN.parse().unwrap();
    let held = async { client.propose(run, &proposal()).await.unwrap() };
    let others = async {
        for _ in 0..20 {
            client.health().await.unwrap();
        }
        begin.elapsed()
    };
    let (answer, quick) = tokio::join!(held, others);
    assert!(answer.is_permitted() && quick < Duration::from_millis(250), "{quick:?}");
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn refusals_and_nonsense_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let _daemon = StandIn::start(&home, |path, _| match path {
        "POST /v1/approvals/abcdef/grant" => refusal(403, "forbidden", "the approver's credential is needed"),
        "GET /v1/health" => now(200, json!({"status": 7})),
        _ => now(500, json!("?")),
    });
    let client = Client::new(home.clone(), CredentialKind::Agent);
    let error = client.grant("abcdef", &GrantApproval::default()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Some("forbidden"), "the approver's credential is needed")
    );
    let error = client.health().await.unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    let error = client.runs(1).await.unwrap_err().to_string();
    assert!(error.contains("500"), "{error}");
    for id in ["../../x", "abc", "ABCDEF", &"a".repeat(33)] {
        assert!(matches!(client.run(id).await, Err(ClientError::Id(_))), "{id}");
    }
    let approver = Client::new(home, CredentialKind::Approver);
    let error = approver.health().await.unwrap_err().to_string();
    assert!(error.contains("approver.token"), "{error}");
}

#[tokio::test]
async fn dropping_a_held_request_closes_its_connection() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    struct OnDrop(Arc<AtomicU32>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let given_up = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&given_up);
    let _daemon = StandIn::start(&home, move |_, _| {
        let guard = OnDrop(Arc::clone(&seen));
        Box::pin(async move {
            let _guard = guard;
            std::future::pending().await
        })
    });
    let client = Client::new(home, CredentialKind::Agent);
    let run = RUN.parse().unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(100), client.propose(run, &proposal())).await;
    assert!(waited.is_err());
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if given_up.load(Ordering::SeqCst) == 1 {
            return;
        }
    }
    panic!("the daemon never learned that nobody waits");
}

#[tokio::test]
async fn a_daemon_that_does_not_come_up_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let options = script(dir.path(), "echo first; echo 'the store is locked' >&2; exit 3");
    let error = ensure_daemon(&home, &options).await.unwrap_err();
    let ClientError::NotUp { why, tail, .. } = &error else { panic!("{error}") };
    assert!(why.contains("exit status: 3"), "{why}");
    assert_eq!(tail, "first\nthe store is locked");

    // The log keeps all starts; the error quotes this one.
    let again = ensure_daemon(&home, &script(dir.path(), "echo second; exit 3")).await.unwrap_err();
    let ClientError::NotUp { tail, .. } = &again else { panic!("{again}") };
    assert_eq!(tail, "second");
    let log = std::fs::read_to_string(home.log()).unwrap();
    assert!(log.starts_with("first\n") && log.ends_with("second\n"), "{log}");

    let missing = StartOptions { program: Some(PathBuf::from("/nowhere/at-all")), ..StartOptions::default() };
    let error = ensure_daemon(&home, &missing).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot start the daemon `/nowhere/at-all`"), "{error}");
}

#[tokio::test]
async fn a_started_daemon_is_waited_for_and_gets_its_folder_and_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let mut options = script(dir.path(), "echo \"$@\"; exec sleep 2");
    options.bundle = Some("some/bundle".into());
    let (ensured, daemon) = tokio::join!(ensure_daemon(&home, &options), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        StandIn::start(&home, |path, _| usual(path).unwrap())
    });
    ensured.unwrap();
    drop(daemon);
    let log = fs::read_to_string(home.log()).unwrap();
    let bundle = std::path::absolute("some/bundle").unwrap();
    assert_eq!(log, format!("serve --home {} --bundle {}\n", dir.path().display(), bundle.display()));
}

#[tokio::test]
async fn losing_the_lock_to_a_daemon_that_goes_away_starts_another() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let options = script(dir.path(), "echo started; exit 0");
    let (ensured, _daemon) = tokio::join!(ensure_daemon(&home, &options), async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        StandIn::start(&home, |path, _| usual(path).unwrap())
    });
    ensured.unwrap();
    assert_eq!(fs::read_to_string(home.log()).unwrap(), "started\nstarted\n");
}

#[tokio::test]
async fn a_run_goes_on_when_the_daemon_dies() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let answer = |path: &str, _| usual(path).unwrap_or_else(|| now(200, permit(7)));
    let first = StandIn::start(&home, answer);
    let options = script(dir.path(), "exit 0");
    let run = Run::open(&home, options, open()).await.unwrap();
    let proposal = proposal();
    assert_eq!(run.propose(proposal.clone()).await.unwrap().judged().seq, 7);
    drop(first);
    let (answered, second) = tokio::join!(run.propose(proposal), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        StandIn::start(&home, answer)
    });
    assert!(answered.unwrap().is_permitted());
    let opened = second.asked("/v1/runs");
    assert_eq!(opened.len(), 1, "one shim takes the run up once: {opened:?}");
    assert_eq!((&opened[0]["resume"], &opened[0]["session"]), (&json!(RUN), &json!("s")));
    run.close().await.unwrap();
    assert_eq!(second.asked("/close").len(), 1);
}

#[tokio::test]
async fn a_run_that_answers_in_between_survives_any_number_of_deaths() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let answer = |path: &str, _| usual(path).unwrap_or_else(|| now(200, permit(7)));
    let mut daemon = StandIn::start(&home, answer);
    let run = Run::open(&home, StartOptions::default(), open()).await.unwrap();
    let proposal = proposal();
    for _ in 0..2 * RESUMES_IN_A_ROW_MAX {
        daemon = {
            drop(daemon);
            StandIn::start(&home, answer)
        };
        assert!(run.propose(proposal.clone()).await.unwrap().is_permitted());
    }
    drop(daemon);
}

#[tokio::test]
async fn a_run_that_the_daemon_forgot_is_opened_again_and_not_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let daemon = StandIn::start(&home, |path, _| {
        usual(path).unwrap_or_else(|| refusal(409, "run_not_live", "the run is closed"))
    });
    let run = Run::open(&home, StartOptions::default(), open()).await.unwrap();
    let error = run.propose(proposal()).await.unwrap_err();
    assert_eq!(error.code(), Some("run_not_live"));
    assert_eq!(daemon.asked("/actions").len(), 3);
    assert_eq!(daemon.asked("/v1/runs").len(), 3);
}

#[tokio::test]
async fn a_denied_run_is_no_reason_to_start_over() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let daemon = StandIn::start(&home, |path, _| match path {
        "POST /v1/runs" => refusal(409, "bundle_mismatch", "the run is governed by another bundle"),
        _ => usual(path).unwrap(),
    });
    let error = Run::open(&home, StartOptions::default(), open()).await.unwrap_err();
    assert_eq!(error.code(), Some("bundle_mismatch"));
    assert_eq!(daemon.asked("/v1/runs").len(), 1);
}
