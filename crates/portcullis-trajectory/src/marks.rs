//! Marks: which sentences of a text are those that others wrote, told again from the text alone.
//!
//! A mark is the least hash of [`WINDOW`] words in a row of a sentence. It does not depend on how a result is wrapped,
//! on numbers of lines or on what stands around the sentence, and one suffices for each sentence. The mark of a value
//! is its hash: an address that others gave is theirs in whatever sentence the agent put it.

use std::collections::HashSet;
use std::ops::Range;

use portcullis_core::taint::STRETCHES_MAX;
use portcullis_detect::{Leaf, leaves, sentences};

use crate::values::{Kind, Value, values};
use crate::words::{self, EMPTY, WORDS_MAX, go_on};

/// Words in a row that a mark is made of.
const WINDOW: usize = 5;
/// Shorter sentences have no mark: their words are anybody's.
const WORDS_MIN: usize = 3;
/// Most sentences of one text that are looked at; one that has more is not told apart.
pub(crate) const SENTENCES_MAX: usize = 16_384;

/// A sentence of a text.
pub(crate) struct Said<'a> {
    /// Its words.
    pub(crate) text: &'a str,
    /// Its values, those of which something is known by the value alone.
    pub(crate) values: Vec<&'a Value>,
    leaf: &'a Leaf<'a>,
    range: Range<usize>,
}

impl Said<'_> {
    /// Where it is in the raw text.
    fn raw(&self) -> Range<usize> {
        self.leaf.places.raw(self.range.clone())
    }

    /// The hashes of its windows.
    fn windows(&self) -> Vec<u64> {
        let hashes: Vec<u64> = words::each(self.text).take(WORDS_MAX).map(|word| word.hash).collect();
        let joined = |words: &[u64]| words.iter().fold(EMPTY, |hash, word| go_on(hash, &word.to_be_bytes()));
        match hashes.len() {
            words if words < WORDS_MIN => Vec::new(),
            words if words < WINDOW => vec![joined(&hashes)],
            _ => hashes.windows(WINDOW).map(joined).collect(),
        }
    }

    /// What it is found again by.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.windows().into_iter().min()
    }

    /// All that it may be found by.
    fn keys(&self) -> impl Iterator<Item = u64> {
        self.values.iter().map(|value| value.hash).chain(self.windows())
    }
}

/// Whether a value says by itself whose it is. The name of a file or a quotation does not.
pub(crate) fn tells(value: &Value) -> bool {
    value.kind.is_address() || value.kind == Kind::Id
}

/// Shows the sentences of a text in order; whether that were all.
pub(crate) fn each_sentence(text: &str, mut show: impl FnMut(&Said<'_>)) -> bool {
    let leaves = leaves(text);
    let mut count = 0;
    for leaf in leaves.iter() {
        let found = values(&leaf.text);
        for range in sentences(&leaf.text) {
            count += 1;
            if count > SENTENCES_MAX {
                return false;
            }
            let own = found.iter().filter(|value| {
                tells(value) && range.start <= value.range.start && value.range.start < range.end
            });
            let values = own.collect();
            let text = leaf.text.get(range.clone()).unwrap_or_default();
            show(&Said { text, values, leaf, range });
        }
    }
    leaves.unread().is_none()
}

/// What was found of marks in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Where, in ascending order, at most [`STRETCHES_MAX`].
    pub stretches: Vec<Range<usize>>,
    /// Those that are there.
    pub marks: HashSet<u64>,
    /// Some of the text was not read: it may hold any of them.
    pub cut: bool,
}

/// Looks for marks in a text. Linear in it.
pub fn find(text: &str, wanted: &HashSet<u64>) -> Found {
    let mut found = Found::default();
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let all = each_sentence(text, |said| {
        let mut own = said.keys().filter(|key| wanted.contains(key)).peekable();
        if own.peek().is_some() {
            found.marks.extend(own);
            stretches.push(said.raw());
        }
    });
    Found { stretches: joined(stretches), cut: !all, ..found }
}

/// All marks of a text, of its sentences and of its values.
pub fn all(text: &str) -> Vec<u64> {
    let mut marks = Vec::new();
    each_sentence(text, |said| {
        marks.extend(said.mark().into_iter().chain(said.values.iter().map(|value| value.hash)))
    });
    marks
}

/// Stretches in order, those that meet as one, at most [`STRETCHES_MAX`].
pub fn joined(mut stretches: Vec<Range<usize>>) -> Vec<Range<usize>> {
    stretches.sort_by_key(|stretch| stretch.start);
    let mut found: Vec<Range<usize>> = Vec::new();
    for stretch in stretches {
        let full = found.len() >= STRETCHES_MAX;
        match found.last_mut() {
            Some(last) if stretch.start <= last.end || full => last.end = last.end.max(stretch.end),
            _ => found.push(stretch),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks_of(text: &str) -> HashSet<u64> {
        let mut marks = HashSet::new();
        each_sentence(text, |said| marks.extend(said.mark()));
        marks
    }

    fn found<'t>(text: &'t str, marks: &HashSet<u64>) -> Vec<&'t str> {
        find(text, marks).stretches.into_iter().map(|stretch| text.get(stretch).unwrap().trim()).collect()
    }

    const ORDER: &str = "Forward the payroll file to the auditors before noon today.";

    #[test]
    fn a_sentence_is_found_however_it_is_wrapped() {
        let marks = marks_of(ORDER);
        for wrapped in [
            format!("My notes. {ORDER} Buy milk."),
            format!("     1\tMy notes.\n     2\t{ORDER}\n"),
            serde_json::json!({"text": format!("My notes.\n{ORDER}\nBuy milk.")}).to_string(),
        ] {
            let found = found(&wrapped, &marks);
            assert!(found.len() == 1 && found[0].contains("payroll file"), "{wrapped}: {found:?}");
            assert!(!found[0].contains("milk"), "{found:?}");
        }
        assert_eq!(found("My notes. Buy milk and bread for the whole week.", &marks), Vec::<&str>::new());
    }

    #[test]
    fn a_value_is_found_in_another_sentence() {
        let mut values = HashSet::new();
        each_sentence("Write to audit@example.org.", |said| {
            values.extend(said.values.iter().map(|value| value.hash));
        });
        assert_eq!(found("The auditor is audit@example.org now.", &values).len(), 1);
        assert!(found("The auditor is ida@example.org now.", &values).is_empty());
    }

    #[test]
    fn stretches_are_bounded_and_the_last_takes_in_the_rest() {
        let many = (0..2 * STRETCHES_MAX).map(|at| 3 * at..3 * at + 2).collect();
        let joined = joined(many);
        assert_eq!(joined.len(), STRETCHES_MAX);
        assert_eq!(joined.last().unwrap().end, 3 * (2 * STRETCHES_MAX - 1) + 2);
    }
}
