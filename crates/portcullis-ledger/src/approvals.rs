//! The index of approvals: what waits for a person, and what was decided.
//!
//! The truth is in the events. These rows are written in the same transaction as the events they follow from,
//! so that a question can be listed without reading every run.

use portcullis_core::event::GrantScope;
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::{LedgerError, Refusal};
use crate::schema::Store;

/// The longest `detail` of an approval in bytes.
pub(crate) const DETAIL_BYTES_MAX: usize = 1 << 20;
/// The most approvals of one answer.
const APPROVALS_LISTED_MAX: usize = 10_000;

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// It waits for a person.
    Pending,
    /// A person said yes.
    Granted,
    /// A person said no.
    Refused,
    /// It was not answered in time, or the grant was not used in time.
    Expired,
    /// The grant was used.
    Claimed,
}

impl ApprovalState {
    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Pending => "pending",
            ApprovalState::Granted => "granted",
            ApprovalState::Refused => "refused",
            ApprovalState::Expired => "expired",
            ApprovalState::Claimed => "claimed",
        }
    }

    fn from_text(text: &str) -> Option<ApprovalState> {
        use ApprovalState::*;
        [Pending, Granted, Refused, Expired, Claimed].into_iter().find(|state| state.as_str() == text)
    }
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The approval.
    pub approval: ApprovalId,
    /// The run of the action.
    pub run: RunId,
    /// The action.
    pub action: ActionId,
    /// What a grant is bound to.
    pub digest: Digest,
    /// On whose behalf the action would happen.
    pub principal: String,
    /// Its state.
    pub state: ApprovalState,
    /// How far the grant reaches.
    pub scope: Option<GrantScope>,
    /// When it was asked for.
    pub requested: Timestamp,
    /// When it was decided.
    pub decided: Option<Timestamp>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// What to show to a person: JSON text, at most 1 MiB.
    pub detail: String,
}

/// Which approvals to list.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only those of runs that someone is writing.
    pub live: bool,
    /// At most this many of each run, the oldest first; where there are too many, the first of each run before the second
    /// of any: one that asks for much hides no other.
    pub per_run: Option<usize>,
    /// At most this many, newest first, or `None` for 10,000.
    pub limit: Option<usize>,
}

