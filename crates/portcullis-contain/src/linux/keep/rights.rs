//! Rights that the owner of folders is lent: a command may have taken them away, so that nobody can look or put back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::entry::{Entry, OWNER, Read, Room, below, entry, folder_mode, set_mode};

/// The folders below one whose owner was lent rights, with the permissions that they had.
#[derive(Debug, Default)]
pub(super) struct Rights {
    lent: RefCell<BTreeMap<PathBuf, u32>>,
}

impl Rights {
    /// Lets the owner look into a folder and those above it, and change what is in them.
    pub(super) fn lend(&self, root: &OwnedFd, folder: &Path) {
        let mut way: Vec<&Path> = folder.ancestors().collect();
        way.reverse();
        for path in way {
            let Ok(mode) = folder_mode(root, path) else { return };
            // Where that fails, the folder is somebody else's, and a command could not change it either.
            if mode & OWNER != OWNER && set_mode(root, path, mode | OWNER).is_ok() {
                self.lent.borrow_mut().entry(path.to_owned()).or_insert(mode);
            }
        }
    }

    /// What is at a path; the owner is lent the rights to look.
    pub(super) fn entry(
        &self,
        root: &OwnedFd,
        path: &Path,
        read: Read,
        room: &mut Room,
    ) -> Result<Option<Entry>, Errno> {
        match (entry(root, path, read, room), path.parent()) {
            (Err(Errno::ACCESS), Some(above)) => {
                self.lend(root, above);
                entry(root, path, read, room)
            }
            (other, _) => other,
        }
    }

    /// Opens a folder to list it; the owner is lent the rights to do so.
    pub(super) fn open(&self, root: &OwnedFd, folder: &Path) -> Result<OwnedFd, Errno> {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let open = || below(root, shown, OFlags::RDONLY | OFlags::DIRECTORY);
        match open() {
            Err(Errno::ACCESS) => {
                self.lend(root, folder);
                open()
            }
            other => other,
        }
    }

    /// What is at a path, as it was before its owner was lent rights.
    pub(super) fn without(&self, path: &Path, entry: Entry) -> Entry {
        match (entry, self.lent.borrow().get(path)) {
            (Entry::Folder { mode }, Some(had)) if mode == *had | OWNER => Entry::Folder { mode: *had },
            (entry, _) => entry,
        }
    }

    /// A folder has the permissions that it is meant to keep.
    pub(super) fn settle(&self, folder: &Path) {
        self.lent.borrow_mut().remove(folder);
    }

    /// What was at a path is there no more.
    pub(super) fn forget(&self, path: &Path) {
        self.lent.borrow_mut().retain(|folder, _| !folder.starts_with(path));
    }

    /// Gives the folders the permissions again that they had.
    pub(super) fn take_back(&self, root: &OwnedFd) {
        while let Some((path, had)) = self.lent.borrow_mut().pop_last() {
            if folder_mode(root, &path) == Ok(had | OWNER) {
                // It stays readable for its owner alone where that fails.
                let _open = set_mode(root, &path, had);
            }
        }
    }
}
