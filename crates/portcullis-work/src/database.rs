//! Rows of SQLite files. The file is opened for reading alone, and what its own schema would run is not trusted.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde_json::Value;

use super::{Found, NotPassed, error, fail};

/// How long a query may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// Most rows that are compared.
const ROWS_MAX: usize = 1_000;

pub(super) fn returns(file: &Path, path: &str, query: &str, wanted: &[Value]) -> Found {
    let connection = match open(file) {
        Ok(connection) => connection,
        Err(why) => return error(format!("`{path}` cannot be opened as a SQLite file: {why}")),
    };
    let late = connection.get_interrupt_handle();
    let rows = std::thread::scope(|scope| {
        let (done, wait) = mpsc::channel::<()>();
        scope.spawn(move || {
            if wait.recv_timeout(DEADLINE) == Err(mpsc::RecvTimeoutError::Timeout) {
                late.interrupt();
            }
        });
        let rows = rows(&connection, query);
        drop(done);
        rows
    });
    let rows = match rows {
        Ok(rows) => rows,
        Err(rusqlite::Error::SqliteFailure(why, _)) if why.code == ErrorCode::OperationInterrupted => {
            return Err(NotPassed::Timeout(format!("no answer after {} s", DEADLINE.as_secs())));
        }
        Err(why) => return error(format!("the query failed: {why}")),
    };
    if rows.len() > ROWS_MAX {
        return error(format!("the query returned more than {ROWS_MAX} rows, which is the limit"));
    }
    match rows == wanted {
        true => Ok(format!("{} rows", rows.len())),
        false => {
            let shown: String = Value::from(rows).to_string().chars().take(400).collect();
            fail(format!("the query returned {shown}"))
        }
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(connection)
}

/// The rows, and one more than are compared where there are more.
fn rows(connection: &Connection, query: &str) -> rusqlite::Result<Vec<Value>> {
    let mut statement = connection.prepare(query)?;
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()?
        && found.len() <= ROWS_MAX
    {
        let values =
            (0..columns).map(|at| row.get_ref(at).map(json)).collect::<rusqlite::Result<Vec<_>>>()?;
        found.push(Value::from(values));
    }
    Ok(found)
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => super::file::hex(bytes).into(),
    }
}
