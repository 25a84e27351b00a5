//! The check of a whole log: every published byte is derived again, and every head is held against the ledger.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use portcullis_core::id::RunId;
use portcullis_proof::Digest;
use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::tile::{TILE_WIDTH, bundle_bytes, read_bundle, tile_bytes, tiles_to_write};
use portcullis_proof::log::{
    CompactRange, Leaf, Monitor, NodeSource, Note, RunHead, TileId, TileKind, TileSource as _, VerifierKey,
};

use super::database::Database;
use super::error::LogError;
use super::evidence::checkpoint_of;
use super::folder::{LogPlaces, Tiles};
use super::{CHECKPOINT_FILE, heads};
use crate::ledger::Reader;

/// The most problems that are named.
const PROBLEMS_MAX: usize = 100;

/// How often what looks wrong is looked at again while it changes, and after how long: a round writes its files within
/// milliseconds, on a busy machine within a few hundred.
const AGAIN_MAX: u32 = 5;
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What a check of the log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCheck {
    /// Leaves of the tree.
    pub leaves: u64,
    /// Heads that were held against the ledger.
    pub heads: u64,
    /// Tiles whose bytes were derived again.
    pub tiles: u64,
    /// Segments without end in the log.
    pub open: u64,
    /// What is wrong, at most 100 problems. Empty when all is well.
    pub problems: Vec<String>,
}

impl LogCheck {
    fn problem(&mut self, problem: impl std::fmt::Display) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem.to_string());
        }
    }
}

/// Checks the log of a store. Reads every tile, and the ledger where heads speak of it. A daemon may go on with the log
/// meanwhile: what looks wrong is looked at again, because it may have been in the middle of a round.
///
/// # Errors
/// When there is no log, or its database or the ledger cannot be read.
pub fn check(places: &LogPlaces, key: &VerifierKey) -> Result<LogCheck, LogError> {
    let mut found = check_once(places, key)?;
    for _ in 0..AGAIN_MAX {
        if found.problems.is_empty() {
            break;
        }
        std::thread::sleep(AGAIN_AFTER);
        let again = check_once(places, key)?;
        if again == found {
            break;
        }
        found = again;
    }
    Ok(found)
}

fn check_once(places: &LogPlaces, key: &VerifierKey) -> Result<LogCheck, LogError> {
    let database = Database::open(places, false)?;
    let database = database.ok_or_else(|| LogError::NoLog { folder: places.database.clone() })?;
    let ledger = places.store.reader()?;
    let tree = database.tree()?;
    let mut found = LogCheck { leaves: tree.head.size, ..LogCheck::default() };
    let signed = Note::parse(tree.note.as_bytes())
        .map_err(|error| error.to_string())
        .and_then(|note| note.verify([key]).map(drop).map_err(|error| error.to_string()));
    if let Err(error) = signed {
        found.problem(format!("the checkpoint that the log remembers: {error}"));
    }
    if checkpoint_of(&tree.note)?.head() != tree.head {
        found.problem("the checkpoint that the log remembers is of another tree than its row");
    }
    published(places, tree.head.size, tree.head.root, &mut found);
    if !database.staged()?.is_empty() {
        found.problem(
            "files of the last round are staged and not published; starting the daemon publishes them",
        );
    }
    let entries = read_entries(&places.tiles(), tree.head.size, &mut found);
    derive(places, &entries, tree.head.root, &mut found)?;
    follow(ledger.as_ref(), &tree.origin, key, &entries, &mut found)?;
    Ok(found)
}

fn published(places: &LogPlaces, size: u64, root: Digest, found: &mut LogCheck) {
    match places.published() {
        Ok(Some((_, checkpoint))) if checkpoint.size() == size && checkpoint.root() == root => {}
        Ok(Some((_, checkpoint))) if checkpoint.size() < size => {}
        Ok(Some((_, checkpoint))) => {
            let size = checkpoint.size();
            found.problem(format!(
                "the published checkpoint, of {size} leaves, is not of a tree that the log signed"
            ));
        }
        Ok(None) => found.problem(format!("`{}` is missing", places.checkpoint().display())),
        Err(error) => found.problem(error),
    }
}

/// The leaves as the bundles hold them.
fn read_entries(tiles: &Tiles, size: u64, found: &mut LogCheck) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for index in 0..size.div_ceil(u64::from(TILE_WIDTH)) {
        let Some(tile) = TileId::in_tree(TileKind::Entries, index, size) else { continue };
        let bytes = match tiles.tile(tile) {
            Ok(bytes) => bytes,
            Err(error) => {
                found.problem(format!("`{tile}`: {error}"));
                return entries;
            }
        };
        match read_bundle(&bytes, tile.width()) {
            Ok(read) => entries.extend(read.into_iter().map(<[u8]>::to_vec)),
            Err(error) => {
                found.problem(format!("`{tile}`: {error}"));
                return entries;
            }
        }
    }
    entries
}

