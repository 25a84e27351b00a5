//! The vectors of the three pages on the log: encodings and hashes, and whole exports with the answer that every
//! verifier must give.
//!
//! A change in a vector is a new version of the format. `UPDATE_VECTORS=1` writes the file anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use portcullis_proof::chain::hex_text;
use portcullis_proof::log::leaf::{SignedLeaf, key_id};
use portcullis_proof::log::tree::{prove_consistency, prove_inclusion};
use portcullis_proof::log::{Checkpoint, KeyKind, Leaf, LogAttack, TileId, TileKind};
use portcullis_proof::{Digest, Id, Status};
use serde::{Deserialize, Serialize};

use super::notes::{head, signer};
use super::oracle::{entry, grow};
use super::verdicts::cases::{cases, honest, revoke};
use super::world::{WRITER, leaf_key};
use crate::sample::ORIGIN;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    format: String,
    /// Entry `i` of every tree is the text `leaf <i>`.
    trees: Vec<Tree>,
    inclusion: Vec<Inclusion>,
    consistency: Vec<Consistency>,
    tiles: Vec<Tile>,
    keys: Vec<Key>,
    notes: Vec<Signed>,
    leaves: Vec<LeafVector>,
    /// What the verdicts speak of, by number: text, or hexadecimal.
    files: Vec<Content>,
    verdicts: Vec<Verdict>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    size: u64,
    root: Digest,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Inclusion {
    index: u64,
    size: u64,
    path: Vec<Digest>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Consistency {
    old: u64,
    new: u64,
    path: Vec<Digest>,
}

/// The path of a tile; no level for a bundle of entries.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tile {
    level: Option<u8>,
    index: u64,
    width: u16,
    path: String,
}

/// A key of an Ed25519 seed whose bytes are all the same.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Key {
    seed_byte: u8,
    vkey: String,
    key_id_in_leaves: Digest,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Signed {
    text: String,
    seed_byte: u8,
    vkey: String,
    time: Option<u64>,
    line: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LeafVector {
    kind: String,
    seed_byte: u8,
    hex: String,
    hash: Digest,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    Text(String),
    Hex(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Verdict {
    name: String,
    what: String,
    policy: usize,
    origin: String,
    run: Id,
    segments: Vec<Segment>,
    /// Leaf and proof, each with its name and its file.
    leaves: Vec<[(String, usize); 2]>,
    consistency: Vec<(String, usize)>,
    status: Status,
    exit_code: u8,
    attack: Option<LogAttack>,
    file: Option<String>,
    line: Option<u64>,
    byte: Option<u64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Segment {
    segment: Id,
    parent_segment: Option<Id>,
    parent_link: Option<Digest>,
    state: String,
    start: u64,
    end: u64,
    /// The link after each event, and after none.
    links: BTreeMap<u64, Digest>,
}

#[test]
fn every_vector_is_as_it_was() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/transparency-log/vectors.json");
    let vectors = generate();
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&vectors).unwrap())).unwrap();
    }
    let committed: Vectors = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(committed == vectors, "a vector changed: that is a new version of the format");
}

fn generate() -> Vectors {
    let (nodes, heads) = grow(300);
    let inclusion = [
        (0, 1),
        (0, 2),
        (1, 2),
        (2, 3),
        (5, 7),
        (6, 7),
        (0, 8),
        (255, 256),
        (255, 257),
        (256, 257),
        (299, 300),
    ];
    let consistency = [(1, 2), (2, 3), (3, 7), (4, 7), (6, 8), (8, 8), (255, 256), (256, 257), (100, 300)];
    let mut files = Files::default();
    let verdicts = cases().iter().map(|case| verdict(&mut files, case)).collect();
    assert_eq!(entry(7), b"leaf 7");
    Vectors {
        format: "portcullis-log-vectors/v1".to_owned(),
        trees: (0..=8).chain(255..=257).map(|size| Tree { size, root: heads[size as usize].root }).collect(),
        inclusion: inclusion
            .into_iter()
            .map(|(index, size)| Inclusion {
                index,
                size,
                path: prove_inclusion(&nodes, index, size).unwrap().unwrap(),
            })
            .collect(),
        consistency: consistency
            .into_iter()
            .map(|(old, new)| Consistency {
                old,
                new,
                path: prove_consistency(&nodes, old, new).unwrap().unwrap(),
            })
            .collect(),
        tiles: tiles(),
        keys: [(1, KeyKind::Ed25519), (0x41, KeyKind::Cosignature)]
            .into_iter()
            .map(|(seed, kind)| {
                let key = signer(ORIGIN, kind, seed);
                let key = key.verifier();
                Key { seed_byte: seed, vkey: key.to_string(), key_id_in_leaves: key_id(key.public()) }
            })
            .collect(),
        notes: notes(),
        leaves: leaves(),
        files: files.contents,
        verdicts,
    }
}

