//! What something contained did, beside what was read of it before: what is more than that, where it matters.
//!
//! Programs write caches, build folders and temporary files that no command line names. That is their work and says
//! nothing. What matters is what leads out of it: a file elsewhere, a file that something obeys later, a secret, a host
//! that nothing named, a limit. All of this is pure: it compares two lists of names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::effect::{Effect, Resource, ResourceKind, Verb};
use crate::event::Place;
use crate::observed::{
    Attempt, AttemptWhat, Connection, ConnectionVerdict, FileChangeHow, Limit, Observed, PutBack, PutBackHow,
};

/// Folders below the home folder in which package managers and compilers keep what they can fetch or make again.
/// Programs that are installed there and settings are not among them.
const CACHES: [&str; 29] = [
    ".cache",
    "Library/Caches",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".rustup/downloads",
    ".rustup/tmp",
    ".npm/_cacache",
    ".npm/_logs",
    ".npm/_update-notifier-last-checked",
    ".npm/_npx",
    ".yarn/berry/cache",
    ".pnpm-store",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".deno",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/wrapper",
    ".m2/repository",
    ".ivy2/cache",
    ".nuget/packages",
    ".composer/cache",
    ".gem",
    ".bundle/cache",
    ".ccache",
    "go/pkg",
];

/// Folders of a project into which others' packages are unpacked, and builds write. Nothing obeys what lies there as it
/// obeys the same name in the project.
const MADE_AGAIN: [&str; 8] =
    ["node_modules", "site-packages", "vendor", "target", "dist", "build", ".tox", "__pycache__"];

/// What git writes in its folder in the course of ordinary work: names at the top of it. What is not listed here can
/// make git run something or look elsewhere: hooks, settings, attributes, links to other folders.
const GIT_WORK: [&str; 29] = [
    "objects",
    "refs",
    "logs",
    "index",
    "index.lock",
    "HEAD",
    "HEAD.lock",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "packed-refs",
    "packed-refs.lock",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "rr-cache",
    "shallow",
    "gc.pid",
];

/// The program.
const GIT: &str = "git";
/// The settings of a repository, at the end of their paths. What is left of their changes makes git run nothing.
const GIT_SETTINGS: [&str; 2] = [".git/config", ".git/config.worktree"];
/// The folder.
const GIT_FOLDER: &str = ".git";

/// Without these a repository is none.
const GIT_NEEDS: [&str; 3] = ["HEAD", "objects", "refs"];

/// What was read of an action before it ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Paths, and whether each is itself one that something obeys later, or a secret.
    written: BTreeMap<String, bool>,
    deleted: BTreeMap<String, bool>,
    hosts: BTreeSet<String>,
    /// Its text does not say where it connects to: packages, repositories, programs of its own.
    open: bool,
    /// Git changes files of the project, whatever they are called.
    git: bool,
}

impl Prediction {
    /// What these effects say.
    #[must_use]
    pub fn of(effects: &[Effect]) -> Self {
        let mut prediction = Self::default();
        for effect in effects {
            let resource = &effect.resource;
            match (resource.kind, effect.verb) {
                (ResourceKind::Path, Verb::Write | Verb::Configure) => {
                    note(&mut prediction.written, resource);
                }
                (ResourceKind::Path, Verb::Delete) => {
                    note(&mut prediction.deleted, resource);
                }
                (ResourceKind::Command, Verb::Execute) if resource.name == GIT => prediction.git = true,
                (ResourceKind::Host, _) => {
                    prediction.hosts.insert(resource.name.to_ascii_lowercase());
                }
                _ => {}
            }
            prediction.open |= !effect.is_seen();
        }
        prediction
    }

    /// Of something of which nothing could be read.
    #[must_use]
    pub fn unread() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// Whether its text says all that it does.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.open
    }

    /// Whether git may have brought this: what it could not is put back, and told of as that.
    fn is_brought(&self, path: &str) -> bool {
        let mut of_git = path.split('/').skip_while(|part| *part != GIT_FOLDER).skip(1);
        let is_brought = match (of_git.next(), of_git.nth(1)) {
            // Outside of it, or a file that leads to the folder of a worktree.
            (None, _) => true,
            // That folder: where it is, and whether it may be removed.
            (Some("worktrees"), Some("gitdir" | "commondir" | "locked")) => true,
            _ => GIT_SETTINGS.iter().any(|settings| path.ends_with(settings)),
        };
        self.git && !self.open && is_brought
    }

    /// Whether a change was predicted: of the path, or of a folder that it is in. That a build writes somewhere in the
    /// project does not say that it writes what something obeys later: `grave` changes are covered by their own name, or
    /// by a folder of their kind.
    fn covers(&self, path: &str, how: FileChangeHow, grave: bool) -> bool {
        let predicted = match how {
            FileChangeHow::Deleted => &self.deleted,
            FileChangeHow::Made | FileChangeHow::Changed => &self.written,
        };
        let folders = std::iter::successors(Some(path), |this| {
            this.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty())
        });
        let mut covering = folders.filter_map(|folder| predicted.get_key_value(folder));
        covering.any(|(name, is_grave)| !grave || *is_grave || name == path)
    }
}

