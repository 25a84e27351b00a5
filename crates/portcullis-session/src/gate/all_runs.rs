//! What concerns all live runs: changes of policy and of tools that reach them, and the end of a daemon.

use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::ClosedState;
use portcullis_core::id::{Digest, RunId};

use super::arrivals::AcceptedTool;
use super::{Gate, settle};
use crate::bundles::Source;
use crate::error::SessionError;
use crate::run::Run;

/// A live run that could not record that its bundle changed.
#[derive(Debug)]
pub struct NotReloaded {
    /// The run.
    pub run: RunId,
    /// Whether the default bundle governs it.
    pub of_default: bool,
    /// Why.
    pub error: SessionError,
}

impl Gate {
    /// Closes all live runs, since the process is about to end: in good order, except those whose last surface
    /// has just left otherwise.
    pub async fn close_all(&self) {
        let mut runs: Vec<(usize, RunId, Option<ClosedState>)> = self
            .lock()
            .by_id
            .iter()
            .map(|(id, entry)| (entry.run.lineage().len(), *id, entry.left))
            .collect();
        // Those that others opened go first, so that their ends are recorded there.
        runs.sort_unstable_by_key(|(depth, ..)| std::cmp::Reverse(*depth));
        for (_, id, left) in runs {
            // What cannot be closed now is closed as abandoned by the next process that opens the store.
            let _ = self.close(id, left.unwrap_or(ClosedState::Closed)).await;
        }
    }

    /// Closes idle runs.
    pub async fn close_idle(&self, idle: Duration) {
        let ids: Vec<RunId> = self
            .lock()
            .by_id
            .iter()
            .filter(|(_, entry)| entry.attached == 0 && entry.last_used.elapsed() >= idle)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.close_when_left(id, ClosedState::Abandoned, Duration::ZERO).await;
        }
    }

    /// Informs all live runs that a person accepted a tool's current description. Returns the number of runs.
    pub async fn tool_accepted(
        &self,
        server: &str,
        tool: &str,
        digest: Digest,
        approver: &str,
    ) -> Result<usize, SessionError> {
        let accepted = AcceptedTool {
            server: server.to_owned(),
            tool: tool.to_owned(),
            digest,
            approver: approver.to_owned(),
        };
        let mut told = 0;
        for run in self.live_and_announced(accepted) {
            if run.with_state(|state, _| state.tool_changed(tool, None)).await {
                run.tool_accepted(server, tool, digest, approver).await?;
                told += 1;
            }
        }
        Ok(told)
    }

    /// Reads the bundles' folders again and applies changes, also to live runs. Runs whose policy a bundle no longer
    /// has are closed: if the bundle were refused for them, keeping a run open would keep a revoked credential or
    /// policy in force. With `settled`, a change counts only once two reads agree, so that partly written files are
    /// not read as policy.
    ///
    /// Gives the runs that could not record the change; they go on under the old bundle and are tried again at
    /// the next reload.
    pub async fn reload(&self, settled: bool) -> Vec<NotReloaded> {
        let _reloading = self.reloading.lock().await;
        let bundles = Arc::clone(&self.bundles);
        let changed = tokio::task::spawn_blocking(move || bundles.changed(settled)).await;
        // If looking was cut short, the next reload looks again.
        for changed in changed.unwrap_or_default() {
            self.bundles.accept(changed);
        }
        // A run that arrives from here on looks for itself.
        let governed: Vec<(Arc<Run>, Source)> =
            self.lock().by_id.values().map(|entry| (Arc::clone(&entry.run), entry.source.clone())).collect();
        let mut failed = Vec::new();
        for (run, source) in governed {
            let Some(bundle) = self.bundles.known(&source) else { continue };
            let (other, policy) = run
                .with_state(|state, current| (current.digest() != bundle.digest(), state.policy().to_owned()))
                .await;
            if !other {
                continue;
            }
            let id = run.id();
            let done = match bundle.policy(&policy) {
                Some(_) => settle(async move { run.reload(bundle).await.map(drop) }).await,
                None => self.close(id, ClosedState::Closed).await,
            };
            if let Err(error) = done {
                failed.push(NotReloaded { run: id, of_default: self.bundles.is_default(&source), error });
            }
        }
        failed
    }
}
