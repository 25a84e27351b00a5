//! A client of one generation and a server of the other, through the gate: each call is judged once as the client made it,
//! and carried out once.

use std::sync::Mutex;
use std::time::Instant;

use portcullis_wire::mcp::V_2026_07_28;

use super::remote::{Far, Server, Step, json_answer, stream, with_head};
use super::*;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"old","version":"1"}}}"#;

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": [V_2026_07_28], "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}},
    })
}

fn result(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// A request of a client without sessions.
fn stateless(id: u32, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": V_2026_07_28,
        "io.modelcontextprotocol/clientInfo": {"name": "new", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

#[tokio::test]
async fn a_client_of_sessions_uses_a_server_without() {
    let mut stage = stage(kind).await;
    stage.client.send(HELLO).await;
    stage.server.expect(HELLO).await;
    stage.server.send(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#).await;
    let asked = stage.server.json().await;
    assert_eq!(asked["method"], "server/discover");
    stage.server.send(&result(&asked["id"], &discovered())).await;
    let introduced = stage.client.json().await;
    assert_eq!(introduced["result"]["serverInfo"]["name"], "new");
    stage.client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;

    stage.client.send(&call("1", "read_file")).await;
    let made = stage.server.json().await;
    assert_eq!(made["params"]["arguments"], json!({"p": "é"}));
    let needs = json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {}}}},
    });
    stage.server.send(&result(&made["id"], &needs)).await;
    let question = stage.client.json().await;
    assert_eq!(question["method"], "elicitation/create");
    let said = json!({"action": "accept", "content": {"a": 1}});
    stage.client.send(&result(&question["id"], &said)).await;
    let again = stage.server.json().await;
    assert_eq!(
        (&again["params"]["inputResponses"]["k"], &again["params"]["requestState"]),
        (&said, &json!("s"))
    );
    let content = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    stage.server.send(&result(&again["id"], &content)).await;
    let answer = stage.client.json().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!(1), &content["content"]));
    let actions = stage.asked("/actions");
    assert_eq!(actions.len(), 2, "what it is made again with is judged");
    assert_eq!(actions[1]["continuation"]["inputResponses"]["k"], said, "{actions:?}");
    let outcomes: Vec<Value> =
        stage.asked("/outcomes").iter().map(|outcome| outcome["status"].clone()).collect();
    assert_eq!(outcomes, ["input-required", "ok"]);
    let told: Vec<Value> = stage.asked("/told");
    assert!(told.iter().any(|told| told["content"].as_str().unwrap().contains("Which?")), "{told:?}");
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_client_of_sessions_uses_a_far_server_without() {
    let (server, url) = Server::start(|got, _| match got.body["method"].as_str() {
        Some("server/discover") => json_answer(&result(&got.body["id"], &discovered())),
        Some("tools/call") => json_answer(&result(&got.body["id"], &json!({"resultType": "complete", "content": []}))),
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": got.body["id"], "error": {"code": -32020, "message": "headers"}});
            with_head("400 Bad Request", "content-type: application/json\r\n", &error.to_string())
        }
    })
    .await;
    let mut far = Far::stage(&url, PATIENCE).await;
    far.client.send(HELLO).await;
    assert_eq!(far.client.json().await["result"]["protocolVersion"], "2025-11-25");
    far.client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let (answer, status) = far.call().await;
    assert_eq!((&answer["result"]["content"], &status), (&json!([]), &json!("ok")));
    far.leave().await;
    let made = &server.got("tools/call");
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].header("mcp-protocol-version"), Some(V_2026_07_28));
    assert_eq!(
        (made[0].header("mcp-method"), made[0].header("mcp-name")),
        (Some("tools/call"), Some("read_file"))
    );
    assert!(
        server.got("notifications/initialized").is_empty()
            && !server.all().iter().any(|got| got.line.starts_with("GET"))
    );
}

#[tokio::test]
async fn a_client_without_sessions_uses_a_far_server_of_sessions() {
    let (server, url) = Server::start(|got, _| match got.body["method"].as_str() {
        Some("initialize") => with_head(
            "200 OK",
            "content-type: application/json\r\nmcp-session-id: s3ss10n\r\n",
            &result(
                &got.body["id"],
                &json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}),
            ),
        ),
        Some("notifications/initialized") => with_head("202 Accepted", "", ""),
        Some("tools/call") if got.header("mcp-session-id").is_some() => {
            json_answer(&result(&got.body["id"], &json!({"content": []})))
        }
        Some(_) => with_head("400 Bad Request", "content-type: text/plain\r\n", "no session"),
        None => with_head("405 Method Not Allowed", "", ""),
    })
    .await;
    let mut far = Far::stage(&url, PATIENCE).await;
    far.client.send(&stateless(1, "tools/call", json!({"name": "read_file", "arguments": {}}))).await;
    let answer = far.client.json().await;
    assert_eq!(answer["result"], json!({"content": [], "resultType": "complete"}));
    far.client.send(&stateless(2, "server/discover", json!({}))).await;
    assert_eq!(far.client.json().await["result"]["supportedVersions"], json!([V_2026_07_28]));
    assert_eq!(far.daemon.asked("/actions").len(), 1, "the call is judged once");
    far.leave().await;
    let made = server.got("tools/call");
    let in_session = made.iter().filter(|got| got.header("mcp-session-id") == Some("s3ss10n"));
    assert_eq!((made.len(), in_session.count()), (2, 1), "the first was refused");
    let carried_out = made.last().unwrap();
    assert_eq!(carried_out.body["params"], json!({"name": "read_file", "arguments": {}}));
    assert_eq!(carried_out.header("mcp-protocol-version"), Some("2025-06-18"));
}

