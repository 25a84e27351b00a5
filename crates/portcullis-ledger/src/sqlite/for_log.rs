//! What the transparency log asks of a store.

use portcullis_core::id::{RunId, SegmentId};
use portcullis_proof::{Digest, Hex};
use rusqlite::{OptionalExtension as _, params};

use crate::error::LedgerError;
use crate::ledger::SegmentStand;
use crate::rows::SegmentRow;
use crate::sqlite::read::{SqliteReader, run_number, segment_row, state};
use crate::sqlite::schema::{event_key, key_seq, signed, unsigned};

impl SqliteReader {
    /// See [`crate::Reader::segments_from`].
    pub fn segments_from(&self, after: i64, limit: usize) -> Result<Vec<(RunId, SegmentRow)>, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT s.number, s.segment, s.writer, s.ordinal, s.after, s.parent_segment, s.parent_link,
                         s.first_link, s.state, r.run FROM segments s JOIN runs r ON r.number = s.run
                     WHERE s.number > ?1 ORDER BY s.number LIMIT ?2",
                )?
                .query_map(params![after, signed(limit as u64)], |row| {
                    Ok((RunId::from_bytes(row.get(9)?), segment_row(row)?))
                })?
                .collect()
        })
    }

    /// See [`crate::Reader::segment_stand`].
    pub fn segment_stand(&self, place: i64, segment: SegmentId) -> Result<Option<SegmentStand>, LedgerError> {
        self.query(|connection| {
            let row = connection
                .prepare_cached(
                    "SELECT s.state, s.run, s.after, s.first_link,
                         (SELECT n.after FROM segments n WHERE n.run = s.run AND n.ordinal = s.ordinal + 1)
                     FROM segments s WHERE s.number = ?1 AND s.segment = ?2",
                )?
                .query_row(params![place, segment.as_bytes()], |row| {
                    let (run, after, first): (i64, i64, [u8; 32]) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    Ok((state(row, 0)?, run, unsigned(after), Hex(first), row.get::<_, Option<i64>>(4)?))
                })
                .optional()?;
            let Some((state, run, after, first, until)) = row else { return Ok(None) };
            let until = until.map_or(u64::MAX, unsigned);
            let last: Option<(i64, [u8; 32])> = connection
                .prepare_cached(
                    "SELECT key, link FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key DESC LIMIT 1",
                )?
                .query_row(params![event_key(run, after), event_key(run, until)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let (count, link) = last.map_or((after, first), |(key, link)| (key_seq(key), Hex(link)));
            Ok(Some(SegmentStand { state, count, link }))
        })
    }

    /// See [`crate::Reader::link_at`].
    pub fn link_at(&self, segment: SegmentId, count: u64) -> Result<Option<Option<Digest>>, LedgerError> {
        self.query(|connection| {
            let row: Option<(i64, i64, [u8; 32])> = connection
                .prepare_cached("SELECT run, after, first_link FROM segments WHERE segment = ?1")?
                .query_row([segment.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((run, after, first)) = row else { return Ok(None) };
            if unsigned(after) == count {
                return Ok(Some(Some(Hex(first))));
            }
            connection
                .prepare_cached("SELECT link FROM events WHERE key = ?1")?
                .query_row(params![event_key(run, count)], |row| row.get(0).map(Hex))
                .optional()
                .map(Some)
        })
    }

    /// See [`crate::Reader::last_event_of`].
    pub fn last_event_of(&self, segment: SegmentId) -> Result<Option<u64>, LedgerError> {
        self.query(|connection| {
            let row: Option<(i64, i64)> = connection
                .prepare_cached("SELECT run, after FROM segments WHERE segment = ?1")?
                .query_row([segment.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((run, after)) = row else { return Ok(None) };
            let last: Option<i64> = connection
                .prepare_cached("SELECT max(key) FROM events WHERE key BETWEEN ?1 AND ?2")?
                .query_row(params![event_key(run, 0), event_key(run, u64::MAX)], |row| row.get(0))?;
            Ok(Some(last.map_or(0, key_seq).max(unsigned(after))))
        })
    }

    /// See [`crate::Reader::configuration_lines`].
    pub fn configuration_lines(
        &self,
        run: RunId,
        after: u64,
        until: u64,
    ) -> Result<Vec<Vec<u8>>, LedgerError> {
        self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(Vec::new()) };
            connection
                .prepare_cached(
                    "SELECT line FROM events WHERE key > ?1 AND key <= ?2 AND kind IN ('run-opened', 'config')
                     ORDER BY key",
                )?
                .query_map(params![event_key(number, after), event_key(number, until)], |row| row.get(0))?
                .collect()
        })
    }
}
