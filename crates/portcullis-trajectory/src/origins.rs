//! Where values were seen.
//!
//! The index is bounded. When it is full it takes no more, and from then on a value that it does not know is of unknown
//! origin, which counts as tainted. What the user names is noted always: nothing that is read evicts it.

use std::collections::HashMap;

use crate::values::Value;

/// Most values that are remembered.
pub const ORIGINS_MAX: usize = 65_536;
/// Most values of the user's and the operator's that are remembered beyond [`ORIGINS_MAX`].
pub const TRUSTED_MAX: usize = 16_384;

/// Who is behind a value that a call goes to, or works with: from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// The user named it.
    User,
    /// The bundle, or the operator, names it.
    Bundle,
    /// A tool gave it as a field of its own.
    Own,
    /// It is in a source that the user handed the matter on to.
    HandedOn,
    /// It is in the text of a source that the user pointed at.
    Named,
    /// It was seen nowhere, or may have been forgotten.
    Unknown,
    /// It stands only in what others wrote.
    Others,
}

impl Provenance {
    /// All of them, from the best to the worst.
    pub const ALL: [Self; 7] =
        [Self::User, Self::Bundle, Self::Own, Self::HandedOn, Self::Named, Self::Unknown, Self::Others];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// How a value was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Origin {
    /// The bits of all its provenances.
    seen: u8,
    /// The event in which it was seen first.
    seq: u64,
}

/// The bounded index.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    known: HashMap<u64, Origin>,
    forgot: bool,
}

impl Origins {
    /// Notes a value. The best provenance counts.
    pub fn note(&mut self, hash: u64, provenance: Provenance, seq: u64) {
        let trusted = provenance <= Provenance::Bundle;
        let room = if trusted { ORIGINS_MAX + TRUSTED_MAX } else { ORIGINS_MAX };
        if let Some(known) = self.known.get_mut(&hash) {
            known.seen |= provenance.bit();
        } else if self.known.len() < room {
            self.known.insert(hash, Origin { seen: provenance.bit(), seq });
        } else {
            self.forgot = true;
        }
    }

    /// The source of a value, or `None` if it was never seen.
    pub fn of(&self, hash: u64) -> Option<Provenance> {
        let Some(known) = self.known.get(&hash) else {
            return self.forgot.then_some(Provenance::Unknown);
        };
        Provenance::ALL.into_iter().find(|provenance| known.seen & provenance.bit() != 0)
    }

    /// The event that showed a value first which stands only in what others wrote, wherever the user pointed.
    pub fn told(&self, hash: u64) -> Option<u64> {
        let told = Provenance::Named.bit() | Provenance::Others.bit();
        self.known.get(&hash).filter(|known| known.seen & !told == 0).map(|known| known.seq)
    }

    /// Whether the user or the operator named it.
    pub fn is_trusted(&self, value: &Value) -> bool {
        self.is_trusted_hash(value.hash)
    }

    /// The same of a value of which the hash is known.
    pub fn is_trusted_hash(&self, hash: u64) -> bool {
        self.of(hash).is_some_and(|provenance| provenance <= Provenance::Bundle)
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.forgot
    }

    /// Says that something was seen that is not known any more.
    pub fn forget(&mut self) {
        self.forgot = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_index_says_unknown_and_still_takes_what_the_user_names() {
        let mut origins = Origins::default();
        assert_eq!(origins.of(7), None);
        for hash in 0..=ORIGINS_MAX as u64 {
            origins.note(hash, Provenance::Own, 1);
        }
        assert_eq!(origins.of(1), Some(Provenance::Own));
        let late = ORIGINS_MAX as u64 + 9;
        assert_eq!(origins.of(late), Some(Provenance::Unknown));
        origins.note(late, Provenance::User, 2);
        assert_eq!(origins.of(late), Some(Provenance::User));
    }
}
