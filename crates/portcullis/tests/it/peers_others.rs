//! Servers of other authors over HTTP, with and without the gate: the same lists and the same answers.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::peers::{Stage, report};
use crate::peers_remote::{Served, endpoint, open};

/// How long a server may take to start.
const STARTS_MAX: Duration = Duration::from_secs(60);
/// A time in the name of a file: `2026-11-29T08-46-02-014Z`.
const STAMP_BYTES: usize = 24;

/// Starts a program of `.peers/npm` that serves `/mcp` on a port of loopback, which it is told by `{port}`.
fn served(
    stage: &Stage,
    host: &str,
    script: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Served {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let with_port = |text: &str| text.replace("{port}", &port.to_string());
    let child = Command::new(stage.peers().join("npm/node_modules/.bin/node"))
        .arg(stage.peers().join("npm/node_modules").join(script))
        .args(arguments.iter().map(|argument| with_port(argument)))
        .envs(environment.iter().map(|(name, value)| (name, with_port(value))))
        .current_dir(stage.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = Served { child, url: format!("http://{host}:{port}/mcp") };
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(begun.elapsed() < STARTS_MAX, "`{script}` does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    served
}

/// Takes these steps by itself, through `mcp --url`, and through `/mcp`, with the clients for Python and for TypeScript. Each
/// gets the same all three ways; so many calls go well.
#[track_caller]
fn the_same_three_ways(stage: &Stage, server: &Served, steps: &Value, calls: usize) {
    open(stage);
    let daemon = endpoint(stage, server);
    let gated = stage.governed("mcp", "open", &["--url", &server.url]);
    let token = stage.path("home/credentials/agent.token").display().to_string();
    let to_daemon = ["--token", &token, &daemon.url];
    // One after the other: some servers have one thing that all of their clients use.
    let python = [stage.bridge(&[&server.url]), gated.clone(), stage.bridge(&to_daemon)]
        .map(|way| settled(report(stage.filesystem_in("legacy", &[way], steps))));
    all_alike(&python, calls, |step| step["isError"] == false);
    let gated = [vec!["--".to_owned()], gated].concat();
    let typescript = [vec![server.url.clone()], gated, to_daemon.map(str::to_owned).to_vec()];
    let typescript = typescript.map(|way| settled(report(for_typescript(stage, steps, &way))));
    all_alike(&typescript, calls, |step| {
        step["method"] == "tools/call" && step["result"].is_object() && step["result"]["isError"] != true
    });
}

/// Starts the client for TypeScript.
fn for_typescript(stage: &Stage, steps: &Value, way: &[String]) -> Child {
    let mut client = stage.node();
    client.arg(stage.script("steps.mjs")).arg(steps.to_string()).args(way);
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A report without how long each step took, and with one name for files that are named by the time.
fn settled(mut report: Value) -> Value {
    for step in report["steps"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("ms");
    }
    let mut text = report.to_string();
    for name in ["page-", "console-"] {
        let words = text.split(name).enumerate().map(|(number, word)| match word.get(..STAMP_BYTES) {
            Some(stamp) if number > 0 && stamp.ends_with('Z') => word.get(STAMP_BYTES..).unwrap(),
            _ => word,
        });
        text = words.collect::<Vec<_>>().join(name);
    }
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn all_alike([alone, gated, behind_mcp]: &[Value; 3], calls: usize, went_well: impl Fn(&Value) -> bool) {
    let steps = alone["steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| went_well(step)).count(), calls, "{alone:#}");
    assert_eq!(alone, gated);
    assert_eq!(alone, behind_mcp);
}

/// A server of cyanheads, on a framework of their own.
#[test]
fn a_server_for_git_is_what_it_is_without_the_gate() {
    let Some(stage) = Stage::set("filesystem") else { return };
    let repository = stage.path("files/repository");
    std::fs::create_dir(&repository).unwrap();
    std::fs::write(repository.join("a.txt"), "one\n").unwrap();
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
        let who = ["user.name=A", "user.email=a@example.org", "commit.gpgsign=false"];
        let who = who.iter().flat_map(|setting| ["-c", setting]);
        let done = Command::new("git").current_dir(&repository).args(who).args(arguments).status().unwrap();
        assert!(done.success());
    }
    std::fs::write(repository.join("a.txt"), "two\n").unwrap();
    let folder = repository.display().to_string();
    let environment = [
        ("MCP_TRANSPORT_TYPE", "http"),
        ("MCP_HTTP_HOST", "127.0.0.1"),
        ("MCP_HTTP_PORT", "{port}"),
        ("MCP_LOG_LEVEL", "error"),
        ("GIT_BASE_DIR", folder.as_str()),
    ];
    let script = "@cyanheads/git-mcp-server/dist/index.js";
    let server = served(&stage, "127.0.0.1", script, &[], &environment);
    let git = |tool: &str| json!({"tool": tool, "arguments": {"path": folder}});
    let steps = json!([
        {"list_tools": 0}, {"list_prompts": 0}, {"list_resources": 0}, {"list_resource_templates": 0},
        git("git_status"), git("git_log"), git("git_diff"),
        {"tool": "git_show", "arguments": {"path": folder, "object": "HEAD"}},
        {"tool": "git_branch", "arguments": {"path": folder, "mode": "list"}},
        {"tool": "git_status", "arguments": {"path": "/nowhere"}}, {"tool": "git_nothing", "arguments": {}},
    ]);
    the_same_three_ways(&stage, &server, &steps, 5);
}

/// Microsoft's server that drives a browser.
#[test]
fn a_server_for_browsers_is_what_it_is_without_the_gate() {
    let Some(stage) = Stage::set("filesystem") else { return };
    let arguments = [
        "--port",
        "{port}",
        "--headless",
        "--isolated",
        "--no-sandbox",
        "--executable-path",
        "/usr/bin/chromium",
    ];
    // It refuses other names for itself.
    let server = served(&stage, "localhost", "@playwright/mcp/cli.js", &arguments, &[]);
    let page =
        "data:text/html,<title>T</title><button onclick=\"console.log(7);document.title=8\">Go</button>";
    let steps = json!([
        {"list_tools": 0},
        {"tool": "browser_navigate", "arguments": {"url": page}},
        {"tool": "browser_snapshot", "arguments": {}},
        {"tool": "browser_click", "arguments": {"element": "Go", "target": "e2"}},
        {"tool": "browser_evaluate", "arguments": {"function": "() => document.title"}},
        {"tool": "browser_click", "arguments": {"element": "Gone", "target": "e99"}},
        {"tool": "browser_tabs", "arguments": {"action": "list"}},
        {"tool": "browser_close", "arguments": {}},
    ]);
    the_same_three_ways(&stage, &server, &steps, 6);
}
