//! Where values were seen first.
//!
//! The index is bounded. When it is full it takes no more, and from then on a value that it does not know is of
//! unknown origin, which counts as tainted.

use std::collections::HashMap;

use crate::values::Value;

/// Most values that are remembered.
pub const ORIGINS_MAX: usize = 65_536;

/// Where a value came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// The user, or the operator, named it.
    pub trusted: bool,
    /// A tool returned it as a whole field.
    pub field: bool,
    /// It stood inside a text that a tool returned.
    pub prose: bool,
    /// The user pointed at where it stood.
    pub pointed: bool,
    /// It came from the result of a call that an order had asked for: which.
    pub derived: Option<u32>,
    /// The event in which it was seen first.
    pub seq: u64,
}

impl Origin {
    /// Of a value that the user or the operator named.
    pub const TRUSTED: Self =
        Self { trusted: true, field: false, prose: false, pointed: false, derived: None, seq: 0 };
    /// Of a value that may have been forgotten.
    const UNKNOWN: Self =
        Self { trusted: false, field: false, prose: true, pointed: false, derived: None, seq: 0 };
}

/// The bounded index.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    known: HashMap<u64, Origin>,
    forgot: bool,
}

impl Origins {
    /// Notes a value. The first sighting says where it came from; later ones add to how it was seen.
    pub fn note(&mut self, hash: u64, origin: Origin) {
        if let Some(known) = self.known.get_mut(&hash) {
            known.trusted |= origin.trusted;
            known.field |= origin.field;
            known.prose |= origin.prose;
            known.pointed |= origin.pointed;
        } else if self.known.len() < ORIGINS_MAX {
            self.known.insert(hash, origin);
        } else {
            self.forgot = true;
        }
    }

    /// Where a value came from; `None` where it was never seen.
    pub fn of(&self, hash: u64) -> Option<Origin> {
        self.known.get(&hash).copied().or(self.forgot.then_some(Origin::UNKNOWN))
    }

    /// Whether the user or the operator named it.
    pub fn is_trusted(&self, value: &Value) -> bool {
        self.is_trusted_hash(value.hash)
    }

    /// The same of a value of which the hash is known.
    pub fn is_trusted_hash(&self, hash: u64) -> bool {
        self.known.get(&hash).is_some_and(|origin| origin.trusted)
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
    fn a_full_index_says_unknown() {
        let mut origins = Origins::default();
        assert_eq!(origins.of(7), None);
        for hash in 0..=ORIGINS_MAX as u64 {
            origins.note(hash, Origin { field: true, ..Origin::default() });
        }
        assert!(origins.of(1).is_some_and(|origin| origin.field));
        let unknown = origins.of(ORIGINS_MAX as u64 + 9).unwrap();
        assert!(unknown.prose && !unknown.trusted && !unknown.field);
    }
}
