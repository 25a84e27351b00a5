//! What all runs of a gate know of things that were written with the words of others: the index of the store, in memory,
//! so that a result is read with one look at it.
//!
//! It is read from the store when the first run is opened, and added to with each batch that became durable. What
//! another process writes into the same store meanwhile is known after the next start.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::taint::{Marks, Taint, Tainted, thing_digest};
use portcullis_ledger::{Forgotten, StoredTaints, TAINTS_MAX, TAINTS_OF_THING_MAX, TaintRow};
use portcullis_trajectory::marks;

use crate::batch::note_known_secrets;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Taints {
    key: Digest,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    /// The rows of each thing with their numbers.
    by_thing: HashMap<Digest, VecDeque<(u64, TaintRow)>>,
    /// All rows in order. One that was replaced leaves its place behind.
    order: VecDeque<(u64, Digest)>,
    last: u64,
    forgotten: Forgotten,
}

/// What is known of the taints of one thing.
struct Known {
    labels: LabelSet,
    /// None: all of it.
    marks: Option<Marks>,
}

/// The name of a thing as it may be recorded, without secrets, whatever the bundle says of the record: a name that
/// changed with it would be another thing.
pub(crate) fn thing_name(thing: &str) -> String {
    let mut name = thing.to_owned();
    note_known_secrets(&mut name);
    name
}

impl Known {
    fn marks(&self) -> &[u64] {
        self.marks.as_ref().map_or(&[], Marks::as_slice)
    }
}

impl Taints {
    /// Of what is stored, or `None` if the store has no key.
    pub(crate) fn of(stored: StoredTaints) -> Option<Self> {
        let StoredTaints { key, rows, forgotten } = stored;
        let taints = Self { key: key?, index: Mutex::new(Index { forgotten, ..Index::default() }) };
        taints.add(&rows);
        Some(taints)
    }

    /// What a thing is known by.
    pub(crate) fn digest(&self, thing: &str) -> Digest {
        thing_digest(&self.key, &thing_name(thing))
    }

    /// A key for what else of runs is compared with other runs, by a word for it.
    pub(crate) fn key_for(&self, what: &str) -> Digest {
        DigestBuilder::new("portcullis/shared-key/v1")
            .part(self.key.as_bytes())
            .part(what.as_bytes())
            .finish()
    }

    /// Adds rows that are durable.
    pub(crate) fn add(&self, rows: &[TaintRow]) {
        if rows.is_empty() {
            return;
        }
        let mut index = self.lock();
        rows.iter().for_each(|row| index.add(row.clone()));
    }

    /// What of a text others had written into one of the things that it was read from.
    pub(crate) fn tainted(&self, principal: &str, things: &[String], text: &str) -> Option<Tainted> {
        let known = self.known(principal, things);
        if known.is_empty() || text.is_empty() {
            return None;
        }
        let wanted = known.iter().flat_map(Known::marks).copied().collect();
        let found = marks::find(text, &wanted);
        let is_there = |one: &&Known| {
            one.marks.is_none() || found.cut || one.marks().iter().any(|mark| found.marks.contains(mark))
        };
        let there: Vec<&Known> = known.iter().filter(is_there).collect();
        let whole = found.cut || there.iter().any(|one| one.marks.is_none());
        let mut labels = LabelSet::default();
        labels.extend(there.iter().flat_map(|one| one.labels.iter().cloned()));
        let all = 0..text.len();
        let stretches = if whole { Vec::from([all]) } else { found.stretches };
        (!there.is_empty()).then_some(Tainted { labels, stretches })
    }

    /// What others had written into the things that an action copies.
    pub(crate) fn carried(&self, principal: &str, things: &[String]) -> Option<(LabelSet, Option<Marks>)> {
        let mut labels = LabelSet::default();
        let mut marks = Some(Vec::new());
        for one in self.known(principal, things) {
            labels.extend(one.labels.iter().cloned());
            marks = marks.zip(one.marks).map(|(mut all, more)| {
                all.extend(more.as_slice());
                all
            });
        }
        (!labels.is_empty()).then(|| (labels, marks.and_then(Marks::new)))
    }

    /// Whether more is known of a thing than that this was written into it.
    pub(crate) fn is_outdated(&self, principal: &str, taint: &Taint) -> bool {
        let (thing, index) = (self.digest(&taint.thing), self.lock());
        let rows = index.by_thing.get(&thing).into_iter().flatten();
        let mut own = rows.filter(|(_, row)| row.principal == principal);
        own.any(|(_, row)| (&row.labels, &row.marks) != (&taint.labels, &taint.marks))
            || index.is_forgotten(&thing)
    }

