//! The summary of each run: what a list shows of it, kept up with its events.
//!
//! The truth is in the events. A summary is written in the same transaction as the events that it follows from, so that a
//! list reads one row for a run, however long the run is. [`Fold`] computes the same from the events alone: for runs that
//! an earlier release wrote ([`crate::sqlite::backfill`]), and for the check of the store.

use std::collections::BTreeSet;

use portcullis_core::event::{Event, EventBody, Mode};
use portcullis_core::freeze::Frozen;
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::state::RunState;
use portcullis_core::state::progress::{Progress, RunPhase, VerdictCounts};
use portcullis_core::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sqlite::schema::{event_key, has_freezes, key_seq, signed, unsigned};

/// What a list shows of a run, apart from its identity and its segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The seq of the last event.
    pub(crate) events: u64,
    /// When that happened.
    pub(crate) last_event: Timestamp,
    /// Approvals that wait.
    pub(crate) pending_approvals: u64,
    pub(crate) progress: Progress,
}

impl Summary {
    /// The parts in which another one differs, in words of a check.
    pub(crate) fn unlike(&self, other: &Self) -> Vec<&'static str> {
        let (mine, theirs) = (&self.progress, &other.progress);
        let parts = [
            ("the number of events", self.events == other.events),
            ("the time of the last event", self.last_event == other.last_event),
            ("the number of pending approvals", self.pending_approvals == other.pending_approvals),
            ("the surface", mine.surface == theirs.surface),
            ("the policy", mine.policy == theirs.policy),
            ("the bundle", mine.bundle == theirs.bundle),
            ("the mode", mine.mode == theirs.mode),
            ("the phase", mine.phase == theirs.phase),
            ("the freeze", mine.frozen == theirs.frozen),
            ("the number of steps", mine.steps == theirs.steps),
            ("the number of side effects", mine.side_effects == theirs.side_effects),
            ("the counts of verdicts", mine.verdicts == theirs.verdicts),
        ];
        parts.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}

/// A summary in the making, event by event.
#[derive(Default)]
pub(crate) struct Fold {
    state: RunState,
    last_event: Timestamp,
    pending: BTreeSet<ApprovalId>,
}

impl Fold {
    pub(crate) fn take(&mut self, event: &Event) {
        self.last_event = event.t;
        match &event.body {
            EventBody::ApprovalRequested { approval, .. } => drop(self.pending.insert(*approval)),
            EventBody::ApprovalDecided { approval, .. } => drop(self.pending.remove(approval)),
            _ => {}
        }
        self.state.apply(event);
    }

    /// The summary of the events so far; none before the first.
    pub(crate) fn summary(&self) -> Option<Summary> {
        (self.state.seq() > 0).then(|| Summary {
            events: self.state.seq(),
            last_event: self.last_event,
            pending_approvals: self.pending.len() as u64,
            progress: self.state.progress(),
        })
    }
}

/// Computes the summary of a run from its events, unless `cancelled` says so before a page of them. Lines that cannot be
/// read are left out: the check of the store names them. O(events of the run).
pub(crate) fn fold(
    connection: &Connection,
    run: i64,
    mut cancelled: impl FnMut() -> bool,
) -> rusqlite::Result<Option<Summary>> {
    const PAGE: i64 = 1_000;
    let (mut fold, mut after) = (Fold::default(), event_key(run, 0));
    loop {
        if cancelled() {
            return Ok(None);
        }
        let mut statement = connection.prepare_cached(
            "SELECT key, line FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
        )?;
        let mut rows = statement.query(params![after, event_key(run, u64::MAX), PAGE])?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            read += 1;
            after = row.get(0)?;
            if let Ok(event) = Event::from_line(row.get_ref(1)?.as_blob()?) {
                fold.take(&event);
            }
        }
        if read < PAGE {
            return Ok(fold.summary());
        }
    }
}

/// The columns of a summary that every store with summaries has. `m` is the table.
const COLUMNS: &str = "m.events, m.last_event, m.pending_approvals, m.surface, m.policy, m.bundle, m.mode,
    m.phase, m.steps, m.side_effects, m.allowed, m.warned, m.modified, m.clarified, m.paused, m.reviewed, m.denied,
    m.halted";

/// The columns of a summary, for [`read`].
pub(crate) fn columns(connection: &Connection) -> rusqlite::Result<String> {
    let frozen = if has_freezes(connection)? { "m.frozen" } else { "NULL" };
    Ok(format!("{COLUMNS}, {frozen}"))
}

