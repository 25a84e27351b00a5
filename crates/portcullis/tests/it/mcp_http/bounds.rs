//! What one server or one client of `/mcp` cannot do to the others.

use std::io::Read as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Daemon, Request, call, slow, tools};

/// A program that says much at once: before the result of a call, and in a list of resources, which weighs more as a tree than
/// as text. It never answers the tool `mute`.
const TALKATIVE: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"logging":{}},"serverInfo":{"name":"talkative","version":"1"}}}';;
    *'"mute"'*) ;;
    *'"tools/call"'*)
      said=$(i=0; while [ $i -lt 200 ]; do echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":'$i'}}'; i=$((i+1)); done)
      printf '%s\n%s\n' "$said" '{"jsonrpc":"2.0","id":'$id',"note":"hidden","result":{"content":[{"type":"text","text":"done"}]}}';;
    *'"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"say","inputSchema":{"type":"object"}},{"name":"mute","inputSchema":{"type":"object"}}]}}';;
    *'"resources/list"'*)
      zeros=$(head -c 1200000 /dev/zero | sed 's/\x00/0,/g')
      printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"resources":[],"zeros":['"$zeros"'0],"nextCursor":"on"}}';;
  esac
done
"#;

fn talkative() -> Daemon {
    Daemon::start_in("observe", &format!("\n[server.t]\ncommand = ['sh', '-c', '''{TALKATIVE}''']\n"))
}

fn of_daemon(daemon: &Daemon) -> Value {
    let doctor = daemon.state.run(&["doctor", "--json"]).json();
    doctor.into_iter().find(|check| check["name"] == "daemon").unwrap()
}

fn say(daemon: &Daemon, id: &str, tool: &str) -> Answer {
    daemon.post(&[("mcp-session-id", id)], &call(7, tool, &json!({})))
}

#[test]
fn a_burst_of_messages_costs_no_call_its_result() {
    let daemon = talkative();
    for path in ["/mcp", "/mcp/t"] {
        let (id, _) = daemon.open(path);
        let tool = if path == "/mcp" { "t__say" } else { "say" };
        for _ in 0..4 {
            let request = call(7, tool, &json!({}));
            let headers = [("mcp-session-id", id.as_str())];
            let answer =
                daemon.ask(&Request { path, headers: &headers, body: Some(&request), ..Request::default() });
            let told = answer.json();
            assert_eq!(
                (&told["id"], &told["result"]["content"][0]["text"]),
                (&json!(7), &json!("done")),
                "{told}"
            );
            assert!(!answer.text.contains("hidden"), "a member that is no part of a message is not shown");
        }
    }
}

/// Servers are spoken to by lines. A body may have several, and whatever stands in one of them is no message of its own.
#[test]
fn no_part_of_a_body_is_a_message() {
    let daemon = talkative();
    let (id, _) = daemon.open("/mcp/t");
    let headers = [("mcp-session-id", id.as_str())];
    let say = |text: &str| {
        let request = Request { path: "/mcp/t", headers: &headers, text: Some(text), ..Request::default() };
        daemon.ask(&request)
    };
    let pretty = serde_json::to_string_pretty(&call(7, "say", &json!({}))).unwrap();
    assert_eq!(say(&pretty).json()["result"]["content"][0]["text"], "done");
    // The number that the next request has at the server.
    let inner = call(3, "say", &json!({}));
    let outer =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{{\"x\":\n{inner}\n}}}}");
    assert_eq!(say(&outer).status, 202);
    assert_eq!(say(&pretty.replace("\n", "\r\n")).json()["result"]["content"][0]["text"], "done");
    let split = "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"pi\nng\"}";
    assert_eq!(say(split).status, 400);
    daemon.ask(&Request { method: "DELETE", path: "/mcp/t", headers: &headers, ..Request::default() });
    let run = daemon.state.until_closed();
    assert_eq!(run["steps"], 2, "{run}");
}

#[test]
fn a_call_that_is_cancelled_is_forgotten() {
    let daemon = talkative();
    let (id, _) = daemon.open("/mcp");
    let headers = [("mcp-session-id", id.as_str())];
    let request = call(7, "t__mute", &json!({}));
    let mut waiting = daemon.send(&Request { headers: &headers, body: Some(&request), ..Request::default() });
    std::thread::sleep(Duration::from_millis(300));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(daemon.post(&headers, &cancelled).status, 202);
    let began = Instant::now();
    let mut text = String::new();
    waiting.read_to_string(&mut text).unwrap();
    let answer = Answer::of(&text);
    assert!(began.elapsed() < Duration::from_secs(40), "nobody answers a call that was cancelled");
    assert!(answer.status == 200 && !answer.text.contains("\"id\":7"), "{answer:?}");
    assert!(say(&daemon, &id, "t__say").json()["result"].is_object());
}

#[test]
fn a_client_that_goes_before_it_is_answered_leaves_no_session() {
    let daemon = Daemon::start(&slow("3", "0"));
    let request = Request { path: "/mcp/slow", body: Some(&super::hello()), ..Request::default() };
    let opening = daemon.send(&request);
    let live = || {
        let runs = daemon.state.run(&["runs", "list", "--json"]).json();
        runs.iter().filter(|run| run["phase"] != "closed").count()
    };
    let until = |wanted: usize| {
        let began = Instant::now();
        while live() != wanted {
            assert!(began.elapsed() < Duration::from_secs(20), "{} runs are live", live());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until(1);
    drop(opening);
    until(0);
}

#[test]
fn a_list_that_would_fill_the_memory_is_given_up() {
    let daemon = talkative();
    let (id, _) = daemon.open("/mcp");
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "resources/list"});
    let answer = daemon.post(&[("mcp-session-id", &id)], &list).json();
    assert_eq!(answer["result"]["resources"], json!([]), "{answer}");
    let detail = of_daemon(&daemon)["detail"].to_string();
    assert!(detail.contains("`t` answers `resources/list` with more than 32 MiB"), "{detail}");
    // Its other lists are there.
    let listed = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/list"});
    let listed = tools(&daemon.post(&[("mcp-session-id", &id)], &listed));
    assert!(listed.contains(&"t__say".to_owned()), "{listed:?}");
}

/// A program of the revision without sessions, one of whose tools has an argument that headers repeat.
const REPEATING: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"}}}';;
    *'"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"ask","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-he\u0061der":"Region"}}}}]}}';;
    *'"tools/call"'*)
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}';;
  esac
done
"#;

#[test]
fn headers_that_repeat_arguments_are_compared_before_several_servers_too() {
    let daemon =
        Daemon::start_in("observe", &format!("\n[server.r]\ncommand = ['sh', '-c', '''{REPEATING}''']\n"));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let version = ("mcp-protocol-version", "2026-07-28");
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": meta}});
    let listed = tools(&daemon.post(&[version, ("mcp-method", "tools/list")], &list));
    assert!(listed.contains(&"r__ask".to_owned()), "{listed:?}");
    let params = json!({"name": "r__ask", "arguments": {"region": "us-east"}, "_meta": meta});
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let with = |region: Option<&str>| {
        let mut headers = vec![version, ("mcp-method", "tools/call"), ("mcp-name", "r__ask")];
        headers.extend(region.map(|region| ("mcp-param-region", region)));
        daemon.post(&headers, &ask)
    };
    for region in [None, Some("eu-secret")] {
        let refused = with(region);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)), "{refused:?}");
    }
    let done = with(Some("us-east")).json();
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
}
