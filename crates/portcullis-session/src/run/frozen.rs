//! A live run records how the freezes that are in force have it stand.

use portcullis_core::event::Control;
use portcullis_core::freeze::FreezeOrder;
use portcullis_core::id::ApprovalId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{FreezeFilter, read_aside};

use super::{Live, Run};
use crate::error::SessionError;
use crate::freezes::Due;

impl Run {
    /// Records what changed in the freezes that cover the run, and wakes the calls that wait. Once this answers, every
    /// permit that was on its way before is issued.
    pub(crate) async fn follow_freezes(&self) -> Result<(), SessionError> {
        let mut live = self.live.lock().await;
        if live.check_open().is_ok() && live.follow_freezes().await? {
            drop(live);
            self.changed.notify_waiters();
        }
        Ok(())
    }

    /// Whether a call still waits for a person: see [`Engine::waits`](crate::engine::Engine::waits).
    pub(crate) async fn waits(&self, approval: ApprovalId) -> bool {
        self.live.lock().await.engine.waits(approval)
    }
}

impl Live {
    /// Records what changed in the freezes that cover the run; whether that was anything. Costs one look at a flag while
    /// nothing is frozen.
    pub(super) async fn follow_freezes(&mut self) -> Result<bool, SessionError> {
        let mut changed = false;
        loop {
            let freeze = self.engine.state().freeze();
            let (stands, since) = (freeze.map(|freeze| freeze.stops), freeze.map(|freeze| freeze.since));
            let Some(due) = self.freezes.due(self.engine.run(), self.engine.principal(), stands) else {
                return Ok(changed);
            };
            let (control, order) = match due {
                Due::Freeze(order) => (Control::Freeze, order),
                Due::ReleaseReads(order) => (Control::ReleaseReads, order),
                Due::Release(Some(order)) => (Control::Release, order),
                Due::Release(None) => match self.released_since(since.unwrap_or_default()).await? {
                    Some(order) => (Control::Release, order),
                    // Nobody is known to have released it, so it stays as it is.
                    None => return Ok(changed),
                },
            };
            let batch = self.engine.control(&mut self.env, control, &order.by, order.note);
            self.commit(batch).await?;
            changed = true;
        }
    }

    /// The latest release of a freeze that covered the run, by the word of the store.
    async fn released_since(&self, since: Timestamp) -> Result<Option<FreezeOrder>, SessionError> {
        let filter = FreezeFilter::LastReleaseOf {
            run: self.engine.run(),
            principal: self.engine.principal().to_owned(),
            since,
        };
        let last = read_aside(&self.ledger, move |reader| reader.freezes(&filter)).await?;
        Ok(last.into_iter().find_map(|freeze| freeze.released))
    }
}
