//! What a repository says. The repository is the agent's, and its settings can make git run programs: so git runs
//! contained, without a network, and writes nothing. What is pinned to a commit is not taken from git's word: every object
//! on the way from the commit to the file is hashed here.

use std::path::{Path, PathBuf};

use portcullis_contain::{Ended, Observed};

use super::file::{git_name, hex};
use super::{Checker, Found, NotPassed, error, fail};

/// How long git may take, in seconds.
const GIT_SECONDS: u32 = 60;
/// Deepest folder of a pinned file.
const DEPTH_MAX: usize = 64;
/// Paths that a message shows.
const PATHS_SHOWN: usize = 5;

/// Options that keep git from running what the repository's settings name.
const OPTIONS: [&str; 10] = [
    "--no-optional-locks",
    "--no-replace-objects",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "safe.directory=*",
];

/// A repository.
pub(super) struct Git<'a> {
    checker: &'a Checker<'a>,
    folder: PathBuf,
}

impl<'a> Checker<'a> {
    pub(super) fn git(&'a self, repository: Option<&str>) -> Result<Git<'a>, NotPassed> {
        Ok(Git { checker: self, folder: self.place().folder(repository)? })
    }
}

impl Git<'_> {
    fn run(&self, arguments: &[&str]) -> Result<Observed, NotPassed> {
        let mut profile = self.checker.profile()?;
        profile.read.append(&mut profile.write);
        profile.read.push(self.folder.clone());
        let words = ["git"].into_iter().chain(OPTIONS).chain(arguments.iter().copied());
        let command: Vec<String> = words.map(str::to_owned).collect();
        self.checker.run(profile, &command, &self.folder, GIT_SECONDS)
    }

    /// Its output, where it succeeds.
    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, NotPassed> {
        let observed = self.run(arguments)?;
        match observed.ended {
            Ended::Status(0) => Ok(observed.stdout),
            ended => error(format!("git ended with {ended:?}: {}", said(&observed))),
        }
    }

    pub(super) fn has_commit(&self, commit: &str, branch: Option<&str>) -> Found {
        self.output(&["rev-parse", "--git-dir"])?;
        let named = format!("{commit}^{{commit}}");
        let found = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &named])?;
        if found.ended != Ended::Status(0) {
            return fail(format!("there is no commit `{commit}`"));
        }
        let name = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        let Some(branch) = branch else { return Ok(format!("`{commit}` is {name}")) };
        let head = format!("refs/heads/{branch}");
        match self.run(&["merge-base", "--is-ancestor", &name, &head])?.ended {
            Ended::Status(0) => Ok(format!("`{branch}` has {name}")),
            Ended::Status(1) => fail(format!("`{branch}` does not have {name}")),
            _ => fail(format!("there is no branch `{branch}`")),
        }
    }

    pub(super) fn is_clean(&self) -> Found {
        let options = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=none"];
        let output = self.output(&options)?;
        let changes: Vec<_> = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).collect();
        if changes.is_empty() {
            return Ok("nothing is uncommitted".to_owned());
        }
        let shown: Vec<_> =
            changes.iter().take(PATHS_SHOWN).map(|entry| String::from_utf8_lossy(entry)).collect();
        fail(format!("{} uncommitted: {}", changes.len(), shown.join(", ")))
    }

    pub(super) fn touches(&self, since: &str, paths: &[String]) -> Found {
        let diff =
            ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames", since, "--"];
        let mut output = self.output(&diff)?;
        output.extend(self.output(&["ls-files", "--others", "--exclude-standard", "-z"])?);
        let changed: Vec<_> = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).collect();
        let is_touched = |path: &String| {
            let path = path.trim_end_matches('/').as_bytes();
            let is_below = |rest: &[u8]| rest.is_empty() || rest.starts_with(b"/");
            path == b"." || changed.iter().any(|changed| changed.strip_prefix(path).is_some_and(is_below))
        };
        match paths.iter().find(|path| !is_touched(path)) {
            None if changed.is_empty() => fail(format!("nothing has changed since `{since}`")),
            None => Ok(format!("{} changed since `{since}`", changed.len())),
            Some(path) => fail(format!("nothing in `{path}` has changed since `{since}`")),
        }
    }

    /// Whether a file has the content that a commit gives it. Each object is hashed: who can write the repository can write
    /// anything into it but another content under the same name.
    pub(super) fn has_file(&self, commit: &str, path: &str, content: &[u8]) -> Result<bool, NotPassed> {
        let top = self.output(&["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end().to_owned());
        let whole = self.folder.join(path);
        let below = whole.strip_prefix(&top).map(Path::to_owned);
        let below =
            below.or_else(|_| error(format!("`{path}` is not in the repository `{}`", top.display())))?;
        let body = self.object("commit", commit)?;
        let tree = body.strip_prefix(b"tree ").and_then(|rest| rest.get(..commit.len()));
        let tree = tree.and_then(|name| std::str::from_utf8(name).ok());
        let Some(tree) = tree else { return error(format!("commit {commit} has no tree")) };
        let mut name = tree.to_owned();
        let parts: Vec<_> = below.components().collect();
        if parts.len() > DEPTH_MAX {
            return error(format!("`{path}` is deeper than {DEPTH_MAX} folders"));
        }
        for part in &parts {
            let entries = self.object("tree", &name)?;
            match entry(&entries, part.as_os_str().as_encoded_bytes(), commit.len() / 2) {
                Some(found) => name = found,
                None => return fail(format!("pinned file: commit {commit} has no `{path}`")),
            }
        }
        Ok(git_name("blob", content, commit.len()) == name)
    }

    /// An object whose content has its name.
    fn object(&self, kind: &str, name: &str) -> Result<Vec<u8>, NotPassed> {
        let content = self.output(&["cat-file", kind, name])?;
        if git_name(kind, &content, name.len()) == name {
            return Ok(content);
        }
        error(format!("the repository has another {kind} under the name {name}"))
    }
}

/// The name of an entry of a tree: `MODE NAME`, a zero byte, and the name of the object as bytes.
fn entry(tree: &[u8], wanted: &[u8], length: usize) -> Option<String> {
    let mut rest = tree;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (head, tail) = (rest.get(..end)?, rest.get(end + 1..)?);
        let space = head.iter().position(|byte| *byte == b' ')?;
        let object = tail.get(..length)?;
        if head.get(space + 1..)? == wanted {
            return Some(hex(object));
        }
        rest = tail.get(length..)?;
    }
    None
}

fn said(observed: &Observed) -> String {
    let text = String::from_utf8_lossy(&observed.stderr);
    text.trim().chars().take(200).collect()
}
