//! Profiles from files, the profile of a project, and what is run under one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::{built_in_profile, read_profile};
use portcullis_core::profile::{CACHES, GIT, Level, Places, Profile, Sockets, TEMPORARY};

use crate::error::ContainError;
use crate::network::OnConnection;

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
    /// Who is told of each connection through the proxy, as it ends.
    pub on_connection: OnConnection,
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

/// Reads a profile from TOML, for these places.
///
/// # Errors
/// It is no profile, of another version, or beyond a limit; a folder to write cannot be told.
pub fn parse(text: &str, places: &Places<'_>) -> Result<Profile, ContainError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("a file of more than {FILE_BYTES_MAX} bytes")));
    }
    let read = read_profile("profile", text).map_err(|mistakes| {
        let lines = mistakes.iter().map(|mistake| {
            // Whoever names the file knows it.
            mistake.to_string().strip_prefix("profile:").map_or_else(String::new, str::to_owned)
        });
        wrong(lines.collect::<Vec<_>>().join("\n"))
    })?;
    settle(read.at(places).map_err(wrong)?, places.home, Missing::Refused)
}

/// The profile of a developer's project: it is written, protected files aside; the system and toolchains are read
/// and executed; no network but a loopback of its own.
///
/// # Errors
/// It cannot be read: it is part of the program.
pub fn project(folder: &Path, home: Option<&Path>) -> Result<Profile, ContainError> {
    let places = Places { workspace: Some(folder), home, here: Some(folder) };
    let profile = built_in_profile("project").ok_or_else(|| wrong("there is none".to_owned()))?;
    settle(profile.at(&places).map_err(wrong)?, home, Missing::Refused)
}

/// What becomes of a folder to write that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    Refused,
    /// It may be made: what is above it is written. For what was permitted by its name.
    Made,
}

/// A profile whose paths are [placed](Profile::at), with what only the file system says: `{git}`, `{caches}`, `{tmp}`,
/// and which of its files and folders exist.
///
/// # Errors
/// A folder to write does not exist, and is neither to be made nor below another one.
pub fn settle(mut profile: Profile, home: Option<&Path>, missing: Missing) -> Result<Profile, ContainError> {
    let mut write: Vec<PathBuf> = Vec::with_capacity(profile.write.len());
    let add = |all: &mut Vec<PathBuf>, path: PathBuf| {
        if !all.contains(&path) {
            all.push(path);
        }
    };
    for path in &profile.write {
        match path.to_str() {
            Some(GIT) => {
                for folder in write.iter().flat_map(|folder| git_folders(folder)).collect::<Vec<_>>() {
                    // Git runs a worktree's hooks from the folder that it shares.
                    add(&mut profile.execute, folder.clone());
                    add(&mut write, folder);
                }
            }
            Some(CACHES) => {
                let caches = PACKAGE_CACHES.iter().filter_map(|name| home.map(|home| home.join(name)));
                caches.filter(|path| path.is_dir()).for_each(|path| add(&mut write, path));
            }
            _ if path.as_os_str() == TEMPORARY => add(&mut write, std::env::temp_dir()),
            _ => {
                if missing == Missing::Made && path.symlink_metadata().is_err() {
                    add(&mut write, existing_above(path, home)?);
                }
                add(&mut write, path.clone());
            }
        }
    }
    let sockets = match &mut profile.sockets {
        Sockets::Paths(paths) => Some(paths),
        Sockets::None | Sockets::Own => None,
    };
    for paths in [&mut profile.read, &mut profile.execute].into_iter().chain(sockets) {
        for path in paths.iter_mut().filter(|path| path.as_os_str() == TEMPORARY) {
            *path = std::env::temp_dir();
        }
        paths.retain(|path| path.exists());
    }
    profile.write = write;
    profile.check().map_err(wrong)?;
    Ok(profile)
}

/// The nearest folder above that exists.
fn existing_above(path: &Path, home: Option<&Path>) -> Result<PathBuf, ContainError> {
    let above = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(path);
    if above.parent().is_none() || home.is_some_and(|home| home.starts_with(above)) {
        let shown = path.display();
        return Err(wrong(format!(
            "to make `{shown}`, all of `{}` would be written; make it first",
            above.display()
        )));
    }
    Ok(above.to_owned())
}

fn wrong(problem: String) -> ContainError {
    ContainError::Profile(problem)
}

/// Caches of package managers below the home folder: what one project fetches, others find there.
const PACKAGE_CACHES: &[&str] = &[
    ".bun/install/cache",
    ".bundle/cache",
    ".cache/composer",
    ".cache/deno",
    ".cache/go-build",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/git",
    ".cargo/registry",
    ".composer/cache",
    ".gem",
    ".local/share/pnpm",
    ".m2/repository",
    ".npm",
    ".nuget/packages",
    "go/pkg/mod",
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
