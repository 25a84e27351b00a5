//! The published files, read by an implementation of others: what it makes of them has to be the signed tree.

use std::fs;

use portcullis_ledger::log::{Log, LogPlaces};
use portcullis_proof::log::tile::read_bundle;
use portcullis_proof::log::{TileId, TileKind};
use tlog_tiles::{Error, Hash, Tile, TileHashReader, TileReader};

use crate::log::{Place, closed};
use crate::sample::open;

/// Their reader on our files. Their crate names tiles otherwise, so each is asked for by its numbers.
struct Files(LogPlaces);

impl TileReader for Files {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |tile: &Tile| {
            let kind = TileKind::Hashes { level: tile.level() };
            let id = TileId::new(kind, tile.level_index(), tile.width() as u16).unwrap();
            fs::read(self.0.public.join(id.to_string())).unwrap()
        };
        Ok(tiles.iter().map(read).collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

#[test]
fn others_read_every_leaf_of_the_published_files() {
    let place = Place::new();
    let ledger = open(&place.ledger());
    let mut log = Log::open(&place.places()).unwrap();
    let mut before: Option<(u64, Hash)> = None;
    let mut read = 0;
    // Past the first full tile, and past the second.
    for runs in [1, 100, 40, 160] {
        for _ in 0..runs {
            closed(&ledger);
        }
        log.round().unwrap();
        let (_, checkpoint) = place.places().published().unwrap().unwrap();
        let (size, root) = (checkpoint.size(), Hash(checkpoint.root().0));
        let files = Files(place.places());
        // Whatever it hands out, this reader has held against the root.
        let tree = TileHashReader::new(size, root, &files);
        assert_eq!(tlog_tiles::tree_hash(size, &tree).unwrap(), root);
        if let Some((old, old_root)) = before.replace((size, root)) {
            let proof = tlog_tiles::prove_tree(size, old, &tree).unwrap();
            tlog_tiles::check_tree(&proof, size, root, old, old_root).unwrap();
        }
        for bundle in 0..size.div_ceil(256) {
            let id = TileId::in_tree(TileKind::Entries, bundle, size).unwrap();
            let bytes = fs::read(place.places().public.join(id.to_string())).unwrap();
            for (leaf, index) in read_bundle(&bytes, id.width()).unwrap().iter().zip(bundle * 256..) {
                let proof = tlog_tiles::prove_record(size, index, &tree).unwrap();
                tlog_tiles::check_record(&proof, size, root, index, tlog_tiles::record_hash(leaf)).unwrap();
                read += 1;
            }
        }
    }
    assert_eq!(read, 3 + 203 + 283 + 603);
}
