//! Tiles are named and filled as the format says, and what is read from them is in the tree or refused.

use std::collections::BTreeMap;

use portcullis_proof::log::tile::{TILE_WIDTH, bundle_bytes, read_bundle, tile_bytes, tiles_to_write};
use portcullis_proof::log::tree::{prove_consistency, prove_inclusion};
use portcullis_proof::log::{TileError, TileId, TileKind, TileReader, TileSource, TreeHead};
use proptest::prelude::*;

use super::oracle::{Nodes, entry, grow};

/// A log's files.
#[derive(Default)]
struct Files(BTreeMap<String, Vec<u8>>);

impl TileSource for Files {
    type Error = String;

    fn tile(&self, tile: TileId) -> Result<Vec<u8>, String> {
        let found = self.0.get(&tile.to_string()).or_else(|| self.0.get(&tile.full().to_string()));
        found.cloned().ok_or_else(|| "not found".to_owned())
    }
}

impl Files {
    /// Writes what a log writes when its tree grows.
    fn write(&mut self, nodes: &Nodes, old: u64, new: u64) {
        for tile in tiles_to_write(old, new) {
            let bytes = match tile.kind() {
                TileKind::Hashes { .. } => tile_bytes(nodes, tile).unwrap().unwrap(),
                TileKind::Entries => {
                    let first = tile.index() * u64::from(TILE_WIDTH);
                    let entries: Vec<_> = (first..first + u64::from(tile.width())).map(entry).collect();
                    bundle_bytes(&entries).unwrap()
                }
            };
            self.0.insert(tile.to_string(), bytes);
        }
    }
}

#[test]
fn paths_are_those_of_the_format() {
    let hashes = |level, index, width| TileId::new(TileKind::Hashes { level }, index, width).unwrap();
    for (tile, path) in [
        (hashes(0, 1_234_067, 256), "tile/0/x001/x234/067"),
        (hashes(0, 0, 256), "tile/0/000"),
        (hashes(3, 999, 1), "tile/3/999.p/1"),
        (hashes(63, 1000, 255), "tile/63/x001/000.p/255"),
        (TileId::new(TileKind::Entries, 273, 112).unwrap(), "tile/entries/273.p/112"),
        (hashes(0, u64::MAX, 256), "tile/0/x018/x446/x744/x073/x709/x551/615"),
    ] {
        assert_eq!(tile.to_string(), path);
        assert_eq!(path.parse(), Ok(tile));
    }
    for wrong in [
        "",
        "tile",
        "tile/0",
        "tile/0/",
        "tile/0/0",
        "tile/0/00",
        "tile/0/0000",
        "tile/00/000",
        "tile/64/000",
        "tile/-1/000",
        "tile/0/x000/000",
        "tile/0/x001",
        "tile/0/001/000",
        "tile/0/x001/x000",
        "tile/0/xx01/000",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/",
        "tile/0/000.p",
        "tile/0/000/",
        "tile/8/0/x001/171.p/230",
        "tile/data/000",
        "tile/entries/000.p/300",
        "/tile/0/000",
        "tile/0/٣٣٣",
        "tile/0/x018/x446/x744/x073/x709/x551/616",
        "tile/0/x001/x018/x446/x744/x073/x709/x551/615",
    ] {
        assert!(wrong.parse::<TileId>().is_err(), "{wrong}");
    }
    assert_eq!(TileId::new(TileKind::Entries, 0, 0), None);
    assert_eq!(TileId::new(TileKind::Hashes { level: 64 }, 0, 1), None);
}

#[test]
fn a_tree_of_seventy_thousand_has_the_tiles_of_the_example() {
    let tiles: Vec<TileId> = tiles_to_write(0, 70_000).collect();
    let count = |kind, full: bool| {
        tiles.iter().filter(|tile| tile.kind() == kind && (tile.width() == TILE_WIDTH) == full).count()
    };
    let hashes = |level| TileKind::Hashes { level };
    assert_eq!((count(TileKind::Entries, true), count(TileKind::Entries, false)), (273, 1));
    assert_eq!((count(hashes(0), true), count(hashes(0), false)), (273, 1));
    assert_eq!((count(hashes(1), true), count(hashes(1), false)), (1, 1));
    assert_eq!((count(hashes(2), true), count(hashes(2), false)), (0, 1));
    let width = |kind, index| TileId::in_tree(kind, index, 70_000).map(|tile| tile.width());
    assert_eq!(
        (width(hashes(0), 273), width(hashes(1), 1), width(hashes(2), 0)),
        (Some(112), Some(17), Some(1))
    );
    assert_eq!((width(hashes(0), 274), width(hashes(3), 0)), (None, None));
}

#[test]
fn the_same_tiles_are_written_as_by_others() {
    for (old, new) in
        [(0, 1), (0, 255), (0, 256), (1, 256), (255, 257), (256, 256), (300, 70_000), (65_535, 65_537)]
    {
        let mut ours: Vec<(u8, u64, u32)> = tiles_to_write(old, new)
            .filter_map(|tile| match tile.kind() {
                TileKind::Hashes { level } => Some((level, tile.index(), u32::from(tile.width()))),
                TileKind::Entries => None,
            })
            .collect();
        let mut theirs: Vec<(u8, u64, u32)> = tlog_tiles::Tile::new_tiles(8, old, new)
            .iter()
            .map(|tile| (tile.level(), tile.level_index(), tile.width()))
            .collect();
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "{old} to {new}");
    }
}

