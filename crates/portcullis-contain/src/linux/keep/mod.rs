//! Protected files, kept before a command runs and put back after it.
//!
//! Landlock grants folders and cannot except what is in them, and a file that does not exist cannot be made read-only
//! without making it. So what a level cannot prevent is undone when everything of the command has ended. Every step
//! goes from a handle of the folder, beneath it and through no link: a command that put a link in the way gains
//! nothing. Nor does one that takes away the rights to look, or leaves more than can be looked at.

mod entry;
mod mend;
mod repository;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::error::ContainError;
use crate::git;
use crate::present::{Listed, Present};
use crate::protected::{GIT, Guarded};
use entry::{BYTES_MAX, Content, Entries, Entry, FILES_MAX, OWNER, Read, Room, entry, look};
use portcullis_core::observed::{PutBack, PutBackHow};
use walk::When;

/// The protected files of one folder, as they were.
#[derive(Debug)]
struct Kept {
    root: PathBuf,
    handle: OwnedFd,
    /// What is protected, whether it existed or not.
    names: BTreeSet<PathBuf>,
    /// What is protected in folders below and existed there, with the folder.
    nested: BTreeMap<PathBuf, PathBuf>,
    /// Nobody looks below.
    is_cache: bool,
    entries: Entries,
    /// The folders between, such as `.git`: what is there, without what is in it.
    between: BTreeMap<PathBuf, Option<Entry>>,
    /// Folders that may be removed with all that is protected in them.
    removable: BTreeSet<PathBuf>,
}

/// All protected files, as they were.
#[derive(Debug)]
pub(super) struct Keep {
    folders: Vec<Kept>,
}

impl Keep {
    /// Reads them.
    ///
    /// # Errors
    /// A folder cannot be opened, or there is more than can be kept.
    pub(super) fn new(guarded: Vec<Guarded>) -> Result<Self, ContainError> {
        let folders = guarded.into_iter().map(Kept::new).collect::<Result<_, _>>()?;
        Ok(Self { folders })
    }

    /// What exists of them at the top, and the folders between them and the writable ones. What may be removed as a
    /// whole is not among it: neither what is below nor worktrees could be.
    pub(super) fn existing(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut shut, mut pinned) = (Vec::new(), Vec::new());
        for kept in &self.folders {
            let held = |name: &Path| !kept.removable.iter().any(|folder| name.starts_with(folder));
            // What a link leads to counts where it exists.
            let exists = |name: &Path| kept.root.join(name).exists();
            let names = kept.names.iter().filter(|name| kept.entries.contains_key(*name) && exists(name));
            shut.extend(names.filter(|name| held(name)).map(|name| kept.root.join(name)));
            let is_above =
                |folder: &Path| kept.names.iter().any(|name| name.starts_with(folder) && held(name));
            for (path, entry) in kept.between.iter().filter(|(path, _)| is_above(path)) {
                match entry {
                    Some(Entry::Folder { .. }) => pinned.push(kept.root.join(path)),
                    // The `.git` of a worktree says where hooks and settings are.
                    Some(Entry::File { .. }) => shut.push(kept.root.join(path)),
                    _ => {}
                }
            }
        }
        pinned.sort();
        (shut, pinned)
    }

    /// Puts back what was changed.
    pub(super) fn put_back(self) -> Vec<PutBack> {
        let mut done = Vec::new();
        for kept in &self.folders {
            kept.clear_the_way(&self.folders, &mut done);
            let mut present = Present::new(|folder: &Path| listed(&kept.handle, folder));
            let was_there = |name: &Path| kept.known(name).next().is_some();
            let names = kept.names.iter().filter(|name| was_there(name) || present.may_be(name));
            for name in names.chain(kept.nested.keys()) {
                kept.mend(name, &mut done);
            }
        }
        for kept in &self.folders {
            kept.clear_below(&self.folders, &mut done);
        }
        done
    }
}