/// The nodes of the tree that the bundles make.
struct Derived(HashMap<(u8, u64), Digest>);

impl NodeSource for Derived {
    type Error = ();

    fn node(&self, level: u8, index: u64) -> Result<Digest, ()> {
        self.0.get(&(level, index)).copied().ok_or(())
    }
}

/// Makes the tree again from the leaves, and compares root and tiles.
fn derive(
    places: &LogPlaces,
    entries: &[Vec<u8>],
    root: Digest,
    found: &mut LogCheck,
) -> Result<(), LogError> {
    let mut range = CompactRange::new();
    let mut derived = Derived(HashMap::new());
    for entry in entries {
        let hash = portcullis_proof::log::leaf_hash(entry);
        range
            .push_with(hash, |level, index, hash| {
                derived.0.insert((level, index), hash);
            })
            .map_err(LogError::tiles)?;
    }
    if range.head().root != root {
        found.problem(format!(
            "the leaves lead to another root than the log signed over {} leaves",
            found.leaves
        ));
    }
    let (tiles, mut expected) = (places.tiles(), BTreeSet::new());
    for tile in tiles_to_write(0, range.size()) {
        let bytes = match tile_bytes(&derived, tile) {
            Ok(Some(hashes)) => Some(hashes),
            Ok(None) => bundle_of(entries, tile),
            Err(()) => None,
        };
        match (tiles.tile(tile), bytes) {
            (Ok(there), Some(bytes)) if there.starts_with(&bytes) => found.tiles += 1,
            (Ok(_), _) => found.problem(format!("`{tile}` does not match the leaves")),
            (Err(error), _) => found.problem(format!("`{tile}`: {error}")),
        }
        expected.insert(tile);
    }
    strangers(&places.public, &expected, found);
    Ok(())
}

fn bundle_of(entries: &[Vec<u8>], tile: TileId) -> Option<Vec<u8>> {
    let first = usize::try_from(tile.index().checked_mul(u64::from(TILE_WIDTH))?).ok()?;
    let until = first.checked_add(usize::from(tile.width()))?;
    bundle_bytes(entries.get(first..until)?).ok()
}

/// Files in the public folder that belong to no tree. Older partial tiles do belong.
fn strangers(public: &Path, expected: &BTreeSet<TileId>, found: &mut LogCheck) {
    let mut folders = vec![public.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(public).unwrap_or(&path).to_string_lossy().into_owned();
            let known = name.parse::<TileId>().is_ok_and(|tile| {
                expected.iter().any(|known| {
                    known.kind() == tile.kind()
                        && known.index() == tile.index()
                        && tile.width() <= known.width()
                })
            });
            if !known && name != CHECKPOINT_FILE && !name.ends_with(".policy") {
                found.problem(format!("`{name}` is not a file of the log"));
            }
        }
    }
}

/// Reads the leaves as a monitor does, and holds each head against the ledger.
fn follow(
    ledger: &dyn Reader,
    origin: &str,
    key: &VerifierKey,
    entries: &[Vec<u8>],
    found: &mut LogCheck,
) -> Result<(), LogError> {
    let mut monitor = Monitor::new(origin, vec![key.clone()]);
    for (index, entry) in entries.iter().enumerate() {
        let alerts = monitor.read(entry).map_err(|_| LogError::OverLimit {
            what: "heads that a check follows",
            limit: portcullis_proof::log::monitor::MONITOR_HEADS_MAX as u64,
        })?;
        for alert in alerts {
            found.problem(format!("leaf {index}: {}", alert.message));
        }
        if let Ok(SignedLeaf { leaf: Leaf::Head(head), .. }) = SignedLeaf::parse(entry) {
            if let Some(problem) = contradicts(ledger, &head)? {
                let run = RunId::from_bytes(head.run.0);
                found.problem(format!("leaf {index}: run {run}: {problem}"));
            }
            found.heads += 1;
        }
    }
    for missing in monitor.missing() {
        found.problem(format!("number {} of writer {} was skipped", missing.run_no, missing.writer));
    }
    found.open = monitor.open().count() as u64;
    Ok(())
}

/// What the ledger says against a head.
fn contradicts(ledger: &dyn Reader, head: &RunHead) -> Result<Option<String>, LogError> {
    let link = ledger.link_at(heads::segment_id(head.segment), head.count)?;
    Ok(match link {
        None => Some(format!("the store does not have its segment {}", heads::segment_id(head.segment))),
        Some(None) => Some(format!("the store does not have its event {}", head.count)),
        Some(Some(link)) if link != head.link => {
            Some(format!("event {} has a different link in the store than in the log", head.count))
        }
        Some(Some(_)) => None,
    })
}
