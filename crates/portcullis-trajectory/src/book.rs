//! The orders that tools' results held, found by their values and words.
//!
//! Bounded everywhere, and what is looked at for one call does not grow with the run: of each value and word the
//! latest [`POSTINGS_MAX`] orders are kept, and of all that come up [`CANDIDATES_MAX`] are weighed.

use std::collections::HashMap;
use std::ops::Range;

use crate::arguments::Argument;
use crate::kind::CallKind;
use crate::lexicon::Families;

/// Most orders that are remembered.
pub const ORDERS_MAX: usize = 1_024;
/// Most orders that a value or word leads to.
pub const POSTINGS_MAX: usize = 16;
/// Most orders that are weighed for one call.
pub const CANDIDATES_MAX: usize = 96;
/// Most words, and most values, of one order that lead to it.
pub const KEYS_MAX: usize = 64;
/// Most words and values of a call that are looked up.
pub const LOOKUPS_MAX: usize = 128;

/// An order that a tool's result held. Hashes are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// Where it stands in the raw text: from the clause of its first verb to the end of the sentence.
    pub range: Range<usize>,
    /// What its verbs, and the nouns they govern, are about.
    pub families: Families,
    /// Stems of its verbs.
    pub verbs: Vec<u64>,
    /// Stems of the words of its sentence.
    pub own: Vec<u64>,
    /// Stems of the words of its window: the sentence before, its own, and those it goes on for.
    pub window: Vec<u64>,
    /// The words of its sentence as they stand, and compounds such as `send_email`: names of tools among them.
    pub names: Vec<u64>,
    /// The values of its window.
    pub values: Vec<u64>,
    /// One of its verbs is in no family.
    pub unknown: bool,
    /// It is plainly an order.
    pub plain: bool,
    /// It speaks as the one on whose behalf the agent acts: *my account*, *the user's*.
    pub principal: bool,
    /// It names an address.
    pub addresses: bool,
    /// Its window speaks of sending something, or names a mail address.
    pub sends: bool,
}

/// An order and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The order.
    pub order: Order,
    /// Number of the event that showed it.
    pub seq: u64,
    /// Hash of the name of the tool that returned it.
    pub tool: u64,
    /// It is the answer of an action in its own words.
    pub status: bool,
    /// The user pointed at the source.
    pub pointed: bool,
    /// The user said to do what the source says.
    pub delegated: bool,
}

/// The orders of a run.
#[derive(Debug, Clone, Default)]
pub struct Book {
    entries: Vec<Entry>,
    postings: HashMap<u64, Vec<u32>>,
    families: HashMap<usize, Vec<u32>>,
    full: bool,
}

impl Book {
    /// Writes an order down. A full book takes no more, and says so.
    pub fn add(&mut self, entry: Entry) {
        let Some(number) = u32::try_from(self.entries.len()).ok().filter(|_| self.entries.len() < ORDERS_MAX)
        else {
            self.full = true;
            return;
        };
        let order = &entry.order;
        for key in [&order.values, &order.window, &order.names] {
            key.iter().take(KEYS_MAX).for_each(|key| post(self.postings.entry(*key).or_default(), number));
        }
        for family in order.families.bits() {
            post(self.families.entry(family).or_default(), number);
        }
        self.entries.push(entry);
    }

    /// The order with this number.
    pub fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    /// Whether there were more than could be remembered.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.full
    }

    /// Orders that may concern a call, the latest first.
    pub fn candidates(&self, kind: &CallKind, arguments: &[Argument]) -> Vec<u32> {
        let values = arguments.iter().flat_map(|argument| &argument.values).map(|value| value.hash);
        let targets = arguments.iter().filter(|argument| !argument.content);
        let words = targets.flat_map(|argument| &argument.stems).copied();
        let tool = [kind.name].into_iter().chain(kind.verbs.iter().chain(&kind.objects).copied());
        let mut found: Vec<u32> = Vec::new();
        for key in tool.chain(values.take(LOOKUPS_MAX)).chain(words.take(LOOKUPS_MAX)) {
            found.extend(self.postings.get(&key).into_iter().flatten());
        }
        for family in kind.families.bits() {
            found.extend(self.families.get(&family).into_iter().flatten());
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.dedup();
        found.truncate(CANDIDATES_MAX);
        found
    }
}

fn post(list: &mut Vec<u32>, number: u32) {
    if list.last() == Some(&number) {
        return;
    }
    if list.len() >= POSTINGS_MAX {
        list.remove(0);
    }
    list.push(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(values: Vec<u64>) -> Entry {
        let order = Order { values, ..Order::default() };
        Entry { order, seq: 1, tool: 0, status: false, pointed: false, delegated: false }
    }

    #[test]
    fn a_full_book_says_so_and_lookups_stay_bounded() {
        let mut book = Book::default();
        for _ in 0..ORDERS_MAX {
            book.add(entry(vec![7]));
        }
        assert!(!book.is_full());
        book.add(entry(vec![7]));
        assert!(book.is_full() && book.get(ORDERS_MAX as u32).is_none());
        let kind = CallKind { name: 7, ..CallKind::default() };
        let found = book.candidates(&kind, &[]);
        assert_eq!((found.len(), found[0]), (POSTINGS_MAX, ORDERS_MAX as u32 - 1));
    }
}
