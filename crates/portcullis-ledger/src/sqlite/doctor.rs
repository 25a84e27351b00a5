//! The check of a whole store: SQLite's own, every link and every commitment of every run computed again, and what is
//! indexed held against the events that it was taken from.

mod facts;
mod index;
mod taints;

use portcullis_core::id::{Commitment, RunId};
use portcullis_proof::{Hex, Parent, SegmentStart, event_hash, event_link, payload_commitment, segment_link};
use rusqlite::params;

use crate::error::LedgerError;
use crate::rows::Integrity;
use crate::rows::SegmentRow;
use crate::sqlite::freezes;
use crate::sqlite::read::{SqliteReader, run_number};
use crate::sqlite::schema::{event_key, key_seq};

/// The most problems that are named.
const PROBLEMS_MAX: usize = 100;

impl SqliteReader {
    /// Checks the whole store, payloads that are not erased included. Reads every byte of it; takes as long.
    pub fn integrity_check(&self) -> Result<Integrity, LedgerError> {
        let mut integrity = Integrity::default();
        let found: Vec<String> = self.query(|connection| {
            connection
                .prepare(&format!("PRAGMA integrity_check({PROBLEMS_MAX})"))?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        integrity.problems.extend(found.into_iter().filter(|problem| problem != "ok"));
        let orphans: i64 = self.query(|connection| {
            connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        })?;
        if orphans > 0 {
            integrity.problems.push(format!("{orphans} rows are orphaned: what they refer to is missing"));
        }
        if self.has_erasures()? {
            let undead: i64 = self.query(|connection| {
                connection.query_row(
                    "SELECT count(*) FROM erasures e JOIN payloads p ON p.run = e.run AND p.commitment = e.commitment
                     WHERE p.salt <> zeroblob(32) OR length(p.bytes) > 0",
                    [],
                    |row| row.get(0),
                )
            })?;
            if undead > 0 {
                integrity.problems.push(format!("{undead} erased payloads are present again"));
            }
        }
        integrity.problems.extend(self.query(freezes::check)?.into_iter().take(PROBLEMS_MAX));
        // A damaged database is not worth the walk over its rows.
        if !integrity.problems.is_empty() {
            return Ok(integrity);
        }
        let origin = self.origin()?;
        let mut after = 0i64;
        loop {
            let next: Option<(i64, [u8; 16])> = self.query(|connection| {
                use rusqlite::OptionalExtension as _;
                connection
                    .prepare_cached("SELECT number, run FROM runs WHERE number > ?1 ORDER BY number LIMIT 1")?
                    .query_row([after], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })?;
            let Some((number, run)) = next else { return Ok(integrity) };
            after = number;
            let run = RunId::from_bytes(run);
            if let Err(problem) = self.check_run(&origin, run, &mut integrity.events)? {
                integrity.problems.push(format!("run {run}: {problem}"));
            }
            self.check_payloads(number, run, &mut integrity.problems)?;
            self.check_index(number, run, &mut integrity.problems)?;
            integrity.runs += 1;
            if integrity.problems.len() >= PROBLEMS_MAX {
                return Ok(integrity);
            }
        }
    }

    /// Computes every link of a run again. What is read of a run and relied on may be checked with it first.
    ///
    /// # Errors
    /// [`LedgerError::Corrupt`] if an event or a segment is not what was stored. O(events of the run).
    pub fn verify_run(&self, run: RunId) -> Result<(), LedgerError> {
        let origin = self.origin()?;
        self.check_run(&origin, run, &mut 0)?.map_err(|problem| LedgerError::Corrupt {
            place: self.store.place(),
            detail: format!("run {run}: {problem}"),
        })
    }

    fn check_run(
        &self,
        origin: &str,
        run: RunId,
        events: &mut u64,
    ) -> Result<Result<(), String>, LedgerError> {
        let Some((number, _)) = self.query(|connection| run_number(connection, run))? else {
            return Ok(Ok(()));
        };
        let (mut seq, mut parent) = (0, None);
        for row in self.segments(run)? {
            let first = segment_link(&SegmentStart {
                origin,
                run: Hex(*run.as_bytes()),
                segment: Hex(*row.segment.as_bytes()),
                writer: &row.writer,
                ordinal: row.ordinal,
                after: row.after,
                parent: row.parent,
            });
            if first != row.first_link || row.parent != parent || row.after != seq {
                return Ok(Err(format!("segment {} does not continue the one before it", row.segment)));
            }
            match self.check_events(number, run, &row, events)? {
                Ok((count, link)) => {
                    seq = count;
                    parent = Some(Parent { segment: Hex(*row.segment.as_bytes()), link });
                }
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(Ok(()))
    }

    /// Names the payloads that do not match their commitments. Erased ones cannot be checked.
    fn check_payloads(&self, number: i64, run: RunId, problems: &mut Vec<String>) -> Result<(), LedgerError> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT commitment, salt, media_type, bytes FROM payloads
                 WHERE run = ?1 AND salt <> zeroblob(32) ORDER BY number",
            )?;
            let mut rows = statement.query([number])?;
            while let Some(row) = rows.next()? {
                let commitment: [u8; 32] = row.get(0)?;
                let (salt, media_type): ([u8; 32], String) = (row.get(1)?, row.get(2)?);
                if payload_commitment(&salt, &media_type, row.get_ref(3)?.as_blob()?).0 == commitment {
                    continue;
                }
                if problems.len() >= PROBLEMS_MAX {
                    break;
                }
                let commitment = Commitment::from_bytes(commitment);
                problems.push(format!("run {run}: payload {commitment} does not match its commitment"));
            }
            Ok(())
        })
    }

    fn check_events(
        &self,
        number: i64,
        run: RunId,
        segment: &SegmentRow,
        events: &mut u64,
    ) -> Result<Result<(u64, portcullis_proof::Digest), String>, LedgerError> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, segment, link, line FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key",
            )?;
            let mut rows =
                statement.query(params![event_key(number, segment.after), event_key(number, u64::MAX)])?;
            let (mut seq, mut link) = (segment.after, segment.first_link);
            while let Some(row) = rows.next()? {
                if row.get::<_, i64>(1)? != segment.place {
                    break;
                }
                let found = key_seq(row.get(0)?);
                seq += 1;
                if found != seq {
                    return Ok(Err(format!("event {seq} is missing")));
                }
                let line = row.get_ref(3)?.as_blob()?;
                let (run, id) = (Hex(*run.as_bytes()), Hex(*segment.segment.as_bytes()));
                link = event_link(run, id, seq, link, event_hash(line));
                if link.0 != row.get::<_, [u8; 32]>(2)? {
                    return Ok(Err(format!("event {seq} does not hash to its link")));
                }
                *events += 1;
            }
            Ok(Ok((seq, link)))
        })
    }
}
