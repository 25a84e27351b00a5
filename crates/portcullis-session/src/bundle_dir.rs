//! Reads a bundle from a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::{Bundle, Diagnostic};
use portcullis_core::limits::{BUNDLE_FILE_BYTES_MAX, BUNDLE_FILES_MAX};

/// Deepest folder of a bundle.
const FOLDER_DEPTH_MAX: usize = 8;

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
    #[error("the bundle at `{}` has {} mistake{}: {}", folder.display(), diagnostics.len(),
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
/// followed, as bundles are often mounted that way.
pub fn read_files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut files = BTreeMap::new();
    collect(folder, "", 0, &mut files)?;
    Ok(files)
}

fn collect(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), BundleError> {
    let failed = |path: &Path, source: io::Error| BundleError::Io { path: path.to_owned(), source };
    if depth > FOLDER_DEPTH_MAX {
        let why = format!("folders are nested deeper than {FOLDER_DEPTH_MAX} levels");
        return Err(failed(folder, io::Error::other(why)));
    }
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(failed(&path, io::Error::other("the file name is not UTF-8")));
        };
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        let meta = fs::metadata(&path).map_err(|error| failed(&path, error))?;
        if meta.is_dir() {
            collect(&path, &format!("{name}/"), depth + 1, files)?;
        } else {
            if files.len() >= BUNDLE_FILES_MAX {
                let why = format!("a bundle has at most {BUNDLE_FILES_MAX} files");
                return Err(failed(folder, io::Error::other(why)));
            }
            if meta.len() > BUNDLE_FILE_BYTES_MAX as u64 {
                let why = format!("the file has {} bytes; the limit is {BUNDLE_FILE_BYTES_MAX}", meta.len());
                return Err(failed(&path, io::Error::other(why)));
            }
            files.insert(name, fs::read(&path).map_err(|error| failed(&path, error))?);
        }
    }
    Ok(())
}