#[test]
fn leaves_and_proofs_are_read_from_tiles() {
    let sizes = [1, 2, 100, 255, 256, 257, 600, 66_000];
    let (nodes, heads) = grow(66_000);
    let mut files = Files::default();
    let mut written = 0;
    for size in sizes {
        files.write(&nodes, written, size);
        written = size;
        let reader = TileReader::new(&files, heads[size as usize]);
        reader.check_root().unwrap();
        for index in
            [0, 1, 99, 254, 255, 256, 300, 599, 65_535, 65_999].into_iter().filter(|index| *index < size)
        {
            let leaf = reader.leaf(index).unwrap();
            assert_eq!(leaf.entry, entry(index));
            assert_eq!(leaf.path, prove_inclusion(&nodes, index, size).unwrap().unwrap());
        }
        for old in sizes.into_iter().filter(|old| *old <= size) {
            assert_eq!(
                reader.consistency(old).unwrap(),
                prove_consistency(&nodes, old, size).unwrap().unwrap()
            );
        }
        assert_eq!(reader.leaf(size), Err(TileError::Outside { size }));
        assert_eq!(reader.consistency(size + 1), Err(TileError::Outside { size }));
    }
    // Partial tiles may be gone once full ones are there.
    files
        .0
        .retain(|path, _| !path.contains(".p/") || path.starts_with("tile/0/257.p/") || path.contains("66"));
    assert_eq!(TileReader::new(&files, heads[100]).leaf(7).unwrap().entry, entry(7));
}

/// Leaves in and beside the tiles that are changed.
fn looked_at() -> impl Iterator<Item = u64> {
    [0, 699].into_iter().chain(255..262).chain(511..513)
}

#[test]
fn changed_tiles_are_refused() {
    let (nodes, heads) = grow(700);
    let mut files = Files::default();
    files.write(&nodes, 0, 700);
    for path in ["tile/0/001", "tile/1/000.p/2", "tile/0/002.p/188", "tile/entries/001"] {
        let original = files.0[path].clone();
        let mut refused = 0;
        for byte in [0, 33, 40, original.len() - 1].into_iter().filter(|byte| *byte < original.len()) {
            let mut changed = original.clone();
            changed[byte] ^= 1;
            files.0.insert(path.to_owned(), changed);
            let reader = TileReader::new(&files, heads[700]);
            refused += u32::from(looked_at().any(|index| reader.leaf(index).is_err()));
        }
        assert_eq!(refused, 4, "{path}");
        files.0.insert(path.to_owned(), original[..original.len() - 1].to_vec());
        let reader = TileReader::new(&files, heads[700]);
        assert!(
            looked_at().any(|index| matches!(reader.leaf(index), Err(TileError::Malformed { .. }))),
            "{path}"
        );
        files.0.remove(path);
        let reader = TileReader::new(&files, heads[700]);
        assert!(
            looked_at().any(|index| matches!(reader.leaf(index), Err(TileError::Source { .. }))),
            "{path}"
        );
        files.0.insert(path.to_owned(), original);
    }
    let other = TreeHead { size: 700, root: heads[699].root };
    let reader = TileReader::new(&files, other);
    assert!(matches!(reader.check_root(), Err(TileError::Proof(_))));
    assert!(matches!(reader.leaf(3), Err(TileError::Proof(_))));
}

#[test]
fn bundles_are_bounded() {
    assert_eq!(bundle_bytes::<&[u8]>(&[]).unwrap_err().message, "0 leaves; a bundle has 1 to 256");
    assert!(bundle_bytes(&[vec![0; 65_536]]).unwrap_err().message.contains("65536 bytes"));
    assert!(bundle_bytes(&vec![[0u8]; 257]).is_err());
    assert_eq!(bundle_bytes(&[vec![0; 65_535]]).unwrap().len(), 65_537);
    assert_eq!(read_bundle(b"\0\x01a\0", 2).unwrap_err().byte, 3);
    assert_eq!(read_bundle(b"\0\x01a", 2).unwrap_err().message, "1 leaves, where 2 belong");
    assert!(read_bundle(&[0; 514], 3).unwrap_err().message.contains("more than 256"));
}

proptest! {
    #[test]
    fn bundles_round_trip(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)) {
        let bytes = bundle_bytes(&entries).unwrap();
        let width = entries.len() as u16;
        prop_assert_eq!(read_bundle(&bytes, width).unwrap(), entries);
        prop_assert!(read_bundle(&bytes, width + 1).is_err());
    }

    #[test]
    fn any_bundle_that_is_read_is_written_the_same(bytes in prop::collection::vec(0u8..3, 0..60)) {
        for width in 1..=20 {
            if let Ok(entries) = read_bundle(&bytes, width) {
                prop_assert_eq!(bundle_bytes(&entries).unwrap(), bytes.clone());
            }
        }
    }

    #[test]
    fn tile_paths_round_trip(level in 0u8..=64, index in any::<u64>(), shift in 0u32..64, width in 0u16..300) {
        let kind = if level == 64 { TileKind::Entries } else { TileKind::Hashes { level } };
        if let Some(tile) = TileId::new(kind, index >> shift, width) {
            prop_assert_eq!(tile.to_string().parse(), Ok(tile));
        }
    }

    #[test]
    fn any_tile_path_that_is_read_is_written_the_same(path in "tile/(entries|[0-9]{1,2})/(x[0-9]{3}/){0,3}[0-9]{3}(\\.p/[0-9]{1,3})?") {
        if let Ok(tile) = path.parse::<TileId>() {
            prop_assert_eq!(tile.to_string(), path);
        }
    }
}
