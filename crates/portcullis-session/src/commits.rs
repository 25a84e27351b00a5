//! What becomes durable, told to whoever watches.
//!
//! Each commit of a live run is told to all watchers, after it is on the disk. Nobody is waited for: a watcher that falls
//! behind by more than [`COMMITS_KEPT`] is told so once, and then has to read the store again.

use std::sync::Arc;

use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::state::progress::Progress;
use tokio::sync::broadcast;

use crate::observers::Observers;

/// Commits that are kept for a watcher that is slower than the runs.
pub const COMMITS_KEPT: usize = 1_024;

/// Events of a run that became durable together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The run.
    pub run: RunId,
    /// Number of the first event.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
    /// How far the run has come with them.
    pub progress: Progress,
    /// Whether an approval was asked for, answered or used.
    pub approvals: bool,
    /// Actions that ended well and were to write files.
    pub wrote: Vec<Wrote>,
}

/// An action that ended well and was to write files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrote {
    /// The action.
    pub action: ActionId,
    /// Number of the event with its outcome.
    pub outcome: u64,
    /// Which files, as its effects say.
    pub paths: Vec<String>,
}

/// A watcher could not keep up, or the gate is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missed {
    /// So many commits were dropped. The next call goes on with the oldest that is kept; read the store again first.
    #[error("{0} commits were missed; read the store again")]
    Lagged(u64),
    /// There will be no more.
    #[error("the gate is gone")]
    Closed,
}

/// The commits of all live runs of a gate, from the moment of the subscription.
#[derive(Debug)]
pub struct CommitWatch(broadcast::Receiver<Commit>);

impl CommitWatch {
    /// Waits for the next commit. Dropping the future loses none.
    pub async fn next(&mut self) -> Result<Commit, Missed> {
        self.0.recv().await.map_err(|error| match error {
            broadcast::error::RecvError::Lagged(count) => Missed::Lagged(count),
            broadcast::error::RecvError::Closed => Missed::Closed,
        })
    }

    /// A commit that is there already, without waiting.
    pub fn ready(&mut self) -> Option<Result<Commit, Missed>> {
        match self.0.try_recv() {
            Ok(commit) => Some(Ok(commit)),
            Err(broadcast::error::TryRecvError::Lagged(count)) => Some(Err(Missed::Lagged(count))),
            Err(broadcast::error::TryRecvError::Closed) => Some(Err(Missed::Closed)),
            Err(broadcast::error::TryRecvError::Empty) => None,
        }
    }
}

/// The hand that tells.
#[derive(Debug, Clone)]
pub(crate) struct Commits {
    watchers: broadcast::Sender<Commit>,
    observers: Arc<Observers>,
}

impl Commits {
    pub(crate) fn new(observers: Observers) -> Self {
        Self { watchers: broadcast::Sender::new(COMMITS_KEPT), observers: Arc::new(observers) }
    }

    pub(crate) fn watch(&self) -> CommitWatch {
        CommitWatch(self.watchers.subscribe())
    }

    /// Tells that events of a run are on the disk.
    pub(crate) fn tell(&self, run: RunId, events: &[Event], progress: Progress, wrote: Vec<Wrote>) {
        self.observers.tell(run, events);
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let approvals = events.iter().any(|event| {
            matches!(
                event.body,
                EventBody::ApprovalRequested { .. }
                    | EventBody::ApprovalDecided { .. }
                    | EventBody::GrantClaimed { .. }
            )
        });
        // With nobody watching there is nobody to tell.
        let _ =
            self.watchers.send(Commit { run, first: first.seq, last: last.seq, progress, approvals, wrote });
    }
}
