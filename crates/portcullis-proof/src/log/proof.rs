//! The proof that a leaf is in a log, as one file that needs no network (C2SP `tlog-proof`).
//!
//! ```text
//! c2sp.org/tlog-proof@v1
//! index 73894
//! gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=        the siblings, from the leaf upwards
//! <empty line>
//! <the checkpoint, a signed note>
//! ```
//!
//! The leaf is not in it: a proof is of bytes that its reader has.

use crate::chain::Digest;
use crate::log::checkpoint::Checkpoint;
use crate::log::note::{NOTE_BYTES_MAX, Note};
use crate::log::text::{Place, TextError, TextLines, base64_bytes, base64_text, hash_lines, labelled};
use crate::log::tree::{PROOF_HASHES_MAX, ProofError, TREE_SIZE_MAX, verify_inclusion};

/// The first line.
pub const TLOG_PROOF_FORMAT: &str = "c2sp.org/tlog-proof@v1";

/// The most bytes of extra data.
pub const EXTRA_BYTES_MAX: usize = 64 << 10;

/// The longest proof file in bytes.
pub const TLOG_PROOF_BYTES_MAX: usize = NOTE_BYTES_MAX + 2 * EXTRA_BYTES_MAX;

/// A proof that was read. Nothing of it is to be believed before the checkpoint's signatures are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof<'a> {
    /// What the application adds. Nothing vouches for it.
    pub extra: Option<Vec<u8>>,
    /// The index of the leaf.
    pub index: u64,
    /// The siblings, from the leaf upwards.
    pub path: Vec<Digest>,
    /// The signed checkpoint.
    pub note: Note<'a>,
    /// The checkpoint in it.
    pub checkpoint: Checkpoint,
    /// Where the index is.
    pub(super) index_at: Place,
    /// Where the checkpoint starts.
    pub(super) note_at: Place,
}

impl<'a> TlogProof<'a> {
    /// Reads a proof file.
    ///
    /// # Errors
    /// The first line that is not as the formats say.
    pub fn parse(bytes: &'a [u8]) -> Result<TlogProof<'a>, TextError> {
        let mut lines = TextLines::new(bytes, TLOG_PROOF_BYTES_MAX)?;
        let (place, format) = lines.expect("the name of the format")?;
        if format != TLOG_PROOF_FORMAT {
            return Err(place.error(format!("expected `{TLOG_PROOF_FORMAT}`")));
        }
        let (mut place, mut line) = lines.expect("`index NUMBER`")?;
        let mut extra = None;
        if let Some(base64) = line.strip_prefix("extra ") {
            let bytes = base64_bytes(base64).map_err(|message| place.error(message))?;
            if bytes.is_empty() || bytes.len() > EXTRA_BYTES_MAX {
                return Err(place.error(format!("extra data has 1 to {EXTRA_BYTES_MAX} bytes")));
            }
            extra = Some(bytes);
            (place, line) = lines.expect("`index NUMBER`")?;
        }
        let index = labelled(line, "index").map_err(|message| place.error(message))?;
        if index >= TREE_SIZE_MAX {
            return Err(place.error(format!("a tree has at most {TREE_SIZE_MAX} leaves")));
        }
        let path = lines.hashes(PROOF_HASHES_MAX)?;
        let note_at = lines.place();
        let (note, checkpoint) =
            Checkpoint::from_note(lines.rest()).map_err(|error| error.within(note_at))?;
        Ok(TlogProof { extra, index, path, note, checkpoint, index_at: place, note_at })
    }

    /// Checks that the leaf of this hash is in the tree of the checkpoint, whose signatures are another matter.
    ///
    /// # Errors
    /// Why it does not follow.
    pub fn verify_leaf(&self, leaf: Digest) -> Result<(), ProofError> {
        let head = self.checkpoint.head();
        verify_inclusion(leaf, self.index, head.size, head.root, &self.path)
    }

    /// The proof file.
    #[must_use]
    pub fn text(&self) -> String {
        tlog_proof(self.extra.as_deref(), self.index, &self.path, &self.note.to_string())
    }
}

/// Writes a proof file around a signed checkpoint.
#[must_use]
pub fn tlog_proof(extra: Option<&[u8]>, index: u64, path: &[Digest], signed: &str) -> String {
    let extra = extra.map_or_else(String::new, |bytes| format!("extra {}\n", base64_text(bytes)));
    format!("{TLOG_PROOF_FORMAT}\n{extra}index {index}\n{}\n{signed}", hash_lines(path))
}
