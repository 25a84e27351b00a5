//! The Merkle tree of RFC 6962 (section 2.1) and RFC 9162 (section 2.1): hashes, proofs, and growing a tree.
//!
//! ```text
//! leaf = H(0x00 || entry)        node = H(0x01 || left || right)        root of nothing = H()
//! ```
//!
//! The two prefixes keep a node from passing for a leaf. A tree of `n` leaves splits at the largest power of two
//! below `n`, so its shape follows from `n` alone, and so does the length of every proof: a proof that is shorter or
//! longer is refused before anything is hashed. An empty proof proves a leaf only in a tree of one leaf.
//!
//! A *complete* node `(level, index)` covers the leaves `index * 2^level` up to the next multiple. Complete nodes
//! never change while the tree grows; everything else is computed from them.

use crate::chain::{Digest, Hex};
use crate::hash::Sha256;

/// The most leaves of a tree.
pub const TREE_SIZE_MAX: u64 = i64::MAX as u64;

/// The most hashes in a proof: a tree of [`TREE_SIZE_MAX`] leaves has 63 levels.
pub const PROOF_HASHES_MAX: usize = 63;

/// The hash of a leaf.
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update([0]);
    hash.update(entry);
    Hex(hash.finish())
}

/// The hash of a node over two children.
#[must_use]
pub fn node_hash(left: Digest, right: Digest) -> Digest {
    let mut hash = Sha256::new();
    hash.update([1]);
    hash.update(left.0);
    hash.update(right.0);
    Hex(hash.finish())
}

/// The root of the tree without leaves.
#[must_use]
pub fn empty_root() -> Digest {
    Hex(Sha256::new().finish())
}

/// Why a proof does not prove what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// There is no such leaf.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    OutsideTree {
        /// The index of the leaf.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The first tree has more leaves than the second, or the second more than any tree.
    #[error("a tree of {old} leaves cannot grow into one of {new}")]
    Sizes {
        /// The size of the first tree.
        old: u64,
        /// The size of the second tree.
        new: u64,
    },
    /// The shape of the trees asks for another number of hashes.
    #[error("the proof has {found} hashes, these sizes ask for {expected}")]
    Length {
        /// The number that follows from the sizes.
        expected: usize,
        /// The number in the proof.
        found: usize,
    },
    /// The hashes lead to another root than that of the only tree, or of the second.
    #[error("the proof leads to another root")]
    RootDiffers,
    /// The hashes lead to another root than that of the first tree.
    #[error("the proof leads to another root of the first tree")]
    OldRootDiffers,
}

/// Where complete nodes of a tree are read from.
pub trait NodeSource {
    /// Why a node could not be read.
    type Error;

    /// The hash of a complete node.
    ///
    /// # Errors
    /// When the node could not be read.
    fn node(&self, level: u8, index: u64) -> Result<Digest, Self::Error>;
}

/// The largest power of two below `size`, which is at least 2.
fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// The complete nodes that cover the leaves from `begin` up to `end`. `begin` is a multiple of a power of two that is
/// at least the number of leaves, as it is for every subtree that a proof names; so there are at most 63.
fn peaks<S: NodeSource + ?Sized>(nodes: &S, mut begin: u64, end: u64) -> Result<Vec<Digest>, S::Error> {
    let mut peaks = Vec::new();
    while begin < end {
        let level = (end - begin).ilog2();
        peaks.push(nodes.node(level as u8, begin >> level)?);
        begin += 1 << level;
    }
    Ok(peaks)
}

/// The hash of the leaves from `begin` up to `end`.
fn subtree<S: NodeSource + ?Sized>(nodes: &S, begin: u64, end: u64) -> Result<Digest, S::Error> {
    peaks(nodes, begin, end).map(|peaks| join(&peaks))
}

/// The root over peaks of descending height.
fn join(peaks: &[Digest]) -> Digest {
    peaks.iter().rev().copied().reduce(|right, left| node_hash(left, right)).unwrap_or_else(empty_root)
}

/// The root of the tree of the first `size` leaves.
///
/// # Errors
/// When a node could not be read.
pub fn root<S: NodeSource + ?Sized>(nodes: &S, size: u64) -> Result<Digest, S::Error> {
    subtree(nodes, 0, size)
}

