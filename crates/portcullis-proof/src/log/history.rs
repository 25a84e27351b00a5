//! What a log must never do, and how it is shown to others.
//!
//! A [`History`] is one reader's memory of a log: it goes forward along proofs and never back. A [`Fork`] is what a
//! reader can hand to anyone who has the log's key: two statements that no honest log signs both. A consistency proof
//! that fails is none, because anyone can write one; one that *holds*, from another beginning than the log signed, is.

use crate::chain::Digest;
use crate::log::checkpoint::Checkpoint;
use crate::log::key::VerifierKey;
use crate::log::note::{Note, NoteError};
use crate::log::proof::TlogProof;
use crate::log::text::TextError;
use crate::log::tree::{ProofError, TreeHead, verify_consistency};

/// The newest tree of a log that its reader saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    newest: Checkpoint,
}

/// Why a reader does not follow a log. Its memory is not changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The checkpoint is of another log.
    #[error("the checkpoint is of `{found}`, the log is `{known}`")]
    WrongOrigin {
        /// The log that is followed.
        known: String,
        /// The origin of the checkpoint.
        found: String,
    },
    /// The log went back: an old checkpoint is shown again, or the log was restored from a copy.
    #[error("the log had {known} leaves and now shows {found}")]
    RolledBack {
        /// The number of leaves that were there.
        known: u64,
        /// The number that is shown.
        found: u64,
    },
    /// Two trees of one size.
    #[error("the log shows two trees of {size} leaves")]
    Forked {
        /// The size.
        size: u64,
    },
    /// It is not shown that the new tree contains the old one.
    #[error("the tree of {found} leaves is not shown to continue the tree of {known}: {error}")]
    NotContinued {
        /// The number of leaves that were there.
        known: u64,
        /// The number that is shown.
        found: u64,
        /// Why the proof does not hold.
        error: ProofError,
    },
}

impl History {
    /// Begins with a checkpoint whose signatures were verified.
    #[must_use]
    pub fn new(first: Checkpoint) -> History {
        History { newest: first }
    }

    /// The newest tree.
    #[must_use]
    pub fn newest(&self) -> &Checkpoint {
        &self.newest
    }

    /// Advances to a checkpoint with verified signatures, along a consistency proof from the newest one.
    ///
    /// # Errors
    /// How the log misbehaved.
    pub fn advance(&mut self, next: Checkpoint, path: &[Digest]) -> Result<(), HistoryError> {
        if next.origin() != self.newest.origin() {
            let (known, found) = (self.newest.origin().to_owned(), next.origin().to_owned());
            return Err(HistoryError::WrongOrigin { known, found });
        }
        continues(self.newest.head(), next.head(), path)?;
        self.newest = next;
        Ok(())
    }
}

fn continues(known: TreeHead, found: TreeHead, path: &[Digest]) -> Result<(), HistoryError> {
    if found.size < known.size {
        return Err(HistoryError::RolledBack { known: known.size, found: found.size });
    }
    if found.size == known.size && found.root != known.root {
        return Err(HistoryError::Forked { size: found.size });
    }
    let fail = |error| HistoryError::NotContinued { known: known.size, found: found.size, error };
    verify_consistency(known, found, path).map_err(fail)
}

/// Two statements of one log that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fork {
    /// Two trees of one size.
    Roots {
        /// The two checkpoints.
        trees: [Checkpoint; 2],
    },
    /// Two leaves in one place.
    Leaves {
        /// The index of both.
        index: u64,
        /// The hashes of the leaves.
        leaves: [Digest; 2],
        /// The two checkpoints.
        trees: [Checkpoint; 2],
    },
    /// A tree that begins with another tree than the log signed at that size.
    Beginnings {
        /// The two checkpoints, the one of fewer leaves first.
        trees: [Checkpoint; 2],
        /// The root over as many leaves of the second as the first has.
        beginning: Digest,
    },
}

/// Why two statements are no fork.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoFork {
    /// One of them is not of the format.
    #[error(transparent)]
    Text(#[from] TextError),
    /// One of them is not signed by the log.
    #[error(transparent)]
    Signature(#[from] NoteError),
    /// One of them does not follow.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// They do not contradict each other, or are of different logs.
    #[error("the two checkpoints do not contradict each other")]
    NoContradiction,
}

fn signed(note: &Note<'_>, key: &VerifierKey) -> Result<Checkpoint, NoFork> {
    let checkpoint = Checkpoint::parse(note.text())?;
    note.verify([key])?;
    Ok(checkpoint)
}

/// Shows a fork by two checkpoints of one size, as signed notes.
///
/// # Errors
/// Why they are no fork.
pub fn forked_roots(first: &[u8], second: &[u8], key: &VerifierKey) -> Result<Fork, NoFork> {
    let trees = [signed(&Note::parse(first)?, key)?, signed(&Note::parse(second)?, key)?];
    let [one, other] = &trees;
    let contradict = one.size() == other.size() && one.root() != other.root();
    if contradict && one.origin() == other.origin() {
        Ok(Fork::Roots { trees })
    } else {
        Err(NoFork::NoContradiction)
    }
}

/// Shows a fork by two checkpoints of different sizes: the first leaves of the larger tree, as many as the smaller one
/// has, have the root `beginning`, which `path` proves, and the log signed another one.
///
/// The proof holds or it does not: anyone who could write one for a beginning that the larger tree does not have could
/// find a collision of SHA-256.
///
/// # Errors
/// Why they are no fork.
pub fn forked_beginnings(
    smaller: &[u8],
    larger: &[u8],
    beginning: Digest,
    path: &[Digest],
    key: &VerifierKey,
) -> Result<Fork, NoFork> {
    let trees = [signed(&Note::parse(smaller)?, key)?, signed(&Note::parse(larger)?, key)?];
    let [one, other] = &trees;
    verify_consistency(TreeHead { size: one.size(), root: beginning }, other.head(), path)?;
    if beginning != one.root() && one.origin() == other.origin() {
        Ok(Fork::Beginnings { trees, beginning })
    } else {
        Err(NoFork::NoContradiction)
    }
}

/// Shows a fork by two leaves at one index, each with its proof, whatever the sizes of the trees.
///
/// # Errors
/// Why they are no fork.
pub fn forked_leaves(
    first: (Digest, &[u8]),
    second: (Digest, &[u8]),
    key: &VerifierKey,
) -> Result<Fork, NoFork> {
    let [one, other] = [TlogProof::parse(first.1)?, TlogProof::parse(second.1)?];
    let trees = [signed(&one.note, key)?, signed(&other.note, key)?];
    one.verify_leaf(first.0)?;
    other.verify_leaf(second.0)?;
    let contradict = one.index == other.index && first.0 != second.0;
    if contradict && one.checkpoint.origin() == other.checkpoint.origin() {
        Ok(Fork::Leaves { index: one.index, leaves: [first.0, second.0], trees })
    } else {
        Err(NoFork::NoContradiction)
    }
}
