//! Copying the write-ahead log into the database, beside the writer.
//!
//! SQLite does this in the middle of the commit that finds the log too long, and every caller of that commit waits
//! for megabytes to be copied. So a thread of its own copies what it can while the writer goes on; it takes no lock
//! that a writer or a reader needs. The writer's own copying stays as the upper bound of the log's length, and then
//! finds little left to do. Failing here costs nothing but that.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::LedgerError;
use crate::sqlite::schema::Files;
use crate::sqlite::writer::Counters;

/// How often the thread looks whether there is enough to copy.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of lines and payloads that are worth a copy.
const BYTES_MIN: u64 = 1 << 20;

/// The thread, which ends when this is dropped.
pub(crate) struct Checkpointer {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(store: &Arc<Files>, counters: Arc<Counters>) -> Result<Checkpointer, LedgerError> {
        let connection = store.connect()?;
        let (stop, stopped) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("ledger-checkpoint".to_owned())
            .spawn(move || run(&connection, &counters, &stopped))
            .map_err(|error| LedgerError::io(&store.folder, "start the checkpoints of", &error))?;
        Ok(Checkpointer { stop: Some(stop), thread: Some(thread) })
    }
}

fn run(connection: &rusqlite::Connection, counters: &Counters, stopped: &Receiver<()>) {
    let mut copied = counters.bytes();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let written = counters.bytes();
        if written.wrapping_sub(copied) >= BYTES_MIN {
            copied = written;
            // What fails here is found, and reported, by the next commit.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}