/// Makes the proof that leaf `index` is in the tree of the first `size` leaves, from the leaf's sibling upwards, or
/// `None` if there is no such leaf.
///
/// # Errors
/// When a node could not be read.
pub fn prove_inclusion<S: NodeSource + ?Sized>(
    nodes: &S,
    index: u64,
    size: u64,
) -> Result<Option<Vec<Digest>>, S::Error> {
    if index >= size || size > TREE_SIZE_MAX {
        return Ok(None);
    }
    let mut path = Vec::new();
    let (mut begin, mut end) = (0, size);
    while end - begin > 1 {
        let middle = begin + split(end - begin);
        if index < middle {
            path.push(subtree(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(subtree(nodes, begin, middle)?);
            begin = middle;
        }
    }
    path.reverse();
    Ok(Some(path))
}

/// Makes the proof that the tree of the first `old` leaves is the beginning of that of the first `new`, or `None` if
/// `old` is larger. From nothing, and from a tree to itself, the proof is empty.
///
/// # Errors
/// When a node could not be read.
pub fn prove_consistency<S: NodeSource + ?Sized>(
    nodes: &S,
    old: u64,
    new: u64,
) -> Result<Option<Vec<Digest>>, S::Error> {
    if old > new || new > TREE_SIZE_MAX {
        return Ok(None);
    }
    if old == 0 {
        return Ok(Some(Vec::new()));
    }
    let mut path = Vec::new();
    let (mut begin, mut end) = (0, new);
    while end != old {
        let middle = begin + split(end - begin);
        if old <= middle {
            path.push(subtree(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(subtree(nodes, begin, middle)?);
            begin = middle;
        }
    }
    // The verifier knows the root of the first tree, and needs a subtree of it only where it is not that root.
    if begin > 0 {
        path.push(subtree(nodes, begin, end)?);
    }
    path.reverse();
    Ok(Some(path))
}

/// The number of hashes that prove leaf `index` in a tree of `size` leaves.
fn inclusion_length(index: u64, size: u64) -> usize {
    // Below the lowest level where the leaf and the last leaf share a node there is a sibling on every level; above
    // it only on the left.
    let inner = u64::BITS - (index ^ (size - 1)).leading_zeros();
    let border = index.checked_shr(inner).unwrap_or(0).count_ones();
    (inner + border) as usize
}

/// The number of hashes between trees of `old` and `new` leaves.
fn consistency_length(old: u64, new: u64) -> usize {
    if old == 0 || old == new {
        return 0;
    }
    // The proof is that of the last leaf of the first tree, from the largest complete node that ends with it.
    let level = old.trailing_zeros();
    let above = inclusion_length((old >> level) - 1, ((new - 1) >> level) + 1);
    above + usize::from(!old.is_power_of_two())
}

/// The root to which an inclusion proof leads.
///
/// # Errors
/// When there is no such leaf, or the proof has another length than index and size ask for.
pub fn inclusion_root(leaf: Digest, index: u64, size: u64, path: &[Digest]) -> Result<Digest, ProofError> {
    if index >= size || size > TREE_SIZE_MAX {
        return Err(ProofError::OutsideTree { index, size });
    }
    let expected = inclusion_length(index, size);
    if path.len() != expected {
        return Err(ProofError::Length { expected, found: path.len() });
    }
    // On the right edge, from where leaf and last leaf share a node, every sibling is on the left, so levels that have
    // none need not be passed over; that there are as many hashes as levels with a sibling is known.
    let (mut place, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in path {
        if place & 1 == 1 || place == last {
            hash = node_hash(*sibling, hash);
        } else {
            hash = node_hash(hash, *sibling);
        }
        (place, last) = (place >> 1, last >> 1);
    }
    Ok(hash)
}

/// Checks that a leaf is in a tree (RFC 9162, section 2.1.3.2).
///
/// # Errors
/// Why it does not follow.
pub fn verify_inclusion(
    leaf: Digest,
    index: u64,
    size: u64,
    root: Digest,
    path: &[Digest],
) -> Result<(), ProofError> {
    if inclusion_root(leaf, index, size, path)? == root { Ok(()) } else { Err(ProofError::RootDiffers) }
}

/// A tree as a checkpoint states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreeHead {
    /// The number of leaves.
    pub size: u64,
    /// The root.
    pub root: Digest,
}

/// Checks that one tree is the beginning of another (RFC 9162, section 2.1.4.2). From a tree to itself, and from the
/// empty tree, the proof is empty; the empty tree has to have its own root.
///
/// # Errors
/// Why it does not follow.
pub fn verify_consistency(old: TreeHead, new: TreeHead, path: &[Digest]) -> Result<(), ProofError> {
    if old.size > new.size || new.size > TREE_SIZE_MAX {
        return Err(ProofError::Sizes { old: old.size, new: new.size });
    }
    let expected = consistency_length(old.size, new.size);
    if path.len() != expected {
        return Err(ProofError::Length { expected, found: path.len() });
    }
    let empty = |head: TreeHead| head.size > 0 || head.root == empty_root();
    if !empty(old) {
        return Err(ProofError::OldRootDiffers);
    }
    if !empty(new) || (old.size == new.size && old.root != new.root) {
        return Err(ProofError::RootDiffers);
    }
    if old.size == 0 || old.size == new.size {
        return Ok(());
    }
    let level = old.size.trailing_zeros();
    let (mut place, mut last) = ((old.size - 1) >> level, (new.size - 1) >> level);
    let (first, path) = match path.split_first() {
        Some((first, rest)) if !old.size.is_power_of_two() => (*first, rest),
        _ => (old.root, path),
    };
    let (mut old_hash, mut new_hash) = (first, first);
    for sibling in path {
        if place & 1 == 1 || place == last {
            old_hash = node_hash(*sibling, old_hash);
            new_hash = node_hash(*sibling, new_hash);
        } else {
            new_hash = node_hash(new_hash, *sibling);
        }
        (place, last) = (place >> 1, last >> 1);
    }
    if old_hash != old.root {
        return Err(ProofError::OldRootDiffers);
    }
    if new_hash == new.root { Ok(()) } else { Err(ProofError::RootDiffers) }
}

/// A tree that only grows, as its peaks: the complete nodes that no other complete node covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactRange {
    size: u64,
    /// From left to right; one for every bit of `size`.
    peaks: Vec<Digest>,
}

impl CompactRange {
    /// The tree without leaves.
    #[must_use]
    pub fn new() -> CompactRange {
        CompactRange::default()
    }

    /// The tree of the first `size` leaves of a stored one.
    ///
    /// # Errors
    /// When a node could not be read.
    pub fn load<S: NodeSource + ?Sized>(nodes: &S, size: u64) -> Result<CompactRange, S::Error> {
        Ok(CompactRange { size, peaks: peaks(nodes, 0, size)? })
    }

    /// The tree that has these peaks, from left to right, or `None` if a tree of that size has another number of them.
    #[must_use]
    pub fn from_peaks(size: u64, peaks: Vec<Digest>) -> Option<CompactRange> {
        let fits = size <= TREE_SIZE_MAX && peaks.len() == size.count_ones() as usize;
        fits.then_some(CompactRange { size, peaks })
    }

    /// The peaks, from left to right; one for every bit of the size.
    #[must_use]
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Adds a leaf and reports every node that it completes, the leaf first: level, index, hash.
    ///
    /// # Errors
    /// When the tree has [`TREE_SIZE_MAX`] leaves; it is not changed then.
    pub fn push_with(&mut self, leaf: Digest, mut made: impl FnMut(u8, u64, Digest)) -> Result<(), TreeFull> {
        if self.size >= TREE_SIZE_MAX {
            return Err(TreeFull);
        }
        let (mut hash, mut level) = (leaf, 0u8);
        made(0, self.size, hash);
        // Each trailing one bit of the size is a peak that the new leaf completes into a larger one.
        while (self.size >> level) & 1 == 1
            && let Some(left) = self.peaks.pop()
        {
            hash = node_hash(left, hash);
            level += 1;
            made(level, self.size >> level, hash);
        }
        self.peaks.push(hash);
        self.size += 1;
        Ok(())
    }

    /// Adds a leaf.
    ///
    /// # Errors
    /// When the tree has [`TREE_SIZE_MAX`] leaves.
    pub fn push(&mut self, leaf: Digest) -> Result<(), TreeFull> {
        self.push_with(leaf, |_, _, _| ())
    }

    /// The number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Size and root.
    #[must_use]
    pub fn head(&self) -> TreeHead {
        TreeHead { size: self.size, root: join(&self.peaks) }
    }
}

/// A tree cannot take another leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tree has {TREE_SIZE_MAX} leaves, which is all that a tree can have")]
pub struct TreeFull;
