//! Session state and facts over HTTP, and what is looked at after a file was written.

use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::event::{EventBody, OutcomeStatus, Place};
use portcullis_core::id::RunId;
use portcullis_gateway::api::{
    FactOperation, FactRequest, OpenRun, ReportOutcome, StateOperation, StateRequest,
};
use portcullis_gateway::client::{Client, ClientError};
use portcullis_session::engine::{FILE_WRITTEN, WriteCame, WriteCheck};
use serde_json::{Value, json};

use crate::daemon::{Daemon, call, events};

const TOOLS: &str = "
[[tool]]
name = 'write_file'
type = 'WRITE_FILE'
side_effecting = true
effects = { path = 'path' }
";
const POLICY: &str = "[[policy]]
name = 'files'
allowed_types = ['WRITE_FILE']
max_steps = 50
max_side_effects = 20
";

async fn daemon() -> Daemon {
    Daemon::start_with_bundle(|bundle| {
        std::fs::write(bundle.join("tools/files.toml"), TOOLS).unwrap();
        std::fs::write(bundle.join("policies/files.toml"), POLICY).unwrap();
    })
    .await
}

async fn open(agent: &Client, folder: Option<&Path>) -> RunId {
    let workspace = folder.map(|folder| folder.display().to_string());
    let place = Some(Place { workspace, home: None, gate: None });
    let policy = Some("files".to_owned());
    let open = OpenRun { surface: "test".into(), policy, place, ..OpenRun::default() };
    agent.open_run(&open).await.unwrap().run
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (String, String) {
    let error = answer.unwrap_err();
    (error.code().unwrap_or_default().to_owned(), error.to_string())
}

async fn state(agent: &Client, run: RunId, operation: Value) -> Result<Value, ClientError> {
    let operation: StateOperation = serde_json::from_value(operation).unwrap();
    let request = StateRequest { operation, call: None, request: None };
    agent.state(&run.to_string(), &request).await.map(|answer| json!(answer))
}

async fn facts(agent: &Client, run: RunId, operation: Value) -> Result<Value, ClientError> {
    let operation: FactOperation = serde_json::from_value(operation).unwrap();
    let request = FactRequest { operation, call: None, request: None };
    agent.facts(&run.to_string(), &request).await.map(|answer| json!(answer))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_keeps_and_a_person_reads_and_forgets() {
    let daemon = daemon().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let folder = tempfile::tempdir().unwrap();
    let run = open(&agent, Some(folder.path())).await;
    let put = state(&agent, run, json!({"op": "put", "key": "plan", "value": [1]})).await.unwrap();
    let version = put["keys"][0]["version"].as_u64().unwrap();
    let (code, text) =
        refusal(state(&agent, run, json!({"op": "put", "key": "plan", "value": 2, "replaces": 1})).await);
    assert!(code == "stale_version" && text.contains(&format!("version {version}")), "{code} {text}");
    let (code, _) = refusal(state(&agent, run, json!({"op": "get", "key": "other"})).await);
    assert_eq!(code, "not_found");
    // A person looks, and does not put words into the agent's mouth.
    let seen = state(&approver, run, json!({"op": "get", "key": "plan"})).await.unwrap();
    assert_eq!(seen["keys"][0]["value"], json!([1]));
    let by_person = json!({"op": "put", "key": "plan", "value": 3, "replaces": version});
    assert_eq!(refusal(state(&approver, run, by_person).await).0, "forbidden");
    assert_eq!(refusal(facts(&approver, run, json!({"op": "write", "text": "x"})).await).0, "forbidden");

    let fact = facts(&agent, run, json!({"op": "write", "text": "tests need a disk"})).await.unwrap();
    let name = fact["fact"].as_str().unwrap().to_owned();
    let later = open(&agent, Some(folder.path())).await;
    let read = facts(&agent, later, json!({"op": "read"})).await.unwrap();
    assert_eq!(read["facts"], json!([{"fact": name, "text": "tests need a disk"}]));
    let elsewhere = open(&agent, None).await;
    assert_eq!(facts(&agent, elsewhere, json!({"op": "read"})).await.unwrap()["facts"], json!([]));

    // All of the store is for people: an agent reads where it is known that it has.
    assert_eq!(refusal(agent.facts_list(false, None, 10).await).0, "forbidden");
    let listed = approver.facts_list(false, None, 10).await.unwrap();
    assert_eq!(listed.facts[0].text.as_deref(), Some("tests need a disk"));
    let forget = json!({"op": "forget", "fact": name, "reason": "we have one"});
    facts(&approver, later, forget.clone()).await.unwrap();
    assert_eq!(refusal(facts(&approver, later, forget).await).0, "forgotten");
    let told = approver.fact(&run.to_string(), listed.facts[0].fact.seq).await.unwrap();
    assert_eq!(told.forgotten.unwrap().reason, "we have one");
    assert!(approver.facts_list(false, None, 10).await.unwrap().facts.is_empty());
}

/// What was found of the files that a run wrote, in order, once there is so much.
async fn checks(daemon: &Daemon, run: RunId, count: usize) -> Vec<WriteCheck> {
    let begin = Instant::now();
    loop {
        let page = daemon.agent().events(&run.to_string(), 0, 1_000).await.unwrap();
        let found: Vec<_> = events(&page.lines)
            .into_iter()
            .filter(|event| matches!(&event.body, EventBody::Evidence { name, .. } if name == FILE_WRITTEN))
            .collect();
        if found.len() >= count {
            let reader = portcullis_ledger::SqliteReader::open(&daemon.home.ledger()).unwrap();
            let of = |event: portcullis_core::event::Event| {
                let results = reader.payload(run, event.payloads["results"].commitment).unwrap().unwrap();
                let results: Value = serde_json::from_slice(results.bytes()).unwrap();
                serde_json::from_value::<Vec<WriteCheck>>(results["files"].clone()).unwrap()
            };
            return found.into_iter().flat_map(of).collect();
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{} of {count} were looked at", found.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A call that ends well, after the file was written, or not.
async fn write(agent: &Client, run: RunId, path: &Path, content: &str, really: Option<&str>) {
    let arguments = json!({"path": path, "content": content});
    let proposed = agent.propose(run, &call("write_file", arguments, 0)).await.unwrap();
    assert!(proposed.is_permitted(), "{:?}", proposed.denial());
    if let Some(really) = really {
        std::fs::write(path, really).unwrap();
    }
    let action = proposed.judged().action;
    agent.outcome(run, &ReportOutcome::of(action, OutcomeStatus::Ok, None)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_looked_at_where_it_is_the_agents_folder() {
    let daemon = daemon().await;
    let agent = daemon.agent();
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = open(&agent, Some(folder.path())).await;
    write(&agent, run, &at("a"), "all of it", Some("before, all of it, and after")).await;
    assert_eq!(checks(&daemon, run, 1).await[0].came, WriteCame::Holds);
    write(&agent, run, &at("b"), "all of it", Some("something else")).await;
    write(&agent, run, &at("c"), "all of it", None).await;
    write(&agent, run, &other.path().join("d"), "all of it", Some("all of it")).await;
    let found = checks(&daemon, run, 4).await;
    let came: Vec<WriteCame> = found.iter().map(|check| check.came).collect();
    assert_eq!(
        came,
        [WriteCame::Holds, WriteCame::Broken, WriteCame::Broken, WriteCame::NotChecked],
        "{found:?}"
    );
    // An agent somewhere else has a folder that is not on this machine.
    let remote = Path::new("/srv/elsewhere");
    let run = open(&agent, Some(remote)).await;
    write(&agent, run, &remote.join("a"), "all of it", None).await;
    let found = checks(&daemon, run, 1).await;
    assert_eq!(found[0].came, WriteCame::NotChecked, "{found:?}");
}
