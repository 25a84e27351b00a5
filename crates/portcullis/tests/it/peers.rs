//! The gate between peers that nobody here wrote: npm's MCP servers behind it, the official Python client in front.
//!
//! `cargo xtask peers` installs them into `.peers`. Without them these tests say so and are skipped, unless
//! `PORTCULLIS_TEST_PEERS` demands them, as `cargo xtask test` does.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use portcullis_core::event::{ConfigChange, Event, EventBody, OutcomeStatus};
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{ApprovalFilter, ApprovalInfo, GrantApproval, RefuseApproval, RunPhase};
use portcullis_gateway::client::Client;
use portcullis_gateway::home::Home;
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where the peers are, or none when they are not installed and not demanded.
fn peers() -> Option<PathBuf> {
    let peers = root().join(".peers");
    let there = peers.join("python/bin/python").exists() && peers.join("npm/node_modules").exists();
    if !there {
        assert!(
            std::env::var_os("PORTCULLIS_TEST_PEERS").is_none(),
            "the peers are not installed; run `cargo xtask peers`"
        );
        eprintln!("SKIPPED: the peers are not installed; run `cargo xtask peers`");
        return None;
    }
    Some(peers)
}

/// A state folder, a bundle for a server, and a folder for the server to work on.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    peers: PathBuf,
}

