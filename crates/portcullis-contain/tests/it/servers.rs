//! MCP servers under a profile: one that its arguments let do more than the profile does, and one of ours that does
//! something else than its tool says.

use std::fs;
use std::path::Path;

use portcullis_contain::{Level, Network, Observed, Profile, Watch};

use super::escape::{PYTHON, reaches};
use super::world::{World, contained, give_away, invocation};

const LEVELS: [Level; 2] = [Level::Process, Level::Namespace];
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Starts a server under a profile, sends calls, and closes its input a while after.
fn served(
    world: &World,
    level: Level,
    profile: &Profile,
    server: &str,
    calls: &[String],
    environment: &[(&str, &str)],
) -> Observed {
    fs::write(world.project().join("calls"), format!("{INITIALIZE}{}\n", calls.join("\n"))).unwrap();
    give_away(&world.project().join("calls"));
    let script = format!("(cat calls; sleep 3) | {server}");
    let mut command = invocation(world, "/bin/sh", &["-c".to_owned(), script], level);
    let more = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    command.environment.as_mut().unwrap().extend(more);
    contained().run(profile, &command).unwrap()
}

fn call(id: u32, tool: &str, arguments: &serde_json::Value) -> String {
    let params = serde_json::json!({"name": tool, "arguments": arguments});
    serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// Whether each call went well, and what was answered.
fn answers(observed: &Observed) -> Vec<(u64, bool, String)> {
    let text = String::from_utf8_lossy(&observed.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut all: Vec<_> = lines
        .filter_map(|answer| {
            let is_error = answer["result"]["isError"].as_bool().unwrap_or(answer["error"].is_object());
            let told = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            Some((answer["id"].as_u64()?, !is_error, told))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_file_server_reaches_no_more_than_its_profile() {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.peers");
    let server = peers.join("npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    if !server.exists() || !Path::new("/usr/bin/node").exists() {
        assert!(std::env::var_os("PORTCULLIS_TEST_PEERS").is_none(), "run `cargo xtask peers`");
        return println!("SKIPPED: the peers are not installed; run `cargo xtask peers`");
    }
    for level in LEVELS.into_iter().filter(|level| reaches(*level)) {
        let world = World::make();
        let before = world.state();
        // Where it is installed the user of the tests may not be let in.
        let installed = world.outside().parent().unwrap().join("server");
        copy(&peers.join("npm"), &installed);
        let (inside, outside) = (world.project(), world.outside());
        fs::write(inside.join("text"), "inside").unwrap();
        let at = |folder: &Path, name: &str| folder.join(name).display().to_string();
        let path =
            |folder: &Path, name: &str| serde_json::json!({"path": at(folder, name), "content": "written"});
        let calls = [
            call(1, "read_text_file", &path(&inside, "text")),
            call(2, "write_file", &path(&inside, "new")),
            call(3, "read_text_file", &path(&outside, "secret")),
            call(4, "write_file", &path(&outside, "file")),
            call(5, "write_file", &path(&outside, "new")),
            call(6, "create_directory", &path(&outside, "folder")),
            call(7, "list_directory", &path(&outside, "")),
            call(
                8,
                "move_file",
                &serde_json::json!({"source": at(&outside, "file"), "destination": at(&inside, "taken")}),
            ),
        ];
        let mut profile = world.profile(Vec::new());
        profile.execute.push(installed.clone());
        let program = installed.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
        let server = format!("node {} {} {}", program.display(), inside.display(), outside.display());
        let observed = served(&world, level, &profile, &server, &calls, &[]);
        let answers = answers(&observed);
        let went_well: Vec<u64> = answers.iter().filter(|(_, well, _)| *well).map(|(id, ..)| *id).collect();
        let told = String::from_utf8_lossy(&observed.stderr);
        assert_eq!(went_well, [0, 1, 2], "{level}: {answers:?} {told}");
        assert_eq!(answers.len(), 9, "{level}: {answers:?}");
        let refused = |(_, _, text): &(u64, bool, String)| {
            text.contains("EACCES") || text.contains("EROFS") || text.contains("EXDEV")
        };
        assert!(answers.iter().skip(3).all(refused), "{level}: {answers:?}");
        assert!(fs::read_to_string(inside.join("new")).unwrap() == "written" && world.state() == before);
    }
}

/// Copies what is installed, without what is only there for tools.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").args(["-rL"]).args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_malicious_server_gets_nowhere() {
    for level in LEVELS.into_iter().filter(|level| reaches(*level)) {
        let world = World::make();
        let home = world.outside().parent().unwrap().join("home");
        for folder in [".ssh", ".config"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        fs::write(home.join(".ssh/id_rsa"), "key").unwrap();
        fs::write(home.join(".bashrc"), "start").unwrap();
        let _agent = std::os::unix::net::UnixListener::bind(home.join("agent.sock")).unwrap();
        give_away(&home);
        let program = world.project().join("server.py");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/malicious.py"), &program).unwrap();
        give_away(&program);
        let arguments = world.arguments("escape");
        let (victim, port) = (&arguments[2], &arguments[3]);
        let server = format!("{PYTHON} {} {port} {victim}", program.display());
        let mut profile = world.profile(Vec::new());
        profile.environment.push("HOME".to_owned());
        (profile.network, profile.watch) = (Network::None, Watch::All);
        let home_text = home.display().to_string();
        let calls = [call(1, "format", &serde_json::json!({"text": "x"}))];
        let observed = served(&world, level, &profile, &server, &calls, &[("HOME", &home_text)]);
        let answers = answers(&observed);
        // What it may: write in the project. A hook exists until the run is over.
        let got = if level == Level::Process { "chmod project hook" } else { "project" };
        let told = String::from_utf8_lossy(&observed.stderr);
        assert_eq!(answers.get(1).map(|(_, _, text)| text.as_str()), Some(got), "{answers:?} {told}");
        assert!(!world.project().join(".git/hooks/pre-commit").exists() && world.victim_runs());
        assert_eq!(fs::read_to_string(home.join(".bashrc")).unwrap(), "start");
        let tried: Vec<&str> =
            observed.refused.attempts.iter().map(|attempt| attempt.target.as_str()).collect();
        let is_told = |what: &str| tried.iter().any(|target| target.contains(what));
        for what in ["id_rsa", ".bashrc", "autostart", "socket AF_INET", "socket AF_UNIX"] {
            assert!(is_told(what), "{level}: {what}: {tried:?}");
        }
    }
}
