//! The database: how it is opened, what it holds, and how it is recognised.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior};

use crate::error::LedgerError;
use crate::sqlite::{approvals, lock};

/// Written into the file, so that another database is never taken for a ledger: `PCUL` in ASCII.
const APPLICATION_ID: i64 = 0x5043_554c;
/// The format of the tables below.
const SCHEMA_VERSION: i64 = 7;
/// Size of a page, as SQLite has it where nobody says otherwise.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Pages of the write-ahead log at which the writer itself copies it into the database: 64 MiB of 4 KiB pages.
const CHECKPOINT_PAGES: i64 = 16_384;
/// Prepared statements kept by a connection.
const STATEMENTS_MAX: usize = 64;

/// The most runs that a store numbers.
pub(crate) const RUNS_MAX: u64 = (1 << 31) - 1;
/// The most events of one run.
pub(crate) const EVENTS_PER_RUN_MAX: u64 = (1 << 32) - 1;

/// The tables of version 1. An event's key is the number of its run and its seq in one integer, so that the events of a run lie
/// together in order, a run has no two events of one seq, and no second index is written.
const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
    number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 2147483647),
    run BLOB NOT NULL UNIQUE CHECK (length(run) = 16),
    principal TEXT NOT NULL,
    session_key TEXT,
    opened INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_by_session ON runs (session_key, principal) WHERE session_key IS NOT NULL;
CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    segment BLOB NOT NULL UNIQUE CHECK (length(segment) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    writer TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    after INTEGER NOT NULL,
    parent_segment BLOB,
    parent_link BLOB,
    first_link BLOB NOT NULL CHECK (length(first_link) = 32),
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'abandoned')),
    opened INTEGER NOT NULL,
    UNIQUE (run, ordinal)
) STRICT;
CREATE UNIQUE INDEX one_open_segment_a_run ON segments (run) WHERE state = 'open';
CREATE INDEX open_segments_by_writer ON segments (writer) WHERE state = 'open';
CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL REFERENCES segments (number),
    kind TEXT NOT NULL,
    action BLOB,
    t INTEGER NOT NULL,
    link BLOB NOT NULL CHECK (length(link) = 32),
    line BLOB NOT NULL
) STRICT;
CREATE TABLE payloads (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number),
    commitment BLOB NOT NULL CHECK (length(commitment) = 32),
    salt BLOB NOT NULL CHECK (length(salt) = 32),
    media_type TEXT NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (run, commitment)
) STRICT;
CREATE TABLE approvals (
    approval BLOB PRIMARY KEY CHECK (length(approval) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    action BLOB NOT NULL,
    digest BLOB NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'granted', 'refused', 'expired', 'claimed')),
    scope TEXT,
    requested INTEGER NOT NULL,
    decided INTEGER,
    decided_by TEXT,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX approvals_by_state ON approvals (state, requested);
CREATE INDEX approvals_by_run ON approvals (run);
";

/// What version 2 added: tombstones of erased payloads.
const SCHEMA_2: &str = "
CREATE TABLE erasures (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number),
    commitment BLOB NOT NULL CHECK (length(commitment) = 32),
    at INTEGER NOT NULL,
    erased_by TEXT NOT NULL,
    reason TEXT,
    UNIQUE (run, commitment)
) STRICT;
";

