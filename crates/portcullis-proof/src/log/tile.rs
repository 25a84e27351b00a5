//! Tiles: the tree as files that never change (C2SP `tlog-tiles`).
//!
//! A tile is 256 consecutive hashes of every eighth level of the tree, 8,192 bytes; the levels between are computed.
//! At the right edge of a tree tiles are *partial*: as wide as the tree has hashes there. The leaves themselves stand
//! in *entry bundles* of 256. A reader fetches a handful of tiles and computes any proof; a log serves plain files.
//!
//! ```text
//! tile/0/x001/234           leaf hashes 315,904 to 316,159 of a tree
//! tile/1/004.p/210          the roots of 210 full tiles of level 0
//! tile/entries/x001/234     the leaves of the first line: u16 length, bytes, u16 length, bytes, ...
//! ```
//!
//! Tiles are not believed. What is read from them is a proof, and the proof is held against a checkpoint.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::chain::{Digest, Hex};
use crate::log::text::decimal;
use crate::log::tree::{
    NodeSource, ProofError, TREE_SIZE_MAX, TreeHead, inclusion_root, leaf_hash, node_hash, prove_consistency,
    prove_inclusion, root,
};

/// The number of hashes in a full tile, and of leaves in a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// The number of levels of the tree that one level of tiles spans.
pub const TILE_HEIGHT: u8 = 8;

/// The highest level of tiles that the format has names for. A tree never fills one above level 7.
pub const TILE_LEVEL_MAX: u8 = 63;

/// The longest leaf in bytes, which is what the lengths in an entry bundle can state.
pub const ENTRY_BYTES_MAX: usize = u16::MAX as usize;

/// The longest path of a tile in bytes: `tile/entries/`, seven elements of three digits, `.p/255`.
const PATH_BYTES_MAX: usize = 64;

/// The most tiles that one reader keeps.
const KEPT_TILES_MAX: usize = 64;

/// What a tile holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileKind {
    /// Hashes of level `8 * level` of the tree.
    Hashes {
        /// The level among tiles.
        level: u8,
    },
    /// Leaves.
    Entries,
}

/// The name of a tile. `Display` and `FromStr` are its path below the log's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    kind: TileKind,
    index: u64,
    width: u16,
}

/// Why a path is not that of a tile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{path}` is not the path of a tile, which is tile/LEVEL/INDEX[.p/WIDTH] or tile/entries/INDEX[.p/WIDTH]"
)]
pub struct TilePathError {
    /// The path, cut to a length that can be shown.
    pub path: String,
}

impl TileId {
    /// The tile `index` of a kind, or `None` if its level or width does not exist.
    #[must_use]
    pub fn new(kind: TileKind, index: u64, width: u16) -> Option<TileId> {
        let level = matches!(kind, TileKind::Entries | TileKind::Hashes { level: 0..=TILE_LEVEL_MAX });
        (level && (1..=TILE_WIDTH).contains(&width)).then_some(TileId { kind, index, width })
    }

    /// The tile as a tree of `size` leaves has it, or `None` if it has not.
    #[must_use]
    pub fn in_tree(kind: TileKind, index: u64, size: u64) -> Option<TileId> {
        let hashes = hashes_at(kind, size);
        let before = index.checked_mul(u64::from(TILE_WIDTH))?;
        let width = u16::try_from(hashes.checked_sub(before)?.min(u64::from(TILE_WIDTH))).ok()?;
        TileId::new(kind, index, width)
    }

    /// What the tile holds.
    #[must_use]
    pub fn kind(&self) -> TileKind {
        self.kind
    }

    /// Its number within its level.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The number of hashes or leaves in it, 1 to 256.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// The same tile when it has grown full.
    #[must_use]
    pub fn full(self) -> TileId {
        TileId { width: TILE_WIDTH, ..self }
    }
}

/// The number of hashes at a level of tiles (of leaves, for entries) in a tree of `size` leaves.
fn hashes_at(kind: TileKind, size: u64) -> u64 {
    match kind {
        TileKind::Entries => size,
        TileKind::Hashes { level } => {
            size.checked_shr(u32::from(level) * u32::from(TILE_HEIGHT)).unwrap_or(0)
        }
    }
}

