//! `/v1/hook`: one event of a coding agent in one request, held to what the requests that it stands for are held to.

use portcullis_session::credentials::sha256_hex;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Requests};

fn event(name: &str, more: &[(&str, Value)]) -> String {
    let mut event = json!({
        "session_id": "s1", "cwd": "/home/dev/shop", "hook_event_name": name, "permission_mode": "default",
        "tool_name": "Read", "tool_use_id": "toolu_1", "tool_input": {"file_path": "/home/dev/shop/a.rs"},
    });
    more.iter().for_each(|(field, value)| event[*field] = value.clone());
    event.to_string()
}

async fn answer(agent: &Requests, request: &Value) -> (String, String, u64) {
    let (status, answer) = agent.post("/v1/hook", request).await;
    assert_eq!(status, 200, "{answer}");
    let text = |field: &str| answer[field].as_str().unwrap().to_owned();
    (text("output"), text("error"), answer["exit"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_answered_in_one_request() {
    let daemon = Daemon::start().await;
    let agent = daemon.requests();
    let said = json!({"input": event("PreToolUse", &[]), "workspace": "/home/dev/shop", "home": "/home/dev"});
    let (output, error, exit) = answer(&agent, &said).await;
    assert!(output.contains(r#""permissionDecision":"allow""#), "{output}{error}");
    assert_eq!(exit, 0);
    let runs = daemon.agent().runs(10).await.unwrap();
    assert_eq!((runs.len(), runs[0].surface.as_str(), runs[0].steps), (1, "hook", 1));

    // Long enough to be read aside.
    let long = event("UserPromptSubmit", &[("prompt", "Look at a.rs. ".repeat(20_000).into())]);
    assert_eq!(answer(&agent, &json!({"input": long})).await, ("{}".into(), String::new(), 0));
    // What cannot be judged blocks, after a reply nothing.
    let (output, error, exit) = answer(&agent, &json!({"input": "{}"})).await;
    assert_eq!((output.as_str(), exit), ("", 2), "{error}");
    for (field, value) in
        [("bundle", "relative"), ("bundle", "/no/such"), ("policy", "none"), ("workspace", "shop")]
    {
        for (name, code) in [("PreToolUse", 2), ("Stop", 1)] {
            let input =
                event(name, &[("session_id", "other".into()), ("last_assistant_message", "Done.".into())]);
            let (output, error, exit) = answer(&agent, &json!({"input": input, field: value})).await;
            assert_eq!((output.as_str(), exit), ("", code), "{field} {name}: {error}");
            assert!(error.starts_with("portcullis: "), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_needs_a_credential_and_is_read_strictly() {
    let daemon = Daemon::start_with_bundle(|bundle| {
        let path = bundle.join("portcullis.toml");
        let mut text = std::fs::read_to_string(&path).unwrap();
        let token = sha256_hex("token-of-ann");
        text += &format!("\n[[credential]]\ntoken_sha256 = '{token}'\nprincipal = 'ann'\n");
        std::fs::write(path, text).unwrap();
    })
    .await;
    let requests = daemon.requests();
    let said = json!({"input": event("PreToolUse", &[])});
    assert_eq!(requests.with_token("guess").post("/v1/hook", &said).await.0, 401);
    for (wrong, why) in [
        (json!({}), "no event"),
        (json!({"input": {}}), "not as text"),
        (json!({"input": event("Stop", &[]), "novel": 1}), "an unknown field"),
    ] {
        assert_eq!(requests.post("/v1/hook", &wrong).await.0, 400, "{why}");
    }
    assert_eq!(daemon.approver().runs(10).await.unwrap().len(), 0);
    // As for `/v1/runs`: a credential that a bundle maps is judged by that bundle, not by one of the caller's choice.
    let (output, error, exit) = answer(&requests.with_token("token-of-ann"), &said).await;
    assert_eq!((output.as_str(), exit), ("", 2), "{error}");
    assert!(error.contains("always uses that bundle"), "{error}");
    assert_eq!(daemon.approver().runs(10).await.unwrap().len(), 0);
}
