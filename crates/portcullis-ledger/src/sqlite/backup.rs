//! A consistent copy of a store and its transparency log, made beside their writers.
//!
//! What is copied first may lag behind what is copied later: the published files, then the log, then the store. A log
//! that is ahead of its store refuses to go on; one that is ahead of its published files publishes them again.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::error::LedgerError;
use crate::ledger::Location;
use crate::log::LogPlaces;
use crate::sqlite::DATABASE_FILE;
use crate::sqlite::read::SqliteReader;

/// How long a database that others hold is waited for.
const BUSY_MAX: Duration = Duration::from_secs(10);
const BUSY_POLL: Duration = Duration::from_millis(20);
/// How deep the folder of published files is copied: `tile/entries/x000/x000/000.p/1` is six deep.
const DEPTH_MAX: usize = 12;

/// Copies the store and the log at `from` to `to`, whose folders are made; neither keys nor locks are copied. Files are
/// readable by their owner alone. Whatever fails leaves an incomplete copy behind.
///
/// # Errors
/// [`LedgerError`]: there is no store, or something cannot be read or written.
pub fn copy_store(from: &LogPlaces, to: &LogPlaces) -> Result<(), LedgerError> {
    let (Location::Folder(source), Location::Folder(target)) = (&from.store, &to.store);
    let store = SqliteReader::open(source)?;
    make_folder(target)?;
    if from.public.exists() {
        // The checkpoint before the tiles: these only grow, so the copied ones cover it.
        make_folder(&to.public)?;
        copy_file(&from.checkpoint(), &to.checkpoint())?;
        copy_folder(&from.public, &to.public, DEPTH_MAX)?;
    }
    if from.database_file().exists() {
        let log = Connection::open_with_flags(from.database_file(), OpenFlags::SQLITE_OPEN_READ_ONLY);
        let log = log.map_err(|error| LedgerError::sqlite(&from.database_file(), &error))?;
        copy_database(&log, &from.database_file(), &to.database_file())?;
    }
    copy_database(&store.connection, &store.store.database, &target.join(DATABASE_FILE))?;
    sync(target)
}

/// Copies a small file that is replaced as a whole; one that is not there is left out.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), LedgerError> {
    let mut source = match File::open(from) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(LedgerError::io(from, "read", &error)),
    };
    let failed = |error| LedgerError::io(to, "write", &error);
    let mut copy = private(to)?;
    io::copy(&mut source, &mut copy).map_err(failed)?;
    copy.sync_all().map_err(failed)
}

/// Copies the regular files of a folder that are not in the copy yet. Files that go away meanwhile are left out.
pub fn copy_folder(from: &Path, to: &Path, depth: usize) -> Result<(), LedgerError> {
    let failed = |error| LedgerError::io(from, "read", &error);
    let Some(below) = depth.checked_sub(1) else {
        return Err(failed(io::Error::other("its folders are nested too deeply")));
    };
    make_folder(to)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (kind, target) = (entry.file_type().map_err(failed)?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target, below)?;
        } else if kind.is_file() && !target.exists() {
            copy_file(&entry.path(), &target)?;
        }
    }
    sync(to)
}

fn make_folder(path: &Path) -> Result<(), LedgerError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| LedgerError::io(path, "make the folder", &error))
}

fn private(path: &Path) -> Result<File, LedgerError> {
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|error| LedgerError::io(path, "make", &error))
}

fn sync(folder: &Path) -> Result<(), LedgerError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| LedgerError::io(folder, "sync", &error))
}

/// All pages in one step: writers go on in the write-ahead log meanwhile, and the copy has what was there at its start.
fn copy_database(source: &Connection, from: &Path, to: &Path) -> Result<(), LedgerError> {
    // SQLite gives the files beside a database the permissions of the database.
    drop(private(to)?);
    let failed = |error: rusqlite::Error| LedgerError::sqlite(to, &error);
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let begun = Instant::now();
    {
        let backup = Backup::new(source, &mut copy).map_err(failed)?;
        loop {
            match backup.step(-1).map_err(failed)? {
                StepResult::Done => break,
                _ if begun.elapsed() > BUSY_MAX => {
                    return Err(LedgerError::Locked { place: from.display().to_string() });
                }
                _ => sleep(BUSY_POLL),
            }
        }
    }
    copy.close().map_err(|(_, error)| failed(error))?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| LedgerError::io(to, "sync", &error))
}