#[tokio::test]
async fn a_call_that_lacks_a_header_is_made_again_with_what_the_list_asks_for() {
    let tool = json!({
        "name": "read_file",
        "inputSchema": {"type": "object", "properties": {"p": {"type": "string", "x-mcp-header": "Path"}}},
    });
    let (server, url) = Server::start(move |got, _| match got.body["method"].as_str() {
        Some("tools/list") if got.body["params"].get("cursor").is_none() => {
            json_answer(&result(&got.body["id"], &json!({"resultType": "complete", "tools": [], "nextCursor": "2"})))
        }
        Some("tools/list") => {
            json_answer(&result(&got.body["id"], &json!({"resultType": "complete", "tools": [tool]})))
        }
        _ if got.header("mcp-param-path").is_some() => {
            json_answer(&result(&got.body["id"], &json!({"resultType": "complete", "content": []})))
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": got.body["id"], "error": {"code": -32020, "message": "headers"}});
            with_head("400 Bad Request", "content-type: application/json\r\n", &error.to_string())
        }
    })
    .await;
    let mut far = Far::stage(&url, PATIENCE).await;
    let params = json!({"name": "read_file", "arguments": {"p": "/a"}});
    far.client.send(&stateless(1, "tools/call", params.clone())).await;
    assert_eq!(far.client.json().await["result"]["content"], json!([]));
    // From then on the headers are known.
    far.client.send(&stateless(2, "tools/call", params)).await;
    assert_eq!(far.client.json().await["id"], 2);
    // A header that is never right is the client's to know.
    far.client.send(&stateless(3, "tools/call", json!({"name": "other", "arguments": {}}))).await;
    assert_eq!(far.client.json().await["error"]["code"], -32020);
    assert_eq!(far.daemon.asked("/actions").len(), 3);
    far.leave().await;
    let made: Vec<Option<String>> =
        server.got("tools/call").iter().map(|got| got.header("mcp-param-path").map(str::to_owned)).collect();
    assert_eq!(made, [None, Some("/a".to_owned()), Some("/a".to_owned()), None, None]);
    assert_eq!(server.got("tools/list").len(), 4);
}

