//! Profiles from files, the profile of a project, and what is run under one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use portcullis_core::profile::{Background, Level, Limits, Network, Profile, VERSION, Watch};

use crate::error::ContainError;

/// Most bytes of a profile's file.
const FILE_BYTES_MAX: usize = 64 << 10;

/// A command, and how it is run.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    /// The program, looked for on the contained `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it starts; without it, where the caller is.
    pub folder: Option<PathBuf>,
    /// Run at this level and no other; without it at the highest that is reached, and not below the profile's.
    pub level: Option<Level>,
    /// Variables to choose from; without it those of the caller.
    pub environment: Option<BTreeMap<OsString, OsString>>,
    /// What becomes of its output.
    pub output: Output,
    /// User and group to run as. Only root can say this.
    pub user: Option<(u32, u32)>,
    /// Whether signals that reach the calling thread are handed to the command. For programs of one thread.
    pub forward_signals: bool,
}

/// What becomes of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// It goes where the caller's goes. With a limit it passes through a pipe.
    #[default]
    Inherited,
    /// It is kept, standard input is empty. Needs the limit of output.
    Kept,
    /// Standard output goes where the caller's standard error goes.
    ToErrors,
}

/// Reads a profile from TOML. `~/` stands for `home`, and other paths that are not absolute are taken from `here`.
///
/// # Errors
/// It is no profile, of another version, or beyond a limit.
pub fn parse(text: &str, home: Option<&Path>, here: &Path) -> Result<Profile, ContainError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("a file of more than {FILE_BYTES_MAX} bytes")));
    }
    let mut profile: Profile = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if profile.version != VERSION {
        return Err(wrong(format!("version {}; this program knows {VERSION}", profile.version)));
    }
    for path in profile.read.iter_mut().chain(&mut profile.execute).chain(&mut profile.write) {
        *path = match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_), None) => {
                return Err(wrong(format!("`{}`: there is no HOME to take it from", path.display())));
            }
            (Err(_), _) => here.join(&*path),
        };
    }
    profile.check().map_err(wrong)?;
    Ok(profile)
}

/// The profile of a developer's project: it is written, protected files aside; the system and toolchains are read
/// and executed; no network but a loopback of its own.
#[must_use]
pub fn project(folder: &Path, home: Option<&Path>) -> Profile {
    let system = SYSTEM.iter().map(PathBuf::from);
    let below_home = |names: &'static [&'static str]| {
        names.iter().filter_map(move |name| home.map(|home| home.join(name)))
    };
    let there = |path: &PathBuf| path.exists();
    let mut execute: Vec<PathBuf> = system.chain(below_home(TOOLCHAINS)).filter(there).collect();
    execute.push(folder.to_owned());
    let mut write = vec![folder.to_owned()];
    write.extend(git_folders(folder));
    Profile {
        name: "project".to_owned(),
        version: VERSION,
        level: Level::Process,
        read: SETTINGS.iter().map(PathBuf::from).chain(below_home(HOME_SETTINGS)).filter(there).collect(),
        execute,
        write,
        network: Network::Loopback(Vec::new()),
        unix_sockets: false,
        background: Background::End,
        watch: Watch::default(),
        environment: VARIABLES.iter().map(|&name| name.to_owned()).collect(),
        limits: Limits { processes: Some(4096), ..Limits::default() },
    }
}

fn wrong(problem: String) -> ContainError {
    ContainError::Profile(problem)
}

/// Where programs of the system and their libraries are.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
    "/run/current-system",
];
/// What programs of the system read besides.
const SETTINGS: &[&str] = &["/etc", "/proc", "/sys"];
/// Toolchains below the home folder. Files with credentials are not among them.
const TOOLCHAINS: &[&str] = &[
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".local/bin",
    ".local/share/uv",
    ".local/share/mise",
    ".asdf",
    ".sdkman",
    ".rbenv",
    ".deno/bin",
    ".bun/bin",
    "go/bin",
    "go/pkg",
];
/// Settings below the home folder that hold no secrets.
const HOME_SETTINGS: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".cargo/config.toml",
    ".cargo/env",
    ".npm",
    ".cache/pip",
];
/// Variables that say where things are and how output looks.
const VARIABLES: &[&str] = &[
    "CARGO_*",
    "CI",
    "CLICOLOR*",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "LOGNAME",
    "NODE_ENV",
    "NO_COLOR",
    "NVM_DIR",
    "PATH",
    "PWD",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RUSTFLAGS",
    "RUSTUP_*",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// Where git keeps what belongs to a worktree: its own folder, and the one it shares with others.
fn git_folders(folder: &Path) -> Vec<PathBuf> {
    let link = folder.join(".git");
    let Ok(text) = std::fs::read_to_string(&link) else { return Vec::new() };
    let Some(named) = text.strip_prefix("gitdir:").map(str::trim) else { return Vec::new() };
    let own = folder.join(named);
    // A file that points somewhere which is no folder of git's opens nothing.
    let is_git = |folder: &Path| folder.join("HEAD").is_file();
    // The other folder has to point back: otherwise a planted `.git` would open any repository for writing.
    let back = std::fs::read_to_string(own.join("gitdir")).unwrap_or_default();
    let points_back = Path::new(back.trim()).canonicalize().ok() == link.canonicalize().ok();
    if !is_git(&own) || !points_back {
        return Vec::new();
    }
    // A worktree lies in `worktrees/` of the folder that it shares: what `commondir` says besides is not believed.
    let Ok(own) = own.canonicalize() else { return Vec::new() };
    let common = own.parent().filter(|path| path.ends_with("worktrees")).and_then(Path::parent);
    let common = common.filter(|path| is_git(path)).map(Path::to_owned);
    [own].into_iter().chain(common).collect()
}
