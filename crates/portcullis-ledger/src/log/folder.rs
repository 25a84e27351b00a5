//! The log as files: where they are, and how one is put there so that a crash leaves the old one or the new one.
//!
//! ```text
//! STATE/
//!   ledger/log.db      what the log remembers: its last signature, the leaves that wait (trusted by the log)
//!   ledger/log.lock    held by the one process that sequences
//!   log/checkpoint     the signed tree, for everybody
//!   log/tile/...       the tree, for everybody; every byte is derived again by each reader
//!   keys/              log.key, writer-*.key
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_proof::log::{Checkpoint, TileId, TileSource};

use super::error::LogError;
use crate::ledger::Location;

/// The longest file that is read as a tile: a full bundle of the longest leaves.
const TILE_BYTES_MAX: u64 = 256 * (2 + 65_535);

/// Where the parts of a log are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlaces {
    /// The store of runs.
    pub store: Location,
    /// The folder of the log's own database and lock.
    pub database: PathBuf,
    /// What is published: `checkpoint` and `tile/`.
    pub public: PathBuf,
    /// The keys.
    pub keys: PathBuf,
}

impl LogPlaces {
    /// The usual places: beside a store in a folder.
    #[must_use]
    pub fn beside(ledger: &Path) -> LogPlaces {
        let state = ledger.parent().unwrap_or(Path::new("."));
        let store = Location::Folder(ledger.to_owned());
        LogPlaces { store, database: ledger.to_owned(), public: state.join("log"), keys: state.join("keys") }
    }

    /// The database of the log.
    #[must_use]
    pub fn database_file(&self) -> PathBuf {
        self.database.join("log.db")
    }

    /// The lock of the sequencer.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.database.join("log.lock")
    }

    /// The published checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> PathBuf {
        self.public.join("checkpoint")
    }

    /// The published tiles.
    #[must_use]
    pub fn tiles(&self) -> Tiles {
        Tiles { folder: self.public.clone() }
    }

    /// Reads the published checkpoint, or `None` if nothing was published.
    ///
    /// # Errors
    /// When it cannot be read, or is not a checkpoint.
    pub fn published(&self) -> Result<Option<(String, Checkpoint)>, LogError> {
        let path = self.checkpoint();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::io(&path, "read", &error)),
        };
        let (_, checkpoint) = Checkpoint::from_note(text.as_bytes())
            .map_err(|error| LogError::Tiles { message: format!("`{}`: {error}", path.display()) })?;
        Ok(Some((text, checkpoint)))
    }
}

/// Tiles in a folder.
#[derive(Debug, Clone)]
pub struct Tiles {
    folder: PathBuf,
}

impl Tiles {
    /// Tiles below a folder, which holds `tile/`.
    #[must_use]
    pub fn at(folder: &Path) -> Tiles {
        Tiles { folder: folder.to_owned() }
    }

    fn read(&self, tile: TileId) -> io::Result<Vec<u8>> {
        let path = self.folder.join(tile.to_string());
        let bytes = fs::metadata(&path)?.len();
        if bytes > TILE_BYTES_MAX {
            return Err(io::Error::other(format!("{bytes} bytes; a tile has at most {TILE_BYTES_MAX}")));
        }
        fs::read(path)
    }
}

impl TileSource for Tiles {
    type Error = String;

    fn tile(&self, tile: TileId) -> Result<Vec<u8>, String> {
        let read = match self.read(tile) {
            // Once a tile is full, the partial ones are gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.read(tile.full()),
            read => read,
        };
        read.map_err(|error| error.to_string())
    }
}

/// Makes a folder and those above it, each durable in the one above.
pub(super) fn make_folder(folder: &Path, mode: u32) -> Result<(), LogError> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folder(above, mode)?;
    }
    match fs::DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(LogError::io(folder, "create the folder", &error));
        }
        _ => {}
    }
    sync_folder(folder.parent().unwrap_or(Path::new("/")))
}

/// Makes what a folder lists durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), LogError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(|error| LogError::io(folder, "make durable", &error))
}

/// Puts a file in its place, durable and whole: after a crash there is the old one or the new one. Leaves a file alone
/// that has these bytes already.
///
/// # Errors
/// When the system refuses; what was there before is then still there.
pub fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), LogError> {
    // What has another length, or is not a file, need not be read: it may wait for a writer, or never end.
    let may_be_same = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == bytes.len() as u64);
    if may_be_same && fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(folder, if mode & 0o077 == 0 { 0o700 } else { 0o755 })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.new"));
    (|| {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })()
    .map_err(|error| LogError::io(path, "write", &error))?;
    sync_folder(folder)
}
