//! Session state and facts over MCP, by the official Python client: two sessions, one after the other.

use portcullis_core::event::EventBody;
use portcullis_core::principal::CredentialKind;
use serde_json::{Value, json};

use crate::peers::{Stage, events, report, step};

const POLICY: &str = "[[policy]]\nname = 'work'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 50\n\
                      max_side_effects = 20\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_keeps_the_next_one_reads() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/work.toml", POLICY);
    let folder = stage.path("files").display().to_string();
    let client = |session: &str, steps: Value| {
        let server = stage.governed("work", "work", &["--mcp", "--session", session, "--workspace", &folder]);
        let servers = serde_json::to_string(&[server]).unwrap();
        report(
            stage
                .client("filesystem.py", &["--servers".into(), servers, "--steps".into(), steps.to_string()]),
        )
    };
    let first = client(
        "one",
        json!([
            {"tool": "state_put", "arguments": {"key": "plan", "value": {"step": 1}}},
            {"tool": "state_put", "arguments": {"key": "plan", "value": {"step": 2}}},
            {"tool": "state_get", "arguments": {"key": "plan"}},
            {"tool": "state_history", "arguments": {"key": "plan"}},
            {"tool": "fact_write", "arguments": {"text": "The build needs clang.", "topic": "build"}},
            {"tool": "fact_write", "arguments": {"text": "x", "colour": "red"}},
        ]),
    );
    assert_eq!(step(&first, 0)["structuredContent"]["keys"][0]["key"], "plan", "{first}");
    let refused = step(&first, 1);
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("put it with `replaces`"), "{refused}");
    assert_eq!(step(&first, 2)["structuredContent"]["keys"][0]["value"], json!({"step": 1}));
    assert_eq!(step(&first, 3)["structuredContent"]["history"][0]["after"], r#"{"step":1}"#);
    let fact = step(&first, 4)["structuredContent"]["fact"].clone();
    assert!(step(&first, 5).to_string().contains("colour"), "{}", step(&first, 5));

    let second = client(
        "two",
        json!([
            {"tool": "state_get", "arguments": {}},
            {"tool": "fact_read", "arguments": {"topic": "build"}},
            {"tool": "fact_forget", "arguments": {"fact": fact, "reason": "we use gcc now"}},
            {"tool": "fact_read", "arguments": {}},
        ]),
    );
    assert!(step(&second, 0)["structuredContent"].get("keys").is_none(), "the state is the other run's");
    let read = &step(&second, 1)["structuredContent"]["facts"];
    assert_eq!(*read, json!([{"fact": fact, "text": "The build needs clang.", "topic": "build"}]));
    assert_eq!(step(&second, 3)["structuredContent"]["facts"], json!([]));

    let approver = stage.api(CredentialKind::Approver);
    let run = approver.runs(1).await.unwrap().first().unwrap().run.to_string();
    let events = events(&approver, &run).await;
    let facts: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Fact(record) => Some(record.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(facts, ["read 1 fact".to_owned(), format!("forget fact {}", fact.as_str().unwrap())]);
}
