//! The port to a store of runs: what sessions, the daemon and commands know of it.
//!
//! A [`Ledger`] is one process's hand on a store, a [`Reader`] a look at it, an [`Eraser`] what overwrites payloads.
//! Which database is behind them is known to [`Location`] alone, and to the folder that implements them.
//!
//! What every implementation promises:
//!
//! - When [`Ledger::append`] has answered with a head, everything in the append is durable; when it has answered with
//!   an error, nothing of it is stored, save after [`LedgerError::Stopped`], when it is not known.
//! - An append is conditional: it is stored only if the run's segment is still owned under the [`Lease`] of the head
//!   that its first event follows, and if that head is the last one stored. So of two writers of one run, at most one
//!   goes on.
//! - A reader sees committed data only. It blocks, so async code goes through [`read_aside`].

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use portcullis_core::freeze::Freeze;
use portcullis_core::id::{ApprovalId, Commitment, RunId, SegmentId};
use portcullis_core::kept::KeptId;
use portcullis_core::state::progress::Progress;
use portcullis_core::time::Timestamp;
use portcullis_proof::Digest;
use portcullis_proof::export::SegmentState;

use crate::chain::{Append, Head, StoredPayload};
use crate::erasure::{Erased, ErasureRow, Selection, Tombstone};
use crate::error::LedgerError;
use crate::facts::{FactFilter, FactRow};
use crate::log::{Anchor, LogPlaces, NotAnchored};
use crate::rows::{
    ApprovalFilter, ApprovalRow, ExportOptions, ExportSummary, FreezeFilter, Integrity, RunFilter,
    RunSummary, SegmentRow, StoredEvent,
};
use crate::sqlite::{OpenOptions, SqliteEraser, SqliteLedger, SqliteReader};
use crate::taints::StoredTaints;

/// What a store answers later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

/// Where a store is, and of which kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder with a SQLite database, on a disk of this machine.
    Folder(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Folder(folder) => folder.display().fmt(f),
        }
    }
}

impl Location {
    /// Opens the store as a new writer, creating it if there is none.
    ///
    /// # Errors
    /// [`LedgerError`]: it cannot be opened, or is not a store that this release can write.
    pub fn open(&self, options: OpenOptions) -> Result<Arc<dyn Ledger>, LedgerError> {
        match self {
            Location::Folder(folder) => Ok(Arc::new(SqliteLedger::open(folder, options)?)),
        }
    }

    /// Opens an existing store for reading only; makes no writer and takes no lock.
    ///
    /// # Errors
    /// [`LedgerError`]: there is no store, or it cannot be read.
    pub fn reader(&self) -> Result<Box<dyn Reader>, LedgerError> {
        match self {
            Location::Folder(folder) => Ok(Box::new(SqliteReader::open(folder)?)),
        }
    }

    /// Opens an existing store to erase payloads of it.
    ///
    /// # Errors
    /// [`LedgerError`]: there is no store, or it cannot be written.
    pub fn eraser(&self) -> Result<Box<dyn Eraser>, LedgerError> {
        match self {
            Location::Folder(folder) => Ok(Box::new(SqliteEraser::open(folder)?)),
        }
    }

    /// Where the store's transparency log is.
    #[must_use]
    pub fn log(&self) -> LogPlaces {
        match self {
            Location::Folder(folder) => LogPlaces::beside(folder),
        }
    }

    /// Whether there is a store. One that cannot be read exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        match self {
            Location::Folder(folder) => folder.join(crate::sqlite::DATABASE_FILE).exists(),
        }
    }

    /// Whether this user may write the store.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn check_writable(&self) -> Result<(), LedgerError> {
        match self {
            Location::Folder(folder) => crate::sqlite::check_writable(folder),
        }
    }

    /// The folder whose disk the store is on, where it is on one of this machine.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Location::Folder(folder) => Some(folder),
        }
    }
}

