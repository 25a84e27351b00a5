//! `/mcp` of the daemon, spoken to in plain HTTP.

mod bounds;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::auditor::copy;
use crate::daemon::State;

/// A daemon in front of servers, over TCP.
struct Daemon {
    state: State,
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Daemon {
    /// With the demo's server as `a`, and what else the bundle is to have.
    fn start(more: &str) -> Self {
        Self::start_in("enforce", more)
    }

    /// The same in a mode, such as the one in which nothing is stopped, for tools that the bundle does not describe.
    fn start_in(mode: &str, more: &str) -> Self {
        let state = State::new();
        let bundle = state.path("bundle");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bundle"), &bundle);
        let main = bundle.join("portcullis.toml");
        // Nobody decides what is held. Longer than it takes to become a stream.
        let (usual, short) = ("# approval_wait_s = 25", "approval_wait_s = 7");
        let mut text = fs::read_to_string(&main).unwrap();
        assert!(text.contains(usual), "{text}");
        text = text.replacen(usual, short, 1);
        assert!(text.contains("\nmode = \"enforce\""), "{text}");
        text = text.replacen("\nmode = \"enforce\"", &format!("\nmode = \"{mode}\""), 1);
        let (program, folder) = (env!("CARGO_BIN_EXE_portcullis"), state.path("files"));
        write!(text, "\n[server.a]\ncommand = ['{program}', 'demo-server', '{}']\n{more}", folder.display())
            .unwrap();
        fs::write(&main, text).unwrap();
        let bundle = bundle.display().to_string();
        let mut child = state
            .command(&["serve", "--bundle", &bundle, "--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "the daemon ended");
            if let Some((_, address)) = line.trim_end().rsplit_once("serving HTTP address=") {
                break address.parse().unwrap();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let token =
            fs::read_to_string(state.home().join("credentials/agent.token")).unwrap().trim().to_owned();
        Self { state, child, address, token }
    }

    fn send(&self, request: &Request<'_>) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = request
            .text
            .map_or_else(|| request.body.map(Value::to_string).unwrap_or_default(), str::to_owned);
        let mut head = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", request.method, request.path);
        let usual = [
            ("host", self.address.to_string()),
            ("authorization", format!("Bearer {}", self.token)),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        for (name, value) in
            usual.iter().filter(|(name, _)| !request.headers.iter().any(|(other, _)| other == name))
        {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        for (name, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream
    }

    fn ask(&self, request: &Request<'_>) -> Answer {
        let mut text = String::new();
        self.send(request).read_to_string(&mut text).unwrap();
        Answer::of(&text)
    }

    fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.ask(&Request { headers, body: Some(body), ..Request::default() })
    }

    /// Opens a session at a path; its id, and the answer.
    fn open(&self, path: &str) -> (String, Answer) {
        let answer = self.ask(&Request { path, body: Some(&hello()), ..Request::default() });
        let id = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = self.ask(&Request {
            path,
            headers: &[("mcp-session-id", &id)],
            body: Some(&told),
            ..Request::default()
        });
        assert_eq!((accepted.status, accepted.text.as_str()), (202, ""));
        (id, answer)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Request<'r> {
    method: &'r str,
    path: &'r str,
    headers: &'r [(&'r str, &'r str)],
    body: Option<&'r Value>,
    /// In its place.
    text: Option<&'r str>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self { method: "POST", path: "/mcp", headers: &[], body: None, text: None }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    text: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Self { status, head: head.to_owned(), text: if chunked { unchunked(body) } else { body.to_owned() } }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The message, alone or on a stream.
    fn json(&self) -> Value {
        let event = self.text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(event.unwrap_or(&self.text)).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or_default();
        whole.push_str(rest.get(..length).unwrap_or(rest));
        body = rest.get(length + 2..).unwrap_or_default();
    }
    whole
}

fn hello() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn call(id: u32, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn a_session_is_opened_used_and_ended() {
    let daemon = Daemon::start("");
    let (id, hello) = daemon.open("/mcp");
    assert_eq!(hello.json()["id"], 0);
    assert_eq!(hello.json()["result"]["protocolVersion"], "2025-11-25");
    let session = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let sum = daemon.post(&session, &call(1, "perform_calculation", &json!({"expression": "40 + 2"}))).json();
    assert_eq!((&sum["id"], &sum["result"]["isError"]), (&json!(1), &json!(false)), "{sum}");
    let mail = json!({"recipient": "a@example.com", "subject": "x", "body": "y"});
    let denied = daemon.post(&session, &call(2, "send_email", &mail)).json();
    assert_eq!(denied["result"]["structuredContent"]["rule"], "runtime-policy/tool-type", "{denied}");
    let ended = daemon.ask(&Request { method: "DELETE", headers: &session, ..Request::default() });
    assert_eq!(ended.status, 204);
    assert_eq!(daemon.post(&session, &call(3, "perform_calculation", &json!({}))).status, 404);
    let run = daemon.state.until_closed();
    assert_eq!((&run["surface"], &run["steps"]), (&json!("mcp"), &json!(2)), "{run}");
}

/// What is wrong, the status, and the headers.
type Case<'c> = (&'c str, u16, &'c [(&'c str, &'c str)]);

#[test]
fn what_is_no_request_of_the_transport_is_refused() {
    let daemon = Daemon::start("");
    let (id, _) = daemon.open("/mcp");
    let approver = fs::read_to_string(daemon.state.home().join("credentials/approver.token")).unwrap();
    let approver = format!("Bearer {}", approver.trim());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let session = ("mcp-session-id", id.as_str());
    let own = format!("http://{}", daemon.address);
    let cases: &[Case<'_>] = &[
        ("no credential", 401, &[("authorization", ""), session]),
        ("an unknown one", 401, &[("authorization", "Bearer x"), session]),
        ("another site", 403, &[("origin", "http://evil.example"), session]),
        ("another host", 403, &[("host", "evil.example"), session]),
        ("the own site", 200, &[("origin", &own), session]),
        ("another type", 415, &[("content-type", "text/plain"), session]),
        ("one kind of answer", 406, &[("accept", "application/json"), session]),
        ("no session", 400, &[]),
        ("an unknown session", 404, &[("mcp-session-id", "0123")]),
        ("the session of another", 404, &[("authorization", &approver), session]),
        ("no revision", 400, &[("mcp-protocol-version", "1.0.0"), session]),
        ("another generation", 400, &[("mcp-protocol-version", "2026-07-28"), session]),
        ("the usual", 200, &[("mcp-protocol-version", "2025-06-18"), session]),
    ];
    for (name, status, headers) in cases {
        let answer = daemon.post(headers, &ping);
        assert_eq!(answer.status, *status, "{name}: {answer:?}");
    }
    for body in [json!([ping]), json!({"jsonrpc": "1.0"}), json!("x")] {
        assert_eq!(daemon.post(&[session], &body).status, 400, "{body}");
    }
    let get = |headers: &[(&str, &str)]| {
        daemon.ask(&Request { method: "GET", headers, ..Request::default() }).status
    };
    assert_eq!(get(&[("accept", "text/event-stream")]), 405, "a stream is a session's");
    assert_eq!(get(&[("accept", "application/json"), session]), 406);
    assert_eq!(get(&[session, ("last-event-id", "x")]), 400);
    assert_eq!(get(&[session, ("last-event-id", "9-9")]), 404);
    assert_eq!(daemon.ask(&Request { method: "PUT", ..Request::default() }).status, 405);
    let unknown = daemon.ask(&Request { path: "/mcp/b", body: Some(&hello()), ..Request::default() });
    assert_eq!(unknown.status, 404);
    assert!(unknown.text.contains("[server.NAME]"), "{unknown:?}");
}

#[test]
fn a_client_without_sessions_is_served_by_its_headers_and_body() {
    let daemon = Daemon::start("");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let request = |id: u32, method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    let call =
        |name: &str| request(7, "tools/call", json!({"name": name, "arguments": {"expression": "6 * 7"}}));
    let headers = [version, ("mcp-method", "tools/call"), ("mcp-name", "perform_calculation")];
    let sum = daemon.post(&headers, &call("perform_calculation"));
    assert_eq!((sum.status, &sum.json()["id"]), (200, &json!(7)), "{sum:?}");
    let listed =
        daemon.post(&[version, ("mcp-method", "tools/list")], &request(7, "tools/list", json!({}))).json();
    assert!(listed["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{listed}");
    for headers in [&headers[1..], &headers[..2], &[headers[0], headers[1], ("mcp-name", "send_email")]] {
        let refused = daemon.post(headers, &call("perform_calculation"));
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)), "{refused:?}");
    }
    let unknown = daemon.post(&[version, ("mcp-method", "no/such")], &request(1, "no/such", json!({})));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)), "{unknown:?}");
    let runs = daemon.state.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs.len(), 1, "one client, one run");
}

/// Servers that say nothing, end at once, or cannot be started hold up nobody, and the daemon says what is wrong.
#[test]
fn servers_that_fail_leave_the_others_alone() {
    let daemon = Daemon::start(
        "\n[server.mute]\ncommand = ['sleep', '600']\n\n[server.gone]\ncommand = ['false']\n\n\
         [server.none]\ncommand = ['/no/such/program']\n\n[server.closed]\nurl = 'http://127.0.0.1:9/mcp'\n",
    );
    let began = Instant::now();
    let (id, hello) = daemon.open("/mcp");
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "the one that answers is not kept waiting for ten seconds"
    );
    let hello = &hello.json()["result"];
    assert_eq!(hello["serverInfo"]["name"], "portcullis");
    assert_eq!(hello["capabilities"]["tools"]["listChanged"], true, "{hello}");
    let session = [("mcp-session-id", id.as_str())];
    let began = Instant::now();
    let sum =
        daemon.post(&session, &call(1, "a__perform_calculation", &json!({"expression": "1 + 1"}))).json();
    assert_eq!(sum["result"]["isError"], false, "{sum}");
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    assert!(!tools(&daemon.post(&session, &list)).is_empty());
    assert!(began.elapsed() < Duration::from_secs(5));
    for (tool, code, words) in [
        ("gone__x", -32603, "has ended"),
        ("mute__x", -32603, "`mute` has not answered `initialize` yet"),
        ("none__x", -32602, "no server has"),
        ("closed__x", -32603, "nothing listens at `127.0.0.1:9`; once it is mended, open another session"),
        ("perform_calculation", -32602, "no server has"),
    ] {
        let refused = daemon.post(&session, &call(2, tool, &json!({})));
        assert_eq!(refused.status, 200, "clients read no messages in errors of HTTP");
        let refused = refused.json();
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(refused["error"]["code"] == code && message.contains(words), "{tool}: {refused}");
    }
    let doctor = daemon.state.run(&["doctor", "--json"]).json();
    let of_daemon = doctor.iter().find(|check| check["name"] == "daemon").unwrap();
    let detail = of_daemon["detail"].as_str().unwrap();
    assert_eq!(of_daemon["result"], "warn");
    for words in [
        "`mute` has not answered `initialize`",
        "`gone` ended by itself",
        "`none` is not available: `/no/such/program` cannot be started",
        "`closed` is not available: the server `http://127.0.0.1:9/mcp` cannot be reached",
    ] {
        assert!(detail.contains(words), "{detail}");
    }
}

/// A program that answers what it is asked, `initialize` after `$1` seconds and lists after `$2`.
const SLOW: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) sleep "$1"
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}}';;
    *'notifications/initialized'*) met=yes;;
    *'"tools/list"'*) sleep "$2"
      [ "$met" = yes ] && echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}}';;
  esac
