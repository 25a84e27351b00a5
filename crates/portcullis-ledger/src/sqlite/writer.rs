//! The writer thread: group commit.
//!
//! One thread owns the one connection that writes. It takes everything that waits, writes it in one transaction,
//! waits for the disk once, and only then answers. So the cost of the disk is shared by all who wait, and grows
//! no longer with their number.
//!
//! A request is checked before anything of it is written; what is refused then costs its neighbours nothing. Should a
//! write fail all the same, the whole transaction is undone and every request is tried alone, so that one bad request
//! cannot fail another.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_core::event::ClosedState;
use portcullis_core::freeze::Freeze;
use portcullis_core::id::{RunId, SegmentId};
use portcullis_core::time::Timestamp;
use portcullis_proof::export::SegmentState;
use portcullis_proof::{Hex, Parent, SegmentStart, segment_link};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::chain::{Append, ChainedLine, Head, Lease, Owner};
use crate::error::{LedgerError, Refusal};
use crate::ledger::NewSegment;
use crate::ledger::OpenedSegment;
use crate::ledger::RecoveryReport;
use crate::sqlite::approvals;
use crate::sqlite::checkpoint;
use crate::sqlite::counters::Counters;
use crate::sqlite::facts;
use crate::sqlite::freezes;
use crate::sqlite::presence::Presence;
use crate::sqlite::queue::{Queue, Queued};
use crate::sqlite::read::{LastSegment, last_segment, run_number, segment_state};
use crate::sqlite::recovery::{self};
use crate::sqlite::room;
use crate::sqlite::schema::{EVENTS_PER_RUN_MAX, Files, RUNS_MAX, event_key, signed};
use crate::sqlite::summaries::{self, Summary};
use crate::sqlite::taints;

/// A transaction takes no further request once it has this many events.
pub const BATCH_EVENTS_MAX: usize = 1_024;
/// Nor once it has this many bytes of lines and payloads.
const BATCH_BYTES_MAX: usize = 32 << 20;
/// The most segments that one process writes at a time.
const OPEN_SEGMENTS_MAX: usize = 65_536;

/// How a request is answered.
pub(crate) type Answer<T> = Box<dyn FnOnce(Result<T, LedgerError>) + Send>;

pub(crate) enum Request {
    Open(NewSegment, Answer<OpenedSegment>),
    Append(Append, Answer<Head>),
    Freezes(Vec<Freeze>, Answer<()>),
    Recover(Answer<RecoveryReport>),
}

impl Queued for Request {
    fn bytes(&self) -> usize {
        match self {
            Request::Append(append, _) => append.bytes(),
            Request::Open(..) | Request::Freezes(..) | Request::Recover(_) => 0,
        }
    }

    fn events(&self) -> usize {
        match self {
            Request::Append(append, _) => append.events.len(),
            Request::Open(..) | Request::Freezes(..) | Request::Recover(_) => 1,
        }
    }
}

impl Request {
    fn fail(self, error: LedgerError) {
        match self {
            Request::Open(_, answer) => answer(Err(error)),
            Request::Append(_, answer) => answer(Err(error)),
            Request::Freezes(_, answer) => answer(Err(error)),
            Request::Recover(answer) => answer(Err(error)),
        }
    }

    fn answer(self, result: Result<Done, LedgerError>) {
        match (self, result) {
            (Request::Open(_, answer), Ok(Done::Opened(opened))) => answer(Ok(opened)),
            (Request::Append(_, answer), Ok(Done::Appended(head))) => answer(Ok(head)),
            (Request::Freezes(_, answer), Ok(Done::Frozen)) => answer(Ok(())),
            (request, Err(error)) => request.fail(error),
            // Results are made from the requests they answer.
            (request, Ok(_)) => request.fail(LedgerError::Stopped),
        }
    }
}

enum Done {
    Opened(OpenedSegment),
    Appended(Head),
    Frozen,
}

/// A segment that this process writes.
#[derive(Clone, Copy)]
struct Owned {
    run: i64,
    segment: i64,
    head: Head,
}