/// What version 4 added: a summary of each run, and the runs of a principal in order. What was JSON in the index of
/// approvals became columns; of its fields, those that quoted payloads are left out.
const SCHEMA_4: &str = "
CREATE TABLE summaries (
    run INTEGER PRIMARY KEY REFERENCES runs (number),
    events INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    pending_approvals INTEGER NOT NULL,
    surface TEXT NOT NULL,
    policy TEXT NOT NULL,
    bundle BLOB CHECK (length(bundle) = 32),
    mode TEXT NOT NULL CHECK (mode IN ('enforce', 'observe')),
    phase TEXT NOT NULL CHECK (phase IN ('running', 'clarifying', 'paused', 'halted', 'closed', 'abandoned')),
    steps INTEGER NOT NULL,
    side_effects INTEGER NOT NULL,
    allowed INTEGER NOT NULL,
    warned INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    clarified INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    reviewed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    halted INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_by_principal ON runs (principal);
";

/// What version 5 added: freezes, with those that were released, and how the freezes have a run stand; in the index of
/// approvals, more ways to decide, and the rule that holds the call.
const SCHEMA_5: &str = "
CREATE TABLE freezes (
    number INTEGER PRIMARY KEY,
    scope TEXT NOT NULL CHECK (scope IN ('run', 'principal', 'all')),
    key TEXT NOT NULL,
    frozen_at INTEGER NOT NULL,
    frozen_by TEXT NOT NULL,
    frozen_note TEXT,
    reads_at INTEGER,
    reads_by TEXT,
    reads_note TEXT,
    released_at INTEGER,
    released_by TEXT,
    released_note TEXT,
    UNIQUE (scope, key, frozen_at)
) STRICT;
CREATE UNIQUE INDEX one_freeze_in_force_a_scope ON freezes (scope, key) WHERE released_at IS NULL;
ALTER TABLE summaries ADD COLUMN frozen TEXT CHECK (frozen IN ('side_effects', 'everything'));
CREATE TABLE approvals_5 (
    approval BLOB PRIMARY KEY CHECK (length(approval) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    action BLOB NOT NULL,
    digest BLOB NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'pending', 'granted', 'refused', 'answered', 'revoked', 'expired', 'claimed')),
    scope TEXT,
    requested INTEGER NOT NULL,
    decided INTEGER,
    decided_by TEXT,
    tool TEXT NOT NULL,
    policy TEXT NOT NULL,
    proposed INTEGER,
    note TEXT,
    rule TEXT
) STRICT;
";
/// The same, once the approvals are copied. The old table is dropped as a whole, which overwrites its pages.
const SCHEMA_5_APPROVALS: &str = "
DROP TABLE approvals;
ALTER TABLE approvals_5 RENAME TO approvals;
CREATE INDEX approvals_by_state ON approvals (state, requested);
CREATE INDEX approvals_by_run ON approvals (run);
CREATE INDEX approvals_by_time ON approvals (requested);
CREATE INDEX pending_approvals_by_run ON approvals (run) WHERE state = 'pending';
";

/// And what was written with the words of others, with the key under which it is looked up.
const SCHEMA_5_TAINTS: &str = "
CREATE TABLE taints (
    number INTEGER PRIMARY KEY,
    thing BLOB NOT NULL CHECK (length(thing) = 32),
    principal TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (number),
    seq INTEGER NOT NULL,
    commitment BLOB NOT NULL CHECK (length(commitment) = 32),
    labels TEXT NOT NULL,
    marks BLOB,
    replaces INTEGER NOT NULL
) STRICT;
CREATE INDEX taints_by_thing ON taints (thing, principal);
CREATE INDEX taints_by_principal ON taints (principal);
CREATE INDEX taints_by_run ON taints (run);
CREATE TABLE forgotten_taints (block INTEGER PRIMARY KEY CHECK (block BETWEEN 0 AND 255), bits BLOB NOT NULL) STRICT;
INSERT INTO meta (key, value) VALUES ('taint key', lower(hex(randomblob(32))));
";

/// What version 6 changed: a reply waits for approval as well, which has no action.
const SCHEMA_6: &str = "
CREATE TABLE approvals_6 (
    approval BLOB PRIMARY KEY CHECK (length(approval) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    action BLOB,
    digest BLOB NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'pending', 'granted', 'refused', 'answered', 'revoked', 'expired', 'claimed')),
    scope TEXT,
    requested INTEGER NOT NULL,
    decided INTEGER,
    decided_by TEXT,
    tool TEXT NOT NULL,
    policy TEXT NOT NULL,
    proposed INTEGER,
    note TEXT,
    rule TEXT
) STRICT;
";
/// The same, once the approvals are copied. The old table is dropped as a whole, which overwrites its pages.
const SCHEMA_6_APPROVALS: &str = "
DROP TABLE approvals;
ALTER TABLE approvals_6 RENAME TO approvals;
CREATE INDEX approvals_by_state ON approvals (state, requested);
CREATE INDEX approvals_by_run ON approvals (run);
CREATE INDEX approvals_by_time ON approvals (requested);
CREATE INDEX pending_approvals_by_run ON approvals (run) WHERE state = 'pending';
";

/// What version 7 added: facts that outlive runs. The folder of one that all runs of its principal may read is empty.
const SCHEMA_7: &str = "
CREATE TABLE facts (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number),
    seq INTEGER NOT NULL,
    principal TEXT NOT NULL,
    workspace BLOB NOT NULL CHECK (length(workspace) IN (0, 32)),
    topic BLOB CHECK (length(topic) = 32),
    commitment BLOB NOT NULL CHECK (length(commitment) = 32),
    gone TEXT CHECK (gone IN ('replaced', 'forgotten')),
    gone_run INTEGER REFERENCES runs (number),
    gone_seq INTEGER,
    UNIQUE (run, seq)
) STRICT;
CREATE INDEX facts_to_read ON facts (principal, workspace, number) WHERE gone IS NULL;
CREATE INDEX facts_by_topic ON facts (principal, workspace, topic, number) WHERE gone IS NULL AND topic IS NOT NULL;
CREATE INDEX facts_by_principal ON facts (principal, number);
";

