//! What concerns all live runs: changes of policy and of tools that reach them, and the end of a daemon.

use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::ClosedState;
use portcullis_core::id::{Digest, RunId};

use super::{Entry, Gate, settle};
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
        let runs: Vec<(RunId, Option<ClosedState>)> =
            self.lock().by_id.iter().map(|(id, entry)| (*id, entry.left)).collect();
        for (id, left) in runs {
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
        let _opening = self.opening.lock().await;
        let runs: Vec<Arc<Run>> = self.lock().by_id.values().map(|entry| Arc::clone(&entry.run)).collect();
        let mut told = 0;
        for run in runs {
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
        // No run is opened meanwhile, so none can miss the change.
        let _opening = self.opening.lock().await;
        let mut failed = Vec::new();
        for changed in self.bundles.changed(settled) {
            let lacks = |entry: &&Entry| {
                entry.source == changed.source && changed.bundle.policy(&entry.policy).is_none()
            };
            let lacking: Vec<RunId> =
                self.lock().by_id.values().filter(lacks).map(|entry| entry.run.id()).collect();
            let of_default = self.bundles.is_default(&changed.source);
            self.bundles.accept(changed);
            for run in lacking {
                if let Err(error) = self.close(run, ClosedState::Closed).await {
                    failed.push(NotReloaded { run, of_default, error });
                }
            }
        }
        let governed: Vec<(Arc<Run>, Source)> =
            self.lock().by_id.values().map(|entry| (Arc::clone(&entry.run), entry.source.clone())).collect();
        for (run, source) in governed {
            let Ok((_, bundle)) = self.bundles.get(source.as_deref()) else { continue };
            if run.with_state(|_, current| current.digest() != bundle.digest()).await {
                let id = run.id();
                if let Err(error) = settle(async move { run.reload(bundle).await }).await {
                    failed.push(NotReloaded { run: id, of_default: self.bundles.is_default(&source), error });
                }
            }
        }
        failed
    }
}
