//! Protected files, kept before a command runs and put back after it.
//!
//! Landlock grants folders and cannot except what is in them, and a file that does not exist cannot be made read-only
//! without making it. So what a level cannot prevent is undone when everything of the command has ended. Every step
//! goes from a handle of the folder, beneath it and through no link: a command that put a link in the way gains
//! nothing. Nor does one that takes away the rights to look, or leaves more than can be looked at.

mod entry;
mod mend;
mod repository;
mod rights;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::error::ContainError;
use crate::git::{self, Home};
use crate::links;
use crate::linux::git::Before;
use crate::present::{Listed, Present};
use crate::protected::{GIT, Guarded, HEAD};
use entry::{BYTES_MAX, Content, Entries, Entry, FILES_MAX, Read, Room, entry, look};
use portcullis_core::observed::{PutBack, PutBackHow};
use portcullis_core::profile::Git;
use rights::Rights;

/// The protected files of one folder, as they were.
#[derive(Debug)]
struct Kept {
    root: PathBuf,
    handle: OwnedFd,
    rights: Rights,
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
    /// What of all this is in folders of git's own.
    own: BTreeSet<PathBuf>,
    /// Folders of git's own with other names.
    repositories: BTreeSet<PathBuf>,
}

/// What git may have changed.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// It may have noted which branch follows which.
    pub(super) settings: bool,
    /// It may have put files of the project in their place that it had.
    pub(super) brought: Option<Before>,
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
        let mut folders = guarded.into_iter().map(Kept::new).collect::<Result<Vec<_>, _>>()?;
        // What is obeyed in folders below may be a link too.
        let nested: Vec<PathBuf> =
            folders.iter().flat_map(|kept| kept.nested.keys().map(|name| kept.root.join(name))).collect();
        let targets = links::targets(nested.iter().map(PathBuf::as_path));
        for kept in &mut folders {
            let below = targets.iter().filter_map(|target| target.strip_prefix(&kept.root).ok());
            let below: Vec<PathBuf> =
                below.filter(|name| kept.can_be_kept(name)).map(Path::to_owned).collect();
            kept.names.extend(below);
            let read = kept.read();
            kept.rights.take_back(&kept.handle);
            read?;
        }
        Ok(Self { folders })
    }

    /// What exists of them at the top, and the folders between them and the writable ones. What may be removed as a
    /// whole is not among it: neither what is below nor worktrees could be.
    ///
    /// Where git works, it is let replace all but what it runs by itself.
    pub(super) fn existing(&self, git: Git) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut shut, mut pinned) = (Vec::new(), Vec::new());
        for kept in &self.folders {
            let held = |name: &Path| {
                let is_left = git == Git::Works && (!kept.own.contains(name) || is_settings(name));
                !is_left && !kept.removable.iter().any(|folder| name.starts_with(folder))
            };
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
    pub(super) fn put_back(self, work: &Work) -> Vec<PutBack> {
        let mut done = Vec::new();
        // Git is asked only when its own folders are as they should be.
        for is_own in [true, false] {
            for kept in &self.folders {
                kept.rights.lend(&kept.handle, Path::new(""));
                let mut mended = Mended { all: &self.folders, work, done: &mut done };
                kept.clear_the_way(is_own, &mut mended);
                let mut present = Present::new(|folder: &Path| listed(&kept.handle, &kept.rights, folder));
                let was_there = |name: &Path| kept.known(name).next().is_some();
                let names = kept.names.iter().filter(|name| kept.own.contains(*name) == is_own);
                let names = names.filter(|name| was_there(name) || present.may_be(name));
                let nested = kept.nested.keys().filter(|_| !is_own);
                for name in names.chain(nested) {
                    kept.mend(name, &mut mended);
                }
            }
        }
        for kept in &self.folders {
            kept.clear_below(&mut Mended { all: &self.folders, work, done: &mut done });
        }
        for kept in &self.folders {
            kept.rights.take_back(&kept.handle);
        }
        done
    }
}

