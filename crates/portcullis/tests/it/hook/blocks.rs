//! What keeps the gate from judging blocks the call: inputs that cannot be read, and daemons that do not answer.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::bundle::quick_bundle;
use super::{Client, Program, decision, fixture};

pub(super) fn whatever_cannot_be_read_blocks(program: Program) {
    let client = Client::new(program);
    let large = vec![b' '; (16 << 20) + 1];
    let deep = format!(
        r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":{}"#,
        "[".repeat(1 << 20)
    )
    .into_bytes();
    for (bytes, why) in [
        (&b""[..], "cannot be read"),
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"\xff\xfe", "not UTF-8"),
        (br#"{"session_id":"s"}"#, "`hook_event_name`"),
        (br#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#, "`session_id`"),
        (br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_input":{}}"#, "`tool_name`"),
        (
            br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","command":"id"}}"#,
            "duplicate key",
        ),
        (br#"{"session_id":"s","hook_event_name":"preToolUse","tool_name":"Bash","tool_input":{}}"#, "unknown tool event"),
        (br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":7,"tool_input":{}}"#, "`tool_name`"),
        (br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"ls"}"#, "`tool_input`"),
        (br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"cwd":"p"}"#, "`cwd`"),
        (&deep, "cannot be read"),
        (&large, "exceeds the limit"),
    ] {
        let ran = client.tell(&[], bytes);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{why}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
    }
    assert!(!client.home().exists(), "no daemon is started for nothing");
}

pub(super) fn whatever_keeps_the_gate_from_answering_blocks(program: Program) {
    let client = Client::new(program);
    let pre = fs::read(fixture("pre-bash")).unwrap();
    // The state folder cannot be made.
    fs::write(client.folder.path().join("file"), "").unwrap();
    let nowhere = client.folder.path().join("file/home");
    let home = ["--home", nowhere.to_str().unwrap()];
    let ran = client.tell(&home, &pre);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("portcullis: "), "{}", ran.stderr);
    // After a reply code 2 would make the agent go on, so that is not what a failure there does.
    assert_eq!(client.tell(&home, &fs::read(fixture("stop")).unwrap()).code, 1);
    // Mistakes in the settings.
    for args in
        [&["--bogus"][..], &["--bundle", "/no/such/bundle"], &["--policy", "No such policy"], &["bogus"]]
    {
        let ran = client.tell(args, &pre);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
    // Nobody is left to read the answer.
    let mut child = client.hook(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(&pre).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

pub(super) fn a_daemon_that_does_not_answer_blocks(program: Program) {
    let client = Client::new(program);
    fs::create_dir_all(client.home().join("credentials")).unwrap();
    fs::write(client.home().join("credentials/agent.token"), "token").unwrap();
    let listener = std::os::unix::net::UnixListener::bind(client.home().join("gate.sock")).unwrap();
    let nobody = std::thread::spawn(move || {
        // Takes requests and hangs up, as a daemon that crashes at each would.
        for stream in listener.incoming().take(8) {
            drop(stream);
        }
    });
    // The folder is not locked, so a daemon is started, which takes the socket over.
    let ran = client.tell(&[], &fs::read(fixture("pre-bash")).unwrap());
    assert!(ran.code == 2 || decision(&ran.json()[0]) == "none", "{} {}", ran.stdout, ran.stderr);
    drop(nobody);
}

pub(super) fn a_daemon_that_is_stopped_blocks(program: Program) {
    let client = Client::new(program);
    client.event(&[], "session-start");
    let pid = fs::read_to_string(client.home().join("daemon.pid")).unwrap();
    let signal =
        |name: &str| assert!(Command::new("kill").args([name, pid.trim()]).status().unwrap().success());
    signal("-STOP");
    let ran = client.tell(&[], &fs::read(fixture("pre-bash")).unwrap());
    signal("-CONT");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    // Which of the two gives up first depends on how busy the machine is.
    let said = ["did not answer", "no answer within"].iter().any(|said| ran.stderr.contains(said));
    assert!(said, "{}", ran.stderr);
    assert_eq!(decision(&client.event(&[], "pre-edit")), "allow", "and goes on when it does");
}

pub(super) fn a_state_folder_that_everybody_may_write_to_blocks(program: Program) {
    use std::os::unix::fs::PermissionsExt as _;
    let client = Client::new(program);
    fs::create_dir(client.home()).unwrap();
    fs::set_permissions(client.home(), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = client.tell(&[], &fs::read(fixture("pre-bash")).unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("other users can write to it"), "{}", ran.stderr);
    assert!(!client.home().join("credentials").exists(), "no token is left where others read it");
}

pub(super) fn a_bundle_that_is_broken_blocks(program: Program) {
    let client = Client::new(program);
    let bundle = quick_bundle(client.folder.path());
    fs::write(
        bundle.join("access/files.cedar"),
        "permit (principal, action, resource) when { resource.nosuch }; x",
    )
    .unwrap();
    let ran = client.tell(&["--bundle", bundle.to_str().unwrap()], &fs::read(fixture("pre-bash")).unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
}
