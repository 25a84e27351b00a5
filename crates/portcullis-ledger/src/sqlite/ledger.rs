//! The ledger as its callers see it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use portcullis_core::freeze::Freeze;
use portcullis_core::id::SegmentId;
use portcullis_proof::chain::hex_text;
use portcullis_proof::trust::check_origin;
use tokio::sync::oneshot;

use crate::chain::{Append, Head, Owner};
use crate::error::{LedgerError, Refusal};
use crate::ledger::NewSegment;
use crate::ledger::OpenedSegment;
use crate::ledger::RecoveryReport;
use crate::log::{Anchor, NotAnchored};
use crate::sqlite::backfill::{self, Backfill};
use crate::sqlite::checkpoint::Checkpointer;
use crate::sqlite::counters::{Counters, WriterStats};
use crate::sqlite::lock::WriterLock;
use crate::sqlite::presence::Presence;
use crate::sqlite::queue::Queue;
use crate::sqlite::read::SqliteReader;
use crate::sqlite::schema::{self, Files};
use crate::sqlite::writer::{Answer, Request, Writer};

/// SqliteReader connections that are kept for the next query.
const IDLE_READERS_MAX: usize = 8;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The name of the store, bound into every chain. Set when the store is created; with `None`, a name is
    /// generated, or that of an existing store is used.
    pub origin: Option<String>,
    /// How long to wait for another program's transaction.
    pub busy_timeout: Duration,
    /// The largest size of the database in bytes, or `None` for as much as the disk holds.
    pub bytes_max: Option<u64>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { origin: None, busy_timeout: Duration::from_secs(5), bytes_max: None }
    }
}

/// One process's hand on a store. Shared by reference between threads; dropping it writes what waits.
pub struct SqliteLedger {
    store: Arc<Files>,
    origin: String,
    id: String,
    recovery: RecoveryReport,
    presence: Presence,
    queue: Arc<Queue<Request>>,
    counters: Arc<Counters>,
    readers: Mutex<Vec<SqliteReader>>,
    /// The thread answers whether segments of this process are left open. Taken when the ledger is dropped.
    thread: Option<JoinHandle<bool>>,
    checkpointer: Option<Checkpointer>,
    /// Computes the summaries that a store of an earlier release lacks.
    backfill: Option<Backfill>,
    lock: Option<WriterLock>,
    /// What keeps the transparency log up to date with this store, if this process has one.
    anchor: OnceLock<Anchor>,
}

impl std::fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLedger")
            .field("folder", &self.store.folder)
            .field("writer", &self.id)
            .finish_non_exhaustive()
    }
}

impl SqliteLedger {
    /// Opens the store in a folder as a new writer, creating it if it does not exist, and closes the segments that
    /// dead writers left open.
    pub fn open(folder: &Path, options: OpenOptions) -> Result<SqliteLedger, LedgerError> {
        let store = Arc::new(Files::at(folder, options.busy_timeout, options.bytes_max));
        if let Some(origin) = &options.origin {
            check_origin(origin).map_err(|message| Refusal::Origin { origin: origin.clone(), message })?;
        }
        store.create_files()?;
        let fresh = match &options.origin {
            Some(origin) => origin.clone(),
            None => format!("portcullis/{}", hex_text(&random::<4>(&store)?)),
        };
        let connection = store.open_writer(&fresh)?;
        let origin = schema::origin(&connection)
            .map_err(|error| store.error(&error))?
            .ok_or_else(|| LedgerError::NotALedger { place: store.place() })?;
        if let Some(asked) = options.origin.filter(|asked| *asked != origin) {
            let message = format!("the store in `{}` is `{origin}`", folder.display());
            return Err(Refusal::Origin { origin: asked, message }.into());
        }
        let owner = Owner::from_bytes(random(&store)?);
        let id = owner.to_string();
        let lock = WriterLock::create(&store.writers, &id)?;
        let counters = Arc::new(Counters::default());
        let mut writer =
            Writer::new(Arc::clone(&store), origin.clone(), owner, connection, Arc::clone(&counters));
        let presence = Presence::of(&store.database)?;
        writer.watch(presence.clone());
        let recovery = writer.recover()?;
        let checkpointer = Checkpointer::start(&store, Arc::clone(&counters))?;
        let backfill = Backfill::start(&store)?;
        let queue = Arc::new(Queue::new());
        let thread = {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name("ledger-writer".to_owned())
                .spawn(move || {
                    // Whatever ends the thread, nobody may wait for it any longer.
                    let guard = AbortOnDrop(&queue);
                    writer.run(guard.0)
                })
                .map_err(|error| LedgerError::io(&store.folder, "start the writer of", &error))?
        };
        Ok(SqliteLedger {
            store,
            origin,
            id,
            recovery,
            presence,
            queue,
            counters,
            readers: Mutex::new(Vec::new()),
            thread: Some(thread),
            checkpointer: Some(checkpointer),
            backfill,
            lock: Some(lock),
            anchor: OnceLock::new(),
        })
    }

    /// The name of the store.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The id of this process as a writer.
    pub fn writer_id(&self) -> &str {
        &self.id
    }

    /// The folder of the store.
    pub fn folder(&self) -> &Path {
        &self.store.folder
    }

    /// Sets what keeps the transparency log up to date with this store. The first one stays.
    pub fn set_anchor(&self, anchor: Anchor) {
        let _ = self.anchor.set(anchor);
    }

