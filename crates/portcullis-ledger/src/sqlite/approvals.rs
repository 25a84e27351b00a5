//! The index of approvals: what waits for a person, and what was decided.
//!
//! The truth is in the events. These rows are written in the same transaction as the events they follow from,
//! so that a question can be listed without reading every run.

use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::time::Timestamp;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::{LedgerError, Refusal};
use crate::rows::ApprovalFilter;
use crate::rows::ApprovalRow;
use crate::rows::ApprovalState;
use crate::sqlite::schema::{Files, signed, unsigned, version};

/// The longest texts of an approval together, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The most approvals of one answer.
const APPROVALS_LISTED_MAX: usize = 10_000;

/// Refuses rows that do not belong to the run or that speak of another action than before.
pub(crate) fn check(transaction: &Connection, rows: &[ApprovalRow], run: RunId) -> Result<(), CheckError> {
    for row in rows {
        if row.run != run {
            return Err(CheckError::Refused(Refusal::ApprovalMismatch(row.approval)));
        }
        if row.text_bytes() > TEXT_BYTES_MAX {
            let limit = TEXT_BYTES_MAX as u64;
            return Err(CheckError::Refused(Refusal::OverLimit {
                what: "bytes of an approval's texts",
                limit,
            }));
        }
        let action = row.action.as_ref().map(|action| &action.as_bytes()[..]);
        let same: Option<bool> = transaction
            .prepare_cached(
                "SELECT r.run, a.action, a.digest FROM approvals a JOIN runs r ON r.number = a.run WHERE a.approval = ?1",
            )?
            .query_row([row.approval.as_bytes()], |stored| {
                Ok(stored.get::<_, Vec<u8>>(0)? == row.run.as_bytes()
                    && stored.get::<_, Option<Vec<u8>>>(1)?.as_deref() == action
                    && stored.get::<_, Vec<u8>>(2)? == row.digest.as_bytes())
            })
            .optional()?;
        if same == Some(false) {
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
            "INSERT INTO approvals (approval, run, action, digest, principal, state, scope, requested, decided, decided_by,
                 tool, policy, proposed, note, rule)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (approval) DO UPDATE SET state = excluded.state, scope = excluded.scope,
                 decided = excluded.decided, decided_by = excluded.decided_by, note = excluded.note",
        )?
        .execute(params![
            row.approval.as_bytes(),
            run,
            row.action.as_ref().map(|action| &action.as_bytes()[..]),
            row.digest.as_bytes(),
            row.principal,
            row.state.as_str(),
            scope,
            row.requested.as_micros(),
            row.decided.map(Timestamp::as_micros),
            row.decided_by,
            row.tool,
            row.policy,
            row.proposed.map(signed),
            row.note,
            row.rule,
        ])
        .map(drop)
}

/// The approvals of a store before version 4, with the columns of today. Their texts were in JSON then.
const APPROVALS_3: &str = "(SELECT approval, run, action, digest, principal, state, scope, requested, decided,
        decided_by, coalesce(detail_read ->> 'tool', '') AS tool, coalesce(detail_read ->> 'policy', '') AS policy,
        detail_read ->> 'proposed' AS proposed, detail_read ->> 'note' AS note, NULL AS rule
    FROM (SELECT *, CASE WHEN json_valid(detail) THEN detail ELSE '{}' END AS detail_read FROM approvals))";
/// The same of version 4.
const APPROVALS_4: &str = "(SELECT *, NULL AS rule FROM approvals)";

/// The approvals of a store of a version, as a table of a query with the columns of today.
pub(crate) fn table_of(version: i64) -> &'static str {
    match version {
        ..4 => APPROVALS_3,
        4 => APPROVALS_4,
        5.. => "approvals",
    }
}

/// The approvals of a store, as a table of a query.
pub(crate) fn table(connection: &Connection) -> rusqlite::Result<&'static str> {
    Ok(table_of(version(connection)?))
}

/// A query of what [`read`] takes.
fn columns(connection: &Connection) -> rusqlite::Result<String> {
    Ok(format!(
        "SELECT a.approval, r.run, a.action, a.digest, a.principal, a.state, a.scope, a.requested, a.decided,
             a.decided_by, a.tool, a.policy, a.proposed, a.note, a.rule
         FROM {} a JOIN runs r ON r.number = a.run",
        table(connection)?
    ))
}

/// Lists approvals, newest first.
pub(crate) fn list(
    store: &Files,
    connection: &Connection,
    filter: &ApprovalFilter,
) -> Result<Vec<ApprovalRow>, LedgerError> {
    (|| {
        let (sql, params) = listing(&columns(connection)?, filter);
        let params = rusqlite::params_from_iter(params);
        connection.prepare_cached(&sql)?.query_map(params, read)?.collect::<rusqlite::Result<Vec<_>>>()
    })()
    .map_err(|error| store.error(&error))
}