    /// What is known of things: of rows of other principals no labels, which are none of this one's business.
    fn known(&self, principal: &str, things: &[String]) -> Vec<Known> {
        let index = self.lock();
        if index.order.is_empty() && index.forgotten == Forgotten::default() {
            return Vec::new();
        }
        let mut unknown = LabelSet::default();
        unknown.insert(Label::Unknown);
        let mut known = Vec::new();
        for thing in things.iter().map(|thing| self.digest(thing)) {
            let rows = index.by_thing.get(&thing).into_iter().flatten();
            known.extend(rows.filter(|(_, row)| !row.labels.is_empty()).map(|(_, row)| Known {
                labels: if row.principal == principal { row.labels.clone() } else { unknown.clone() },
                marks: row.marks.clone(),
            }));
            if index.is_forgotten(&thing) {
                known.push(Known { labels: unknown.clone(), marks: None });
            }
        }
        known
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn add(&mut self, row: TaintRow) {
        self.last += 1;
        let (number, thing) = (self.last, row.thing);
        let rows = self.by_thing.entry(thing).or_default();
        if row.replaces {
            rows.retain(|(_, other)| other.principal != row.principal);
        }
        rows.push_back((number, row));
        let over = rows.len().saturating_sub(TAINTS_OF_THING_MAX);
        if rows.drain(..over).next().is_some() {
            self.forgotten.insert(&thing);
        }
        self.order.push_back((number, thing));
        while self.order.len() > TAINTS_MAX {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((number, thing)) = self.order.pop_front() else { return };
        let Some(rows) = self.by_thing.get_mut(&thing) else { return };
        if rows.front().is_some_and(|(first, _)| *first == number) {
            rows.pop_front();
            self.forgotten.insert(&thing);
        }
        if rows.is_empty() {
            self.by_thing.remove(&thing);
        }
    }

    /// Whether something that was known of a thing is not any more, and it was not written anew since.
    fn is_forgotten(&self, thing: &Digest) -> bool {
        let anew = || self.by_thing.get(thing).into_iter().flatten().any(|(_, row)| row.replaces);
        self.forgotten.has(thing) && !anew()
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::id::Commitment;

    use super::*;

    const TEXT: &str = "Forward the payroll file to the auditors before noon.";

    fn taints() -> Taints {
        let key = Some(Digest::from_bytes([3; 32]));
        Taints::of(StoredTaints { key, ..StoredTaints::default() }).unwrap()
    }

    fn row(taints: &Taints, thing: &str, labels: &[&str], replaces: bool) -> TaintRow {
        let mut set = LabelSet::default();
        labels.iter().for_each(|label| set.insert(label.parse().unwrap()));
        TaintRow {
            thing: taints.digest(thing),
            principal: "ann".into(),
            seq: 1,
            commitment: Commitment::from_bytes([0; 32]),
            labels: set,
            marks: None,
            replaces,
        }
    }

    fn labels(taints: &Taints, principal: &str, thing: &str) -> Option<String> {
        taints.tainted(principal, &[thing.to_owned()], TEXT).map(|tainted| tainted.to_string())
    }

    #[test]
    fn another_principal_learns_that_it_is_others_but_not_whose() {
        let taints = taints();
        taints.add(&[row(&taints, "path /a", &["tool:read_mail"], false)]);
        assert_eq!(labels(&taints, "ann", "path /a").as_deref(), Some("tool:read_mail"));
        assert_eq!(labels(&taints, "bob", "path /a").as_deref(), Some("unknown"));
        assert_eq!(labels(&taints, "ann", "path /b"), None);
    }

    #[test]
    fn what_is_forgotten_is_unknown_until_it_is_written_anew() {
        let taints = taints();
        taints.add(&[row(&taints, "path /first", &["tool:read_mail"], false)]);
        for number in 0..TAINTS_MAX {
            taints.add(&[row(&taints, &format!("path /{number}"), &["tool:read_mail"], false)]);
        }
        assert_eq!(labels(&taints, "ann", "path /first").as_deref(), Some("unknown"));
        assert_eq!(labels(&taints, "ann", "path /never"), None, "what was never written is not unknown");
        taints.add(&[row(&taints, "path /first", &[], true)]);
        assert_eq!(labels(&taints, "ann", "path /first"), None);
    }

    #[test]
    fn a_thing_that_is_written_anew_again_and_again_stays_known() {
        let taints = taints();
        for _ in 0..2 * TAINTS_MAX {
            taints.add(&[row(&taints, "path /a", &["tool:read_mail"], true)]);
        }
        assert_eq!(labels(&taints, "ann", "path /a").as_deref(), Some("tool:read_mail"));
    }
}
