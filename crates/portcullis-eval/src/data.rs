//! The records of a data set: a file or a folder of files, gzip or not.
//!
//! Files are read in the order of their names and records in the order of the file, so that record number *n* is
//! the same for everybody. A file holds a JSON array of records, or JSON Lines.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// Largest file, after decompression, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// Most files of a data set.
pub const FILES_MAX: usize = 100_000;
/// Deepest folder.
pub const FOLDER_DEPTH_MAX: usize = 16;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why data could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{}`: {source}", path.display())]
pub struct DataError {
    /// Where.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl DataError {
    fn of(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path: path.clone(), source }
    }
}

/// The files of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Where they are: the folder, or the folder of the one file.
    pub root: PathBuf,
    /// Their paths in order.
    pub files: Vec<PathBuf>,
    /// Their size together, in bytes.
    pub bytes: u64,
}

impl Data {
    /// Lists what stands at `path`: the file, or all files below the folder.
    ///
    /// # Errors
    /// Nothing is there, a folder cannot be listed, or a limit is reached.
    pub fn at(path: &Path) -> Result<Self, DataError> {
        let meta = fs::metadata(path).map_err(DataError::of(path))?;
        let mut files = Vec::new();
        let root = if meta.is_dir() {
            collect(path, 0, &mut files)?;
            path.to_owned()
        } else {
            files.push((path.to_owned(), meta.len()));
            path.parent().map(Path::to_owned).unwrap_or_default()
        };
        files.sort();
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        Ok(Self { root, files: files.into_iter().map(|(path, _)| path).collect(), bytes })
    }

    /// The same without the files whose name, compression apart, does not end like that.
    #[must_use]
    pub fn ending(mut self, endings: &[&str]) -> Self {
        self.files.retain(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            endings.iter().any(|ending| name.ends_with(ending))
        });
        self
    }
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<(PathBuf, u64)>) -> Result<(), DataError> {
    let failed = DataError::of(folder);
    if depth > FOLDER_DEPTH_MAX {
        let why = format!("folders are nested deeper than {FOLDER_DEPTH_MAX} levels");
        return Err(failed(io::Error::other(why)));
    }
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let path = entry.map_err(&failed)?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        let meta = fs::metadata(&path).map_err(DataError::of(&path))?;
        if meta.is_dir() {
            collect(&path, depth + 1, files)?;
        } else {
            files.push((path, meta.len()));
        }
        if files.len() > FILES_MAX {
            return Err(failed(io::Error::other(format!("there are more than {FILES_MAX} files"))));
        }
    }
    Ok(())
}

/// The text of a file, decompressed where it is gzip.
///
/// # Errors
/// Those of reading, more than [`FILE_BYTES_MAX`] bytes, and bytes that are not UTF-8.
pub fn text(path: &Path) -> Result<String, DataError> {
    let failed = DataError::of(path);
    let mut file = File::open(path).map_err(&failed)?;
    let mut head = Vec::new();
    file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head).map_err(&failed)?;
    let gzip = head == GZIP_MAGIC;
    let whole = head.as_slice().chain(file);
    let reader: Box<dyn Read + '_> =
        if gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    let mut bytes = Vec::new();
    reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(&failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))));
    }
    String::from_utf8(bytes).map_err(|error| failed(io::Error::other(error.utf8_error())))
}

/// The records of a file in order; in place of one that is not JSON stands why. Errors carry the line.
///
/// # Errors
/// Those of [`text`], and an array that is not JSON.
pub fn records(path: &Path) -> Result<Vec<Result<Value, String>>, DataError> {
    let text = text(path)?;
    if text.trim_start().starts_with('[') {
        let array: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| DataError::of(path)(error.into()))?;
        return Ok(array.into_iter().map(Ok).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    Ok(lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
        })
        .collect())
}
