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

/// At the process level only the command itself dies with the supervisor: what it moved to a session of its own lives
/// on, as the manual says.
#[test]
fn when_the_supervisor_is_killed_the_command_dies() {
    let helper = Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis-contain"))).unwrap();
    let reached = probe(&helper).unwrap().reached;
    for level in [Level::Process, Level::Namespace].into_iter().filter(|level| *level <= reached) {
        // The supervisor runs as whoever runs the tests: without capabilities even root writes only what is its own.
        let project = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        supervisor.args(["run", "--level", level.as_str(), "--", "/bin/sh", "-c", HEARTBEAT]);
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
