//! A daemon that comes and goes: who watches it, and the store that it finds. And notes that are too long.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::daemon::{State, ailing, open, proposal, runtime};
use portcullis_gateway::client::Proposed;
use portcullis_session::surface::Surface as _;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

/// A terminal in which `approvals watch` runs.
struct Terminal {
    keys: File,
    screen: Arc<Mutex<String>>,
    watch: Child,
}

impl Terminal {
    /// `programs` is the folder with the only programs that there are.
    fn watching(state: &State, programs: &Path) -> Self {
        let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&own).unwrap();
        let name = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&name).unwrap();
        let watch = state
            .command(&["approvals", "watch", "--notify"])
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .env("PATH", programs)
            .spawn()
            .unwrap();
        let keys = File::from(own);
        let (mut reader, screen) = (keys.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { keys, screen, watch }
    }

    /// Waits for a text on the screen, which is taken off it with what stands before.
    fn shows(&self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            {
                let mut screen = self.screen.lock().unwrap();
                if let Some(at) = screen.find(text) {
                    let rest = screen.split_off(at + text.len());
                    return std::mem::replace(&mut screen, rest);
                }
                assert!(Instant::now() < until, "{text:?} is not in {screen:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended where the test went well.
        let _ended = self.watch.kill();
        let _status = self.watch.wait();
    }
}

/// What a person sees and types, and what becomes of the calls.
#[test]
fn a_person_decides_at_a_terminal() {
    const QUESTION: &str = "[q]uit: ";
    let state = State::new();
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    let held = |number: u32| {
        let mut call = proposal("rotate_keys");
        call.arguments = json!({ "n": number });
        matches!(runtime.block_on(run.propose(call)).unwrap(), Proposed::Stopped(_))
    };
    assert!(held(1));
    let programs = tempfile::tempdir().unwrap();
    let notify = programs.path().join("notify-send");
    fs::write(&notify, "#!/bin/sh\necho \"$*\" > \"${0%/*}/shown\"\nexit 3\n").unwrap();
    fs::set_permissions(&notify, fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Terminal::watching(&state, programs.path());
    let shown = terminal.shows(QUESTION);
    assert!(shown.contains("pending") && shown.contains("rotate_keys"), "{shown}");
    assert!(shown.contains("no desktop notification: notify-send failed (exit status: 3)"), "{shown}");
    let notified = fs::read_to_string(programs.path().join("shown")).unwrap();
    assert!(
        notified.starts_with("--app-name=portcullis -- Approval needed rotate_keys waits ("),
        "{notified}"
    );
    fs::remove_file(&notify).unwrap();
    assert!(held(2));
    assert!(
        terminal.shows(QUESTION).contains("1 more request waits"),
        "what comes while it is asked is said"
    );
    terminal.types("x");
    terminal.shows(QUESTION);
    terminal.types("g");
    let shown = terminal.shows(QUESTION);
    assert!(shown.contains("granted") && shown.contains("rotate_keys in run"), "{shown}");
    terminal.types("r");
    terminal.shows("may be empty): ");
    terminal.types("not on a Friday");
    terminal.shows("refused");
    assert!(held(3));
    terminal.shows(QUESTION);
    terminal.types("a");
    terminal.shows("What the agent is told: ");
    terminal.types("rotate them on Monday");
    terminal.shows("answered");
    let notes: Vec<_> = state.run(&["approvals", "list", "--all", "--json"]).json();
    let became = |number: usize| (notes[number]["state"].clone(), notes[number]["note"].clone());
    assert_eq!(became(0), ("answered".into(), "rotate them on Monday".into()));
    assert_eq!(became(1), ("refused".into(), "not on a Friday".into()));
    assert_eq!(became(2), ("granted".into(), Value::Null));
    assert!(held(4));
    terminal.shows(QUESTION);
    terminal.types("q");
    assert!(terminal.watch.wait().unwrap().success());
    drop(run);
}

/// A daemon that serves.
fn serve(state: &State) -> Child {
    let mut daemon = state.command(&["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("serving")));
    // What it says further is read, or it would wait.
    std::thread::spawn(move || log.count());
    // It answers before it is ended: by then it listens for signals too.
    assert_eq!(state.run(&["approvals", "list"]).code, 0);
    std::thread::sleep(std::time::Duration::from_millis(300));
    daemon
}

fn end(mut daemon: Child) {
    let ended = std::process::Command::new("kill").arg(daemon.id().to_string()).status();
    assert!(ended.unwrap().success() && daemon.wait().unwrap().success());
}

#[test]
fn watching_goes_on_when_the_daemon_is_back() {
    let state = State::new();
    let first = serve(&state);
    let mut watch = state
        .command(&["approvals", "watch", "--once", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(watch.stderr.take().unwrap()).lines();
    // It has looked once before the daemon goes, or it would take what waits then for known.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    end(first);
    let waits = said.next().unwrap().unwrap();
    assert!(waits.starts_with("waiting for the daemon: "), "{waits}");
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let second = serve(&state);
    assert_eq!(said.next().unwrap().unwrap(), "the daemon is back", "said once");
    let runtime = runtime();
    let run = runtime.block_on(open(&state));
    assert!(!runtime.block_on(run.propose(proposal("rotate_keys"))).unwrap().is_permitted());
    let ran: crate::command::Ran = watch.wait_with_output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.json()[0]["tool"], "rotate_keys");
    drop(run);
    end(second);
}

#[test]
fn a_long_note_is_refused_before_anything_is_asked() {
    let state = State::new();
    let note = "x".repeat((16 << 10) + 1);
    for decide in ["grant", "refuse"] {
        let ran = state.run(&["approvals", decide, "3f81c2", "--note", &note]);
        assert_eq!(ran.code, 64, "{}", ran.stderr);
        assert!(ran.stderr.contains("the limit is 16384"), "{}", ran.stderr);
    }
    assert!(!state.home().exists(), "no daemon is started for it");
}

/// A store that is emptied is refused before anything is written, and one that cannot be written is told.
#[test]
fn the_doctor_finds_a_store_that_cannot_be_written_or_is_cut_off() {
    let state = State::new();
    end(serve(&state));
    // One that was never used is well.
    end(serve(&state));
    let database = state.home().join("ledger/ledger.db");
    let aside = state.home().join("ledger/aside");
    // Nobody can write to a folder as to a file, the superuser neither.
    fs::rename(&database, &aside).unwrap();
    fs::create_dir(&database).unwrap();
    let [(name, detail, remedy)] = ailing(&state, &[]).try_into().unwrap();
    assert_eq!(name, "store");
    assert!(detail.contains("could not write `") && detail.contains("ledger.db"), "{detail}");
    assert!(remedy.as_str().unwrap().contains("nothing is decided"), "{remedy}");
    fs::remove_dir(&database).unwrap();
    fs::rename(&aside, &database).unwrap();

    fs::write(&database, "").unwrap();
    let refused = state.run(&["serve"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is truncated") && refused.stderr.contains("ledger.db"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::metadata(&database).unwrap().len(), 0, "nothing is built into it");
    let found = ailing(&state, &[]);
    assert!(found.iter().any(|(_, detail, _)| detail.contains("is truncated")), "{found:?}");
}
