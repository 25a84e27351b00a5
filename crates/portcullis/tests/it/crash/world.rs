//! The daemon, the writers, and what kills them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_gateway::home::Home;

use super::writer::{ANSWERS, BUNDLE, FOLDER, HOME, PROGRAM, STOP, TROUBLE};

/// How long the living may take to go on after a kill.
const GO_ON_MAX: Duration = Duration::from_secs(60);
/// How long a writer may take to end when asked to, and the daemon.
const END_MAX: Duration = Duration::from_secs(60);
/// The programs, kept for as long as the test runs.
const WRITER: &str = "writer";
pub(super) const DAEMON: &str = "portcullis";
const POLL: Duration = Duration::from_millis(5);

/// SplitMix64: all that is needed is that a seed says everything.
pub(crate) struct Rng {
    seed: u64,
    state: u64,
}

impl Rng {
    /// From `PORTCULLIS_TEST_SEED`, else from the clock.
    pub(super) fn seeded() -> Self {
        let given = std::env::var("PORTCULLIS_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        Self::of(given.unwrap_or_else(clock))
    }

    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

pub(super) struct World {
    folder: tempfile::TempDir,
    home: Home,
    writers: Vec<Writer>,
    /// Folders of writers that were killed.
    killed: Vec<PathBuf>,
    made: usize,
}

struct Writer {
    folder: PathBuf,
    child: Child,
    /// Length of its answers when last looked at.
    seen: u64,
}

/// What is left when all have ended.
pub(super) struct Story {
    pub(super) home: Home,
    pub(super) killed: Vec<PathBuf>,
    pub(super) ended: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

impl World {
    pub(super) fn new(writers: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_bundle(&folder.path().join("bundle"));
        // A build that goes on meanwhile may put other programs in the place of these.
        keep(&std::env::current_exe().unwrap(), &folder.path().join(WRITER));
        keep(Path::new(env!("CARGO_BIN_EXE_portcullis")), &folder.path().join(DAEMON));
        let home = Home::at(&folder.path().join("home")).unwrap();
        let mut world = Self { folder, home, writers: Vec::new(), killed: Vec::new(), made: 0 };
        for _ in 0..writers {
            let writer = world.start_writer();
            world.writers.push(writer);
        }
        world
    }

    fn start_writer(&mut self) -> Writer {
        let folder = self.folder.path().join(format!("writer-{}", self.made));
        self.made += 1;
        fs::create_dir(&folder).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let child = Command::new(self.folder.path().join(WRITER))
            .args(["crash::writer::writer_process", "--exact", "--nocapture"])
            .env(FOLDER, &folder)
            .env(HOME, self.home.path())
            .env(PROGRAM, self.folder.path().join(DAEMON))
            .env(BUNDLE, self.folder.path().join("bundle"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Writer { folder, child, seen: 0 }
    }

    /// Kills a writer, and puts another one with a new run in its place.
    pub(super) fn kill_writer(&mut self, victim: usize) {
        let fresh = self.start_writer();
        let mut dead = std::mem::replace(&mut self.writers[victim], fresh);
        dead.child.kill().unwrap();
        dead.child.wait().unwrap();
        self.killed.push(dead.folder);
    }

    /// Kills the daemon, if there is one at this moment.
    pub(super) fn kill_daemon(&self) -> bool {
        daemon(&self.home).is_some_and(|pid| signal(pid, "KILL"))
    }

    /// Waits until every living writer has got a further answer.
    pub(super) fn wait_until_all_write(&mut self) {
        for writer in &mut self.writers {
            writer.seen = length(&writer.folder.join(ANSWERS));
        }
        let begin = Instant::now();
        loop {
            let stuck =
                self.writers.iter().filter(|writer| length(&writer.folder.join(ANSWERS)) == writer.seen);
            let Some(stuck) = stuck.map(|writer| writer.folder.clone()).next() else { return };
            if begin.elapsed() > GO_ON_MAX {
                let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
                panic!(
                    "{} does not go on\ntrouble:\n{}\nits log:\n{}\nthe daemon's log:\n{}",
                    stuck.display(),
                    read(stuck.join(TROUBLE)),
                    read(stuck.join("log")),
                    last_lines(&read(self.home.log()), 40)
                );
            }
            std::thread::sleep(POLL);
        }
    }

    /// Asks the writers and then the daemon to end.
    pub(super) fn end(mut self) -> Story {
        for writer in &self.writers {
            fs::write(writer.folder.join(STOP), "").unwrap();
        }
        let mut ended = Vec::new();
        for mut writer in std::mem::take(&mut self.writers) {
            let status = within(END_MAX, || writer.child.try_wait().unwrap());
            let log = fs::read_to_string(writer.folder.join("log")).unwrap();
            assert!(status.is_some_and(|status| status.success()), "{status:?}\n{log}");
            ended.push(writer.folder);
        }
        stop_daemon(&self.home);
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Story { home: self.home.clone(), killed: std::mem::take(&mut self.killed), ended, _folder: folder }
    }
}

impl Drop for World {
    /// Leaves no process behind when the test fails.
    fn drop(&mut self) {
        for writer in &mut self.writers {
            let _ = writer.child.kill();
            let _ = writer.child.wait();
        }
        self.kill_daemon();
    }
}

/// Asks the daemon of a folder to end, and waits until it has.
pub(super) fn stop_daemon(home: &Home) {
    if let Some(pid) = daemon(home) {
        signal(pid, "TERM");
        assert!(
            within(END_MAX, || daemon(home).is_none().then_some(())).is_some(),
            "the daemon does not end"
        );
    }
}

/// The daemon of that folder, if it lives. A number in a file may have become somebody else's.
pub(super) fn daemon(home: &Home) -> Option<u32> {
    let pid = fs::read_to_string(home.pid()).ok()?.trim().parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let ours = home.path().as_os_str().as_encoded_bytes();
    command.windows(ours.len()).any(|part| part == ours).then_some(pid)
}

pub(super) fn signal(pid: u32, signal: &str) -> bool {
    Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status().unwrap().success()
}

pub(super) fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        match look() {
            None if begin.elapsed() < limit => std::thread::sleep(POLL),
            seen => return seen,
        }
    }
}

pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

pub(super) fn keep(program: &Path, at: &Path) {
    if fs::hard_link(program, at).is_err() {
        fs::copy(program, at).unwrap();
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

pub(super) fn write_bundle(folder: &Path) {
    write_bundle_with(folder, false);
}

/// The same, with a policy that has a person asked about every call.
pub(super) fn write_bundle_that_asks(folder: &Path) {
    write_bundle_with(folder, true);
}

fn write_bundle_with(folder: &Path, asks: bool) {
    fs::create_dir_all(folder.join("tools")).unwrap();
    fs::create_dir_all(folder.join("policies")).unwrap();
    let loops = if asks { "[loops]\nalike = 0\ndenials = 0\n" } else { "" };
    let settings = format!("version = 1\nmode = \"enforce\"\npolicy = \"crash\"\n{loops}");
    fs::write(folder.join("portcullis.toml"), settings).unwrap();
    fs::write(
        folder.join("tools/note.toml"),
        "[[tool]]\nid = \"note\"\nname = \"Note\"\ntype = \"WRITE_FILE\"\ndescription = \"Keeps a note.\"\n\
         side_effecting = true\nrisk = 0.1\nenabled = true\nargs.number = { type = \"integer\" }\n\
         args.text = { type = \"string\" }\n",
    )
    .unwrap();
    fs::write(
        folder.join("policies/crash.toml"),
        format!(
            "[[policy]]\nname = \"crash\"\nallowed_types = [\"WRITE_FILE\"]\nmax_steps = 4000000000\n\
             max_side_effects = 4000000000\napproval_for_side_effects = {asks}\n\
             restricted_keywords = [\"forbidden\"]\nescalate_on_verification_fail = false\n"
        ),
    )
    .unwrap();
}
