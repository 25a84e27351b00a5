//! The freezes that are in force, in memory.
//!
//! A judgement reads one flag of it while nothing is frozen. A run takes from here what it has to record before its next
//! judgement: so a freeze is in force as soon as it is here, whether or not every run has recorded it yet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::freeze::{Freeze, FreezeOrder, FreezeScope, Frozen};
use portcullis_core::id::RunId;

/// Freezes that may be in force at once, besides that of all runs.
pub(crate) const FREEZES_IN_FORCE_MAX: usize = 1_000;

/// Scopes whose latest release is kept in memory.
const RELEASED_KEPT_MAX: usize = FREEZES_IN_FORCE_MAX;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Freezes {
    /// Whether there is any.
    any: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    in_force: BTreeMap<FreezeScope, InForce>,
    /// The latest release of each scope, of at most [`RELEASED_KEPT_MAX`]: those of others are in the store.
    released: BTreeMap<FreezeScope, Arc<Freeze>>,
}

/// A freeze that is in force.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub(crate) freeze: Arc<Freeze>,
    /// Whether the store has it.
    pub(crate) stored: bool,
}

/// What a run has to record to stand as the freezes say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Freeze(FreezeOrder),
    ReleaseReads(FreezeOrder),
    /// No freeze covers it any more. Who released it is in the store where it is not known here.
    Release(Option<FreezeOrder>),
}

impl Freezes {
    /// Puts a freeze in force as it stands now, in place of the one of its scope; takes it away once it is released.
    pub(crate) fn set(&self, freeze: Arc<Freeze>, stored: bool) {
        let mut known = self.lock();
        match freeze.stops() {
            Some(_) => drop(known.in_force.insert(freeze.scope.clone(), InForce { freeze, stored })),
            None => known.release(freeze),
        }
        self.any.store(!known.in_force.is_empty(), Ordering::Relaxed);
    }

    /// The freeze of this very scope.
    pub(crate) fn of(&self, scope: &FreezeScope) -> Option<InForce> {
        self.lock().in_force.get(scope).cloned()
    }

    /// All of them, ordered by scope.
    pub(crate) fn all(&self) -> Vec<Arc<Freeze>> {
        self.lock().in_force.values().map(|in_force| Arc::clone(&in_force.freeze)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().in_force.len()
    }

    /// The freeze that says how a run stands: the one that stops most, the oldest of several.
    pub(crate) fn covering(&self, run: RunId, principal: &str) -> Option<Arc<Freeze>> {
        let (scopes, known) = (scopes(run, principal), self.lock());
        let covering = scopes.iter().filter_map(|scope| known.in_force.get(scope));
        let strictest = covering.min_by_key(|one| (Reverse(one.freeze.stops()), one.freeze.frozen.at));
        strictest.map(|one| Arc::clone(&one.freeze))
    }

    /// What a run has to record that stands like this, or `None` if it stands as it should.
    pub(crate) fn due(&self, run: RunId, principal: &str, stands: Option<Frozen>) -> Option<Due> {
        if stands.is_none() && !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let covering = self.covering(run, principal);
        let wanted = covering.as_ref().and_then(|freeze| freeze.stops());
        if wanted == stands {
            return None;
        }
        let Some(freeze) = covering else { return Some(Due::Release(self.last_release(run, principal))) };
        Some(match (stands, &freeze.reads_released) {
            (Some(Frozen::Everything), Some(order)) => Due::ReleaseReads(order.clone()),
            // A run that is covered once reads are released is frozen first, so that its record has both.
            _ => Due::Freeze(freeze.frozen.clone()),
        })
    }

    /// The latest release, in this process, of a freeze that covered a run.
    fn last_release(&self, run: RunId, principal: &str) -> Option<FreezeOrder> {
        let (scopes, known) = (scopes(run, principal), self.lock());
        let released = scopes.iter().filter_map(|scope| known.released.get(scope)?.released.as_ref());
        released.max_by_key(|order| order.at).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every change is one step, so a panic elsewhere leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn release(&mut self, freeze: Arc<Freeze>) {
        self.in_force.remove(&freeze.scope);
        self.released.insert(freeze.scope.clone(), freeze);
        if self.released.len() > RELEASED_KEPT_MAX {
            let at = |freeze: &Arc<Freeze>| freeze.released.as_ref().map(|order| order.at);
            let oldest = self.released.values().min_by_key(|freeze| at(freeze));
            if let Some(scope) = oldest.map(|freeze| freeze.scope.clone()) {
                self.released.remove(&scope);
            }
        }
    }
}

/// The scopes that a run is in.
fn scopes(run: RunId, principal: &str) -> [FreezeScope; 3] {
    [FreezeScope::All, FreezeScope::Principal(principal.to_owned()), FreezeScope::Run(run)]
}

#[cfg(test)]
mod tests {
    use portcullis_core::time::Timestamp;

    use super::*;

    const RUN: RunId = RunId::from_bytes([1; 16]);

    fn order(by: &str, at: i64) -> FreezeOrder {
        FreezeOrder { at: Timestamp::from_micros(at), by: by.to_owned(), note: None }
    }

    fn frozen(scope: FreezeScope, by: &str, at: i64) -> Freeze {
        Freeze { scope, frozen: order(by, at), reads_released: None, released: None }
    }

    #[test]
    fn the_strictest_freeze_says_how_a_run_stands() {
        let freezes = Freezes::default();
        assert_eq!(freezes.due(RUN, "ida", None), None);
        let all = frozen(FreezeScope::All, "ann", 1);
        freezes.set(Arc::new(all.clone()), true);
        assert_eq!(freezes.due(RUN, "ida", None), Some(Due::Freeze(order("ann", 1))));
        assert_eq!(freezes.due(RUN, "ida", Some(Frozen::Everything)), None);

        // Reads are released of all, but the principal is frozen besides.
        let reads = Freeze { reads_released: Some(order("bob", 2)), ..all };
        freezes.set(Arc::new(frozen(FreezeScope::Principal("ida".to_owned()), "ann", 3)), true);
        freezes.set(Arc::new(reads.clone()), true);
        assert_eq!(freezes.due(RUN, "ida", Some(Frozen::Everything)), None);
        let of_other = freezes.due(RUN, "otto", Some(Frozen::Everything));
        assert_eq!(of_other, Some(Due::ReleaseReads(order("bob", 2))));
        assert_eq!(freezes.due(RUN, "otto", None), Some(Due::Freeze(order("ann", 1))));

        let released = Freeze { released: Some(order("bob", 4)), ..reads };
        freezes.set(Arc::new(released), true);
        assert_eq!(
            freezes.due(RUN, "otto", Some(Frozen::SideEffects)),
            Some(Due::Release(Some(order("bob", 4))))
        );
        assert_eq!(freezes.due(RUN, "otto", None), None);
        assert_eq!(freezes.due(RUN, "ida", None), Some(Due::Freeze(order("ann", 3))));
    }

    #[test]
    fn releases_are_kept_up_to_a_limit() {
        let freezes = Freezes::default();
        for number in 0..=RELEASED_KEPT_MAX {
            let at = i64::try_from(number).unwrap();
            let one = frozen(FreezeScope::Principal(number.to_string()), "ann", at);
            freezes.set(Arc::new(one.clone()), true);
            freezes.set(Arc::new(Freeze { released: Some(order("bob", at)), ..one }), true);
        }
        let last = |principal: &str| freezes.due(RUN, principal, Some(Frozen::Everything));
        assert_eq!(last("0"), Some(Due::Release(None)), "the store knows");
        assert_eq!(last("1"), Some(Due::Release(Some(order("bob", 1)))));
    }
}
