//! Processes of an operator and of an auditor: a daemon, witnesses, and what they leave.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::portcullis;
use crate::log::Home;

/// How long a test waits for what has to come.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Looks again and again until there is something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within {WAIT_MAX:?}: {what}");
}

/// A process that goes on until it is stopped.
pub(crate) struct Process {
    child: Child,
    errors: PathBuf,
}

impl Process {
    pub(crate) fn start(mut command: Command, errors: PathBuf) -> Process {
        let file = File::options().create(true).append(true).open(&errors).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        Process { child, errors }
    }

    /// The lines of its output, as they come.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.child.stdout.take().unwrap()).lines().map(Result::unwrap)
    }

    /// What it has said on standard error, and those before it in the same file.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    /// Asks it to end; its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success());
        until("the process ends", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A witness: its files, and the port that it always has.
pub(crate) struct Witness {
    folder: tempfile::TempDir,
    name: String,
    pub(crate) port: u16,
}

impl Witness {
    pub(crate) fn new(name: &str) -> Witness {
        Witness { folder: tempfile::tempdir().unwrap(), name: name.to_owned(), port: free_port() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Its arguments, and more.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let (key, state) = (self.path("w.key"), self.path("w.state"));
        let name = format!("auditor.example/{}", self.name);
        let mut args = vec!["witness", "--key", &key, "--state", &state, "--name", &name];
        args.extend(more);
        portcullis(&args)
    }

    /// Its verifier key, which it is asked for once: while it runs, nobody else has its state.
    pub(crate) fn key(&self) -> String {
        fs::read_to_string(self.path("w.vkey")).unwrap_or_else(|_| {
            let output = self.command(&["--print-key"]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let key = String::from_utf8(output.stdout).unwrap().trim().to_owned();
            fs::write(self.path("w.vkey"), &key).unwrap();
            key
        })
    }

    /// Starts it; it listens once this returns.
    pub(crate) fn start(&self, logs: &[&str]) -> Process {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut args = vec!["--listen", &listen];
        logs.iter().for_each(|log| args.extend(["--log", log]));
        let key = self.key();
        let mut process = Process::start(self.command(&args), self.folder.path().join("errors"));
        let mut lines = process.lines();
        assert_eq!(lines.next(), Some(key));
        assert_eq!(lines.next(), Some(format!("listening at http://{listen}")));
        process
    }

    /// Its line in a policy.
    pub(crate) fn line(&self, address: &str) -> String {
        format!("witness {} {} {address}\n", self.name, self.key())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The operator's side.
impl Home {
    /// The verifier key of the log.
    pub(crate) fn log_key(&self) -> String {
        let text = self.ok(&["log", "policy"]).stdout;
        text.lines().find_map(|line| line.strip_prefix("log ")).unwrap().to_owned()
    }

    /// Records a run and has the log take it up.
    pub(crate) fn grow(&self) -> String {
        let run = self.simulate();
        self.ok(&["export", &run, "-o", &self.file("run.zip")]);
        run
    }

    pub(crate) fn status(&self) -> Value {
        let [status] = self.ok(&["log", "status", "--json"]).json().try_into().unwrap();
        status
    }

    /// Has the log ask these witnesses.
    pub(crate) fn ask(&self, policy: &str) {
        fs::write(self.path("state/log/witnesses.policy"), policy).unwrap();
    }

    /// What is published.
    pub(crate) fn checkpoint(&self) -> String {
        fs::read_to_string(self.path("state/log/checkpoint")).unwrap()
    }

    /// Starts a daemon.
    pub(crate) fn serve(&self, more: &[&str]) -> Process {
        let state = self.file("state");
        let args = [&["--home", &state, "serve"], more].concat();
        let errors = self.path("daemon.errors");
        // Those before it said so as well.
        let before = fs::read_to_string(&errors).unwrap_or_default().len();
        let process = Process::start(portcullis(&args), errors);
        until("the daemon serves", || process.errors().get(before..)?.contains("serving").then_some(()));
        process
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}
