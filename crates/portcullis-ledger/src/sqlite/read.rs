//! Queries. Each reader has a connection of its own that cannot write, and sees the store as of its last commit.

use portcullis_core::freeze::Freeze;
use portcullis_core::id::{ActionId, ApprovalId, Commitment, RunId, SegmentId};
use portcullis_core::state::progress::Progress;
use portcullis_core::time::Timestamp;
use portcullis_proof::export::SegmentState;
use portcullis_proof::{Digest, Hex, Parent};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use std::path::Path;
use std::sync::Arc;

use crate::chain::{Head, Lease, Owner, StoredPayload};
use crate::error::{LedgerError, Refusal};
use crate::rows::ApprovalFilter;
use crate::rows::ApprovalRow;
use crate::rows::FreezeFilter;
use crate::rows::RunFilter;
use crate::rows::RunSummary;
use crate::rows::SegmentRow;
use crate::rows::StoredEvent;
use crate::sqlite::approvals::{self};
use crate::sqlite::freezes;
use crate::sqlite::ledger::OpenOptions;
use crate::sqlite::schema::{self, Files, event_key, has_summaries, key_seq, signed, unsigned};
use crate::sqlite::summaries;

/// The most rows of one answer.
const ROWS_MAX: usize = 10_000;
/// Runs named when a prefix fits several.
const CANDIDATES_MAX: usize = 8;

/// One connection for queries. Not for async code without a blocking thread around it.
#[derive(Debug)]
pub struct SqliteReader {
    pub(crate) store: Arc<Files>,
    pub(crate) connection: Connection,
}

impl SqliteReader {
    /// Opens an existing store for reading only; makes no writer and takes no lock.
    pub fn open(folder: &Path) -> Result<SqliteReader, LedgerError> {
        let store = Files::at(folder, OpenOptions::default().busy_timeout, None);
        SqliteReader::of(Arc::new(store))
    }

    pub(crate) fn of(store: Arc<Files>) -> Result<SqliteReader, LedgerError> {
        let connection = store.open_reader()?;
        Ok(SqliteReader { store, connection })
    }

