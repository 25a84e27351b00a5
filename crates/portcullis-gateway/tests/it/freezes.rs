//! Freezes over `/v1`: who may order them, and from when on they are in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis_core::denial::DenialClass;
use portcullis_core::event::{Control, Enforced, Event, EventBody};
use portcullis_core::freeze::{FreezeScope, Frozen};
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{
    ApprovalFilter, ControlRun, FreezeRuns, FreezeTarget, GrantApproval, ProposeTurn, ReleaseRuns,
    ReleaseStage,
};
use portcullis_gateway::client::Client;
use serde_json::json;

use crate::daemon::{Daemon, call, mail, open};

fn all(note: Option<&str>) -> FreezeRuns {
    FreezeRuns { scope: FreezeTarget::All, note: note.map(str::to_owned) }
}

fn release(stage: ReleaseStage) -> ReleaseRuns {
    ReleaseRuns { scope: FreezeTarget::All, stage, note: None }
}

fn search(number: u32) -> portcullis_gateway::api::ProposeAction {
    call("retrieve_compliance_documents", json!({"query": number.to_string()}), 0)
}

async fn events(client: &Client, run: &str) -> Vec<Event> {
    let page = client.events(run, 0, 1_000).await.unwrap();
    let lines = page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Event::from_line(line).unwrap()).collect()
}

/// What an agent that never stops asking was answered: when it asked, and whether it got a permit.
type Asked = Vec<(Instant, bool)>;

/// Proposes until it is told to stop.
async fn ask_on(agent: Client, run: portcullis_core::id::RunId, stop: Arc<AtomicBool>) -> Asked {
    let mut asked = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let sent = Instant::now();
        let permitted = agent.propose(run, &search(number)).await.unwrap().is_permitted();
        asked.push((sent, permitted));
    }
    asked
}

