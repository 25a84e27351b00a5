//! The index of taints: what was written with the words of others, by thing.
//!
//! The truth is in the events. These rows are written in the same transaction as the events they follow from. The
//! oldest go when there are too many of a store, a principal or a thing, and are then among those that were forgotten.

use portcullis_core::id::{Commitment, Digest};
use portcullis_core::label::LabelSet;
use portcullis_core::taint::Marks;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use crate::sqlite::read::SqliteReader;
use crate::sqlite::schema::{TAINT_KEY, has_taints, signed, unsigned};
use crate::taints::{
    Forgotten, StoredTaints, TAINTS_MAX, TAINTS_OF_PRINCIPAL_MAX, TAINTS_OF_THING_MAX, TaintRow,
};

/// The labels of a row whose payload was erased.
const UNKNOWN: &str = r#"["unknown"]"#;

/// Writes a row of a run, and removes those that there is no room for.
pub(crate) fn put(transaction: &Connection, run: i64, row: &TaintRow) -> rusqlite::Result<()> {
    let thing = row.thing.as_bytes();
    if row.replaces {
        transaction
            .prepare_cached("DELETE FROM taints WHERE thing = ?1 AND principal = ?2")?
            .execute(params![thing, row.principal])?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO taints (thing, principal, run, seq, commitment, labels, marks, replaces)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            thing,
            row.principal,
            run,
            signed(row.seq),
            row.commitment.as_bytes(),
            labels_text(&row.labels),
            row.marks.as_ref().map(marks_bytes),
            row.replaces,
        ])?;
    let last = transaction.last_insert_rowid();
    let limit = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
    evict(transaction, "number <= ?1", [last - limit(TAINTS_MAX)], 0)?;
    evict(transaction, "principal = ?1", [&row.principal], TAINTS_OF_PRINCIPAL_MAX)?;
    evict(transaction, "thing = ?1 AND principal = ?2", params![thing, row.principal], TAINTS_OF_THING_MAX)
}

/// Removes the oldest of the rows that fit, so that so many are left.
fn evict(transaction: &Connection, fitting: &str, given: impl Params, room: usize) -> rusqlite::Result<()> {
    let over: Vec<(i64, [u8; 32])> = transaction
        .prepare_cached(&format!(
            "SELECT number, thing FROM taints WHERE {fitting} ORDER BY number DESC LIMIT -1 OFFSET {room}"
        ))?
        .query_map(given, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (number, thing) in over {
        forget(transaction, &Digest::from_bytes(thing))?;
        transaction.prepare_cached("DELETE FROM taints WHERE number = ?1")?.execute([number])?;
    }
    Ok(())
}

/// Notes that it is not known any more what is in a thing.
fn forget(transaction: &Connection, thing: &Digest) -> rusqlite::Result<()> {
    let mut forgotten = Forgotten::default();
    let block = forgotten.insert(thing);
    if let Some(bytes) = block_of(transaction, block)? {
        forgotten.restore(block, bytes);
        forgotten.insert(thing);
    }
    transaction
        .prepare_cached("INSERT OR REPLACE INTO forgotten_taints (block, bits) VALUES (?1, ?2)")?
        .execute(params![block, forgotten.block(block)])
        .map(drop)
}

fn block_of(connection: &Connection, block: u8) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT bits FROM forgotten_taints WHERE block = ?1")?
        .query_row([block], |row| row.get(0))
        .optional()
}

/// Blanks what the index took from a payload that is erased. A thing that was clean stays so.
pub(crate) fn blank(transaction: &Connection, run: i64, commitment: &[u8; 32]) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE taints SET labels = ?3, marks = NULL WHERE run = ?1 AND commitment = ?2 AND labels <> '[]'",
        )?
        .execute(params![run, commitment, UNKNOWN])
        .map(drop)
}

/// Whether a row says no more than is left of a payload that was erased.
pub(crate) fn is_blank(row: &TaintRow) -> bool {
    row.marks.is_none() && (row.labels.is_empty() || labels_text(&row.labels) == UNKNOWN)
}

fn labels_text(labels: &LabelSet) -> String {
    // A list of texts always has a JSON text.
    serde_json::to_string(labels).unwrap_or_else(|_| UNKNOWN.to_owned())
}

fn marks_bytes(marks: &Marks) -> Vec<u8> {
    marks.as_slice().iter().flat_map(|mark| mark.to_be_bytes()).collect()
}

/// A query of what [`read`] takes.
pub(crate) const COLUMNS: &str =
    "SELECT thing, principal, seq, commitment, labels, marks, replaces FROM taints";

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<TaintRow> {
    let labels: String = row.get(4)?;
    let marks: Option<Vec<u8>> = row.get(5)?;
    let malformed =
        |column: usize, name: &str| rusqlite::Error::InvalidColumnType(column, name.to_owned(), Type::Blob);
    let marks = marks.map(|bytes| {
        let whole = bytes.as_chunks::<8>();
        let marks = whole.0.iter().map(|mark| u64::from_be_bytes(*mark)).collect();
        Marks::new(marks).filter(|_| whole.1.is_empty()).ok_or_else(|| malformed(5, "marks"))
    });
    Ok(TaintRow {
        thing: Digest::from_bytes(row.get(0)?),
        principal: row.get(1)?,
        seq: unsigned(row.get(2)?),
        commitment: Commitment::from_bytes(row.get(3)?),
        labels: serde_json::from_str(&labels).map_err(|_| malformed(4, "labels"))?,
        marks: marks.transpose()?,
        replaces: row.get(6)?,
    })
}

/// The key of the store.
pub(crate) fn key(connection: &Connection) -> rusqlite::Result<Option<Digest>> {
    let text: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE key = ?1", [TAINT_KEY], |row| row.get(0))
        .optional()?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// What was forgotten.
pub(crate) fn forgotten(connection: &Connection) -> rusqlite::Result<Forgotten> {
    let mut forgotten = Forgotten::default();
    let mut statement = connection.prepare_cached("SELECT block, bits FROM forgotten_taints")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        forgotten.restore(row.get(0)?, row.get(1)?);
    }
    Ok(forgotten)
}

impl SqliteReader {
    /// All taints of the store; none of one of an earlier release that nobody has written since.
    pub fn taints(&self) -> Result<StoredTaints, crate::error::LedgerError> {
        self.query(|connection| {
            if !has_taints(connection)? {
                return Ok(StoredTaints::default());
            }
            let rows = connection
                .prepare_cached(&format!("{COLUMNS} ORDER BY number"))?
                .query_map([], read)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(StoredTaints { key: key(connection)?, rows, forgotten: forgotten(connection)? })
        })
    }
}
