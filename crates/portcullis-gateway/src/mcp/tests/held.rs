//! Held calls of clients that come back with a `requestState`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::mcp::held::RETRY_WAITS_MIN;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

fn pending_json() -> Value {
    let mut denial = denial_json("approval_pending");
    denial["approval"] = json!("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    json!({"action": ACTION, "step": 1, "verdict": "review", "enforced": "held", "permit": false,
           "denial": denial, "approval": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "findings": [], "seq": 4})
}

/// Holds every call until `granted` is set.
async fn holding(granted: &'static AtomicBool) -> Stage {
    stage(move |path, body| match path.ends_with("/actions") {
        true if granted.load(Ordering::Relaxed) => permit(),
        true => now(200, pending_json()),
        false => kind(path, body),
    })
    .await
}

/// A call of 2026-07-28 that carries something for the server, or for the gate.
fn carrying(id: u32, n: u32, carried: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":{n}}},{META}{carried}}}}}"#
    )
}

/// The state in an answer that sends the client back.
fn state(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert_eq!(answer["result"]["_meta"]["portcullis/held"]["class"], "approval_pending");
    answer["result"]["requestState"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_retry_with_the_state_goes_ahead_with_what_the_call_carried_before() {
    static GRANTED: AtomicBool = AtomicBool::new(false);
    let mut stage = holding(&GRANTED).await;
    let theirs = r#","inputResponses":{"a":{"x":1}},"requestState":"the server's""#;
    stage.client.send(&carrying(1, 1, theirs)).await;
    let first = state(&stage.client.json().await);
    GRANTED.store(true, Ordering::Relaxed);
    stage.client.send(&carrying(2, 1, &format!(r#","requestState":"{first}""#))).await;
    stage.server.expect(&carrying(2, 1, theirs)).await;
    let asked = stage.asked("/actions");
    let carried = json!({"inputResponses": {"a": {"x": 1}}, "requestState": "the server's"});
    assert_eq!((&asked[0]["continuation"], &asked[1]["continuation"]), (&carried, &carried));
    stage.server.send(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#).await;
    stage.client.json().await;
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_state_that_was_altered_used_or_given_for_another_call_is_refused() {
    static GRANTED: AtomicBool = AtomicBool::new(false);
    let mut stage = holding(&GRANTED).await;
    let ours = |id, n, state: &str| carrying(id, n, &format!(r#","requestState":"{state}""#));
    stage.client.send(&carrying(1, 1, "")).await;
    let first = state(&stage.client.json().await);
    stage.client.send(&carrying(2, 1, "")).await;
    let second = state(&stage.client.json().await);
    assert_ne!(first, second);
    GRANTED.store(true, Ordering::Relaxed);
    let judged = stage.asked("/actions").len();
    let mut altered = first.clone();
    altered.pop();
    for (id, line) in [
        (3, ours(3, 1, &altered)),
        (4, ours(4, 1, &format!("{first}0"))),
        (5, ours(5, 2, &second)),
        (6, ours(6, 1, &second)),
    ] {
        stage.client.send(&line).await;
        let refused = stage.client.json().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32602)), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("make the call again without it"));
    }
    assert_eq!(
        stage.asked("/actions").len(),
        judged,
        "none of them is judged, even though it would be granted"
    );
    stage.client.send(&ours(7, 1, &first)).await;
    stage.server.expect(&carrying(7, 1, "")).await;
    stage.client.send(&ours(8, 1, &first)).await;
    assert_eq!(stage.client.json().await["error"]["code"], -32602, "once");
    stage.server.send(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#).await;
    stage.client.json().await;
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_client_that_retries_at_once_waits_and_is_told_in_the_end() {
    static GRANTED: AtomicBool = AtomicBool::new(false);
    let mut stage = holding(&GRANTED).await;
    stage.client.send(&carrying(0, 1, "")).await;
    let mut answer = stage.client.json().await;
    let (mut rounds, start) = (0, std::time::Instant::now());
    while answer["result"]["resultType"] == "input_required" {
        rounds += 1;
        stage.client.send(&carrying(rounds, 1, &format!(r#","requestState":"{}""#, state(&answer)))).await;
        answer = stage.client.json().await;
    }
    assert_eq!(rounds, 8, "the official clients give up after ten");
    assert!(start.elapsed() >= RETRY_WAITS_MIN * rounds, "{:?}", start.elapsed());
    assert_eq!(answer["result"]["structuredContent"]["class"], "approval_pending");
    // A held call that waits for its floor can be given up.
    stage.client.send(&carrying(20, 1, "")).await;
    let given = state(&stage.client.json().await);
    stage.client.send(&carrying(21, 1, &format!(r#","requestState":"{given}""#))).await;
    stage
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":21}}"#)
        .await;
    stage.client.send(&call("22", "write_file")).await;
    assert_eq!(stage.client.json().await["id"], 22);
    stage.leave().await.0.unwrap();
}
