//! A copy of a state folder, made while its daemon runs.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use portcullis_ledger::log::{LogError, LogPlaces, check_standing};
use portcullis_ledger::{LedgerError, copy_file, copy_folder, copy_store};

use crate::daemon::mark::{self, MarkError};
use crate::home::Home;

/// How deep the folder of accepted tools is copied.
const LISTINGS_DEPTH_MAX: usize = 3;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something is there already.
    #[error("`{}` exists already; name a folder that does not, which is made", .0.display())]
    Exists(PathBuf),
    /// The copy would be part of what is copied.
    #[error("`{}` is in the state folder itself; name a folder elsewhere", .0.display())]
    Inside(PathBuf),
    /// There is nothing to copy.
    #[error("there is no store in `{}` yet", .0.display())]
    NoStore(PathBuf),
    /// The store of this state folder is gone or another one.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// A file or folder of the copy cannot be made.
    #[error("cannot make `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The store or its log cannot be copied.
    #[error("the store could not be copied: {0}")]
    Store(#[from] LedgerError),
    /// The copies of the store and of its log do not fit each other.
    #[error("the copy of the log does not fit that of the store: {0}")]
    Log(#[source] LogError),
}

/// Copies store, transparency log, accepted tools and the choice of the bundle to `target`, a new folder: a state folder
/// of its own, without credentials and keys. It is put into place as a whole; files are readable by their owner alone.
///
/// # Errors
/// [`BackupError`]; nothing is left behind then.
pub fn backup(home: &Home, target: &Path) -> Result<(), BackupError> {
    if fs::symlink_metadata(target).is_ok() {
        return Err(BackupError::Exists(target.to_owned()));
    }
    let failed = |path: &Path, source| BackupError::Io { path: path.to_owned(), source };
    let above = match target.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let above = fs::canonicalize(above).map_err(|error| failed(above, error))?;
    if fs::canonicalize(home.path()).is_ok_and(|home| above.starts_with(home)) {
        return Err(BackupError::Inside(target.to_owned()));
    }
    mark::check_there(&home.store_mark(), &home.ledger())?;
    if !home.store().exists() {
        return Err(BackupError::NoStore(home.path().to_owned()));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let partial = above.join(format!(".{name}.partial-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&partial).map_err(|error| failed(&partial, error))?;
    let copied = fill(home, &partial).and_then(|()| {
        // Renaming replaces an empty folder, which may be there by now.
        match fs::symlink_metadata(target) {
            Ok(_) => Err(BackupError::Exists(target.to_owned())),
            Err(_) => fs::rename(&partial, target).map_err(|error| failed(target, error)),
        }
    });
    if copied.is_err() {
        // The error says what was wrong; a rest that cannot be removed has a name that tells what it is.
        let _left = fs::remove_dir_all(&partial);
    }
    copied
}

fn fill(home: &Home, to: &Path) -> Result<(), BackupError> {
    let places = LogPlaces::beside(&to.join("ledger"));
    copy_store(&home.store().log(), &places)?;
    if let Err(error @ LogError::LedgerBehind { .. }) = check_standing(&places) {
        return Err(BackupError::Log(error));
    }
    for file in [home.store_mark(), home.bundle()] {
        if let Some(name) = file.file_name() {
            copy_file(&file, &to.join(name))?;
        }
    }
    let listings = home.listings();
    if let Some(name) = listings.file_name().filter(|_| listings.exists()) {
        copy_folder(&listings, &to.join(name), LISTINGS_DEPTH_MAX)?;
    }
    Ok(())
}
