//! The index of taints, held against the payloads that it was taken from.

use std::collections::BTreeMap;

use portcullis_core::id::{Commitment, Digest};
use portcullis_core::taint::{Taint, thing_digest};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::sqlite::schema::has_taints;
use crate::sqlite::taints::{COLUMNS, forgotten, is_blank, key, read};
use crate::taints::TaintRow;

/// What an event says of things, by its number: the payload, and what is in it, unless that was erased.
type Told = BTreeMap<u64, (Commitment, Option<Vec<Taint>>)>;

/// Names the rows of a run that say something else than its events, and what is in neither rows nor among what was
/// forgotten. `named` are the payloads `taint` of the run by the numbers of their events.
pub(super) fn taint_rows(
    connection: &Connection,
    number: i64,
    named: &BTreeMap<u64, Commitment>,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    if !has_taints(connection)? {
        return Ok(());
    }
    let Some(key) = key(connection)? else {
        found.push("the store has lost the key of its taints".to_owned());
        return Ok(());
    };
    let mut told = Told::new();
    for (seq, commitment) in named {
        told.insert(*seq, (*commitment, items(connection, number, commitment)?));
    }
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE run = ?1"))?;
    let rows: Vec<TaintRow> = statement.query_map([number], read)?.collect::<rusqlite::Result<_>>()?;
    for row in &rows {
        if !is_backed(row, &told, &key) {
            found.push(format!("a taint of event {} is indexed otherwise than the event says", row.seq));
        }
    }
    let forgotten = forgotten(connection)?;
    let mut anew = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM taints WHERE thing = ?1 AND replaces
             AND principal = (SELECT principal FROM runs WHERE number = ?2))",
    )?;
    for (seq, (_, items)) in &told {
        for taint in items.iter().flatten() {
            let thing = thing_digest(&key, &taint.thing);
            let known = rows.iter().any(|row| row.seq == *seq && row.thing == thing)
                || forgotten.has(&thing)
                || anew.query_row(params![thing.as_bytes(), number], |row| row.get(0))?;
            if !known {
                found.push(format!("a taint of event {seq} is missing from the index"));
            }
        }
    }
    Ok(())
}

/// What a payload says, or `None` if it is not there any more, or as it was: secrets in it became notes.
fn items(connection: &Connection, run: i64, commitment: &Commitment) -> rusqlite::Result<Option<Vec<Taint>>> {
    let stored: Option<(String, Vec<u8>)> = connection
        .prepare_cached(
            "SELECT media_type, bytes FROM payloads WHERE run = ?1 AND commitment = ?2 AND salt <> zeroblob(32)",
        )?
        .query_row(params![run, commitment.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let whole = stored.filter(|(media_type, _)| !media_type.contains(';'));
    Ok(whole.and_then(|(_, bytes)| serde_json::from_slice(&bytes).ok()))
}

fn is_backed(row: &TaintRow, told: &Told, key: &Digest) -> bool {
    match told.get(&row.seq) {
        Some((commitment, _)) if *commitment != row.commitment => false,
        None => false,
        Some((_, Some(items))) => items.iter().any(|taint| {
            thing_digest(key, &taint.thing) == row.thing
                && (&taint.labels, &taint.marks, taint.replaces) == (&row.labels, &row.marks, row.replaces)
        }),
        Some((_, None)) => is_blank(row),
    }
}
