//! What is run or obeyed in the folders below one that may be written: repositories, settings, instructions.
//!
//! A repository in a folder counts too: `git status` above it asks git in it, which runs what its settings say.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::entry::{Read, Room};
use super::rights::Rights;
use crate::protected::{GIT, HEAD, anywhere};

/// Most folders that are looked into.
const FOLDERS_MAX: usize = 100_000;
/// How deep they lie.
const DEPTH_MAX: usize = 64;

/// What was found: each path with the folder that it counts in.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) names: BTreeMap<PathBuf, PathBuf>,
    /// Folders of git's own that are not called `.git`: bare repositories, those of submodules and worktrees. Git takes
    /// such a folder for a repository when it is called in it, or when something leads there.
    pub(super) repositories: Vec<PathBuf>,
    /// Why it is not everything.
    pub(super) incomplete: Option<String>,
}

/// Looks into every folder below one, the nearest first.
pub(super) fn walk(root: &OwnedFd, rights: &Rights) -> Found {
    let mut found = Found::default();
    let mut folders = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        if folder.components().count() > DEPTH_MAX || folders.len() > FOLDERS_MAX {
            let what =
                format!("there are more than {FOLDERS_MAX} folders in it, or {DEPTH_MAX} in each other");
            found.incomplete = Some(format!("{what}: not all were looked into for files that are protected"));
            break;
        }
        let entries = match rights.open(root, &folder).and_then(Dir::new) {
            Ok(entries) => entries,
            // It is gone, or somebody else's, which the command could not change either.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => continue,
            Err(error) => {
                found.incomplete = Some(format!("`{}` was not looked into: {error}", folder.display()));
                continue;
            }
        };
        let mut marks = Marks::default();
        for one in entries.filter_map(Result::ok) {
            let name = OsStr::from_bytes(one.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if name.eq_ignore_ascii_case(GIT) {
                marks.has_git = true;
                found.add(root, rights, &folder, GIT);
                // Where it keeps those of submodules and worktrees.
                let kept = KEPT.map(|kept| folder.join(GIT).join(kept));
                folders.extend(kept.into_iter().filter(|path| is_folder(root, path, FileType::Unknown)));
                continue;
            }
            marks.note(name);
            for known in name.to_str().into_iter().flat_map(|name| anywhere(&folder, name)) {
                found.add(root, rights, &folder, known);
            }
            if is_folder(root, &folder.join(name), one.file_type()) {
                folders.push(folder.join(name));
            }
        }
        if marks.are_of_git() {
            found.repositories.push(folder);
        }
    }
    found
}

/// Folders of a repository in which those of its submodules and worktrees are.
const KEPT: [&str; 2] = ["modules", "worktrees"];

/// What in a folder makes git take it for its own (`is_git_directory` in git's `setup.c`).
#[derive(Debug, Default)]
struct Marks {
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    leads_elsewhere: bool,
    /// Then git looks there and not here.
    has_git: bool,
}

impl Marks {
    fn note(&mut self, name: &OsStr) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        self.has_head |= is(HEAD);
        self.has_objects |= is("objects");
        self.has_refs |= is("refs");
        self.leads_elsewhere |= is("commondir");
    }

    fn are_of_git(&self) -> bool {
        !self.has_git && self.has_head && (self.has_objects && self.has_refs || self.leads_elsewhere)
    }
}

impl Found {
    /// Adds what is there under exactly this name, or under one that the file system takes for it.
    fn add(&mut self, root: &OwnedFd, rights: &Rights, folder: &Path, name: &str) {
        let path = folder.join(name);
        if !matches!(rights.entry(root, &path, Read::Nothing, &mut Room::full()), Ok(None)) {
            self.names.insert(path, folder.to_owned());
        }
    }
}

fn is_folder(root: &OwnedFd, path: &Path, kind: FileType) -> bool {
    match kind {
        FileType::Directory => true,
        // Some file systems do not tell.
        FileType::Unknown => rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        _ => false,
    }
}