impl Kept {
    fn new(guarded: Guarded) -> Result<Self, ContainError> {
        let Guarded { root, names, is_cache, removable } = guarded;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&root, flags, Mode::empty())
            .map_err(|error| ContainError::io(format!("open `{}`", root.display()))(error.into()))?;
        let names = BTreeSet::from_iter(names);
        let mut nested = BTreeMap::new();
        let is_at_top = |path: &Path| names.iter().any(|name| name.starts_with(path));
        let below = if is_cache { walk::Found::default() } else { walk::walk(&handle, When::Before) };
        for (path, place) in below.names {
            for name in obeyed(&handle, &path).into_iter().filter(|name| !is_at_top(name)) {
                nested.insert(name, place.clone());
            }
        }
        let (entries, between) = (Entries::new(), BTreeMap::new());
        let removable = BTreeSet::from_iter(removable);
        let mut kept = Self { root, handle, names, nested, is_cache, entries, between, removable };
        kept.read()?;
        Ok(kept)
    }

    fn read(&mut self) -> Result<(), ContainError> {
        let mut room = Room::full();
        let mut present = Present::new(|folder: &Path| listed(&self.handle, folder));
        let names = self.names.iter().filter(|name| present.may_be(name));
        for name in names.chain(self.nested.keys()) {
            look(&self.handle, name, Content::All, &mut room, &mut self.entries).ok_or_else(|| {
                ContainError::Profile(format!(
                    "more than {FILES_MAX} files or {} MiB are protected below `{}`; let it write narrower folders",
                    BYTES_MAX >> 20,
                    self.root.display()
                ))
            })?;
        }
        let above = self.names.iter().flat_map(|name| name.ancestors().skip(1));
        let below = self.nested.iter().flat_map(|(name, place)| {
            name.ancestors().skip(1).take_while(move |above| above != place && above.starts_with(place))
        });
        for path in above.chain(below).filter(|path| !path.as_os_str().is_empty()) {
            if !self.between.contains_key(path) {
                let found = entry(&self.handle, path, Read::All, &mut room);
                let found = found.unwrap_or_else(|error| Some(Entry::Other(error.to_string())));
                self.between.insert(path.to_owned(), found);
            }
        }
        Ok(())
    }

    /// Sees that protected files are looked for where they were: a link, or a `.git` that is a file, leads elsewhere.
    fn clear_the_way(&self, all: &[Self], done: &mut Vec<PutBack>) {
        let mut tell = |path: &Path, how| done.push(PutBack { path: self.root.join(path), how });
        for (path, before) in &self.between {
            let read = match before {
                Some(Entry::File { content, .. }) => Read::OfSize(content.len()),
                _ => Read::Nothing,
            };
            let now = entry(&self.handle, path, read, &mut Room::full());
            let now = now.unwrap_or_else(|error| Some(Entry::Other(error.to_string())));
            if now == *before || self.is_removed(path) {
                continue;
            }
            match (before, now) {
                (Some(before), _) => tell(path, mend::restore(&self.handle, path, path, before, &self.root)),
                // What is in a new folder is looked at later; a file or link would lead elsewhere.
                (None, Some(Entry::Folder { .. })) => self.open_folders([path.as_path()]),
                (None, None) => {}
                // A worktree of this repository, say, in a folder that was none.
                (None, Some(_)) if self.is_harmless_repository(all, path) => {}
                (None, Some(_)) => tell(path, mend::set_aside(&self.handle, path, path, &self.root)),
            }
        }
    }

    /// Whether a path was removed together with a folder that may be.
    fn is_removed(&self, path: &Path) -> bool {
        let find = |path: &Path| entry(&self.handle, path, Read::Nothing, &mut Room::full());
        // What is replaced by a link or a file was not removed; below the top somebody else looks.
        let is_gone = |place: &Path| matches!(find(place), Ok(None));
        let is_no_folder = |place: &Path| !matches!(find(place), Ok(Some(Entry::Folder { .. })));
        let within = self.removable.iter().any(|place| path.starts_with(place) && is_gone(place));
        // The folder that worktrees are in goes with the last one.
        let above = || {
            let mut names = self.names.iter().filter(|name| name.starts_with(path));
            self.removable.iter().any(|place| place.starts_with(path))
                && names.all(|name| self.removable.iter().any(|place| name.starts_with(place)))
                && is_gone(path)
        };
        let nested = || {
            let place = self.nested.iter().find(|(name, _)| name.starts_with(path)).map(|(_, place)| place);
            place.is_some_and(|place| path.starts_with(place) && is_no_folder(place))
        };
        within || above() || nested()
    }

    /// What was at a protected path and below it.
    fn known(&self, name: &Path) -> impl Iterator<Item = (&PathBuf, &Entry)> {
        let from = (Bound::Included(name), Bound::Unbounded);
        self.entries.range::<Path, _>(from).take_while(move |(path, _)| path.starts_with(name))
    }

    /// Puts back what belongs to one protected path.
    fn mend(&self, name: &Path, done: &mut Vec<PutBack>) {
        if self.is_removed(name) {
            return;
        }
        let mut tell = |path: &Path, how| done.push(PutBack { path: self.root.join(path), how });
        let known = || self.known(name);
        self.open_folders(known().filter(|(_, entry)| entry.is_folder()).map(|(path, _)| path.as_path()));
        let mut now = Entries::new();
        let mut room = Room { files: FILES_MAX * 2, bytes: BYTES_MAX * 2 };
        if look(&self.handle, name, Content::Of(&self.entries), &mut room, &mut now).is_none() {
            // What cannot be looked at is not left where it is obeyed.
            tell(name, mend::set_aside(&self.handle, name, name, &self.root));
            now.clear();
        }
        let is_new = |path: &Path| now.contains_key(path) && !self.entries.contains_key(path);
        for path in now.keys().filter(|path| is_new(path)) {
            // A new folder is set aside with all that is in it.
            let is_within_new = path.ancestors().skip(1).any(is_new);
            let is_harmless = || path == name && repository::is_harmless(&self.handle, path);
            if !is_within_new && !is_harmless() {
                tell(path, mend::set_aside(&self.handle, path, name, &self.root));
            }
        }
        for (path, entry) in known().filter(|(path, entry)| now.get(*path) != Some(*entry)) {
            tell(path, mend::restore(&self.handle, path, name, entry, &self.root));
        }
    }

    /// Gives the owner back the rights to look into folders.
    fn open_folders<'a>(&self, folders: impl IntoIterator<Item = &'a Path>) {
        for path in folders {
            let found = entry(&self.handle, path, Read::Nothing, &mut Room::full());
            if let Ok(Some(Entry::Folder { mode })) = found
                && mode & OWNER != OWNER
            {
                // Where that fails, what is in it cannot be put back, and that is told.
                let _unopened = entry::set_mode(&self.handle, path, mode | OWNER);
            }
        }
    }

    /// Sets aside what was made in folders below and is run or obeyed there.
    fn clear_below(&self, all: &[Self], done: &mut Vec<PutBack>) {
        let mut tell = |path: &Path, how| done.push(PutBack { path: self.root.join(path), how });
        if self.is_cache {
            return;
        }
        let found = walk::walk(&self.handle, When::After);
        if let Some(problem) = found.incomplete {
            tell(Path::new(""), PutBackHow::Failed(problem));
        }
        for path in found.names.keys() {
            let was_kept = |name: &PathBuf| self.names.contains(name) || self.nested.contains_key(name);
            let was_between = self.between.get(path).is_some_and(Option::is_some);
            let is_known = was_between || obeyed(&self.handle, path).iter().any(was_kept);
            if !is_known && !self.is_harmless_repository(all, path) {
                tell(path, mend::set_aside(&self.handle, path, path, &self.root));
            }
        }
    }
}