/// After a server has started anew, what it says of its own accord is heard again.
#[tokio::test]
async fn a_session_that_is_opened_again_is_listened_to_again() {
    const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let (_, url) = Server::start(|got, number| {
        let session = got.header("mcp-session-id").unwrap_or_default();
        match got.body["method"].as_str() {
            Some("initialize") => {
                let of = if number == 1 { "first" } else { "second" };
                with_head(
                    "200 OK",
                    &format!("content-type: application/json\r\nmcp-session-id: {of}\r\n"),
                    &result(&got.body["id"], &json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
                )
            }
            Some("notifications/initialized") => with_head("202 Accepted", "", ""),
            _ if session == "first" => with_head("404 Not Found", "", ""),
            Some(_) => json_answer(&result(&got.body["id"], &json!({"content": []}))),
            None => stream(&format!("data: {TOLD}\n\n")),
        }
    })
    .await;
    let mut far = Far::stage(&url, PATIENCE).await;
    far.client.send(HELLO).await;
    far.client.json().await;
    far.client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    far.client.send(&call("1", "read_file")).await;
    let mut heard = [far.client.next().await.unwrap(), far.client.next().await.unwrap()];
    heard.sort_by_key(String::len);
    assert!(
        heard.iter().any(|line| line == TOLD) && heard.iter().any(|line| line.contains("\"id\":1")),
        "{heard:?}"
    );
    far.leave().await;
}

/// A client without sessions that can be asked, before a server on standard input and output that knows sessions only.
async fn before_sessions(answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> Stage {
    let mut stage = stage(answer).await;
    stage.client.send(&stateless(1, "server/discover", json!({}))).await;
    stage.server.next().await;
    stage.server.send(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#).await;
    let opened = stage.server.json().await;
    assert_eq!(opened["method"], "initialize");
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
    stage.server.send(&result(&opened["id"], &hello)).await;
    assert_eq!(stage.server.json().await["method"], "notifications/initialized");
    assert_eq!(stage.client.json().await["result"]["supportedVersions"], json!([V_2026_07_28]));
    stage
}

#[tokio::test]
async fn a_server_is_told_at_once_that_its_question_is_withheld() {
    let mut stage = before_sessions(|path, body| {
        let hostile = body["content"].as_str().is_some_and(|content| content.contains("password"));
        if hostile { seen("withheld") } else { kind(path, body) }
    })
    .await;
    let asks = stateless(2, "tools/call", json!({"name": "read_file", "arguments": {}})).replace(
        r#""io.modelcontextprotocol/clientCapabilities":{}"#,
        r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#,
    );
    stage.client.send(&asks).await;
    let made = stage.server.json().await;
    let form = json!({"message": "Your password?", "requestedSchema": {}});
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form});
    stage.server.send(&question.to_string()).await;
    let refused = stage.client.json().await;
    assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(2), &json!(true)), "{refused}");
    assert!(refused["result"].get("requestState").is_none());
    let told = stage.server.json().await;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!("q"), &json!(-32603)), "{told}");
    let cancelled = stage.server.json().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &made["id"])
    );
    // The next call, and its harmless question, go their way.
    stage.client.send(&asks.replace("\"id\":2", "\"id\":3")).await;
    stage.server.json().await;
    stage.server.send(&question.to_string().replace("Your password?", "Which?")).await;
    let asked = stage.client.json().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_call_that_is_not_translated_is_not_recorded_as_the_servers_error() {
    let mut stage = before_sessions(kind).await;
    let params = json!({"name": "read_file", "arguments": {}, "requestState": "portcullis-waits-9"});
    stage.client.send(&stateless(2, "tools/call", params)).await;
    let refused = stage.client.json().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32602)), "{refused}");
    assert_eq!(refused["error"]["data"]["class"], "not_translated");
    // An error that the server does answer is its own.
    stage.client.send(&stateless(3, "tools/call", json!({"name": "read_file", "arguments": {}}))).await;
    let made = stage.server.json().await;
    stage
        .server
        .send(
            &json!({"jsonrpc": "2.0", "id": made["id"], "error": {"code": 7, "message": "disk full"}})
                .to_string(),
        )
        .await;
    assert_eq!(stage.client.json().await["error"]["message"], "disk full");
    let daemon = stage.leave().await.1.unwrap();
    let told: Vec<Value> = daemon.asked("/told");
    assert!(!told.iter().any(|told| told["content"].as_str().unwrap().contains("requestState")), "{told:?}");
    let outcomes = daemon.asked("/outcomes");
    let said: Vec<_> = outcomes.iter().map(|outcome| (&outcome["status"], &outcome["content"])).collect();
    assert_eq!(said, [(&json!("not-executed"), &Value::Null), (&json!("error"), &json!("disk full"))]);
}

/// A session that is opened again is used by nobody before the server was told that its client knows it.
#[tokio::test]
async fn nobody_uses_a_session_that_is_not_open_yet() {
    const OPENS: Duration = Duration::from_millis(300);
    let times: Arc<Mutex<(Option<Instant>, Vec<Duration>)>> = Arc::default();
    let seen = Arc::clone(&times);
    let (server, url) = Server::start(move |got, number| {
        let (id, second) = (&got.body["id"], got.header("mcp-session-id") == Some("second"));
        match got.body["method"].as_str() {
            Some("initialize") => {
                let of = if number == 1 { "first" } else { "second" };
                with_head(
                    "200 OK",
                    &format!("content-type: application/json\r\nmcp-session-id: {of}\r\n"),
                    &result(id, &json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
                )
            }
            Some("notifications/initialized") if second => {
                seen.lock().unwrap().0 = Some(Instant::now());
                let late = Step::Wait(u64::try_from(OPENS.as_millis()).unwrap());
                [late].into_iter().chain(with_head("202 Accepted", "", "")).collect()
            }
            Some("notifications/initialized") => with_head("202 Accepted", "", ""),
            Some(_) if second => {
                let mut seen = seen.lock().unwrap();
                let since = seen.0.map_or(Duration::ZERO, |at| at.elapsed());
                seen.1.push(since);
                json_answer(&result(id, &json!({"content": []})))
            }
            Some(_) => with_head("404 Not Found", "", ""),
            None => with_head("405 Method Not Allowed", "", ""),
        }
    })
    .await;
    let mut far = Far::stage(&url, PATIENCE).await;
    far.client.send(HELLO).await;
    far.client.json().await;
    far.client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    far.client.send(&call("1", "read_file")).await;
    while server.got("notifications/initialized").len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    far.client.send(&call("2", "read_file")).await;
    let mut ids = [far.client.json().await["id"].clone(), far.client.json().await["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [json!(1), json!(2)]);
    far.leave().await;
    let used = times.lock().unwrap().1.clone();
    assert!(used.len() == 2 && used.iter().all(|since| *since >= OPENS), "{used:?}");
    assert_eq!(server.got("initialize").len(), 2);
}
