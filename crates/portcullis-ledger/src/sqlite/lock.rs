//! The writer's lock: how a sibling knows whether a writer is alive.
//!
//! Each process that writes holds an exclusive lock on its own file for its whole life. The operating system
//! lets go of it when the process ends, in whatever way. A time-out could not tell a dead writer from a slow one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::LedgerError;

/// An unheld lock file is removed when it is older than this: a writer that is starting has created its file but may
/// not hold it yet.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// A held lock.
#[derive(Debug)]
pub(crate) struct WriterLock {
    path: PathBuf,
    /// Holding the file is holding the lock.
    file: File,
}

impl WriterLock {
    /// Creates and takes the lock of a new writer.
    pub(crate) fn create(folder: &Path, writer: &str) -> Result<WriterLock, LedgerError> {
        let path = lock_path(folder, writer);
        let file =
            File::create_new(&path).map_err(|error| LedgerError::io(&path, "create the lock", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(WriterLock { path, file }),
            Err(error) => Err(LedgerError::io(&path, "take the lock", &io::Error::from(error))),
        }
    }

    /// Takes the lock of a writer that is dead, or `None` if it is alive.
    pub(crate) fn of_dead(folder: &Path, writer: &str) -> Result<Option<WriterLock>, LedgerError> {
        let path = lock_path(folder, writer);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| LedgerError::io(&path, "open the lock", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(WriterLock { path, file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(LedgerError::io(&path, "take the lock", &error)),
        }
    }

    /// Lets go and removes the file. Only for a writer that has no open segment.
    pub(crate) fn remove(self) {
        // A file that stays costs a folder entry, and is removed by a later start.
        let _ = fs::remove_file(&self.path);
        drop(self.file);
    }
}

fn lock_path(folder: &Path, writer: &str) -> PathBuf {
    folder.join(format!("{writer}.lock"))
}

/// How many processes write: those that hold their lock.
pub(crate) fn living(folder: &Path) -> Result<usize, LedgerError> {
    let entries = fs::read_dir(folder).map_err(|error| LedgerError::io(folder, "list", &error))?;
    let held = |path: PathBuf| {
        path.extension().is_some_and(|ending| ending == "lock")
            && File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    };
    Ok(entries.filter_map(Result::ok).filter(|entry| held(entry.path())).count())
}

/// Removes the lock files of dead writers; `keep` says which still have an open segment.
pub(crate) fn remove_stale(folder: &Path, keep: impl Fn(&str) -> bool) -> Result<(), LedgerError> {
    let entries = fs::read_dir(folder).map_err(|error| LedgerError::io(folder, "list", &error))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(writer) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else { continue };
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > STALE_AFTER)
            && !keep(writer)
            && let Ok(Some(lock)) = WriterLock::of_dead(folder, writer)
        {
            lock.remove();
        }
    }
    Ok(())
}
