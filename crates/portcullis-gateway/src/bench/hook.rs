//! What a hook costs the agent: from starting its process to having read its answer.
//!
//! The client starts a program for each call, so that is what is timed: a process with a call on its standard input,
//! against a daemon that runs. Each call is answered when its verdict is on the disk. There are two such programs,
//! `portcullis-hook` and `portcullis hook`, which take turns. The first event, which has to start the daemon, is timed
//! apart.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::distribution::{Distribution, Recorder};
use super::{BenchError, disk};
use crate::home::Home;

/// Calls that are timed, by default.
pub const CALLS: u64 = 200;
/// The most calls.
pub const CALLS_MAX: u64 = 100_000;
/// How long the daemon may take to end, after it was asked to.
const END_MAX: Duration = Duration::from_secs(10);

/// How to measure.
#[derive(Debug, Clone)]
pub struct HookBenchOptions {
    /// `portcullis`, whose `hook` is measured and whose `serve` is the daemon.
    pub program: PathBuf,
    /// `portcullis-hook`, if it is installed.
    pub small: Option<PathBuf>,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How many calls, at most [`CALLS_MAX`].
    pub calls: u64,
}

/// What [`hook`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HookReport {
    /// Bytes of the input of each call.
    pub input_bytes: usize,
    /// From starting `portcullis-hook` to its end, the daemon running; `None` if it is not installed.
    pub small: Option<Distribution>,
    /// The same for `portcullis hook`.
    pub call: Distribution,
    /// The same for `portcullis --version`: what starting that program costs.
    pub start: Distribution,
    /// The first event: the daemon is started for it.
    pub first_ns: u64,
    /// Appending 4 KiB and `fdatasync`, in the store's file system, before and after.
    pub fdatasync: Distribution,
}

/// Measures the hook. Blocks.
///
/// # Errors
/// [`BenchError`].
pub fn hook(options: &HookBenchOptions) -> Result<HookReport, BenchError> {
    let home = Home::at(&options.folder.join("home")).map_err(crate::client::ClientError::from)?;
    let daemon = Ending(&home);
    let event = |name: &str, number: u64| {
        json!({
            "session_id": "bench", "transcript_path": "/bench.jsonl", "cwd": "/bench", "permission_mode": "default",
            "hook_event_name": name, "tool_name": "Read", "tool_use_id": format!("toolu_{number:024}"),
            "tool_input": {"file_path": format!("/bench/src/file-{number}.rs")}, "tool_response": "text",
        })
        .to_string()
    };
    let whole = || {
        let mut command = Command::new(&options.program);
        command.arg("hook");
        command
    };
    let first = once(whole(), &home, &event("SessionStart", 0))?;
    let first_ns = u64::try_from(first.as_nanos()).unwrap_or(u64::MAX);
    let (mut call, mut small, mut start) = (Recorder::new()?, Recorder::new()?, Recorder::new()?);
    let mut bare = Recorder::new()?;
    disk::fdatasync(&home.ledger(), &mut bare)?;
    for number in 1..=options.calls.min(CALLS_MAX) {
        call.add(once(whole(), &home, &event("PreToolUse", 2 * number))?);
        once(whole(), &home, &event("PostToolUse", 2 * number))?;
        if let Some(program) = &options.small {
            small.add(once(Command::new(program), &home, &event("PreToolUse", 2 * number + 1))?);
            once(Command::new(program), &home, &event("PostToolUse", 2 * number + 1))?;
        }
        start.add(version(options)?);
    }
    disk::fdatasync(&home.ledger(), &mut bare)?;
    drop(daemon);
    Ok(HookReport {
        input_bytes: event("PreToolUse", 1).len(),
        small: options.small.is_some().then(|| small.finish()),
        call: call.finish(),
        start: start.finish(),
        first_ns,
        fdatasync: bare.finish(),
    })
}

/// One event; how long it took.
fn once(mut program: Command, home: &Home, input: &str) -> Result<Duration, BenchError> {
    let name = PathBuf::from(program.get_program());
    let failed = || BenchError::io(format!("run `{}`", name.display()));
    let begin = Instant::now();
    let mut child = program
        .arg("--home")
        .arg(home.path())
        .env_remove("CLAUDE_PROJECT_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed())?;
    }
    let output = child.wait_with_output().map_err(failed())?;
    let took = begin.elapsed();
    let answer = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || answer.contains("deny") {
        let why = format!("`{}{}`", answer.trim(), String::from_utf8_lossy(&output.stderr).trim());
        return Err(BenchError::NotAllowed(why));
    }
    Ok(took)
}

fn version(options: &HookBenchOptions) -> Result<Duration, BenchError> {
    let begin = Instant::now();
    let output = Command::new(&options.program).arg("--version").output();
    output.map_err(BenchError::io(format!("run `{}`", options.program.display())))?;
    Ok(begin.elapsed())
}

/// Ends the daemon that the first event started.
struct Ending<'h>(&'h Home);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let Ok(pid) = std::fs::read_to_string(self.0.pid()) else { return };
        // Its store is thrown away, so nothing depends on whether this works.
        let _ended = Command::new("kill").arg(pid.trim()).status();
        let begin = Instant::now();
        while self.0.socket().exists() && begin.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let options = HookBenchOptions {
            program: PathBuf::from("/does/not/exist"),
            small: None,
            folder: folder.path().to_owned(),
            calls: 1,
        };
        assert!(hook(&options).unwrap_err().to_string().contains("/does/not/exist"));
    }
}