fn listed(root: &OwnedFd, folder: &Path) -> Listed {
    let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let opened = match entry::below(root, shown, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::NOTDIR) => return Listed::Absent,
        Err(_) => return Listed::Unknown,
    };
    let Ok(entries) = Dir::new(opened) else { return Listed::Unknown };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
    match names.collect::<Result<Vec<CString>, _>>() {
        Ok(names) => Listed::of(names.iter().map(|name| name.as_bytes())),
        Err(_) => Listed::Unknown,
    }
}

/// What is obeyed because something of this name is in a folder.
fn obeyed(root: &OwnedFd, path: &Path) -> Vec<PathBuf> {
    let is_folder =
        || matches!(entry(root, path, Read::Nothing, &mut Room::full()), Ok(Some(Entry::Folder { .. })));
    if path.ends_with(GIT) && is_folder() {
        return git::OBEYED.iter().map(|name| path.join(name)).collect();
    }
    vec![path.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn kept(folder: &Path) -> Keep {
        Keep::new(crate::protected::guarded(&[folder.to_owned()], folder)).unwrap()
    }

    #[test]
    fn changed_files_get_their_content_and_new_ones_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".git/hooks")).unwrap();
        fs::write(at(".git/config"), "old").unwrap();
        fs::write(at(".git/hooks/pre-push"), "old").unwrap();
        let keep = kept(folder.path());
        fs::write(at(".git/config"), "new").unwrap();
        fs::remove_file(at(".git/hooks/pre-push")).unwrap();
        fs::write(at(".git/hooks/pre-commit"), "new").unwrap();
        fs::write(at(".envrc"), "new").unwrap();
        fs::write(at("harmless"), "new").unwrap();
        let done = keep.put_back();
        assert_eq!(done.len(), 4, "{done:?}");
        assert_eq!(fs::read_to_string(at(".git/config")).unwrap(), "old");
        assert_eq!(fs::read_to_string(at(".git/hooks/pre-push")).unwrap(), "old");
        assert!(!at(".git/hooks/pre-commit").exists() && !at(".envrc").exists() && at("harmless").exists());
        assert_eq!(fs::read_to_string(at(".envrc.contained-1")).unwrap(), "new");
    }

    #[test]
    fn nothing_is_written_through_a_link_in_the_way() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/config"), "old").unwrap();
        let keep = kept(folder.path());
        fs::rename(folder.path().join(".git"), folder.path().join("moved")).unwrap();
        fs::write(outside.path().join("config"), "theirs").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join(".git")).unwrap();
        let done = keep.put_back();
        assert!(!done.iter().any(|one| matches!(one.how, PutBackHow::Failed(_))), "{done:?}");
        assert_eq!(fs::read_to_string(outside.path().join("config")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(folder.path().join(".git/config")).unwrap(), "old");
        assert!(folder.path().join(".git.contained-1").is_symlink());
    }

    #[test]
    fn the_file_that_leads_to_a_worktrees_folder_is_protected() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join(".git");
        fs::write(&link, "gitdir: elsewhere").unwrap();
        let keep = kept(folder.path());
        assert_eq!(keep.existing().0, std::slice::from_ref(&link));
        fs::remove_file(&link).unwrap();
        fs::create_dir_all(link.join("hooks")).unwrap();
        keep.put_back();
        assert_eq!(fs::read_to_string(&link).unwrap(), "gitdir: elsewhere");
    }

    #[test]
    fn what_was_not_touched_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("AGENTS.md"), "text").unwrap();
        let (shut, pinned) = kept(folder.path()).existing();
        assert_eq!((shut, pinned.len()), (vec![folder.path().join("AGENTS.md")], 0));
        assert_eq!(kept(folder.path()).put_back(), []);
    }

    /// What became of things in a folder with a hook, of which a command did something.
    fn after(before: &[&str], change: impl Fn(&Path)) -> (tempfile::TempDir, Vec<PutBack>) {
        let folder = tempfile::tempdir().unwrap();
        for name in before {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), "old").unwrap();
        }
        let keep = kept(folder.path());
        change(folder.path());
        let done = keep.put_back();
        assert!(!done.iter().any(|one| matches!(one.how, PutBackHow::Failed(_))), "{done:?}");
        (folder, done)
    }

    #[test]
    fn more_than_can_be_looked_at_hides_nothing() {
        let (folder, _) = after(&[".git/hooks/pre-push"], |at| {
            fs::create_dir_all(at.join(".git/hooks").join(["d"; 40].join("/"))).unwrap();
            fs::write(at.join(".git/hooks/pre-commit"), "new").unwrap();
            fs::write(at.join(".envrc"), "new").unwrap();
        });
        let hooks = fs::read_dir(folder.path().join(".git/hooks")).unwrap().count();
        assert!(hooks == 1 && !folder.path().join(".envrc").exists());
    }

    #[test]
    fn rights_that_were_taken_away_hide_nothing() {
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (folder, done) = after(&[".git/hooks/pre-push", "sub/x"], |at| {
            fs::write(at.join(".git/hooks/pre-commit"), "new").unwrap();
            set(&at.join(".git/hooks"), 0o500);
            set(&at.join(".git"), 0o500);
            fs::write(at.join("sub/.envrc"), "new").unwrap();
            set(&at.join("sub"), 0o700);
        });
        assert!(!folder.path().join(".git/hooks/pre-commit").exists(), "{done:?}");
        assert!(!folder.path().join("sub/.envrc").exists(), "{done:?}");
    }

    #[test]
    fn names_that_are_taken_or_long_hide_nothing() {
        let long = format!(".claude/commands/{}.md", "x".repeat(250));
        let (folder, _) = after(&[".claude/commands/old.md"], |at| {
            for number in 1..=2000 {
                fs::write(at.join(format!(".envrc.contained-{number}")), "").unwrap();
            }
            fs::write(at.join(".envrc"), "new").unwrap();
            fs::write(at.join(&long), "new").unwrap();
            fs::create_dir_all(at.join(".claude/skills/evil")).unwrap();
        });
        assert!(!folder.path().join(".envrc").exists() && !folder.path().join(&long).exists());
        assert!(!folder.path().join(".claude/skills").exists());
        assert_eq!(fs::read_dir(folder.path().join(".claude/commands")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_obeyed_in_folders_below_is_put_back_unless_they_are_gone() {
        let (folder, done) = after(&["a/CLAUDE.md", "b/AGENTS.md", "c/.git/config", "c/.git/HEAD"], |at| {
            fs::remove_dir_all(at.join("a")).unwrap();
            fs::write(at.join("b/AGENTS.md"), "new").unwrap();
            fs::write(at.join("b/.mcp.json"), "new").unwrap();
            fs::write(at.join("c/.git/config"), "new").unwrap();
            fs::create_dir_all(at.join("node_modules/d/.git")).unwrap();
            fs::write(at.join("node_modules/d/.git/config"), "[core]\nfsmonitor = evil\n").unwrap();
            fs::write(at.join("node_modules/d/CLAUDE.md"), "new").unwrap();
        });
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert_eq!((text("b/AGENTS.md"), text("c/.git/config")), ("old".to_owned(), "old".to_owned()));
        assert!(!folder.path().join("a").exists() && !folder.path().join("b/.mcp.json").exists());
        assert!(!folder.path().join("node_modules/d/.git").exists(), "{done:?}");
        assert!(folder.path().join("node_modules/d/CLAUDE.md").exists());
    }

    #[test]
    fn repositories_and_worktrees_that_run_nothing_are_left() {
        let git = |at: &Path, arguments: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.current_dir(at).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
            let status =
                git.env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(std::process::Stdio::null()).status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        let keep = kept(&at);
        git(&at, &["init", "-q", "."]);
        git(&at, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&at, &["init", "-q", "inner"]);
        git(&at, &["worktree", "add", "-q", "tree"]);
        assert_eq!(keep.put_back(), []);
        let keep = kept(&at);
        git(&at, &["worktree", "remove", "tree"]);
        fs::create_dir(at.join("evil")).unwrap();
        fs::write(at.join("evil/.git"), "gitdir: ../elsewhere\n").unwrap();
        let done = keep.put_back();
        assert_eq!(done.len(), 1, "{done:?}");
        assert!(at.join("evil/.git.contained-1").exists());
    }

    #[test]
    fn a_worktrees_folder_that_is_exchanged_for_a_link_is_put_back() {
        let (folder, done) = after(&[".git/HEAD", ".git/objects/x", ".git/worktrees/w/commondir"], |at| {
            fs::create_dir(at.join("evil")).unwrap();
            fs::write(at.join("evil/commondir"), "../evil").unwrap();
            fs::rename(at.join(".git/worktrees/w"), at.join("moved")).unwrap();
            std::os::unix::fs::symlink("../../evil", at.join(".git/worktrees/w")).unwrap();
        });
        let link = folder.path().join(".git/worktrees/w");
        assert!(!link.is_symlink() && link.join("commondir").exists(), "{done:?}");
        assert_eq!(fs::read_to_string(link.join("commondir")).unwrap(), "old");
    }
}
