//! Clients and servers that try to say one thing to the gate and another to the other side.

use super::to_server::NoCall;
use super::*;

const PING: &str = r#"{"jsonrpc":"2.0","id":"end","method":"ping"}"#;

/// The line is answered with this error, and neither the server nor the daemon hears of it.
async fn refused(stage: &mut Stage, line: &str, id: Value, code: i64) {
    stage.client.send(line).await;
    let answer = stage.client.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line:?}: {answer}");
}

#[tokio::test]
async fn a_line_that_is_several_to_others_passes_in_neither_direction() {
    let mut stage = stage(kind).await;
    let inner = call("2", "t");
    let wrapped =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"params\":{{\"x\":\r{inner}\r}}}}");
    refused(&mut stage, &wrapped, Value::Null, -32700).await;
    refused(&mut stage, &format!("[{inner},\r{inner}]"), Value::Null, -32700).await;
    refused(&mut stage, " \r ", Value::Null, -32700).await;
    refused(&mut stage, "\u{c}", Value::Null, -32700).await;
    for line in [PING, "\r", " \r", &format!("{}\r", call("1", "t"))] {
        stage.client.send(line).await;
        stage.server.expect(line).await;
    }
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let note = r#"{"jsonrpc":"2.0","method":"n"}"#;
    for line in [&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\r{result}\r}}"), "\r\r", note] {
        stage.server.send(line).await;
    }
    stage.client.expect(note).await;
    // What is left when the client goes, without a newline, is a line too.
    let rest = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\r{inner}\r]}}");
    stage.client.to.as_mut().unwrap().write_all(rest.as_bytes()).await.unwrap();
    let (ended, daemon) = stage.leave().await;
    ended.unwrap();
    assert_eq!(daemon.unwrap().asked("/actions").len(), 1);
}

#[tokio::test]
async fn ids_that_readers_round_or_lose_are_refused() {
    let mut stage = stage(kind).await;
    for id in ["null", "1e400", "1.5", "9007199254740993", "-9007199254740992"] {
        for line in [
            call(id, "t"),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"slow"}}"#),
        ] {
            refused(&mut stage, &line, Value::Null, -32600).await;
        }
    }
    stage.client.send(r#"[{"jsonrpc":"2.0","id":1e400,"method":"ping"}]"#).await;
    assert_eq!(stage.client.json().await[0]["id"], Value::Null);
    for line in [PING, r#"{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}"#] {
        stage.client.send(line).await;
        stage.server.expect(line).await;
    }
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#;
    for line in [
        r#"{"jsonrpc":"2.0","id":null,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[]}}"#,
        r#"[{"jsonrpc":"2.0","id":null,"result":{}}]"#,
        error,
    ] {
        stage.server.send(line).await;
    }
    stage.client.expect(error).await;
    assert_eq!(stage.leave().await.1.unwrap().asked("/actions").len(), 0);
}

#[tokio::test]
async fn what_a_continued_call_carries_is_proposed_with_it() {
    let mut stage = stage(kind).await;
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","requestState":"\u0073","inputResponses":{"a":{"content":"x"}}}}"#;
    stage.client.send(line).await;
    stage.server.expect(line).await;
    let carried = json!({"inputResponses": {"a": {"content": "x"}}, "requestState": "s"});
    assert_eq!(stage.asked("/actions")[0]["continuation"], carried);
    let twice =
        line.replace(r#""content":"x""#, r#""content":"x","content":"y""#).replace("\"id\":1", "\"id\":2");
    refused(&mut stage, &twice, json!(2), -32602).await;
    stage.leave().await.0.unwrap();
}

/// A call that goes on as the task `k`.
async fn with_task(answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> Stage {
    let mut stage = stage(answer).await;
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    let created = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"k","status":"working"}}}"#;
    stage.server.send(created).await;
    stage.client.expect(created).await;
    stage
}

fn about(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":{params}}}"#)
}

impl Stage {
    /// What the client gets when it asks this and the server answers that.
    async fn asks(&mut self, request: &str, answer: &str) -> String {
        self.client.send(request).await;
        self.server.expect(request).await;
        self.server.send(answer).await;
        self.client.next().await.unwrap()
    }
}

