//! Work items of a live run. Each operation is one batch, durable before it is answered. Checks run elsewhere, while the
//! run is not locked; what came of them is an operation like any other, and is refused where the item has changed.

use portcullis_core::id::ActionId;
use portcullis_core::work::{Covers, ItemId, Operation, Party, WorkError, WorkItem};

use super::{Live, Run};
use crate::engine::{ToCheck, WorkBy};
use crate::error::SessionError;

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
    pub async fn stopping(&self) -> Result<Option<String>, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let Some((batch, told)) = engine.stopping(env) else { return Ok(None) };
        live.commit(batch).await?;
        Ok(Some(told))
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