    /// Runs a query, with SQLite's errors as ours.
    pub(crate) fn query<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        query(&self.connection).map_err(|error| self.store.error(&error))
    }

    /// The name of the store.
    pub fn origin(&self) -> Result<String, LedgerError> {
        self.query(schema::origin)?.ok_or_else(|| LedgerError::Corrupt {
            place: self.store.place(),
            detail: "the store has no origin".to_owned(),
        })
    }

    /// Runs, newest first. Reads a row for each and no events, however long the runs are.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, LedgerError> {
        self.query(|connection| {
            let (sql, params) = listing(summary_columns(connection)?, filter);
            connection.prepare_cached(&sql)?.query_map(params_from_iter(params), summary)?.collect()
        })
    }

    /// One run, or `None` if the store has no such run.
    pub fn run(&self, run: RunId) -> Result<Option<RunSummary>, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached(&format!("{} WHERE r.run = ?1", summary_columns(connection)?))?
                .query_row([run.as_bytes()], summary)
                .optional()
        })
    }

    /// How far a run has come, computed from its events; none when it has none. For a run whose summary lacks it.
    pub fn progress(&self, run: RunId) -> Result<Option<Progress>, LedgerError> {
        self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(None) };
            Ok(summaries::fold(connection, number, || false)?.map(|summary| summary.progress))
        })
    }

    /// The run whose id starts with `prefix`. Refuses a prefix that fits none or several.
    pub fn find_run(&self, prefix: &str) -> Result<RunId, LedgerError> {
        self.find_run_of(prefix, None)
    }

    /// The same among the runs of one principal, or `None` for all. A run of another principal is treated as unknown:
    /// neither its id nor its existence is revealed.
    pub fn find_run_of(&self, prefix: &str, principal: Option<&str>) -> Result<RunId, LedgerError> {
        let unknown = || LedgerError::from(Refusal::RunUnknown(prefix.chars().take(40).collect()));
        let bound = |fill: &str| {
            let missing = 32usize.checked_sub(prefix.len())?;
            format!("{prefix}{}", fill.repeat(missing)).parse::<RunId>().ok()
        };
        let (Some(low), Some(high)) = (bound("0"), bound("f")) else { return Err(unknown()) };
        let found: Vec<RunId> = self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT run FROM runs WHERE run BETWEEN ?1 AND ?2 AND (?4 IS NULL OR principal = ?4)
                     ORDER BY number DESC LIMIT ?3",
                )?
                .query_map(
                    params![low.as_bytes(), high.as_bytes(), rows(Some(CANDIDATES_MAX)), principal],
                    |row| row.get(0).map(RunId::from_bytes),
                )?
                .collect()
        })?;
        match found.as_slice() {
            [] => Err(unknown()),
            [run] => Ok(*run),
            _ => Err(Refusal::RunAmbiguous { prefix: prefix.to_owned(), candidates: found }.into()),
        }
    }

    /// Approvals whose id starts with `prefix`, of one principal or of all, at most two: enough to tell that there are
    /// several.
    pub fn find_approvals(
        &self,
        prefix: &str,
        principal: Option<&str>,
    ) -> Result<Vec<ApprovalRow>, LedgerError> {
        approvals::starting_with(&self.store, &self.connection, prefix, principal)
    }

    /// The newest run of a principal's client session, in any state.
    pub fn latest_run(&self, principal: &str, session_key: &str) -> Result<Option<RunId>, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT run FROM runs WHERE session_key = ?1 AND principal = ?2 ORDER BY number DESC LIMIT 1",
                )?
                .query_row([session_key, principal], |row| row.get(0).map(RunId::from_bytes))
                .optional()
        })
    }

    /// The runs of a principal whose last event was written at `since` or later, newest first, at most `limit` (and
    /// 10,000).
    pub fn runs_since(
        &self,
        principal: &str,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<RunId>, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT r.run FROM runs r LEFT JOIN summaries m ON m.run = r.number
                     WHERE r.principal = ?1 AND ?2 <= coalesce(m.last_event, (SELECT t {LAST_EVENT}))
                     ORDER BY r.number DESC LIMIT ?3",
                ))?
                .query_map(params![principal, since.as_micros(), rows(Some(limit))], |row| {
                    row.get(0).map(RunId::from_bytes)
                })?
                .collect()
        })
    }

    /// The segments of a run, in order.
    pub fn segments(&self, run: RunId) -> Result<Vec<SegmentRow>, LedgerError> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT s.number, s.segment, s.writer, s.ordinal, s.after, s.parent_segment, s.parent_link,
                         s.first_link, s.state FROM segments s JOIN runs r ON r.number = s.run WHERE r.run = ?1
                     ORDER BY s.ordinal",
                )?
                .query_map([run.as_bytes()], segment_row)?
                .collect()
        })
    }

    /// At most `limit` (and 10,000) events of a run after event `after`, in order.
    pub fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, LedgerError> {
        self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(Vec::new()) };
            connection
                .prepare_cached(
                    "SELECT key, kind, action, t, link, line FROM events WHERE key > ?1 AND key <= ?2
                     ORDER BY key LIMIT ?3",
                )?
                .query_map(
                    params![event_key(number, after), event_key(number, u64::MAX), rows(Some(limit))],
                    stored_event,
                )?
                .collect()
        })
    }

    /// The last event of a kind before event `before` of a run, among the `within` events before that.
    pub fn last_of_kind(
        &self,
        run: RunId,
        kind: &str,
        before: u64,
        within: u64,
    ) -> Result<Option<StoredEvent>, LedgerError> {
        self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(None) };
            let first = event_key(number, before.saturating_sub(within));
            connection
                .prepare_cached(
                    "SELECT key, kind, action, t, link, line FROM events
                     WHERE key >= ?1 AND key < ?2 AND kind = ?3 ORDER BY key DESC LIMIT 1",
                )?
                .query_row(params![first, event_key(number, before), kind], stored_event)
                .optional()
        })
    }

    /// A payload, or `None` if it was never stored or is erased. What others rely on may be read from it, such as
    /// what a grant is for: fails with [`LedgerError::PayloadAltered`] if it is not what was committed to.
    pub fn payload(&self, run: RunId, commitment: Commitment) -> Result<Option<StoredPayload>, LedgerError> {
        let payload = self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT p.commitment, p.salt, p.media_type, p.bytes FROM payloads p
                     JOIN runs r ON r.number = p.run
                     WHERE r.run = ?1 AND p.commitment = ?2 AND p.salt <> zeroblob(32)",
                )?
                .query_row(params![run.as_bytes(), commitment.as_bytes()], stored_payload)
                .optional()
        })?;
        match payload {
            Some(payload) if !payload.opens() => {
                Err(LedgerError::PayloadAltered { place: self.store.place(), run, commitment })
            }
            payload => Ok(payload),
        }
    }

    /// The head of a run, or `None` if the store has no such run.
    pub fn head(&self, run: RunId) -> Result<Option<Head>, LedgerError> {
        self.query(|connection| {
            let Some((number, _)) = run_number(connection, run)? else { return Ok(None) };
            Ok(last_segment(connection, number)?.map(|last| last.head))
        })
    }

    /// Approvals, newest first.
    pub fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRow>, LedgerError> {
        approvals::list(&self.store, &self.connection, filter)
    }

    /// The freezes that a filter names.
    pub fn freezes(&self, filter: &FreezeFilter) -> Result<Vec<Freeze>, LedgerError> {
        self.query(|connection| freezes::list(connection, filter))
    }

    /// One approval.
    pub fn approval(&self, approval: ApprovalId) -> Result<Option<ApprovalRow>, LedgerError> {
        approvals::get(&self.store, &self.connection, approval)
    }
}

