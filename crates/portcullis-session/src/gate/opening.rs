//! How stored runs began: whose they are, and what governs them; and which bundles live ones use.

use std::collections::BTreeSet;

use portcullis_core::event::{Event, EventBody, RunOpened};
use portcullis_core::id::RunId;

use super::{BUNDLES_OF_PRINCIPAL_MAX, Gate, OpenRun};
use crate::bundles::Source;
use crate::error::SessionError;

impl Gate {
    /// How a stored run began. Its principal and its policy stay the same for life.
    pub(super) fn opening_of(&self, id: RunId) -> Result<RunOpened, SessionError> {
        let first = self.ledger.read(|reader| reader.events(id, 0, 1))?;
        let event = first.first().and_then(|stored| Event::from_line(&stored.line).ok());
        match event.map(|event| event.body) {
            Some(EventBody::RunOpened(opened)) => Ok(opened),
            _ => Err(SessionError::UnknownRun(id.to_string())),
        }
    }

    /// The same for anyone who asks on behalf of a principal. A run of another principal is unknown to it.
    pub(super) fn opening_for(&self, id: RunId, principal: &str) -> Result<RunOpened, SessionError> {
        let opened = self.opening_of(id)?;
        if opened.principal.id == principal {
            Ok(opened)
        } else {
            Err(SessionError::UnknownRun(id.to_string()))
        }
    }

    /// Where the bundles come from that live runs use.
    pub(super) fn sources(&self) -> BTreeSet<Source> {
        self.lock().by_id.values().map(|entry| entry.source.clone()).collect()
    }

    /// Refuses one more bundle to a principal whose live runs use many: a bundle in use cannot be evicted, so one
    /// principal could otherwise take the room of all others.
    pub(super) fn check_share_of_bundles(&self, request: &OpenRun) -> Result<(), SessionError> {
        let source = self.bundles.source(request.bundle.as_deref());
        if self.bundles.is_default(&source) {
            return Ok(());
        }
        let principal = &request.identity.principal.id;
        let runs = self.lock();
        let own = runs.by_id.values().filter(|entry| entry.run.principal().id == *principal);
        let mut used: BTreeSet<&Source> = own.map(|entry| &entry.source).collect();
        used.retain(|source| !self.bundles.is_default(source));
        if used.len() >= BUNDLES_OF_PRINCIPAL_MAX && !used.contains(&source) {
            let (principal, limit) = (principal.clone(), BUNDLES_OF_PRINCIPAL_MAX);
            return Err(SessionError::TooManyBundles { principal, limit });
        }
        Ok(())
    }
}
