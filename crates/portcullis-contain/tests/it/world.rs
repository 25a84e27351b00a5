//! A small world to break out of: a project, a folder outside, a process of the same user, sockets.

use std::fs::{self, File, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use portcullis_contain::{
    Background, Contained, Invocation, Level, Limits, Network, Output, Profile, VERSION, Watch,
};

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
    _sockets: (UnixListener, UnixDatagram, UnixListener),
    _leaked: File,
}

impl World {
    pub(super) fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-world-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let (project, outside) = (folder.path().join("project"), folder.path().join("outside"));
        for path in [".git/hooks", "escapes"] {
            fs::create_dir_all(project.join(path)).unwrap();
        }
        fs::create_dir(&outside).unwrap();
        for path in [".git/hooks/pre-push", ".git/config", ".mcp.json", "AGENTS.md"] {
            fs::write(project.join(path), "as it was").unwrap();
        }
        for path in ["file", "secret", "leaked"] {
            fs::write(outside.join(path), "as it was").unwrap();
        }
        fs::write(outside.join("program"), "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(outside.join("program"), Permissions::from_mode(0o755)).unwrap();
        let abstract_name = format!("portcullis-escape-{}", folder.path().display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = (
            UnixListener::bind(outside.join("socket")).unwrap(),
            UnixDatagram::bind(outside.join("datagrams")).unwrap(),
            UnixListener::bind_addr(&address).unwrap(),
        );
        fs::copy(programs().join("escape.py"), project.join("escapes/escape.py")).unwrap();
        give_away(folder.path());
        fs::copy("/usr/bin/id", project.join("id-of-root")).unwrap();
        fs::set_permissions(project.join("id-of-root"), Permissions::from_mode(0o4755)).unwrap();
        let leaked = File::options().append(true).open(outside.join("leaked")).unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let mut victim = Command::new("/bin/sleep");
        victim.arg("600").env("SECRET_TOKEN", "of the victim").stdout(Stdio::null());
        as_nobody(&mut victim);
        Self {
            folder,
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_name,
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
        let program = format!("escapes/{name}.py");
        fs::copy(programs().join(format!("{name}.py")), self.project().join(&program)).unwrap();
        give_away(&self.project().join(&program));
        let port = |address: std::net::SocketAddr| address.port().to_string();
        vec![
            program,
            self.outside().display().to_string(),
            self.victim.id().to_string(),
            port(self.tcp.local_addr().unwrap()),
            port(self.udp.local_addr().unwrap()),
            self.abstract_name.clone(),
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
        all
    }

    /// Protected files that are not as they were, and traces in the machine's folder for temporary files.
    pub(super) fn traces(&self) -> Vec<String> {
        let at = |name: &str| self.project().join(name);
        let same = [".git/hooks/pre-push", ".git/config", ".mcp.json", "AGENTS.md"];
        let changed = same.iter().filter(|name| fs::read(at(name)).ok().as_deref() != Some(b"as it was"));
        let made = [".git/hooks/pre-commit", ".envrc", ".claude/settings.json"];
        let made = made.iter().filter(|name| at(name).exists());
        let mut traces: Vec<String> = changed.chain(made).map(|name| (*name).to_owned()).collect();
        let temporary = PathBuf::from(format!("/tmp/portcullis-escape-{}", self.victim.id()));
        if temporary.exists() {
            fs::remove_file(&temporary).unwrap();
            traces.push(temporary.display().to_string());
        }
        traces
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
            unix_sockets: false,
            background: Background::End,
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

/// Everything below a folder belongs to the user of the programs, and to nobody else.
fn give_away(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().map(Result::unwrap).for_each(|entry| give_away(&entry.path()));
    }
}
