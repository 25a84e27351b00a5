//! `portcullis run`, beyond what `portcullis-contain` tests by itself.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use portcullis_contain::{Contained, Level, probe};

use crate::expected::is_skipped;

/// A process that writes until it is killed.
const HEARTBEAT: &str = "while :; do echo x >> heart; sleep 0.05; done";

fn is_alive(project: &Path) -> bool {
    let length = || fs::metadata(project.join("heart")).map_or(0, |meta| meta.len());
    let before = length();
    sleep(Duration::from_millis(300));
    length() > before
}

/// At the process level what it moved to a session of its own dies because it is watched.
#[test]
fn when_the_supervisor_is_killed_the_command_dies_with_all_that_it_started() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let reached = probe(&helper).unwrap().reached;
    for level in [Level::Process, Level::Namespace].into_iter().filter(|level| *level <= reached) {
        // The supervisor runs as whoever runs the tests: without capabilities even root writes only what is its own.
        let project = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let script = format!("setsid -f /bin/sh -c '{HEARTBEAT}'; sleep 60");
        supervisor.args(["run", "--level", level.as_str(), "--", "/bin/sh", "-c", &script]);
        supervisor.current_dir(project.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut supervisor = supervisor.spawn().unwrap();
        let begun = Instant::now();
        let mut was_alive = false;
        while !was_alive && begun.elapsed() < Duration::from_secs(20) {
            was_alive = is_alive(project.path());
        }
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        assert!(was_alive, "{level}");
        sleep(Duration::from_millis(200));
        assert!(!is_alive(project.path()), "{level}");
    }
}

/// A request without any client's own ideas of proxies: what was said, or what the proxy said.
const ASK: &str = "import os, sys, socket
stream = socket.create_connection(('127.0.0.1', int(os.environ['HTTP_PROXY'].rsplit(':')[-1])), 20)
stream.sendall(f'GET http://{sys.argv[1]}/ HTTP/1.0\\r\\n\\r\\n'.encode())
print(stream.makefile().read().split('\\n')[-1])
";

#[test]
fn hosts_are_named_on_the_command_line() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let project = tempfile::tempdir_in("/var/tmp").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.arg("run").args(arguments).current_dir(project.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, why) = run(&["--net", "a.test", "--level", "process", "--", "/bin/true"]);
    assert_eq!(code, Some(64), "{why}");
    assert!(why.contains("only a network of its own holds a command to them"), "{why}");
    let (code, _, why) = run(&["--net", "a.test", "--net", "none", "--", "/bin/true"]);
    assert!(code == Some(64) && why.contains("stand alone"), "{why}");
    let found = probe(&helper).unwrap();
    if is_skipped(Level::Namespace, found.reached, &format!("{:?}", found.failed)) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _head = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nfrom the server").unwrap();
        }
    });
    let ask = ["--", "/usr/bin/python3", "-c", ASK];
    let (code, out, why) = run(&[&["--net", &host, "--json", "seen"], ask.as_slice(), &[&host]].concat());
    assert_eq!((code, out.as_str(), why.as_str()), (Some(0), "from the server\n", ""));
    let seen: serde_json::Value =
        serde_json::from_slice(&fs::read(project.path().join("seen")).unwrap()).unwrap();
    let made = &seen["connections"][0];
    assert_eq!((&made["host"], &made["verdict"]), (&"localhost".into(), &"permitted".into()), "{seen}");
    let (_, out, why) = run(&[&["--net", &host], ask.as_slice(), &["other.test"]].concat());
    let line = "`other.test:80` was refused: the profile `project` does not name it; add `other.test` to its hosts, or give `--net other.test`";
    assert_eq!((out.trim(), why), ("", format!("portcullis: {line}\n")));
}

#[test]
fn a_command_is_contained_within_another_one_where_nothing_can_be_traced() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    if is_skipped(Level::Process, probe(&helper).unwrap().reached, "") {
        return;
    }
    let project = tempfile::tempdir_in("/var/tmp").unwrap();
    let portcullis = Path::new(env!("CARGO_BIN_EXE_portcullis"));
    let mut outer = Command::new(portcullis);
    outer.args(["run", "--level", "process", "--read"]).arg(portcullis.parent().unwrap()).arg("--");
    outer.arg(portcullis).args(["run", "--level", "process", "--json", "-", "--", "true"]);
    let output = outer.current_dir(project.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(r#""programs":{"seen":"nothing","started":[]}"#), "{said}");
}

#[test]
fn a_profile_is_learned_from_what_a_command_did() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let probe = probe(&helper).unwrap();
    if is_skipped(Level::Process, probe.reached, &format!("{:?}", probe.failed)) {
        return;
    }
    if !probe.watched {
        return println!("SKIPPED: commands cannot be traced here");
    }
    let project = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::create_dir(project.path().join("out")).unwrap();
    let portcullis = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.current_dir(project.path());
        command
    };
    let script = "echo said; echo x > out/file; cat /etc/passwd >/dev/null; echo x > /srv/refused";
    let learned = portcullis().args(["init", "--learn", "--", "sh", "-c", script]).output().unwrap();
    let draft = String::from_utf8(learned.stdout).unwrap();
    assert!(draft.contains("# refused: write \"/srv/refused\""), "{draft}");
    assert!(String::from_utf8_lossy(&learned.stderr).contains("said"));
    fs::write(project.path().join("learned.toml"), &draft).unwrap();
    // What it did it can do again, and what it did not it cannot.
    let again = |script: &str| {
        let mut command = portcullis();
        command.args(["run", "--profile", "learned.toml", "--", "sh", "-c", script]).output().unwrap()
    };
    let same = again("echo x > out/file; cat /etc/passwd >/dev/null");
    assert!(same.status.success(), "{draft}\n{}", String::from_utf8_lossy(&same.stderr));
    assert!(!again("echo x > other").status.success(), "{draft}");
}

/// As it is installed: the programs in a folder, with the digest that `sha256sum` says.
#[test]
fn a_helper_that_was_changed_since_it_was_installed_is_refused() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(env!("CARGO_BIN_EXE_portcullis"), at("portcullis")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_portcullis-contain"), at("portcullis-contain")).unwrap();
    fs::create_dir(at("project")).unwrap();
    let helper = Contained::with_helper(&at("portcullis-contain")).unwrap();
    if is_skipped(Level::Process, probe(&helper).unwrap().reached, "") {
        return;
    }
    let digest =
        Command::new("sha256sum").arg("portcullis-contain").current_dir(folder.path()).output().unwrap();
    fs::write(at("portcullis-contain.sha256"), digest.stdout).unwrap();
    let run = || {
        let mut command = Command::new(at("portcullis"));
        let output = command.args(["run", "--", "true"]).current_dir(at("project")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run();
    assert_eq!(code, Some(0), "{said}");
    fs::OpenOptions::new().append(true).open(at("portcullis-contain")).unwrap().write_all(b"x").unwrap();
    let (code, said) = run();
    assert!(code == Some(3) && said.contains("records another") && said.contains("it was not run"), "{said}");
}
