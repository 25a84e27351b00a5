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

/// The most states that are set aside beside one.
const ASIDE_MAX: usize = 16;

/// A file of state, held until this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    _lock: File,
}

impl Kept {
    /// Takes hold of a state and reads it, or `None` if there is no file yet.
    pub(crate) fn open(path: &Path, bytes_max: u64) -> Result<(Self, Option<Vec<u8>>), KeptError> {
        let kept = Self::hold(path)?;
        let bytes = kept.read(bytes_max)?;
        Ok((kept, bytes))
    }

    /// Takes hold of a state.
    pub(crate) fn hold(path: &Path) -> Result<Self, KeptError> {
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
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Reads the state, or `None` if there is no file yet.
    pub(crate) fn read(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, KeptError> {
        match fs::metadata(&self.path) {
            Ok(meta) if meta.len() > bytes_max => {
                Err(self.malformed(format!("it has more than {bytes_max} bytes")))
            }
            Ok(_) => Ok(Some(fs::read(&self.path).map_err(|error| failed(&self.path, error))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&self.path, error)),
        }
    }

    /// Moves a state that cannot be used out of the way, to a name that is free.
    pub(crate) fn set_aside(&self) -> Result<(), KeptError> {
        let free = (1..=ASIDE_MAX).map(|number| beside(&self.path, &format!(".unusable-{number}")));
        let Some(aside) = free.into_iter().find(|path| !path.exists()) else {
            let why = format!(
                "it cannot be used, and {ASIDE_MAX} like it lie beside it; look into them, and remove them"
            );
            return Err(self.malformed(why));
        };
        match fs::rename(&self.path, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&self.path, error)),
            _ => Ok(()),
        }
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

fn failed(path: &Path, source: io::Error) -> KeptError {
    KeptError::Io { path: path.to_owned(), source }
}

/// A file beside another.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
