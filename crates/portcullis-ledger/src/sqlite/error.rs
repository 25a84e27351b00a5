//! SQLite's errors and those of the file system, as those of any store.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::LedgerError;

impl LedgerError {
    /// The error for SQLite's code.
    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> LedgerError {
        let place = path.display().to_string();
        let detail = error.to_string();
        let Some(code) = error.sqlite_error_code() else {
            // Everything else is a value that has not the type or range that the schema gives it.
            return LedgerError::Corrupt { place, detail };
        };
        let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LedgerError::Locked { place },
            ErrorCode::DiskFull => LedgerError::DiskFull { place, detail },
            // The shared memory of the write-ahead log could not grow: the same cause as a full disk.
            _ if extended == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => LedgerError::DiskFull { place, detail },
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::FileLockingProtocolFailed => LedgerError::Io { place, action: "use", detail },
            _ => LedgerError::Corrupt { place, detail },
        }
    }

    pub(crate) fn io(path: &Path, action: &'static str, error: &std::io::Error) -> LedgerError {
        let place = path.display().to_string();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                LedgerError::DiskFull { place, detail: error.to_string() }
            }
            _ => LedgerError::Io { place, action, detail: error.to_string() },
        }
    }
}
