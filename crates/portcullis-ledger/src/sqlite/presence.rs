//! Whether the files of a store are still those that were opened.
//!
//! A process that has a file open goes on writing to it after it was removed or replaced, and SQLite does not say so: what
//! is committed then is gone with the process. So each commit looks at the names again.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::LedgerError;

/// The files of a store as they were when it was opened: the database and its write-ahead log.
#[derive(Debug, Clone)]
pub(crate) struct Presence {
    database: PathBuf,
    files: Vec<(PathBuf, u64, u64)>,
}

impl Presence {
    /// Remembers the files of a database that is open for writing in this process.
    pub(crate) fn of(database: &Path) -> Result<Self, LedgerError> {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let mut files = Vec::new();
        for path in [database.to_owned(), PathBuf::from(log)] {
            let meta = fs::metadata(&path).map_err(|error| LedgerError::io(&path, "look at", &error))?;
            files.push((path, meta.dev(), meta.ino()));
        }
        Ok(Self { database: database.to_owned(), files })
    }

    /// Two system calls. Gives the length of the write-ahead log, in bytes.
    ///
    /// # Errors
    /// [`LedgerError::Gone`] if a file was removed or replaced.
    pub(crate) fn check(&self) -> Result<u64, LedgerError> {
        let mut length = 0;
        for (path, dev, ino) in &self.files {
            match fs::metadata(path) {
                Ok(meta) if (meta.dev(), meta.ino()) == (*dev, *ino) => length = meta.len(),
                _ => return Err(LedgerError::Gone { place: self.database.display().to_string() }),
            }
        }
        Ok(length)
    }
}
