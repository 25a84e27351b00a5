//! Work items of a live run. Each operation is one batch, durable before it is answered. Checks run elsewhere, while the
//! run is not locked; what came of them is an operation like any other, and is refused where the item has changed.

use portcullis_core::event::Place;
use portcullis_core::fact::FactAnswer;
use portcullis_core::id::ActionId;
use portcullis_core::work::{Covers, ItemId, Operation, Party, WorkError, WorkItem};
use portcullis_guards::output::open_work::Unshown;

use super::{Live, Run};
use crate::engine::{ToCheck, WorkBy};
use crate::error::SessionError;
use crate::surface::StopAnswer;

impl Run {
    /// Does something to an item. A refusal is recorded, and then is the error.
    ///
    /// # Errors
    /// Besides those of every write: [`WorkError`].
    pub async fn work(
        &self,
        by: WorkBy,
        operation: Operation,
        cause: Option<ActionId>,
    ) -> Result<WorkItem, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        if by.party == Party::Harness
            && let Some(item) = operation.item()
        {
            live.outdate(item).await?;
        }
        let Live { engine, env, .. } = &mut *live;
        let (batch, answer) = engine.work(env, &by, operation, cause);
        live.commit(batch).await?;
        drop(live);
        self.changed.notify_waiters();
        Ok(answer?)
    }

    /// A server of the run was started here, which is where the agent works if nobody says otherwise.
    pub(crate) async fn started_in(&self, place: Place) {
        self.live.lock().await.engine.started_in(place);
    }

    /// What an item covers, read from a list of paths and tables.
    ///
    /// # Errors
    /// See [`Covers::read`].
    pub async fn covers(&self, list: &[String]) -> Result<Covers, WorkError> {
        self.live.lock().await.engine.covers(list)
    }

    /// What the agent is told when it wants to stop: see [`Engine::stopping`](crate::engine::Engine::stopping).
    ///
    /// # Errors
    /// Those of every write.
    pub async fn stopping(&self) -> Result<StopAnswer, SessionError> {
        let asked = {
            let live = self.live.lock().await;
            live.check_open()?;
            live.engine.needs_of_stopping(&self.sources)
        };
        let facts = self.sources.gather(self.id, &self.principal.id, asked).await;
        let unshown = facts.into_iter().find_map(|fact| match fact.answer {
            FactAnswer::Known(answer) => serde_json::from_value::<Unshown>(answer).ok(),
            FactAnswer::Failed(_) => None,
        });
        let told_to_user = unshown.as_ref().filter(|unshown| !unshown.items.is_empty()).map(Unshown::told);
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let Some((batch, told)) = engine.stopping(env, unshown.as_ref()) else {
            return Ok(StopAnswer { open: None, unshown: told_to_user });
        };
        live.commit(batch).await?;
        Ok(StopAnswer { open: Some(told), unshown: told_to_user })
    }

    /// What an item is to be checked by now.
    ///
    /// # Errors
    /// There is nothing to check.
    pub async fn to_check(&self, item: ItemId) -> Result<ToCheck, WorkError> {
        self.live.lock().await.engine.to_check(item)
    }
}

impl Live {
    /// Notes that the evidence of an item is stale, where it is and nobody noted it.
    async fn outdate(&mut self, item: ItemId) -> Result<(), SessionError> {
        let Self { engine, env, .. } = self;
        match engine.work_outdated(env, item) {
            Some(batch) => self.commit(batch).await.map(drop),
            None => Ok(()),
        }
    }
}
