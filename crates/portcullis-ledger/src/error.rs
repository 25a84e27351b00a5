//! Errors: few variants, each one that a caller acts on differently.

use portcullis_core::id::{ApprovalId, Commitment, RunId, SegmentId};
use portcullis_proof::export::SegmentState;

/// Why the store did not do what it was asked. Nothing of a failed request is stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Another program held the database for longer than the busy timeout.
    #[error(
        "the ledger `{place}` is locked by another program; end the program that writes to it, then try again"
    )]
    Locked {
        /// Where the store is.
        place: String,
    },
    /// The database is damaged.
    #[error(
        "the ledger `{place}` is damaged: {detail}; keep the file, restore a copy, and compare it with your trust file"
    )]
    Corrupt {
        /// Where the store is.
        place: String,
        /// What the database or a check found.
        detail: String,
    },
    /// What is stored of a run is not what was recorded.
    #[error(
        "run {run} is damaged: {detail}; keep the store, restore a copy, and compare it with your trust file"
    )]
    RunDamaged {
        /// The run.
        run: RunId,
        /// What a check found.
        detail: String,
    },
    /// The database or its write-ahead log was removed or replaced while this process had it open.
    #[error(
        "the ledger `{place}` was removed or replaced while it was in use; no call is permitted until it is restored: stop the daemon, restore a copy, start the daemon"
    )]
    Gone {
        /// Where the store is.
        place: String,
    },
    /// The write-ahead log was cut while it was in use, and with it what was recorded last.
    #[error(
        "the write-ahead log of `{place}` was truncated while it was in use, and the latest records are lost; no call is permitted until it is restored: stop the daemon, restore a copy, start the daemon"
    )]
    Cut {
        /// Where the store is.
        place: String,
    },
    /// The index of approvals and the run's own events say different things.
    #[error(
        "the index of approvals and run {run} disagree about approval {approval}, so it cannot be used; keep the store and run `portcullis fsck`"
    )]
    IndexDisagrees {
        /// The approval.
        approval: ApprovalId,
        /// The run.
        run: RunId,
    },
    /// The bytes of a payload were changed behind the ledger's back.
    #[error(
        "the ledger `{place}` is damaged: payload {commitment} of run {run} does not match its commitment; keep the file, \
         restore a copy, and compare it with your trust file"
    )]
    PayloadAltered {
        /// Where the store is.
        place: String,
        /// Its run.
        run: RunId,
        /// What its event says.
        commitment: Commitment,
    },
    /// An erasure stopped after some of its steps. What was erased before stays erased.
    #[error(
        "{error}; {payloads} payloads were erased before that, and {}; erase again for the rest",
        if *purged { "no file of the store holds them" } else { "files of the store may still hold their bytes" }
    )]
    CutShort {
        /// Payloads that were erased.
        payloads: u64,
        /// Whether the files were rid of their bytes.
        purged: bool,
        /// What stopped it.
        error: Box<LedgerError>,
    },
    /// No space is left for the store, or its size limit is reached.
    #[error(
        "no space is left for the ledger `{place}`: {detail}; nothing was recorded, so no call is permitted; free space or raise the limit"
    )]
    DiskFull {
        /// Where the store is.
        place: String,
        /// Which limit.
        detail: String,
    },
    /// The operating system refused.
    #[error("could not {action} `{place}`: {detail}; check that the folder exists and belongs to this user")]
    Io {
        /// What could not be used.
        place: String,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        detail: String,
    },
    /// A later release has written the store.
    #[error(
        "the ledger `{place}` has format {found}, written by {release}, but this is release {} and reads formats up to {known}; \
         nothing was changed: install {release} again, or restore a copy of the state folder from before the upgrade",
        env!("CARGO_PKG_VERSION")
    )]
    NewerVersion {
        /// Where the store is.
        place: String,
        /// Its format.
        found: i64,
        /// The latest format of this release.
        known: i64,
        /// Which release wrote it, in words.
        release: String,
    },
    /// Processes of an earlier release write the store: they would go on in tables that are no longer there.
    #[error(
        "the ledger `{place}` is being written by {writers} processes of an earlier release; stop them, the daemon first, so \
         that its tables can be migrated"
    )]
    EarlierAtWork {
        /// Where the store is.
        place: String,
        /// How many processes.
        writers: usize,
    },
    /// The file is some other database.
    #[error("`{place}` is not a ledger; choose an empty folder for the store")]
    NotALedger {
        /// Where the store is.
        place: String,
    },
    /// Where the export was to be written to.
    #[error("could not write the export: {detail}; check the destination")]
    Output {
        /// What the system said.
        detail: String,
    },
    /// The request contradicts what the store holds or a limit. Trying again does not help.
    #[error("the ledger rejected the request: {0}")]
    Refused(#[from] Refusal),
    /// Too much waits to be written.
    #[error("the ledger's queue is full ({limit}); the disk is too slow; try again later")]
    QueueFull {
        /// The limit that was reached.
        limit: String,
    },
    /// The writer has stopped, or stopped before it answered: what was asked may or may not be stored.
    #[error("the ledger's writer has stopped; open the store again")]
    Stopped,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The segment was not opened by this process.
    #[error("segment {0} is not open for this writer; open a segment first")]
    SegmentUnknown(SegmentId),
    /// The id of a new segment is not new.
    #[error("segment {0} already exists; choose another id")]
    SegmentExists(SegmentId),
    /// A run is continued on behalf of someone else.
    #[error("run {run} belongs to `{principal}`; only they can continue it")]
    PrincipalMismatch {
        /// The run.
        run: RunId,
        /// Its principal.
        principal: String,
    },
    /// The segment has ended.
    #[error("segment {segment} is {}; open a new segment of its run", state.as_str())]
    SegmentEnded {
        /// The segment.
        segment: SegmentId,
        /// How it ended.
        state: SegmentState,
    },
    /// Someone writes the run already.
    #[error("run {run} is being written by `{writer}`; a run has one writer at a time")]
    RunOwned {
        /// The run.
        run: RunId,
        /// Its writer.
        writer: String,
    },
    /// The events do not follow from the last stored one.
    #[error("run {run} is at event {count}, but these events follow event {after}")]
    OutOfOrder {
        /// The run.
        run: RunId,
        /// Where it is.
        count: u64,
        /// What the events follow.
        after: u64,
    },
    /// An event is over a limit or unfit for its place.
    #[error("{0}")]
    Event(String),
    /// A payload is over the limit.
    #[error("a payload has {bytes} bytes, the limit is {limit}")]
    PayloadTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A payload whose commitment would hide nothing.
    #[error("the salt of a payload is all zeros, which marks an erased one; draw a random salt")]
    SaltZero,
    /// A payload that no event of the same request names.
    #[error("payload {0} is not named by any event stored with it")]
    PayloadUnnamed(Commitment),
    /// The row of an approval names a different action than before.
    #[error("approval {0} belongs to another run, action or digest")]
    ApprovalMismatch(ApprovalId),
    /// No such run.
    #[error("no run id starts with `{0}`")]
    RunUnknown(String),
    /// Several runs.
    #[error("`{prefix}` matches several runs: {}; give more digits", list(candidates))]
    RunAmbiguous {
        /// What was asked for.
        prefix: String,
        /// Some of the runs.
        candidates: Vec<RunId>,
    },
    /// Something of a run in progress was to be erased.
    #[error(
        "run {0} is in progress; close it first, or wait: an abandoned run is closed when the store is next opened for writing"
    )]
    RunInProgress(RunId),
    /// Compaction of a large store.
    #[error("the store cannot be compacted while {writers} processes write to it; stop the daemon first")]
    WritersAtWork {
        /// How many.
        writers: usize,
    },
    /// What to erase was not said, or says too much.
    #[error("{0}")]
    Selection(String),
    /// A limit on what is stored.
    #[error("over the limit of {limit} {what}")]
    OverLimit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The name of the store cannot be used.
    #[error("origin `{origin}`: {message}")]
    Origin {
        /// The name.
        origin: String,
        /// What is wrong with it.
        message: String,
    },
}

fn list(runs: &[RunId]) -> String {
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
