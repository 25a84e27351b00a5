//! How stored runs began: whose they are, and what governs them.

use portcullis_core::event::{Event, EventBody, RunOpened};
use portcullis_core::id::RunId;

use super::Gate;
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

    /// The same for whoever asks on behalf of a principal. A run of another principal is unknown to it.
    pub(super) fn opening_for(&self, id: RunId, principal: &str) -> Result<RunOpened, SessionError> {
        let opened = self.opening_of(id)?;
        if opened.principal.id == principal {
            Ok(opened)
        } else {
            Err(SessionError::UnknownRun(id.to_string()))
        }
    }
}
