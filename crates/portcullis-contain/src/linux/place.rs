//! The folder of one run: what the helper reports, and the command's own folder for temporary files.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use portcullis_core::profile::{Network, Profile};
use tempfile::TempDir;

use super::proxy::Handover;
use crate::error::ContainError;
use crate::profile::Invocation;

/// Where it is made if the caller's folder for temporary files is one that the command may write.
const OTHERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Most entries that are removed one by one.
const ENTRIES_MAX: u32 = 1 << 20;

/// The folder. It is removed with all that is in it.
#[derive(Debug)]
pub(super) struct Place {
    folder: TempDir,
    /// Something that was left running uses it.
    is_left: bool,
}

impl Place {
    /// Makes it, outside of the folders that the command may write: otherwise it could write the report.
    pub(super) fn make(user: Option<(u32, u32)>, write: &[PathBuf]) -> Result<Self, ContainError> {
        let failed = || ContainError::io("make a private folder for temporary files");
        let write: Vec<PathBuf> = write.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let all = std::iter::once(std::env::temp_dir()).chain(OTHERS.map(PathBuf::from));
        let mut all = all.filter_map(|path| path.canonicalize().ok());
        let Some(within) = all.find(|path| !write.iter().any(|root| path.starts_with(root))) else {
            let why = "`write` has every folder for temporary files: one has to be left for the run itself";
            return Err(ContainError::Profile(why.to_owned()));
        };
        let folder =
            tempfile::Builder::new().prefix("portcullis-run-").tempdir_in(within).map_err(failed())?;
        let place = Self { folder, is_left: false };
        File::create_new(place.report()).map_err(failed())?;
        fs::create_dir(place.temporary()).map_err(failed())?;
        if let Some((user, group)) = user {
            for path in [place.folder.path(), &place.report(), &place.temporary()] {
                chown(path, Some(user), Some(group)).map_err(failed())?;
            }
        }
        Ok(place)
    }

    /// Leaves it to what was left running, and to the helper, which removes it when that has ended.
    pub(super) fn leave(mut self) {
        let _gone = fs::remove_file(self.report());
        self.folder.disable_cleanup(true);
        // That has ended already where this works.
        let _used = fs::remove_dir(self.folder.path());
        self.is_left = true;
    }

    /// Where the helper reports. The command has no way to it.
    pub(super) fn report(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// The same, to be locked: the helper starts the command when it is not locked any more.
    pub(super) fn gate(&self) -> Result<File, ContainError> {
        File::open(self.report()).map_err(ContainError::io("open the report"))
    }

    /// Where the helper hands out the proxy's socket.
    pub(super) fn handover(&self) -> PathBuf {
        self.folder.path().join("proxy")
    }

    /// The place for that, where the profile names hosts.
    pub(super) fn handover_for(
        &self,
        profile: &Profile,
        command: &Invocation,
    ) -> Result<Option<Handover>, ContainError> {
        if !matches!(profile.network, Network::Hosts(_)) {
            return Ok(None);
        }
        let what = format!("a socket at `{}` (a shorter TMPDIR may help)", self.handover().display());
        Handover::at(&self.handover(), command.user).map(Some).map_err(ContainError::io(what))
    }

    /// Where repositories are that were fetched for the command.
    pub(super) fn fetched(&self) -> PathBuf {
        self.folder.path().join("fetched")
    }

    /// The command's own folder for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        let top = self.temporary();
        if fs::remove_dir_all(&top).is_err() {
            clear(&top);
        }
    }
}

/// Removes what is in a folder whose folders cannot be opened, or lie too deep in each other: each is opened, and what
/// is in it moved up.
fn clear(top: &Path) {
    let mut left = ENTRIES_MAX;
    loop {
        let before = left;
        for folder in entries(top) {
            for inner in entries(&folder) {
                left = left.saturating_sub(1);
                // Where it fails the next round sees it again.
                let _next = fs::rename(&inner, top.join(format!("portcullis-{left}")));
            }
            let _next = fs::remove_dir(&folder);
            left = left.saturating_sub(1);
        }
        if left == 0 || left == before {
            return;
        }
    }
}

/// The folders in a folder, which is opened for it. Everything else in it is removed.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let _opened = fs::set_permissions(folder, Permissions::from_mode(0o700));
    let found = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let (folders, files): (Vec<_>, Vec<_>) =
        found.partition(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for file in files {
        let _next = fs::remove_file(file.path());
    }
    folders.into_iter().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_or_lies_deep_is_removed_too() {
        let place = Place::make(None, &[]).unwrap();
        let (folder, top) = (place.folder.path().to_owned(), place.temporary());
        let mut deep = top.clone();
        for _ in 0..200 {
            let up = top.join("up");
            fs::create_dir(&up).unwrap();
            if deep != top {
                fs::rename(&deep, up.join("down")).unwrap();
            }
            deep = top.join("whole");
            fs::rename(&up, &deep).unwrap();
        }
        fs::create_dir_all(top.join("shut/inner")).unwrap();
        fs::write(top.join("shut/file"), "x").unwrap();
        fs::set_permissions(top.join("shut"), Permissions::from_mode(0o000)).unwrap();
        clear(&top);
        assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
        drop(place);
        assert!(!folder.exists());
    }

    #[test]
    fn the_report_is_never_where_the_command_may_write() {
        let temporary = std::env::temp_dir();
        let place = Place::make(None, std::slice::from_ref(&temporary)).unwrap();
        assert!(!place.report().starts_with(temporary.canonicalize().unwrap()));
        let all: Vec<PathBuf> = OTHERS.map(PathBuf::from).into_iter().chain([temporary]).collect();
        let refused = Place::make(None, &all).unwrap_err().to_string();
        assert!(refused.contains("every folder for temporary files"), "{refused}");
    }
}
