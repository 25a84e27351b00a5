//! The share of a surface in a run.

use std::sync::Arc;

use portcullis_core::event::ClosedState;
use portcullis_core::id::RunId;

use super::{Gate, LEFT};

/// A surface's share in a run. When the last one is dropped the run is closed: in good order if its surface
/// had said that it leaves, as abandoned otherwise.
#[derive(Debug)]
pub struct Attachment {
    pub(super) gate: Arc<Gate>,
    pub(super) run: RunId,
    /// Its surface keeps a connection.
    pub(super) connected: bool,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let state = {
            let mut runs = self.gate.lock();
            let Some(entry) = runs.by_id.get_mut(&self.run) else { return };
            entry.attached = entry.attached.saturating_sub(1);
            entry.connected = entry.connected.saturating_sub(usize::from(self.connected));
            let orderly = entry.leaving > 0;
            entry.leaving = entry.leaving.saturating_sub(1);
            if entry.attached > 0 {
                return;
            }
            let state = if orderly { ClosedState::Closed } else { ClosedState::Abandoned };
            entry.left = Some(state);
            state
        };
        let (gate, run) = (Arc::clone(&self.gate), self.run);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { gate.close_when_left(run, state, LEFT).await });
        }
    }
}