/// A segment to open. Its ordinal, parent and start follow from what the store holds of the run.
#[derive(Debug, Clone)]
pub struct NewSegment {
    /// The run; a new one, or one to continue.
    pub run: RunId,
    /// The segment, new.
    pub segment: SegmentId,
    /// On whose behalf. Must be the run's principal when the run exists.
    pub principal: String,
    /// The client session, where the surface has one. That of the first segment stays.
    pub session_key: Option<String>,
    /// When.
    pub opened: Timestamp,
}

/// An open segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSegment {
    /// What the first event is chained to.
    pub head: Head,
    /// The number of segments before it.
    pub ordinal: u64,
    /// How the segment before it ended.
    pub parent: Option<SegmentState>,
    /// What had to be closed for it: the run's open segment, whose writer is dead.
    pub recovered: Option<RecoveredSegment>,
}

/// What recovery found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Segments of dead writers, now abandoned.
    pub recovered: Vec<RecoveredSegment>,
    /// Open segments of living siblings, left alone.
    pub living: u64,
    /// Segments of dead writers that are damaged and stay open.
    pub damaged: Vec<(SegmentId, LedgerError)>,
}

/// A segment that a dead writer had left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredSegment {
    /// The run.
    pub run: RunId,
    /// The segment.
    pub segment: SegmentId,
    /// The dead writer.
    pub writer: String,
    /// Permitted actions whose outcome is not known.
    pub outcomes_unknown: u64,
    /// Events of the run after recovery. 0 for a run without any event, which is removed: nothing was ever
    /// recorded in it.
    pub count: u64,
}

/// One process's hand on a store. Dropping it writes what waits.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// The name of the store, bound into every chain.
    fn origin(&self) -> &str;

    /// Opens a segment: of a new run, or the next one of a run whose last segment has ended or whose owner is dead.
    /// Durable when it answers. This process then owns the run, under the lease in the head.
    ///
    /// # Errors
    /// [`Refusal`](crate::Refusal): the run is another principal's or has a living owner.
    fn open_segment(&self, new: NewSegment) -> Later<'_, OpenedSegment>;

    /// Appends events to a segment of this process. See the [module documentation](self) for what its answer means.
    ///
    /// # Errors
    /// [`Refusal`](crate::Refusal): the lease is lost or the events do not follow the last stored one.
    fn append(&self, append: Append) -> Later<'_, Head>;

    /// Writes freezes as they stand, all of them or none. Durable when it answers. One is known by its scope and the time
    /// at which it was made; what was written of it before is replaced.
    fn put_freezes(&self, freezes: Vec<Freeze>) -> Later<'_, ()>;

    /// Lends one of the connections that cannot write. [`read`](trait@Ledger#method.read) and [`read_aside`] are more
    /// convenient.
    ///
    /// # Errors
    /// What `queries` returned, or why no connection can be made.
    fn lend_reader(
        &self,
        queries: &mut dyn FnMut(&dyn Reader) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError>;

    /// Whether the store is still the one that was opened.
    ///
    /// # Errors
    /// [`LedgerError::Gone`]: nothing is stored any more.
    fn check_present(&self) -> Result<(), LedgerError>;

    /// What recovery found when the store was opened.
    fn recovery_report(&self) -> &RecoveryReport;

    /// Sets what keeps the transparency log up to date with this store. The first one stays.
    fn set_anchor(&self, anchor: Anchor);

    /// Waits until a segment, which has an event, is in the published log. How long is up to the caller.
    fn logged(
        &self,
        segment: SegmentId,
    ) -> Pin<Box<dyn Future<Output = Result<(), NotAnchored>> + Send + '_>>;

    /// How many runs, at most, still have to get a summary, since an earlier release wrote them. Lists compute those of
    /// the runs that they show until then.
    ///
    /// # Errors
    /// [`LedgerError`].
    fn summaries_due(&self) -> Result<u64, LedgerError>;

    /// How the computing of the summaries that were due when this store was opened ended, or `None` while it goes on. Runs
    /// that were being written meanwhile get theirs with their next commit.
    fn summaries_computed(&self) -> Option<Result<(), LedgerError>>;
}

