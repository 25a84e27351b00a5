//! Which heads are due: the ledger is compared with what the log has of it.
//!
//! The writer of events never waits for this. A segment's *open* head is made as soon as it has an event, a
//! *progress* head when it has gone on for long enough, and its last one when it has ended. What was made is in the
//! log's database before it is in the tree, numbered without holes, and never made twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use portcullis_core::event::{ConfigChange, Event, EventBody};
use portcullis_core::id::{RunId, SegmentId};
use portcullis_proof::export::SegmentState;
use portcullis_proof::log::RunState;
use portcullis_proof::{Digest, Hex, Id, Parent};
use rusqlite::{OptionalExtension as _, params};

use super::database::LoggedSegment;
use super::error::LogError;
use crate::error::LedgerError;
use crate::read::{Reader, state as segment_state};
use crate::schema::{event_key, key_seq, unsigned};

/// Segments that are read in one pass over the ledger.
const SEGMENTS_A_LOOK: usize = 4096;
/// An open segment gets a head after this time if it has a new event.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(60);
/// Or after this many events.
pub const PROGRESS_EVENTS: u64 = 10_000;

/// A segment whose end is not in the log.
#[derive(Debug)]
pub(super) struct Watched {
    row: i64,
    run_row: i64,
    pub(super) run: Id,
    pub(super) segment: Id,
    pub(super) ordinal: u64,
    after: u64,
    pub(super) parent: Option<Parent>,
    first_link: Digest,
    /// The bundle in force after the events read so far.
    bundle: Option<Digest>,
    looked_at: u64,
    pub(super) logged: Option<LoggedSegment>,
    headed: Instant,
}

/// A head to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DueHead {
    pub(super) state: RunState,
    pub(super) count: u64,
    pub(super) link: Digest,
    pub(super) bundle: Digest,
}

/// The segments that the log follows, by their row in the ledger.
#[derive(Debug, Default)]
pub(super) struct Follower {
    watched: BTreeMap<i64, Watched>,
    /// Rows up to this one were read.
    seen: i64,
}

impl Follower {
    pub(super) fn new(settled: i64) -> Follower {
        Follower { watched: BTreeMap::new(), seen: settled }
    }

    /// The row below which everything is in the log with its end.
    pub(super) fn settled(&self) -> i64 {
        self.watched.first_key_value().map_or(self.seen, |(row, _)| row - 1)
    }

    /// Takes up segments that are new; whether there may be more.
    pub(super) fn take_up(
        &mut self,
        reader: &Reader,
        logged: impl Fn(Id) -> Result<Option<LoggedSegment>, LogError>,
    ) -> Result<bool, LogError> {
        let rows: Vec<Watched> = reader.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT s.number, s.run, r.run, s.segment, s.ordinal, s.after, s.parent_segment, s.parent_link,
                         s.first_link FROM segments s JOIN runs r ON r.number = s.run
                     WHERE s.number > ?1 ORDER BY s.number LIMIT ?2",
                )?
                .query_map(params![self.seen, SEGMENTS_A_LOOK as i64], |row| {
                    let parent: (Option<[u8; 16]>, Option<[u8; 32]>) = (row.get(6)?, row.get(7)?);
                    Ok(Watched {
                        row: row.get(0)?,
                        run_row: row.get(1)?,
                        run: Hex(row.get(2)?),
                        segment: Hex(row.get(3)?),
                        ordinal: unsigned(row.get(4)?),
                        after: unsigned(row.get(5)?),
                        parent: parent.0.zip(parent.1).map(|(segment, link)| Parent { segment: Hex(segment), link: Hex(link) }),
                        first_link: Hex(row.get(8)?),
                        bundle: None,
                        looked_at: 0,
                        logged: None,
                        headed: Instant::now(),
                    })
                })?
                .collect()
        })?;
        let more = rows.len() == SEGMENTS_A_LOOK;
        for mut watched in rows {
            self.seen = self.seen.max(watched.row);
            watched.logged = logged(watched.segment)?;
            if !watched.logged.is_some_and(|logged| logged.state.is_final()) {
                self.watched.insert(watched.row, watched);
            }
        }
        Ok(more)
    }

    /// The rows that are followed.
    pub(super) fn rows(&self) -> Vec<i64> {
        self.watched.keys().copied().collect()
    }

    pub(super) fn get(&self, row: i64) -> Option<&Watched> {
        self.watched.get(&row)
    }

    /// The heads that are due for a segment; empty if there are none.
    pub(super) fn due(&mut self, reader: &Reader, row: i64) -> Result<Vec<DueHead>, LogError> {
        let Some(watched) = self.watched.get_mut(&row) else { return Ok(Vec::new()) };
        let Some((state, count, link)) = watched.stand(reader)? else {
            // A run in which nothing was recorded is removed, and its row may be given to the next one.
            self.watched.remove(&row);
            self.seen = self.seen.min(row - 1);
            return Ok(Vec::new());
        };
        watched.due(reader, state, count, link)
    }

    /// Follows a segment no longer.
    pub(super) fn give_up(&mut self, row: i64) {
        self.watched.remove(&row);
    }

    /// Heads of a segment were put in line.
    pub(super) fn made(&mut self, row: i64, logged: LoggedSegment) {
        if logged.state.is_final() {
            self.watched.remove(&row);
        } else if let Some(watched) = self.watched.get_mut(&row) {
            watched.logged = Some(logged);
            watched.headed = Instant::now();
        }
    }
}