/// A policy under which an agent may ask for long.
fn patient(bundle: &std::path::Path) {
    let policy = crate::daemon::POLICY.replace("max_steps = 50", "max_steps = 1000000");
    std::fs::write(bundle.join("policies/mail.toml"), policy).unwrap();
    let main = bundle.join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, format!("{text}\n[loops]\nalike = 0\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_agent_gets_a_permit_after_a_freeze_was_answered() {
    let daemon = Daemon::start_with_bundle(patient).await;
    let approver = daemon.approver();
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(daemon.agent().open_run(&open("mail", None)).await.unwrap().run);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = runs
        .iter()
        .take(8)
        .map(|run| tokio::spawn(ask_on(daemon.agent(), *run, Arc::clone(&stop))))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ordered = Instant::now();
    let answer = approver.freeze(&all(Some("odd payments"))).await.unwrap();
    let answered = Instant::now();
    assert!(answered - ordered < Duration::from_secs(1), "{:?}", answered - ordered);
    assert_eq!((answer.runs, answer.unrecorded), (50, 0));
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.store(true, Ordering::Relaxed);
    for asked in asking {
        let asked = asked.await.unwrap();
        let (before, after): (Vec<_>, Vec<_>) = asked.iter().partition(|(sent, _)| *sent < answered);
        assert!(before.iter().any(|(_, permitted)| *permitted), "it had permits before");
        assert!(!after.is_empty() && after.iter().all(|(_, permitted)| !permitted), "{after:?}");
    }
    // The record of each run says so, too.
    for run in runs {
        let events = events(&approver, &run.to_string()).await;
        let is_freeze = |event: &Event| {
            matches!(event.body, EventBody::Control { control: Control::Freeze, .. })
                && event.actor.as_str() == "approver:local-approver"
        };
        let frozen = events.iter().position(is_freeze).expect("each live run has its event");
        let permits = events[frozen..].iter().filter(|event| match &event.body {
            EventBody::Enforcement { enforced, .. } => enforced.may_happen(),
            _ => false,
        });
        assert_eq!(permits.count(), 0, "run {run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_neither_freeze_nor_release() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    assert_eq!(agent.freeze(&all(None)).await.unwrap_err().code(), Some("forbidden"));
    approver.freeze(&all(None)).await.unwrap();
    for stage in [ReleaseStage::Reads, ReleaseStage::All] {
        assert_eq!(agent.release(&release(stage)).await.unwrap_err().code(), Some("forbidden"));
    }
    // Neither does a way around: a control, or another segment of the run.
    let control = ControlRun { control: Control::Release, note: None };
    assert_eq!(approver.control(&run.to_string(), &control).await.unwrap_err().code(), Some("bad_request"));
    agent.close(run).await.unwrap();
    let again = portcullis_gateway::api::OpenRun { resume: Some(run), ..open("mail", None) };
    let run = agent.open_run(&again).await.unwrap().run;
    let denied = agent.propose(run, &search(1)).await.unwrap();
    assert_eq!(denied.denial().unwrap().class, DenialClass::Frozen);
    let requests = daemon.requests();
    let (status, body) = requests.post("/v1/freezes", &json!({"scope": "all", "notes": "x"})).await;
    assert_eq!(status, 403, "{body}");
    // Agents see what covers them, and nothing of others.
    for scope in [FreezeTarget::Run(run.to_string()), FreezeTarget::Principal("otto".into())] {
        approver.freeze(&FreezeRuns { scope, note: None }).await.unwrap();
    }
    let seen = agent.freezes(false).await.unwrap();
    assert_eq!(seen.iter().map(|one| &one.freeze.scope).collect::<Vec<_>>(), [&FreezeScope::All]);
    assert_eq!(approver.freezes(false).await.unwrap().len(), 3);
    assert_eq!((agent.health().await.unwrap().freezes, approver.health().await.unwrap().freezes), (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_channel_stays_up_while_everything_is_frozen() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let held = agent.propose(run, &mail(1, 0)).await.unwrap();
    let id = held.judged().approval.unwrap().to_string();
    let waiting = {
        let agent = daemon.agent();
        tokio::spawn(async move { agent.propose(run, &mail(1, 30_000)).await.unwrap() })
    };
    let turn = {
        let agent = daemon.agent();
        let actions = vec![mail(2, 30_000), mail(3, 30_000)];
        tokio::spawn(async move { agent.propose_turn(run, &ProposeTurn { actions }).await.unwrap() })
    };
    while approver.approvals(ApprovalFilter::Pending).await.unwrap().len() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = Instant::now();
    approver.freeze(&all(Some("odd payments"))).await.unwrap();
    let (waited, turn) = (waiting.await.unwrap(), turn.await.unwrap());
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    for stopped in turn.iter().chain([&waited]) {
        let denial = stopped.denial().unwrap();
        assert_eq!((denial.class, stopped.judged().enforced), (DenialClass::Frozen, Enforced::Withheld));
        assert!(denial.message.ends_with(": odd payments"), "{}", denial.message);
    }

    let info = approver.run(&run.to_string()).await.unwrap();
    assert_eq!((info.frozen, approver.health().await.unwrap().freezes), (Some(Frozen::Everything), 1));
    let shown = approver.approval(&id).await.unwrap();
    assert_eq!(shown.expires_at, None, "its time does not run");
    approver.grant(&id, &GrantApproval::of(&shown)).await.unwrap();
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    approver.release(&release(ReleaseStage::Reads)).await.unwrap();
    assert!(agent.propose(run, &search(1)).await.unwrap().is_permitted());
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    let released = approver.release(&release(ReleaseStage::All)).await.unwrap();
    assert_eq!((released.freeze.stops, released.runs, released.held_by_others), (None, 1, 0));
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted(), "the grant still holds");
    let again = approver.release(&release(ReleaseStage::All)).await.unwrap_err();
    assert_eq!(again.code(), Some("not_frozen"));
    assert_eq!(approver.freezes(true).await.unwrap().len(), 1);

    // A run may be named by the start of its id, and a principal that nobody is.
    let scope = FreezeTarget::Run(run.to_string().chars().take(20).collect());
    let one = approver.freeze(&FreezeRuns { scope, note: None }).await.unwrap();
    assert_eq!((one.freeze.freeze.scope, one.runs, one.known), (FreezeScope::Run(run), 1, true));
    let nobody = FreezeRuns { scope: FreezeTarget::Principal("nobody".into()), note: None };
    assert!(!approver.freeze(&nobody).await.unwrap().known);
    let (status, _, _) = daemon.gets(CredentialKind::Agent).get("/v1/freezes?past=true").await;
    assert_eq!(status, 400);
}
