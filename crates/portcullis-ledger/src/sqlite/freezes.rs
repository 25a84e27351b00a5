//! Freezes: what is in force, and what was.

use portcullis_core::freeze::{Freeze, FreezeOrder, FreezeScope};
use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};

use crate::rows::FreezeFilter;
use crate::sqlite::schema::{has_freezes, signed};

/// Freezes that one answer lists.
const FREEZES_LISTED_MAX: usize = 10_000;

/// What [`read`] takes.
const COLUMNS: &str =
    "SELECT scope, key, frozen_at, frozen_by, frozen_note, reads_at, reads_by, reads_note, released_at,
    released_by, released_note FROM freezes";

/// The table's words for a scope: its kind, and which of that kind.
fn words(scope: &FreezeScope) -> (&'static str, String) {
    match scope {
        FreezeScope::Run(run) => ("run", run.to_string()),
        FreezeScope::Principal(name) => ("principal", name.clone()),
        FreezeScope::All => ("all", String::new()),
    }
}

/// Writes a freeze as it stands: a new one, or a change of one that is there.
pub(crate) fn put(connection: &Connection, freeze: &Freeze) -> rusqlite::Result<()> {
    let Freeze { scope, frozen, reads_released, released } = freeze;
    let (scope, key) = words(scope);
    let at = |order: &Option<FreezeOrder>| order.as_ref().map(|order| order.at.as_micros());
    let by = |order: &Option<FreezeOrder>| order.as_ref().map(|order| order.by.clone());
    let note = |order: &Option<FreezeOrder>| order.as_ref().and_then(|order| order.note.clone());
    connection
        .prepare_cached(
            "INSERT INTO freezes (scope, key, frozen_at, frozen_by, frozen_note, reads_at, reads_by, reads_note,
                 released_at, released_by, released_note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (scope, key, frozen_at) DO UPDATE SET reads_at = excluded.reads_at,
                 reads_by = excluded.reads_by, reads_note = excluded.reads_note, released_at = excluded.released_at,
                 released_by = excluded.released_by, released_note = excluded.released_note",
        )?
        .execute(params![
            scope,
            key,
            frozen.at.as_micros(),
            frozen.by,
            frozen.note,
            at(reads_released),
            by(reads_released),
            note(reads_released),
            at(released),
            by(released),
            note(released),
        ])
        .map(drop)
}

/// The freezes that are asked for. A store of an earlier release has none.
pub(crate) fn list(connection: &Connection, filter: &FreezeFilter) -> rusqlite::Result<Vec<Freeze>> {
    if !has_freezes(connection)? {
        return Ok(Vec::new());
    }
    match filter {
        FreezeFilter::InForce => connection
            .prepare_cached(&format!("{COLUMNS} WHERE released_at IS NULL ORDER BY number"))?
            .query_map([], read)?
            .collect(),
        FreezeFilter::Latest(limit) => connection
            .prepare_cached(&format!("{COLUMNS} ORDER BY number DESC LIMIT ?1"))?
            .query_map([signed((*limit).min(FREEZES_LISTED_MAX) as u64)], read)?
            .collect(),
        FreezeFilter::LastReleaseOf { run, principal, since } => connection
            .prepare_cached(&format!(
                "{COLUMNS} WHERE released_at >= ?1 AND (scope = 'all' OR scope = 'principal' AND key = ?2
                     OR scope = 'run' AND key = ?3)
                 ORDER BY released_at DESC LIMIT 1"
            ))?
            .query_map(params![since.as_micros(), principal, run.to_string()], read)?
            .collect(),
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Freeze> {
    let malformed =
        |column: usize, name: &str| rusqlite::Error::InvalidColumnType(column, name.to_owned(), Type::Text);
    let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
    let scope = match kind.as_str() {
        "run" => FreezeScope::Run(key.parse::<RunId>().map_err(|_| malformed(1, "key"))?),
        "principal" => FreezeScope::Principal(key),
        "all" => FreezeScope::All,
        _ => return Err(malformed(0, "scope")),
    };
    Ok(Freeze {
        scope,
        frozen: order(row, 2)?.ok_or_else(|| malformed(2, "frozen_at"))?,
        reads_released: order(row, 5)?,
        released: order(row, 8)?,
    })
}

/// The order in three columns, from column `first` on.
fn order(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<FreezeOrder>> {
    let Some(at) = row.get::<_, Option<i64>>(first)? else { return Ok(None) };
    let (by, note) = (row.get(first + 1)?, row.get(first + 2)?);
    Ok(Some(FreezeOrder { at: Timestamp::from_micros(at), by, note }))
}

/// What is wrong with the freezes, for the check of the store: no link covers them.
pub(crate) fn check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    if !has_freezes(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(&format!("{COLUMNS} ORDER BY number"))?;
    let mut rows = statement.query([])?;
    let (mut number, mut problems) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        number += 1;
        match read(row) {
            Err(error) => problems.push(format!("freeze {number} cannot be read: {error}")),
            Ok(freeze) => {
                let ordered = freeze.reads_released.iter().chain(&freeze.released);
                if ordered.into_iter().any(|order| order.at < freeze.frozen.at) {
                    problems.push(format!(
                        "freeze {number}, of {}, was released before it was made",
                        freeze.scope
                    ));
                }
            }
        }
    }
    Ok(problems)
}
