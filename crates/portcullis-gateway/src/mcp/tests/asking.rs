//! Questions to the user through a client that shows forms.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn hello(version: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities}}}}}"#
    )
}

fn stopped(class: &str, rule: &str) -> Answer {
    let mut denial = denial_json(class);
    denial["rule"] = json!(rule);
    denial["message"] = json!("is \u{202e}this right?");
    denial["retry"] = json!({"when": "after_input"});
    denial["verdict"] = json!("clarify");
    now(
        200,
        json!({"action": ACTION, "step": 1, "verdict": "clarify", "enforced": "withheld", "permit": false,
               "denial": denial, "approval": null, "findings": [], "seq": 4}),
    )
}

/// A daemon that asks about each call until so many confirmations came, then permits.
fn asking(yes_needed: usize) -> impl Fn(&str, &Value) -> Answer + Send + Sync + 'static {
    let confirmed = AtomicUsize::new(0);
    let said = || now(200, json!({"seq": 9, "verdict": "allow", "enforced": "executed", "denial": null}));
    move |path, body| match path.rsplit('/').next() {
        Some("actions") if confirmed.load(Ordering::SeqCst) < yes_needed => {
            stopped("clarification_needed", "access/ask")
        }
        Some("confirmations") => {
            confirmed.fetch_add(1, Ordering::SeqCst);
            said()
        }
        Some("inputs") => said(),
        _ => kind(path, body),
    }
}

async fn introduced(
    version: &str,
    capabilities: &str,
    answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
) -> Stage {
    let mut stage = stage(answer).await;
    let hello = hello(version, capabilities);
    stage.client.send(&hello).await;
    stage.server.expect(&hello).await;
    stage
        .server
        .send(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{version}"}}}}"#))
        .await;
    stage.client.json().await;
    stage
}

const FORMS: &str = r#"{"elicitation":{}}"#;

/// The question that the client gets.
async fn question(stage: &mut Stage) -> (String, Value) {
    let asked = stage.client.json().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["confirm"]));
    let id = asked["id"].as_str().unwrap().to_owned();
    (id, asked)
}

fn answered(id: &str, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

#[tokio::test]
async fn a_yes_is_recorded_as_the_users_and_the_call_goes_ahead_once() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut stage = introduced(version, FORMS, asking(1)).await;
        let line = call("1", "t");
        stage.client.send(&line).await;
        let (id, asked) = question(&mut stage).await;
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("call of `t`") && message.contains("is \\u{202e}this right?"), "{message}");
        assert!(message.contains("\"p\": \"é\"") && !message.contains('\u{202e}'), "{message}");
        let yes = json!({"action": "accept", "content": {"confirm": true, "answer": "the staging one"}});
        stage.client.send(&answered(&id, &yes)).await;
        stage.server.expect(&line).await;
        let expected = json!({"action": ACTION, "text": "the staging one"});
        assert_eq!(stage.asked("/confirmations"), [expected]);
        assert_eq!(stage.asked("/actions").len(), 2);
        // The same answer again is nobody's, and no business of the server.
        stage.client.send(&answered(&id, &yes)).await;
        stage.server.send(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
        stage.client.json().await;
        stage.leave().await.0.unwrap();
    }
}

#[tokio::test]
async fn a_no_is_told_to_the_agent_and_what_is_no_answer_changes_nothing() {
    let error = r#"{"jsonrpc":"2.0","id":"ID","error":{"code":-32603,"message":"no user"}}"#;
    let result = |result: &Value| answered("ID", result);
    for (answer, inputs, told) in [
        (result(&json!({"action": "decline"})), json!(["no"]), "and said: no"),
        (
            result(&json!({"action": "accept", "content": {"confirm": false, "answer": "use staging"}})),
            json!(["use staging"]),
            "did not confirm the call, and said: use staging",
        ),
        (result(&json!({"action": "cancel"})), json!([]), "this right?"),
        (result(&json!({"action": "accept", "content": {"confirm": "true"}})), json!([]), "this right?"),
        (error.to_owned(), json!([]), "this right?"),
    ] {
        let mut stage = introduced("2025-11-25", FORMS, asking(1)).await;
        stage.client.send(&call("1", "t")).await;
        let (id, _) = question(&mut stage).await;
        stage.client.send(&answer.replace("ID", &id)).await;
        let denied = stage.client.json().await;
        let denial = &denied["result"]["structuredContent"];
        assert_eq!(denial["class"], "clarification_needed", "{denied}");
        assert!(denial["message"].as_str().unwrap().ends_with(told), "{denial}");
        let said: Vec<Value> = stage.asked("/inputs").iter().map(|input| input["text"].clone()).collect();
        assert_eq!(json!(said), inputs);
        assert!(stage.asked("/inputs").iter().all(|input| input["role"] == "user"));
        assert_eq!((stage.asked("/confirmations").len(), stage.asked("/actions").len()), (0, 1));
        stage.leave().await.0.unwrap();
    }
}

