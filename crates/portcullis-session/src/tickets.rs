//! Profiles that wait for who runs an action under them.
//!
//! The permit of an action that runs contained has a ticket. The surface hands it to the process that runs the action,
//! which takes the profile here with it, once. What was taken was begun; what was not taken when the outcome is told was
//! not run as it was permitted.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use portcullis_core::id::{ActionId, RunId};
use portcullis_core::profile::Profile;

use crate::engine::{Contain, Ticket};

/// Profiles that wait at once; the oldest is forgotten then, and what has its ticket does not run.
const WAITING_MAX: usize = 4_096;

/// An action that runs contained now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its run.
    pub run: RunId,
    /// The action.
    pub action: ActionId,
    /// The profile.
    pub profile: Profile,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    taken: Taken,
}

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<VecDeque<Waiting>>);

impl Tickets {
    /// Keeps a profile for who has its ticket.
    pub(crate) fn keep(&self, run: RunId, action: ActionId, contain: &Contain) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        let taken = Taken { run, action, profile: contain.profile.clone() };
        waiting.push_back(Waiting { ticket: contain.ticket, taken });
    }

    /// Takes the profile of a ticket: `None` if it is none, was taken, or is of a run that `may` refuses.
    pub(crate) fn take(&self, ticket: Ticket, may: impl FnOnce(RunId) -> bool) -> Option<Taken> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().position(|waiting| waiting.ticket == ticket)?;
        if !may(waiting.get(at)?.taken.run) {
            return None;
        }
        waiting.remove(at).map(|waiting| waiting.taken)
    }

    /// Whether the profile of an action was never taken. It cannot be from now on.
    pub(crate) fn give_up(&self, run: RunId, action: ActionId) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = waiting.len();
        waiting.retain(|waiting| waiting.taken.run != run || waiting.taken.action != action);
        waiting.len() < before
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::bundle::built_in_profile;

    use super::*;

    fn contain(number: u8) -> Contain {
        let ticket = Ticket::from_text(&format!("{number:02x}").repeat(32)).unwrap();
        Contain { profile: built_in_profile("project").unwrap(), ticket }
    }

    #[test]
    fn a_ticket_is_good_once_and_for_its_run() {
        let tickets = Tickets::default();
        let (run, action) = (RunId::from_bytes([1; 16]), ActionId::from_bytes([2; 16]));
        tickets.keep(run, action, &contain(1));
        assert_eq!(tickets.take(contain(2).ticket, |_| true), None);
        assert_eq!(tickets.take(contain(1).ticket, |_| false), None);
        assert_eq!(tickets.take(contain(1).ticket, |of| of == run).unwrap().action, action);
        assert_eq!(tickets.take(contain(1).ticket, |_| true), None);
        assert!(!tickets.give_up(run, action));
    }

    #[test]
    fn what_was_not_taken_is_known_and_cannot_be_taken_later() {
        let tickets = Tickets::default();
        let (run, action) = (RunId::from_bytes([1; 16]), ActionId::from_bytes([2; 16]));
        tickets.keep(run, action, &contain(1));
        assert!(!tickets.give_up(run, ActionId::from_bytes([3; 16])));
        assert!(tickets.give_up(run, action));
        assert_eq!(tickets.take(contain(1).ticket, |_| true), None);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let tickets = Tickets::default();
        let run = RunId::from_bytes([1; 16]);
        tickets.keep(run, ActionId::from_bytes([9; 16]), &contain(1));
        for _ in 0..WAITING_MAX {
            tickets.keep(run, ActionId::from_bytes([2; 16]), &contain(2));
        }
        assert_eq!(tickets.take(contain(1).ticket, |_| true), None);
    }
}
