//! What the log remembers: its last signature, the leaves that wait for a place, and the head of each segment.
//!
//! This database is the one store that the log trusts. Its row `tree` is the lock of Sunlight's design: a
//! checkpoint is published only after it stands here, and it comes to stand here only in place of the one that the
//! new tree was built on. The leaves get their places, and the files that are to be published are staged, in that
//! same transaction; so anyone who comes after a crash finds either nothing of a round or all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use portcullis_core::time::Timestamp;
use portcullis_proof::Hex;
use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::{KeyId, RunState, TreeHead};
use portcullis_proof::{Digest, Id};
use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Row, Transaction, TransactionBehavior, params,
};

use super::confirm::LogWait;
use super::error::LogError;
use super::folder::LogPlaces;
use crate::sqlite::schema::{signed, unsigned};

/// `PCLG` in ASCII.
const APPLICATION_ID: i64 = 0x5043_4c47;
const SCHEMA_VERSION: i64 = 1;
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

const SCHEMA: &str = "
CREATE TABLE tree (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    origin TEXT NOT NULL,
    size INTEGER NOT NULL,
    root BLOB NOT NULL CHECK (length(root) = 32),
    note TEXT NOT NULL,
    witnessed TEXT,
    frozen TEXT,
    settled INTEGER NOT NULL
) STRICT;
CREATE TABLE writers (
    key BLOB PRIMARY KEY CHECK (length(key) = 32),
    public BLOB NOT NULL CHECK (length(public) = 32),
    epoch INTEGER NOT NULL,
    next INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('current', 'retired', 'revoked'))
) STRICT, WITHOUT ROWID;
CREATE TABLE leaves (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    segment BLOB,
    writer BLOB,
    leaf BLOB,
    position INTEGER UNIQUE
) STRICT;
CREATE INDEX leaves_waiting ON leaves (number) WHERE position IS NULL;
CREATE INDEX leaves_of_segment ON leaves (segment) WHERE segment IS NOT NULL;
CREATE INDEX leaves_of_writer ON leaves (writer) WHERE writer IS NOT NULL;
CREATE TABLE segments (
    segment BLOB PRIMARY KEY CHECK (length(segment) = 16),
    run BLOB NOT NULL CHECK (length(run) = 16),
    writer BLOB NOT NULL CHECK (length(writer) = 32),
    epoch INTEGER NOT NULL,
    run_no INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last BLOB NOT NULL CHECK (length(last) = 32)
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_of_run ON segments (run);
CREATE UNIQUE INDEX segments_by_number ON segments (writer, epoch, run_no);
CREATE INDEX segments_open ON segments (segment) WHERE state < 2;
CREATE TABLE staged (path TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// What the log waits for. Made when it waits first, so that logs of before have it as well.
const WAITS: &str = "
CREATE TABLE IF NOT EXISTS waits (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    since INTEGER NOT NULL,
    why TEXT NOT NULL
) STRICT;
";

/// Whether a witness saw another history, which logs of before did not write down.
const CONTRADICTED: &str = "ALTER TABLE waits ADD COLUMN contradicted INTEGER NOT NULL DEFAULT 0;";

/// The tree that was signed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedTree {
    pub(super) origin: String,
    pub(super) head: TreeHead,
    /// The note, signed by the log alone.
    pub(super) note: String,
    /// The newest note with cosignatures of witnesses.
    pub(super) witnessed: Option<String>,
    pub(super) frozen: Option<String>,
    /// Row numbers of segments up to which everything is in the log with its end.
    pub(super) settled: i64,
}

/// Where a segment is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoggedSegment {
    pub(super) run: Id,
    pub(super) writer: KeyId,
    pub(super) epoch: u64,
    pub(super) run_no: u64,
    pub(super) state: RunState,
    pub(super) count: u64,
    pub(super) last: Digest,
}

/// A writer's book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriterRow {
    pub(super) key: KeyId,
    pub(super) public: [u8; 32],
    pub(super) epoch: u64,
    pub(super) next: u64,
    pub(super) state: WriterState,
}

/// Whether a key still signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterState {
    /// New segments are signed with it.
    Current,
    /// A newer key has taken over; it signs the ends of segments that it opened.
    Retired,
    /// Nothing that it signs counts.
    Revoked,
}

impl WriterState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WriterState::Current => "current",
            WriterState::Retired => "retired",
            WriterState::Revoked => "revoked",
        }
    }
}

/// A leaf that waits for a place.
#[derive(Debug, Clone)]
pub(super) struct WaitingLeaf {
    pub(super) number: i64,
    pub(super) bytes: Vec<u8>,
}

