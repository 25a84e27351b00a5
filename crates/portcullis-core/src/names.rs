//! Maps by the names of a bundle's tools and arguments, which are looked up many times a call.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by name. Only for maps that are made once of a bundle or of a server's listing, which are bounded: FNV-1a is
/// quick for short names, and who chooses the names can make them collide.
pub type ByName<V> = HashMap<String, V, BuildHasherDefault<NameHasher>>;

/// FNV-1a, 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, add);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let map: ByName<usize> = (0..1_000).map(|number| (format!("tool_{number}"), number)).collect();
        assert!((0..1_000).all(|number| map.get(&format!("tool_{number}")) == Some(&number)));
        assert_eq!(map.get("tool_1000"), None);
    }
}
