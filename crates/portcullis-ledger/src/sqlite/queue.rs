//! The bounded queue in front of the writer thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::LedgerError;

/// The most requests that wait.
pub const QUEUE_REQUESTS_MAX: usize = 8_192;
/// The most bytes of lines and payloads that wait.
pub const QUEUE_BYTES_MAX: usize = 256 << 20;

/// What waits, with its size and the number of its events.
pub(crate) trait Queued {
    fn bytes(&self) -> usize;
    fn events(&self) -> usize;
}

pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    arrived: Condvar,
}

struct Inner<T> {
    waiting: VecDeque<T>,
    bytes: usize,
    closed: bool,
}

impl<T: Queued> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue {
            inner: Mutex::new(Inner { waiting: VecDeque::new(), bytes: 0, closed: false }),
            arrived: Condvar::new(),
        }
    }

    /// Adds a request, or fails at once when the queue is full or closed.
    pub(crate) fn push(&self, request: T) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(LedgerError::Stopped);
        }
        if inner.waiting.len() >= QUEUE_REQUESTS_MAX {
            return Err(LedgerError::QueueFull { limit: format!("{QUEUE_REQUESTS_MAX} requests") });
        }
        let bytes = request.bytes();
        // A single request of any size is let in: it is bounded by its own limits.
        if inner.bytes > 0 && inner.bytes.saturating_add(bytes) > QUEUE_BYTES_MAX {
            return Err(LedgerError::QueueFull { limit: format!("{QUEUE_BYTES_MAX} bytes") });
        }
        inner.bytes += bytes;
        inner.waiting.push_back(request);
        drop(inner);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for requests and moves them into `batch` until it has `events_max` events or `bytes_max` bytes;
    /// false when the queue is closed and empty.
    pub(crate) fn take(&self, batch: &mut Vec<T>, events_max: usize, bytes_max: usize) -> bool {
        let mut inner = self.lock();
        while inner.waiting.is_empty() && !inner.closed {
            inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut events, mut bytes) = (0, 0);
        while events < events_max
            && bytes < bytes_max
            && let Some(request) = inner.waiting.pop_front()
        {
            bytes += request.bytes();
            inner.bytes = inner.bytes.saturating_sub(request.bytes());
            events += request.events();
            batch.push(request);
        }
        !batch.is_empty()
    }

    /// Whether nothing waits at this moment.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Lets nothing more in; what waits is still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Lets nothing more in and drops what waits.
    pub(crate) fn abort(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.waiting.clear();
    }

    /// The queue is whole between any two statements above, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Queued for usize {
        fn bytes(&self) -> usize {
            *self
        }
        fn events(&self) -> usize {
            1
        }
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        let queue = Queue::new();
        for _ in 0..QUEUE_REQUESTS_MAX {
            queue.push(1).unwrap();
        }
        assert!(matches!(queue.push(1), Err(LedgerError::QueueFull { .. })));
        let mut batch = Vec::new();
        assert!(queue.take(&mut batch, 10, usize::MAX));
        assert_eq!(batch.len(), 10);
        queue.push(QUEUE_BYTES_MAX - QUEUE_REQUESTS_MAX + 10).unwrap();
        assert!(matches!(queue.push(1), Err(LedgerError::QueueFull { .. })));
        queue.close();
        assert!(matches!(queue.push(1), Err(LedgerError::Stopped)));
        while queue.take(&mut batch, 1_000, usize::MAX) {
            batch.clear();
        }
    }
}
