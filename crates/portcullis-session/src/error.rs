//! What can go wrong while a run is driven.

use portcullis_core::id::{ActionId, RunId};
use portcullis_ledger::LedgerError;

use crate::dry::UnknownPolicy;
use crate::engine::AnswerError;
use crate::env::NoRandomness;

/// Why a run could not go on. Whatever it is, nothing goes ahead on the strength of it.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The ledger did not store the events.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The approval cannot be answered.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// No such policy.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// No random bytes.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The transparency log does not have the run, and the bundle asks for that.
    #[error(
        "run {0} is not in the transparency log yet, and the bundle lets nothing with an effect go ahead before it is (`[ledger] anchor`); `portcullis log status` and the daemon's log say what keeps the log from going on"
    )]
    NotLogged(RunId),
    /// The run has ended.
    #[error("run {0} is closed; open a new run")]
    Closed(RunId),
    /// No such run here.
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
    /// Documents came with a reply, and the bundle does not say that they count.
    #[error(
        "the bundle takes no documents that come with a reply; `given_documents = true` in its `[verification]` takes them"
    )]
    DocumentsNotTaken,
    /// A reloaded bundle lacks what the run needs.
    #[error("the new bundle has no runtime policy `{policy}`, which this run is governed by")]
    PolicyGone {
        /// The policy.
        policy: String,
    },
    /// Two surfaces of one agent session want different rules.
    #[error(
        "{wanted} was asked for, but run {run} of this client session is governed by {governed}; give all gates of one client the same bundle and policy, or different --session names"
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
    #[error("a credential that the bundle maps is governed by that bundle; leave the bundle out")]
    ForeignBundle,
    /// The credential does not choose.
    #[error(
        "{wanted} was asked for, but this credential is bound to the policy `{policy}` of the default bundle"
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
        "live runs of `{principal}` use {limit} bundles that were named for them, which is the limit; close some, or wait until idle ones are closed"
    )]
    TooManyBundles {
        /// The principal.
        principal: String,
        /// The limit.
        limit: usize,
    },
    /// A limit on the surfaces of one principal.
    #[error("{limit} surfaces are attached to runs of `{principal}`, which is the limit; end some")]
    TooManyAttached {
        /// The principal.
        principal: String,
        /// The limit.
        limit: usize,
    },
    /// A name that does not fit into an event.
    #[error("`{what}` may have {limit} bytes at most")]
    NameTooLong {
        /// The field.
        what: &'static str,
        /// In bytes.
        limit: usize,
    },
    /// A worker ended before it answered.
    #[error("the operation was cut short")]
    CutShort,
}
