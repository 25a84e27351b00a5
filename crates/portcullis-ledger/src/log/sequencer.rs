//! One round: the leaves that wait get their places, the new tree is signed, and the files are put out.
//!
//! ```text
//! read the waiting leaves ─> check signatures ─> grow the tree in memory ─> sign
//!     ─> ONE transaction: old checkpoint -> new checkpoint, places, staged files      (the lock)
//!     ─> put the staged files out: tiles, then the checkpoint                         (publish)
//! ```
//!
//! What comes after the transaction is also what runs first when a log is opened, so recovery is the path that every
//! round takes. A checkpoint that is signed and not in the lock never leaves the process.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use portcullis_proof::Digest;
use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::tile::{bundle_bytes, read_bundle, tile_bytes, tiles_to_write};
use portcullis_proof::log::{
    Checkpoint, CompactRange, KeyId, NodeSource, TileError, TileId, TileKind, TileReader, TileSource as _,
    TreeHead,
};
use rusqlite::params;

use super::database::{SignedTree, WaitingLeaf, WriterRow, WriterState};
use super::error::LogError;
use super::folder::{Tiles, put};
use super::{CHECKPOINT_FILE, Log};
use crate::sqlite::schema::signed;

/// The most leaves of one round.
pub const ROUND_LEAVES_MAX: usize = 8192;
/// The number of leaves or hashes in a full tile.
const WIDTH: u64 = portcullis_proof::log::tile::TILE_WIDTH as u64;

/// What a round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Leaves that got a place.
    pub leaves: u64,
    /// The leaves of the tree now.
    pub size: u64,
}

/// A file to put out: its path below the public folder, and its bytes.
type StagedFile = (String, Vec<u8>);

/// The nodes of the tree that a round grows.
struct Grown<'a> {
    made: HashMap<(u8, u64), Digest>,
    old: TileReader<'a, Tiles>,
}

impl NodeSource for Grown<'_> {
    type Error = TileError<String>;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Self::Error> {
        match self.made.get(&(level, index)) {
            Some(hash) => Ok(*hash),
            None => self.old.node(level, index),
        }
    }
}

impl Log {
    /// Gives the leaves that wait their places, signs the tree and publishes it.
    pub(super) fn sequence(&mut self) -> Result<Round, LogError> {
        let waiting = self.database.waiting(ROUND_LEAVES_MAX)?;
        let old = self.database.tree()?;
        if let Some(reason) = &old.frozen {
            return Err(LogError::Frozen { reason: reason.clone() });
        }
        if waiting.is_empty() {
            return Ok(Round { leaves: 0, size: old.head.size });
        }
        let leaves = accept(&waiting, &self.database.writers()?, self.key.admin.public())?;
        let (head, mut files) = grow(&self.places.tiles(), &old, &leaves)?;
        let note = sign(&self.key.notes, &old.origin, head)?;
        files.push((CHECKPOINT_FILE.to_owned(), note.clone().into_bytes()));
        let moved = self.database.write(|transaction| {
            // Anyone who else signed since has another tree standing here.
            let moved = transaction.execute(
                "UPDATE tree SET size = ?1, root = ?2, note = ?3 WHERE size = ?4 AND root = ?5 AND frozen IS NULL",
                params![signed(head.size), head.root.0, note, signed(old.head.size), old.head.root.0],
            )?;
            if moved != 1 {
                return Ok(false);
            }
            for (leaf, position) in waiting.iter().zip(old.head.size..) {
                transaction
                    .prepare_cached("UPDATE leaves SET position = ?2, leaf = NULL WHERE number = ?1")?
                    .execute(params![leaf.number, signed(position)])?;
            }
            for (path, bytes) in &files {
                transaction
                    .prepare_cached("INSERT INTO staged (path, bytes) VALUES (?1, ?2)")?
                    .execute(params![path, bytes])?;
            }
            Ok(true)
        })?;
        if !moved {
            return Err(LogError::LockMoved);
        }
        self.publish()?;
        Ok(Round { leaves: waiting.len() as u64, size: head.size })
    }

    /// Publishes what is staged: tiles first, the checkpoint that refers to them last.
    pub(super) fn publish(&mut self) -> Result<(), LogError> {
        let staged = self.database.staged()?;
        if staged.is_empty() {
            return Ok(());
        }
        for (path, bytes) in staged.iter().filter(|(path, _)| path != CHECKPOINT_FILE) {
            let tile: TileId = path.parse().map_err(LogError::tiles)?;
            put_tile(&self.places.public, tile, bytes)?;
        }
        for (_, bytes) in staged.iter().filter(|(path, _)| path == CHECKPOINT_FILE) {
            put(&self.places.checkpoint(), bytes, 0o644)?;
        }
        self.database.write(|transaction| transaction.execute("DELETE FROM staged", []).map(drop))
    }
}

