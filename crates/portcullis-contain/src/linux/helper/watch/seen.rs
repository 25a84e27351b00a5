//! What was seen, counted: the same thing twice is one line.

use std::collections::HashMap;
use std::hash::Hash;

use portcullis_core::observed::{AttemptWhat, Limit, Seen};

use crate::linux::helper::report::Reporter;
use crate::linux::order::Report;

/// Most programs that are told apart: a build starts dozens.
const PROGRAMS_MAX: usize = 1024;
/// Most refused things that are told apart.
const ATTEMPTS_MAX: usize = 512;
/// Most things that were done and are told apart, where these are asked for.
const DONE_MAX: usize = 16_384;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Sights {
    programs: Counted<String>,
    refused: Counted<(AttemptWhat, String)>,
    done: Counted<(AttemptWhat, String)>,
    /// Something happened that could not be looked at.
    missed: bool,
    /// Memory was asked for that was not given.
    lacks_memory: bool,
}

/// Things with their numbers, in the order of the first.
#[derive(Debug)]
struct Counted<T> {
    places: HashMap<T, usize>,
    all: Vec<(T, u64)>,
    is_full: bool,
}

impl<T> Default for Counted<T> {
    fn default() -> Self {
        Self { places: HashMap::new(), all: Vec::new(), is_full: false }
    }
}

impl<T: Hash + Eq + Clone> Counted<T> {
    fn add(&mut self, what: T, most: usize) {
        if let Some((_, times)) = self.places.get(&what).and_then(|place| self.all.get_mut(*place)) {
            *times = times.saturating_add(1);
        } else if self.all.len() < most {
            self.places.insert(what.clone(), self.all.len());
            self.all.push((what, 1));
        } else {
            self.is_full = true;
        }
    }
}

impl Sights {
    /// A program was started.
    pub(super) fn program(&mut self, path: String) {
        self.programs.add(path, PROGRAMS_MAX);
    }

    /// Something was refused.
    pub(super) fn refused(&mut self, what: AttemptWhat, target: String) {
        self.refused.add((what, target), ATTEMPTS_MAX);
    }

    /// Something was done.
    pub(super) fn done(&mut self, what: AttemptWhat, target: String) {
        self.done.add((what, target), DONE_MAX);
    }

    /// Something could not be looked at.
    pub(super) fn missed(&mut self) {
        self.missed = true;
    }

    /// Memory was not given.
    pub(super) fn lacks_memory(&mut self) {
        self.lacks_memory = true;
    }

    /// Tells all of it. `everything`: whether reads were looked at too.
    pub(super) fn tell(self, everything: bool, reporter: &mut Reporter) {
        let all_if = |all: bool| if all { Seen::All } else { Seen::Some };
        let programs = all_if(!self.missed && !self.programs.is_full);
        let refused = all_if(everything && !self.missed && !self.refused.is_full);
        for (path, times) in self.programs.all {
            reporter.tell(&Report::Program { path, times });
        }
        for ((what, target), times) in self.refused.all {
            reporter.tell(&Report::Refused { what, target, times });
        }
        for ((what, target), times) in self.done.all {
            reporter.tell(&Report::Did { what, target, times });
        }
        if self.lacks_memory {
            reporter.tell(&Report::Reached(Limit::Memory));
        }
        reporter.tell(&Report::Watched { programs, refused });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_up_to_a_number_and_beyond_it_that_is_said() {
        let mut counted = Counted::default();
        for name in ["a", "b", "a", "c"] {
            counted.add(name, 2);
        }
        assert_eq!((counted.all, counted.is_full), (vec![("a", 2), ("b", 1)], true));
    }
}
