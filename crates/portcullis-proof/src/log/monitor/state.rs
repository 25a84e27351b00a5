//! The state of a monitor after some leaves, to be saved and resumed.
//!
//! Resuming from it trusts it as if the monitor had read the leaves, so it belongs where only the reader writes, and
//! beside the tree that the leaves had.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{MONITOR_HEADS_MAX, Monitor, Segment, Writer};
use crate::chain::{Digest, Hex, Id};
use crate::log::key::VerifierKey;
use crate::log::leaf::{KeyId, RunState};

/// All that a monitor has learned from the leaves before `next`, in one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorState {
    /// The index of the leaf that is read next.
    next: u64,
    /// By key: the key, its public half, whether it is revoked, its epoch, and the number of its next segment.
    writers: Vec<(KeyId, Digest, bool, u64, u64)>,
    segments: Vec<SavedSegment>,
    /// Writer by its place, epoch, number, and the index since when.
    missing: Vec<(usize, u64, u64, u64)>,
    /// The heads that are not the last of a segment.
    heads: Vec<Digest>,
}

/// Segment, run, writer by its place, epoch, number, state, events, last head, and the index of that.
type SavedSegment = (Id, Id, usize, u64, u64, u8, u64, Digest, u64);

/// A state is not what a monitor put aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not the state of a monitor: {0}")]
pub struct StateError(&'static str);

impl MonitorState {
    /// The index of the leaf that is read next.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.next
    }
}

impl Monitor {
    /// What the monitor knows.
    #[must_use]
    pub fn state(&self) -> MonitorState {
        let mut writers: Vec<_> = self
            .writers
            .iter()
            .map(|(key, writer)| (*key, Hex(writer.public), writer.revoked, writer.epoch, writer.next))
            .collect();
        writers.sort_unstable();
        // Nothing is kept of a writer that is not among them.
        let place = |key: &KeyId| writers.binary_search_by(|writer| writer.0.cmp(key)).unwrap_or(usize::MAX);
        let mut segments: Vec<SavedSegment> = self
            .segments
            .iter()
            .map(|(id, segment)| {
                let (key, epoch, run_no) = segment.number;
                let state = segment.state as u8;
                (
                    *id,
                    segment.run,
                    place(&key),
                    epoch,
                    run_no,
                    state,
                    segment.count,
                    segment.last,
                    segment.since,
                )
            })
            .collect();
        segments.sort_unstable();
        let missing =
            self.missing.iter().map(|((key, epoch, run_no), since)| (place(key), *epoch, *run_no, *since));
        let missing = missing.collect();
        let last: HashSet<Digest> = self.segments.values().map(|segment| segment.last).collect();
        let mut heads: Vec<Digest> = self.heads.difference(&last).copied().collect();
        heads.sort_unstable();
        MonitorState { next: self.next, writers, segments, missing, heads }
    }

    /// A monitor that continues from a state.
    ///
    /// # Errors
    /// When no monitor can have saved it.
    pub fn resume(
        origin: &str,
        admins: Vec<VerifierKey>,
        state: MonitorState,
    ) -> Result<Monitor, StateError> {
        let MonitorState { next, writers, segments, missing, heads } = state;
        if segments.len().saturating_add(heads.len()) > MONITOR_HEADS_MAX {
            return Err(StateError("it has more heads than a monitor follows"));
        }
        let key = |place: usize| {
            writers
                .get(place)
                .map(|writer| writer.0)
                .ok_or(StateError("it names a writer that it does not have"))
        };
        let mut monitor = Monitor::new(origin, admins);
        monitor.next = next;
        monitor.missing = missing
            .into_iter()
            .map(|(writer, epoch, run_no, since)| Ok(((key(writer)?, epoch, run_no), since)))
            .collect::<Result<BTreeMap<_, _>, _>>()?;
        let before = segments.len();
        monitor.segments = segments
            .into_iter()
            .map(|(id, run, writer, epoch, run_no, state, count, last, since)| {
                let number = (key(writer)?, epoch, run_no);
                let known = |known: &RunState| *known as u8 == state;
                let state =
                    RunState::ALL.into_iter().find(known).ok_or(StateError("a segment has no such state"))?;
                Ok((id, Segment { run, number, state, count, last, since }))
            })
            .collect::<Result<HashMap<_, _>, _>>()?;
        if monitor.segments.len() != before {
            return Err(StateError("it has a segment twice"));
        }
        monitor.heads =
            heads.into_iter().chain(monitor.segments.values().map(|segment| segment.last)).collect();
        let before = writers.len();
        let writer = |(key, public, revoked, epoch, next): (KeyId, Digest, bool, u64, u64)| {
            (key, Writer { public: public.0, revoked, epoch, next })
        };
        monitor.writers = writers.into_iter().map(writer).collect();
        if monitor.writers.len() != before {
            return Err(StateError("it has a writer twice"));
        }
        Ok(monitor)
    }
}
