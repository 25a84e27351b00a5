//! Handing an event over to `portcullis hook`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::event::{Answered, BLOCKED};

/// The program beside this one.
const PROGRAM: &str = "portcullis";

/// An event that `portcullis hook` is to answer.
#[derive(Debug)]
pub(crate) struct HandOver {
    /// What was read from standard input, or `None` if nothing was.
    pub(crate) input: Option<Vec<u8>>,
    /// The daemon may have seen the event.
    pub(crate) sent: bool,
}

/// Has `portcullis hook` answer, with the options of this program and with what was read from standard input; the exit
/// code to end with. `spent` is how long the event has waited already.
pub(crate) fn hand_over(arguments: &[OsString], event: HandOver, spent: Duration) -> u8 {
    let program = match beside() {
        Ok(program) => program,
        Err(error) => return Answered::blocked(format!("cannot tell where `{PROGRAM}` is: {error}")).say(),
    };
    let mut command = Command::new(&program);
    command.arg("hook").args(arguments);
    if event.sent {
        command.arg("--again");
    }
    // What was spent counts towards the time after which the client goes on without an answer.
    if spent >= Duration::from_secs(1) {
        command.arg("--spent-ms").arg(spent.as_millis().to_string());
    }
    let Some(input) = event.input else {
        return ended(command.status(), &program);
    };
    match command.stdin(Stdio::piped()).spawn() {
        Ok(mut child) => {
            if let Some(mut stdin) = child.stdin.take() {
                // The process may refuse before it has read everything; its exit code says so.
                let _refused = stdin.write_all(&input);
            }
            ended(child.wait(), &program)
        }
        Err(error) => ended(Err(error), &program),
    }
}

fn beside() -> std::io::Result<PathBuf> {
    std::env::current_exe().map(|own| own.with_file_name(PROGRAM))
}

fn ended(status: std::io::Result<std::process::ExitStatus>, program: &std::path::Path) -> u8 {
    match status {
        // A process that was killed has not answered.
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(BLOCKED),
        Err(error) => {
            let program = program.display();
            Answered::blocked(format!(
                "cannot start `{program}`: {error}; install both programs in one folder, then run `portcullis hook install`"
            ))
            .say()
        }
    }
}
