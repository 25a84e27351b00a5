//! The gate between a scripted client, a scripted MCP server stand-in over pipes, and a scripted daemon
//! stand-in. What must pass is compared byte for byte.

mod adversary;
mod asking;
mod generations;
mod held;
mod overheard;
mod remote;
mod stopped;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::client::stand_in::{self, Answer, RUN, StandIn, now, usual};

const PATIENCE: Duration = Duration::from_secs(10);
const ACTION: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const DENIAL_RULE: &str = "runtime-policy/tool-type";

/// One end of a pipe, read by lines.
struct End {
    from: BufReader<DuplexStream>,
    to: Option<DuplexStream>,
}

impl End {
    async fn send(&mut self, line: &str) {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line; none at the end.
    async fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.from.read_line(&mut line)).await.expect("no line came").unwrap();
        (read > 0).then(|| line.strip_suffix('\n').unwrap_or(&line).to_owned())
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(&self.next().await.expect("the other side closed")).unwrap()
    }

    async fn expect(&mut self, line: &str) {
        assert_eq!(self.next().await.as_deref(), Some(line));
    }
}

/// A server whose end the test decides.
struct ScriptedProcess(oneshot::Receiver<&'static str>);

impl Process for ScriptedProcess {
    async fn ended(&mut self) -> String {
        (&mut self.0).await.unwrap_or("exit status: 0").to_owned()
    }

    async fn kill(&mut self) {}
}

struct Stage {
    client: End,
    server: End,
    daemon: Option<StandIn>,
    gate: JoinHandle<Result<Option<StopSignal>, GateError>>,
    signal: Option<oneshot::Sender<StopSignal>>,
    /// Dropped or used: the server's process ends.
    process: Option<oneshot::Sender<&'static str>>,
    _dir: TempDir,
}

fn permit() -> Answer {
    now(200, permit_json())
}

fn permit_json() -> Value {
    json!({"action": ACTION, "step": 1, "verdict": "allow", "enforced": "executed", "permit": true,
           "denial": null, "approval": null, "findings": [], "seq": 4})
}

fn denial_json(class: &str) -> Value {
    json!({"class": class, "verdict": "deny", "rule": DENIAL_RULE, "target": "write_file",
           "message": "the policy does not allow it", "instead": "reading", "retry": {"when": "never", "left": 2},
           "run": RUN, "action": ACTION})
}

fn seen(enforced: &str) -> Answer {
    let denial = if enforced == "executed" { Value::Null } else { denial_json("denied") };
    now(200, json!({"verdict": "allow", "enforced": enforced, "denial": denial, "seq": 6}))
}

/// Permits everything, passes every result, disables the tool `off`.
fn kind(path: &str, body: &Value) -> Answer {
    if path.ends_with("/actions") && body["tool"] == "write_file" {
        return now(
            200,
            json!({"action": ACTION, "step": 1, "verdict": "deny", "enforced": "withheld", "permit": false,
                   "denial": denial_json("denied"), "approval": null, "findings": [], "seq": 4}),
        );
    }
    match path.rsplit('/').next() {
        Some("actions") => permit(),
        Some("outcomes" | "told") => seen("executed"),
        Some("tools") => now(200, json!({"seq": 3, "disabled": ["off"]})),
        _ => usual(path).unwrap(),
    }
}

async fn stage(answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> Stage {
    const PIPE_BYTES: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let home = stand_in::home(dir.path());
    let daemon = StandIn::start(&home, move |path, body| answer(path, &body));
    // A daemon that is gone stays gone.
    let start = StartOptions { program: Some("/bin/false".into()), ..StartOptions::default() };
    let open = OpenRun { surface: "mcp".into(), ..OpenRun::default() };
    let run = Run::open(&home, start, open).await.unwrap();
    let pipe = || tokio::io::duplex(PIPE_BYTES);
    let ((client_to, gate_in), (gate_out, client_from)) = (pipe(), pipe());
    let ((to_server, server_from), (server_to, from_server)) = (pipe(), pipe());
    let gate = Gate::new(
        GatedRun::Socket(run),
        "stand-in --flag".into(),
        "stand-in".into(),
        LineWriter::new(gate_out),
        ToServer::new(LineWriter::new(to_server), Unmatched::Refuse),
        vec!["kept apart".to_owned()],
    );
    let (process, ended) = oneshot::channel();
    let (signal, signalled) = oneshot::channel();
    let gate = tokio::spawn(async move {
        let gate = Arc::new(gate);
        let mut process = ScriptedProcess(ended);
        let stop = async {
            match signalled.await {
                Ok(signal) => signal,
                Err(_) => std::future::pending().await,
            }
        };
        let ended =
            conduct(&gate, upstream::pump(&gate, gate_in), from_server, stop, &mut process, "stand-in").await;
        close(&gate.run).await.and(ended)
    });
    Stage {
        client: End { from: BufReader::new(client_from), to: Some(client_to) },
        server: End { from: BufReader::new(server_from), to: Some(server_to) },
        daemon: Some(daemon),
        gate,
        process: Some(process),
        signal: Some(signal),
        _dir: dir,
    }
}

impl Stage {
    fn asked(&self, ending: &str) -> Vec<Value> {
        self.daemon.as_ref().unwrap().asked(ending)
    }

    /// The client leaves; the server ends when its input does.
    async fn leave(mut self) -> (Result<Option<StopSignal>, GateError>, Option<StandIn>) {
        self.client.to = None;
        assert_eq!(self.server.next().await, None, "nothing more reaches the server");
        self.server.to = None;
        self.process = None;
        (timeout(PATIENCE, self.gate).await.unwrap().unwrap(), self.daemon)
    }
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{ "jsonrpc":"2.0","id":{id} ,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"p" : "\u00e9"}}}},"x":[1.0]}}"#
    )
}

