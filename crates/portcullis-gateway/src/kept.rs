//! A file of state that one process at a time holds, read whole and put whole.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use portcullis_ledger::log::{LogError, put};

/// Why a state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It is not one.
    #[error("the state `{}` cannot be read: {message}; restore the newest copy of it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Another process has it.
    #[error("another process has the state `{}`", .0.display())]
    Busy(PathBuf),
    /// The system refused.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It could not be written.
    #[error(transparent)]
    Put(#[from] LogError),
}

/// A file of state, held until this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    _lock: File,
}

impl Kept {
    /// Takes hold of a state and reads it; none where there is no file yet.
    pub(crate) fn open(path: &Path, bytes_max: u64) -> Result<(Self, Option<Vec<u8>>), KeptError> {
        let failed = |path: &Path, source| KeptError::Io { path: path.to_owned(), source };
        // Beside the file, which is replaced whenever it changes.
        let lock_path = beside(path, ".lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| failed(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(KeptError::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(&lock_path, error)),
        }
        let kept = Self { path: path.to_owned(), _lock: lock };
        let bytes = match fs::metadata(path) {
            Ok(meta) if meta.len() > bytes_max => {
                return Err(kept.malformed(format!("it has more than {bytes_max} bytes")));
            }
            Ok(_) => Some(fs::read(path).map_err(|error| failed(path, error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(path, error)),
        };
        Ok((kept, bytes))
    }

    pub(crate) fn malformed(&self, message: String) -> KeptError {
        KeptError::Malformed { path: self.path.clone(), message }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the state, durable and whole.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<(), LogError> {
        put(&self.path, bytes, 0o600)
    }
}

/// A file beside another.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