/// The first and the last number, by writer and epoch.
type NumberSpans = BTreeMap<(KeyId, i64), (i64, i64)>;

/// One connection.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
}

impl Database {
    /// Makes the database of a new log, whose first checkpoint is signed already.
    pub(super) fn create(
        places: &LogPlaces,
        origin: &str,
        head: TreeHead,
        note: &str,
    ) -> Result<(), LogError> {
        let path = places.database_file();
        let failed = |error: rusqlite::Error| LogError::database(&path, &error);
        // Read and written by its owner alone, as the store is.
        let file = {
            use std::os::unix::fs::OpenOptionsExt as _;
            std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)
        };
        file.map_err(|error| LogError::io(&path, "create", &error))?;
        let mut connection = Connection::open(&path).map_err(failed)?;
        (|| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            transaction.execute(
                "INSERT INTO tree (one, origin, size, root, note, settled) VALUES (1, ?1, ?2, ?3, ?4, 0)",
                params![origin, signed(head.size), head.root.0, note],
            )?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            transaction.commit()
        })()
        .map_err(failed)
    }

    /// Opens an existing one. A file without tables is one whose making was cut short: as good as none.
    pub(super) fn open(places: &LogPlaces, writes: bool) -> Result<Option<Database>, LogError> {
        let path = places.database_file();
        if !path.exists() {
            return Ok(None);
        }
        let failed = |error: rusqlite::Error| LogError::database(&path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(failed)?;
        let (application, version) = (|| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "query_only", !writes)?;
            let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            Ok((application, version))
        })()
        .map_err(failed)?;
        match (application, version) {
            (0, 0) => Ok(None),
            (APPLICATION_ID, SCHEMA_VERSION) => Ok(Some(Database { path, connection })),
            (APPLICATION_ID, later) if later > SCHEMA_VERSION => {
                let detail = format!(
                    "format {later} is of a later release, and this is release {}, which reads format {SCHEMA_VERSION}; nothing \
                     was changed: install the later one again, or restore a copy of the state folder from before the upgrade",
                    env!("CARGO_PKG_VERSION")
                );
                Err(LogError::Database { path, detail })
            }
            _ => {
                let detail = format!(
                    "format {version} of application {application:x}; this release reads format {SCHEMA_VERSION} of {APPLICATION_ID:x}"
                );
                Err(LogError::Database { path, detail })
            }
        }
    }

    fn query<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, LogError> {
        query(&self.connection).map_err(|error| LogError::database(&self.path, &error))
    }

    /// Runs one transaction; an error undoes it.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, LogError> {
        let path = &self.path;
        (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = write(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })()
        .map_err(|error| LogError::database(path, &error))
    }

    pub(super) fn tree(&self) -> Result<SignedTree, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT origin, size, root, note, witnessed, frozen, settled FROM tree")?
                .query_row([], |row| {
                    Ok(SignedTree {
                        origin: row.get(0)?,
                        head: TreeHead { size: unsigned(row.get(1)?), root: Hex(row.get(2)?) },
                        note: row.get(3)?,
                        witnessed: row.get(4)?,
                        frozen: row.get(5)?,
                        settled: row.get(6)?,
                    })
                })
        })
    }

    pub(super) fn writers(&self) -> Result<Vec<WriterRow>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT key, public, epoch, next, state FROM writers ORDER BY key")?
                .query_map([], writer_row)?
                .collect()
        })
    }

    /// Where a segment is in the log, or `None` if it is not in it.
    pub(super) fn segment(&self, segment: Id) -> Result<Option<LoggedSegment>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT run, writer, epoch, run_no, state, count, last FROM segments WHERE segment = ?1",
                )?
                .query_row([segment.0], logged_segment)
                .optional()
        })
    }

    /// The segments of this many leaves, the newest, with their ids.
    pub(super) fn newest_segments(&self, leaves: usize) -> Result<Vec<(Id, LoggedSegment)>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT run, writer, epoch, run_no, state, count, last, segment FROM segments
                     WHERE segment IN (SELECT segment FROM leaves ORDER BY number DESC LIMIT ?1)",
                )?
                .query_map([signed(leaves as u64)], |row| Ok((Hex(row.get(7)?), logged_segment(row)?)))?
                .collect()
        })
    }

    /// The segments that the log has and whose end it has not, with their ids.
    pub(super) fn open_segments(&self) -> Result<Vec<(Id, LoggedSegment)>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT run, writer, epoch, run_no, state, count, last, segment FROM segments WHERE state < 2",
                )?
                .query_map([], |row| Ok((Hex(row.get(7)?), logged_segment(row)?)))?
                .collect()
        })
    }

    /// The leaves that wait, in order.
    pub(super) fn waiting(&self, limit: usize) -> Result<Vec<WaitingLeaf>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, leaf FROM leaves WHERE position IS NULL ORDER BY number LIMIT ?1",
                )?
                .query_map([signed(limit as u64)], |row| {
                    Ok(WaitingLeaf { number: row.get(0)?, bytes: row.get(1)? })
                })?
                .collect()
        })
    }

    /// The places of the leaves on segments of a run, and of those on the writers that signed them, in order; and
    /// whether all of them have one.
    pub(super) fn places_of_run(&self, run: Id, limit: usize) -> Result<(Vec<u64>, bool), LogError> {
        let mut places: Vec<Option<i64>> = self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT position FROM leaves WHERE segment IN (SELECT segment FROM segments WHERE run = ?1)
                     UNION SELECT position FROM leaves
                         WHERE writer IN (SELECT writer FROM segments WHERE run = ?1)
                     LIMIT ?2",
                )?
                .query_map(params![run.0, signed(limit as u64 + 1)], |row| row.get(0))?
                .collect()
        })?;
        if places.len() > limit {
            return Err(LogError::OverLimit { what: "leaves on one run", limit: limit as u64 });
        }
        places.sort_unstable();
        let all = places.iter().all(Option::is_some);
        Ok((places.into_iter().flatten().map(unsigned).collect(), all))
    }

    /// For every number between the first and the last of these runs' segments, by writer: the place of one leaf on the
    /// segment that has it. With the places of the leaves on those writers, in order.
    pub(super) fn places_between(&self, runs: &[Id], limit: usize) -> Result<Vec<u64>, LogError> {
        let spans = self.spans(runs)?;
        let mut places = BTreeSet::new();
        for ((writer, epoch), (first, last)) in spans {
            let found: Vec<i64> = self.query(|connection| {
                connection
                    .prepare_cached(
                        "SELECT max(l.position) FROM segments s JOIN leaves l ON l.segment = s.segment
                         WHERE s.writer = ?1 AND s.epoch = ?2 AND s.run_no BETWEEN ?3 AND ?4
                             AND l.position IS NOT NULL GROUP BY s.segment
                         UNION SELECT position FROM leaves WHERE writer = ?1 AND position IS NOT NULL
                         LIMIT ?5",
                    )?
                    .query_map(params![writer.0, epoch, first, last, signed(limit as u64 + 1)], |row| {
                        row.get(0)
                    })?
                    .collect()
            })?;
            places.extend(found.into_iter().map(unsigned));
            if places.len() > limit {
                return Err(LogError::OverLimit { what: "numbers of one export", limit: limit as u64 });
            }
        }
        Ok(places.into_iter().collect())
    }

    /// The first and the last number of the runs' segments, by writer and epoch.
    fn spans(&self, runs: &[Id]) -> Result<NumberSpans, LogError> {
        let mut spans = NumberSpans::new();
        for run in runs {
            let numbers: Vec<(KeyId, i64, i64)> = self.query(|connection| {
                connection
                    .prepare_cached("SELECT writer, epoch, run_no FROM segments WHERE run = ?1")?
                    .query_map([run.0], |row| Ok((Hex(row.get(0)?), row.get(1)?, row.get(2)?)))?
                    .collect()
            })?;
            for (writer, epoch, number) in numbers {
                let span = spans.entry((writer, epoch)).or_insert((number, number));
                *span = (span.0.min(number), span.1.max(number));
            }
        }
        Ok(spans)
    }

    /// The place of the first leaf on a segment, or `None` if there is none, or it waits.
    pub(super) fn first_place(&self, segment: Id) -> Result<Option<u64>, LogError> {
        let place: Option<i64> = self.query(|connection| {
            connection
                .prepare_cached("SELECT min(position) FROM leaves WHERE segment = ?1")?
                .query_row([segment.0], |row| row.get(0))
        })?;
        Ok(place.map(unsigned))
    }

    /// The states of the segments of a run that the log has.
    pub(super) fn states_of_run(&self, run: Id) -> Result<Vec<(Id, RunState)>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT segment, state FROM segments WHERE run = ?1")?
                .query_map([run.0], |row| Ok((Hex(row.get(0)?), run_state(row, 1)?)))?
                .collect()
        })
    }

    pub(super) fn staged(&self) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        self.query(|connection| {
            connection
                .prepare_cached("SELECT path, bytes FROM staged ORDER BY path")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    /// What the log waits for before it signs, as the process that had it last wrote.
    pub(super) fn wait(&self) -> Result<Option<LogWait>, LogError> {
        self.query(|connection| {
            if !connection.table_exists(None, "waits")? {
                return Ok(None);
            }
            // A log of before does not say whether it is contradicted until it waits again.
            let select = if connection.column_exists(None, "waits", "contradicted")? {
                "SELECT since, why, contradicted FROM waits"
            } else {
                "SELECT since, why, 0 FROM waits"
            };
            connection
                .prepare_cached(select)?
                .query_row([], |row| {
                    let since = Timestamp::from_micros(row.get(0)?);
                    Ok(LogWait { since, why: row.get(1)?, contradicted: row.get(2)? })
                })
                .optional()
        })
    }

    /// Writes what the log waits for.
    pub(super) fn put_wait(&mut self, wait: Option<&LogWait>) -> Result<(), LogError> {
        match wait {
            Some(wait) => self.write(|transaction| {
                transaction.execute_batch(WAITS)?;
                if !transaction.column_exists(None, "waits", "contradicted")? {
                    transaction.execute_batch(CONTRADICTED)?;
                }
                transaction
                    .execute(
                        "INSERT OR REPLACE INTO waits (one, since, why, contradicted) VALUES (1, ?1, ?2, ?3)",
                        params![wait.since.as_micros(), wait.why, wait.contradicted],
                    )
                    .map(drop)
            }),
            None if self.wait()?.is_none() => Ok(()),
            None => self.write(|transaction| transaction.execute("DELETE FROM waits", []).map(drop)),
        }
    }

    /// How many leaves wait.
    pub(super) fn waiting_count(&self) -> Result<u64, LogError> {
        self.query(|connection| {
            connection
                .query_row("SELECT count(*) FROM leaves WHERE position IS NULL", [], |row| row.get(0))
                .map(unsigned)
        })
    }
}

/// Puts a leaf in line. One that is there already is not put again.
pub(super) fn insert_leaf(
    transaction: &Transaction<'_>,
    leaf: &SignedLeaf,
    segment: Option<Id>,
    writer: Option<KeyId>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO leaves (hash, segment, writer, leaf) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hash) DO NOTHING",
        )?
        .execute(params![leaf.hash().0, segment.map(|id| id.0), writer.map(|key| key.0), leaf.bytes()])
        .map(drop)
}