fn tiles() -> Vec<Tile> {
    let tiles = [
        (Some(0), 0, 256),
        (Some(1), 1_234_067, 256),
        (Some(2), 999, 1),
        (None, 273, 112),
        (None, 1000, 256),
    ];
    let path = |(level, index, width): (Option<u8>, u64, u16)| {
        let kind = level.map_or(TileKind::Entries, |level| TileKind::Hashes { level });
        Tile { level, index, width, path: TileId::new(kind, index, width).unwrap().to_string() }
    };
    tiles.into_iter().map(path).collect()
}

fn notes() -> Vec<Signed> {
    let checkpoint = Checkpoint::new(ORIGIN, head(7)).unwrap();
    let signed = |kind, seed_byte, time: Option<u64>| {
        let key = signer(ORIGIN, kind, seed_byte);
        let line = key.sign(&checkpoint.text(), time.unwrap_or(0)).unwrap();
        Signed { text: checkpoint.text(), seed_byte, vkey: key.verifier().to_string(), time, line }
    };
    vec![signed(KeyKind::Ed25519, 1, None), signed(KeyKind::Cosignature, 0x41, Some(1_800_000_000))]
}

fn leaves() -> Vec<LeafVector> {
    let (_, scene) = honest();
    let vector = |kind: &str, seed_byte, leaf: SignedLeaf| LeafVector {
        kind: kind.to_owned(),
        seed_byte,
        hex: hex_text(leaf.bytes()),
        hash: leaf.hash(),
    };
    let read = |place: usize| SignedLeaf::parse(&scene.leaves[place][0].1).unwrap();
    let writer = leaf_key(WRITER).id();
    let epoch = Leaf::Epoch { origin: ORIGIN.into(), writer, epoch: 1, runs: 7, last: Some(read(3).hash()) };
    vec![
        vector("enrol", 1, read(0)),
        vector("run-head open", WRITER, read(1)),
        vector("run-head progress", WRITER, read(2)),
        vector("run-head closed", WRITER, read(3)),
        vector("revoke", 1, revoke(WRITER, 1).sign(&leaf_key(1)).unwrap()),
        vector("epoch", WRITER, epoch.sign(&leaf_key(WRITER)).unwrap()),
    ]
}

/// Files by content, each once.
#[derive(Default)]
struct Files {
    contents: Vec<Content>,
    known: BTreeMap<Vec<u8>, usize>,
}

impl Files {
    fn number(&mut self, bytes: &[u8]) -> usize {
        let next = self.contents.len();
        let number = *self.known.entry(bytes.to_vec()).or_insert(next);
        if number == next {
            // A leaf has zero bytes, which no text has.
            self.contents.push(match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => Content::Text(text.to_owned()),
                _ => Content::Hex(hex_text(bytes)),
            });
        }
        number
    }
}

fn verdict(files: &mut Files, case: &super::verdicts::cases::Case) -> Verdict {
    let scene = &case.scene;
    let report = scene.judge();
    let segments = scene.run.segments.iter().map(|segment| {
        let mut links = segment.links.clone();
        links.extend([segment.start, segment.end].map(|head| (head.count, head.link)));
        Segment {
            segment: segment.segment,
            parent_segment: segment.parent.map(|parent| parent.segment),
            parent_link: segment.parent.map(|parent| parent.link),
            state: segment.state.as_str().to_owned(),
            start: segment.start.count,
            end: segment.end.count,
            links,
        }
    });
    let mut named = |(name, bytes): &(String, Vec<u8>)| (name.clone(), files.number(bytes));
    let leaves = scene.leaves.iter().map(|[leaf, proof]| [named(leaf), named(proof)]).collect();
    let consistency = scene.consistency.iter().map(&mut named).collect();
    Verdict {
        name: case.name.to_owned(),
        what: case.what.to_owned(),
        policy: files.number(scene.policy.as_bytes()),
        origin: scene.run.origin.to_owned(),
        run: scene.run.run,
        segments: segments.collect(),
        leaves,
        consistency,
        status: report.status,
        exit_code: report.exit_code(),
        attack: report.failure.as_ref().map(|failure| failure.attack),
        file: report.failure.as_ref().map(|failure| failure.file.clone()),
        line: report.failure.as_ref().and_then(|failure| failure.line),
        byte: report.failure.as_ref().map(|failure| failure.byte),
    }
}