impl dyn Ledger {
    /// Runs queries on one of the connections that cannot write. They wait for the disk: async code uses
    /// [`read_aside`].
    ///
    /// # Errors
    /// What the queries return.
    pub fn read<T>(
        &self,
        queries: impl FnOnce(&dyn Reader) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let (mut queries, mut answer) = (Some(queries), None);
        self.lend_reader(&mut |reader| {
            if let Some(queries) = queries.take() {
                answer = Some(queries(reader)?);
            }
            Ok(())
        })?;
        answer.ok_or(LedgerError::Stopped)
    }
}

/// Runs queries off the async threads.
///
/// # Errors
/// What the queries return.
pub async fn read_aside<T: Send + 'static>(
    ledger: &Arc<dyn Ledger>,
    queries: impl FnOnce(&dyn Reader) -> Result<T, LedgerError> + Send + 'static,
) -> Result<T, LedgerError> {
    let ledger = Arc::clone(ledger);
    tokio::task::spawn_blocking(move || ledger.read(queries)).await.unwrap_or(Err(LedgerError::Stopped))
}

/// Queries on the store as of its last commit. They block.
pub trait Reader: fmt::Debug + Send {
    /// The name of the store.
    fn origin(&self) -> Result<String, LedgerError>;

    /// Runs, newest first. Reads a row for each and no events, however long the runs are.
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, LedgerError>;

    /// One run, or `None` if the store has no such run.
    fn run(&self, run: RunId) -> Result<Option<RunSummary>, LedgerError>;

    /// How far a run has come, computed from its events; none when it has none. For a run whose summary lacks it.
    fn progress(&self, run: RunId) -> Result<Option<Progress>, LedgerError>;

    /// The run whose id starts with `prefix` among the runs of one principal, or `None` for all. A run of another
    /// principal is treated as unknown: neither its id nor its existence is revealed.
    fn find_run_of(&self, prefix: &str, principal: Option<&str>) -> Result<RunId, LedgerError>;

    /// The same among all runs.
    fn find_run(&self, prefix: &str) -> Result<RunId, LedgerError> {
        self.find_run_of(prefix, None)
    }

    /// The newest run of a principal's client session, in any state.
    fn latest_run(&self, principal: &str, session_key: &str) -> Result<Option<RunId>, LedgerError>;

    /// The runs of a principal whose last event was written at `since` or later, newest first, at most `limit` (and
    /// 10,000): what a budget of the principal is counted from.
    fn runs_since(&self, principal: &str, since: Timestamp, limit: usize) -> Result<Vec<RunId>, LedgerError>;

    /// The segments of a run, in order.
    fn segments(&self, run: RunId) -> Result<Vec<SegmentRow>, LedgerError>;

    /// The head of a run, or `None` if the store has no such run.
    fn head(&self, run: RunId) -> Result<Option<Head>, LedgerError>;