done
"#;

fn slow(hello_s: &str, list_s: &str) -> String {
    format!("\n[server.slow]\ncommand = ['sh', '-c', '''{SLOW}''', 'slow', '{hello_s}', '{list_s}']\n")
}

fn tools(answer: &Answer) -> Vec<String> {
    let listed = answer.json();
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The next message on a stream.
fn next_message(stream: &mut impl BufRead) -> Value {
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: {") {
            return serde_json::from_str(&format!("{{{data}")).unwrap();
        }
    }
}

/// A server that introduces itself late is announced when it has, and is then there.
#[test]
fn a_server_that_is_late_is_announced() {
    let daemon = Daemon::start(&slow("4", "0"));
    let began = Instant::now();
    let (id, _) = daemon.open("/mcp");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let session = [("mcp-session-id", id.as_str())];
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    let before = tools(&daemon.post(&session, &list));
    assert!(!before.is_empty() && before.iter().all(|tool| tool.starts_with("a__")), "{before:?}");
    let headers = [session[0], ("accept", "text/event-stream")];
    let request = Request { method: "GET", headers: &headers, ..Request::default() };
    let mut own = BufReader::new(daemon.send(&request));
    assert_eq!(next_message(&mut own)["method"], "notifications/tools/list_changed");
    // On a busy machine even its list may come too late, and is there when it is asked for again.
    let lists = (0..20).map(|_| tools(&daemon.post(&session, &list)));
    let mut listed = lists.inspect(|tools| println!("{tools:?}"));
    assert!(
        listed.any(|tools| tools.contains(&"slow__late".to_owned())),
        "it was not told that it may be asked"
    );
    assert_eq!(daemon.state.run(&["doctor", "--json"]).json()[5]["result"], "ok");
}

