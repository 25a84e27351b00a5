//! Git as the supervisor asks it: what a repository has, and what a remote has that the command may fetch.
//!
//! It runs outside of containment, so that nothing may be run that the project says: no hooks, no monitor, and none of
//! the settings that name programs in it. Such settings are protected besides.

mod brought;
mod remotes;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::profile::Invocation;

pub(super) use brought::Before;
pub(super) use remotes::Fetched;

/// Settings under which git runs nothing of a project.
const QUIET: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.alternateRefsCommand", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
];
/// Variables that lead git to other repositories, or have it read settings from elsewhere.
const LEADING: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];
/// Most bytes of an answer that are taken.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Git in the folder where a command starts.
#[derive(Debug, Clone)]
pub(super) struct Git {
    program: PathBuf,
    folder: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    user: Option<(u32, u32)>,
}

impl Git {
    /// The one on the caller's `PATH`, in none of the folders that a command may write; nothing where there is none.
    pub(super) fn find(command: &Invocation, folder: &Path, write: &[PathBuf]) -> Option<Self> {
        let mut environment: BTreeMap<OsString, OsString> =
            command.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
        let path = environment.get(OsStr::new("PATH"))?.clone();
        let is_program = |path: &PathBuf| {
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let is_outside = |path: &PathBuf| !write.iter().any(|root| path.starts_with(root));
        let mut found = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .filter_map(|folder| folder.join("git").canonicalize().ok());
        let program = found.find(|path| is_program(path) && is_outside(path))?;
        for name in LEADING {
            environment.remove(OsStr::new(name));
        }
        Some(Self { program, folder: folder.to_owned(), environment, user: command.user })
    }

    /// A command that runs nothing of the project.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new(&self.program);
        git.env_clear().envs(&self.environment).envs([
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
        ]);
        for (key, value) in QUIET {
            git.arg("-c").arg(format!("{key}={value}"));
        }
        git.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            git.uid(user).gid(group);
        }
        git
    }

    /// What it says, where it succeeds and says it as text.
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command(arguments).stderr(Stdio::null()).output().ok()?;
        let is_whole = output.status.success() && output.stdout.len() <= ANSWER_BYTES_MAX;
        is_whole.then(|| String::from_utf8(output.stdout).ok()).flatten()
    }

    /// The same without the end of its line.
    fn ask_line(&self, arguments: &[&str]) -> Option<String> {
        let answer = self.ask(arguments)?;
        let line = answer.trim_end_matches('\n');
        (!line.is_empty()).then(|| line.to_owned())
    }
}
