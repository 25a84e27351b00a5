//! The runs that a run opened for delegated agents.

use std::collections::BTreeMap;

use crate::id::RunId;
use crate::limits::CHILDREN_MAX;

/// The runs that a run opened, at most [`CHILDREN_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Children {
    /// With the number of the last event that each is known to have ended with, or `None` while none is known.
    by_run: BTreeMap<RunId, Option<u64>>,
}

impl Children {
    /// Whether the run opened none.
    pub fn is_empty(&self) -> bool {
        self.by_run.is_empty()
    }

    /// Number of runs that were opened.
    pub fn len(&self) -> usize {
        self.by_run.len()
    }

    /// Number of those that are not known to have ended.
    pub fn open(&self) -> usize {
        self.by_run.values().filter(|ended| ended.is_none()).count()
    }

    /// Whether a run is one of them.
    pub fn contains(&self, run: RunId) -> bool {
        self.by_run.contains_key(&run)
    }

    /// Each with the number of the last event that it is known to have ended with: 0 if it never began, `None` if no end is
    /// known.
    pub fn iter(&self) -> impl Iterator<Item = (RunId, Option<u64>)> {
        self.by_run.iter().map(|(run, ended)| (*run, *ended))
    }

    pub(super) fn opened(&mut self, run: RunId) {
        if self.by_run.len() < CHILDREN_MAX {
            self.by_run.insert(run, None);
        }
    }

    /// A run that was not opened by this one stays unknown.
    pub(super) fn closed(&mut self, run: RunId, count: u64) {
        if let Some(ended) = self.by_run.get_mut(&run) {
            *ended = Some(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_and_bounded() {
        let mut children = Children::default();
        let run = |number: usize| RunId::from_bytes((number as u128).to_be_bytes());
        for number in 0..CHILDREN_MAX + 5 {
            children.opened(run(number));
        }
        assert_eq!((children.len(), children.open()), (CHILDREN_MAX, CHILDREN_MAX));
        children.closed(run(1), 9);
        children.closed(run(CHILDREN_MAX + 1), 9);
        assert_eq!((children.open(), children.contains(run(CHILDREN_MAX + 1))), (CHILDREN_MAX - 1, false));
        assert_eq!(children.iter().nth(1), Some((run(1), Some(9))));
    }
}
