//! What calls that went ahead were marked with: enough of it to answer rules about the past.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};

use crate::limits::{MARK_KEYS_MAX, MARK_PLACES_MAX};
use crate::sequence::{Mark, MarkKey, Window};
use crate::time::Timestamp;

/// The marks of a run, or of all runs of a principal. Bounded in marks by the bundle, in keys and places by limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    by_name: HashMap<String, History>,
    keys: usize,
    keys_max: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self::with_room(MARK_KEYS_MAX)
    }
}

/// When and where in the run something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The time of its event.
    pub at: Timestamp,
    /// Number of its step.
    pub step: u32,
    /// Number of its event.
    pub seq: u64,
}

/// Whose marks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// All.
    Anybody,
    /// Those with this key, and those of which no key is known.
    Of(MarkKey),
    /// Nobody knows whose they should be: all count, and none is enough where one is required.
    Unknown,
}

/// From where on marks count.
#[derive(Debug, Clone, Copy)]
pub struct From<'a> {
    /// Since the latest of these that succeeded, if there was one.
    pub since: Option<&'a History>,
    /// Within this.
    pub within: Option<Window>,
}

/// What counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// How often it happened.
    pub count: u32,
    /// What the amounts come to, in millionths.
    pub sum_micros: u64,
    /// How many amounts could not be read.
    pub unread: u32,
    /// Whether one of them succeeded.
    pub has_succeeded: bool,
}

/// What is remembered of one mark: all, and by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    all: Track,
    unkeyed: Track,
    keyed: HashMap<MarkKey, Track, BuildHasherDefault<KeyHasher>>,
}

/// Takes a key as its hash: it is a part of a digest under the run's key, so nobody can choose those that collide.
#[derive(Debug, Clone, Copy, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The places where something happened, the oldest first. Beyond [`MARK_PLACES_MAX`] the two oldest become one, which
/// has the place of the newer: a window then counts a little more than is in it, never less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Track {
    places: VecDeque<Place>,
    /// What was counted before the first place.
    before: Totals,
    succeeded: Option<Now>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    at: Now,
    /// Up to here, this one included.
    totals: Totals,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    count: u32,
    sum_micros: u64,
    unread: u32,
}

impl Totals {
    fn plus(self, amount: Option<u64>) -> Self {
        Self {
            count: self.count.saturating_add(1),
            sum_micros: self.sum_micros.saturating_add(amount.unwrap_or(0)),
            unread: self.unread.saturating_add(u32::from(amount.is_none())),
        }
    }
}

impl Track {
    fn happened(&mut self, mut at: Now, amount: Option<u64>) {
        let latest = self.places.back().copied();
        // Places are searched: neither a clock that was set back nor a call that was held makes an older one.
        if let Some(latest) = latest {
            at = Now { at: at.at.max(latest.at.at), step: at.step.max(latest.at.step), ..at };
        }
        let totals = latest.map_or(self.before, |latest| latest.totals).plus(amount);
        self.places.push_back(Place { at, totals });
        if self.places.len() > MARK_PLACES_MAX {
            self.places.pop_front();
        }
    }

    /// When something last happened or succeeded.
    fn latest(&self) -> Option<Timestamp> {
        let happened = self.places.back().map(|place| place.at.at);
        happened.max(self.succeeded.map(|at| at.at))
    }

    fn tally(&self, from: Start) -> Tally {
        let Some(latest) = self.places.back() else { return Tally::default() };
        let first = self.places.partition_point(|place| !from.counts(place.at));
        let before = match first.checked_sub(1) {
            Some(before) => self.places.get(before).map_or(latest.totals, |place| place.totals),
            None => self.before,
        };
        Tally {
            count: latest.totals.count.saturating_sub(before.count),
            sum_micros: latest.totals.sum_micros.saturating_sub(before.sum_micros),
            unread: latest.totals.unread.saturating_sub(before.unread),
            has_succeeded: self.succeeded.is_some_and(|at| from.counts(at)),
        }
    }
}

/// From where on places count.
#[derive(Debug, Clone, Copy)]
struct Start {
    after_seq: u64,
    at: Option<Timestamp>,
    step: u32,
}