#[tokio::test]
async fn a_call_under_review_is_never_asked_about_and_no_answer_releases_it() {
    let held = |path: &str, body: &Value| match path.ends_with("/actions") {
        true => stopped("approval_pending", "access/hold"),
        false => kind(path, body),
    };
    let mut stage = introduced("2025-11-25", FORMS, held).await;
    let yes = json!({"action": "accept", "content": {"confirm": true}});
    // As if the gate had asked.
    let forged = format!("portcullis-ask-{}", "0".repeat(32));
    stage.client.send(&answered(&forged, &yes)).await;
    stage.client.send(&call("1", "t")).await;
    stage.client.send(&answered(&forged, &yes)).await;
    let denied = stage.client.json().await;
    assert_eq!(denied["result"]["structuredContent"]["class"], "approval_pending", "{denied}");
    assert!(stage.asked("/confirmations").is_empty() && stage.asked("/inputs").is_empty());
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn clients_that_do_not_show_forms_are_told_as_before() {
    for (version, capabilities) in [
        ("2025-11-25", "{}"),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#),
        ("2025-03-26", FORMS),
        ("2026-07-28", FORMS),
    ] {
        let mut stage = introduced(version, capabilities, asking(1)).await;
        stage.client.send(&call("1", "t")).await;
        let denied = stage.client.json().await;
        assert_eq!(denied["result"]["structuredContent"]["class"], "clarification_needed", "{denied}");
        stage.leave().await.0.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_shown_whole_is_not_asked_about() {
    let mut stage = introduced("2025-11-25", FORMS, asking(1)).await;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"p":"{}"}}}}}}"#,
        "x".repeat(5_000)
    );
    stage.client.send(&long).await;
    let denied = stage.client.json().await;
    assert_eq!(denied["result"]["structuredContent"]["class"], "clarification_needed", "{denied}");
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_withdraws_its_question() {
    let mut stage = introduced("2025-11-25", FORMS, asking(1)).await;
    stage.client.send(&call("1", "t")).await;
    let (id, _) = question(&mut stage).await;
    let gone = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    stage.client.send(gone).await;
    let withdrawn = stage.client.json().await;
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(id))
    );
    // Too late.
    stage.client.send(&answered(&id, &json!({"action": "accept", "content": {"confirm": true}}))).await;
    stage.client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    stage.server.expect(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert!(stage.asked("/confirmations").is_empty());
    stage.server.send(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).await;
    stage.client.json().await;
    stage.leave().await.0.unwrap();
}

/// A daemon that asks about each call once and, while one is asked about, stops all others.
fn one_by_one() -> impl Fn(&str, &Value) -> Answer + Send + Sync + 'static {
    let standing = Mutex::new((None::<String>, Vec::<String>::new()));
    move |path, body| {
        let (open, confirmed) = &mut *standing.lock().unwrap();
        match path.rsplit('/').next() {
            Some("actions") => {
                let tool = body["tool"].as_str().unwrap().to_owned();
                if confirmed.contains(&tool) {
                    return permit();
                }
                let own = *open.get_or_insert_with(|| tool.clone()) == tool;
                stopped("clarification_needed", if own { "access/ask" } else { "run/phase/clarifying" })
            }
            Some("confirmations") => {
                confirmed.extend(open.take());
                now(200, json!({"seq": 9, "verdict": "allow", "enforced": "executed", "denial": null}))
            }
            _ => kind(path, body),
        }
    }
}

#[tokio::test]
async fn calls_of_one_turn_are_asked_about_one_after_the_other() {
    let mut stage = introduced("2025-11-25", FORMS, one_by_one()).await;
    stage.client.send(&call("1", "t")).await;
    stage.client.send(&call("2", "u")).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (id, asked) = question(&mut stage).await;
        seen.push(asked["params"]["message"].clone());
        stage.client.send(&answered(&id, &json!({"action": "accept", "content": {"confirm": true}}))).await;
        let line = stage.server.next().await.unwrap();
        let executed: Value = serde_json::from_str(&line).unwrap();
        let tool = executed["params"]["name"].as_str().unwrap();
        assert!(
            asked["params"]["message"].as_str().unwrap().contains(&format!("call of `{tool}`")),
            "{asked}"
        );
        let reply = json!({"jsonrpc": "2.0", "id": executed["id"], "result": {"content": []}});
        stage.server.send(&reply.to_string()).await;
        // The other call is asked about once this one's question is over, perhaps before its result is told.
        let told = stage.client.json().await;
        if told["method"] == "elicitation/create" {
            let id = told["id"].as_str().unwrap();
            seen.push(told["params"]["message"].clone());
            let yes = json!({"action": "accept", "content": {"confirm": true}});
            stage.client.send(&answered(id, &yes)).await;
            stage.client.json().await;
            stage.server.next().await.unwrap();
            break;
        }
    }
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0], seen[1]);
    assert_eq!(stage.asked("/confirmations").len(), 2);
    stage.leave().await.0.unwrap();
}
