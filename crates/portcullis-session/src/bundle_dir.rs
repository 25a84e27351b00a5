//! Reads a bundle from a folder.
//!
//! The client that opens a run names the folder and the daemon reads it, so nothing in it may block the reader or
//! fill its memory. Only regular files are read, without waiting for any of them, and up to a size.

pub mod change;

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::{Bundle, Diagnostic};
use portcullis_core::limits::{BUNDLE_FILE_BYTES_MAX, BUNDLE_FILES_MAX};

use self::change::Journal;

/// Deepest folder of a bundle.
const FOLDER_DEPTH_MAX: usize = 8;
/// Entries of all folders that are read, hidden ones and folders included: four times the files that a bundle may
/// have leaves room for those.
const ENTRIES_MAX: usize = 4 * BUNDLE_FILES_MAX;
/// Size of all files together, in bytes: a bundle with a large catalogue of tables has a few MiB.
const BUNDLE_BYTES_MAX: usize = 64 << 20;

/// How often a folder is read again because somebody is changing it.
const READS_MAX: usize = 5;

/// Why a folder is not a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The folder or one of its files cannot be read.
    #[error("cannot read the bundle at `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The files do not make a bundle.
    #[error("the bundle at `{}` has {} error{}: {}", folder.display(), diagnostics.len(),
            if diagnostics.len() == 1 { "" } else { "s" },
            diagnostics.first().map(ToString::to_string).unwrap_or_default())]
    Mistakes {
        /// The folder.
        folder: PathBuf,
        /// What is wrong, one by one.
        diagnostics: Vec<Diagnostic>,
        /// The files as they were read, for showing the places.
        files: BTreeMap<String, Vec<u8>>,
    },
}

/// Loads the bundle in `folder`.
pub fn load(folder: &Path) -> Result<Bundle, BundleError> {
    load_files(folder, read_files(folder)?)
}

/// Loads what was read from `folder`.
pub(crate) fn load_files(folder: &Path, files: BTreeMap<String, Vec<u8>>) -> Result<Bundle, BundleError> {
    crate::policy::load(&files).map_err(|diagnostics| BundleError::Mistakes {
        folder: folder.to_owned(),
        diagnostics,
        files,
    })
}

/// The files of a bundle folder by path with `/` between components. Hidden files are left out; links are
/// followed, as bundles are often mounted that way. What is neither a folder nor a regular file is an error: a device
/// never ends, and a named pipe waits for a writer that may never come. While a [`change`] is made, it is the files before.
pub fn read_files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let journal = || Journal::of(folder).map_err(|error| failed(folder, error));
    let mut before = journal()?;
    for _ in 0..READS_MAX {
        let mut reader = FolderReader::default();
        let read = reader.collect(folder, "", 0);
        let after = journal()?;
        if before == after {
            read?;
            if let Some(before) = before {
                before.undo_in(&mut reader.files);
            }
            return Ok(reader.files);
        }
        before = after;
    }
    Err(refused(folder, "its files are changed again and again while they are read"))
}

/// A bundle folder while it is read.
#[derive(Debug, Default)]
struct FolderReader {
    files: BTreeMap<String, Vec<u8>>,
    entries: usize,
    bytes: usize,
}

impl FolderReader {
    fn collect(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), BundleError> {
        if depth > FOLDER_DEPTH_MAX {
            return Err(refused(folder, format!("folders are nested deeper than {FOLDER_DEPTH_MAX} levels")));
        }
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(refused(folder, format!("a bundle has at most {ENTRIES_MAX} entries")));
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(refused(&path, "the file name is not UTF-8"));
            };
            if name.starts_with('.') {
                continue;
            }
            let name = format!("{prefix}{name}");
            let meta = fs::metadata(&path).map_err(|error| failed(&path, error))?;
            if meta.is_dir() {
                self.collect(&path, &format!("{name}/"), depth + 1)?;
            } else {
                self.add(folder, &path, name, &meta)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, folder: &Path, path: &Path, name: String, meta: &Metadata) -> Result<(), BundleError> {
        if self.files.len() >= BUNDLE_FILES_MAX {
            return Err(refused(folder, format!("a bundle has at most {BUNDLE_FILES_MAX} files")));
        }
        // Checked before it is opened as well: opening a device may already have an effect.
        check_regular(path, meta)?;
        let bytes = read_regular(path)?;
        self.bytes += bytes.len();
        if self.bytes > BUNDLE_BYTES_MAX {
            return Err(refused(folder, format!("a bundle has at most {BUNDLE_BYTES_MAX} bytes")));
        }
        self.files.insert(name, bytes);
        Ok(())
    }
}

/// Reads a regular file of at most [`BUNDLE_FILE_BYTES_MAX`] bytes. It may have been replaced since it was checked,
/// so it is opened without waiting and checked again.
fn read_regular(path: &Path) -> Result<Vec<u8>, BundleError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file: File = opened.map_err(|error| failed(path, error))?;
    check_regular(path, &file.metadata().map_err(|error| failed(path, error))?)?;
    let mut bytes = Vec::new();
    let limit = BUNDLE_FILE_BYTES_MAX as u64;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
    if bytes.len() > BUNDLE_FILE_BYTES_MAX {
        return Err(refused(path, format!("the file has more than {BUNDLE_FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn check_regular(path: &Path, meta: &Metadata) -> Result<(), BundleError> {
    if !meta.is_file() {
        let why = "it is not a regular file; remove it from the bundle's folder";
        return Err(refused(path, why));
    }
    if meta.len() > BUNDLE_FILE_BYTES_MAX as u64 {
        let why = format!("the file has {} bytes; the limit is {BUNDLE_FILE_BYTES_MAX}", meta.len());
        return Err(refused(path, why));
    }
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> BundleError {
    BundleError::Io { path: path.to_owned(), source }
}

fn refused(path: &Path, why: impl Into<String>) -> BundleError {
    failed(path, io::Error::other(why.into()))
}
