//! `portcullis run`, beyond what `portcullis-contain` tests by itself.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use portcullis_contain::{Contained, Level, probe};

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

#[test]
fn a_command_is_contained_within_another_one_where_nothing_can_be_traced() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    if probe(&helper).unwrap().reached < Level::Process {
        return println!("SKIPPED: commands cannot be contained here");
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
    if probe.reached < Level::Process || !probe.watched {
        return println!("SKIPPED: commands cannot be contained or traced here");
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
