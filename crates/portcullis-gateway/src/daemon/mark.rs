//! The mark of a store: a file of the state folder, outside of the store's, that says which store was made here. A store
//! that is gone or another one is not taken for a new beginning.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_ledger::log::{LogError, put};

use crate::state_file;

/// Longest mark, in bytes: a name and a newline, with room to spare.
const ORIGIN_BYTES_MAX: u64 = 1 << 10;

/// Why the mark and the store do not agree.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// There was a store.
    #[error(
        "the store `{origin}` in `{}` is gone; restore a copy of it, or, to begin a new record, remove `{}`", folder.display(), mark.display()
    )]
    Gone {
        /// Its name.
        origin: String,
        /// Its folder.
        folder: PathBuf,
        /// The mark.
        mark: PathBuf,
    },
    /// There was a store, and its database is cut off.
    #[error(
        "the store `{origin}` is truncated: `{}` is empty; restore a copy of it, or, to begin a new record, remove `{}` and \
         `{}`", database.display(), database.display(), mark.display()
    )]
    Cut {
        /// Its name.
        origin: String,
        /// Its database.
        database: PathBuf,
        /// The mark.
        mark: PathBuf,
    },
    /// There was another store.
    #[error(
        "`{}` holds the store `{found}`, where `{origin}` was kept; restore a copy of that one, or, to go on with this one, remove `{}`", folder.display(), mark.display()
    )]
    Another {
        /// The name of the one that was.
        origin: String,
        /// The name of the one that is.
        found: String,
        /// The folder.
        folder: PathBuf,
        /// The mark.
        mark: PathBuf,
    },
    /// The mark cannot be read.
    #[error(
        "cannot read `{}`, which names the store of this folder: {source}; put it back from a backup, or, to go on with \
         the store that is there, remove it", path.display()
    )]
    Unreadable {
        /// The mark.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The mark cannot be written.
    #[error(transparent)]
    Put(#[from] LogError),
}

/// The name in the mark, or `None` if there is no mark yet.
fn marked(mark: &Path) -> Result<Option<String>, MarkError> {
    match state_file::read(mark, ORIGIN_BYTES_MAX) {
        Ok(origin) => Ok(Some(origin.trim_end().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(MarkError::Unreadable { path: mark.to_owned(), source }),
    }
}

/// Refuses a store that is gone or empty. To be asked before a store is opened, which would make a new one.
///
/// # Errors
/// The mark names a store, and there is none, or nothing is left in its database.
pub fn check_there(mark: &Path, folder: &Path) -> Result<(), MarkError> {
    let Some(origin) = marked(mark)? else { return Ok(()) };
    let (database, mark) = (folder.join("ledger.db"), mark.to_owned());
    match fs::metadata(&database) {
        // A store has a page from the moment that it is made, before it is marked.
        Ok(meta) if meta.len() == 0 => Err(MarkError::Cut { origin, database, mark }),
        Ok(_) => Ok(()),
        Err(_) => Err(MarkError::Gone { origin, folder: folder.to_owned(), mark }),
    }
}

/// Refuses another store than the one that was kept here.
///
/// # Errors
/// The mark names another store.
pub fn check_same(mark: &Path, folder: &Path, found: &str) -> Result<(), MarkError> {
    match marked(mark)? {
        Some(origin) if origin != found => Err(MarkError::Another {
            origin,
            found: found.to_owned(),
            folder: folder.to_owned(),
            mark: mark.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Marks a store as the one that is kept here.
///
/// # Errors
/// The mark names another store, or cannot be written.
pub(super) fn make(mark: &Path, folder: &Path, origin: &str) -> Result<(), MarkError> {
    check_same(mark, folder, origin)?;
    Ok(put(mark, format!("{origin}\n").as_bytes(), 0o600)?)
}