impl Stage {
    /// Drafts a bundle with `portcullis init` for the server and adds policies to it.
    pub(crate) fn set(server: &str) -> Option<Self> {
        let peers = peers()?;
        // A short path: a socket is in it.
        let folder = tempfile::Builder::new().prefix("pc-").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("files")).unwrap();
        let stage = Self { folder, peers };
        let mut init = stage.portcullis(&["init", "-o"]);
        init.arg(stage.bundle()).arg("--").args(stage.server(server));
        let drafted = init.output().unwrap();
        assert!(drafted.status.success(), "{}", shown(&drafted));
        Some(stage)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.path("bundle")
    }

    pub(crate) fn portcullis(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.arg("--home").arg(self.path("home")).args(arguments);
        command
    }

    /// Command line of an npm server, or of the one of the Python SDK that counts.
    pub(crate) fn server(&self, name: &str) -> Vec<String> {
        if name == "counting" {
            let python = self.peers.join("python/bin/python").display().to_string();
            let script = root().join("peers/counting.py").display().to_string();
            return vec![python, "-B".into(), script, self.path("files/counted").display().to_string()];
        }
        let script =
            self.peers.join(format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
        let mut command = vec!["node".to_owned(), script.display().to_string()];
        if name == "filesystem" {
            command.push(self.path("files").display().to_string());
        }
        command
    }

    /// Command line of the gate in front of that server.
    pub(crate) fn gated(&self, name: &str, policy: &str) -> Vec<String> {
        self.gated_with(name, policy, &[])
    }

    /// The same with further options.
    pub(crate) fn gated_with(&self, name: &str, policy: &str, more: &[&str]) -> Vec<String> {
        let mut command = self.governed("mcp", policy, more);
        command.push("--".to_owned());
        command.extend(self.server(name));
        command
    }

    /// Command line of one of our servers under the stage's bundle.
    pub(crate) fn governed(&self, command: &str, policy: &str, more: &[&str]) -> Vec<String> {
        let (home, bundle) = (self.path("home").display().to_string(), self.bundle().display().to_string());
        let program = env!("CARGO_BIN_EXE_portcullis");
        let rules = [program, "--home", &home, command, "--bundle", &bundle, "--policy", policy];
        rules.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    pub(crate) fn add(&self, file: &str, text: &str) {
        std::fs::write(self.bundle().join(file), text).unwrap();
    }

    /// Replaces a line of `portcullis.toml`, or adds it.
    pub(crate) fn set_main(&self, line: &str) {
        let path = self.bundle().join("portcullis.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let key = line.split('=').next().unwrap();
        let kept: String = text.lines().filter(|l| !l.starts_with(key)).flat_map(|l| [l, "\n"]).collect();
        std::fs::write(&path, format!("{line}\n{kept}")).unwrap();
    }

    /// Where a file of the peers' scripts is.
    pub(crate) fn script(&self, name: &str) -> String {
        root().join("peers").join(name).display().to_string()
    }

    /// Where the programs of others are installed.
    pub(crate) fn peers(&self) -> &Path {
        &self.peers
    }

    /// Command line of the official client's HTTP transport as a server on standard input and output.
    pub(crate) fn bridge(&self, arguments: &[&str]) -> Vec<String> {
        let python = self.peers.join("python/bin/python").display().to_string();
        let words = [python.as_str(), "-B", &self.script("bridge.py")].map(str::to_owned);
        words.into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    /// The peers' Node.js, which is younger than that of many machines; else the machine's own.
    pub(crate) fn node(&self) -> Command {
        let own = self.npm(".bin/node");
        Command::new(if own.exists() { own } else { "node".into() })
    }

    /// A file of the packages from npm.
    pub(crate) fn npm(&self, file: &str) -> PathBuf {
        self.peers.join("npm/node_modules").join(file)
    }

    /// Starts a script of the Python client.
    pub(crate) fn client(&self, script: &str, arguments: &[String]) -> Child {
        Command::new(self.peers.join("python/bin/python"))
            .arg("-B")
            .arg(root().join("peers").join(script))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(crate) fn filesystem(&self, servers: &[Vec<String>], steps: &Value) -> Child {
        self.filesystem_in("auto", servers, steps)
    }

    /// The same, by a client that prefers one generation of the protocol.
    pub(crate) fn filesystem_in(&self, mode: &str, servers: &[Vec<String>], steps: &Value) -> Child {
        let servers = serde_json::to_string(servers).unwrap();
        let arguments = ["--servers", &servers, "--steps", &steps.to_string(), "--mode", mode];
        self.client("filesystem.py", &arguments.map(str::to_owned))
    }

    pub(crate) fn api(&self, kind: CredentialKind) -> Client {
        Client::new(Home::at(&self.path("home")).unwrap(), kind)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The daemon that the gates started is ours to end.
        if let Ok(pid) = std::fs::read_to_string(self.path("home/daemon.pid")) {
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

pub(crate) fn shown(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The report of a script that must have gone well.
pub(crate) fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn step(report: &Value, number: usize) -> &Value {
    &report["steps"][number]
}

async fn pending(client: &Client) -> ApprovalInfo {
    let start = Instant::now();
    loop {
        // The daemon may not be up yet.
        if let Ok(mut approvals) = client.approvals(ApprovalFilter::Pending).await
            && let Some(approval) = approvals.pop()
        {
            return approval;
        }
        assert!(start.elapsed() < PATIENCE, "nothing waits for approval");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn events(client: &Client, run: &str) -> Vec<Event> {
    let page = client.events(run, 0, 1_000).await.unwrap();
    let lines = page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Event::from_line(line).unwrap()).collect()
}

const STRICT: &str = "[[policy]]\nname = 'strict'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 50\n\
                      max_side_effects = 0\napproval_for_side_effects = true\n";
pub(crate) const SUPERVISED: &str = "[[policy]]\nname = 'supervised'\nallowed_types = ['RETRIEVE_DOCS', 'WRITE_FILE']\nmax_steps = 50\n\
                          max_side_effects = 5\napproval_for_side_effects = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn reads_pass_and_a_write_is_denied_with_a_typed_denial() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/strict.toml", STRICT);
    stage.set_main("approval_wait_s = 0");
    let file = stage.path("files/note.txt");
    std::fs::write(&file, "what is written\n").unwrap();
    let target = stage.path("files/new.txt");
    let steps = json!([
        {"tool": "read_text_file", "arguments": {"path": file}},
        {"tool": "write_file", "arguments": {"path": target, "content": "x"}},
        {"tool": "list_directory", "arguments": {"path": stage.path("files")}},
        {"tool": "write_file", "arguments": {"path": target, "content": "x"}},
        {"tool": "write_file", "arguments": {"path": target, "content": "x"}},
        {"tool": "write_file", "arguments": {"content": "x", "path": target}},
        {"tool": "read_text_file", "arguments": {"path": 7}},
    ]);
    // A client without sessions would come back for minutes to the last call, which is held.
    let report = report(stage.filesystem_in("legacy", &[stage.gated("filesystem", "strict")], &steps));
    assert_eq!(report["servers"][0]["name"], "secure-filesystem-server");
    assert_eq!(
        (&step(&report, 0)["isError"], &step(&report, 0)["text"]),
        (&json!(false), &json!("what is written\n"))
    );
    let denied = step(&report, 1);
    assert_eq!(denied["isError"], true);
    let denial = &denied["structuredContent"];
    assert_eq!(
        (&denial["class"], &denial["rule"], &denial["target"]),
        (&json!("denied"), &json!("runtime-policy/tool-type"), &json!("write_file"))
    );
    assert_eq!(denial["retry"], json!({"when": "never", "left": 2}));
    assert!(denied["text"].as_str().unwrap().contains("runtime-policy/tool-type"));
    assert_eq!(step(&report, 2)["isError"], false);
    assert_eq!(
        step(&report, 5)["structuredContent"]["rule"],
        "run/loop-breaker",
        "the third identical retry"
    );
    assert!(step(&report, 5)["text"].as_str().unwrap().contains("loop breaker"));
    assert_eq!(step(&report, 6)["structuredContent"]["rule"], "effects/unread", "a number is no path");
    assert!(!target.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_write_executes_exactly_once_after_a_grant_that_only_an_approver_can_give() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/supervised.toml", SUPERVISED);
    stage.set_main("approval_wait_s = 45");
    let target = stage.path("files/new.txt");
    let arguments = json!({"path": target, "content": "approved\n"});
    let marker = stage.path("granted");
    let steps = json!([
        {"tool": "write_file", "arguments": arguments, "id": "held", "background": true},
        {"tool": "list_directory", "arguments": {"path": stage.path("files")}},
        {"wait_file": marker, "timeout_s": 60},
        {"join": "held"},
    ]);
    let client = stage.filesystem(&[stage.gated("filesystem", "supervised")], &steps);
    let (agent, approver) = (stage.api(CredentialKind::Agent), stage.api(CredentialKind::Approver));
    let waiting = pending(&approver).await;
    assert_eq!(waiting.tool, "write_file");
    assert_eq!(waiting.arguments, Some(arguments));
    assert!(!target.exists(), "nothing is written before the grant");
    let id = waiting.approval.to_string();
    let forbidden = agent.grant(&id, &GrantApproval::default()).await.unwrap_err();
    assert_eq!(forbidden.code(), Some("forbidden"));
    assert!(!target.exists());
    // The other call's result may come between the look and the answer: then one looks again.
    let mut granted = None;
    for _ in 0..20 {
        let looked = approver.approval(&id).await.unwrap().shown.unwrap().to_string();
        let answer = stage.portcullis(&["approvals", "grant", &id, "--shown", &looked]).output().unwrap();
        let again = !answer.status.success() && shown(&answer).contains(" since");
        granted = Some(answer);
        if !again {
            break;
        }
    }
    let granted = granted.unwrap();
    assert!(granted.status.success(), "{}", shown(&granted));
    std::fs::write(&marker, "").unwrap();
    let report = report(client);
    assert_eq!(step(&report, 1)["isError"], false, "a held call holds up nothing else");
    let held = report["steps"].as_array().unwrap().iter().find(|step| step["id"] == "held").unwrap();
    assert_eq!(held["isError"], false, "{held}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "approved\n");
    let events = events(&approver, &waiting.run.to_string()).await;
    let executed = events.iter().filter(|event| {
        matches!(&event.body, EventBody::Outcome { action, status: OutcomeStatus::Ok } if Some(*action) == waiting.action)
    });
    assert_eq!(executed.count(), 1);
    let again = agent.grant(&id, &GrantApproval::default()).await.unwrap_err();
    assert_eq!(again.code(), Some("forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_is_told_to_come_back_and_its_retry_uses_the_grant_once() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/supervised.toml", SUPERVISED);
    stage.set_main("approval_wait_s = 1");
    let target = stage.path("files/new.txt");
    let write = json!({"tool": "write_file", "arguments": {"path": target, "content": "once\n"}});
    let marker = stage.path("granted");
    let steps =
        json!([write, write, write, write, write, {"wait_file": marker, "timeout_s": 60}, write, write]);
    // A client without sessions would come back by itself.
    let client = stage.filesystem_in("legacy", &[stage.gated("filesystem", "supervised")], &steps);
    let approver = stage.api(CredentialKind::Approver);
    let waiting = pending(&approver).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let id = waiting.approval.to_string();
    let looked = approver.approval(&id).await.unwrap();
    approver.grant(&id, &GrantApproval::of(&looked)).await.unwrap();
    std::fs::write(&marker, "").unwrap();
    let report = report(client);
    for number in 0..5 {
        let denial = &step(&report, number)["structuredContent"];
        assert_eq!(denial["class"], "approval_pending", "waiting is not a retry storm: {denial}");
        assert_eq!(denial["approval"], waiting.approval.to_string());
    }
    assert_eq!(step(&report, 6)["isError"], false, "the retry claims the grant");
    let next = &step(&report, 7)["structuredContent"];
    assert_eq!(next["class"], "approval_pending");
    assert_ne!(next["approval"], waiting.approval.to_string(), "one grant, one execution");
}

const APPENDING: &str = "[[policy]]\nname = 'appending'\nallowed_types = ['WRITE_FILE', 'RETRIEVE_DOCS']\nmax_steps = 50\n\
                         max_side_effects = 5\napproval_for_side_effects = true\n";

/// Four calls in a row by the official client: granted, refused, given up by nobody, frozen.
fn appending(stage: &Stage, mode: &str) -> Child {
    let append = |text: &str| json!({"tool": "append", "arguments": {"text": text}});
    let steps = json!([
        append("granted"), {"touch": stage.path("first")},
        append("refused"), {"touch": stage.path("second")}, {"wait_file": stage.path("frozen"), "timeout_s": 60},
        append("frozen"),
    ]);
    let servers = serde_json::to_string(&[stage.gated("counting", "appending")]).unwrap();
    let arguments =
        ["--servers".into(), servers, "--steps".into(), steps.to_string(), "--mode".into(), mode.into()];
    stage.client("filesystem.py", &arguments)
}

/// In both generations, held calls go ahead once when they are granted, and tell the agent why when they are refused or
/// its run is frozen. A client of 2026-07-28 comes back with the state it was given; an older one waits within its call.
#[tokio::test(flavor = "multi_thread")]
async fn the_official_client_has_its_held_calls_granted_refused_and_frozen() {
    for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let Some(stage) = Stage::set("counting") else { return };
        stage.add("policies/appending.toml", APPENDING);
        // The newer client is sent back twice before it has its answer, the older one would not come back.
        stage.set_main(if mode == "auto" { "approval_wait_s = 1" } else { "approval_wait_s = 30" });
        let client = appending(&stage, mode);
        let approver = stage.api(CredentialKind::Approver);
        let waiting = pending(&approver).await;
        assert_eq!((waiting.tool.as_str(), waiting.arguments), ("append", Some(json!({"text": "granted"}))));
        tokio::time::sleep(Duration::from_secs(if mode == "auto" { 6 } else { 1 })).await;
        let looked = approver.approval(&waiting.approval.to_string()).await.unwrap();
        approver.grant(&waiting.approval.to_string(), &GrantApproval::of(&looked)).await.unwrap();
        let waiting = pending(&approver).await;
        let no = RefuseApproval { note: Some("not on a Friday".into()) };
        approver.refuse(&waiting.approval.to_string(), &no).await.unwrap();
        while !stage.path("second").exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let frozen = stage.portcullis(&["freeze", "--all", "--note", "stand still"]).output().unwrap();
        assert!(frozen.status.success(), "{}", shown(&frozen));
        std::fs::write(stage.path("frozen"), "").unwrap();
        let report = report(client);
        assert_eq!(report["servers"][0]["protocol"], protocol);
        let told = |number: usize| step(&report, number)["structuredContent"].clone();
        assert_eq!(
            (&step(&report, 0)["isError"], &step(&report, 0)["text"]),
            (&json!(false), &json!("appended granted"))
        );
        assert_eq!(
            (&told(2)["class"], &told(2)["rule"]),
            (&json!("approval_refused"), &json!("approval/refused"))
        );
        assert!(told(2)["message"].as_str().unwrap().ends_with("not on a Friday"), "{}", told(2));
        assert_eq!((&told(5)["class"], &told(5)["rule"]), (&json!("frozen"), &json!("run/frozen")));
        assert!(told(5)["message"].as_str().unwrap().contains("stand still"), "{}", told(5));
        assert_eq!(
            std::fs::read_to_string(stage.path("files/counted")).unwrap(),
            "granted\n",
            "executed once"
        );
    }
}

/// What asks the user about a call, and holds another one for an approver besides.
const ASKING: &str = "permit (principal, action, resource);\n\
     @decision(\"clarify\") @reason(\"is \u{202e}this the right note?\")\n\
     forbid (principal, action in Action::\"call\", resource == Tool::\"append\");\n\
     @decision(\"review\")\n\
     forbid (principal, action == Action::\"call:append\", resource) when { context.args.text like \"held*\" };\n";

/// An older client asks its user through the form of the gate: a yes lets the call go ahead once, a no is told to the
/// agent, and no answer releases what waits for an approver.
#[tokio::test(flavor = "multi_thread")]
async fn the_official_client_asks_its_user_and_a_yes_is_no_approval() {
    let Some(stage) = Stage::set("counting") else { return };
    stage.add("policies/appending.toml", &APPENDING.replace("approval_for_side_effects = true", ""));
    std::fs::create_dir_all(stage.bundle().join("access")).unwrap();
    stage.add("access/asking.cedar", ASKING);
    stage.set_main("approval_wait_s = 1");
    let append = |text: &str| json!({"tool": "append", "arguments": {"text": text}});
    let steps = json!([append("first"), append("second"), append("held"), append("first")]);
    let answers = json!([
        {"action": "accept", "content": {"confirm": true, "answer": ""}},
        {"action": "accept", "content": {"confirm": false, "answer": "another one"}},
        {"action": "accept", "content": {"confirm": true, "answer": "again"}},
    ]);
    let servers = serde_json::to_string(&[stage.gated("counting", "appending")]).unwrap();
    let arguments = [
        ["--servers".to_owned(), servers],
        ["--steps".into(), steps.to_string()],
        ["--mode".into(), "legacy".into()],
        ["--elicit".into(), answers.to_string()],
    ];
    let told = report(stage.client("filesystem.py", &arguments.concat()));
    assert_eq!(step(&told, 0)["text"], "appended first", "{told}");
    let refused = &step(&told, 1)["structuredContent"];
    assert_eq!(refused["class"], "clarification_needed", "{told}");
    assert!(refused["message"].as_str().unwrap().ends_with("and said: another one"), "{refused}");
    assert_eq!(step(&told, 2)["structuredContent"]["class"], "approval_pending", "{told}");
    assert_eq!(step(&told, 3)["text"], "appended first", "asked about again, and confirmed again: {told}");
    let asked = told["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 3, "nobody is asked about what an approver decides: {told}");
    let shown = asked[0]["message"].as_str().unwrap();
    assert!(
        shown.contains("is \\u{202e}this the right note?") && shown.contains("\"text\": \"first\""),
        "{shown}"
    );
    assert_eq!(std::fs::read_to_string(stage.path("files/counted")).unwrap(), "first\nfirst\n");

    // The record says who said yes, and gives the same verdicts again.
    let approver = stage.api(CredentialKind::Approver);
    let run = approver.runs(1).await.unwrap()[0].run.to_string();
    let confirmed = events(&approver, &run)
        .await
        .into_iter()
        .filter(|event| matches!(&event.body, EventBody::Evidence { name, .. } if name == "user-confirmed"));
    assert!(confirmed.map(|event| event.actor.as_str().to_owned()).eq(["user", "user"]));
    let export = stage.path("run.export");
    assert!(stage.portcullis(&["export", &run, "-o"]).arg(&export).output().unwrap().status.success());
    let mut replay = stage.portcullis(&["verify", "--replay", "--json", "--bundle"]);
    let replayed = replay.arg(stage.bundle()).arg(&export).output().unwrap();
    let lines = String::from_utf8_lossy(&replayed.stdout).into_owned();
    let sums: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(sums["same"], sums["verdicts"], "{}", self::shown(&replayed));
}

/// A service that knows the reference library of Standard Webhooks believes the gate, and the gate believes it alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_with_the_reference_library_grants_a_held_call() {
    let Some(stage) = Stage::set("counting") else { return };
    stage.add("policies/appending.toml", APPENDING);
    stage.set_main("approval_wait_s = 30");
    let secret = format!("whsec_{}", "c2VjcmV0".repeat(6));
    std::fs::write(stage.path("secret"), &secret).unwrap();
    std::fs::set_permissions(stage.path("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let port = stage.path("port");
    let mut arguments = vec!["--secret".to_owned(), secret];
    let token = stage.path("home/credentials/approver.token");
    for (name, path) in
        [("--token-file", &token), ("--socket", &stage.path("home/gate.sock")), ("--port-file", &port)]
    {
        arguments.extend([name.to_owned(), path.display().to_string()]);
    }
    let receiver = stage.client("webhook.py", &arguments);
    let start = Instant::now();
    while !port.exists() {
        assert!(start.elapsed() < PATIENCE, "the receiver did not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let webhook = format!(
        "[[approvals.webhook]]\nname = 'pager'\nurl = 'http://127.0.0.1:{}/'\nsecret_file = '{}'\n",
        std::fs::read_to_string(&port).unwrap(),
        stage.path("secret").display()
    );
    let main = stage.bundle().join("portcullis.toml");
    let text = std::fs::read_to_string(&main).unwrap() + &webhook;
    std::fs::write(main, text).unwrap();
    let steps = json!([{"tool": "append", "arguments": {"text": "granted"}}]);
    let servers = serde_json::to_string(&[stage.gated("counting", "appending")]).unwrap();
    let arguments = ["--servers".into(), servers, "--steps".into(), steps.to_string()];
    let told = report(stage.client("filesystem.py", &arguments));
    assert_eq!(step(&told, 0)["text"], "appended granted");
    let heard = report(receiver);
    let expected = json!([
        [401, "webhook_signature"],
        [401, "webhook_signature"],
        [200, "granted"],
        [409, "webhook_nonce"]
    ]);
    assert_eq!(heard["answered"], expected);
    let (asked, decided) = (&heard["told"][0]["data"], &heard["told"][1]["data"]);
    assert_eq!((&asked["tool"], &decided["note"]), (&json!("append"), &json!("from the pager")));
    assert_eq!(asked["approval"], decided["approval"]);
    assert_eq!(std::fs::read_to_string(stage.path("files/counted")).unwrap(), "granted\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gated_servers_of_one_client_share_one_run() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/strict.toml", STRICT);
    let gate = stage.gated("filesystem", "strict");
    let listing = json!({"path": stage.path("files")});
    let steps = json!([
        {"list_tools": 0}, {"list_tools": 1},
        {"tool": "list_directory", "server": 0, "arguments": listing},
        {"tool": "directory_tree", "server": 1, "arguments": listing},
    ]);
    report(stage.filesystem(&[gate.clone(), gate], &steps));
    let approver = stage.api(CredentialKind::Approver);
    let start = Instant::now();
    let run = loop {
        let runs = approver.runs(10).await.unwrap();
        assert_eq!(runs.len(), 1, "one client, one run");
        if runs[0].phase == RunPhase::Closed {
            break runs[0].clone();
        }
        assert!(start.elapsed() < PATIENCE, "the run is {:?}", runs[0].phase);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(run.steps, 2);
    let events = events(&approver, &run.run.to_string()).await;
    let listed = |event: &&Event| matches!(event.body, EventBody::Config(ConfigChange::ToolsListed { .. }));
    assert!(events.iter().filter(listed).count() >= 2);
    let id = run.run.to_string();
    let (export, trust) = (stage.path("run.export"), stage.path("run.trust"));
    let exported =
        stage.portcullis(&["export", &id, "-o"]).arg(&export).arg("--trust-out").arg(&trust).output();
    assert!(exported.unwrap().status.success());
    let verified = stage.portcullis(&["verify"]).arg(&export).arg("--trust").arg(&trust).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", shown(&verified));
}

/// The whole surface of server-everything, with and without the gate, is the same JSON but for the committed list.
#[tokio::test(flavor = "multi_thread")]
async fn the_gate_is_transparent_for_everything_that_is_not_its_business() {
    let Some(stage) = Stage::set("everything") else { return };
    // The client sends wrong arguments and unknown tools on purpose, to see the server's own answers.
    stage.set_main("mode = \"observe\"");
    stage.add(
        "policies/open.toml",
        "[[policy]]\nname = 'open'\nallowed_types = []\nmax_steps = 1000\nmax_side_effects = 1000\n",
    );
    for mode in ["auto", "legacy"] {
        let surface = |command: Vec<String>| {
            let mut arguments = vec!["--mode".to_owned(), mode.to_owned()];
            arguments.extend(command);
            stage.client("surface.py", &arguments)
        };
        let plain = stage.path(&format!("plain-{mode}.json"));
        let gated = stage.path(&format!("gated-{mode}.json"));
        // At once: they do not share anything.
        let (one, two) = (surface(stage.server("everything")), surface(stage.gated("everything", "open")));
        for (child, file) in [(one, &plain), (two, &gated)] {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{mode}: {}", shown(&output));
            std::fs::write(file, output.stdout).unwrap();
        }
        let compared =
            stage.client("compare.py", &[plain.display().to_string(), gated.display().to_string()]);
        let output = compared.wait_with_output().unwrap();
        assert!(output.status.success(), "{mode}: {}", shown(&output));
    }
}
