//! Repositories that a command made: those that make git run nothing are left alone.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Kept;
use super::entry::{self, Content, Entries, Entry, Read, Room, above_of, entry as look_at, look};
use super::rights::Rights;
use crate::git;
use crate::protected::GIT;

/// What `commondir` of a worktree says: the folder that it shares is two above.
const SHARED: &str = "../..";

/// Whether something new that git obeys makes it run nothing: settings without programs, or samples of hooks.
pub(super) fn is_harmless(root: &OwnedFd, rights: &Rights, path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("config") => text(root, path).is_some_and(|text| git::is_harmless(&text)),
        Some("hooks") => has_samples_only(root, rights, path),
        _ => false,
    }
}

fn has_samples_only(root: &OwnedFd, rights: &Rights, path: &Path) -> bool {
    let mut entries = Entries::new();
    let known = Entries::new();
    if look(root, rights, path, Content::Of(&known), &mut Room::full(), &mut entries).is_none() {
        return false;
    }
    let is_sample = |(inner, entry): (&PathBuf, &Entry)| {
        inner == path
            || matches!(entry, Entry::File { .. }) && inner.extension().is_some_and(|end| end == "sample")
    };
    matches!(entries.get(path), Some(Entry::Folder { .. })) && entries.iter().all(is_sample)
}

fn text(root: &OwnedFd, path: &Path) -> Option<String> {
    let (above, name) = (above_of(root, path.parent()?).ok()?, path.file_name()?);
    let stat = rustix::fs::statat(&above, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_small = u64::try_from(stat.st_size).is_ok_and(|size| size <= git::SETTINGS_BYTES_MAX);
    let content = entry::content(&above, name, &mut Room::full()).ok().filter(|_| is_small)?;
    String::from_utf8(content).ok()
}

/// What is at a path of git's own.
fn at(root: &OwnedFd, path: &Path) -> Option<Entry> {
    look_at(root, path, Read::Nothing, &mut Room::full())
        .unwrap_or_else(|error| Some(Entry::Other(error.to_string())))
}

impl Kept {
    /// Whether a new `.git` leads to a repository that makes git run nothing, now or after another command.
    pub(super) fn is_harmless_repository(&self, all: &[Self], path: &Path) -> bool {
        if path.file_name().is_none_or(|name| name != GIT) {
            return false;
        }
        match at(&self.handle, path) {
            Some(Entry::Folder { .. }) => self.is_harmless_folder(path),
            Some(Entry::File { .. }) => self.leads_to_one_of_ours(all, path),
            _ => false,
        }
    }

    /// Whether git runs nothing because of a folder of its own.
    fn is_harmless_folder(&self, own: &Path) -> bool {
        let root = &self.handle;
        let absent = |name: &str| at(root, &own.join(name)).is_none();
        let or_harmless = |name: &str| absent(name) || is_harmless(root, &self.rights, &own.join(name));
        absent("commondir") && absent("config.worktree") && or_harmless("config") && or_harmless("hooks")
    }

    /// Whether git runs nothing because of a folder of its own that is called otherwise.
    pub(super) fn is_harmless_at(&self, own: &Path) -> bool {
        if own.parent().is_some_and(|within| within.ends_with("worktrees")) {
            return self.shares_a_folder(own);
        }
        self.is_harmless_folder(own)
    }

    /// Whether a worktree's folder shares the one that it is in, and has no settings of its own.
    fn shares_a_folder(&self, own: &Path) -> bool {
        text(&self.handle, &own.join("commondir")).is_some_and(|said| said.trim_end() == SHARED)
            && at(&self.handle, &own.join("config.worktree")).is_none()
            && at(&self.handle, &own.join("hooks")).is_none()
    }

    /// Whether a `.git` that is a file leads to a worktree or a submodule of a repository whose files are protected.
    fn leads_to_one_of_ours(&self, all: &[Self], path: &Path) -> bool {
        let said = text(&self.handle, path);
        let Some(named) = said.as_deref().and_then(|said| said.strip_prefix("gitdir: ")) else {
            return false;
        };
        let place = self.root.join(path.parent().unwrap_or(Path::new("")));
        let own = git::plain(&place.join(named.trim_end_matches('\n')));
        let holder = all.iter().find_map(|kept| Some((kept, own.strip_prefix(&kept.root).ok()?)));
        let Some((kept, own)) = holder else { return false };
        let is_git = |folder: &Path| kept.names.contains(&folder.join("commondir"));
        let above = |kind: &str| {
            own.ancestors()
                .skip(1)
                .find(|above| above.ends_with(kind))
                .and_then(Path::parent)
                .is_some_and(is_git)
        };
        let shares =
            || own.parent().is_some_and(|within| within.ends_with("worktrees")) && kept.shares_a_folder(own);
        above("worktrees") && shares() || above("modules") && kept.is_harmless_folder(own)
    }
}