/// The row of `meta` with the key of the digests by which things are known in the index of taints.
pub(crate) const TAINT_KEY: &str = "taint key";
/// The row of `meta` with the release that opened the store for writing last: what to install again, for an earlier release
/// that cannot read the store.
const RELEASE: &str = "release";
/// Characters of it that are shown.
const RELEASE_CHARS_MAX: usize = 40;

/// The row of `meta` that is there while runs of earlier releases may lack a summary. Its value is the highest number of
/// such a run.
pub(crate) const SUMMARIES_DUE: &str = "summaries to compute";

/// The row of `meta` that is there while no page can hold a copy of a row that was moved away from it: since the store
/// was made, or was last built again. Version 3 added it, and payloads whose salt is all zeros: they are erased.
pub(crate) const NO_COPIES: &str = "no copies since";
/// The row of `meta` that is there while pages of the index of approvals may hold what was blanked in it. Its value is
/// the number of the latest tombstone then.
pub(crate) const TO_SCRUB: &str = "approvals to scrub";

/// Where the store is, and how its database is opened.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    pub(crate) database: PathBuf,
    pub(crate) writers: PathBuf,
    pub(crate) busy_timeout: Duration,
    /// The largest size of the database in bytes, none for no limit.
    pub(crate) bytes_max: Option<u64>,
}

impl Files {
    pub(crate) fn at(folder: &Path, busy_timeout: Duration, bytes_max: Option<u64>) -> Files {
        Files {
            folder: folder.to_owned(),
            database: folder.join("ledger.db"),
            writers: folder.join("writers"),
            busy_timeout,
            bytes_max,
        }
    }

    /// Where it is, for errors.
    pub(crate) fn place(&self) -> String {
        self.database.display().to_string()
    }

    /// SQLite's errors as ours.
    pub(crate) fn error(&self, error: &rusqlite::Error) -> LedgerError {
        LedgerError::sqlite(&self.database, error)
    }

    /// Creates the folders and an empty database file if they do not exist, for this user only.
    pub(crate) fn create_files(&self) -> Result<(), LedgerError> {
        for folder in [&self.folder, &self.writers] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| LedgerError::io(folder, "create the folder", &error))?;
        }
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.database);
        match file {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(LedgerError::io(&self.database, "create", &error))
            }
            _ => Ok(()),
        }
    }

    /// The one connection that writes. Recognises the file before it changes anything in it.
    pub(crate) fn open_writer(&self, origin: &str) -> Result<Connection, LedgerError> {
        let mut connection = self.connect()?;
        self.check_migration(self.recognise(&connection)?)?;
        (|| {
            // The switch to the write-ahead log does not wait for a lock by itself, the transaction below does.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
            overwrite(&connection)?;
            if let Some(bytes) = self.bytes_max {
                let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
                let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
                connection.pragma_update(None, "max_page_count", pages)?;
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if version(&transaction)? == 0 {
                transaction.execute_batch(SCHEMA)?;
                transaction.execute("INSERT INTO meta (key, value) VALUES ('origin', ?1)", [origin])?;
                transaction
                    .execute("INSERT INTO meta (key, value) VALUES (?1, 'it was made')", [NO_COPIES])?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            }
            migrate(&transaction)?;
            transaction.execute(
                "INSERT INTO meta (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value",
                [RELEASE, env!("CARGO_PKG_VERSION")],
            )?;
            transaction.commit()
        })()
        .map_err(|error| self.error(&error))?;
        Ok(connection)
    }

    /// A connection that deletes, beside the one that writes. What it deletes is overwritten at once.
    pub(crate) fn open_eraser(&self) -> Result<Connection, LedgerError> {
        let mut connection = self.connect()?;
        let found = self.recognise(&connection)?;
        if found == 0 {
            return Err(LedgerError::NotALedger { place: self.place() });
        }
        self.check_migration(found)?;
        (|| {
            connection.pragma_update(None, "synchronous", "full")?;
            overwrite(&connection)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            migrate(&transaction)?;
            transaction.commit()
        })()
        .map_err(|error| self.error(&error))?;
        Ok(connection)
    }

    /// A connection that cannot write. It opens the file for writing all the same, because the first reader of
    /// a write-ahead log after a crash has to restore it.
    pub(crate) fn open_reader(&self) -> Result<Connection, LedgerError> {
        let connection = self.connect()?;
        if self.recognise(&connection)? == 0 {
            return Err(LedgerError::NotALedger { place: self.place() });
        }
        connection.pragma_update(None, "query_only", true).map_err(|error| self.error(&error))?;
        Ok(connection)
    }

    pub(crate) fn connect(&self) -> Result<Connection, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&self.database, flags).map_err(|error| self.error(&error))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        (|| {
            connection.busy_timeout(self.busy_timeout)?;
            connection.pragma_update(None, "foreign_keys", true)
        })()
        .map_err(|error| self.error(&error))?;
        Ok(connection)
    }

    /// Refuses to migrate tables of version `found` under living writers: those are of an earlier release, and would write
    /// on without the summaries.
    fn check_migration(&self, found: i64) -> Result<(), LedgerError> {
        if !(1..SCHEMA_VERSION).contains(&found) {
            return Ok(());
        }
        match lock::living(&self.writers)? {
            0 => Ok(()),
            writers => Err(LedgerError::EarlierAtWork { place: self.place(), writers }),
        }
    }

    /// The version of the file's tables, 0 for an empty database; an error for any other file.
    fn recognise(&self, connection: &Connection) -> Result<i64, LedgerError> {
        let (application, version, tables) = (|| {
            let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            let tables: i64 =
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            Ok((application, version(connection)?, tables))
        })()
        .map_err(|error| match LedgerError::sqlite(&self.database, &error) {
            LedgerError::Corrupt { place, .. }
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
            {
                LedgerError::NotALedger { place }
            }
            other => other,
        })?;
        let place = self.place();
        match (application, version) {
            (0, 0) if tables == 0 => Ok(0),
            (APPLICATION_ID, found) if found > SCHEMA_VERSION => Err(LedgerError::NewerVersion {
                place,
                found,
                known: SCHEMA_VERSION,
                release: release(connection),
            }),
            (APPLICATION_ID, found) if found > 0 => Ok(found),
            _ => Err(LedgerError::NotALedger { place }),
        }
    }
}