impl fmt::Display for TileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes { level } => write!(f, "tile/{level}/")?,
            TileKind::Entries => f.write_str("tile/entries/")?,
        }
        let mut elements = vec![format!("{:03}", self.index % 1000)];
        let mut rest = self.index / 1000;
        while rest > 0 {
            elements.push(format!("x{:03}", rest % 1000));
            rest /= 1000;
        }
        elements.reverse();
        f.write_str(&elements.join("/"))?;
        if self.width < TILE_WIDTH { write!(f, ".p/{}", self.width) } else { Ok(()) }
    }
}

impl FromStr for TileId {
    type Err = TilePathError;

    /// Reads a path in its one spelling.
    fn from_str(path: &str) -> Result<TileId, TilePathError> {
        let tile = if path.len() <= PATH_BYTES_MAX { read_path(path) } else { None };
        tile.filter(|tile| tile.to_string() == path)
            .ok_or_else(|| TilePathError { path: path.chars().take(PATH_BYTES_MAX).collect() })
    }
}

fn read_path(path: &str) -> Option<TileId> {
    let (kind, rest) = path.strip_prefix("tile/")?.split_once('/')?;
    let kind = match kind {
        "entries" => TileKind::Entries,
        level => TileKind::Hashes { level: u8::try_from(decimal(level).ok()?).ok()? },
    };
    let (index, width) = match rest.split_once(".p/") {
        Some((index, width)) => (index, u16::try_from(decimal(width).ok()?).ok()?),
        None => (rest, TILE_WIDTH),
    };
    let mut number = 0u64;
    for element in index.split('/') {
        let digits = element.trim_start_matches('x');
        let digits: u64 = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
        number = number.checked_mul(1000)?.checked_add(digits)?;
    }
    TileId::new(kind, number, width)
}

/// The tiles that a log writes when its tree grows from `old` to `new` leaves: bundles first, then level by level.
pub fn tiles_to_write(old: u64, new: u64) -> impl Iterator<Item = TileId> {
    let levels = (0..=TILE_LEVEL_MAX).map(|level| TileKind::Hashes { level });
    std::iter::once(TileKind::Entries)
        .chain(levels)
        .filter(move |kind| hashes_at(*kind, old) < hashes_at(*kind, new))
        .flat_map(move |kind| {
            let width = u64::from(TILE_WIDTH);
            let tiles = hashes_at(kind, old) / width..hashes_at(kind, new).div_ceil(width);
            tiles.filter_map(move |index| TileId::in_tree(kind, index, new))
        })
}

/// The bytes of a tile of hashes, from the nodes of a tree, or `None` for a tile of entries, or above any tree.
///
/// # Errors
/// When a node could not be read.
pub fn tile_bytes<S: NodeSource + ?Sized>(nodes: &S, tile: TileId) -> Result<Option<Vec<u8>>, S::Error> {
    let TileKind::Hashes { level } = tile.kind else { return Ok(None) };
    let height = level.checked_mul(TILE_HEIGHT).filter(|height| *height < 64);
    let first = tile.index.checked_mul(u64::from(TILE_WIDTH));
    let (Some(height), Some(first)) = (height, first) else { return Ok(None) };
    let mut bytes = Vec::with_capacity(usize::from(tile.width) * 32);
    for place in 0..u64::from(tile.width) {
        let Some(index) = first.checked_add(place) else { return Ok(None) };
        bytes.extend_from_slice(&nodes.node(height, index)?.0);
    }
    Ok(Some(bytes))
}

/// Why an entry bundle cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {byte} of the entry bundle: {message}")]
pub struct BundleError {
    /// The offset in the bundle.
    pub byte: u64,
    /// What is wrong there.
    pub message: String,
}

