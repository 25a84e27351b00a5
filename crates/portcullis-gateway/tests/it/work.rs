//! Work items over `/v1`: what replies are told, what an agent is told that wants to stop, and when nothing is checked.

use std::path::PathBuf;

use portcullis_core::event::{Enforced, OutcomeStatus, Place};
use portcullis_core::id::RunId;
use portcullis_core::verdict::Verdict;
use portcullis_core::work::{ItemId, ItemState};
use portcullis_gateway::api::{
    FreezeRuns, FreezeTarget, OpenRun, ReleaseRuns, ReleaseStage, ReportOutcome, ReportOutput, TextAnswer,
    WorkAnswer, WorkOperation, WorkRequest,
};
use portcullis_gateway::client::{Client, ClientError};
use portcullis_session::engine::Reach;
use serde_json::{Value, json};

use crate::daemon::{Daemon, call, open};

const ITEM: ItemId = ItemId(1);
const RULE: &str = "output/open-work";

/// A run in a project, with one item that a person made and the agent started.
struct Work {
    daemon: Daemon,
    agent: Client,
    run: RunId,
    project: tempfile::TempDir,
}

impl Work {
    async fn on(criteria: Value) -> Self {
        Self::placed(criteria, |place, open| OpenRun { place: Some(place), ..open }).await
    }

    async fn placed(criteria: Value, placed: impl FnOnce(Place, OpenRun) -> OpenRun) -> Self {
        let daemon = Daemon::start().await;
        let (agent, project) = (daemon.agent(), tempfile::tempdir().unwrap());
        let workspace = project.path().canonicalize().unwrap().to_str().map(str::to_owned);
        let place = Place { workspace, home: Some("/home/u".into()), gate: None };
        let opened = agent.open_run(&placed(place, open("mail", None))).await.unwrap();
        let work = Self { daemon, agent, run: opened.run, project };
        let criteria = criteria.as_array().unwrap().clone();
        let create =
            WorkOperation::Create { title: "fix it".into(), criteria, owner: None, covers: Vec::new() };
        work.ask(&work.daemon.approver(), create).await.unwrap();
        work.ask(&work.agent, WorkOperation::Start { item: ITEM }).await.unwrap();
        work
    }

    async fn ask(&self, client: &Client, operation: WorkOperation) -> Result<WorkAnswer, ClientError> {
        let request = WorkRequest { operation, call: None, wait_ms: None };
        client.work(&self.run.to_string(), &request).await
    }

    fn file(&self, name: &str) -> PathBuf {
        self.project.path().join(name)
    }

    /// A call that succeeds, as evidence.
    async fn evidence(&self) -> String {
        let search = call("retrieve_compliance_documents", json!({"query": "fees"}), 0);
        let proposed = self.agent.propose(self.run, &search).await.unwrap();
        assert!(proposed.is_permitted());
        let action = proposed.judged().action;
        let outcome = ReportOutcome::of(action, OutcomeStatus::Ok, Some("found".into()));
        self.agent.outcome(self.run, &outcome).await.unwrap();
        action.to_string()
    }

    async fn claim(&self) -> Result<WorkAnswer, ClientError> {
        let evidence = vec![self.evidence().await];
        self.ask(&self.agent, WorkOperation::Claim { item: ITEM, evidence, statement: "it is".into() }).await
    }

    async fn reply(&self, text: &str, reach: Reach, last: bool) -> TextAnswer {
        let reply = ReportOutput { text: text.into(), documents: None, reach, wait_ms: None, last };
        self.agent.output(self.run, &reply).await.unwrap()
    }

    async fn state(&self) -> ItemState {
        self.agent.work_list(&self.run.to_string()).await.unwrap().items[0].state
    }
}

