//! Taints: what a store remembers of things that a call wrote with the words of others, so that these are still known
//! as theirs when a later run reads them.
//!
//! A *thing* is what outlives a run: a file, a table, a record behind a server. Which of its words are whose is told by
//! *marks*, hashes of a few words in a row: one for each sentence that others wrote, found again wherever it stands in
//! the thing. A sentence that was changed in the meantime has no mark any more.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::{Digest, DigestBuilder};
use crate::label::{Label, LabelSet};

/// Most marks of one taint; a thing that would have more is tainted as a whole.
pub const MARKS_MAX: usize = 256;
/// Most things that one action reads or writes as far as taints go.
pub const THINGS_MAX: usize = 64;
/// Most stretches of one observation that are told apart; the last one takes in what is over.
pub const STRETCHES_MAX: usize = 256;
/// Digits of a mark.
const MARK_DIGITS: usize = 16;

/// Hashes of a few words in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Vec<u64>);

impl Marks {
    /// These marks, in order and once each, or `None` if they are more than [`MARKS_MAX`].
    pub fn new(mut marks: Vec<u64>) -> Option<Self> {
        marks.sort_unstable();
        marks.dedup();
        (marks.len() <= MARKS_MAX).then_some(Self(marks))
    }

    /// These and others, or `None` if they are too many.
    pub fn and(mut self, others: &Self) -> Option<Self> {
        self.0.extend(&others.0);
        Self::new(self.0)
    }

    /// The marks in ascending order.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }
}

impl Serialize for Marks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|mark| format!("{mark:0MARK_DIGITS$x}")))
    }
}

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = Vec::<String>::deserialize(deserializer)?;
        let marks: Result<Vec<u64>, _> = digits.iter().map(|mark| u64::from_str_radix(mark, 16)).collect();
        let marks = marks.map_err(serde::de::Error::custom)?;
        Self::new(marks).ok_or_else(|| serde::de::Error::custom(format!("more than {MARKS_MAX} marks")))
    }
}

/// What an action put into a thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// The thing, such as `path /home/ann/notes.md`.
    pub thing: String,
    /// The sources of what others wrote in it; none of them where nothing of it is theirs.
    pub labels: LabelSet,
    /// Which of its words are theirs, or `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// The thing was written anew: what was known of it before does not count any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
}

impl Taint {
    /// Of a thing of which it is not known any more who wrote what in it.
    pub fn unknown(thing: String) -> Self {
        let mut labels = LabelSet::default();
        labels.insert(Label::Unknown);
        Self { thing, labels, marks: None, replaces: false }
    }

    /// Whether nothing of it is others'.
    pub fn is_clean(&self) -> bool {
        self.labels.is_empty()
    }
}

/// What a thing is known by in a store: a digest with the key of the store, since a name can be guessed.
pub fn thing_digest(key: &Digest, thing: &str) -> Digest {
    DigestBuilder::new("portcullis/thing/v1").part(key.as_bytes()).part(thing.as_bytes()).finish()
}

/// What of an observation others had written into the thing that was read, as the store knew it then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tainted {
    /// Their labels.
    pub labels: LabelSet,
    /// Where it is in the raw text, in ascending order and at most [`STRETCHES_MAX`].
    pub stretches: Vec<Range<usize>>,
}

impl Tainted {
    /// Whether a place in the text is in one of the stretches, wholly or in part.
    pub fn meets(&self, place: &Range<usize>) -> bool {
        let after = self.stretches.partition_point(|stretch| stretch.end <= place.start);
        self.stretches.get(after).is_some_and(|stretch| stretch.start < place.end)
    }
}

impl fmt::Display for Tainted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, label) in self.labels.iter().enumerate() {
            write!(f, "{}{label}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written_and_bounded() {
        let marks = Marks::new(vec![7, u64::MAX, 7]).unwrap();
        let json = serde_json::to_string(&marks).unwrap();
        assert_eq!(json, r#"["0000000000000007","ffffffffffffffff"]"#);
        assert_eq!(serde_json::from_str::<Marks>(&json).unwrap(), marks);
        assert!(Marks::new((0..=MARKS_MAX as u64).collect()).is_none());
        assert!(serde_json::from_str::<Marks>(r#"["x"]"#).is_err());
    }

    #[test]
    fn a_place_meets_the_stretch_that_it_overlaps() {
        let tainted = Tainted { stretches: vec![2..5, 9..12], ..Tainted::default() };
        let meets = |place: Range<usize>| tainted.meets(&place);
        assert!(meets(0..3) && meets(4..6) && meets(5..10) && meets(11..90));
        assert!(!meets(0..2) && !meets(5..9) && !meets(12..20));
    }

    #[test]
    fn a_thing_is_known_by_another_digest_in_another_store() {
        let [one, two] = [1, 2].map(|byte| thing_digest(&Digest::from_bytes([byte; 32]), "path /a"));
        assert_ne!(one, two);
        assert_ne!(one, thing_digest(&Digest::from_bytes([1; 32]), "path /b"));
    }
}
