//! What is known of a tool's answer besides its text.

use std::collections::HashSet;
use std::ops::Range;

use portcullis_core::taint::Tainted;

use crate::numbers::numbers;
use crate::seen::Seen;
use crate::values::{normal_hash, values};

/// What is known of a tool's answer besides its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer<'a> {
    /// The bundle names the tool as a directory: its fields say who someone is.
    pub directory: bool,
    /// What of it others had written into the thing that was read, with the text.
    pub tainted: Option<(&'a Tainted, &'a str)>,
}

impl Answer<'_> {
    /// Whether others had written what stands in a place of the text, whoever it is that carries it now.
    pub(crate) fn is_tainted(&self, place: &Range<usize>) -> bool {
        self.tainted.is_some_and(|(tainted, _)| tainted.meets(place))
    }

    /// The values that stand only in what others had written.
    pub(crate) fn planted(&self, seen: &Seen) -> HashSet<u64> {
        let mut planted = HashSet::new();
        let Some((tainted, text)) = self.tainted else { return planted };
        for own in tainted.stretches.iter().filter_map(|stretch| text.get(stretch.clone())) {
            planted.extend(values(own).into_iter().map(|value| value.hash));
            planted.extend(numbers(own).into_iter().map(|(hash, _)| hash));
            planted.insert(normal_hash(own.trim()));
        }
        let others = seen.sentences.iter().filter(|sentence| !tainted.meets(&sentence.range));
        let elsewhere: HashSet<u64> = others.flat_map(|sentence| &sentence.keys).copied().collect();
        planted.retain(|hash| !elsewhere.contains(hash));
        planted
    }
}