impl Start {
    fn counts(self, place: Now) -> bool {
        place.seq > self.after_seq && place.step >= self.step && self.at.is_none_or(|at| place.at >= at)
    }
}

impl Marks {
    /// Those of nobody yet, with room for so many keys.
    pub fn with_room(keys_max: usize) -> Self {
        Self { by_name: HashMap::new(), keys: 0, keys_max }
    }

    /// Whether one more key would not be told apart from those that have none.
    pub fn is_full(&self) -> bool {
        self.keys >= self.keys_max
    }

    /// Makes room by forgetting the keys of which nothing happened at `since` or later: for windows that do not reach back
    /// further. Linear in the keys.
    pub fn forget_before(&mut self, since: Timestamp) {
        let stays = |track: &Track| track.latest().is_some_and(|at| at >= since);
        for history in self.by_name.values_mut() {
            history.keyed.retain(|_, track| stays(track));
        }
        self.keys = self.by_name.values().map(|history| history.keyed.len()).sum();
    }

    /// A call with these marks goes ahead.
    pub fn happened(&mut self, marks: &[Mark], at: Now) {
        for mark in marks {
            self.each(mark, |track| track.happened(at, mark.amount_micros));
        }
    }

    /// A call with these marks succeeded.
    pub fn succeeded(&mut self, marks: &[Mark], at: Now) {
        for mark in marks.iter().filter(|mark| !mark.unsure) {
            self.each(mark, |track| track.succeeded = Some(at));
        }
    }

    /// The tracks that a mark counts in. Where there are too many keys, one more is not told apart from those that have
    /// none, and counts for all.
    fn each(&mut self, mark: &Mark, mut note: impl FnMut(&mut Track)) {
        if !self.by_name.contains_key(&mark.name) {
            self.by_name.insert(mark.name.clone(), History::default());
        }
        let Some(marked) = self.by_name.get_mut(&mark.name) else { return };
        note(&mut marked.all);
        let room = self.keys < self.keys_max;
        let key = mark.key.filter(|key| room || marked.keyed.contains_key(key));
        match key {
            None => note(&mut marked.unkeyed),
            Some(key) => {
                let track = marked.keyed.entry(key).or_insert_with(|| {
                    self.keys += 1;
                    Track::default()
                });
                note(track);
            }
        }
    }

    /// What is remembered of a mark, if it has happened.
    pub fn of(&self, name: &str) -> Option<&History> {
        self.by_name.get(name)
    }
}

impl History {
    /// What of the mark counts now. Logarithmic in [`MARK_PLACES_MAX`].
    pub fn tally(&self, whose: Whose, from: From<'_>, now: Now) -> Tally {
        let start = from.start(whose, now);
        match whose {
            Whose::Anybody => self.all.tally(start),
            Whose::Unknown => Tally { has_succeeded: false, ..self.all.tally(start) },
            Whose::Of(key) => {
                let own = self.keyed.get(&key).map_or_else(Tally::default, |track| track.tally(start));
                let unkeyed = self.unkeyed.tally(start);
                Tally {
                    count: own.count.saturating_add(unkeyed.count),
                    sum_micros: own.sum_micros.saturating_add(unkeyed.sum_micros),
                    unread: own.unread.saturating_add(unkeyed.unread),
                    has_succeeded: own.has_succeeded,
                }
            }
        }
    }

    fn succeeded(&self, whose: Whose) -> Option<Now> {
        match whose {
            Whose::Anybody => self.all.succeeded,
            Whose::Of(key) => self.keyed.get(&key).and_then(|track| track.succeeded),
            Whose::Unknown => None,
        }
    }
}

impl From<'_> {
    fn start(self, whose: Whose, now: Now) -> Start {
        let since = self.since.and_then(|since| since.succeeded(whose));
        let (at, step) = match self.within {
            None => (None, 0),
            Some(Window::Steps(steps)) => (None, now.step.saturating_sub(steps.saturating_sub(1))),
            Some(Window::Micros(micros)) => {
                let back = i64::try_from(micros).unwrap_or(i64::MAX);
                (Some(Timestamp::from_micros(now.at.as_micros().saturating_sub(back))), 0)
            }
        };
        Start { after_seq: since.map_or(0, |since| since.seq), at, step }
    }
}

#[cfg(test)]
mod tests;
