//! Export of one run, and the lines of a trust file.

use std::io::{BufWriter, Write};
use std::iter::Peekable;

use portcullis_core::id::RunId;
use portcullis_proof::export::{
    EXPORT_FORMAT, EXPORT_FORMAT_ERASED, EndRecord, ErasedRecord, ExportRecord, HeadRecord, PayloadRecord,
    SegmentRecord, SegmentState, write_event, write_record,
};
use portcullis_proof::trust::{head_line, preamble};
use portcullis_proof::{Digest, Hex};
use rusqlite::{OptionalExtension as _, params};

use crate::error::{LedgerError, Refusal};
use crate::rows::ExportOptions;
use crate::rows::ExportSummary;
use crate::rows::SegmentRow;
use crate::sqlite::read::{SqliteReader, run_number, stored_payload};
use crate::sqlite::schema::{event_key, key_seq};

impl SqliteReader {
    /// Writes a run as `portcullis-export/v1`, or `/v2` where payloads of it were erased, as of one moment, byte-exact.
    /// Memory grows with the number of erased payloads, not otherwise with the run.
    pub fn export_run(
        &self,
        run: RunId,
        out: impl Write,
        options: ExportOptions,
    ) -> Result<ExportSummary, LedgerError> {
        // One read transaction: what is appended meanwhile is not in the export.
        let snapshot = self.connection.unchecked_transaction().map_err(|error| self.store.error(&error))?;
        let Some((number, _)) = self.query(|connection| run_number(connection, run))? else {
            return Err(Refusal::RunUnknown(run.to_string()).into());
        };
        let mut export = Export {
            reader: self,
            number,
            out: BufWriter::new(out),
            summary: ExportSummary {
                head: None,
                state: SegmentState::Open,
                segments: 0,
                events: 0,
                payloads: 0,
                erased: 0,
            },
        };
        let origin = self.origin()?;
        let erased = self.erased_commitments(number)?;
        export.record(&ExportRecord {
            format: if erased.is_empty() { EXPORT_FORMAT } else { EXPORT_FORMAT_ERASED }.into(),
            origin: origin.into(),
            run: Hex(*run.as_bytes()),
        })?;
        for segment in self.segments(run)? {
            export.segment(&segment)?;
        }
        let mut left = erased.iter().copied().peekable();
        if options.payloads {
            export.payloads(&mut left)?;
        }
        for commitment in left {
            export.erased(commitment)?;
        }
        let ExportSummary { segments, events, payloads, .. } = export.summary;
        let erased = (!erased.is_empty()).then_some(export.summary.erased);
        export.record(&EndRecord { segments, events, payloads, erased })?;
        export.out.flush().map_err(|error| self.output_error(&error))?;
        drop(snapshot);
        Ok(export.summary)
    }

    /// The trusted heads of runs as a trust file. Keep it where the store's owner cannot write it.
    pub fn trust_text(&self, runs: &[RunId]) -> Result<String, LedgerError> {
        let mut text = preamble(&self.origin()?);
        for run in runs {
            if let Some(line) = self.trust_line(*run)? {
                text.push_str(&line);
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// The trust file line for the head of a run, or `None` for a run without events.
    pub fn trust_line(&self, run: RunId) -> Result<Option<String>, LedgerError> {
        let last: Option<(i64, [u8; 32])> = self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(None) };
            connection
                .prepare_cached(
                    "SELECT key, link FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
                )?
                .query_row(params![event_key(number, 0), event_key(number, u64::MAX)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()
        })?;
        Ok(last.map(|(key, link)| {
            let head = portcullis_proof::Head { count: key_seq(key), link: Hex(link) };
            head_line(Hex(*run.as_bytes()), head)
        }))
    }

    fn output_error(&self, error: &std::io::Error) -> LedgerError {
        LedgerError::Output { detail: error.to_string() }
    }
}

struct Export<'a, W: Write> {
    reader: &'a SqliteReader,
    number: i64,
    out: BufWriter<W>,
    summary: ExportSummary,
}

impl<W: Write> Export<'_, W> {
    fn record(&mut self, record: &impl serde::Serialize) -> Result<(), LedgerError> {
        write_record(&mut self.out, record).map_err(|error| self.reader.output_error(&error))
    }

    fn segment(&mut self, row: &SegmentRow) -> Result<(), LedgerError> {
        let segment = Hex(*row.segment.as_bytes());
        self.record(&SegmentRecord {
            segment,
            writer: row.writer.as_str().into(),
            ordinal: row.ordinal,
            after: row.after,
            parent: row.parent,
            link: row.first_link,
        })?;
        let (count, link) = self.events(row)?;
        self.record(&HeadRecord { segment, state: row.state, count, link })?;
        self.summary.segments += 1;
        self.summary.state = row.state;
        Ok(())
    }

    /// Writes the events of a segment. Returns its head after them.
    fn events(&mut self, row: &SegmentRow) -> Result<(u64, Digest), LedgerError> {
        let sqlite = |error: rusqlite::Error| self.reader.store.error(&error);
        let mut statement = self
            .reader
            .connection
            .prepare_cached(
                "SELECT key, segment, link, line FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key",
            )
            .map_err(sqlite)?;
        let mut rows = statement
            .query(params![event_key(self.number, row.after), event_key(self.number, u64::MAX)])
            .map_err(sqlite)?;
        let (mut count, mut link) = (row.after, row.first_link);
        while let Some(event) = rows.next().map_err(sqlite)? {
            let read =
                (|| Ok((event.get::<_, i64>(0)?, event.get::<_, i64>(1)?, event.get::<_, [u8; 32]>(2)?)))();
            let (key, segment, event_link) = read.map_err(sqlite)?;
            if segment != row.place {
                break;
            }
            let line = event
                .get_ref(3)
                .and_then(|line| line.as_blob().map_err(rusqlite::Error::from))
                .map_err(sqlite)?;
            (count, link) = (key_seq(key), Hex(event_link));
            write_event(&mut self.out, link, line).map_err(|error| self.reader.output_error(&error))?;
            self.summary.events += 1;
            self.summary.head = Some(portcullis_proof::Head { count, link });
        }
        Ok((count, link))
    }

    fn erased(&mut self, commitment: Digest) -> Result<(), LedgerError> {
        self.record(&ErasedRecord { commitment })?;
        self.summary.erased += 1;
        Ok(())
    }

    /// Writes the payloads, and those of the erased ones that come before one of them in order of commitment.
    fn payloads(&mut self, erased: &mut Peekable<impl Iterator<Item = Digest>>) -> Result<(), LedgerError> {
        let sqlite = |error: rusqlite::Error| self.reader.store.error(&error);
        let mut statement = self
            .reader
            .connection
            .prepare_cached(
                "SELECT commitment, salt, media_type, bytes FROM payloads
                 WHERE run = ?1 AND salt <> zeroblob(32) ORDER BY commitment",
            )
            .map_err(sqlite)?;
        let mut rows = statement.query([self.number]).map_err(sqlite)?;
        while let Some(row) = rows.next().map_err(sqlite)? {
            let payload = stored_payload(row).map_err(sqlite)?;
            let commitment = Hex(*payload.commitment().as_bytes());
            while let Some(before) = erased.next_if(|erased| *erased < commitment) {
                self.erased(before)?;
            }
            let record =
                PayloadRecord::new(commitment, Hex(payload.salt), payload.media_type(), payload.bytes());
            write_record(&mut self.out, &record).map_err(|error| self.reader.output_error(&error))?;
            self.summary.payloads += 1;
        }
        Ok(())
    }
}
