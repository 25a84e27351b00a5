//! The witness protocol (C2SP `tlog-witness`): what a log asks of a witness, and how a witness decides.
//!
//! A witness remembers one checkpoint of every log that it watches. It cosigns another only when the log proves that
//! nothing before it changed. So two readers who both ask for its cosignature cannot be shown two histories.
//!
//! ```text
//! old 20852014                                       the size that the witness saw last
//! PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=        the consistency proof from there
//! <empty line>
//! <the checkpoint, a signed note>
//! ```
//!
//! Here are the texts and the decision. Who calls [`answer`] stores the new checkpoint before it hands out the
//! cosignature, and does both under one lock.

use crate::chain::Digest;
use crate::log::checkpoint::Checkpoint;
use crate::log::key::VerifierKey;
use crate::log::note::{NOTE_BYTES_MAX, Note};
use crate::log::text::{Place, TextError, TextLines, decimal, hash_lines, labelled};
use crate::log::tree::{
    PROOF_HASHES_MAX, ProofError, TREE_SIZE_MAX, TreeHead, empty_root, verify_consistency,
};

/// The longest request in bytes.
pub const ADD_CHECKPOINT_BYTES_MAX: usize = NOTE_BYTES_MAX + (8 << 10);

/// The media type of the answer to a log that has the wrong old size.
pub const CONFLICT_MEDIA_TYPE: &str = "text/x.tlog.size";

/// The body of an `add-checkpoint` request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddCheckpoint<'a> {
    /// The size of the tree that the log believes the witness saw last.
    pub old: u64,
    /// The consistency proof from that tree.
    pub path: Vec<Digest>,
    /// The signed checkpoint.
    pub note: Note<'a>,
    /// The checkpoint in it.
    pub checkpoint: Checkpoint,
    /// Where the checkpoint starts.
    pub(super) note_at: Place,
}

impl<'a> AddCheckpoint<'a> {
    /// Reads a request body.
    ///
    /// # Errors
    /// The first line that is not as the formats say.
    pub fn parse(bytes: &'a [u8]) -> Result<AddCheckpoint<'a>, TextError> {
        let mut lines = TextLines::new(bytes, ADD_CHECKPOINT_BYTES_MAX)?;
        let (place, line) = lines.expect("`old NUMBER`")?;
        let old = labelled(line, "old").map_err(|message| place.error(message))?;
        if old > TREE_SIZE_MAX {
            return Err(place.error(format!("a tree has at most {TREE_SIZE_MAX} leaves")));
        }
        let path = lines.hashes(PROOF_HASHES_MAX)?;
        let note_at = lines.place();
        let (note, checkpoint) =
            Checkpoint::from_note(lines.rest()).map_err(|error| error.within(note_at))?;
        Ok(AddCheckpoint { old, path, note, checkpoint, note_at })
    }

    /// The request body.
    #[must_use]
    pub fn text(&self) -> String {
        add_checkpoint(self.old, &self.path, &self.note.to_string())
    }
}

/// Writes a request body around a signed checkpoint.
#[must_use]
pub fn add_checkpoint(old: u64, path: &[Digest], signed: &str) -> String {
    format!("old {old}\n{}\n{signed}", hash_lines(path))
}

/// Why a witness does not cosign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is malformed, or its old size is past the new one.
    #[error("{0}")]
    BadRequest(TextError),
    /// The witness does not watch this log.
    #[error("this witness does not watch the log `{origin}`")]
    UnknownLog {
        /// The origin of the checkpoint.
        origin: String,
    },
    /// No known key of the log signed, or a signature of one does not hold.
    #[error("{0}")]
    Forbidden(String),
    /// The log believes that the witness saw another tree last.
    #[error("the last tree that this witness saw has {size} leaves")]
    Conflict {
        /// The size of the tree that it saw last.
        size: u64,
    },
    /// The new tree does not contain the one that the witness saw: the log forked or was rolled back.
    #[error("the tree does not continue the one that this witness saw: {0}")]
    Inconsistent(ProofError),
}

impl Refusal {
    /// The status of the HTTP response.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Refusal::BadRequest(_) => 400,
            Refusal::Forbidden(_) => 403,
            Refusal::UnknownLog { .. } => 404,
            Refusal::Conflict { .. } => 409,
            Refusal::Inconsistent(_) => 422,
        }
    }

    /// The body of the HTTP response: for a conflict the size alone, which the log reads.
    #[must_use]
    pub fn body(&self) -> String {
        match self {
            Refusal::Conflict { size } => format!("{size}\n"),
            other => format!("{other}\n"),
        }
    }
}

/// Decides on a request. `logs` are the keys that the witness knows, `seen` the tree of this origin that it cosigned
/// last; the answer is the checkpoint to store and then to cosign.
///
/// # Errors
/// Why the witness does not cosign.
pub fn answer<'a>(
    body: &'a [u8],
    logs: &[VerifierKey],
    seen: impl FnOnce(&str) -> Option<TreeHead>,
) -> Result<AddCheckpoint<'a>, Refusal> {
    let request = AddCheckpoint::parse(body).map_err(Refusal::BadRequest)?;
    let (origin, head) = (request.checkpoint.origin(), request.checkpoint.head());
    let keys: Vec<_> = logs.iter().filter(|key| key.name() == origin).collect();
    if keys.is_empty() {
        return Err(Refusal::UnknownLog { origin: origin.to_owned() });
    }
    request.note.verify(keys).map_err(|error| Refusal::Forbidden(error.to_string()))?;
    if request.old > head.size {
        let message = format!("the old size {} is past the size {}", request.old, head.size);
        return Err(Refusal::BadRequest(TextError { line: 1, byte: 0, message }));
    }
    let seen = seen(origin).unwrap_or(TreeHead { size: 0, root: empty_root() });
    if request.old != seen.size {
        return Err(Refusal::Conflict { size: seen.size });
    }
    verify_consistency(seen, head, &request.path).map_err(Refusal::Inconsistent)?;
    Ok(request)
}

/// Reads the body of a conflict: the size of the tree that the witness saw last.
///
/// # Errors
/// When it is not one number on one line.
pub fn conflict_size(body: &[u8]) -> Result<u64, TextError> {
    let mut lines = TextLines::new(body, 32)?;
    let (place, line) = lines.expect("the size of a tree")?;
    let size = decimal(line).map_err(|message| place.error(message))?;
    match lines.next_text()? {
        None if size <= TREE_SIZE_MAX => Ok(size),
        _ => Err(place.error("expected the size of a tree and nothing else")),
    }
}
