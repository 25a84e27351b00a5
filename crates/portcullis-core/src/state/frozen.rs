//! A frozen run: what is stopped, and the clock that stands still meanwhile.

use super::RunState;
use crate::event::Control;
use crate::freeze::Frozen;
use crate::id::ApprovalId;
use crate::limits::NOTE_TOLD_CHARS_MAX;
use crate::time::Timestamp;

/// The freeze of a run, as its events tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFreeze {
    /// What is stopped.
    pub stops: Frozen,
    /// Since when the run is frozen, whatever was stopped at first.
    pub since: Timestamp,
    /// The note of whoever froze it, at most [`NOTE_TOLD_CHARS_MAX`] characters.
    pub note: Option<String>,
}

/// The clock by which approvals of a run lapse. It stands still while the run is frozen, and is behind the time of day
/// by as long as the run was frozen before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunClock {
    behind_micros: u64,
    stopped_at: Option<Timestamp>,
}

impl RunClock {
    /// What it shows at a time of day.
    pub(super) fn read(&self, at: Timestamp) -> Timestamp {
        let shown = self.stopped_at.unwrap_or(at).as_micros();
        Timestamp::from_micros(shown.saturating_sub_unsigned(self.behind_micros))
    }

    /// The time of day at which it will show this, if it is not stopped again.
    fn time_of(&self, shown: Timestamp) -> Timestamp {
        Timestamp::from_micros(shown.as_micros().saturating_add_unsigned(self.behind_micros))
    }

    fn stop(&mut self, at: Timestamp) {
        self.stopped_at.get_or_insert(at);
    }

    fn go_on(&mut self, at: Timestamp) {
        if let Some(stopped_at) = self.stopped_at.take() {
            self.behind_micros = self.behind_micros.saturating_add(at.micros_since(stopped_at));
        }
    }
}

impl RunState {
    /// The freeze of the run, or `None` if it is not frozen.
    pub fn freeze(&self) -> Option<&RunFreeze> {
        self.freeze.as_ref()
    }

    /// How long an approval has waited for its answer at a time, in microseconds. Time during which the run was frozen
    /// does not count.
    pub fn waited_micros(&self, approval: &super::Approval, at: Timestamp) -> u64 {
        self.clock.read(at).micros_since(approval.requested_at)
    }

    /// When a request lapses that may wait for so long, or `None` while the run is frozen: then it waits as long as that
    /// lasts.
    pub fn lapses_at(&self, id: ApprovalId, at: Timestamp, ttl_micros: u64) -> Option<Timestamp> {
        let approval = self.approvals.get(id)?;
        if self.freeze.is_some() && self.waited_micros(approval, at) <= ttl_micros {
            return None;
        }
        let lapses = approval.requested_at.as_micros().saturating_add_unsigned(ttl_micros);
        Some(self.clock.time_of(Timestamp::from_micros(lapses)))
    }

    /// A person froze or released the run.
    pub(super) fn apply_freeze(&mut self, control: Control, note: Option<&str>, at: Timestamp) {
        match control {
            Control::Freeze => {
                let note = note.map(|note| note.chars().take(NOTE_TOLD_CHARS_MAX).collect());
                let since = self.freeze.as_ref().map_or(at, |freeze| freeze.since);
                self.freeze = Some(RunFreeze { stops: Frozen::Everything, since, note });
                self.clock.stop(at);
            }
            Control::ReleaseReads => {
                if let Some(freeze) = &mut self.freeze {
                    freeze.stops = Frozen::SideEffects;
                }
            }
            Control::Release => {
                self.freeze = None;
                self.clock.go_on(at);
            }
            Control::Halt | Control::Pause | Control::Resume => {}
        }
    }
}