impl Watched {
    /// How the segment is in the ledger, or `None` if it is gone.
    fn stand(&self, reader: &Reader) -> Result<Option<(SegmentState, u64, Digest)>, LogError> {
        let found = reader.query(|connection| {
            let row: Option<(SegmentState, Option<i64>)> = connection
                .prepare_cached(
                    "SELECT s.state, (SELECT n.after FROM segments n WHERE n.run = s.run AND n.ordinal = s.ordinal + 1)
                     FROM segments s WHERE s.number = ?1 AND s.segment = ?2",
                )?
                .query_row(params![self.row, self.segment.0], |row| Ok((segment_state(row, 0)?, row.get(1)?)))
                .optional()?;
            let Some((state, until)) = row else { return Ok(None) };
            let until = until.map_or(u64::MAX, unsigned);
            let last: Option<(i64, [u8; 32])> = connection
                .prepare_cached(
                    "SELECT key, link FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key DESC LIMIT 1",
                )?
                .query_row(params![event_key(self.run_row, self.after), event_key(self.run_row, until)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            Ok(Some(match last {
                Some((key, link)) => (state, key_seq(key), Hex(link)),
                None => (state, self.after, self.first_link),
            }))
        })?;
        Ok(found)
    }

    fn due(
        &mut self,
        reader: &Reader,
        state: SegmentState,
        count: u64,
        link: Digest,
    ) -> Result<Vec<DueHead>, LogError> {
        let logged = self.logged.map_or(self.after, |logged| logged.count);
        if count < logged {
            let run = RunId::from_bytes(self.run.0);
            return Err(LogError::LedgerBehind { run, logged, stored: count });
        }
        let ended = match state {
            SegmentState::Open => None,
            SegmentState::Closed => Some(RunState::Closed),
            SegmentState::Abandoned => Some(RunState::Abandoned),
        };
        let going_on = count.saturating_sub(logged) >= PROGRESS_EVENTS
            || (count > logged && self.headed.elapsed() >= PROGRESS_EVERY);
        let opens = self.logged.is_none() && count > self.after;
        let goes_on = self.logged.is_some() && ended.is_none() && going_on;
        if !opens && !goes_on && (ended.is_none() || count == self.after) {
            return Ok(Vec::new());
        }
        let bundle = self.bundle(reader, count)?;
        let mut due = Vec::new();
        if opens {
            due.push(DueHead { state: RunState::Open, count: self.after, link: self.first_link, bundle });
        }
        if let Some(state) = ended.or(goes_on.then_some(RunState::Progress)) {
            due.push(DueHead { state, count, link, bundle });
        }
        Ok(due)
    }

    /// The bundle in force after `count` events.
    fn bundle(&mut self, reader: &Reader, count: u64) -> Result<Digest, LogError> {
        let lines: Vec<Vec<u8>> = reader.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT line FROM events WHERE key > ?1 AND key <= ?2 AND kind IN ('run-opened', 'config')
                     ORDER BY key",
                )?
                .query_map(
                    params![event_key(self.run_row, self.looked_at), event_key(self.run_row, count)],
                    |row| row.get(0),
                )?
                .collect()
        })?;
        for line in lines {
            let event = Event::from_line(&line).map_err(|error| LedgerError::Corrupt {
                path: reader.store.database.clone(),
                detail: format!("run {}: {error}", self.run),
            })?;
            match event.body {
                EventBody::RunOpened(opened) => self.bundle = Some(Hex(*opened.bundle.as_bytes())),
                EventBody::Config(ConfigChange::BundleLoaded { bundle, .. }) => {
                    self.bundle = Some(Hex(*bundle.as_bytes()));
                }
                _ => {}
            }
        }
        self.looked_at = count;
        self.bundle.ok_or_else(|| {
            LedgerError::Corrupt {
                path: reader.store.database.clone(),
                detail: format!("run {} does not say under which bundle it was opened", self.run),
            }
            .into()
        })
    }
}

/// The segment's id as the ledger names it.
pub(super) fn segment_id(segment: Id) -> SegmentId {
    SegmentId::from_bytes(segment.0)
}
