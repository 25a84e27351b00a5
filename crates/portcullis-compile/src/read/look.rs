//! Looking for phrases in a clause, and keeping account of which words were placed.

use std::ops::Range;

use super::words::{Clause, Word};

/// A clause that is being read.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// Its words.
    pub(super) words: Vec<Word>,
    /// Which of them something was made of.
    used: Vec<bool>,
}

impl Look {
    pub(super) fn of(clause: &Clause) -> Self {
        Self { words: clause.words.clone(), used: vec![false; clause.words.len()] }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at a place in lower case; empty beyond the end.
    pub(super) fn text(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    pub(super) fn sense(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.sense.as_str())
    }

    pub(super) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words.contains(&self.text(at))
    }

    pub(super) fn is_used(&self, at: usize) -> bool {
        self.used.get(at).copied().unwrap_or(true)
    }

    pub(super) fn take(&mut self, range: Range<usize>) {
        for used in self.used.iter_mut().take(range.end).skip(range.start) {
            *used = true;
        }
    }

    /// The place of words in the request, in bytes.
    pub(super) fn span(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.words.get(range.start).map_or(0, |word| word.span.start);
        let last = range.end.saturating_sub(1).max(range.start);
        start..self.words.get(last).map_or(start, |word| word.span.end.max(start))
    }

    /// Whether a phrase begins at a place, and where it ends. A phrase has words, `a|b` for either, and `a?` for one that
    /// may be missing.
    pub(super) fn phrase_at(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut place = at;
        for part in phrase.split(' ') {
            let (part, optional) = part.strip_suffix('?').map_or((part, false), |part| (part, true));
            if part.split('|').any(|word| word == self.text(place)) && place < self.len() {
                place += 1;
            } else if !optional {
                return None;
            }
        }
        (place > at).then_some(place)
    }

    /// The first place where one of these phrases stands.
    pub(super) fn find(&self, phrases: &[&str]) -> Option<Range<usize>> {
        self.find_in(0..self.len(), phrases)
    }

    pub(super) fn find_in(&self, range: Range<usize>, phrases: &[&str]) -> Option<Range<usize>> {
        range.clone().find_map(|at| {
            let ends = phrases.iter().filter_map(|phrase| self.phrase_at(at, phrase));
            ends.filter(|end| *end <= range.end).max().map(|end| at..end)
        })
    }

    /// The first place where one of these phrases stands in words that are left.
    pub(super) fn find_left(&self, phrases: &[&str]) -> Option<Range<usize>> {
        (0..self.len()).filter(|at| !self.is_used(*at)).find_map(|at| {
            let found = self.find_in(at..self.len(), phrases).filter(|found| found.start == at)?;
            found.clone().all(|at| !self.is_used(at)).then_some(found)
        })
    }

    /// Takes what another reading of the same clause took.
    pub(super) fn take_all(&mut self, other: &Self) {
        for (used, theirs) in self.used.iter_mut().zip(&other.used) {
            *used |= *theirs;
        }
    }

    /// What is left between two places.
    pub(super) fn left_in(&self, range: Range<usize>) -> Vec<usize> {
        range.filter(|at| !self.is_used(*at)).collect()
    }

    /// The words themselves.
    pub(super) fn slice(&self, range: Range<usize>) -> Vec<&Word> {
        self.words.iter().take(range.end).skip(range.start).collect()
    }
}