/// Reads [`columns`], from column `first` on.
pub(crate) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Summary> {
    let count = |place: usize| row.get::<_, u32>(first + place);
    let (mode, phase) = (row.get_ref(first + 6)?.as_str()?, row.get_ref(first + 7)?.as_str()?);
    let malformed = |place: usize, name: &str| {
        rusqlite::Error::InvalidColumnType(first + place, name.to_owned(), Type::Text)
    };
    Ok(Summary {
        events: unsigned(row.get(first)?),
        last_event: Timestamp::from_micros(row.get(first + 1)?),
        pending_approvals: unsigned(row.get(first + 2)?),
        progress: Progress {
            surface: row.get(first + 3)?,
            policy: row.get(first + 4)?,
            bundle: row.get::<_, Option<[u8; 32]>>(first + 5)?.map(Digest::from_bytes),
            mode: [Mode::Enforce, Mode::Observe]
                .into_iter()
                .find(|known| mode_word(*known) == mode)
                .ok_or_else(|| malformed(6, "mode"))?,
            phase: RunPhase::ALL
                .into_iter()
                .find(|known| known.as_str() == phase)
                .ok_or_else(|| malformed(7, "phase"))?,
            frozen: match row.get_ref(first + 18)?.as_str_or_null()? {
                None => None,
                Some(word) => Some(
                    [Frozen::SideEffects, Frozen::Everything]
                        .into_iter()
                        .find(|known| known.as_str() == word)
                        .ok_or_else(|| malformed(18, "frozen"))?,
                ),
            },
            steps: count(8)?,
            side_effects: count(9)?,
            verdicts: VerdictCounts {
                allow: count(10)?,
                warn: count(11)?,
                modify: count(12)?,
                clarify: count(13)?,
                pause: count(14)?,
                review: count(15)?,
                deny: count(16)?,
                halt: count(17)?,
            },
        },
    })
}

/// The summary of a run as it is stored; none where there is no row.
pub(crate) fn get(connection: &Connection, run: i64) -> rusqlite::Result<Option<Summary>> {
    connection
        .prepare_cached(&format!("SELECT {} FROM summaries m WHERE m.run = ?1", columns(connection)?))?
        .query_row([run], |row| read(row, 0))
        .optional()
}

/// Writes the summary of a run after the events and the approvals that it follows from. How many approvals wait is counted
/// here, whatever the summary says.
pub(crate) fn put(connection: &Connection, run: i64, summary: &Summary) -> rusqlite::Result<()> {
    let Summary { events, last_event, progress, .. } = summary;
    let verdicts = &progress.verdicts;
    connection
        .prepare_cached(
            "INSERT INTO summaries (run, events, last_event, pending_approvals, surface, policy, bundle, mode, phase,
                 steps, side_effects, allowed, warned, modified, clarified, paused, reviewed, denied, halted, frozen)
             VALUES (?1, ?2, ?3, (SELECT count(*) FROM approvals WHERE run = ?1 AND state = 'pending'), ?4, ?5, ?6, ?7,
                 ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
             ON CONFLICT (run) DO UPDATE SET events = excluded.events, last_event = excluded.last_event,
                 pending_approvals = excluded.pending_approvals, surface = excluded.surface, policy = excluded.policy,
                 bundle = excluded.bundle, mode = excluded.mode, phase = excluded.phase, steps = excluded.steps,
                 side_effects = excluded.side_effects, allowed = excluded.allowed, warned = excluded.warned,
                 modified = excluded.modified, clarified = excluded.clarified, paused = excluded.paused,
                 reviewed = excluded.reviewed, denied = excluded.denied, halted = excluded.halted,
                 frozen = excluded.frozen",
        )?
        .execute(params![
            run,
            signed(*events),
            last_event.as_micros(),
            progress.surface,
            progress.policy,
            progress.bundle.map(|bundle| *bundle.as_bytes()),
            mode_word(progress.mode),
            progress.phase.as_str(),
            progress.steps,
            progress.side_effects,
            verdicts.allow,
            verdicts.warn,
            verdicts.modify,
            verdicts.clarify,
            verdicts.pause,
            verdicts.review,
            verdicts.deny,
            verdicts.halt,
            progress.frozen.map(Frozen::as_str),
        ])
        .map(drop)
}

/// Notes that recovery closed a run as abandoned, after `events` events. A run without a summary is left to whoever
/// computes it.
pub(crate) fn abandon(
    connection: &Connection,
    run: i64,
    events: u64,
    last_event: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE summaries SET events = ?2, last_event = ?3, phase = ?4 WHERE run = ?1")?
        .execute(params![run, signed(events), last_event.as_micros(), RunPhase::Abandoned.as_str()])
        .map(drop)
}

/// The seq of the last event of a run, 0 where it has none.
pub(crate) fn last_seq(connection: &Connection, run: i64) -> rusqlite::Result<u64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT key FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1")?
        .query_row([event_key(run, 0), event_key(run, u64::MAX)], |row| row.get(0))
        .optional()?;
    Ok(last.map_or(0, key_seq))
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}