/// Signs a tree.
pub(super) fn sign(
    key: &portcullis_proof::log::NoteSigner,
    origin: &str,
    head: TreeHead,
) -> Result<String, LogError> {
    let checkpoint = Checkpoint::new(origin, head).map_err(LogError::tiles)?;
    checkpoint.sign(&[key]).map_err(LogError::tiles)
}

/// Checks that each leaf that waits is signed by a writer whose signatures count, or by the log's key.
fn accept(
    waiting: &[WaitingLeaf],
    writers: &[WriterRow],
    admin: [u8; 32],
) -> Result<Vec<SignedLeaf>, LogError> {
    let refused = |message: String| LogError::LeafRefused { message };
    let keys: HashMap<KeyId, [u8; 32]> = writers
        .iter()
        .map(|writer| (writer.key, writer.public))
        .chain([(portcullis_proof::log::leaf::key_id(&admin), admin)])
        .collect();
    let revoked = |key: KeyId| writers.iter().any(|row| row.key == key && row.state == WriterState::Revoked);
    waiting
        .iter()
        .map(|waiting| {
            let leaf = SignedLeaf::parse(&waiting.bytes).map_err(|error| refused(error.to_string()))?;
            let signer = leaf.leaf.signer();
            let public = keys.get(&signer).filter(|_| !revoked(signer));
            let public =
                public.ok_or_else(|| refused(format!("`{signer}` was not enrolled, or was revoked")))?;
            leaf.verify(public).map_err(|_| refused(format!("the signature of `{signer}` does not hold")))?;
            Ok(leaf)
        })
        .collect()
}

/// The tree after the leaves, and the tiles that change.
fn grow(
    tiles: &Tiles,
    old: &SignedTree,
    leaves: &[SignedLeaf],
) -> Result<(TreeHead, Vec<StagedFile>), LogError> {
    let mut grown = Grown { made: HashMap::new(), old: TileReader::new(tiles, old.head) };
    let mut range = CompactRange::load(&grown.old, old.head.size).map_err(LogError::tiles)?;
    if range.head() != old.head {
        return Err(LogError::Tiles {
            message: format!("their root of {} leaves is not the one that was signed", old.head.size),
        });
    }
    for leaf in leaves {
        let made = &mut grown.made;
        range
            .push_with(leaf.hash(), |level, index, hash| {
                made.insert((level, index), hash);
            })
            .map_err(LogError::tiles)?;
    }
    let head = range.head();
    let mut files = Vec::new();
    for tile in tiles_to_write(old.head.size, head.size) {
        let bytes = match tile_bytes(&grown, tile).map_err(LogError::tiles)? {
            Some(hashes) => hashes,
            None => bundle(tiles, old.head.size, leaves, tile)?,
        };
        files.push((tile.to_string(), bytes));
    }
    Ok((head, files))
}

/// A tile of leaves: those that are published already, then the new ones.
fn bundle(tiles: &Tiles, old: u64, leaves: &[SignedLeaf], tile: TileId) -> Result<Vec<u8>, LogError> {
    let first = tile.index().saturating_mul(WIDTH);
    let published = match TileId::in_tree(TileKind::Entries, tile.index(), old) {
        Some(before) => Some((tiles.tile(before).map_err(LogError::tiles)?, before.width())),
        None => None,
    };
    let mut entries: Vec<&[u8]> = match &published {
        Some((bytes, width)) => read_bundle(bytes, *width).map_err(LogError::tiles)?,
        None => Vec::new(),
    };
    let next = first + entries.len() as u64;
    let skip = usize::try_from(next.saturating_sub(old)).unwrap_or(usize::MAX);
    let room = usize::from(tile.width()).saturating_sub(entries.len());
    entries.extend(leaves.iter().skip(skip).take(room).map(SignedLeaf::bytes));
    bundle_bytes(&entries).map_err(LogError::tiles)
}

/// Puts a tile out. A full one never changes; once it is there, the partial ones before it are not needed.
fn put_tile(public: &Path, tile: TileId, bytes: &[u8]) -> Result<(), LogError> {
    let path = public.join(tile.to_string());
    let full = tile == tile.full();
    if full && fs::read(&path).is_ok_and(|there| there != bytes) {
        return Err(LogError::Tiles { message: format!("`{tile}` is full and holds something else") });
    }
    put(&path, bytes, 0o644)?;
    if full {
        let mut partial = path.into_os_string();
        partial.push(".p");
        match fs::remove_dir_all(Path::new(&partial)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LogError::io(Path::new(&partial), "remove", &error));
            }
            _ => {}
        }
    }
    Ok(())
}
