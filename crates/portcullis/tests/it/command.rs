//! Runs the binary.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a run of the binary left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output as JSON Lines.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The binary in the project's folder, without the surroundings' wishes about colour.
pub(crate) fn portcullis(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(args).current_dir(project()).stdin(Stdio::null());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PORTCULLIS_HOME"] {
        command.env_remove(name);
    }
    // What somebody chose for their own state folder is none of a test's business.
    command.env("XDG_STATE_HOME", std::env::temp_dir().join("portcullis-no-state"));
    command
}

pub(crate) fn run(args: &[&str]) -> Ran {
    portcullis(args).output().unwrap().into()
}

/// Runs it with bytes on standard input.
pub(crate) fn run_with(args: &[&str], input: &[u8]) -> Ran {
    let mut child =
        portcullis(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The command may refuse before it has read everything.
    let _refused = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A copy of the shipped bundle's files in a folder of its own.
pub(crate) fn bundle_copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in portcullis_session::shipped::default_bundle() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}
