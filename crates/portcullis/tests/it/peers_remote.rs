//! The gate in front of servers that nobody here wrote and that speak HTTP.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::peers::{Stage, shown};

/// A server that runs until it is dropped.
struct Served {
    child: Child,
    url: String,
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
fn open(stage: &Stage) {
    stage.set_main("mode = \"observe\"");
    stage.add(
        "policies/open.toml",
        "[[policy]]\nname = 'open'\nallowed_types = []\nmax_steps = 1000\nmax_side_effects = 1000\n",
    );
}

/// The whole surface of the server over standard input and output alone, and over HTTP behind the gate, is the same JSON
/// but for the committed list.
#[test]
fn a_remote_server_is_what_it_is_without_the_gate() {
    let Some(stage) = Stage::set("everything") else { return };
    open(&stage);
    let server = Served::everything(&stage);
    let mut gated = stage.governed("mcp", "open", &["--url"]);
    gated.push(server.url.clone());
    for mode in ["auto", "legacy"] {
        let surface = |command: Vec<String>| {
            let mut arguments = vec!["--mode".to_owned(), mode.to_owned()];
            arguments.extend(command);
            stage.client("surface.py", &arguments)
        };
        let (plain, far) = (stage.path(&format!("plain-{mode}")), stage.path(&format!("far-{mode}")));
        let (one, two) = (surface(stage.server("everything")), surface(gated.clone()));
        for (child, file) in [(one, &plain), (two, &far)] {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{mode}: {}", shown(&output));
            std::fs::write(file, output.stdout).unwrap();
        }
        let compared = stage.client("compare.py", &[plain.display().to_string(), far.display().to_string()]);
        let output = compared.wait_with_output().unwrap();
        assert!(output.status.success(), "{mode}: {}", shown(&output));
    }
}
