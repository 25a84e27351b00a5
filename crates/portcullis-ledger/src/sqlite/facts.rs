//! The index of facts. The truth is in the events; rows are written in the same transaction as the events they follow
//! from. A row is never deleted: one that is gone says why, and by which event.

use portcullis_core::id::{Commitment, Digest, RunId};
use portcullis_core::kept::KeptId;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::LedgerError;
use crate::facts::{FACTS_LISTED_MAX, FactChange, FactFilter, FactReader, FactRow, Gone, NewFactRow};
use crate::sqlite::read::SqliteReader;
use crate::sqlite::schema::{has_facts, signed, unsigned};

/// The folder of a fact that all runs of its principal may read.
const ANYWHERE: &[u8] = &[];

/// Writes what an event of a run does.
pub(crate) fn put(transaction: &Connection, run: i64, change: &FactChange) -> rusqlite::Result<()> {
    match change {
        FactChange::Written(new) => write(transaction, run, new),
        FactChange::Forgotten { seq, fact } => {
            // Forgetting comes after replacing: it is the stronger word.
            transaction
                .prepare_cached(
                    "UPDATE facts SET gone = ?1, gone_run = ?2, gone_seq = ?3
                     WHERE run = (SELECT number FROM runs WHERE run = ?4) AND seq = ?5
                         AND (gone IS NULL OR gone <> ?1)",
                )?
                .execute(params![
                    Gone::Forgotten.as_str(),
                    run,
                    signed(*seq),
                    fact.run.as_bytes(),
                    signed(fact.seq)
                ])
                .map(drop)
        }
    }
}

fn write(transaction: &Connection, run: i64, new: &NewFactRow) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO facts (run, seq, principal, workspace, topic, commitment) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            run,
            signed(new.seq),
            new.principal,
            new.workspace.as_ref().map_or(ANYWHERE, |folder| folder.as_bytes()),
            new.topic.as_ref().map(Digest::as_bytes),
            new.commitment.as_bytes(),
        ])?;
    let mut replace = transaction.prepare_cached(
        "UPDATE facts SET gone = ?1, gone_run = ?2, gone_seq = ?3
         WHERE run = (SELECT number FROM runs WHERE run = ?4) AND seq = ?5 AND gone IS NULL",
    )?;
    for fact in &new.replaces {
        let by = (Gone::Replaced.as_str(), run, signed(new.seq));
        replace.execute(params![by.0, by.1, by.2, fact.run.as_bytes(), signed(fact.seq)])?;
    }
    Ok(())
}

/// Blanks what the index took from a payload that is erased.
pub(crate) fn blank(transaction: &Connection, run: i64, commitment: &[u8; 32]) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE facts SET topic = NULL WHERE run = ?1 AND commitment = ?2 AND topic IS NOT NULL",
        )?
        .execute(params![run, commitment])
        .map(drop)
}

/// A query of what [`read`] takes.
pub(crate) const COLUMNS: &str =
    "SELECT f.number, r.run, f.seq, f.principal, f.workspace, f.topic, f.commitment,
        f.gone, g.run, f.gone_seq
    FROM facts f JOIN runs r ON r.number = f.run LEFT JOIN runs g ON g.number = f.gone_run";

/// Reads a row of [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<FactRow> {
    let malformed =
        |column: usize, name: &str| rusqlite::Error::InvalidColumnType(column, name.to_owned(), Type::Blob);
    let digest = |column: usize, bytes: &[u8]| -> rusqlite::Result<Digest> {
        let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| malformed(column, "digest"))?;
        Ok(Digest::from_bytes(bytes))
    };
    let (workspace, topic): (Vec<u8>, Option<Vec<u8>>) = (row.get(4)?, row.get(5)?);
    let (gone, by, seq): (Option<String>, Option<[u8; 16]>, Option<i64>) =
        (row.get(7)?, row.get(8)?, row.get(9)?);
    let gone = match gone.as_deref() {
        None => None,
        Some("replaced") => Some(Gone::Replaced),
        Some("forgotten") => Some(Gone::Forgotten),
        Some(_) => return Err(malformed(7, "gone")),
    };
    let by = by.zip(seq).map(|(run, seq)| KeptId { run: RunId::from_bytes(run), seq: unsigned(seq) });
    Ok(FactRow {
        number: unsigned(row.get(0)?),
        id: KeptId { run: RunId::from_bytes(row.get(1)?), seq: unsigned(row.get(2)?) },
        principal: row.get(3)?,
        workspace: (!workspace.is_empty()).then(|| digest(4, &workspace)).transpose()?,
        topic: topic.map(|bytes| digest(5, &bytes)).transpose()?,
        commitment: Commitment::from_bytes(row.get(6)?),
        gone: gone.map(|gone| by.map(|by| (gone, by)).ok_or_else(|| malformed(8, "gone_run"))).transpose()?,
    })
}

