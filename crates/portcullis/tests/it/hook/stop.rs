//! A coding agent that stops: it is told once what is not shown to be done, and is done when it is.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_contain::{Contained, Level, probe};
use portcullis_core::principal::CredentialKind;
use portcullis_core::work::ItemId;
use portcullis_gateway::api::{WorkOperation, WorkRequest};
use portcullis_gateway::client::Client as Api;
use portcullis_gateway::home::Home;
use serde_json::{Value, json};

use super::{Client, Program, input};
use crate::daemon::runtime;

const RIGHT: &str = "test $((2 + 2)) = 4\n";
const WRONG: &str = "echo 2 and 2 is 5; test $((2 + 2)) = 5\n";

struct Session {
    client: Client,
    project: PathBuf,
}

impl Session {
    fn new(program: Program) -> Self {
        let client = Client::new(program);
        let project = client.folder.path().join("project");
        fs::create_dir(&project).unwrap();
        let session = Self { client, project };
        session.tell("session-start", |_| {});
        session
    }

    fn tell(&self, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let event = input(name, |event| {
            event["cwd"] = self.project.to_str().unwrap().into();
            change(event);
        });
        self.client.answer(&[], &event)
    }

    /// The agent writes a file: the call is judged, made, and its outcome told.
    fn writes(&self, content: &str, id: &str) {
        let file = self.project.join("test.sh");
        let arguments = json!({"file_path": file, "content": content});
        let judged = self.tell("pre-write", |event| {
            event["tool_input"] = arguments.clone();
            event["tool_use_id"] = id.into();
        });
        assert_ne!(judged["hookSpecificOutput"]["permissionDecision"], "deny", "{judged}");
        fs::write(&file, content).unwrap();
        self.tell("post-bash", |event| {
            event["tool_name"] = "Write".into();
            event["tool_input"] = arguments;
            event["tool_use_id"] = id.into();
            event["tool_response"] = json!({"filePath": file});
        });
    }

    fn stops(&self, active: bool) -> Value {
        self.tell("stop", |event| {
            event["stop_hook_active"] = active.into();
            event["last_assistant_message"] = "All done, the test passes.".into();
        })
    }

    /// The agent asks for an operation over `/v1`.
    fn asks(&self, run: &str, operation: WorkOperation) -> portcullis_gateway::api::WorkAnswer {
        let agent = Api::new(Home::at(&self.client.home()).unwrap(), CredentialKind::Agent);
        let request = WorkRequest { operation, call: None, wait_ms: None };
        runtime().block_on(agent.work(run, &request)).unwrap()
    }
}

fn contains() -> bool {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let reached = probe(&helper).unwrap().reached;
    if reached == Level::None {
        println!("SKIPPED: nothing can be contained on this machine, so that no command is run");
    }
    reached > Level::None
}

pub(super) fn an_agent_that_broke_a_test_is_told_what_fails_once_and_is_done_when_it_passes(
    program: Program,
) {
    if !contains() {
        return;
    }
    let session = Session::new(program);
    session.writes(RIGHT, "toolu_1");
    let [run] = session.client.runs().try_into().unwrap();
    let run = run["run"].as_str().unwrap().to_owned();
    let criteria = session.client.folder.path().join("criteria.json");
    fs::write(&criteria, r#"[{"type": "command_exit_zero", "command": ["sh", "test.sh"]}]"#).unwrap();
    let add = ["work", "add", &run, "keep the test passing", "--criteria", criteria.to_str().unwrap()];
    assert_eq!(session.client.run(&add).code, 0);
    let item = ItemId(1);
    session.asks(&run, WorkOperation::Start { item });

    session.writes(WRONG, "toolu_2");
    let told = session.stops(false);
    assert_eq!(told["decision"], "block", "{told}");
    let reason = told["reason"].as_str().unwrap();
    assert!(reason.contains("#1 keep the test passing"), "{reason}");
    assert!(reason.contains("criterion 1 (`command_exit_zero`) fails: status 1: 2 and 2 is 5"), "{reason}");
    // It stops again without having done anything: never twice, and the user hears it.
    let again = session.stops(true);
    assert_eq!(again.get("decision"), None, "{again}");
    let note = again["systemMessage"].as_str().unwrap();
    assert!(note.contains("Not shown to be done:\n- #1 keep the test passing (in progress)"), "{note}");
    // Nor once for the same, whatever the client says of itself.
    assert_eq!(session.stops(false).get("decision"), None);

    session.writes(RIGHT, "toolu_3");
    let evidence = vec!["toolu_3".to_owned()];
    let claim = WorkOperation::Claim { item, evidence, statement: "it passes".into() };
    let claimed = session.asks(&run, claim);
    assert_eq!(claimed.item.state.as_str(), "verified", "{claimed:?}");
    assert_eq!(session.stops(false), json!({}));
}
