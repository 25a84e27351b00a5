//! A map of bounded size that forgets the oldest entry first.

use std::collections::{BTreeMap, VecDeque};

/// Remembers the most recently inserted keys, at most as many as the caller says at each insertion.
#[derive(Debug, Clone)]
pub(crate) struct Recent<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    /// Keys in order of insertion, with the stamp of the insertion. An entry that was removed or inserted again
    /// leaves a stale pair behind, which is dropped when it comes to the front.
    order: VecDeque<(u64, K)>,
    stamp: u64,
}

#[derive(Debug, Clone)]
struct Entry<V> {
    value: V,
    stamp: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), order: VecDeque::new(), stamp: 0 }
    }
}

impl<K: Ord + Copy, V> Recent<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Inserts or replaces; forgets the oldest keys while there are more than `max`. Amortised O(log max).
    pub(crate) fn insert(&mut self, key: K, value: V, max: usize) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.value = value;
            return;
        }
        self.stamp += 1;
        self.entries.insert(key, Entry { value, stamp: self.stamp });
        self.order.push_back((self.stamp, key));
        while self.entries.len() > max {
            let Some((stamp, oldest)) = self.order.pop_front() else { break };
            if self.is_live(stamp, &oldest) {
                self.entries.remove(&oldest);
            }
        }
        if self.order.len() > max.saturating_mul(2) {
            let entries = &self.entries;
            self.order.retain(|(stamp, key)| entries.get(key).is_some_and(|entry| entry.stamp == *stamp));
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|entry| entry.value)
    }

    fn is_live(&self, stamp: u64, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.stamp == stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Against the obvious slow model: a list of pairs in order of insertion.
        #[test]
        fn behaves_like_a_bounded_list(steps in proptest::collection::vec((0..2_u8, 0..12_u8), 0..200)) {
            const MAX: usize = 4;
            let mut recent = Recent::default();
            let mut model: Vec<(u8, usize)> = Vec::new();
            for (number, (what, key)) in steps.into_iter().enumerate() {
                if what == 0 {
                    recent.insert(key, number, MAX);
                    match model.iter_mut().find(|(k, _)| *k == key) {
                        Some(pair) => pair.1 = number,
                        None => model.push((key, number)),
                    }
                    if model.len() > MAX {
                        model.remove(0);
                    }
                } else {
                    recent.remove(&key);
                    model.retain(|(k, _)| *k != key);
                }
                proptest::prop_assert!(recent.order.len() <= 2 * MAX);
                let mut expected = model.clone();
                expected.sort_unstable();
                let got: Vec<_> = recent.iter().map(|(k, v)| (*k, *v)).collect();
                proptest::prop_assert_eq!(got, expected);
            }
        }
    }
}
