//! What the writer has done, and what it and the thread that copies its log tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::chain::Append;

/// What the writer has done since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterStats {
    /// Transactions, each with one wait for the disk.
    pub transactions: u64,
    /// Appends that were answered with success.
    pub appends: u64,
    /// Events in them.
    pub events: u64,
}

/// The counters behind [`WriterStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    transactions: AtomicU64,
    appends: AtomicU64,
    events: AtomicU64,
    /// Bytes of lines and payloads.
    bytes: AtomicU64,
    /// The write-ahead log is nearly as long as its room, and not all of it is copied.
    nearly_full: AtomicBool,
}

impl Counters {
    pub(crate) fn set_nearly_full(&self, is: bool) {
        self.nearly_full.store(is, Ordering::Relaxed);
    }

    pub(crate) fn is_nearly_full(&self) -> bool {
        self.nearly_full.load(Ordering::Relaxed)
    }

    pub(crate) fn count_transaction(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    /// An append that was answered with success.
    pub(crate) fn count(&self, append: &Append) {
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(append.events.len() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(append.bytes() as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self) -> WriterStats {
        WriterStats {
            transactions: self.transactions.load(Ordering::Relaxed),
            appends: self.appends.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
        }
    }
}