#[tokio::test]
async fn everything_but_tools_passes_byte_for_byte() {
    let mut stage = stage(kind).await;
    for line in [
        r#"{"jsonrpc":"2.0", "id":1.0,"method":"initialize","params":{"protocolVersion":"2025-11-25"} , "extra":1e5}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "",
        r#"{"jsonrpc":"2.0","id":"a\u0041","method":"x-unknown/method","params":[1, 2.50]}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{"roots":[ ]}}"#,
        r#" [{"jsonrpc":"2.0","id":5,"method":"ping"}, {"jsonrpc":"2.0","method":"n"}]"#,
    ] {
        stage.client.send(line).await;
        stage.server.expect(line).await;
    }
    for line in [
        r#"{"id":1, "jsonrpc":"2.0","result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"n\u0041"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.50}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":"aA","error":{"code":-32601,"message":"no"}}"#,
        r#"[{"jsonrpc":"2.0","id":5,"result":{ }}]"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
    ] {
        stage.server.send(line).await;
        stage.client.expect(line).await;
    }
    let (ended, daemon) = stage.leave().await;
    ended.unwrap();
    let daemon = daemon.unwrap();
    assert_eq!((daemon.asked("/close").len(), daemon.asked("/actions").len()), (1, 0));
}

#[tokio::test]
async fn a_permitted_call_passes_and_its_result_is_recorded_first() {
    let mut stage = stage(kind).await;
    let line = call("7", "read_file");
    stage.client.send(&line).await;
    stage.server.expect(&line).await;
    let proposed = stage.asked("/actions");
    assert_eq!(
        proposed,
        [json!({"tool": "read_file", "server": "stand-in --flag", "arguments": {"p": "é"}, "planned": null,
                "call": "7"})]
    );
    let result =
        r#"{"result" : {"content":[{"type":"text","text":"h\u0069"}],"new":1.0},"id":7.0,"jsonrpc":"2.0"}"#;
    stage.server.send(result).await;
    stage.client.expect(result).await;
    let outcomes = stage.asked("/outcomes");
    assert_eq!(outcomes, [json!({"action": ACTION, "status": "ok", "content": "hi"})]);
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_denied_call_is_answered_with_the_typed_denial() {
    let mut stage = stage(kind).await;
    stage.client.send(&call("\"w\"", "write_file")).await;
    let answer = stage.client.json().await;
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!("w"), &json!(true)));
    assert_eq!(answer["result"]["structuredContent"]["rule"], DENIAL_RULE);
    assert!(answer["result"].get("resultType").is_none());
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the policy does not allow it. Allowed instead: reading."), "{text}");

    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let stateless = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"write_file",{meta}}}}}"#
    );
    stage.client.send(&stateless).await;
    assert_eq!(stage.client.json().await["result"]["resultType"], "complete");
    assert_eq!(stage.leave().await.1.unwrap().asked("/outcomes").len(), 0);
}