/// What the writer knows besides the database.
pub(crate) struct Writer {
    pub(crate) store: Arc<Files>,
    pub(crate) origin: String,
    owner: Owner,
    pub(crate) id: String,
    connection: Connection,
    books: Books,
    has_room: bool,
    counters: Arc<Counters>,
    /// Checked by every commit, once the files are known.
    presence: Option<Presence>,
    /// Length of the write-ahead log after the last commit, in bytes.
    log_bytes: u64,
}

/// The segments that this process writes, as of the last commit, and what the transaction under way changes.
#[derive(Default)]
struct Books {
    owned: HashMap<SegmentId, Owned>,
    /// `None` for a segment that ends.
    staged: HashMap<SegmentId, Option<Owned>>,
    /// Key and link of the event that was stored last.
    last: Option<(i64, [u8; 32])>,
    last_staged: Option<(i64, [u8; 32])>,
}

impl Books {
    fn get(&self, segment: SegmentId) -> Option<Owned> {
        self.staged.get(&segment).copied().unwrap_or_else(|| self.owned.get(&segment).copied())
    }

    fn settle(&mut self, committed: bool) {
        self.last = self.last_staged.take().filter(|_| committed).or(self.last);
        for (segment, owned) in self.staged.drain() {
            match owned {
                _ if !committed => {}
                Some(owned) => drop(self.owned.insert(segment, owned)),
                None => drop(self.owned.remove(&segment)),
            }
        }
    }
}

/// The writer: what a transaction needs to know of it.
pub(crate) struct Pen<'a> {
    pub(crate) store: &'a Files,
    pub(crate) origin: &'a str,
    pub(crate) owner: Owner,
    pub(crate) id: &'a str,
}

impl Writer {
    pub(crate) fn new(
        store: Arc<Files>,
        origin: String,
        owner: Owner,
        connection: Connection,
        counters: Arc<Counters>,
    ) -> Writer {
        let (books, has_room, presence) = (Books::default(), false, None);
        let id = owner.to_string();
        Writer { store, origin, owner, id, connection, books, has_room, counters, presence, log_bytes: 0 }
    }

    /// Has every commit look whether the files of the store are still these.
    pub(crate) fn watch(&mut self, presence: Presence) {
        self.presence = Some(presence);
    }

    /// Serves the queue until it is closed; whether segments of this process are then still open.
    pub(crate) fn run(mut self, queue: &Queue<Request>) -> bool {
        let mut batch = Vec::new();
        while queue.take(&mut batch, BATCH_EVENTS_MAX, BATCH_BYTES_MAX) {
            let mut together = Vec::with_capacity(batch.len());
            for request in batch.drain(..) {
                match request {
                    Request::Recover(answer) => {
                        self.commit(std::mem::take(&mut together));
                        answer(self.recover());
                    }
                    request => together.push(request),
                }
            }
            self.commit(together);
            self.make_room(queue);
        }
        !self.books.owned.is_empty()
    }

    /// Closes what dead writers left open.
    pub(crate) fn recover(&mut self) -> Result<RecoveryReport, LedgerError> {
        let pen = Pen { store: &self.store, origin: &self.origin, owner: self.owner, id: &self.id };
        recovery::recover(&pen, &mut self.connection)
    }

    /// While no request waits: makes room in the write-ahead log, once, and sees to it that SQLite begins it again
    /// before it grows out of that. Without either, commits are slower, and all else is the same.
    fn make_room(&mut self, queue: &Queue<Request>) {
        if !self.has_room && self.counters.read().transactions >= room::WORTH_AFTER && queue.is_empty() {
            self.has_room = true;
            let _ = room::make(&mut self.connection);
        }
        if self.counters.is_nearly_full() && queue.is_empty() {
            self.counters.set_nearly_full(false);
            checkpoint::finish(&self.connection);
        }
    }

    fn commit(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        match self.transact(&requests) {
            Ok(results) => {
                for (request, result) in requests.into_iter().zip(results) {
                    self.answer(request, result);
                }
            }
            // Anyone who comes next would wait for the same lock for as long again.
            Err(error @ LedgerError::Locked { .. }) => {
                requests.into_iter().for_each(|request| request.fail(error.clone()));
            }
            Err(error) if requests.len() == 1 => {
                requests.into_iter().for_each(|request| request.fail(error.clone()));
            }
            Err(_) => {
                for request in requests {
                    let result = match self.transact(std::slice::from_ref(&request)) {
                        Ok(results) => results.into_iter().next().unwrap_or(Err(LedgerError::Stopped)),
                        Err(error) => Err(error),
                    };
                    self.answer(request, result);
                }
            }
        }
    }