fn note(predicted: &mut BTreeMap<String, bool>, resource: &Resource) {
    if let Some(name) = named(resource) {
        let grave = ["control", "secret", "gate"].iter().any(|attribute| resource.is(attribute));
        *predicted.entry(name).or_default() |= grave;
    }
}

/// The name of a path as far as it is fixed: of a pattern, the folder that it is in.
fn named(resource: &Resource) -> Option<String> {
    let name = resource.name.trim_end_matches('/');
    if !name.starts_with('/') {
        return None;
    }
    if !resource.is("glob") {
        return Some(name.to_owned());
    }
    let fixed = name.split(['*', '?', '[', '{']).next()?;
    fixed.rsplit_once('/').map(|(folder, _)| folder.to_owned()).filter(|folder| !folder.is_empty())
}

/// Where something runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grounds<'a> {
    /// The folder that the agent was given to work in.
    pub workspace: Option<&'a str>,
    /// The home folder.
    pub home: Option<&'a str>,
}

impl<'a> Grounds<'a> {
    /// Those of a place.
    #[must_use]
    pub fn of(place: Option<&'a Place>) -> Self {
        Self {
            workspace: place.and_then(|place| place.workspace.as_deref()),
            home: place.and_then(|place| place.home.as_deref()),
        }
    }
}

/// Something that was done and not predicted, where it matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct More {
    /// What sort of thing.
    pub kind: MoreKind,
    /// What was done, in a word: `made`, `tried to read`.
    pub how: &'static str,
    /// To what: a path, a host, a limit.
    pub what: String,
}

/// Sorts of more than was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoreKind {
    /// A file outside of the workspace, of folders for temporary files and of caches.
    Outside,
    /// A file that something obeys or runs later.
    Control,
    /// A file that holds credentials, or belongs to the gate.
    Secret,
    /// A host.
    Host,
    /// An attempt at something grave, which was refused.
    Attempt,
    /// A protected file, which was put back.
    Protected,
    /// A limit of the profile.
    Limit,
}

impl MoreKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Outside, Self::Control, Self::Secret, Self::Host, Self::Attempt, Self::Protected, Self::Limit];

    /// The word in rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Control => "control",
            Self::Secret => "secret",
            Self::Host => "host",
            Self::Attempt => "attempt",
            Self::Protected => "protected",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for More {
    /// `made /home/u/x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.how, self.what)
    }
}

/// What was observed that is more than was predicted, where it matters, in order and each once. `path` says what is known
/// of an absolute path.
#[must_use]
pub fn more(
    prediction: &Prediction,
    observed: &Observed,
    grounds: Grounds<'_>,
    path: &dyn Fn(&str) -> Resource,
) -> Vec<More> {
    let mut all = BTreeSet::new();
    for change in &observed.files.changes {
        let name = change.path.to_string_lossy();
        let Some(kind) = weight(&path(&name), &name, change.how, grounds) else { continue };
        let is_expected = || kind == MoreKind::Control && prediction.is_brought(&name);
        if !is_expected() && !prediction.covers(&name, change.how, kind != MoreKind::Outside) {
            all.insert(More { kind, how: word_of_change(change.how), what: name.into_owned() });
        }
    }
    all.extend(observed.connections.iter().filter_map(|connection| of_connection(prediction, connection)));
    all.extend(observed.refused.attempts.iter().filter_map(|attempt| of_attempt(attempt, path)));
    all.extend(observed.put_back.iter().filter_map(|put_back| of_put_back(prediction, put_back)));
    all.extend(observed.limits.iter().map(|limit| of_limit(*limit)));
    all.into_iter().collect()
}

/// What a single connection is more than was predicted.
#[must_use]
pub fn more_of_connection(prediction: &Prediction, connection: &Connection) -> Vec<More> {
    of_connection(prediction, connection).into_iter().collect()
}

