//! What a run has used up, and how it repeats itself: counters that limits and the loop breaker read.
//!
//! Part of [`RunState`](crate::state::RunState), and like it a fold over events, O(1) an event.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::event::{Control, Event, EventBody, VerdictRecord};
use crate::label::Label;
use crate::likeness::Likeness;
use crate::limits::{CALLS_COMPARED_MAX, VERDICTS_REMEMBERED_MAX};
use crate::pipeline::reserved;
use crate::verdict::Verdict;

/// What was used up: by one run, or by all runs of a principal in a [`Window`](crate::policy::Window).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Steps: proposed actions, whatever became of them.
    pub steps: u64,
    /// Side effects that were permitted.
    pub side_effects: u64,
    /// Bytes of arguments sent and of results seen.
    pub bytes: u64,
    /// Cost of the calls that were permitted, in millionths of the bundle's unit.
    pub cost_micros: u64,
}

impl Used {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What is left of this without the other. What would fall below zero is zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn each(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            steps: with(self.steps, other.steps),
            side_effects: with(self.side_effects, other.side_effects),
            bytes: with(self.bytes, other.bytes),
            cost_micros: with(self.cost_micros, other.cost_micros),
        }
    }
}

/// The counters of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    bytes: u64,
    cost_micros: u64,
    /// Likenesses of the latest calls, the oldest first.
    calls: VecDeque<Likeness>,
    /// The latest verdicts on calls since the user last spoke, the newest in the lowest bit; set where it was a denial.
    denied: u32,
}

impl Usage {
    /// Bytes of arguments sent and of results seen.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Cost of the calls that went ahead, in millionths of the bundle's unit.
    pub fn cost_micros(&self) -> u64 {
        self.cost_micros
    }

    /// How many of the latest [`CALLS_COMPARED_MAX`] calls were like this one.
    pub fn alike(&self, likeness: Likeness) -> u32 {
        let alike = self.calls.iter().filter(|call| **call == likeness).count();
        u32::try_from(alike).unwrap_or(u32::MAX)
    }

    /// How many of the latest [`VERDICTS_REMEMBERED_MAX`] calls were denied, since the user last spoke or a person
    /// resumed the run.
    pub fn denied_lately(&self) -> u32 {
        self.denied.count_ones()
    }

    /// Takes one more event into account.
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                self.see(event, "arguments");
                if let Some(likeness) = proposed.likeness {
                    if self.calls.len() >= CALLS_COMPARED_MAX {
                        self.calls.pop_front();
                    }
                    self.calls.push_back(likeness);
                }
            }
            EventBody::Observation { .. } => self.see(event, "content"),
            EventBody::Verdict(record) => self.judge(record),
            EventBody::Control { control: Control::ReleaseReads | Control::Release, .. } => {
                // What an agent repeated while nothing could go ahead says nothing about what it does next.
                self.denied = 0;
                self.calls.clear();
            }
            EventBody::Input { label: Label::User } | EventBody::Control { .. } => self.denied = 0,
            _ => {}
        }
    }

    /// A call goes ahead.
    pub(crate) fn pay(&mut self, cost_micros: u64) {
        self.cost_micros = self.cost_micros.saturating_add(cost_micros);
    }

    fn see(&mut self, event: &Event, payload: &str) {
        let bytes = event.payloads.get(payload).map_or(0, |payload| payload.bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn judge(&mut self, record: &VerdictRecord) {
        if record.action.is_some() && record.rule.as_deref() != Some(reserved::FROZEN) {
            self.denied = (self.denied << 1) | u32::from(record.verdict == Verdict::Deny);
            self.denied &= (1 << VERDICTS_REMEMBERED_MAX) - 1;
        }
    }
}