/// Writes the head of a segment.
pub(super) fn put_segment(
    transaction: &Transaction<'_>,
    segment: Id,
    row: &LoggedSegment,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO segments (segment, run, writer, epoch, run_no, state, count, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (segment) DO UPDATE SET state = ?6, count = ?7, last = ?8",
        )?
        .execute(params![
            segment.0,
            row.run.0,
            row.writer.0,
            signed(row.epoch),
            signed(row.run_no),
            row.state as i64,
            signed(row.count),
            row.last.0,
        ])
        .map(drop)
}

/// Writes a writer's book.
pub(super) fn put_writer(transaction: &Transaction<'_>, row: &WriterRow) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO writers (key, public, epoch, next, state) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (key) DO UPDATE SET epoch = ?3, next = ?4, state = ?5",
        )?
        .execute(params![row.key.0, row.public, signed(row.epoch), signed(row.next), row.state.as_str()])
        .map(drop)
}

fn writer_row(row: &Row<'_>) -> rusqlite::Result<WriterRow> {
    let state: String = row.get(4)?;
    let state = [WriterState::Current, WriterState::Retired]
        .into_iter()
        .find(|known| known.as_str() == state)
        .unwrap_or(WriterState::Revoked);
    Ok(WriterRow {
        key: Hex(row.get(0)?),
        public: row.get(1)?,
        epoch: unsigned(row.get(2)?),
        next: unsigned(row.get(3)?),
        state,
    })
}

fn logged_segment(row: &Row<'_>) -> rusqlite::Result<LoggedSegment> {
    Ok(LoggedSegment {
        run: Hex(row.get(0)?),
        writer: Hex(row.get(1)?),
        epoch: unsigned(row.get(2)?),
        run_no: unsigned(row.get(3)?),
        state: run_state(row, 4)?,
        count: unsigned(row.get(5)?),
        last: Hex(row.get(6)?),
    })
}

fn run_state(row: &Row<'_>, column: usize) -> rusqlite::Result<RunState> {
    let number: i64 = row.get(column)?;
    [RunState::Open, RunState::Progress, RunState::Closed, RunState::Abandoned]
        .into_iter()
        .find(|state| *state as i64 == number)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}
