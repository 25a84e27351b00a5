//! Runs on their way: requests whose run is being opened, and is not yet among the live ones.
//!
//! Limits count them, bundles that they need are not evicted, and what happens to all live runs meanwhile reaches them
//! once they have arrived.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::id::Digest;

use super::{BUNDLES_OF_PRINCIPAL_MAX, Entry, Gate, RUNS_LIVE_MAX, RUNS_OF_PRINCIPAL_MAX, Runs};
use crate::bundles::{Bundles, Source};
use crate::error::SessionError;
use crate::run::Run;

/// A person accepted a tool as its server describes it now.
#[derive(Debug)]
pub(super) struct AcceptedTool {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) digest: Digest,
    pub(super) approver: String,
}

/// A request whose run is on its way.
#[derive(Debug)]
pub(super) struct Announced {
    principal: String,
    source: Source,
    /// It becomes one more live run.
    takes_room: bool,
    /// What was accepted since it was announced.
    accepted: Vec<Arc<AcceptedTool>>,
}

/// A request that is announced until this is dropped.
#[derive(Debug)]
pub(super) struct Arrival<'a> {
    gate: &'a Gate,
    number: u64,
    principal: String,
    source: Source,
}

impl Gate {
    /// Announces a request. Refuses one more bundle to a principal whose runs use many: a bundle in use cannot be
    /// evicted, so one principal could otherwise take the room of all others.
    pub(super) fn announce(&self, principal: &str, source: Source) -> Result<Arrival<'_>, SessionError> {
        let mut runs = self.lock();
        if !self.bundles.is_default(&source) {
            let used = runs.sources_of(principal, &self.bundles);
            if used.len() >= BUNDLES_OF_PRINCIPAL_MAX && !used.contains(&source) {
                let (principal, limit) = (principal.to_owned(), BUNDLES_OF_PRINCIPAL_MAX);
                return Err(SessionError::TooManyBundles { principal, limit });
            }
        }
        let number = runs.announced_before;
        runs.announced_before += 1;
        let principal = principal.to_owned();
        let announced = Announced {
            principal: principal.clone(),
            source: source.clone(),
            takes_room: false,
            accepted: Vec::new(),
        };
        runs.announced.insert(number, announced);
        Ok(Arrival { gate: self, number, principal, source })
    }

    /// Where the bundles come from that live runs use, and those on their way.
    pub(super) fn sources(&self) -> BTreeSet<Source> {
        let runs = self.lock();
        let live = runs.by_id.values().map(|entry| entry.source.clone());
        live.chain(runs.announced.values().map(|announced| announced.source.clone())).collect()
    }

    /// The live runs that are to learn of a tool that was accepted; those on their way learn of it when they arrive.
    pub(super) fn live_and_announced(&self, accepted: AcceptedTool) -> Vec<Arc<Run>> {
        let accepted = Arc::new(accepted);
        let mut runs = self.lock();
        for announced in runs.announced.values_mut() {
            announced.accepted.push(Arc::clone(&accepted));
        }
        runs.by_id.values().map(|entry| Arc::clone(&entry.run)).collect()
    }
}

impl Runs {
    /// The bundles besides the default one that a principal's runs use.
    fn sources_of(&self, principal: &str, bundles: &Bundles) -> BTreeSet<Source> {
        let live = self.by_id.values().filter(|entry| entry.run.principal().id == principal);
        let announced = self.announced.values().filter(|announced| announced.principal == principal);
        let mut used: BTreeSet<Source> = live.map(|entry| entry.source.clone()).collect();
        used.extend(announced.map(|announced| announced.source.clone()));
        used.retain(|source| !bundles.is_default(source));
        used
    }
}

impl Arrival<'_> {
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Takes room for one more live run, if there is any.
    pub(super) fn take_room(&self) -> Result<(), SessionError> {
        let mut runs = self.gate.lock();
        let taken = || runs.announced.values().filter(|announced| announced.takes_room);
        if runs.by_id.len() + taken().count() >= RUNS_LIVE_MAX {
            return Err(SessionError::TooManyRuns { limit: RUNS_LIVE_MAX });
        }
        let own = taken().filter(|announced| announced.principal == self.principal).count();
        let live = runs.by_principal.get(&self.principal).copied().unwrap_or_default();
        if live + own >= RUNS_OF_PRINCIPAL_MAX {
            let principal = self.principal.clone();
            return Err(SessionError::TooManyOfPrincipal { principal, limit: RUNS_OF_PRINCIPAL_MAX });
        }
        if let Some(announced) = runs.announced.get_mut(&self.number) {
            announced.takes_room = true;
        }
        Ok(())
    }

    /// Puts the run among the live ones. Gives the source of its bundle, and what was accepted meanwhile.
    pub(super) fn arrive(self, entry: Entry) -> (Source, Vec<Arc<AcceptedTool>>) {
        let mut runs = self.gate.lock();
        let run = &entry.run;
        if let Some(session) = &entry.session {
            runs.by_session.insert((run.principal().id.clone(), session.clone()), run.id());
        }
        *runs.by_principal.entry(run.principal().id.clone()).or_default() += 1;
        let announced = runs.announced.remove(&self.number);
        let entry = Entry { source: self.source.clone(), last_used: Instant::now(), ..entry };
        runs.by_id.insert(entry.run.id(), entry);
        drop(runs);
        (self.source.clone(), announced.map(|announced| announced.accepted).unwrap_or_default())
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.gate.lock().announced.remove(&self.number);
    }
}