/// What [`summary`] reads. The last segment of a run is found by its index, and so are the last event and the pending
/// approvals of a run that has no summary.
fn summary_columns(connection: &Connection) -> rusqlite::Result<String> {
    let (table, columns) = match has_summaries(connection)? {
        true => ("LEFT JOIN summaries m ON m.run = r.number", summaries::columns(connection)?),
        false => (
            "LEFT JOIN (SELECT NULL AS run, NULL AS events, NULL AS last_event, NULL AS pending_approvals) m",
            "NULL".to_owned(),
        ),
    };
    Ok(format!(
        "SELECT r.run, r.principal, r.session_key, r.opened, s.state, s.writer, s.ordinal + 1,
             coalesce(m.events, (SELECT key & 4294967295 {LAST_EVENT})), coalesce(m.last_event, (SELECT t {LAST_EVENT})),
             coalesce(m.pending_approvals,
                 (SELECT count(*) FROM approvals a WHERE a.run = r.number AND a.state = 'pending')),
             {columns}
         FROM runs r JOIN segments s ON s.number =
             (SELECT number FROM segments WHERE run = r.number ORDER BY ordinal DESC LIMIT 1) {table}"
    ))
}

/// The last event of the run `r`.
const LAST_EVENT: &str = "FROM events WHERE key BETWEEN r.number << 32 AND r.number << 32 | 4294967295
    ORDER BY key DESC LIMIT 1";
/// The first column of a summary in [`summary_columns`].
const SUMMARY_AT: usize = 10;

/// The query of a list of runs, and its parameters. Only what is asked for is in it, so that an index serves it: the
/// runs of a principal are read newest first, as all runs are.
fn listing(columns: String, filter: &RunFilter) -> (String, Vec<SqlValue>) {
    let mut params = vec![SqlValue::from(rows(filter.limit))];
    let mut sql = columns + " WHERE true";
    let given = [
        ("r.principal =", filter.principal.clone().map(SqlValue::from)),
        ("r.opened >=", filter.since.map(|since| SqlValue::from(since.as_micros()))),
        ("r.opened <", filter.until.map(|until| SqlValue::from(until.as_micros()))),
    ];
    for (condition, value) in given {
        if let Some(value) = value {
            params.push(value);
            sql += &format!(" AND {condition} ?{}", params.len());
        }
    }
    if let Some(run) = filter.older_than {
        params.push(SqlValue::from(run.as_bytes().to_vec()));
        sql += &format!(" AND r.number < (SELECT number FROM runs WHERE run = ?{})", params.len());
    }
    (sql + " ORDER BY r.number DESC LIMIT ?1", params)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        run: RunId::from_bytes(row.get(0)?),
        principal: row.get(1)?,
        session_key: row.get(2)?,
        opened: Timestamp::from_micros(row.get(3)?),
        state: state(row, 4)?,
        writer: row.get(5)?,
        segments: unsigned(row.get(6)?),
        events: row.get::<_, Option<i64>>(7)?.map_or(0, unsigned),
        last_event: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_micros),
        pending_approvals: unsigned(row.get(9)?),
        progress: match row.get_ref(SUMMARY_AT)? {
            ValueRef::Null => None,
            _ => Some(summaries::read(row, SUMMARY_AT)?.progress),
        },
    })
}

pub(crate) fn segment_row(row: &Row<'_>) -> rusqlite::Result<SegmentRow> {
    let parent: Option<[u8; 16]> = row.get(5)?;
    let parent_link: Option<[u8; 32]> = row.get(6)?;
    Ok(SegmentRow {
        place: row.get(0)?,
        segment: SegmentId::from_bytes(row.get(1)?),
        writer: row.get(2)?,
        ordinal: unsigned(row.get(3)?),
        after: unsigned(row.get(4)?),
        parent: parent
            .zip(parent_link)
            .map(|(segment, link)| Parent { segment: Hex(segment), link: Hex(link) }),
        first_link: Hex(row.get(7)?),
        state: state(row, 8)?,
    })
}

fn stored_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        seq: key_seq(row.get(0)?),
        kind: row.get(1)?,
        action: row.get::<_, Option<[u8; 16]>>(2)?.map(ActionId::from_bytes),
        t: Timestamp::from_micros(row.get(3)?),
        link: Hex(row.get(4)?),
        line: row.get(5)?,
    })
}