    fn answer(&self, request: Request, result: Result<Done, LedgerError>) {
        if let (Request::Append(append, _), Ok(_)) = (&request, &result) {
            self.counters.count(append);
        }
        request.answer(result);
    }

    /// One transaction; an error means that nothing of it is stored.
    fn transact(&mut self, requests: &[Request]) -> Result<Vec<Result<Done, LedgerError>>, LedgerError> {
        let pen = Pen { store: &self.store, origin: &self.origin, owner: self.owner, id: &self.id };
        let result = (|| {
            let log_bytes = self.presence.as_ref().map_or(Ok(0), Presence::check)?;
            if log_bytes < self.log_bytes {
                check_last(pen.store, self.books.last)?;
                self.log_bytes = log_bytes;
            }
            let transaction = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(|error| pen.store.error(&error))?;
            let mut results = Vec::with_capacity(requests.len());
            for request in requests {
                let result = match request {
                    Request::Append(append, _) => write_append(&pen, &transaction, &mut self.books, append),
                    Request::Open(new, _) => write_segment(&pen, &transaction, &mut self.books, new),
                    Request::Freezes(freezes, _) => write_freezes(&pen, &transaction, freezes),
                    Request::Recover(_) => Err(LedgerError::Stopped),
                };
                match result {
                    // A refused request has written nothing.
                    Ok(_) | Err(LedgerError::Refused(_)) => results.push(result),
                    Err(error) => return Err(error),
                }
            }
            transaction.commit().map_err(|error| pen.store.error(&error))?;
            // Only now: what was removed in the meantime is not evidence.
            self.log_bytes = self.presence.as_ref().map_or(Ok(0), Presence::check)?;
            Ok(results)
        })();
        self.books.settle(result.is_ok());
        self.counters.count_transaction();
        result
    }
}

/// Looks for the event that was stored last if the write-ahead log has become shorter. Anyone who erases copies all
/// of it into the database first; where someone cut it, the event is gone, though this connection still has its page
/// in memory. So another connection looks, which reads the files.
fn check_last(store: &Files, last: Option<(i64, [u8; 32])>) -> Result<(), LedgerError> {
    let Some((key, link)) = last else { return Ok(()) };
    let found = store.open_reader().and_then(|connection| {
        connection
            .query_row("SELECT link FROM events WHERE key = ?1", [key], |row| row.get::<_, [u8; 32]>(0))
            .map_err(|error| store.error(&error))
    });
    match found {
        Ok(found) if found == link => Ok(()),
        _ => Err(LedgerError::Cut { place: store.place() }),
    }
}