/// What has been put back so far, and by which rules.
struct Mended<'m> {
    all: &'m [Kept],
    work: &'m Work,
    done: &'m mut Vec<PutBack>,
}

/// Whether something in a folder of git's own is settings.
fn is_settings(name: &Path) -> bool {
    git::SETTINGS.iter().any(|settings| name.file_name().is_some_and(|last| last == *settings))
}

impl Kept {
    fn new(guarded: Guarded) -> Result<Self, ContainError> {
        let Guarded { root, names, is_cache, removable, own } = guarded;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&root, flags, Mode::empty())
            .map_err(|error| ContainError::io(format!("open `{}`", root.display()))(error.into()))?;
        let names = BTreeSet::from_iter(names);
        let mut nested = BTreeMap::new();
        let is_at_top = |path: &Path| names.iter().any(|name| name.starts_with(path));
        let rights = Rights::default();
        // An earlier command may have taken away the rights to look.
        rights.lend(&handle, Path::new(""));
        let below = if is_cache { walk::Found::default() } else { walk::walk(&handle, &rights) };
        for (path, place) in below.names {
            for name in obeyed(&handle, &path).into_iter().filter(|name| !is_at_top(name)) {
                nested.insert(name, place.clone());
            }
        }
        let repositories = BTreeSet::from_iter(below.repositories);
        let home = Home::of_this_user();
        for (own, top) in git_folders(&nested, &repositories) {
            let of_git = git::OBEYED.iter().map(|name| own.join(name));
            let settings = git::SETTINGS.iter().map(|name| root.join(&own).join(name));
            let besides =
                settings.flat_map(|settings| git::obeyed_besides(&settings, &root.join(&top), &home));
            let shown = besides.filter_map(|path| path.strip_prefix(&root).ok().map(Path::to_owned));
            let all = of_git.chain(shown.filter(|path| !path.as_os_str().is_empty()));
            for name in all.filter(|name| !is_at_top(name)) {
                nested.entry(name).or_insert_with(|| top.clone());
            }
        }
        let (entries, between) = (Entries::new(), BTreeMap::new());
        let removable = BTreeSet::from_iter(removable);
        let kept = Self {
            root,
            handle,
            rights,
            names,
            nested,
            is_cache,
            entries,
            between,
            removable,
            own,
            repositories,
        };
        Ok(kept)
    }

    /// Whether a path that a link leads to is one to keep: neither all of this, nor kept already.
    fn can_be_kept(&self, name: &Path) -> bool {
        !name.as_os_str().is_empty() && !self.nested.contains_key(name)
    }

    fn read(&mut self) -> Result<(), ContainError> {
        let mut room = Room::full();
        let mut present = Present::new(|folder: &Path| listed(&self.handle, &self.rights, folder));
        let names = self.names.iter().filter(|name| present.may_be(name));
        for name in names.chain(self.nested.keys()) {
            look(&self.handle, &self.rights, name, Content::All, &mut room, &mut self.entries).ok_or_else(|| {
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
                let found = self.rights.entry(&self.handle, path, Read::All, &mut room);
                let found = found.unwrap_or_else(|error| Some(Entry::Other(error.to_string())));
                let found = found.map(|entry| self.rights.without(path, entry));
                self.between.insert(path.to_owned(), found);
            }
        }
        Ok(())
    }

    /// Sees that protected files are looked for where they were: a link, or a `.git` that is a file, leads elsewhere.
    fn clear_the_way(&self, is_own: bool, mended: &mut Mended<'_>) {
        let (all, work) = (mended.all, mended.work);
        let mut tell = |path: &Path, how| mended.done.push(PutBack { path: self.root.join(path), how });
        let of_this_turn = |path: &Path| self.own.iter().any(|name| name.starts_with(path)) == is_own;
        for (path, before) in self.between.iter().filter(|(path, _)| of_this_turn(path)) {
            let read = match before {
                Some(Entry::File { content, .. }) => Read::OfSize(content.len()),
                _ => Read::Nothing,
            };
            let now = self.find(path, read);
            if now == *before || self.is_removed(path) {
                continue;
            }
            match (before, now) {
                // Git removes folders with the last file in them.
                (Some(Entry::Folder { .. }), None) if !is_own && self.all_had(path, work) => {}
                (Some(before), _) => tell(path, self.restore(path, path, before)),
                // What is in a new folder is looked at later; a file or link would lead elsewhere.
                (None, Some(Entry::Folder { .. })) => self.rights.lend(&self.handle, path),
                (None, None) => {}
                // A worktree of this repository, say, in a folder that was none.
                (None, Some(_)) if self.is_harmless_repository(all, path) => {}
                (None, Some(_)) => tell(path, self.set_aside(path, path)),
            }
        }
    }

    /// Whether a path was removed together with a folder that may be.
    fn is_removed(&self, path: &Path) -> bool {
        let find = |path: &Path| self.find(path, Read::Nothing);
        // What is replaced by a link or a file was not removed; below the top somebody else looks.
        let is_gone = |place: &Path| find(place).is_none();
        let is_no_folder = |place: &Path| !matches!(find(place), Some(Entry::Folder { .. }));
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

    /// Whether git had what is at a path now, and is let put it there.
    fn had(&self, path: &Path, work: &Work) -> bool {
        work.brought.as_ref().is_some_and(|before| before.had(&self.root.join(path)))
    }

    /// The same of all protected files that were below a folder.
    fn all_had(&self, folder: &Path, work: &Work) -> bool {
        let mut files = self.known(folder).filter(|(_, entry)| !entry.is_folder());
        files.all(|(path, _)| self.had(path, work))
    }

    /// The same of all that is at a path now and below it.
    fn all_new_had(&self, path: &Path, work: &Work) -> bool {
        let mut now = Entries::new();
        let (known, mut room) = (Entries::new(), Room::full());
        let looked = work
            .brought
            .is_some()
            .then(|| look(&self.handle, &self.rights, path, Content::Of(&known), &mut room, &mut now));
        looked.flatten().is_some()
            && now.iter().filter(|(_, entry)| !entry.is_folder()).all(|(path, _)| self.had(path, work))
    }

    /// Whether git's settings differ only in what git notes in them.
    fn are_settings_of_git(&self, path: &Path, before: &Entry, work: &Work) -> bool {
        let is_it = work.settings && self.own.contains(path) && is_settings(path);
        let Entry::File { content, mode, owner } = before else { return false };
        let now = self.rights.entry(&self.handle, path, Read::All, &mut Room::full());
        let Ok(Some(Entry::File { content: new, mode: new_mode, owner: new_owner })) = now else {
            return false;
        };
        let (Ok(was), Ok(now)) = (std::str::from_utf8(content), std::str::from_utf8(&new)) else {
            return false;
        };
        is_it && (*mode, *owner) == (new_mode, new_owner) && git::changes_only_what_branches_follow(was, now)
    }

    /// Puts back what belongs to one protected path.
    fn mend(&self, name: &Path, mended: &mut Mended<'_>) {
        if self.is_removed(name) {
            return;
        }
        let work = mended.work;
        let is_of_git = self.own.contains(name);
        let mut tell = |path: &Path, how| mended.done.push(PutBack { path: self.root.join(path), how });
        let known = || self.known(name);
        let mut now = Entries::new();
        let mut room = Room { files: FILES_MAX * 2, bytes: BYTES_MAX * 2 };
        let content = Content::Of(&self.entries);
        if look(&self.handle, &self.rights, name, content, &mut room, &mut now).is_none() {
            // What cannot be looked at is not left where it is obeyed.
            tell(name, self.set_aside(name, name));
            now.clear();
        }
        let is_new = |path: &Path| now.contains_key(path) && !self.entries.contains_key(path);
        for path in now.keys().filter(|path| is_new(path)) {
            // A new folder is set aside with all that is in it.
            let is_within_new = path.ancestors().skip(1).any(is_new);
            let is_harmless = || path == name && repository::is_harmless(&self.handle, &self.rights, path);
            let is_brought = || !is_of_git && self.all_new_had(path, work);
            if !is_within_new && !is_harmless() && !is_brought() {
                tell(path, self.set_aside(path, name));
            }
        }
        for (path, entry) in known().filter(|(path, entry)| now.get(*path) != Some(*entry)) {
            let is_gone = |path: &Path| self.find(path, Read::Nothing).is_none();
            let is_brought = match entry {
                Entry::Folder { .. } => is_gone(path) && self.all_had(path, work),
                _ => self.had(path, work),
            };
            if self.are_settings_of_git(path, entry, work) || !is_of_git && is_brought {
                continue;
            }
            tell(path, self.restore(path, name, entry));
        }
    }

    /// What is at a path now, whatever rights a command has taken away.
    fn find(&self, path: &Path, read: Read) -> Option<Entry> {
        let found = self.rights.entry(&self.handle, path, read, &mut Room::full());
        let found = found.unwrap_or_else(|error| Some(Entry::Other(error.to_string())));
        found.map(|entry| self.rights.without(path, entry))
    }

    fn set_aside(&self, path: &Path, top: &Path) -> PutBackHow {
        mend::set_aside(&self.handle, &self.rights, path, top, &self.root)
    }

    fn restore(&self, path: &Path, top: &Path, entry: &Entry) -> PutBackHow {
        mend::restore(&self.handle, &self.rights, path, top, entry, &self.root)
    }

    /// Sets aside what was made in folders below and is run or obeyed there.
    fn clear_below(&self, mended: &mut Mended<'_>) {
        let (all, work) = (mended.all, mended.work);
        let mut tell = |path: &Path, how| mended.done.push(PutBack { path: self.root.join(path), how });
        if self.is_cache {
            return;
        }
        let found = walk::walk(&self.handle, &self.rights);
        if let Some(problem) = found.incomplete {
            tell(Path::new(""), PutBackHow::Failed(problem));
        }
        for path in found.names.keys() {
            let was_kept = |name: &PathBuf| self.names.contains(name) || self.nested.contains_key(name);
            let was_between = self.between.get(path).is_some_and(Option::is_some);
            let is_known = was_between || obeyed(&self.handle, path).iter().any(was_kept);
            let is_brought = || !path.ends_with(GIT) && self.all_new_had(path, work);
            if !is_known && !self.is_harmless_repository(all, path) && !is_brought() {
                tell(path, self.set_aside(path, path));
            }
        }
        // Without it git does not take the folder for its own. The rest may be somebody's work.
        for own in found.repositories.iter().filter(|own| !self.is_known_repository(own)) {
            if !self.is_harmless_at(own) {
                let head = own.join(HEAD);
                tell(&head, self.set_aside(&head, &head));
            }
        }
    }

    /// Whether a folder was git's own before.
    fn is_known_repository(&self, own: &Path) -> bool {
        self.repositories.contains(own) || git::OBEYED.iter().any(|name| self.own.contains(&own.join(name)))
    }
}

/// The folders of git's own among what was found, each with the folder that hooks are named from.
fn git_folders(
    nested: &BTreeMap<PathBuf, PathBuf>,
    repositories: &BTreeSet<PathBuf>,
) -> Vec<(PathBuf, PathBuf)> {
    let of_git = |name: &PathBuf| name.parent().filter(|own| own.ends_with(GIT)).map(Path::to_owned);
    let mut all: Vec<(PathBuf, PathBuf)> = nested
        .keys()
        .filter_map(of_git)
        .map(|own| (own.clone(), own.parent().unwrap_or(Path::new("")).to_owned()))
        .collect();
    all.extend(repositories.iter().map(|own| (own.clone(), own.clone())));
    all.dedup();
    all
}

fn listed(root: &OwnedFd, rights: &Rights, folder: &Path) -> Listed {
    let opened = match rights.open(root, folder) {
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
mod tests;
