//! Limits on long work, so that one caller cannot use all the capacity.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::principal::CredentialKind;
use portcullis_session::credentials::Identity;

/// Pieces of work at once. Approvers have room of their own, which agents cannot fill.
#[derive(Debug)]
pub(super) struct Shares {
    /// Of one agent principal.
    each: usize,
    /// Of all agents, and as many again of all approvers.
    together: usize,
    taken: Mutex<BTreeMap<(bool, String), usize>>,
}

impl Shares {
    pub(super) fn new(each: usize, together: usize) -> Arc<Self> {
        Arc::new(Self { each, together, taken: Mutex::default() })
    }

    /// A share, given back when it is dropped, or `None` if the caller, or all of its kind, have theirs.
    pub(super) fn take(self: &Arc<Self>, of: &Identity) -> Option<Share> {
        let decides = of.kind == CredentialKind::Approver;
        let holder = (decides, of.principal.id.clone());
        let mut taken = self.lock();
        let together: usize =
            taken.iter().filter(|((kind, _), _)| *kind == decides).map(|(_, count)| count).sum();
        let own = taken.get(&holder).copied().unwrap_or_default();
        if together >= self.together || (!decides && own >= self.each) {
            return None;
        }
        taken.insert(holder.clone(), own + 1);
        Some(Share { shares: Arc::clone(self), holder })
    }

    /// The table is whole at any time, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(bool, String), usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that is under way.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    holder: (bool, String),
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        match taken.get_mut(&self.holder) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.holder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::principal::Principal;

    use super::*;

    #[test]
    fn nobody_takes_the_room_of_others() {
        let shares = Shares::new(2, 3);
        let of = |kind, name: &str| Identity {
            kind,
            principal: Principal::named(name),
            policy: None,
            of_this_machine: true,
        };
        let take = |kind, name| shares.take(&of(kind, name));
        let mut held: Vec<Option<Share>> = (0..2).map(|_| take(CredentialKind::Agent, "a")).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(take(CredentialKind::Agent, "a").is_none(), "its share");
        held.push(take(CredentialKind::Agent, "b"));
        assert!(held[2].is_some() && take(CredentialKind::Agent, "c").is_none(), "that of all agents");
        // Even under the same name.
        let approvers: Vec<Option<Share>> = (0..3).map(|_| take(CredentialKind::Approver, "a")).collect();
        assert!(approvers.iter().all(Option::is_some) && take(CredentialKind::Approver, "a").is_none());
        drop(held);
        assert!(take(CredentialKind::Agent, "a").is_some());
    }
}
