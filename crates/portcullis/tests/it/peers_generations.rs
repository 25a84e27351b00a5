//! A client of one generation of the protocol and a server of the other, neither written here, through the gate.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::peers::{Stage, report, step};
use crate::peers_remote::{Served, endpoint, open};

/// A server of the official SDK for TypeScript that knows no sessions.
fn stateless(stage: &Stage) -> Served {
    let node = stage.peers().join("npm/node_modules/.bin/node");
    let mut child = Command::new(node)
        .arg(stage.script("stateless-server.mjs"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    Served { child, url: url.trim_end().to_owned() }
}

fn made(report: &Value, number: usize) -> &str {
    let made = step(report, number);
    assert_eq!(made["isError"], false, "{made}");
    made["text"].as_str().unwrap()
}

#[test]
fn a_client_of_sessions_uses_a_server_that_knows_none() {
    let Some(stage) = Stage::set("everything") else { return };
    open(&stage);
    let server = stateless(&stage);
    let mut gated = stage.governed("mcp", "open", &["--url"]);
    gated.push(server.url.clone());
    let steps = json!([
        {"list_tools": 0}, {"tool": "greet", "arguments": {"name": "Ada"}}, {"tool": "ask", "arguments": {}},
        {"tool": "ask", "arguments": {}},
    ]);
    let answers = json!([{"action": "accept", "content": {"name": "Ada"}}, {"action": "accept", "content": {"name": "Bob"}}]);
    let servers = serde_json::to_string(&[gated]).unwrap();
    let arguments = [
        "--servers",
        &servers,
        "--steps",
        &steps.to_string(),
        "--mode",
        "legacy",
        "--elicit",
        &answers.to_string(),
    ];
    let report = report(stage.client("filesystem.py", &arguments.map(str::to_owned)));
    assert_eq!(
        report["servers"][0],
        json!({"name": "stateless", "version": "1.0.0", "protocol": "2025-11-25"})
    );
    assert_eq!(made(&report, 1), "Hello, Ada!");
    assert_eq!(made(&report, 2), "Hello, Ada! That is call 1.");
    assert_eq!(made(&report, 3), "Hello, Bob! That is call 2.", "no call is made twice");
    let asked: Vec<&Value> = report["asked"].as_array().unwrap().iter().collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn a_client_without_sessions_uses_a_server_of_sessions() {
    let Some(stage) = Stage::set("filesystem") else { return };
    open(&stage);
    std::fs::write(stage.path("files/a.txt"), "a line\n").unwrap();
    let steps = json!([
        {"list_tools": 0}, {"tool": "read_text_file", "arguments": {"path": stage.path("files/a.txt")}},
        {"tool": "list_allowed_directories", "arguments": {}},
    ]);
    let report = report(stage.filesystem(&[stage.gated("filesystem", "open")], &steps));
    assert_eq!(report["servers"][0]["protocol"], "2026-07-28");
    assert_eq!(report["servers"][0]["name"], "secure-filesystem-server");
    assert_eq!(made(&report, 1), "a line\n");
    assert!(made(&report, 2).contains("files"));
}

/// What `/mcp` answers to a request without session.
fn ask(url: &str, token: &str, method: &str, name: Option<&str>, params: Value) -> Value {
    let mut text = String::new();
    send(url, token, method, name, params).read_to_string(&mut text).unwrap();
    let line = text.lines().rfind(|line| line.contains("\"jsonrpc\"")).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).unwrap()
}

fn send(url: &str, token: &str, method: &str, name: Option<&str>, mut params: Value) -> TcpStream {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn names(list: &Value) -> Vec<String> {
    let tools = list.as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Each kind of client sees the tools of both kinds of server behind one address.
#[test]
fn servers_of_both_generations_stand_behind_one_address() {
    let Some(stage) = Stage::set("filesystem") else { return };
    open(&stage);
    std::fs::write(stage.path("files/a.txt"), "a line\n").unwrap();
    let server = stateless(&stage);
    let files = serde_json::to_string(&stage.server("filesystem")).unwrap();
    stage.set_main("policy = \"open\"");
    let main = stage.bundle().join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, format!("{text}\n[server.files]\ncommand = {files}\n")).unwrap();
    let daemon = endpoint(&stage, &server);
    let token = stage.path("home/credentials/agent.token");
    let both = ["files__read_text_file", "far__greet"];

    let path = stage.path("files/a.txt");
    let steps = json!([
        {"list_tools": 0}, {"tool": both[0], "arguments": {"path": path}}, {"tool": both[1], "arguments": {"name": "Ada"}},
    ]);
    let bridge = stage.bridge(&["--token", &token.display().to_string(), &daemon.url]);
    let old = report(stage.filesystem_in("legacy", &[bridge], &steps));
    let listed = step(&old, 0).to_string();
    assert!(both.iter().all(|name| listed.contains(name)), "{listed}");
    assert_eq!((made(&old, 1), made(&old, 2)), ("a line\n", "Hello, Ada!"));

    let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
    let new = |method: &str, name: Option<&str>, params: Value| {
        ask(&daemon.url, &token, method, name, params)["result"].take()
    };
    assert_eq!(new("server/discover", None, json!({}))["supportedVersions"], json!(["2026-07-28"]));
    let listed = names(&new("tools/list", None, json!({}))["tools"]);
    assert!(both.iter().all(|name| listed.iter().any(|listed| listed == name)), "{listed:?}");
    let read = new("tools/call", Some(both[0]), json!({"name": both[0], "arguments": {"path": path}}));
    assert_eq!((&read["content"][0]["text"], &read["resultType"]), (&json!("a line\n"), &json!("complete")));
    let greeted = new("tools/call", Some(both[1]), json!({"name": both[1], "arguments": {"name": "Bob"}}));
    assert_eq!(greeted["content"][0]["text"], "Hello, Bob!");

    // One subscription at both: the client is told once what they agree to.
    new("resources/list", None, json!({}));
    let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": ["note://one", "note://none"]});
    let stream = send(&daemon.url, &token, "subscriptions/listen", None, json!({"notifications": wanted}));
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let told = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told["params"]["_meta"], json!({"io.modelcontextprotocol/subscriptionId": 1}));
    assert_eq!(told["params"]["notifications"]["toolsListChanged"], true, "{told}");
}