#[tokio::test]
async fn a_held_call_keeps_nobody_waiting_and_can_be_given_up() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/actions") && body["tool"] == "held" {
            return Box::pin(std::future::pending());
        }
        kind(path, body)
    })
    .await;
    stage.client.send(&call("1", "held")).await;
    stage.client.send(&call("2", "read_file")).await;
    stage.server.expect(&call("2", "read_file")).await;
    // In use until it is answered.
    stage.client.send(&call("1", "read_file")).await;
    let refused = stage.client.json().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
    stage
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}"#)
        .await;
    // Now the id is free, and the server has heard nothing of it.
    stage.client.send(&call("1", "read_file")).await;
    stage.server.expect(&call("1", "read_file")).await;
    let (ended, daemon) = stage.leave().await;
    ended.unwrap();
    let statuses: Vec<Value> =
        daemon.unwrap().asked("/outcomes").iter().map(|outcome| outcome["status"].clone()).collect();
    assert_eq!(statuses, ["unknown", "unknown"], "both calls that the server had");
}

#[tokio::test]
async fn replaced_arguments_are_spliced_in() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/actions") {
            let mut answer = permit_json();
            answer["enforced"] = json!("replaced");
            answer["arguments"] = json!({"p": "masked"});
            return now(200, answer);
        }
        kind(path, body)
    })
    .await;
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t").replace(r#"{"p" : "\u00e9"}"#, r#"{"p":"masked"}"#)).await;
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn stretches_of_a_result_are_cut_out_where_they_stand() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/outcomes") {
            let note = json!([{"start": 2, "end": 6, "replacement": "[cut]"}]);
            return now(
                200,
                json!({"verdict": "modify", "enforced": "replaced", "denial": null, "seq": 6,
                       "shown": "é [cut] ok", "edits": note}),
            );
        }
        kind(path, body)
    })
    .await;
    let answer = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0", "id":1,"result":{{"x":[1, 2],"content":[{{"text":{text}, "type":"text"}}]}}}}"#
        )
    };
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    stage.server.send(&answer(r#""\u00e9bad! ok""#)).await;
    stage.client.expect(&answer("\"é[cut] ok\"")).await;
    // What cannot be cut out exactly does not pass at all.
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    stage.server.send(&answer(r#""abc""#)).await;
    let withheld = stage.client.json().await;
    assert_eq!(withheld["result"]["structuredContent"]["rule"], answers::WITHHELD);
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn smuggled_and_broken_messages_of_the_client_reach_nobody() {
    let mut stage = stage(kind).await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{}"}}"#, "x".repeat(17 << 20));
    let cases: [(&str, Value, i64); 9] = [
        ("not json", Value::Null, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#, Value::Null, -32600),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            json!(4),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"tools\/call","params":{"name":"a","arguments":{"x":1,"x":2}}}"#,
            json!(4),
            -32602,
        ),
        (r#"[[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}]]"#, Value::Null, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#, Value::Null, -32700),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            Value::Null,
            -32700,
        ),
        (&long, Value::Null, -32600),
    ];
    for (line, id, code) in cases {
        stage.client.send(line).await;
        let answer = stage.client.json().await;
        let start: String = line.chars().take(80).collect();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{start}: {answer}");
    }
    // A batch with a call is answered for each of its requests; one of notifications is dropped.
    let call = call("3", "t");
    stage.client.send(&format!(r#"[{{"jsonrpc":"2.0","id":2,"method":"ping"}},{call}]"#)).await;
    let answer = stage.client.json().await;
    assert_eq!(
        (&answer[0]["id"], &answer[1]["id"], answer.as_array().unwrap().len()),
        (&json!(2), &json!(3), 2)
    );
    stage.client.send(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#).await;
    stage.client.send(r#"[{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}]"#).await;
    // The ids of what was refused are free.
    stage.client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    stage.server.expect(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(stage.leave().await.1.unwrap().asked("/actions").len(), 0);
}

#[tokio::test]
async fn garbage_and_answers_to_nothing_do_not_reach_the_client() {
    let mut stage = stage(kind).await;
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    for line in [
        "Server listening on stdio",
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
        result,
        // The second answer to the same call could be another than the one that was judged.
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"unseen"}]}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","method":"last"}"#,
    ] {
        stage.server.send(line).await;
    }
    let mut got = [stage.client.next().await.unwrap(), stage.client.next().await.unwrap()];
    got.sort();
    assert_eq!(got, [result, r#"{"jsonrpc":"2.0","method":"last"}"#]);
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn results_that_cannot_be_judged_whole_are_withheld() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/outcomes") && body["content"] == "secret" {
            return seen("withheld");
        }
        kind(path, body)
    })
    .await;
    let long = "x".repeat((1 << 20) + 1);
    for (content, rule) in [
        (format!(r#"[{{"type":"text","text":"{long}"}}]"#), answers::RESULT_TOO_LONG),
        (r#"[{"type":"text","text":"a","text":"b"}]"#.to_owned(), answers::UNREADABLE_RESULT),
        (r#"[{"type":"text","text":"secret"}]"#.to_owned(), DENIAL_RULE),
    ] {
        stage.client.send(&call("1", "t")).await;
        stage.server.expect(&call("1", "t")).await;
        stage.server.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{content}}}}}"#)).await;
        let answer = stage.client.json().await;
        assert_eq!(answer["result"]["structuredContent"]["rule"], rule);
        assert_eq!(answer["result"]["isError"], true);
    }
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_result_that_cannot_be_recorded_is_withheld() {
    let mut stage = stage(kind).await;
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    stage.daemon = None;
    stage.server.send(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}"#).await;
    let answer = stage.client.json().await;
    assert_eq!(answer["result"]["structuredContent"]["rule"], answers::NOT_RECORDED);
    // Nor is anything executed.
    stage.client.send(&call("2", "t")).await;
    let answer = stage.client.json().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["class"]), (&json!(2), &json!("gate_unavailable")));
    let (ended, _) = stage.leave().await;
    assert!(matches!(ended, Err(GateError::Close(_))));
}

#[tokio::test]
async fn lists_are_recorded_and_lose_what_is_disabled() {
    let mut stage = stage(kind).await;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (listed, shown) in [
        (r#"[{"name":"on" ,"x":1.0}]"#, r#"[{"name":"on" ,"x":1.0}]"#),
        (
            r#"[{"name":"on","annotations":{"readOnlyHint":true}}, {"name":"off"}]"#,
            r#"[{"name":"on","annotations":{"readOnlyHint":true}}]"#,
        ),
    ] {
        stage.client.send(request).await;
        stage.server.expect(request).await;
        stage.server.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{listed}}}}}"#)).await;
        stage.client.expect(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{shown}}}}}"#)).await;
    }
    let reported = stage.asked("/tools");
    assert_eq!(
        (&reported[1]["server"], reported[1]["tools"].as_array().unwrap().len()),
        (&json!("stand-in"), 2)
    );
    assert_eq!(reported[1]["tools"][0]["read_only_hint"], true);
    stage.daemon = None;
    stage.client.send(request).await;
    stage.server.expect(request).await;
    stage.server.send(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"off"}]}}"#).await;
    assert_eq!(stage.client.json().await["error"]["code"], -32603);
    let _ = stage.leave().await;
}

