//! The index of facts, held against the events that it was taken from.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::id::Commitment;
use rusqlite::Connection;

use crate::sqlite::facts::{COLUMNS, read};
use crate::sqlite::schema::has_facts;

/// Names the rows of a run that no event of it backs, and facts that are missing. `named` are the payloads of the events
/// that establish facts, by their numbers.
pub(super) fn fact_rows(
    connection: &Connection,
    number: i64,
    named: &BTreeMap<u64, Commitment>,
    principal: Option<&str>,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    if !has_facts(connection)? {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE f.run = ?1"))?;
    let rows = statement.query_map([number], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    for row in &rows {
        let backed = named.get(&row.id.seq) == Some(&row.commitment);
        if !backed || Some(row.principal.as_str()) != principal {
            found.push(format!("the fact of event {} is indexed otherwise than the event says", row.id.seq));
        }
    }
    let indexed: BTreeSet<u64> = rows.iter().map(|row| row.id.seq).collect();
    for seq in named.keys().filter(|seq| !indexed.contains(seq)) {
        found.push(format!("the fact of event {seq} is missing from the index"));
    }
    Ok(())
}