/// A list that is late is announced once, and kept for when the client asks again.
#[test]
fn a_list_that_is_late_is_kept() {
    let daemon = Daemon::start(&slow("0", "3"));
    let (id, _) = daemon.open("/mcp");
    let session = [("mcp-session-id", id.as_str())];
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    let began = Instant::now();
    let first = tools(&daemon.post(&session, &list));
    assert!(
        began.elapsed() < Duration::from_secs(3) && !first.contains(&"slow__late".to_owned()),
        "{first:?}"
    );
    let headers = [session[0], ("accept", "text/event-stream")];
    let request = Request { method: "GET", headers: &headers, ..Request::default() };
    let mut own = BufReader::new(daemon.send(&request));
    assert_eq!(next_message(&mut own)["method"], "notifications/tools/list_changed");
    let again = tools(&daemon.post(&session, &list));
    assert!(again.contains(&"slow__late".to_owned()), "{again:?}");
    // It comes late again, and says what it said: a client that asks whenever it is told to would never stop.
    std::thread::sleep(Duration::from_secs(4));
    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string();
    own.get_ref().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut rest = Vec::new();
    let _nothing_comes = own.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains(&told), "{}", String::from_utf8_lossy(&rest));
}

/// Who does not wait for a list any more makes nobody late who has not answered it yet.
#[test]
fn a_client_that_leaves_makes_no_server_look_amiss() {
    let daemon = Daemon::start(&slow("0", "30"));
    let (id, _) = daemon.open("/mcp");
    let session = [("mcp-session-id", id.as_str())];
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"});
    let asks = Request { headers: &session, body: Some(&list), ..Request::default() };
    let listed = daemon.send(&asks);
    std::thread::sleep(Duration::from_millis(100));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    assert_eq!(daemon.post(&session, &cancelled).status, 202);
    // A client without sessions gives up by leaving.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let left = daemon.send(&Request { headers: &headers, body: Some(&list), ..Request::default() });
    std::thread::sleep(Duration::from_millis(100));
    drop(left);
    let amiss = || {
        let doctor = daemon.state.run(&["doctor", "--json"]).json();
        let of_daemon = doctor.iter().find(|check| check["name"] == "daemon").unwrap();
        (of_daemon["result"] == "warn").then(|| of_daemon["detail"].to_string())
    };
    // Longer than anybody would have been waited for.
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(amiss(), None);
    drop(listed);
    // Who waits until it is answered finds out.
    let answered = daemon.ask(&asks);
    assert!(!tools(&answered).iter().any(|tool| tool.starts_with("slow__")), "{answered:?}");
    assert!(amiss().is_some_and(|detail| detail.contains("`slow` has not answered `tools/list`")));
}

