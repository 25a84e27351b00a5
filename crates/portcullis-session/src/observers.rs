//! Subscribers to what is recorded, such as metrics of one's own.
//!
//! Observers see every event of every live run after it is durable, on a thread of their own. No decision waits for
//! them: one that falls behind by more than [`COMMITS_KEPT`] commits is told how many it missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use portcullis_core::event::Event;
use portcullis_core::id::RunId;

use crate::commits::COMMITS_KEPT;

/// A subscriber. One that panics ends all subscriptions; runs are not affected.
pub trait Observer: std::fmt::Debug + Send {
    /// Events of a run that became durable together.
    fn committed(&mut self, run: RunId, events: &[Event]);

    /// So many commits came too fast, and are not shown; those that follow are. They are in the store.
    fn missed(&mut self, _commits: u64) {}
}

/// The subscribers of a gate.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    commits: Option<SyncSender<(RunId, Vec<Event>)>>,
    missed: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Observers {
    /// Starts their thread, if there are any.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(crate) fn start(observers: Vec<Box<dyn Observer>>) -> std::io::Result<Self> {
        if observers.is_empty() {
            return Ok(Self::default());
        }
        let (commits, received) = sync_channel(COMMITS_KEPT);
        let missed = Arc::new(AtomicU64::new(0));
        let thread = {
            let missed = Arc::clone(&missed);
            let show = move || show(observers, &received, &missed);
            std::thread::Builder::new().name("observers".to_owned()).spawn(show)?
        };
        Ok(Self { commits: Some(commits), missed, thread: Mutex::new(Some(thread)) })
    }

    /// Shows events that are on the disk. Never waits.
    pub(crate) fn tell(&self, run: RunId, events: &[Event]) {
        let Some(commits) = self.commits.as_ref().filter(|_| !events.is_empty()) else { return };
        if let Err(TrySendError::Full(_)) = commits.try_send((run, events.to_vec())) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Observers {
    /// Waits until all that was told has been shown.
    fn drop(&mut self) {
        self.commits = None;
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _panicked = thread.join();
        }
    }
}

fn show(mut observers: Vec<Box<dyn Observer>>, commits: &Receiver<(RunId, Vec<Event>)>, missed: &AtomicU64) {
    while let Ok((run, events)) = commits.recv() {
        let missed = missed.swap(0, Ordering::Relaxed);
        for observer in &mut observers {
            if missed > 0 {
                observer.missed(missed);
            }
            observer.committed(run, &events);
        }
    }
}
