//! Makes what an engine decided durable, and only then lets its state move.

use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::Event;
use portcullis_core::state::progress::Progress;
use portcullis_core::usage::Used;
use portcullis_ledger::{Append, ChainedLine, read_aside};

use super::Live;
use crate::batch::Batch;
use crate::error::SessionError;

impl Live {
    /// Makes a batch durable, then lets the state move. On failure, the run is unchanged.
    pub(super) async fn commit(&mut self, batch: Batch) -> Result<u64, SessionError> {
        self.commit_charged(batch, Used::default()).await
    }

    /// The same for a batch that its principal was charged for. If it is lost, that stays charged.
    pub(super) async fn commit_charged(&mut self, batch: Batch, charged: Used) -> Result<u64, SessionError> {
        self.commit_with(batch, charged, None).await
    }

    /// The same for a batch with which another bundle comes into force: what the run remembers follows that one.
    pub(super) async fn commit_with(
        &mut self,
        batch: Batch,
        charged: Used,
        bundle: Option<Arc<Bundle>>,
    ) -> Result<u64, SessionError> {
        if let Some(refusal) = batch.refusal {
            return Err(SessionError::Ledger(refusal.into()));
        }
        self.settle_doubt().await?;
        let mut head = self.head;
        let mut events = Vec::with_capacity(batch.events.len());
        for event in &batch.events {
            let line = ChainedLine::new(head, event).map_err(portcullis_ledger::LedgerError::from)?;
            head = line.head();
            events.push(line);
        }
        let approvals = self.approval_rows(&batch.events).await?;
        let progress = Progress::after(self.engine.state(), &batch.events);
        let taints = self.taint_rows(&batch.events, batch.taints);
        let append = Append {
            events,
            payloads: batch.payloads,
            approvals,
            taints: taints.clone(),
            facts: self.fact_changes(&batch.events),
            progress: progress.clone(),
        };
        self.in_doubt = true;
        self.ledger.append(append).await?;
        self.in_doubt = false;
        self.head = head;
        let wrote = self.engine.wrote(&batch.events);
        let before = self.engine.state().used();
        if let Some(bundle) = bundle {
            self.engine.set_bundle(bundle);
        }
        self.engine.commit(&batch.events, batch.said);
        self.taints.add(&taints);
        self.count(&batch.events, charged, before);
        self.count_seen(&batch.events);
        self.commits.tell(head.run, &batch.events, progress, wrote);
        Ok(head.count)
    }

    /// Counts for the principal what the events that were just committed have used up.
    fn count(&self, events: &[Event], charged: Used, before: Used) {
        let state = self.engine.state();
        let account = state.principal().and_then(|principal| self.principals.get(&principal.id));
        if let (Some(account), Some(event)) = (account, events.first()) {
            let used = state.used().minus(before);
            let mut counts = account.lock();
            if charged == Used::default() {
                counts.charge(event.t, used);
            } else {
                counts.settle(event.t, charged, used);
            }
            drop(counts);
            account.past().ended(events);
        }
    }

    /// After a failed append: did the store keep it after all?
    async fn settle_doubt(&mut self) -> Result<(), SessionError> {
        if !self.in_doubt {
            return Ok(());
        }
        let run = self.engine.run();
        let stored = read_aside(&self.ledger, move |reader| reader.head(run)).await?;
        if stored.is_some_and(|stored| stored == self.head) {
            self.in_doubt = false;
            Ok(())
        } else {
            Err(SessionError::OutOfStep(self.engine.run()))
        }
    }
}