    /// Waits until a segment, which has an event, is in the published log. How long is up to the caller.
    pub async fn logged(&self, segment: SegmentId) -> Result<(), NotAnchored> {
        self.anchor.get().ok_or(NotAnchored)?.opened(segment).await
    }

    /// Whether the files of the store are still those that were opened.
    ///
    /// # Errors
    /// [`LedgerError::Gone`]: nothing is stored any more.
    pub fn check_present(&self) -> Result<(), LedgerError> {
        self.presence.check().map(drop)
    }

    /// What recovery found when the store was opened.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> WriterStats {
        self.counters.read()
    }

    /// How many runs, at most, still have to get a summary, since an earlier release wrote them. Lists compute those of
    /// the runs that they show until then.
    pub fn summaries_due(&self) -> Result<u64, LedgerError> {
        self.read(|reader| reader.query(backfill::due))
    }

    /// How the computing of the summaries that were due when this store was opened ended, or `None` while it goes on. Runs
    /// that were being written meanwhile get theirs with their next commit.
    pub fn summaries_computed(&self) -> Option<Result<(), LedgerError>> {
        self.backfill.as_ref().map_or(Some(Ok(())), Backfill::ended)
    }

    /// Opens a segment: of a new run, or the next one of a run whose last segment has ended or whose writer is
    /// dead. Durable when it answers.
    pub async fn open_segment(&self, new: NewSegment) -> Result<OpenedSegment, LedgerError> {
        let (answer, answered) = by_oneshot();
        self.queue.push(Request::Open(new, answer))?;
        answered.await.unwrap_or(Err(LedgerError::Stopped))
    }

    /// [`SqliteLedger::open_segment`] for a thread that may wait.
    pub fn open_segment_blocking(&self, new: NewSegment) -> Result<OpenedSegment, LedgerError> {
        self.wait(|answer| Request::Open(new, answer))
    }

    /// Appends events to a segment that this process opened. When it answers with the new head, everything in
    /// it is on the disk; when it answers with an error, nothing of it is stored, save after
    /// [`LedgerError::Stopped`], when it is not known.
    pub async fn append(&self, append: Append) -> Result<Head, LedgerError> {
        self.submit(append)?.await.unwrap_or(Err(LedgerError::Stopped))
    }

    /// [`SqliteLedger::append`] for a thread that may wait.
    pub fn append_blocking(&self, append: Append) -> Result<Head, LedgerError> {
        append.check()?;
        self.wait(|answer| Request::Append(append, answer))
    }

    /// Queues an append without waiting. The order of submission is the order of writing.
    pub fn submit(
        &self,
        append: Append,
    ) -> Result<oneshot::Receiver<Result<Head, LedgerError>>, LedgerError> {
        append.check()?;
        let (answer, answered) = by_oneshot();
        self.queue.push(Request::Append(append, answer))?;
        Ok(answered)
    }

    /// Writes freezes as they stand, all of them or none. Durable when it answers.
    pub async fn put_freezes(&self, freezes: Vec<Freeze>) -> Result<(), LedgerError> {
        let (answer, answered) = by_oneshot();
        self.queue.push(Request::Freezes(freezes, answer))?;
        answered.await.unwrap_or(Err(LedgerError::Stopped))
    }

    /// Closes what siblings that died since have left open. For a daemon to call now and then.
    pub fn recover_blocking(&self) -> Result<RecoveryReport, LedgerError> {
        self.wait(Request::Recover)
    }

    /// Runs queries on one of the connections that cannot write. Not on an async thread: queries wait for the disk.
    pub fn read<T>(
        &self,
        queries: impl FnOnce(&SqliteReader) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let idle = self.idle_readers().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => SqliteReader::of(Arc::clone(&self.store))?,
        };
        let result = queries(&reader)?;
        // A connection on which a query failed is not used again.
        let mut idle = self.idle_readers();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(reader);
        }
        Ok(result)
    }

    /// A pool is whole at any time, so a panic elsewhere does not spoil it.
    fn idle_readers(&self) -> MutexGuard<'_, Vec<SqliteReader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<T: Send + 'static>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, LedgerError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let answer: Answer<T> = Box::new(move |result| drop(sender.send(result)));
        self.queue.push(request(answer))?;
        receiver.recv().unwrap_or(Err(LedgerError::Stopped))
    }
}

impl Drop for SqliteLedger {
    fn drop(&mut self) {
        self.queue.close();
        drop(self.checkpointer.take());
        drop(self.backfill.take());
        let left_open = self.thread.take().is_none_or(|thread| thread.join().unwrap_or(true));
        // With segments left open the lock is let go, but its file stays: the next writer closes them.
        if let Some(lock) = self.lock.take()
            && !left_open
        {
            lock.remove();
        }
    }
}

/// Closes the queue when the writer thread ends in whatever way, and lets go of those who wait.
struct AbortOnDrop<'a>(&'a Queue<Request>);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn by_oneshot<T: Send + 'static>() -> (Answer<T>, oneshot::Receiver<Result<T, LedgerError>>) {
    let (sender, receiver) = oneshot::channel();
    // Anyone who asked may have gone; what was asked is done all the same.
    (Box::new(move |result| drop(sender.send(result))), receiver)
}

fn random<const N: usize>(store: &Files) -> Result<[u8; N], LedgerError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| LedgerError::Io {
        place: store.folder.display().to_string(),
        action: "draw a random id for",
        detail: error.to_string(),
    })?;
    Ok(bytes)
}
