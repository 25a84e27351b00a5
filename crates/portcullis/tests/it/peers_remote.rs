//! The gate in front of servers that nobody here wrote and that speak HTTP.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::peers::{Stage, shown};

/// A server that runs until it is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Served {
    /// npm's `server-everything` over Streamable HTTP.
    fn everything(stage: &Stage) -> Self {
        let port = free_port();
        let mut command = stage.server("everything");
        command.push("streamableHttp".to_owned());
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    /// A script on Node.js that prints its address.
    pub(crate) fn script(stage: &Stage, name: &str, arguments: &[&str]) -> Self {
        let mut command = stage.node();
        command.arg(stage.script(name)).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        said.read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{name} printed `{url}`");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, url: url.trim_end().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A policy under which everything passes: the client sends wrong arguments and unknown tools on purpose, to see the
/// server's own answers.
pub(crate) fn open(stage: &Stage) {
    stage.set_main("mode = \"observe\"");
    stage.add(
        "policies/open.toml",
        "[[policy]]\nname = 'open'\nallowed_types = []\nmax_steps = 1000\nmax_side_effects = 1000\n",
    );
}

/// The daemon with `/mcp` in front of a server behind an address.
pub(crate) fn endpoint(stage: &Stage, server: &Served) -> Served {
    stage.set_main("policy = \"open\"");
    let main = stage.bundle().join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, format!("{text}\n[server.far]\nurl = '{}'\n", server.url)).unwrap();
    let bundle = stage.bundle().display().to_string();
    let mut daemon = stage.portcullis(&["serve", "--bundle", &bundle, "--http", "127.0.0.1:0"]);
    let mut child = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving HTTP address=") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the daemon ended");
    }
    let url = format!("http://{}/mcp", line.trim_end().rsplit_once('=').unwrap().1);
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    Served { child, url }
}

/// Uses a server's whole surface three times: alone, behind `mcp --url`, and behind `/mcp`. The reports are the same JSON
/// but for the committed list.
fn same_three_ways(stage: &Stage, fields: &str, use_it: impl Fn(usize, &[Served], &Served) -> Child) {
    open(stage);
    let servers: Vec<Served> = (0..3).map(|_| Served::everything(stage)).collect();
    let daemon = endpoint(stage, &servers[2]);
    let children: Vec<Child> = (0..3).map(|way| use_it(way, &servers, &daemon)).collect();
    let reports: Vec<String> = children
        .into_iter()
        .enumerate()
        .map(|(number, child)| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{number}: {}", shown(&output));
            let file = stage.path(&format!("report-{number}"));
            std::fs::write(&file, output.stdout).unwrap();
            file.display().to_string()
        })
        .collect();
    let fields = stage.script(fields);
    for other in &reports[1..] {
        let arguments = [reports[0].clone(), other.clone(), "--fields".to_owned(), fields.clone()];
        let output = stage.client("compare.py", &arguments).wait_with_output().unwrap();
        assert!(output.status.success(), "{other}: {}", shown(&output));
    }
}

/// Command line of the gate in front of a remote server.
fn gated(stage: &Stage, server: &Served) -> Vec<String> {
    stage.governed("mcp", "open", &["--url", &server.url])
}

fn agent_token(stage: &Stage) -> String {
    stage.path("home/credentials/agent.token").display().to_string()
}

#[test]
fn a_remote_server_is_what_it_is_without_the_gate() {
    let Some(stage) = Stage::set("everything") else { return };
    same_three_ways(&stage, "nondeterministic-http.json", |way, servers, daemon| {
        let command = match way {
            0 => stage.bridge(&[&servers[0].url]),
            1 => gated(&stage, &servers[1]),
            _ => stage.bridge(&["--token", &agent_token(&stage), &daemon.url]),
        };
        let mut arguments = vec!["--mode".to_owned(), "legacy".to_owned()];
        arguments.extend(command);
        stage.client("surface.py", &arguments)
    });
}

#[test]
fn to_the_client_for_typescript_too() {
    let Some(stage) = Stage::set("everything") else { return };
    same_three_ways(&stage, "nondeterministic-typescript.json", |way, servers, daemon| {
        let mut client = stage.node();
        client.arg(stage.script("surface.mjs"));
        match way {
            0 => client.arg(&servers[0].url),
            1 => client.arg("--").args(gated(&stage, &servers[1])),
            _ => client.args(["--token", &agent_token(&stage), &daemon.url]),
        };
        client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
}
