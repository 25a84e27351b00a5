//! Runs that runs open for delegated agents: how they begin below their parent, and how their ends reach it.

use std::sync::Arc;
use std::time::Instant;

use portcullis_core::bundle::Bundle;
use portcullis_core::id::RunId;

use super::opening::RunRequest;
use super::{Gate, settle, stored};
use crate::delegated::Weights;
use crate::engine::ChildEnd;
use crate::env::{Env as _, SystemEnv};
use crate::error::{NoChild, SessionError};
use crate::run::Run;

impl Gate {
    /// Opens a run for an agent to which a run delegates work. The parent records it first: the record of the new run
    /// names that event and its link.
    pub(super) async fn open_below(
        &self,
        parent: RunId,
        request: &RunRequest,
        policy: &str,
        bundle: &Arc<Bundle>,
    ) -> Result<Arc<Run>, SessionError> {
        let no = SessionError::NoChild { run: parent, why: NoChild::NotLive };
        let own = |run: &Arc<Run>| run.principal().id == request.identity.principal.id;
        let parent = self.look_at(parent).filter(own).ok_or(no)?;
        let id = RunId::from_bytes(SystemEnv::new()?.id());
        let opener = Arc::clone(&parent);
        let opened = settle(async move { opener.open_child(id).await }).await?;
        let above = std::iter::once(parent.id()).chain(parent.lineage().iter().copied()).collect();
        let begun = self.begin(id, request, policy, bundle, Some((opened, above))).await;
        if begun.is_err() {
            // If this cannot be recorded either, it is when the parent is taken up.
            let _ = settle(async move { parent.child_closed(ChildEnd::never_began(id)).await }).await;
        }
        begun
    }

    /// A call of a run is a sign of life of the runs above it, whose agents wait for it.
    pub(super) fn used_by_runs_below(&self, run: &Run) {
        if run.lineage().is_empty() {
            return;
        }
        let mut runs = self.lock();
        for id in run.lineage() {
            if let Some(entry) = runs.by_id.get_mut(id) {
                entry.last_used = Instant::now();
            }
        }
    }

    /// Tells the run above that a run has ended, if it is live. Otherwise it learns of it when it is taken up.
    pub(super) async fn tell_parent(&self, run: &Arc<Run>) {
        let Some(parent) = run.lineage().first().and_then(|parent| self.look_at(*parent)) else { return };
        if let Some(end) = run.ended().await {
            let _ = settle(async move { parent.child_closed(end).await }).await;
        }
    }

    /// A run that was taken up learns what became of the runs that it had opened.
    pub(super) async fn meet_children(&self, run: &Arc<Run>) -> Result<(), SessionError> {
        let children = run.children().await;
        if children.is_empty() {
            return Ok(());
        }
        // What becomes durable from here on is counted, and what was before is read.
        self.family.add(run);
        let below = children.iter().map(|(child, _)| *child).collect();
        let weights = run
            .with_state(|state, bundle| Weights { bundle: Arc::clone(bundle), state: state.clone() })
            .await;
        let used = self.read(move |reader| Ok(stored::used_below(reader, below, &weights))).await?;
        run.counted_below(used);
        for (child, known) in children {
            let end = match self.look_at(child) {
                Some(live) => live.ended().await,
                None => self.read(move |reader| stored::end_of(reader, child)).await?,
            };
            let Some(end) = end.filter(|end| Some(end.count) != known) else { continue };
            run.child_closed(end).await?;
        }
        Ok(())
    }
}
