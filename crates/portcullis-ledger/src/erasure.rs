//! Erasing payloads: which ones, what remains of them, and what was done.

use portcullis_core::id::{Commitment, RunId};
use portcullis_core::time::Timestamp;

use crate::error::Refusal;

/// The longest name and the longest reason of a tombstone, in bytes.
pub const TOMBSTONE_TEXT_BYTES_MAX: usize = 1_024;
/// The shortest text that payloads can be chosen by, in bytes: a shorter one would be found everywhere.
pub const CONTAINS_BYTES_MIN: usize = 3;

/// Which payloads to erase: those that fit everything that is given. At least one of run, commitment, text, principal
/// and time must be.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this event; needs a run.
    pub event: Option<u64>,
    /// Only those that their events call so: `arguments`, `text`, `content`, ...
    pub name: Option<String>,
    /// Only this one.
    pub commitment: Option<Commitment>,
    /// Only those that hold this text, as it is or as it appears in JSON.
    pub contains: Option<String>,
    /// Only of runs of this principal.
    pub principal: Option<String>,
    /// Only of events before this time.
    pub before: Option<Timestamp>,
}

impl Selection {
    /// Refuses a selection that cannot be meant.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let narrowed = self.run.is_some()
            || self.commitment.is_some()
            || self.contains.is_some()
            || self.principal.is_some()
            || self.before.is_some();
        let refuse = |message: &str| Err(Refusal::Selection(message.to_owned()));
        if !narrowed {
            return refuse("name a run, a commitment, a text, a principal or a time");
        }
        if self.event.is_some() && self.run.is_none() {
            return refuse("an event number needs a run; name the run");
        }
        match &self.contains {
            Some(text) if text.len() < CONTAINS_BYTES_MIN => {
                refuse("a text of less than three bytes matches too much; give a longer one")
            }
            _ => Ok(()),
        }
    }
}

/// What a tombstone says besides the commitment.
#[derive(Debug, Clone)]
pub struct Tombstone {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// What was erased, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    /// Payloads.
    pub payloads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The runs they belong to.
    pub runs: Vec<RunId>,
    /// Runs that fit and are in progress: nothing of them was erased.
    pub in_progress: Vec<RunId>,
    /// Events of the searched runs whose lines contain the text. They stay.
    pub lines_with_text: u64,
    /// Whether the files were rid of the bytes. False after a dry run, while another program reads or writes the
    /// store for longer than the busy timeout (erasing again tries again), and where only compaction helps.
    pub purged: bool,
    /// Whether copies of what was erased may be left in pages of the store, so that it has to be compacted:
    /// [`SqliteEraser::compact`].
    pub needs_compaction: bool,
    /// Bytes of the database that hold nothing. What is written next fills them; compaction gives them back.
    pub free_bytes: u64,
}

/// Payloads of a run that were erased together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRow {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// How many.
    pub payloads: u64,
}
