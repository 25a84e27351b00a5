//! A client of one generation and a server of the other, through the gate: each call is judged once as the client made it,
//! and carried out once.

use portcullis_wire::mcp::V_2026_07_28;

use super::remote::{Far, Server, json_answer, stream, with_head};
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
    assert_eq!(stage.asked("/actions").len(), 1, "the call is judged once");
    let outcomes = stage.asked("/outcomes");
    assert_eq!((outcomes.len(), &outcomes[0]["status"]), (1, &json!("ok")));
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