/// The query of a list and its parameters. Only what is asked for is in it, so that an index serves it.
fn listing(columns: &str, filter: &ApprovalFilter) -> (String, Vec<SqlValue>) {
    let number = |limit: Option<usize>| {
        let limit = limit.unwrap_or(APPROVALS_LISTED_MAX).min(APPROVALS_LISTED_MAX);
        SqlValue::from(i64::try_from(limit).unwrap_or(i64::MAX))
    };
    let mut params = vec![number(filter.limit), number(filter.per_run)];
    let mut conditions = String::new();
    let given = [
        ("a.state", filter.state.map(|state| SqlValue::from(state.as_str().to_owned()))),
        ("r.run", filter.run.map(|run| SqlValue::from(run.as_bytes().to_vec()))),
        ("a.principal", filter.principal.clone().map(SqlValue::from)),
    ];
    for (column, value) in given {
        if let Some(value) = value {
            params.push(value);
            conditions.push_str(&format!(" AND {column} = ?{}", params.len()));
        }
    }
    for (column, since) in [("a.requested", filter.requested_since), ("a.decided", filter.decided_since)] {
        if let Some(since) = since {
            params.push(SqlValue::from(since.as_micros()));
            conditions.push_str(&format!(" AND {column} >= ?{}", params.len()));
        }
    }
    if filter.live {
        conditions
            .push_str(" AND EXISTS (SELECT 1 FROM segments s WHERE s.run = a.run AND s.state = 'open')");
    }
    // The plus keeps the planner from reading all approvals in the order of runs, where a time leaves few of them.
    let of_run = if filter.requested_since.is_some() { "+a.run" } else { "a.run" };
    let sql = format!(
        "{columns} WHERE a.approval IN (
             SELECT approval FROM (
                 SELECT a.approval, a.requested, row_number() OVER (
                     PARTITION BY {of_run} ORDER BY a.requested, a.approval) AS place
                 FROM approvals a JOIN runs r ON r.number = a.run WHERE true{conditions}
             ) WHERE place <= ?2 ORDER BY place, requested LIMIT ?1)
         ORDER BY a.requested DESC, a.approval"
    );
    (sql, params)
}

/// One approval.
pub(crate) fn get(
    store: &Files,
    connection: &Connection,
    approval: ApprovalId,
) -> Result<Option<ApprovalRow>, LedgerError> {
    (|| {
        connection
            .prepare_cached(&format!("{} WHERE a.approval = ?1", columns(connection)?))?
            .query_row([approval.as_bytes()], read)
            .optional()
    })()
    .map_err(|error| store.error(&error))
}

/// Approvals whose id starts with some digits, at most two.
pub(crate) fn starting_with(
    store: &Files,
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
                "{} WHERE a.approval BETWEEN ?1 AND ?2 AND (?3 IS NULL OR a.principal = ?3) LIMIT 2",
                columns(connection)?
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
        action: row.get::<_, Option<[u8; 16]>>(2)?.map(ActionId::from_bytes),
        digest: Digest::from_bytes(row.get(3)?),
        principal: row.get(4)?,
        state: ApprovalState::from_text(&state).ok_or_else(|| malformed(5, "state"))?,
        scope: scope
            .map(|text| serde_json::from_str(&text).map_err(|_| malformed(6, "scope")))
            .transpose()?,
        requested: Timestamp::from_micros(row.get(7)?),
        decided: row.get::<_, Option<i64>>(8)?.map(Timestamp::from_micros),
        decided_by: row.get(9)?,
        tool: row.get(10)?,
        policy: row.get(11)?,
        proposed: row.get::<_, Option<i64>>(12)?.map(unsigned),
        note: row.get(13)?,
        rule: row.get(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filter: &ApprovalFilter) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = Files::at(folder.path(), std::time::Duration::from_secs(1), None);
        store.create_files().unwrap();
        let connection = store.open_writer("portcullis/test").unwrap();
        let (sql, params) = listing(&columns(&connection).unwrap(), filter);
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map(rusqlite::params_from_iter(params), |row| row.get(3)).unwrap();
        steps.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn what_waits_is_found_by_an_index() {
        let filter = ApprovalFilter {
            state: Some(ApprovalState::Pending),
            live: true,
            per_run: Some(3),
            ..ApprovalFilter::default()
        };
        let steps = plan(&filter);
        assert!(steps.iter().any(|step| step.contains("approvals_by_state (state=?)")), "{steps:?}");
        assert!(!steps.iter().any(|step| step == "SCAN a" || step == "SCAN r"), "{steps:?}");
    }

    #[test]
    fn the_latest_are_found_by_an_index() {
        let since = Some(Timestamp::from_micros(1));
        let steps = plan(&ApprovalFilter { requested_since: since, ..ApprovalFilter::default() });
        assert!(steps.iter().any(|step| step.contains("approvals_by_time (requested>?)")), "{steps:?}");
        assert!(!steps.iter().any(|step| step == "SCAN a" || step == "SCAN r"), "{steps:?}");
    }
}