#[tokio::test]
async fn the_result_of_a_task_is_the_outcome_of_its_call() {
    let mut stage = stage(kind).await;
    stage.client.send(&call("1", "t")).await;
    stage.server.expect(&call("1", "t")).await;
    let created = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"k","status":"working"}}}"#;
    stage.server.send(created).await;
    stage.client.expect(created).await;
    assert_eq!(stage.asked("/outcomes").len(), 0);
    let fetch = r#"{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"k"}}"#;
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}]}}"#;
    for _ in 0..2 {
        stage.client.send(fetch).await;
        stage.server.expect(fetch).await;
        stage.server.send(result).await;
        stage.client.expect(result).await;
    }
    assert_eq!(stage.asked("/outcomes"), [json!({"action": ACTION, "status": "ok", "content": "done"})]);
    // Another result than the one that was judged does not pass.
    stage.client.send(fetch).await;
    stage.server.expect(fetch).await;
    stage.server.send(&result.replace("done", "else")).await;
    let answer = stage.client.json().await;
    assert_eq!(answer["result"]["structuredContent"]["rule"], answers::UNREADABLE_RESULT);
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_server_that_dies_is_named_to_everyone_who_waits() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/actions") && body["tool"] == "held" {
            return Box::pin(std::future::pending());
        }
        kind(path, body)
    })
    .await;
    let list = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
    for line in [&call("1", "t"), list] {
        stage.client.send(line).await;
        stage.server.expect(line).await;
    }
    stage.client.send(&call("2", "held")).await;
    while stage.asked("/actions").len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.process.take().unwrap().send("signal: 9 (SIGKILL)").unwrap();
    stage.server.to = None;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = stage.client.json().await;
        let message = answer["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`stand-in` ended by itself (signal: 9 (SIGKILL))"), "{message}");
        answers.push((answer["id"].as_i64().unwrap(), message));
    }
    answers.sort();
    assert!(answers[0].1.ends_with("whether the tool acted is not known"), "{}", answers[0].1);
    assert!(answers[1].1.ends_with("the call was not executed"), "{}", answers[1].1);
    let ended = timeout(PATIENCE, &mut stage.gate).await.unwrap().unwrap();
    assert!(matches!(ended, Err(GateError::ServerEnded { .. })));
    assert_eq!(stage.asked("/outcomes"), [json!({"action": ACTION, "status": "unknown", "content": null})]);
    assert_eq!(stage.asked("/close").len(), 1);
}

#[tokio::test]
async fn a_flood_of_calls_is_bounded() {
    let mut stage =
        stage(
            |path, body| {
                if path.ends_with("/actions") { Box::pin(std::future::pending()) } else { kind(path, body) }
            },
        )
        .await;
    for id in 0..=OPEN_CALLS_MAX {
        stage.client.send(&call(&id.to_string(), "t")).await;
    }
    let answer = stage.client.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(OPEN_CALLS_MAX), &json!(-32600)));
    stage.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_client_that_says_all_at_once_and_leaves_is_served() {
    let mut stage = stage(|path, body| {
        if path.ends_with("/actions") {
            return Box::pin(async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                (200, permit_json())
            });
        }
        kind(path, body)
    })
    .await;
    stage.client.send(&call("1", "t")).await;
    stage.client.to = None;
    stage.server.expect(&call("1", "t")).await;
    assert_eq!(stage.server.next().await, None);
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    stage.server.send(result).await;
    stage.server.to = None;
    stage.process = None;
    stage.client.expect(result).await;
    timeout(PATIENCE, stage.gate).await.unwrap().unwrap().unwrap();
}