/// Refuses rows that do not belong to the run or that speak of another action than before.
pub(crate) fn check(transaction: &Connection, rows: &[ApprovalRow], run: RunId) -> Result<(), CheckError> {
    for row in rows {
        if row.run != run {
            return Err(CheckError::Refused(Refusal::ApprovalMismatch(row.approval)));
        }
        if row.detail.len() > DETAIL_BYTES_MAX {
            let limit = DETAIL_BYTES_MAX as u64;
            return Err(CheckError::Refused(Refusal::OverLimit {
                what: "bytes of an approval's detail",
                limit,
            }));
        }
        let stored: Option<(Vec<u8>, Vec<u8>, Vec<u8>)> = transaction
            .prepare_cached(
                "SELECT r.run, a.action, a.digest FROM approvals a JOIN runs r ON r.number = a.run WHERE a.approval = ?1",
            )?
            .query_row([row.approval.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let same = |(run, action, digest): &(Vec<u8>, Vec<u8>, Vec<u8>)| {
            run == row.run.as_bytes() && action == row.action.as_bytes() && digest == row.digest.as_bytes()
        };
        if !stored.as_ref().is_none_or(same) {
            return Err(CheckError::Refused(Refusal::ApprovalMismatch(row.approval)));
        }
    }
    Ok(())
}

/// Why a check failed: the rows, or the database.
pub(crate) enum CheckError {
    Refused(Refusal),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for CheckError {
    fn from(error: rusqlite::Error) -> CheckError {
        CheckError::Sqlite(error)
    }
}

/// Writes a row, replacing what changes of it.
pub(crate) fn put(transaction: &Connection, run: i64, row: &ApprovalRow) -> rusqlite::Result<()> {
    let scope = row.scope.as_ref().and_then(|scope| serde_json::to_string(scope).ok());
    transaction
        .prepare_cached(
            "INSERT INTO approvals (approval, run, action, digest, principal, state, scope, requested, decided, decided_by, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (approval) DO UPDATE SET state = excluded.state, scope = excluded.scope,
                 decided = excluded.decided, decided_by = excluded.decided_by, detail = excluded.detail",
        )?
        .execute(params![
            row.approval.as_bytes(),
            run,
            row.action.as_bytes(),
            row.digest.as_bytes(),
            row.principal,
            row.state.as_str(),
            scope,
            row.requested.as_micros(),
            row.decided.map(Timestamp::as_micros),
            row.decided_by,
            row.detail,
        ])
        .map(drop)
}

const COLUMNS: &str =
    "SELECT a.approval, r.run, a.action, a.digest, a.principal, a.state, a.scope, a.requested,
    a.decided, a.decided_by, a.detail FROM approvals a JOIN runs r ON r.number = a.run";

/// Lists approvals, newest first.
pub(crate) fn list(
    store: &Store,
    connection: &Connection,
    filter: &ApprovalFilter,
) -> Result<Vec<ApprovalRow>, LedgerError> {
    let limit = filter.limit.unwrap_or(APPROVALS_LISTED_MAX).min(APPROVALS_LISTED_MAX);
    let each = filter.per_run.unwrap_or(APPROVALS_LISTED_MAX);
    let number = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
    (|| {
        let mut statement = connection.prepare_cached(&format!(
            "{COLUMNS} WHERE a.approval IN (
                 SELECT approval FROM (
                     SELECT a.approval, a.requested, row_number() OVER (
                         PARTITION BY a.run ORDER BY a.requested, a.approval) AS place
                     FROM approvals a JOIN runs r ON r.number = a.run
                     WHERE (?1 IS NULL OR a.state = ?1) AND (?2 IS NULL OR r.run = ?2)
                         AND (?4 IS NULL OR a.principal = ?4)
                         AND (NOT ?5 OR EXISTS (
                             SELECT 1 FROM segments s WHERE s.run = a.run AND s.state = 'open'))
                 ) WHERE place <= ?6 ORDER BY place, requested LIMIT ?3)
             ORDER BY a.requested DESC, a.approval"
        ))?;
        let state = filter.state.map(ApprovalState::as_str);
        let run = filter.run.map(|run| *run.as_bytes());
        statement
            .query_map(params![state, run, number(limit), filter.principal, filter.live, number(each)], read)?
            .collect::<rusqlite::Result<Vec<_>>>()
    })()
    .map_err(|error| store.error(&error))
}

/// One approval.
pub(crate) fn get(
    store: &Store,
    connection: &Connection,
    approval: ApprovalId,
) -> Result<Option<ApprovalRow>, LedgerError> {
    (|| {
        connection
            .prepare_cached(&format!("{COLUMNS} WHERE a.approval = ?1"))?
            .query_row([approval.as_bytes()], read)
            .optional()
    })()
    .map_err(|error| store.error(&error))
}

/// Approvals whose id starts with some digits, at most two.
pub(crate) fn starting_with(
    store: &Store,
    connection: &Connection,
    prefix: &str,
    principal: Option<&str>,
) -> Result<Vec<ApprovalRow>, LedgerError> {
    let bound = |fill: &str| {
        let missing = 32usize.checked_sub(prefix.len())?;
        format!("{prefix}{}", fill.repeat(missing)).parse::<ApprovalId>().ok()
    };
    let (Some(low), Some(high)) = (bound("0"), bound("f")) else { return Ok(Vec::new()) };
    (|| {
        connection
            .prepare_cached(&format!(
                "{COLUMNS} WHERE a.approval BETWEEN ?1 AND ?2 AND (?3 IS NULL OR a.principal = ?3) LIMIT 2"
            ))?
            .query_map(params![low.as_bytes(), high.as_bytes(), principal], read)?
            .collect::<rusqlite::Result<Vec<_>>>()
    })()
    .map_err(|error| store.error(&error))
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    let state: String = row.get(5)?;
    let scope: Option<String> = row.get(6)?;
    let malformed = |column: usize, name: &str| {
        rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Text)
    };
    Ok(ApprovalRow {
        approval: ApprovalId::from_bytes(row.get(0)?),
        run: RunId::from_bytes(row.get(1)?),
        action: ActionId::from_bytes(row.get(2)?),
        digest: Digest::from_bytes(row.get(3)?),
        principal: row.get(4)?,
        state: ApprovalState::from_text(&state).ok_or_else(|| malformed(5, "state"))?,
        scope: scope
            .map(|text| serde_json::from_str(&text).map_err(|_| malformed(6, "scope")))
            .transpose()?,
        requested: Timestamp::from_micros(row.get(7)?),
        decided: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_micros),
        decided_by: row.get(9)?,
        detail: row.get(10)?,
    })
}