/// The rows that a run may read, of one folder or of none: each is a range of an index, read backwards.
fn of_reader(
    connection: &Connection,
    reader: &FactReader,
    folder: &[u8],
    filter: &FactFilter,
) -> rusqlite::Result<Vec<FactRow>> {
    let before = filter.before.map_or(i64::MAX, signed);
    let limit = i64::try_from(filter.limit.min(FACTS_LISTED_MAX)).unwrap_or(i64::MAX);
    let range = "WHERE f.principal = ?1 AND f.workspace = ?2 AND f.gone IS NULL AND f.number < ?3";
    let order = "ORDER BY f.number DESC LIMIT ?4";
    match &filter.topic {
        None => connection
            .prepare_cached(&format!("{COLUMNS} {range} {order}"))?
            .query_map(params![reader.principal, folder, before, limit], read)?
            .collect(),
        Some(topic) => connection
            .prepare_cached(&format!("{COLUMNS} {range} AND f.topic = ?5 {order}"))?
            .query_map(params![reader.principal, folder, before, limit, topic.as_bytes()], read)?
            .collect(),
    }
}

fn listed(connection: &Connection, filter: &FactFilter) -> rusqlite::Result<Vec<FactRow>> {
    if let Some(reader) = &filter.reader {
        let mut rows = of_reader(connection, reader, ANYWHERE, filter)?;
        rows.extend(of_reader(connection, reader, reader.workspace.as_bytes(), filter)?);
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.number));
        rows.truncate(filter.limit.min(FACTS_LISTED_MAX));
        return Ok(rows);
    }
    let before = filter.before.map_or(i64::MAX, signed);
    let limit = i64::try_from(filter.limit.min(FACTS_LISTED_MAX)).unwrap_or(i64::MAX);
    let (run, topic) = (filter.run.map(|run| *run.as_bytes()), filter.topic.map(|topic| *topic.as_bytes()));
    connection
        .prepare_cached(&format!(
            "{COLUMNS} WHERE f.number < ?1 AND (?2 IS NULL OR f.principal = ?2) AND (?3 IS NULL OR r.run = ?3)
                 AND (?4 IS NULL OR f.topic = ?4) AND (?5 OR f.gone IS NULL)
             ORDER BY f.number DESC LIMIT ?6"
        ))?
        .query_map(params![before, filter.principal, run, topic, filter.gone, limit], read)?
        .collect()
}

impl SqliteReader {
    /// Facts, the newest first; none of a store of an earlier release that nobody has written since.
    pub fn facts(&self, filter: &FactFilter) -> Result<Vec<FactRow>, LedgerError> {
        self.query(|connection| match has_facts(connection)? {
            true => listed(connection, filter),
            false => Ok(Vec::new()),
        })
    }

    /// The fact of that name.
    pub fn fact(&self, id: KeptId) -> Result<Option<FactRow>, LedgerError> {
        self.query(|connection| {
            if !has_facts(connection)? {
                return Ok(None);
            }
            connection
                .prepare_cached(&format!("{COLUMNS} WHERE r.run = ?1 AND f.seq = ?2"))?
                .query_row(params![id.run.as_bytes(), signed(id.seq)], read)
                .optional()
        })
    }

    /// How many facts were ever established.
    pub fn facts_ever(&self) -> Result<u64, LedgerError> {
        self.query(|connection| {
            if !has_facts(connection)? {
                return Ok(0);
            }
            // Rows are numbered from 1 and never deleted.
            let last: Option<i64> = connection
                .prepare_cached("SELECT max(number) FROM facts")?
                .query_row([], |row| row.get(0))?;
            Ok(last.map_or(0, unsigned))
        })
    }
}