fn contains(path: &str) -> Value {
    json!([{"type": "file_contains", "path": path, "text": "Fees"}])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_may_say_done_is_told_what_is_missing() {
    let work = Work::on(contains("report.md")).await;
    let plain = work.reply("I look at the fees next.", Reach::Replace, false).await;
    assert_eq!((plain.verdict, plain.note), (Verdict::Allow, None));
    let missing = "Not shown to be done:\n- #1 fix it (in progress): criterion 1 (`file_contains`) fails: there is no \
                   file `report.md`";
    let told = work.reply("All done.", Reach::Replace, false).await;
    assert_eq!((told.verdict, told.enforced), (Verdict::Modify, Enforced::Replaced));
    assert_eq!(told.shown.as_deref(), Some(format!("All done.\n\n{missing}").as_str()));
    assert_eq!(told.note.as_deref(), Some(missing));
    // Where the words cannot be changed any more, they pass, and what is missing is said beside them.
    for reach in [Reach::Withhold, Reach::Tell] {
        let told = work.reply("All done.", reach, false).await;
        assert_eq!((told.verdict, told.enforced, told.shown), (Verdict::Warn, Enforced::Executed, None));
        assert_eq!(told.note.as_deref(), Some(missing));
    }
    // The last reply is, whatever it says.
    let last = work.reply("Goodbye.", Reach::Replace, true).await;
    assert_eq!(last.note.as_deref(), Some(missing));
    // What holds now, and nobody claimed, is no failure, and not done.
    std::fs::write(work.file("report.md"), "# Fees").unwrap();
    work.evidence().await;
    let held = work.reply("All done.", Reach::Replace, false).await;
    assert!(held.note.unwrap().ends_with("its criteria hold now, and it was not claimed"));
    assert_eq!(work.state().await, ItemState::InProgress, "nobody claimed it for the agent");
    let done = work.claim().await.unwrap();
    assert_eq!(done.item.state, ItemState::Verified, "{done:?}");
    let shown = work.reply("All done.", Reach::Replace, true).await;
    assert_eq!((shown.verdict, shown.note), (Verdict::Allow, None));
}

/// A claim that nobody could check is checked again when a reply may rest on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_item_is_verified_or_turned_down_when_a_reply_may_say_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    // Another protocol is an error, an answer is one or the other.
    let url = format!("http://127.0.0.1:{port}/");
    let work =
        Work::on(json!([{"type": "http_status", "url": url, "status": 200, "timeout_seconds": 5}])).await;
    let serve = |answer: &'static str| {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _read = stream.read(&mut [0; 1024]);
            stream.write_all(answer.as_bytes()).unwrap();
        })
    };
    let garbage = serve("SSH-2.0-x\r\n");
    let claimed = work.claim().await.unwrap();
    garbage.join().unwrap();
    assert_eq!((claimed.item.state, claimed.item.attempts), (ItemState::Claimed, 1), "{claimed:?}");
    // Replies that get no answer cost no attempt: they would soon use them up.
    let garbage = serve("SSH-2.0-x\r\n");
    let told = work.reply("It is deployed.", Reach::Replace, false).await;
    garbage.join().unwrap();
    let note = told.note.unwrap();
    assert!(note.contains("#1 fix it (claimed): criterion 1 (`http_status`) could not be checked"), "{note}");
    let again = work.agent.work_list(&work.run.to_string()).await.unwrap();
    assert_eq!(again.items[0].attempts, 1);
    // Something happens, so that it is looked at again.
    work.evidence().await;
    let up = serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let told = work.reply("It is deployed.", Reach::Replace, false).await;
    up.join().unwrap();
    assert_eq!((told.verdict, told.note), (Verdict::Allow, None));
    assert_eq!(work.state().await, ItemState::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wants_to_stop_is_told_what_fails_once() {
    let work = Work::on(contains("report.md")).await;
    let told = work.agent.stopping(work.run).await.unwrap();
    let open = told.open.unwrap();
    assert!(
        open.contains("#1 fix it: in_progress (criterion 1 (`file_contains`) fails: there is no file"),
        "{open}"
    );
    let again = work.agent.stopping(work.run).await.unwrap();
    assert_eq!(again.open, None, "nothing has happened since");
    assert!(again.unshown.unwrap().starts_with("Not shown to be done:"), "the user is told all the same");
    std::fs::write(work.file("report.md"), "# Fees").unwrap();
    assert_eq!(work.claim().await.unwrap().item.state, ItemState::Verified);
    let done = work.agent.stopping(work.run).await.unwrap();
    assert_eq!((done.open, done.unshown), (None, None));
}

/// C6: what a check runs may have effects, and a person stopped those.
#[tokio::test(flavor = "multi_thread")]
async fn c6_nothing_is_checked_while_the_run_is_frozen() {
    let work =
        Work::on(json!([{"type": "http_status", "url": "http://no-such-name.invalid/", "status": 200}]))
            .await;
    assert_eq!(work.claim().await.unwrap().item.state, ItemState::Claimed);
    let approver = work.daemon.approver();
    let scope = FreezeTarget::All;
    approver.freeze(&FreezeRuns { scope: scope.clone(), note: None }).await.unwrap();
    let verify = || work.ask(&work.agent, WorkOperation::Verify { item: ITEM });
    let refused = verify().await.unwrap_err();
    assert_eq!(refused.code(), Some("work_waits_for_person"), "{refused}");
    let told = work.agent.stopping(work.run).await.unwrap();
    assert!(told.unshown.is_some_and(|told| told.contains("a person stopped this run")));
    for stage in [ReleaseStage::Reads, ReleaseStage::All] {
        approver.release(&ReleaseRuns { scope: scope.clone(), stage, note: None }).await.unwrap();
    }
    let checked = verify().await.unwrap();
    assert_eq!(checked.item.attempts, 2, "{checked:?}");
}

/// A run that an MCP gate opened has the folder in which its server was started; what calls may do does not depend on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_an_mcp_gate_has_its_servers_folder_for_work() {
    let work = Work::placed(contains("report.md"), |place, open| OpenRun {
        surface: "mcp".into(),
        server: Some("server".into()),
        server_place: Some(place),
        ..open
    })
    .await;
    let failed = work.claim().await.unwrap();
    assert!(failed.item.results[0].detail.contains("there is no file `report.md`"), "{failed:?}");
    std::fs::write(work.file("report.md"), "# Fees").unwrap();
    assert_eq!(work.claim().await.unwrap().item.state, ItemState::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_can_decide_is_no_criterion() {
    let work = Work::on(json!([{"type": "contract", "statement": "at most 4 words", "reply": true}])).await;
    let criteria = vec![json!({"type": "contract", "statement": "it reads well", "reply": true})];
    let create = WorkOperation::Create { title: "x".into(), criteria, owner: None, covers: Vec::new() };
    let refused = work.ask(&work.agent, create).await.unwrap_err();
    assert_eq!(refused.code(), Some("work_malformed"));
    assert!(refused.to_string().starts_with("`criteria[0].statement`: it takes a reader"), "{refused}");
    // The latest reply of the run is what one is about.
    work.reply("This reply has more words than it may have.", Reach::Replace, false).await;
    let failed = work.claim().await.unwrap();
    assert_eq!(failed.item.state, ItemState::InProgress, "{failed:?}");
    work.reply("Four words at most.", Reach::Replace, false).await;
    assert_eq!(work.claim().await.unwrap().item.state, ItemState::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reply_was_told_is_on_the_record_and_computed_again_alike() {
    let work = Work::on(contains("report.md")).await;
    work.reply("All done.", Reach::Replace, false).await;
    let page = work.agent.events_joined(&work.run.to_string(), 0, 100).await.unwrap();
    let text = String::from_utf8(page.lines.to_vec()).unwrap();
    let verdict = text.lines().find(|line| line.contains(RULE)).unwrap();
    let verdict: Value = serde_json::from_str(verdict).unwrap();
    let fact = &verdict["body"]["facts"][0];
    assert_eq!((fact["source"].as_str(), fact["question"].as_str()), (Some("work-items"), Some("unshown")));
    assert_eq!(fact["answer"]["known"]["items"][0]["item"], 1);
}
