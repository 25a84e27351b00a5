//! What differs between marks and sequences.

use super::{Direction, Found};
use crate::sequence::Sequences;

impl Found {
    /// A sequence can only make verdicts stricter. What a change of one means depends on the calls.
    pub(super) fn sequences(&mut self, old: &Sequences, new: &Sequences) {
        for rule in old.rules() {
            let part = format!("sequence `{}`", rule.id);
            match new.rules().iter().find(|other| other.id == rule.id) {
                Some(other) => self.value(part, rule, other),
                None => self.push(part, "there".into(), "gone".into(), Direction::Loosened),
            }
        }
        let is_new = |id: &str| !old.rules().iter().any(|other| other.id == id);
        for rule in new.rules().iter().filter(|rule| is_new(&rule.id)) {
            let part = format!("sequence `{}`", rule.id);
            self.push(part, "none".into(), "added".into(), Direction::Tightened);
        }
        let marks =
            |all: &Sequences| all.marks().iter().map(|mark| (mark.name.clone(), mark.clone())).collect();
        // Nothing can name a mark that is not there.
        self.named("mark ", &marks(old), &marks(new), Direction::Changed);
    }
}
