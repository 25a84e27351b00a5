//! Starting other programs, and the one error type of this crate.
//!
//! A [`Program`] knows how it is written on a command line, so that whatever fails can be repeated by hand.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Longest line of another program's output that is read whole; the rest of a longer one comes as further lines.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// What the variables begin with by which cargo tells a program of its own crate.
const OF_THIS_CRATE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// What went wrong, as one sentence for a person.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure that says `message`.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of anything here.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The top folder of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Adds what was being done to an error of the system's.
pub(crate) fn doing<T, E: fmt::Display>(what: &str, outcome: std::result::Result<T, E>) -> Result<T> {
    outcome.map_err(|error| Failure::new(format!("cannot {what}: {error}")))
}

/// Whether missing programs may be installed: as root, on Debian, where continuous integration runs.
pub(crate) fn may_install() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
        && Path::new("/etc/debian_version").exists()
        && Program::new("id").args(["-u"]).answer().is_some_and(|user| user == "0")
}

/// Installs Debian packages.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    Program::new("apt-get").args(["update", "-q"]).run()?;
    Program::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
}

/// A program to run in the top folder.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
}

impl Program {
    /// `name` with no arguments yet.
    pub(crate) fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(name);
        command.current_dir(root());
        Self { command }
    }

    /// The cargo that runs us.
    pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Self {
        let mut program = Self::new("cargo").args(arguments);
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut command = Command::new(cargo);
            command.current_dir(root()).args(program.command.get_args());
            program.command = command;
        }
        // What `cargo run` tells us of this crate: build scripts of others watch the same names, and would run again each time
        // that cargo is started from here after it was started by hand, or the other way round.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| OF_THIS_CRATE.iter().any(|of| name.starts_with(of))) {
                program.command.env_remove(&name);
            }
        }
        program
    }

    /// More arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// One more argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// A variable for it.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Another folder to run in.
    pub(crate) fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// How it is typed in the top folder.
    pub(crate) fn shown(&self) -> String {
        let root = root();
        let folder = self.command.get_current_dir().and_then(|folder| folder.strip_prefix(&root).ok());
        let program = Path::new(self.command.get_program());
        let cargo = program.file_stem().is_some_and(|stem| stem == "cargo");
        let mut text = if cargo { "cargo".to_owned() } else { program.display().to_string() };
        for argument in self.command.get_args() {
            text.push(' ');
            text.push_str(&argument.to_string_lossy());
        }
        match folder {
            Some(folder) if !folder.as_os_str().is_empty() => format!("(cd {} && {text})", folder.display()),
            _ => text,
        }
    }

    /// Runs it with our own input and output.
    pub(crate) fn run(mut self) -> Result<()> {
        let status = doing(&format!("start `{}`", self.shown()), self.command.status())?;
        self.check(status)
    }

    /// Runs it as [`Program::run`] does and returns how it ended, for a program that tells more than one thing so.
    pub(crate) fn code(mut self) -> Result<i32> {
        let status = doing(&format!("start `{}`", self.shown()), self.command.status())?;
        status.code().ok_or_else(|| Failure::new(format!("`{}` was stopped: {status}", self.shown())))
    }

    /// Runs it and hands each line it prints to `each`. Standard error stays ours.
    pub(crate) fn lines(mut self, mut each: impl FnMut(&str)) -> Result<()> {
        let shown = self.shown();
        let mut child = doing(&format!("start `{shown}`"), self.command.stdout(Stdio::piped()).spawn())?;
        if let Some(output) = child.stdout.take() {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            while doing(
                &format!("read from `{shown}`"),
                (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line),
            )? > 0
            {
                each(String::from_utf8_lossy(&line).trim_end_matches('\n'));
                line.clear();
            }
        }
        let status = doing(&format!("wait for `{shown}`"), child.wait())?;
        self.check(status)
    }

    /// Runs it and returns what it printed.
    pub(crate) fn output(mut self) -> Result<String> {
        let outcome =
            doing(&format!("start `{}`", self.shown()), self.command.stderr(Stdio::inherit()).output())?;
        self.check(outcome.status)?;
        doing(&format!("read from `{}`", self.shown()), String::from_utf8(outcome.stdout))
    }

    /// What it prints, if it is there and succeeds; for asking a program for its version.
    pub(crate) fn answer(mut self) -> Option<String> {
        let outcome = self.command.stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(outcome.stdout).ok()?;
        outcome.status.success().then(|| text.trim().to_owned())
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("`{}` failed: {status}", self.shown())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_shown_as_it_is_typed() {
        assert_eq!(Program::cargo(["fmt", "--all"]).shown(), "cargo fmt --all");
        let elsewhere = Program::new("npm").args(["ci"]).current_dir(&root().join("peers"));
        assert_eq!(elsewhere.shown(), "(cd peers && npm ci)");
    }

    #[test]
    fn a_failure_names_the_command() {
        let failure = Program::new("false").args(["x"]).run().unwrap_err();
        assert!(failure.to_string().starts_with("`false x` failed: "), "{failure}");
        let absent = Program::new("no-such-program").run().unwrap_err();
        assert!(absent.to_string().starts_with("cannot start `no-such-program`: "), "{absent}");
    }

    #[test]
    fn lines_arrive_one_by_one() {
        let mut lines = Vec::new();
        Program::new("printf").args(["a\\nb"]).lines(|line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["a", "b"]);
    }
}