#[tokio::test]
async fn a_task_that_is_not_followed_is_not_fetched() {
    let mut stage = with_task(kind).await;
    for method in ["tasks/result", "tasks/get", "tasks/update", "tasks/cancel"] {
        for params in [
            r#"{"taskId":"nope"}"#,
            r#"{"taskId":"nope","TASKID":"k"}"#,
            r#"{"taskId":"nope","task\u0049d":"k"}"#,
            r#"{"taskId":"nope","ta\u017fkId":"k"}"#,
            r#"{"taskId":"nope","tas\u212aId":"k"}"#,
            "{}",
        ] {
            refused(&mut stage, &about(method, params), json!(2), -32602).await;
        }
        refused(&mut stage, &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}"}}"#), json!(2), -32602)
            .await;
    }
    let request = about("tasks/get", r#"{"tas\u006bId":"k"}"#);
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"status":"completed","re\u017fult":{"content":[]}}}"#;
    let got: Value = serde_json::from_str(&stage.asks(&request, answer).await).unwrap();
    assert_eq!(got["result"]["structuredContent"]["rule"], answers::UNREADABLE_RESULT);
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn the_error_of_a_task_is_the_outcome_of_its_call() {
    let mut stage = with_task(kind).await;
    let fetch = about("tasks/result", r#"{"taskId":"k"}"#);
    let error = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"broke"}}"#;
    for _ in 0..2 {
        assert_eq!(stage.asks(&fetch, error).await, error);
    }
    assert_eq!(stage.asked("/outcomes"), [json!({"action": ACTION, "status": "error", "content": "broke"})]);
    let late = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"unseen"}]}}"#;
    assert!(!stage.asks(&fetch, late).await.contains("unseen"));
    stage.leave().await.0.unwrap();

    // An error that cannot be recorded does not pass.
    let mut stage = with_task(kind).await;
    stage.daemon = None;
    assert!(!stage.asks(&fetch, error).await.contains("broke"));
    let _ = stage.leave().await;
}

#[tokio::test]
async fn a_task_that_failed_is_an_error_by_either_generation() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let request = about("tasks/get", &format!(r#"{{"taskId":"k",{meta}}}"#));
    for (state, content) in [
        (r#"{"status":"failed","error":{"message":"broke"}}"#, "broke"),
        (r#"{"status":"failed","statusMessage":"br\u006fke"}"#, "broke"),
        (r#"{"status":"failed","result":{"content":[{"type":"text","text":"broke"}]}}"#, "broke"),
    ] {
        let mut stage = with_task(kind).await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{state}}}"#);
        for _ in 0..2 {
            assert_eq!(stage.asks(&request, &answer).await, answer);
        }
        let outcome = json!({"action": ACTION, "status": "error", "content": content});
        assert_eq!(stage.asked("/outcomes"), [outcome], "{state}");
        stage.leave().await.0.unwrap();
    }
    // Earlier the state does not say how; that is fetched, or else only the failure is known at the end.
    let mut stage = with_task(kind).await;
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"status":"failed"}}"#;
    assert_eq!(stage.asks(&about("tasks/get", r#"{"taskId":"k"}"#), answer).await, answer);
    let outcomes = stage.leave().await.1.unwrap().asked("/outcomes");
    assert_eq!(outcomes, [json!({"action": ACTION, "status": "error", "content": null})]);
}

#[tokio::test]
async fn a_text_that_is_cut_says_so_in_the_record() {
    let mut stage = stage(kind).await;
    let long = "x".repeat((1 << 20) + 1);
    let result =
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{long}"}}]}}}}"#);
    let got: Value = serde_json::from_str(&stage.asks(&call("1", "t"), &result).await).unwrap();
    assert_eq!(got["result"]["structuredContent"]["rule"], answers::RESULT_TOO_LONG);
    let recorded = stage.asked("/outcomes")[0]["content"].as_str().unwrap().to_owned();
    assert_eq!(recorded.strip_suffix(downstream::CUT_MARK).map(str::len), Some(1 << 20));
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_read_cannot_keep_the_gate() {
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let _daemon = StandIn::start(&home, |path, body| kind(path, &body));
    let open = OpenRun { surface: "mcp".into(), ..OpenRun::default() };
    let run = Run::open(&home, StartOptions::default(), open).await.unwrap();
    let ((to_server, server), (to_client, _client)) = (tokio::io::duplex(64), tokio::io::duplex(64));
    let gate = Arc::new(Gate::new(
        GatedRun::Socket(run),
        "s".into(),
        "s".into(),
        LineWriter::new(to_client),
        ToServer::new(LineWriter::new(to_server), Unmatched::Refuse),
        Vec::new(),
    ));
    let said = format!("{}\n", r#"{"jsonrpc":"2.0","method":"n","params":[1,2,3]}"#).repeat(10);
    let gone = timeout(2 * SERVER_ENDS_MAX, upstream::pump(&gate, said.as_bytes())).await;
    assert_eq!(gone, Ok(Gone::Client));
    drop(server);
    assert!(gate.to_server.pass(NoCall::blank(b"").unwrap()).await.is_err(), "nobody reads");
}
