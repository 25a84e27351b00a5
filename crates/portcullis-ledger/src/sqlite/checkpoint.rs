//! Copying the write-ahead log into the database, beside the writer.
//!
//! SQLite does this in the middle of the commit that finds the log too long, and every caller of that commit waits
//! for megabytes to be copied. So a thread of its own copies what it can while the writer goes on; it takes no lock
//! that a writer or a reader needs. The writer's own copying stays as the upper bound of the log's length, and then
//! finds little left to do. Failing here costs nothing but that.
//!
//! SQLite begins its log again only if all of it was copied when a transaction begins. While the writer goes on this
//! thread hardly ever gets there, and the log would grow out of the [room](super::room) in which commits are quick. So
//! where it is nearly full, the writer is asked to copy the rest in a moment in which nobody waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::LedgerError;
use crate::sqlite::counters::Counters;
use crate::sqlite::room::ROOM_BYTES;
use crate::sqlite::schema::{Files, PAGE_BYTES};

/// How often the thread looks whether there is enough to copy.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of lines and payloads that are worth a copy.
const BYTES_MIN: u64 = 1 << 20;
/// Transactions that are: each writes some six pages, however little it says.
const TRANSACTIONS_MIN: u64 = 128;
/// Pages in the log at which the writer copies the rest of it.
const PAGES_NEARLY_FULL: u64 = ROOM_BYTES / PAGE_BYTES / 2;

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
    let written = || (counters.bytes(), counters.read().transactions);
    let mut copied = written();
    while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = written();
        if now.0.wrapping_sub(copied.0) >= BYTES_MIN || now.1.wrapping_sub(copied.1) >= TRANSACTIONS_MIN {
            copied = now;
            // What fails here is found, and reported, by the next commit.
            let pages = copy(connection).unwrap_or_default();
            counters.set_nearly_full(pages >= PAGES_NEARLY_FULL);
        }
    }
}

/// Copies what the log had when this began; how many pages that is in all.
fn copy(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    // Without a log it is -1.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        row.get::<_, i64>(1).map(|pages| u64::try_from(pages).unwrap_or(0))
    })
}

/// The writer's part: copies what is left.
pub(crate) fn finish(connection: &rusqlite::Connection) {
    let _ = copy(connection);
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