/// Makes a connection overwrite what it deletes, and what it moves from a page that it empties.
fn overwrite(connection: &Connection) -> rusqlite::Result<()> {
    // The answer is a row, the setting as it is now.
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))
}

/// Brings the tables to the present version, from whichever they have.
fn migrate(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let found = version(transaction)?;
    if found < 2 {
        transaction.execute_batch(SCHEMA_2)?;
    }
    if found < 4 {
        transaction.execute_batch(SCHEMA_4)?;
        transaction.execute(
            "INSERT INTO meta (key, value) SELECT ?1, CAST(max(number) AS TEXT) FROM runs HAVING max(number) > 0",
            [SUMMARIES_DUE],
        )?;
    }
    if found < 5 {
        let earlier = approvals::table_of(found);
        transaction.execute_batch(SCHEMA_5)?;
        transaction.execute(&format!("INSERT INTO approvals_5 SELECT * FROM {earlier}"), [])?;
        transaction.execute_batch(SCHEMA_5_APPROVALS)?;
        transaction.execute_batch(SCHEMA_5_TAINTS)?;
    }
    if found < 6 {
        transaction.execute_batch(SCHEMA_6)?;
        transaction.execute_batch("INSERT INTO approvals_6 SELECT * FROM approvals;")?;
        transaction.execute_batch(SCHEMA_6_APPROVALS)?;
    }
    if found < 7 {
        transaction.execute_batch(SCHEMA_7)?;
    }
    if found < SCHEMA_VERSION {
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    Ok(())
}

/// Whether the store has summaries and columns of approvals: one of an earlier release that nobody has written since has
/// neither.
pub(crate) fn has_summaries(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= 4)
}

/// Whether the store has freezes.
pub(crate) fn has_freezes(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= 5)
}

/// Whether the store has an index of taints.
pub(crate) fn has_taints(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= 5)
}

/// Whether the store has an index of facts.
pub(crate) fn has_facts(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= 7)
}

/// The version of a store's tables.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The release that a store names, in words for a person. What a later release keeps where is not known, so it may not be
/// found.
fn release(connection: &Connection) -> String {
    let named: rusqlite::Result<String> =
        connection.query_row("SELECT value FROM meta WHERE key = ?1", [RELEASE], |row| row.get(0));
    match named {
        Ok(named) => {
            let shown: String = named.chars().take(RELEASE_CHARS_MAX).flat_map(char::escape_debug).collect();
            format!("release {shown}")
        }
        Err(_) => "a later release".to_owned(),
    }
}

/// The name of the store.
pub(crate) fn origin(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM meta WHERE key = 'origin'", [], |row| row.get(0)).optional()
}

/// The key of an event. `run` is a run's number in this store, from 1.
pub(crate) fn event_key(run: i64, seq: u64) -> i64 {
    run << 32 | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// The seq in a key.
pub(crate) fn key_seq(key: i64) -> u64 {
    u64::from_be_bytes(key.to_be_bytes()) & u64::from(u32::MAX)
}

/// Whole numbers in tables are signed; ours stay far below their limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A whole number from a table; a negative one cannot have been written.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