/// The bytes of an entry bundle.
///
/// # Errors
/// When there are no leaves, more than 256, or one is longer than [`ENTRY_BYTES_MAX`].
pub fn bundle_bytes<E: AsRef<[u8]>>(entries: &[E]) -> Result<Vec<u8>, BundleError> {
    let mut bytes = Vec::new();
    let fail = |bytes: &Vec<u8>, message: String| BundleError { byte: bytes.len() as u64, message };
    if !(1..=usize::from(TILE_WIDTH)).contains(&entries.len()) {
        return Err(fail(&bytes, format!("{} leaves; a bundle has 1 to {TILE_WIDTH}", entries.len())));
    }
    for entry in entries {
        let entry = entry.as_ref();
        let length = u16::try_from(entry.len()).map_err(|_| {
            fail(&bytes, format!("a leaf of {} bytes; it may have {ENTRY_BYTES_MAX}", entry.len()))
        })?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(entry);
    }
    Ok(bytes)
}

/// The first `width` leaves of an entry bundle, which has to hold exactly `width` or, when the tree has grown, 256.
///
/// # Errors
/// When the bundle ends within a leaf, or holds another number of leaves.
pub fn read_bundle(bytes: &[u8], width: u16) -> Result<Vec<&[u8]>, BundleError> {
    let mut entries = Vec::with_capacity(usize::from(width.min(TILE_WIDTH)));
    let mut rest = bytes;
    let fail =
        |rest: &[u8], message: String| BundleError { byte: (bytes.len() - rest.len()) as u64, message };
    while !rest.is_empty() {
        if entries.len() == usize::from(TILE_WIDTH) {
            return Err(fail(rest, format!("more than {TILE_WIDTH} leaves")));
        }
        let leaf = rest
            .split_first_chunk::<2>()
            .and_then(|(length, tail)| tail.split_at_checked(usize::from(u16::from_be_bytes(*length))));
        let Some((entry, tail)) = leaf else {
            return Err(fail(rest, "the bundle ends within a leaf".to_owned()));
        };
        entries.push(entry);
        rest = tail;
    }
    if entries.len() != usize::from(width) && entries.len() != usize::from(TILE_WIDTH) {
        return Err(fail(rest, format!("{} leaves, where {width} belong", entries.len())));
    }
    entries.truncate(usize::from(width));
    Ok(entries)
}

/// Where tiles are read from: a folder, a server, a store.
pub trait TileSource {
    /// Why a tile could not be read.
    type Error;

    /// The bytes of a tile. For a partial tile that is gone, those of the full one will do.
    ///
    /// # Errors
    /// When the tile could not be read.
    fn tile(&self, tile: TileId) -> Result<Vec<u8>, Self::Error>;
}

/// Why something could not be read from tiles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TileError<E> {
    /// The source failed.
    #[error("could not read `{tile}`: {error}")]
    Source {
        /// The tile.
        tile: TileId,
        /// What the source says.
        error: E,
    },
    /// The bytes are not those of such a tile.
    #[error("`{tile}`: {message}")]
    Malformed {
        /// The tile.
        tile: TileId,
        /// What is wrong.
        message: String,
    },
    /// The tree has no such node, leaf or earlier tree.
    #[error("a tree of {size} leaves has no such node, leaf or earlier tree")]
    Outside {
        /// The number of leaves.
        size: u64,
    },
    /// The tiles do not lead to the root of the checkpoint.
    #[error("the tiles do not belong to the checkpoint: {0}")]
    Proof(#[from] ProofError),
}

/// A leaf that was read from tiles and is in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLeaf {
    /// Its bytes.
    pub entry: Vec<u8>,
    /// The proof that it is in the tree.
    pub path: Vec<Digest>,
}

/// Reads nodes, proofs and leaves of one tree from its tiles. Keeps the last few tiles.
#[derive(Debug)]
pub struct TileReader<'s, S> {
    source: &'s S,
    head: TreeHead,
    kept: RefCell<BTreeMap<TileId, Vec<Digest>>>,
}

impl<'s, S: TileSource> TileReader<'s, S> {
    /// A reader of the tree that a checkpoint states.
    #[must_use]
    pub fn new(source: &'s S, head: TreeHead) -> TileReader<'s, S> {
        TileReader { source, head, kept: RefCell::default() }
    }

    /// The proof that leaf `index` is in the tree. It is not checked: that takes the leaf.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn inclusion(&self, index: u64) -> Result<Vec<Digest>, TileError<S::Error>> {
        prove_inclusion(self, index, self.head.size)?.ok_or(self.outside())
    }

