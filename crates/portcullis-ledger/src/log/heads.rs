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

use super::database::LoggedSegment;
use super::error::LogError;
use crate::error::LedgerError;
use crate::ledger::{Reader, SegmentStand};
use crate::rows::SegmentRow;

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
        reader: &dyn Reader,
        logged: impl Fn(Id) -> Result<Option<LoggedSegment>, LogError>,
    ) -> Result<bool, LogError> {
        let rows = reader.segments_from(self.seen, SEGMENTS_A_LOOK)?;
        let more = rows.len() == SEGMENTS_A_LOOK;
        for (run, row) in rows {
            let mut watched = Watched::new(run, &row);
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
    pub(super) fn due(&mut self, reader: &dyn Reader, row: i64) -> Result<Vec<DueHead>, LogError> {
        let Some(watched) = self.watched.get_mut(&row) else { return Ok(Vec::new()) };
        let Some(stand) = reader.segment_stand(row, segment_id(watched.segment))? else {
            // A run in which nothing was recorded is removed, and its row may be given to the next one.
            self.watched.remove(&row);
            self.seen = self.seen.min(row - 1);
            return Ok(Vec::new());
        };
        watched.due(reader, stand)
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
    fn new(run: RunId, row: &SegmentRow) -> Watched {
        Watched {
            row: row.place,
            run: Hex(*run.as_bytes()),
            segment: Hex(*row.segment.as_bytes()),
            ordinal: row.ordinal,
            after: row.after,
            parent: row.parent,
            first_link: row.first_link,
            bundle: None,
            looked_at: 0,
            logged: None,
            headed: Instant::now(),
        }
    }

    fn due(&mut self, reader: &dyn Reader, stand: SegmentStand) -> Result<Vec<DueHead>, LogError> {
        let SegmentStand { state, count, link } = stand;
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
    fn bundle(&mut self, reader: &dyn Reader, count: u64) -> Result<Digest, LogError> {
        let run = RunId::from_bytes(self.run.0);
        let lines = reader.configuration_lines(run, self.looked_at, count)?;
        for line in lines {
            let event = Event::from_line(&line).map_err(|error| {
                LogError::from(LedgerError::RunDamaged { run, detail: error.to_string() })
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
        let unsaid = || "it does not say under which bundle it was opened".to_owned();
        self.bundle.ok_or_else(|| LedgerError::RunDamaged { run, detail: unsaid() }.into())
    }
}

/// The segment's id as the ledger names it.
pub(super) fn segment_id(segment: Id) -> SegmentId {
    SegmentId::from_bytes(segment.0)
}