    /// At most `limit` (and 10,000) events of a run after event `after`, in order.
    fn events(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<StoredEvent>, LedgerError>;

    /// The last event of a kind before event `before` of a run, among the `within` events before that.
    fn last_of_kind(
        &self,
        run: RunId,
        kind: &str,
        before: u64,
        within: u64,
    ) -> Result<Option<StoredEvent>, LedgerError>;

    /// A payload, or `None` if it was never stored or is erased. What others rely on may be read from it, such as
    /// what a grant is for: fails with [`LedgerError::PayloadAltered`] if it is not what was committed to.
    fn payload(&self, run: RunId, commitment: Commitment) -> Result<Option<StoredPayload>, LedgerError>;

    /// What was written with the words of others, and with which key it is looked up. Read once, when a process begins to
    /// write runs.
    fn taints(&self) -> Result<StoredTaints, LedgerError>;

    /// Facts, the newest first.
    fn facts(&self, filter: &FactFilter) -> Result<Vec<FactRow>, LedgerError>;

    /// The fact of that name, gone or not.
    fn fact(&self, id: KeptId) -> Result<Option<FactRow>, LedgerError>;

    /// How many facts were ever established in the store.
    fn facts_ever(&self) -> Result<u64, LedgerError>;

    /// Approvals, newest first.
    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<ApprovalRow>, LedgerError>;

    /// One approval.
    fn approval(&self, approval: ApprovalId) -> Result<Option<ApprovalRow>, LedgerError>;

    /// Approvals whose id starts with `prefix`, of one principal or of all, at most two: enough to tell that there are
    /// several.
    fn find_approvals(&self, prefix: &str, principal: Option<&str>) -> Result<Vec<ApprovalRow>, LedgerError>;

    /// The freezes that a filter names.
    fn freezes(&self, filter: &FreezeFilter) -> Result<Vec<Freeze>, LedgerError>;

    /// Erasures of a run, oldest first.
    fn erasures(&self, run: RunId) -> Result<Vec<ErasureRow>, LedgerError>;

    /// Writes a run as `portcullis-export/v1`, or `/v2` where payloads of it were erased, as of one moment, byte-exact.
    /// Memory grows with the number of erased payloads, not otherwise with the run.
    fn export_run(
        &self,
        run: RunId,
        out: &mut dyn Write,
        options: ExportOptions,
    ) -> Result<ExportSummary, LedgerError>;

    /// The trust file line for the head of a run, or `None` for a run without events.
    fn trust_line(&self, run: RunId) -> Result<Option<String>, LedgerError>;

    /// The trusted heads of runs as a trust file. Keep it where the store's owner cannot write it.
    fn trust_text(&self, runs: &[RunId]) -> Result<String, LedgerError> {
        let mut text = portcullis_proof::trust::preamble(&self.origin()?);
        for run in runs {
            if let Some(line) = self.trust_line(*run)? {
                text.push_str(&line);
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// Computes every link of a run again. What is read of a run and relied on may be checked with it first.
    ///
    /// # Errors
    /// [`LedgerError::Corrupt`] if an event or a segment is not what was stored. O(events of the run).
    fn verify_run(&self, run: RunId) -> Result<(), LedgerError>;

    /// Checks the whole store, payloads that are not erased included. Reads every byte of it; takes as long.
    fn integrity_check(&self) -> Result<Integrity, LedgerError>;

    /// Segments of all runs in the order in which they were opened, from the place after `after` on, at most `limit`.
    /// For the transparency log.
    fn segments_from(&self, after: i64, limit: usize) -> Result<Vec<(RunId, SegmentRow)>, LedgerError>;

    /// How the segment at a place of the store stands: its state, its last event and that event's link. `None` if it
    /// is gone, which happens to a run in which nothing was recorded.
    fn segment_stand(&self, place: i64, segment: SegmentId) -> Result<Option<SegmentStand>, LedgerError>;

    /// The link of event `count` of a segment's run, or of the segment's beginning if it follows that event. The outer
    /// `None` if there is no such segment, the inner one if there is no such event.
    fn link_at(&self, segment: SegmentId, count: u64) -> Result<Option<Option<Digest>>, LedgerError>;

    /// The last event of a segment's run, or `None` if there is no such segment.
    fn last_event_of(&self, segment: SegmentId) -> Result<Option<u64>, LedgerError>;

    /// The lines of a run after event `after`, up to event `until`, that say which bundle is in force.
    fn configuration_lines(&self, run: RunId, after: u64, until: u64) -> Result<Vec<Vec<u8>>, LedgerError>;
}

/// How a segment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentStand {
    /// Its state.
    pub state: SegmentState,
    /// Its last event, or the one that it follows while it has none.
    pub count: u64,
    /// The link of that event, or the segment's first link.
    pub link: Digest,
}

/// A hand on a store that erases, beside its writers.
pub trait Eraser: fmt::Debug + Send {
    /// Erases payloads. Of a run that is named and in progress nothing is erased, and that is refused; where runs are
    /// chosen otherwise, those in progress are left out and reported. A payload and its tombstone are erased and
    /// written in one step. Where it has to stop after some of them, [`LedgerError::CutShort`] says how many.
    fn erase(&mut self, selection: &Selection, tombstone: &Tombstone) -> Result<Erased, LedgerError>;

    /// What [`Eraser::erase`] would do.
    fn rehearse(&mut self, selection: &Selection) -> Result<Erased, LedgerError>;

    /// Builds the store again where only that removes the bytes of what was erased.
    fn compact(&mut self, erased: &mut Erased) -> Result<(), LedgerError>;
}
