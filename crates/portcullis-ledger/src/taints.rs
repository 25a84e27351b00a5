//! Taints as a store keeps them: one row for each thing that an event says was written, until it was written anew or
//! there are too many.
//!
//! What has to go is not forgotten as if it had never been: [`Forgotten`] still says so, in a size that does not grow.

use std::collections::BTreeMap;

use portcullis_core::id::{Commitment, Digest};
use portcullis_core::label::LabelSet;
use portcullis_core::taint::Marks;

/// Most taints of one store.
pub const TAINTS_MAX: usize = 16_384;
/// Most taints of one principal.
pub const TAINTS_OF_PRINCIPAL_MAX: usize = 4_096;
/// Most taints of one thing by one principal.
pub const TAINTS_OF_THING_MAX: usize = 64;

/// What an event says was written into a thing: a row of the index, taken from payload `taint` of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintRow {
    /// The thing, by [`thing_digest`](portcullis_core::taint::thing_digest) with the key of the store.
    pub thing: Digest,
    /// The principal of the run.
    pub principal: String,
    /// The event.
    pub seq: u64,
    /// The payload that says so.
    pub commitment: Commitment,
    /// The sources of what others wrote in it; none of them where nothing of it is theirs.
    pub labels: LabelSet,
    /// Which of its words are theirs, or `None` for all of them.
    pub marks: Option<Marks>,
    /// What was known of the thing before does not count any more.
    pub replaces: bool,
}

/// All taints of a store.
#[derive(Debug, Clone, Default)]
pub struct StoredTaints {
    /// The key of the store.
    pub key: Option<Digest>,
    /// The rows, the oldest first.
    pub rows: Vec<TaintRow>,
    /// The things of rows that had to go.
    pub forgotten: Forgotten,
}

/// A set of things that only grows: a Bloom filter in blocks (Putze, Sanders, Singler 2007) of 1 MiB in all. It says of
/// no thing in it that it is not. Of others it says that they are in it, once it holds 400,000, of 1 in 4,000.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    blocks: BTreeMap<u8, Vec<u8>>,
}

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 4_096;
/// Bits of a block that a thing sets.
const PROBES: usize = 8;

impl Forgotten {
    /// Adds a thing; returns its block.
    pub fn insert(&mut self, thing: &Digest) -> u8 {
        let (block, probes) = places(thing);
        let bytes = self.blocks.entry(block).or_insert_with(|| vec![0; BLOCK_BYTES]);
        for (byte, bit) in probes {
            if let Some(byte) = bytes.get_mut(byte) {
                *byte |= bit;
            }
        }
        block
    }

    /// Whether a thing may be in it.
    pub fn has(&self, thing: &Digest) -> bool {
        let (block, mut probes) = places(thing);
        self.blocks.get(&block).is_some_and(|bytes| {
            probes.all(|(byte, bit)| bytes.get(byte).is_some_and(|byte| byte & bit != 0))
        })
    }

    /// The bytes of a block, or `None` if nothing is in it.
    pub(crate) fn block(&self, block: u8) -> Option<&[u8]> {
        self.blocks.get(&block).map(Vec::as_slice)
    }

    /// Puts a stored block back.
    pub(crate) fn restore(&mut self, block: u8, bytes: Vec<u8>) {
        self.blocks.insert(block, bytes);
    }
}

/// Where the bits of a thing are: its block, and byte and bit of each probe.
fn places(thing: &Digest) -> (u8, impl Iterator<Item = (usize, u8)>) {
    let bytes = *thing.as_bytes();
    let probe = move |at: usize| {
        let pair =
            [bytes.get(1 + 2 * at), bytes.get(2 + 2 * at)].map(|byte| byte.copied().unwrap_or_default());
        let bit = usize::from(u16::from_be_bytes(pair)) % (8 * BLOCK_BYTES);
        (bit / 8, 1 << (bit % 8))
    };
    (bytes.first().copied().unwrap_or_default(), (0..PROBES).map(probe))
}

#[cfg(test)]
mod tests {
    use portcullis_core::taint::thing_digest;

    use super::*;

    #[test]
    fn what_was_forgotten_is_known_to_be_and_little_else_is() {
        let key = Digest::from_bytes([1; 32]);
        let thing = |number: u32| thing_digest(&key, &format!("path /{number}"));
        let mut forgotten = Forgotten::default();
        assert!(!forgotten.has(&thing(0)));
        for number in 0..20_000 {
            forgotten.insert(&thing(number));
        }
        assert!((0..20_000).all(|number| forgotten.has(&thing(number))));
        let others = (20_000..40_000).filter(|number| forgotten.has(&thing(*number))).count();
        assert!(others < 20, "{others} of 20,000 things that were never written");
    }
}
