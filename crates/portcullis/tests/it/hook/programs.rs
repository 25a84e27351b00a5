//! What is `portcullis-hook`'s own: answering without the whole program, and handing over to it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Client, Program, SMALL, decision, fixture, input, quick_bundle, told};
use crate::command::Ran;

/// `portcullis-hook` in a folder of its own: what it cannot answer itself cannot be handed over.
fn alone(client: &Client) -> PathBuf {
    let program = client.folder.path().join("portcullis-hook");
    fs::copy(SMALL, &program).unwrap();
    program
}

#[test]
fn the_small_program_answers_by_itself_where_a_daemon_runs() {
    let client = Client::new(Program::Small);
    let program = alone(&client);
    let tell = |args: &[&str], input: &[u8]| {
        told(client.small(&program, &[&["--uncontained"], args].concat()), input)
    };
    let pre = fs::read(fixture("pre-edit")).unwrap();
    let ran = tell(&[], &pre);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "no daemon runs: {}", ran.stderr);
    assert!(ran.stderr.contains("cannot start") && ran.stderr.contains("in one folder"), "{}", ran.stderr);

    client.event(&[], "session-start");
    let bundle = quick_bundle(client.folder.path());
    for (args, name, expected) in [
        (&[][..], "user-prompt-submit", "none"),
        (&[], "pre-edit", "allow"),
        (&["--defer"], "pre-edit", "none"),
        (&[], "pre-bash", "none"),
    ] {
        let ran = tell(args, &fs::read(fixture(name)).unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?} {name}");
        assert_eq!(decision(&ran.json()[0]), expected, "{args:?} {name}");
    }
    // A failure that the daemon reports is answered as such.
    let ran = tell(&["--bundle", bundle.to_str().unwrap()], &pre);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("bundle"), "the run has another: {}", ran.stderr);
    let stop = input("stop", |input| input["session_id"] = "other".into());
    let ran = tell(&["--policy", "No such policy"], &stop);
    assert_eq!(ran.code, 1, "nothing is blocked after a reply: {}", ran.stderr);
    let ran = tell(&[], b"[]");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

/// Whatever the small program does not understand ends as `portcullis hook` ends it.
#[test]
fn what_is_not_understood_ends_as_with_the_whole_program() {
    type Prepare = fn(&Path);
    let folder = |home: &Path| {
        fs::create_dir_all(home.join("credentials")).unwrap();
        fs::write(home.join("credentials/agent.token"), "token").unwrap();
    };
    let refusal = r#"{"error":{"code":"x","message":"refused for a test"}}"#;
    let answers = [
        ("401 Unauthorized", refusal),
        ("404 Not Found", refusal),
        ("500 Internal Server Error", "<html>"),
        ("200 OK", "{}"),
        ("200 OK", "allow"),
        ("200 OK", r#"{"output":"{}","error":"","exit":0,"novel":1}"#),
    ];
    for (status, body) in answers {
        let ended = [Program::Whole, Program::Small].map(|program| {
            let client = Client::new(program);
            folder(&client.home());
            let _daemon = stub(&client.home(), status, body);
            ["pre-bash", "post-bash", "stop"].map(|name| {
                let ran = client.tell(&[], &fs::read(fixture(name)).unwrap());
                // Each has a state folder of its own.
                let home = client.home().display().to_string();
                (ran.code, ran.stdout, ran.stderr.replace(&home, "HOME"))
            })
        });
        assert_eq!(ended[0], ended[1], "{status} {body}");
        assert_eq!([ended[0][0].0, ended[0][1].0, ended[0][2].0], [2, 2, 1], "{status} {body}");
    }
    let prepare: [(&str, Prepare); 4] = [
        ("an unreadable token", |home| fs::create_dir_all(home.join("credentials/agent.token")).unwrap()),
        ("a file in place of the folder", |home| fs::write(home, "").unwrap()),
        ("a folder in place of the socket", |home| fs::create_dir_all(home.join("gate.sock/x")).unwrap()),
        ("a bundle that cannot be read", |home| {
            fs::create_dir_all(home).unwrap();
            fs::write(home.join("bundle.path"), "/no/such/bundle\n").unwrap();
        }),
    ];
    for (why, prepare) in prepare {
        let ended = [Program::Whole, Program::Small].map(|program| {
            let client = Client::new(program);
            prepare(&client.home());
            let ran = client.tell(&[], &fs::read(fixture("pre-bash")).unwrap());
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{why}: {}", ran.stderr);
            let stderr = ran.stderr.replace(client.folder.path().to_str().unwrap(), "");
            stderr.lines().next().unwrap_or_default().to_owned()
        });
        assert_eq!(ended[0], ended[1], "{why}");
    }
}

/// Answers every request alike, as long as it lives.
fn stub(home: &Path, status: &str, body: &str) -> std::thread::JoinHandle<()> {
    let listener = std::os::unix::net::UnixListener::bind(home.join("gate.sock")).unwrap();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 64 << 10];
            let _read = stream.read(&mut request);
            let _written = stream.write_all(answer.as_bytes());
        }
    })
}

#[test]
fn an_event_that_was_handed_over_late_is_answered_in_what_time_is_left() {
    let client = Client::new(Program::Whole);
    client.event(&[], "session-start");
    let ran = client.tell(&["--spent-ms", "56000"], &fs::read(fixture("pre-bash")).unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("no answer within 55 s"), "{}", ran.stderr);
    let ran = client.tell(&["--spent-ms", "56000"], &fs::read(fixture("stop")).unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    // An outcome that was told, and whose answer was lost, is not taken for a call without a permit.
    client.event(&[], "pre-bash");
    client.event(&[], "post-bash");
    let again = client.tell(&["--again"], &fs::read(fixture("post-bash")).unwrap());
    assert!(again.stdout.contains("was lost"), "{}{}", again.stdout, again.stderr);
}

#[test]
fn what_is_no_event_is_answered_by_the_whole_program() {
    let client = Client::new(Program::Small);
    let help = client.tell(&["--help"], b"");
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("portcullis hook install"), "{}", help.stdout);
}

#[test]
fn the_hook_is_written_into_the_settings_and_works_from_there() {
    let client = Client::new(Program::Small);
    let project = client.folder.path().join("shop");
    fs::create_dir_all(project.join(".claude")).unwrap();
    fs::write(project.join(".claude/settings.json"), r#"{"env":{"A":"1"}}"#).unwrap();
    let installed: Ran =
        client.command(&["hook", "install", "--ask"]).current_dir(&project).output().unwrap().into();
    assert_eq!((installed.code, installed.stderr.as_str()), (0, ""));
    let settings: Value =
        serde_json::from_slice(&fs::read(project.join(".claude/settings.json")).unwrap()).unwrap();
    assert_eq!(settings["env"]["A"], "1");
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    // The client may not have the variable that names the state folder here.
    assert_eq!(command, format!("{SMALL} --home {} --ask || exit 2", client.home().display()));
    let as_client = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env_remove("PORTCULLIS_HOME").env("HOME", "/home/dev");
        shell.env("CLAUDE_PROJECT_DIR", &project).stdin(fs::File::open(fixture("pre-mcp")).unwrap());
        Ran::from(shell.output().unwrap())
    };
    let ran = as_client(command);
    assert_eq!((ran.code, decision(&ran.json()[0])), (0, "ask"));
    // The program is gone.
    let gone = command.replace(SMALL, "/no/such/portcullis-hook");
    assert_ne!(gone, command);
    assert_eq!(as_client(&gone).code, 2);
    let place = &client.recorded()[0]["body"]["place"];
    assert_eq!(place["workspace"], json!(project));
}