    /// The proof that the tree of the first `old` leaves is its beginning. It is checked against that tree's root.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn consistency(&self, old: u64) -> Result<Vec<Digest>, TileError<S::Error>> {
        prove_consistency(self, old, self.head.size)?.ok_or(self.outside())
    }

    /// Checks that the tiles of the right edge lead to the root of the checkpoint.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn check_root(&self) -> Result<(), TileError<S::Error>> {
        let found = root(self, self.head.size)?;
        if found == self.head.root { Ok(()) } else { Err(ProofError::RootDiffers.into()) }
    }

    /// Reads leaf `index` and checks that it is in the tree.
    ///
    /// # Errors
    /// See [`TileError`].
    pub fn leaf(&self, index: u64) -> Result<ReadLeaf, TileError<S::Error>> {
        let tile = TileId::in_tree(TileKind::Entries, index / u64::from(TILE_WIDTH), self.head.size)
            .ok_or(self.outside())?;
        let bytes = self.source.tile(tile).map_err(|error| TileError::Source { tile, error })?;
        let entries = read_bundle(&bytes, tile.width)
            .map_err(|error| TileError::Malformed { tile, message: error.to_string() })?;
        let place = (index % u64::from(TILE_WIDTH)) as usize;
        let entry = entries.get(place).ok_or(self.outside())?.to_vec();
        let path = self.inclusion(index)?;
        let found = inclusion_root(leaf_hash(&entry), index, self.head.size, &path)?;
        if found == self.head.root {
            Ok(ReadLeaf { entry, path })
        } else {
            Err(ProofError::RootDiffers.into())
        }
    }

    fn outside(&self) -> TileError<S::Error> {
        TileError::Outside { size: self.head.size }
    }

    /// The hashes `first` and the `count - 1` after it of a tile.
    fn hashes(&self, tile: TileId, first: usize, count: usize) -> Result<Vec<Digest>, TileError<S::Error>> {
        let pick = |hashes: &Vec<Digest>| hashes.iter().skip(first).take(count).copied().collect();
        if let Some(hashes) = self.kept.borrow().get(&tile) {
            return Ok(pick(hashes));
        }
        let bytes = self.source.tile(tile).map_err(|error| TileError::Source { tile, error })?;
        let width = usize::from(tile.width) * 32;
        if bytes.len() != width && bytes.len() != usize::from(TILE_WIDTH) * 32 {
            let message = format!("{} bytes, where {width} belong", bytes.len());
            return Err(TileError::Malformed { tile, message });
        }
        let (chunks, _) = bytes.as_chunks::<32>();
        let hashes = chunks.iter().take(usize::from(tile.width)).map(|chunk| Hex(*chunk)).collect();
        let picked = pick(&hashes);
        let mut kept = self.kept.borrow_mut();
        if kept.len() == KEPT_TILES_MAX {
            kept.pop_first();
        }
        kept.insert(tile, hashes);
        Ok(picked)
    }
}

impl<S: TileSource> NodeSource for TileReader<'_, S> {
    type Error = TileError<S::Error>;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Self::Error> {
        // The node is the root over 1 to 128 hashes that stand beside each other in one tile.
        let kind = TileKind::Hashes { level: level / TILE_HEIGHT };
        let count = 1u64 << (level % TILE_HEIGHT);
        let first =
            index.checked_mul(count).filter(|_| self.head.size <= TREE_SIZE_MAX).ok_or(self.outside())?;
        let width = u64::from(TILE_WIDTH);
        let tile = TileId::in_tree(kind, first / width, self.head.size).ok_or(self.outside())?;
        let mut hashes = self.hashes(tile, (first % width) as usize, count as usize)?;
        if hashes.len() as u64 != count {
            return Err(self.outside());
        }
        while hashes.len() > 1 {
            let (pairs, _) = hashes.as_chunks::<2>();
            hashes = pairs.iter().map(|[left, right]| node_hash(*left, *right)).collect();
        }
        hashes.first().copied().ok_or(self.outside())
    }
}
