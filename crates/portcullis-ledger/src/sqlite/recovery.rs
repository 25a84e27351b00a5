//! Recovery: closing what a dead writer left open.
//!
//! A dead writer cannot report the outcomes of the actions that it permitted, so a successor records the outcome
//! `unknown` for each, then `run-closed` with state *abandoned*. Everything is chained to the last durable event; a
//! segment is recovered in one transaction, so that a successor that dies too leaves it as it was. A writer is dead
//! when, and only when, its lock is free.

use std::collections::BTreeMap;

use portcullis_core::event::{Actor, ClosedState, EVENT_VERSION, Event, EventBody, OutcomeStatus};
use portcullis_core::id::{ActionId, SegmentId};
use portcullis_proof::export::SegmentState;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::chain::{ChainedLine, Head};
use crate::clock::now;
use crate::error::LedgerError;
use crate::ledger::RecoveredSegment;
use crate::ledger::RecoveryReport;
use crate::sqlite::lock::{self, WriterLock};
use crate::sqlite::read::last_segment;
use crate::sqlite::schema::{event_key, key_seq};
use crate::sqlite::summaries;
use crate::sqlite::writer::{Pen, end_segment, insert_event, open_segments, segment_run};

/// The lock of a writer when it is dead, or `None` if it lives, and always none for this process.
pub(crate) fn lock_of_dead(pen: &Pen<'_>, writer: &str) -> Result<Option<WriterLock>, LedgerError> {
    if writer == pen.id { Ok(None) } else { WriterLock::of_dead(&pen.store.writers, writer) }
}

/// Recovers every segment of every dead writer.
pub(crate) fn recover(pen: &Pen<'_>, connection: &mut Connection) -> Result<RecoveryReport, LedgerError> {
    let open: Vec<(i64, SegmentId, String)> = (|| {
        connection
            .prepare_cached(
                "SELECT number, segment, writer FROM segments WHERE state = 'open' AND writer <> ?1",
            )?
            .query_map([pen.id], |row| Ok((row.get(0)?, SegmentId::from_bytes(row.get(1)?), row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()
    })()
    .map_err(|error| pen.store.error(&error))?;
    let mut by_writer: BTreeMap<String, Vec<(i64, SegmentId)>> = BTreeMap::new();
    for (number, segment, writer) in open {
        by_writer.entry(writer).or_default().push((number, segment));
    }
    let mut report = RecoveryReport::default();
    for (writer, segments) in by_writer {
        let Some(lock) = lock_of_dead(pen, &writer)? else {
            report.living += segments.len() as u64;
            continue;
        };
        for (number, segment) in segments {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(|error| pen.store.error(&error))?;
            match recover_segment(pen, &transaction, number) {
                Ok(recovered) => {
                    transaction.commit().map_err(|error| pen.store.error(&error))?;
                    report.recovered.extend(recovered);
                }
                // One damaged run must not keep all others from being written.
                Err(error @ LedgerError::Corrupt { .. }) => report.damaged.push((segment, error)),
                Err(error) => return Err(error),
            }
        }
        if open_segments(connection, &writer).is_ok_and(|open| open == 0) {
            lock.remove();
        }
    }
    lock::remove_stale(&pen.store.writers, |writer| {
        writer == pen.id || !open_segments(connection, writer).is_ok_and(|open| open == 0)
    })?;
    Ok(report)
}

/// Closes one segment whose writer is dead, or `None` if someone else has done so meanwhile.
pub(crate) fn recover_segment(
    pen: &Pen<'_>,
    transaction: &Transaction<'_>,
    segment: i64,
) -> Result<Option<RecoveredSegment>, LedgerError> {
    let sqlite = |error: rusqlite::Error| pen.store.error(&error);
    let Some((run, run_id)) = segment_run(transaction, segment).map_err(sqlite)? else { return Ok(None) };
    let last = last_segment(transaction, run).map_err(sqlite)?;
    let Some(last) = last.filter(|last| last.number == segment && last.state == SegmentState::Open) else {
        return Ok(None);
    };
    let mut recovered = RecoveredSegment {
        run: run_id,
        segment: last.head.segment,
        writer: last.writer,
        outcomes_unknown: 0,
        count: 0,
    };
    if last.head.count == 0 {
        remove_empty_run(transaction, run).map_err(sqlite)?;
        return Ok(Some(recovered));
    }
    let damaged = |detail: String| LedgerError::Corrupt { place: pen.store.place(), detail };
    let mut head = last.head;
    let at = now();
    let mut append = |cause: u64, body: EventBody| -> Result<Head, LedgerError> {
        let event = Event {
            v: EVENT_VERSION,
            seq: head.count.saturating_add(1),
            t: at,
            actor: Actor::recovery(),
            cause: Some(cause),
            payloads: BTreeMap::new(),
            body,
        };
        let line = ChainedLine::new(head, &event)?;
        insert_event(transaction, run, segment, &line).map_err(|error| pen.store.error(&error))?;
        head = line.head();
        Ok(head)
    };
    let waiting = without_outcome(transaction, run).map_err(sqlite)?.map_err(damaged)?;
    for (seq, action) in waiting {
        append(seq, EventBody::Outcome { action, status: OutcomeStatus::Unknown })?;
        recovered.outcomes_unknown += 1;
    }
    let last_seq = last.head.count + recovered.outcomes_unknown;
    let closed = EventBody::RunClosed {
        state: ClosedState::Abandoned,
        count: last_seq + 1,
        successor: Some(pen.id.to_owned()),
    };
    recovered.count = append(last_seq, closed)?.count;
    end_segment(transaction, segment, ClosedState::Abandoned).map_err(sqlite)?;
    // An action whose outcome nobody knows counts as one that happened, so nothing else of the summary changes.
    summaries::abandon(transaction, run, recovered.count, at).map_err(sqlite)?;
    Ok(Some(recovered))
}

/// The actions of a run that went ahead and have no outcome, each with the event that let it go ahead, in order.
fn without_outcome(
    transaction: &Transaction<'_>,
    run: i64,
) -> rusqlite::Result<Result<BTreeMap<u64, ActionId>, String>> {
    let mut statement = transaction.prepare_cached(
        "SELECT key, line FROM events WHERE key BETWEEN ?1 AND ?2 AND kind IN ('enforcement', 'outcome') ORDER BY key",
    )?;
    let mut rows = statement.query(params![event_key(run, 0), event_key(run, u64::MAX)])?;
    let mut open: BTreeMap<ActionId, u64> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let seq = key_seq(row.get(0)?);
        let line: Vec<u8> = row.get(1)?;
        match Event::from_line(&line).map(|event| event.body) {
            Ok(EventBody::Enforcement { action: Some(action), enforced, .. }) if enforced.may_happen() => {
                open.insert(action, seq);
            }
            Ok(EventBody::Outcome { action, .. }) => drop(open.remove(&action)),
            Ok(_) => {}
            Err(error) => return Ok(Err(format!("event {seq}: {error}"))),
        }
    }
    Ok(Ok(open.into_iter().map(|(action, seq)| (seq, action)).collect()))
}

/// A run that was opened and in which nothing was ever recorded.
fn remove_empty_run(transaction: &Transaction<'_>, run: i64) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM segments WHERE run = ?1", [run])?;
    transaction.execute("DELETE FROM runs WHERE number = ?1", [run])?;
    Ok(())
}