fn write_append(
    pen: &Pen<'_>,
    transaction: &Transaction<'_>,
    books: &mut Books,
    append: &Append,
) -> Result<Done, LedgerError> {
    let Some((before, after)) = append.span() else {
        return Err(Refusal::Event("an append without events".to_owned()).into());
    };
    let sqlite = |error: rusqlite::Error| pen.store.error(&error);
    // The database has the last word: a sibling that took this process for dead may have ended the segment.
    let state = segment_state(transaction, before.segment).map_err(sqlite)?;
    if let Some(state) = state.filter(|state| *state != SegmentState::Open) {
        books.staged.insert(before.segment, None);
        return Err(Refusal::SegmentEnded { segment: before.segment, state }.into());
    }
    let Some(owned) = books.get(before.segment) else {
        return Err(Refusal::SegmentUnknown(before.segment).into());
    };
    if owned.head != before {
        let (run, count) = (owned.head.run, owned.head.count);
        return Err(Refusal::OutOfOrder { run, count, after: before.count }.into());
    }
    if after.count > EVENTS_PER_RUN_MAX {
        return Err(Refusal::OverLimit { what: "events in one run", limit: EVENTS_PER_RUN_MAX }.into());
    }
    approvals::check(transaction, &append.approvals, before.run).map_err(|error| match error {
        approvals::CheckError::Refused(refusal) => refusal.into(),
        approvals::CheckError::Sqlite(error) => sqlite(error),
    })?;
    (|| {
        for event in &append.events {
            insert_event(transaction, owned.run, owned.segment, event)?;
        }
        for payload in &append.payloads {
            transaction
                .prepare_cached(
                    "INSERT INTO payloads (run, commitment, salt, media_type, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (run, commitment) DO NOTHING",
                )?
                .execute(params![
                    owned.run,
                    payload.commitment().as_bytes(),
                    payload.salt,
                    payload.media_type,
                    payload.bytes
                ])?;
        }
        for approval in &append.approvals {
            approvals::put(transaction, owned.run, approval)?;
        }
        for taint in &append.taints {
            taints::put(transaction, owned.run, taint)?;
        }
        for fact in &append.facts {
            facts::put(transaction, owned.run, fact)?;
        }
        summaries::put(transaction, owned.run, &summary_of(append, after))?;
        rusqlite::Result::Ok(())
    })()
    .map_err(sqlite)?;
    books.last_staged = append.events.last().map(|event| (event_key(owned.run, event.seq()), event.link.0));
    let closes = append.events.last().and_then(|event| event.closes);
    if let Some(state) = closes {
        end_segment(transaction, owned.segment, state).map_err(sqlite)?;
    }
    books.staged.insert(before.segment, closes.is_none().then_some(Owned { head: after, ..owned }));
    Ok(Done::Appended(after))
}

fn write_freezes(
    pen: &Pen<'_>,
    transaction: &Transaction<'_>,
    freezes: &[Freeze],
) -> Result<Done, LedgerError> {
    let written = freezes.iter().try_for_each(|freeze| freezes::put(transaction, freeze));
    written.map_err(|error| pen.store.error(&error))?;
    Ok(Done::Frozen)
}

/// The summary of a run after an append. How many approvals wait is counted in the store.
fn summary_of(append: &Append, after: Head) -> Summary {
    let last_event = append.events.last().map_or(0, |event| event.t_micros);
    Summary {
        events: after.count,
        last_event: Timestamp::from_micros(last_event),
        pending_approvals: 0,
        progress: append.progress.clone(),
    }
}

pub(crate) fn insert_event(
    transaction: &Transaction<'_>,
    run: i64,
    segment: i64,
    event: &ChainedLine,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO events (key, segment, kind, action, t, link, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            event_key(run, event.seq()),
            segment,
            event.kind,
            event.action.map(|action| *action.as_bytes()),
            event.t_micros,
            event.link.0,
            event.line,
        ])
        .map(drop)
}

pub(crate) fn end_segment(
    transaction: &Transaction<'_>,
    segment: i64,
    state: ClosedState,
) -> rusqlite::Result<()> {
    let state = match state {
        ClosedState::Closed => SegmentState::Closed,
        ClosedState::Abandoned => SegmentState::Abandoned,
    };
    transaction
        .prepare_cached("UPDATE segments SET state = ?2 WHERE number = ?1")?
        .execute(params![segment, state.as_str()])
        .map(drop)
}

