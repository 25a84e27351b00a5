//! A small world to break out of: a project, a folder outside, a process of the same user, sockets.

use std::fs::{self, File, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use portcullis_contain::{
    Background, Contained, Git, Invocation, Level, Limits, Network, Output, Profile, Sockets, VERSION, Watch,
};

/// What is in every protected file of a world: git's settings, which include others and name a folder of hooks.
const AS_IT_WAS: &str =
    "[include]\n\tpath = ../shared.gitconfig ; ours\n[core]\n\thooksPath = .githooks # team\n";
/// Protected files that are there.
const SAME: &[&str] = &[
    ".git/hooks/pre-push",
    ".git/config",
    ".git/modules/libs/deep/config",
    ".git/worktrees/tree/commondir",
    ".githooks/pre-push",
    ".mcp.json",
    ".claude/skills/old/SKILL.md",
    ".vscode/settings.json",
    "AGENTS.md",
    "libs/deep/.git",
    "shared.gitconfig",
    "sub/.git/config",
    "sub/CLAUDE.md",
];
/// What makes folders git's own.
const HEADS: &[&str] =
    &[".git/HEAD", ".git/modules/libs/deep/HEAD", ".git/worktrees/tree/HEAD", "sub/.git/HEAD"];
const FOLDERS: &[&str] =
    &[".git/objects", ".git/modules/libs/deep/objects", "sub/.git/objects", "escapes", "node_modules"];
/// Protected files that are not there, and may not be there afterwards.
const ABSENT: &[&str] = &[
    ".git/commondir",
    ".git/hooks/pre-commit",
    ".githooks/pre-commit",
    ".claude/settings.json",
    ".claude/skills/evil",
    ".cursor/mcp.json",
    ".envrc",
    ".vscode/tasks.json",
    "node_modules/new/.git",
    "packages/one/.claude/settings.json",
    "sub/.envrc",
];

/// Who the programs run as, where the tests run as root.
pub(super) const NOBODY: u32 = 65534;

/// All of it.
pub(super) struct World {
    // Outside of `/tmp`, which the namespace level hides.
    folder: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    abstract_name: String,
    terminal: Option<(OwnedFd, PathBuf)>,
    _sockets: (UnixListener, UnixDatagram, UnixListener, UnixListener),
    _leaked: File,
}

impl World {
    pub(super) fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-world-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let (project, outside) = (folder.path().join("project"), folder.path().join("outside"));
        for path in FOLDERS {
            fs::create_dir_all(project.join(path)).unwrap();
        }
        fs::create_dir(&outside).unwrap();
        for path in SAME.iter().chain(HEADS) {
            fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
            fs::write(project.join(path), AS_IT_WAS).unwrap();
        }
        for path in ["file", "secret", "leaked", "linked"] {
            fs::write(outside.join(path), "as it was").unwrap();
        }
        fs::hard_link(outside.join("linked"), project.join("linked")).unwrap();
        fs::write(outside.join("program"), "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(outside.join("program"), Permissions::from_mode(0o755)).unwrap();
        let abstract_name = format!("portcullis-escape-{}", folder.path().display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = (
            UnixListener::bind(outside.join("socket")).unwrap(),
            UnixDatagram::bind(outside.join("datagrams")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
            UnixListener::bind(project.join("service")).unwrap(),
        );
        let terminal = terminal();
        fs::copy(programs().join("escape.py"), project.join("escapes/escape.py")).unwrap();
        give_away(folder.path());
        fs::copy("/usr/bin/id", project.join("id-of-root")).unwrap();
        fs::set_permissions(project.join("id-of-root"), Permissions::from_mode(0o4755)).unwrap();
        let leaked = File::options().append(true).open(outside.join("leaked")).unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let mut victim = Command::new("/bin/sleep");
        victim.arg("600").env("SECRET_TOKEN", "of the victim").stdout(Stdio::null()).current_dir(&outside);
        as_nobody(&mut victim);
        Self {
            folder,
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_name,
            terminal,
            _sockets: sockets,
            _leaked: leaked,
        }
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    /// The arguments of `python3` for one of the programs, which is put into the project.
    pub(super) fn arguments(&self, name: &str) -> Vec<String> {
        let program = self.project().join(format!("escapes/{name}.py"));
        fs::copy(programs().join(format!("{name}.py")), &program).unwrap();
        give_away(&program);
        let port = |address: std::net::SocketAddr| address.port().to_string();
        vec![
            program.display().to_string(),
            self.outside().display().to_string(),
            self.victim.id().to_string(),
            port(self.tcp.local_addr().unwrap()),
            port(self.udp.local_addr().unwrap()),
            self.abstract_name.clone(),
            self.terminal.as_ref().map_or("/none".to_owned(), |(_, path)| path.display().to_string()),
        ]
    }

    /// What nobody but an escape changes: names, contents, permissions, times and attributes outside.
    pub(super) fn state(&self) -> Vec<String> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.outside()).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            let content = fs::read(entry.path()).unwrap_or_default();
            let mut names = vec![0; 256];
            let length = rustix::fs::listxattr(entry.path(), names.as_mut_slice()).unwrap_or(0);
            let (mode, time) = (meta.mode(), meta.mtime());
            all.push(format!("{:?} {mode:o} {time} {content:?} {:?}", entry.file_name(), &names[..length]));
        }
        all.sort();
        // Whether the process runs, and what others share with it.
        all.extend((!self.victim_runs()).then(|| "stopped".to_owned()));
        for kind in ["shm", "sem", "msg"] {
            let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
            let key = self.victim.id().to_string();
            all.extend(
                table.lines().filter(|line| line.split_whitespace().next() == Some(&key)).map(str::to_owned),
            );
        }
        all
    }

    /// Protected files that are not as they were, and traces in the machine's folder for temporary files.
    pub(super) fn traces(&self) -> Vec<String> {
        let at = |name: &str| self.project().join(name);
        let is_same = |name: &str| fs::read(at(name)).is_ok_and(|text| text == AS_IT_WAS.as_bytes());
        // A worktree can be removed, with all of its folder.
        let is_removed = |name: &str| name.contains("worktrees") && !at(name).exists();
        let changed = SAME.iter().filter(|name| !is_same(name) && !is_removed(name));
        let made = ABSENT.iter().filter(|name| at(name).symlink_metadata().is_ok());
        let mut traces: Vec<String> = changed.chain(made).map(|name| (*name).to_owned()).collect();
        traces.extend(
            (at(".git/hooks").metadata().unwrap().mode() & 0o200 == 0).then(|| ".git/hooks".to_owned()),
        );
        for folder in ["/tmp", "/dev/shm"] {
            let temporary = PathBuf::from(format!("{folder}/portcullis-escape-{}", self.victim.id()));
            if temporary.exists() {
                fs::remove_file(&temporary).unwrap();
                traces.push(temporary.display().to_string());
            }
        }
        traces
    }

    /// Whether the process outside is there and not stopped.
    pub(super) fn victim_runs(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        stat.split(' ').nth(2).is_some_and(|state| !["T", "t", "Z"].contains(&state))
    }

    /// A profile for the project of this world.
    pub(super) fn profile(&self, ports: Vec<u16>) -> Profile {
        let system = ["/usr", "/bin", "/lib", "/lib64"].map(PathBuf::from).to_vec();
        Profile {
            name: "escape".to_owned(),
            version: VERSION,
            level: Level::Process,
            read: ["/etc", "/proc"].map(PathBuf::from).to_vec(),
            execute: [system, vec![self.project()]].concat(),
            write: vec![self.project()],
            network: Network::Loopback(ports),
            sockets: Sockets::None,
            background: Background::End,
            git: Git::Held,
            remotes: Vec::new(),
            watch: Watch::default(),
            environment: vec!["PATH".to_owned()],
            limits: Limits { wall_seconds: Some(20), output_bytes: Some(64 << 10), ..Limits::default() },
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _gone = self.victim.kill();
        let _gone = self.victim.wait();
    }
}

/// A program in the project, at a level, with its output kept.
pub(super) fn invocation(world: &World, program: &str, arguments: &[String], level: Level) -> Invocation {
    let variables =
        [("PATH", "/usr/bin:/bin"), ("SECRET_TOKEN", "of the caller"), ("LD_PRELOAD", "/none.so")];
    Invocation {
        program: program.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        folder: Some(world.project()),
        level: Some(level),
        environment: Some(variables.map(|(name, value)| (name.into(), value.into())).into()),
        output: Output::Kept,
        user: rustix::process::geteuid().is_root().then_some((NOBODY, NOBODY)),
        ..Invocation::default()
    }
}

/// The helper that was built with these tests.
pub(super) fn contained() -> Contained {
    Contained::with_helper(Path::new(env!("CARGO_BIN_EXE_contain-helper"))).unwrap()
}

/// Root would be let past what is tested.
pub(super) fn as_nobody(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// The folder of the programs.
pub(super) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/escapes")
}

/// A terminal of the user of the programs that they have nothing to do with.
fn terminal() -> Option<(OwnedFd, PathBuf)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).ok()?;
    unlockpt(&master).ok()?;
    let name = ptsname(&master, Vec::new()).ok()?;
    let path = PathBuf::from(name.to_str().ok()?);
    give_away(&path);
    Some((master, path))
}

/// Everything below a folder belongs to the user of the programs, and to nobody else.
pub(super) fn give_away(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().map(Result::unwrap).for_each(|entry| give_away(&entry.path()));
    }
}