/// A stream that breaks is taken up behind the last event that came.
#[test]
fn a_held_call_becomes_a_stream_that_can_be_taken_up() {
    let daemon = Daemon::start("");
    let (id, _) = daemon.open("/mcp");
    let session = [("mcp-session-id", id.as_str())];
    let held = call(9, "no_such_tool_is_listed", &json!({}));
    let mut stream =
        BufReader::new(daemon.send(&Request { headers: &session, body: Some(&held), ..Request::default() }));
    let mut event = String::new();
    while !event.starts_with("id: ") {
        event.clear();
        assert!(stream.read_line(&mut event).unwrap() > 0, "the call is held, so that a stream begins");
    }
    drop(stream);
    let after = event.trim().strip_prefix("id: ").unwrap();
    let rest = daemon.ask(&Request {
        method: "GET",
        headers: &[session[0], ("last-event-id", after), ("accept", "text/event-stream")],
        ..Request::default()
    });
    assert_eq!((rest.status, rest.header("content-type")), (200, Some("text/event-stream")));
    let told =
        rest.text.lines().find_map(|line| line.strip_prefix("data: {")).unwrap_or_else(|| panic!("{rest:?}"));
    let told: Value = serde_json::from_str(&format!("{{{told}")).unwrap();
    assert_eq!(
        (&told["id"], &told["result"]["structuredContent"]["class"]),
        (&json!(9), &json!("approval_pending"))
    );
}