fn write_segment(
    pen: &Pen<'_>,
    transaction: &Transaction<'_>,
    books: &mut Books,
    new: &NewSegment,
) -> Result<Done, LedgerError> {
    let sqlite = |error: rusqlite::Error| pen.store.error(&error);
    if segment_state(transaction, new.segment).map_err(sqlite)?.is_some() {
        return Err(Refusal::SegmentExists(new.segment).into());
    }
    if books.owned.len() >= OPEN_SEGMENTS_MAX {
        let limit = OPEN_SEGMENTS_MAX as u64;
        return Err(Refusal::OverLimit { what: "open segments of one process", limit }.into());
    }
    let mut run = run_number(transaction, new.run).map_err(sqlite)?;
    if let Some((_, principal)) = &run
        && *principal != new.principal
    {
        return Err(Refusal::PrincipalMismatch { run: new.run, principal: principal.clone() }.into());
    }
    let mut last = match &run {
        Some((number, _)) => last_segment(transaction, *number).map_err(sqlite)?,
        None => None,
    };
    let mut recovered = None;
    if let Some(open) = last.as_ref().filter(|last| last.state == SegmentState::Open) {
        let Some(dead) = recovery::lock_of_dead(pen, &open.writer)? else {
            return Err(Refusal::RunOwned { run: new.run, writer: open.writer.clone() }.into());
        };
        recovered = recovery::recover_segment(pen, transaction, open.number)?;
        drop(dead);
        run = run_number(transaction, new.run).map_err(sqlite)?;
        last = match &run {
            Some((number, _)) => last_segment(transaction, *number).map_err(sqlite)?,
            None => None,
        };
    }
    let run = match run {
        Some((number, _)) => number,
        None => insert_run(pen, transaction, new)?,
    };
    let (segment, head, ordinal) =
        insert_segment(pen, transaction, new, run, last.as_ref()).map_err(sqlite)?;
    books.staged.insert(new.segment, Some(Owned { run, segment, head }));
    let parent = last.map(|last| last.state);
    Ok(Done::Opened(OpenedSegment { head, ordinal, parent, recovered }))
}

fn insert_run(pen: &Pen<'_>, transaction: &Transaction<'_>, new: &NewSegment) -> Result<i64, LedgerError> {
    (|| {
        let last: Option<i64> =
            transaction.query_row("SELECT max(number) FROM runs", [], |row| row.get(0))?;
        let number = last.unwrap_or(0) + 1;
        if number > signed(RUNS_MAX) {
            return Ok(Err(Refusal::OverLimit { what: "runs in one store", limit: RUNS_MAX }));
        }
        transaction
            .prepare_cached(
                "INSERT INTO runs (number, run, principal, session_key, opened) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                number,
                new.run.as_bytes(),
                new.principal,
                new.session_key,
                new.opened.as_micros()
            ])?;
        rusqlite::Result::Ok(Ok(number))
    })()
    .map_err(|error| pen.store.error(&error))?
    .map_err(LedgerError::from)
}

/// Writes the row of a segment that continues `last`; its number, head and ordinal.
fn insert_segment(
    pen: &Pen<'_>,
    transaction: &Transaction<'_>,
    new: &NewSegment,
    run: i64,
    last: Option<&LastSegment>,
) -> rusqlite::Result<(i64, Head, u64)> {
    let ordinal = last.map_or(0, |last| last.ordinal + 1);
    let after = last.map_or(0, |last| last.head.count);
    let parent =
        last.map(|last| Parent { segment: Hex(*last.head.segment.as_bytes()), link: last.head.link });
    let link = segment_link(&SegmentStart {
        origin: pen.origin,
        run: Hex(*new.run.as_bytes()),
        segment: Hex(*new.segment.as_bytes()),
        writer: pen.id,
        ordinal,
        after,
        parent,
    });
    transaction
        .prepare_cached(
            "INSERT INTO segments (segment, run, writer, ordinal, after, parent_segment, parent_link, first_link,
                 state, opened) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'open', ?9)",
        )?
        .execute(params![
            new.segment.as_bytes(),
            run,
            pen.id,
            signed(ordinal),
            signed(after),
            parent.map(|parent| parent.segment.0),
            parent.map(|parent| parent.link.0),
            link.0,
            new.opened.as_micros(),
        ])?;
    let lease = Lease { owner: pen.owner, epoch: ordinal };
    let head = Head { run: new.run, segment: new.segment, lease, count: after, link };
    Ok((transaction.last_insert_rowid(), head, ordinal))
}

/// The number of open segments of a writer.
pub(crate) fn open_segments(connection: &Connection, writer: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT count(*) FROM segments WHERE writer = ?1 AND state = 'open'")?
        .query_row([writer], |row| row.get(0))
}

/// The run and its number that a segment belongs to.
pub(crate) fn segment_run(connection: &Connection, segment: i64) -> rusqlite::Result<Option<(i64, RunId)>> {
    connection
        .prepare_cached(
            "SELECT r.number, r.run FROM segments s JOIN runs r ON r.number = s.run WHERE s.number = ?1",
        )?
        .query_row([segment], |row| Ok((row.get(0)?, RunId::from_bytes(row.get(1)?))))
        .optional()
}
