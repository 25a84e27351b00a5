//! What others wrote, sentence by sentence, found again by the particulars of a call.
//!
//! A passage is kept as hashes: its words, its values, its numbers. It is looked up by any of them, so that judging a call
//! costs what the call has, not what the run has read. The index is bounded: a word keeps the passages that had it first
//! and those that had it last, and the oldest passages go when there are too many; who asks is told that some are gone.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::lexicon::Families;
use crate::posing::Posing;

/// Most passages that are remembered of one run.
pub const PASSAGES_MAX: usize = 16_384;
/// Most words, values and numbers by which they are found.
pub const KEYS_MAX: usize = 131_072;
/// Most passages by one key: the first ones, and as many of the last.
const BY_KEY: usize = 6;

/// A sentence that someone wrote and a tool only carried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passage {
    /// The text that it stands in: one leaf of one result.
    pub leaf: u64,
    /// Number of the event that showed it.
    pub seq: u64,
    /// Where it is in the raw text.
    pub range: Range<usize>,
    /// Stems of its words, values and numbers, sorted.
    pub keys: Box<[u64]>,
    /// Its verbs, by family.
    pub families: Families,
    /// How the passage, or text close to it, gives itself away.
    pub posing: Posing,
    /// It instructs or asks its reader to do something.
    pub asks: bool,
    /// It claims that something has been settled already, or hides.
    pub claims: bool,
    /// The user pointed at its source.
    pub named: bool,
    /// The user handed the matter on to its source.
    pub handed_on: bool,
}

impl Passage {
    /// Whether it has a word, value or number.
    pub fn has(&self, key: u64) -> bool {
        self.keys.binary_search(&key).is_ok()
    }
}

/// The first and the last passages that have a key.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    first: [u32; BY_KEY],
    last: [u32; BY_KEY],
    count: u32,
}

/// The bounded index.
#[derive(Debug, Clone, Default)]
pub struct Passages {
    kept: VecDeque<Passage>,
    /// Number of the oldest that is kept.
    oldest: u32,
    by_key: HashMap<u64, Places>,
    forgot: bool,
}

impl Passages {
    /// Remembers a passage.
    pub fn add(&mut self, passage: Passage) {
        if self.kept.len() >= PASSAGES_MAX {
            self.kept.pop_front();
            self.oldest = self.oldest.wrapping_add(1);
            self.forgot = true;
        }
        let number = self.oldest.wrapping_add(u32::try_from(self.kept.len()).unwrap_or(u32::MAX));
        for key in &passage.keys {
            if self.by_key.len() >= KEYS_MAX && !self.by_key.contains_key(key) {
                self.forgot = true;
                continue;
            }
            let places = self.by_key.entry(*key).or_default();
            let count = places.count as usize;
            let place = match places.first.get_mut(count) {
                Some(first) => Some(first),
                None => places.last.get_mut(count % BY_KEY),
            };
            if let Some(place) = place {
                *place = number;
            }
            places.count = places.count.saturating_add(1);
        }
        self.kept.push_back(passage);
    }

    /// The passage of a number.
    pub fn get(&self, number: u32) -> Option<&Passage> {
        self.kept.get(usize::try_from(number.checked_sub(self.oldest)?).ok()?)
    }

    /// Numbers of the passages that have a key, at most twice [`BY_KEY`].
    pub fn with(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let places = self.by_key.get(&key).copied().unwrap_or_default();
        let count = places.count as usize;
        let first = places.first.into_iter().take(count);
        let last = places.last.into_iter().take(count.saturating_sub(BY_KEY));
        first.chain(last).filter(|number| *number >= self.oldest)
    }

    /// How many passages have a key, those that are forgotten among them.
    pub fn count(&self, key: u64) -> u32 {
        self.by_key.get(&key).map_or(0, |places| places.count)
    }

    /// The passage with its neighbours in the same text.
    pub fn window(&self, number: u32) -> impl Iterator<Item = &Passage> {
        let leaf = self.get(number).map(|passage| passage.leaf);
        let around = number.saturating_sub(1)..=number.saturating_add(1);
        around.filter_map(|number| self.get(number)).filter(move |passage| Some(passage.leaf) == leaf)
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.forgot
    }

    /// Whether some are not known any more.
    pub fn forgot(&self) -> bool {
        self.forgot
    }

    /// Says that something was read that is not known any more.
    pub fn forget(&mut self) {
        self.forgot = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(keys: &[u64]) -> Passage {
        Passage { keys: keys.into(), ..Passage::default() }
    }

    #[test]
    fn the_first_and_the_last_passages_with_a_key_are_found() {
        let mut passages = Passages::default();
        for _ in 0..100 {
            passages.add(passage(&[7]));
        }
        let found: Vec<u32> = passages.with(7).collect();
        assert_eq!(found.len(), 2 * BY_KEY);
        assert!(found.contains(&0) && found.contains(&99));
        assert_eq!(passages.with(8).count(), 0);
    }

    #[test]
    fn the_oldest_go_and_it_is_said() {
        let mut passages = Passages::default();
        for number in 0..PASSAGES_MAX as u64 {
            passages.add(passage(&[number % 1_000]));
        }
        assert!(!passages.forgot());
        passages.add(passage(&[5_000]));
        assert!(passages.forgot() && passages.get(0).is_none() && passages.get(1).is_some());
    }
}