/// Why a change that was not predicted matters, if it does.
fn weight(resource: &Resource, name: &str, how: FileChangeHow, grounds: Grounds<'_>) -> Option<MoreKind> {
    if resource.is("gate") {
        return Some(MoreKind::Secret);
    }
    let below = |folder: Option<&str>| folder.and_then(|folder| below(name, folder));
    let in_workspace = below(grounds.workspace);
    let cached = below(grounds.home)
        .is_some_and(|rest| CACHES.iter().any(|cache| rest == *cache || self::below(rest, cache).is_some()));
    // A workspace may be in a folder for temporary files, and is no such folder then.
    if resource.is("device") || in_workspace.is_none() && (resource.is("temporary") || cached) {
        return None;
    }
    if in_workspace.is_none() && !resource.is("inside") {
        return Some(if resource.is("secret") { MoreKind::Secret } else { MoreKind::Outside });
    }
    let rest = in_workspace.unwrap_or(name);
    if rest.split('/').any(|part| MADE_AGAIN.contains(&part)) {
        return None;
    }
    if resource.is("control") && !is_gits_work(rest, how) {
        return Some(MoreKind::Control);
    }
    resource.is("secret").then_some(MoreKind::Secret)
}

/// Whether git writes this as it works.
fn is_gits_work(path: &str, how: FileChangeHow) -> bool {
    let mut parts = path.split('/').skip_while(|part| *part != ".git").skip(1).peekable();
    // Worktrees and submodules have folders of the same form.
    while matches!(parts.peek(), Some(&("worktrees" | "modules"))) {
        parts.next();
        parts.next();
    }
    let Some(first) = parts.next() else { return false };
    let rest: Vec<&str> = parts.collect();
    match (first, rest.as_slice()) {
        ("objects", ["info", "alternates", ..]) => false,
        ("info", ["exclude" | "refs"]) | ("description", []) => true,
        (needed, []) if how == FileChangeHow::Deleted && GIT_NEEDS.contains(&needed) => false,
        _ => GIT_WORK.contains(&first),
    }
}

/// What is left of a path below a folder.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder)?.strip_prefix('/').filter(|_| !folder.is_empty())
}

fn word_of_change(how: FileChangeHow) -> &'static str {
    match how {
        FileChangeHow::Made => "made",
        FileChangeHow::Changed => "changed",
        FileChangeHow::Deleted => "deleted",
    }
}

/// A host that was reached is more only where the text says all that the action does: of one that runs programs, the
/// profile says which hosts were meant. One that was refused is named by neither.
fn of_connection(prediction: &Prediction, connection: &Connection) -> Option<More> {
    let host = connection.host.to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let how = match connection.verdict {
        ConnectionVerdict::Permitted | ConnectionVerdict::Failed(_) if prediction.open => return None,
        ConnectionVerdict::Permitted => "connected to",
        ConnectionVerdict::Failed(_) | ConnectionVerdict::Refused(_) => "tried to connect to",
    };
    let what = format!("{host}:{}", connection.port);
    (!prediction.hosts.contains(host)).then_some(More { kind: MoreKind::Host, how, what })
}

/// Programs look for files that they may not read, and ask for calls that they do without; that is no attempt at
/// anything. A secret, or a file that something obeys, is.
fn of_attempt(attempt: &Attempt, path: &dyn Fn(&str) -> Resource) -> Option<More> {
    let how = match attempt.what {
        AttemptWhat::Read => "tried to read",
        AttemptWhat::Write => "tried to write",
        AttemptWhat::Execute => "tried to execute",
        AttemptWhat::Connect => "tried to connect to",
        AttemptWhat::Call => return None,
    };
    let target = attempt.target.as_str();
    let grave = if target.starts_with('/') {
        let resource = path(target);
        let control = attempt.what == AttemptWhat::Write && resource.is("control");
        resource.is("secret")
            || resource.is("gate")
            || control && !is_gits_work(target, FileChangeHow::Changed)
    } else {
        attempt.what == AttemptWhat::Connect && is_metadata(target)
    };
    grave.then(|| More { kind: MoreKind::Attempt, how, what: target.to_owned() })
}

/// Whether an address, with or without a port, is that of a cloud's metadata service, which gives out credentials.
fn is_metadata(address: &str) -> bool {
    ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "fd00:ec2::254", "100.100.100.200"]
        .iter()
        .any(|known| address.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')))
}

fn of_put_back(prediction: &Prediction, put_back: &PutBack) -> Option<More> {
    let name = put_back.path.to_string_lossy();
    let how = match &put_back.how {
        PutBackHow::Restored => "changed, and it was restored:",
        PutBackHow::SetAside(_) => "made, and it was set aside:",
        PutBackHow::Failed(_) => "changed, and it could not be put back:",
    };
    // What was predicted was judged; that it could not be put back is news.
    let expected = prediction.covers(&name, FileChangeHow::Changed, true)
        && !matches!(put_back.how, PutBackHow::Failed(_));
    (!expected).then(|| More { kind: MoreKind::Protected, how, what: name.into_owned() })
}

fn of_limit(limit: Limit) -> More {
    More { kind: MoreKind::Limit, how: "reached", what: format!("`{}`", limit.field()) }
}

#[cfg(test)]
mod tests;
