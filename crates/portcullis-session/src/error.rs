//! What can go wrong while a run is driven.

use portcullis_core::freeze::FreezeScope;
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::kept::KeptError;
use portcullis_core::limits::{CHILDREN_MAX, CHILDREN_OPEN_MAX, DEPTH_MAX};
use portcullis_core::work::WorkError;
use portcullis_ledger::LedgerError;

use crate::dry::UnknownPolicy;
use crate::engine::{AnswerError, ReportError};
use crate::env::NoRandomness;

/// Why a run cannot open another one for a delegated agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoChild {
    /// It is not among the live runs of this gate, or is another principal's.
    #[error("it is not a live run of your principal; open or resume it first")]
    NotLive,
    /// A person froze it.
    #[error("it is frozen; a person has to release it")]
    Frozen,
    /// It is clarifying, paused or halted.
    #[error("it is stopped; answer its question, or have a person resume it")]
    Stopped,
    /// It has too many runs above it.
    #[error("{DEPTH_MAX} runs are above each other already, which is the limit")]
    TooDeep,
    /// It opened too many.
    #[error(
        "it has {CHILDREN_OPEN_MAX} open ones or opened {CHILDREN_MAX} in all, which is the limit; close some, or use a new run"
    )]
    TooMany,
}

/// Why a run could not continue. No action is executed after such an error.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The ledger did not store the events.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The approval cannot be answered.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// What was reported of something contained is refused.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What was asked for of a work item is refused.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// What was asked for of session state or of a fact is refused.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// No such policy.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// No random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The transparency log does not have the run, and the bundle asks for that.
    #[error(
        "run {0} is not in the transparency log yet, which the bundle requires before any call with an effect (`[ledger] anchor`); `portcullis log status` and the daemon's log show why"
    )]
    NotLogged(RunId),
    /// The run has ended.
    #[error("run {0} is closed; open a new run")]
    Closed(RunId),
    /// There is no live run with this id.
    #[error("there is no live run {0}")]
    UnknownRun(String),
    /// An outcome for something that is not executing.
    #[error("action {0} is not executing: it was never permitted, or its outcome is already recorded")]
    NotExecuting(ActionId),
    /// An outcome for a call that is not executing.
    #[error(
        "no action that the surface calls `{0}` is executing: it was never permitted, or its outcome is already recorded"
    )]
    NoSuchCall(String),
    /// A confirmation of something that the user is not asked about.
    #[error(
        "the run does not wait for the user to confirm action {0}: another question came since, it was answered, or the words are not the user's"
    )]
    NotAsked(ActionId),
    /// A reply had documents with it, but the bundle does not accept such documents.
    #[error(
        "the bundle does not accept documents with a reply; set `given_documents = true` in its `[verification]`"
    )]
    DocumentsNotTaken,
    /// A reloaded bundle has no runtime policy that the run needs.
    #[error("the new bundle has no runtime policy `{policy}`, which governs this run")]
    PolicyGone {
        /// The policy.
        policy: String,
    },
    /// Two surfaces of one agent session want different rules.
    #[error(
        "{wanted} was requested, but run {run} of this client session is governed by {governed}; use the same bundle and policy for all gates of one client, or different --session names"
    )]
    Mismatch {
        /// The run.
        run: RunId,
        /// What was asked for.
        wanted: String,
        /// What governs.
        governed: String,
    },
    /// The credential does not choose its rules.
    #[error("a credential mapped by a bundle always uses that bundle; omit the bundle from the request")]
    ForeignBundle,
    /// The credential does not choose.
    #[error(
        "{wanted} was requested, but this credential is bound to the policy `{policy}` of the default bundle"
    )]
    Bound {
        /// The policy that the bundle maps the credential to.
        policy: String,
        /// What was asked for.
        wanted: String,
    },
    /// The store holds other events than this writer wrote.
    #[error(
        "the ledger and this writer disagree about run {0}; restart the daemon, which closes the run as abandoned and lets it continue in a new segment"
    )]
    OutOfStep(RunId),
    /// The run cannot open another one.
    #[error("run {run} cannot open another one: {why}")]
    NoChild {
        /// The run that was named as parent.
        run: RunId,
        /// Why not.
        why: NoChild,
    },
    /// A run keeps its parent for life.
    #[error(
        "run {run} exists and {}; omit `parent`, or open a run of another session",
        opened_by.map_or_else(|| "was not opened by another run".to_owned(), |by| format!("was opened by run {by}"))
    )]
    OtherParent {
        /// The run that was to be joined or taken up.
        run: RunId,
        /// The run that opened it, if another one did.
        opened_by: Option<RunId>,
    },
    /// A limit on live runs.
    #[error("{limit} runs are live, which is the limit; close some, or wait until idle ones are closed")]
    TooManyRuns {
        /// The limit.
        limit: usize,
    },
    /// A limit on the live runs of one principal.
    #[error(
        "{limit} runs of `{principal}` are live, which is the limit; close some, or wait until idle ones are closed"
    )]
    TooManyOfPrincipal {
        /// The principal.
        principal: String,
        /// The limit.
        limit: usize,
    },
    /// A limit on the bundles of one principal.
    #[error(
        "live runs of `{principal}` use {limit} requested bundles, which is the limit; close some, or wait until idle ones are closed"
    )]
    TooManyBundles {
        /// The principal.
        principal: String,
        /// The limit.
        limit: usize,
    },
    /// A limit on the surfaces of one principal.
    #[error("{limit} surfaces are attached to runs of `{principal}`, which is the limit; detach some")]
    TooManyAttached {
        /// The principal.
        principal: String,
        /// The limit.
        limit: usize,
    },
    /// A name that does not fit into an event.
    #[error("`{what}` is longer than the limit of {limit} bytes")]
    NameTooLong {
        /// The field.
        what: &'static str,
        /// In bytes.
        limit: usize,
    },
    /// A run is frozen together with all that its freeze covers, not by itself.
    #[error(
        "a run is frozen and released with `portcullis freeze`, which other runs, and restarts, are held to as well"
    )]
    ControlOfFreeze,
    /// There is no such freeze.
    #[error("there is no freeze of {scope}; `portcullis freeze list` shows what is in force")]
    NotFrozen {
        /// What was to be released.
        scope: FreezeScope,
    },
    /// A limit on freezes.
    #[error("{limit} freezes are in force, which is the limit; release some, or freeze with --all")]
    TooManyFreezes {
        /// The limit.
        limit: usize,
    },
    /// A freeze is in force as long as the process lives.
    #[error(
        "the freeze is in force, but could not be stored, so it ends with the daemon: {0}; freeze again once the store can be written"
    )]
    FreezeNotStored(#[source] LedgerError),
    /// A worker ended before it answered.
    #[error("the operation was interrupted")]
    CutShort,
}
