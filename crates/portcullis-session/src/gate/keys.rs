//! One opening at a time for each client session and for each stored run.
//!
//! Two surfaces that start at once must share one run, and a stored run must be taken up once. Requests for different
//! sessions and runs do not wait for each other, however long the events of one take to read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::id::RunId;
use tokio::sync::OwnedMutexGuard;

/// What is opened at most once at a time. A request that needs both takes the session first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A client session of a principal.
    Session(String, String),
    /// A stored run.
    Run(RunId),
}

/// The keys that are held or waited for.
#[derive(Debug, Default)]
pub(super) struct Keys(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>);

/// A key that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    keys: &'a Keys,
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Keys {
    /// Waits for a key.
    pub(super) async fn hold(&self, key: Key) -> Held<'_> {
        let lock = Arc::clone(self.lock().entry(key.clone()).or_default());
        Held { keys: self, key, guard: Some(lock.lock_owned().await) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut keys = self.keys.lock();
        // Those that wait hold the lock too, and need it.
        if keys.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_key_is_held_by_one_and_forgotten_afterwards() {
        let keys = Keys::default();
        let session = |name: &str| Key::Session("ida".to_owned(), name.to_owned());
        let first = keys.hold(session("a")).await;
        let _other = keys.hold(session("b")).await;
        let wait = tokio::time::timeout(Duration::from_millis(20), keys.hold(session("a")));
        assert!(wait.await.is_err());
        // Whoever gave up waiting is not counted any more.
        drop(first);
        drop(keys.hold(session("a")).await);
        assert_eq!(keys.lock().len(), 1);
    }
}
