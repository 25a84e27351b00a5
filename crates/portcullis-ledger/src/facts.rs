//! Facts as a store indexes them: one row for each, so that a run finds those that it may read without a look at the
//! runs that wrote them. Texts are in payloads of their events alone, and topics and folders are known here by digests
//! with a key of the store.

use portcullis_core::id::{Commitment, Digest, RunId};
use portcullis_core::kept::KeptId;

/// Most facts of one store, those included that were replaced or forgotten.
pub const FACTS_MAX: u64 = 1_000_000;
/// Most rows that one query returns.
pub const FACTS_LISTED_MAX: usize = 1_000;

/// What an event does to the index of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactChange {
    /// A fact is established.
    Written(NewFactRow),
    /// A fact is forgotten.
    Forgotten {
        /// The event that says so.
        seq: u64,
        /// The fact.
        fact: KeptId,
    },
}

/// The row of a fact that an event establishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFactRow {
    /// The event.
    pub seq: u64,
    /// The principal of the run.
    pub principal: String,
    /// The folder whose runs may read it; `None`: all runs of the principal.
    pub workspace: Option<Digest>,
    /// What it is about, if it says so.
    pub topic: Option<Digest>,
    /// The payload with its text.
    pub commitment: Commitment,
    /// The facts that it replaces.
    pub replaces: Vec<KeptId>,
}

/// Why a fact is no longer listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Another one says it better.
    Replaced,
    /// It was forgotten.
    Forgotten,
}

impl Gone {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::Forgotten => "forgotten",
        }
    }
}

/// A fact as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactRow {
    /// Its number in the store, in the order in which facts were established.
    pub number: u64,
    /// Names it.
    pub id: KeptId,
    /// Whose it is.
    pub principal: String,
    /// The folder whose runs may read it; `None`: all runs of the principal.
    pub workspace: Option<Digest>,
    /// What it is about, if it says so and that was not erased.
    pub topic: Option<Digest>,
    /// The payload with its text.
    pub commitment: Commitment,
    /// Why it is no longer listed, and the event by which.
    pub gone: Option<(Gone, KeptId)>,
}

impl FactRow {
    /// Whether a run may read it.
    #[must_use]
    pub fn is_read_by(&self, reader: &FactReader) -> bool {
        self.principal == reader.principal && self.workspace.is_none_or(|folder| folder == reader.workspace)
    }

    /// Whether it was forgotten.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        matches!(self.gone, Some((Gone::Forgotten, _)))
    }
}

/// A run that wants to read facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactReader {
    /// Its principal.
    pub principal: String,
    /// Its folder.
    pub workspace: Digest,
}

/// Which facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactFilter {
    /// Those that this run may read, of those that are not gone.
    pub reader: Option<FactReader>,
    /// Those of this principal.
    pub principal: Option<String>,
    /// Those of this run.
    pub run: Option<RunId>,
    /// Those about this.
    pub topic: Option<Digest>,
    /// Those that are gone, too. Of a reader, none of them are.
    pub gone: bool,
    /// Those with a lower number.
    pub before: Option<u64>,
    /// At most so many, and [`FACTS_LISTED_MAX`].
    pub limit: usize,
}