pub(crate) fn stored_payload(row: &Row<'_>) -> rusqlite::Result<StoredPayload> {
    Ok(StoredPayload::stored(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

pub(crate) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<SegmentState> {
    let text = row.get_ref(column)?.as_str()?;
    [SegmentState::Open, SegmentState::Closed, SegmentState::Abandoned]
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| {
            rusqlite::Error::InvalidColumnType(column, "state".to_owned(), rusqlite::types::Type::Text)
        })
}

fn rows(limit: Option<usize>) -> i64 {
    signed(limit.unwrap_or(ROWS_MAX).min(ROWS_MAX) as u64)
}

/// The last segment of a run, with its head.
pub(crate) struct LastSegment {
    pub(crate) number: i64,
    pub(crate) writer: String,
    pub(crate) ordinal: u64,
    pub(crate) state: SegmentState,
    pub(crate) head: Head,
}

/// A run's number in this store, and its principal.
pub(crate) fn run_number(connection: &Connection, run: RunId) -> rusqlite::Result<Option<(i64, String)>> {
    connection
        .prepare_cached("SELECT number, principal FROM runs WHERE run = ?1")?
        .query_row([run.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The state of a segment, or `None` if there is no such segment.
pub(crate) fn segment_state(
    connection: &Connection,
    segment: SegmentId,
) -> rusqlite::Result<Option<SegmentState>> {
    connection
        .prepare_cached("SELECT state FROM segments WHERE segment = ?1")?
        .query_row([segment.as_bytes()], |row| state(row, 0))
        .optional()
}

pub(crate) fn last_segment(connection: &Connection, run: i64) -> rusqlite::Result<Option<LastSegment>> {
    let row = connection
        .prepare_cached(
            "SELECT s.number, s.segment, s.writer, s.ordinal, s.after, s.parent_segment, s.parent_link,
                 s.first_link, s.state, r.run FROM segments s JOIN runs r ON r.number = s.run WHERE s.run = ?1
             ORDER BY s.ordinal DESC LIMIT 1",
        )?
        .query_row([run], |row| Ok((segment_row(row)?, RunId::from_bytes(row.get(9)?))))
        .optional()?;
    let Some((row, run_id)) = row else { return Ok(None) };
    let (count, link) = segment_head(connection, run, &row)?;
    let lease = lease(&row)?;
    Ok(Some(LastSegment {
        number: row.place,
        writer: row.writer,
        ordinal: row.ordinal,
        state: row.state,
        head: Head { run: run_id, segment: row.segment, lease, count, link },
    }))
}

/// The right under which a segment is written.
fn lease(row: &SegmentRow) -> rusqlite::Result<Lease> {
    let owner = Owner::from_text(&row.writer).ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(2, "writer".to_owned(), rusqlite::types::Type::Text)
    })?;
    Ok(Lease { owner, epoch: row.ordinal })
}

/// The head of the last segment of a run: the run's last event if the segment has events, otherwise its start.
fn segment_head(connection: &Connection, run: i64, row: &SegmentRow) -> rusqlite::Result<(u64, Digest)> {
    let last: Option<(i64, i64, [u8; 32])> = connection
        .prepare_cached(
            "SELECT key, segment, link FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?
        .query_row(params![event_key(run, 0), event_key(run, u64::MAX)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    Ok(match last {
        Some((key, segment, link)) if segment == row.place => (key_seq(key), Hex(link)),
        _ => (row.after, row.first_link),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite would run a query, line by line.
    fn plan(connection: &Connection, sql: &str, params: Vec<SqlValue>) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        statement
            .query_map(params_from_iter(params), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[test]
    fn lists_are_served_by_indexes_and_sort_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Files::at(folder.path(), std::time::Duration::from_secs(1), None);
        store.create_files().unwrap();
        let connection = store.open_writer("portcullis/test").unwrap();
        let runs = |filter: &RunFilter| {
            let (sql, params) = listing(summary_columns(&connection).unwrap(), filter);
            plan(&connection, &sql, params)
        };
        let of_one = RunFilter { principal: Some("ida".to_owned()), ..RunFilter::default() };
        let all = runs(&RunFilter::default());
        // In the order of the key, until there are as many as were asked for.
        assert_eq!(all.iter().filter(|step| step.contains("SCAN")).collect::<Vec<_>>(), ["SCAN r"]);
        let of_one = runs(&of_one);
        assert!(of_one.iter().any(|step| step.contains("r USING INDEX runs_by_principal")), "{of_one:?}");
        assert!(!of_one.iter().any(|step| step.contains("SCAN")), "{of_one:?}");
        let next = RunFilter { older_than: Some(RunId::from_bytes([1; 16])), ..RunFilter::default() };
        let next = runs(&next);
        assert!(next.iter().any(|step| step.contains("r USING INTEGER PRIMARY KEY (rowid<?)")), "{next:?}");
        for step in all.iter().chain(&of_one).chain(&next) {
            assert!(!step.contains("TEMP B-TREE") && !step.contains("AUTOMATIC"), "{step}");
        }
    }
}
