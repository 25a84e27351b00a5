//! Roots and proofs are those of two independent implementations, for every pair of sizes to 300 and around powers of
//! two; and no proof holds for anything else.

use std::collections::HashMap;
use std::convert::Infallible;

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use portcullis_proof::log::tree::{
    empty_root, prove_consistency, prove_inclusion, root, verify_consistency, verify_inclusion,
};
use portcullis_proof::log::{CompactRange, NodeSource, ProofError, TreeHead, leaf_hash};
use portcullis_proof::{Digest, Hex};
use sha2::Sha256;

/// The complete nodes of a tree, in memory.
#[derive(Default)]
pub(crate) struct Nodes(pub(crate) HashMap<(u8, u64), Digest>);

impl NodeSource for Nodes {
    type Error = Infallible;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Infallible> {
        Ok(self.0[&(level, index)])
    }
}

pub(crate) fn entry(index: u64) -> Vec<u8> {
    format!("leaf {index}").into_bytes()
}

/// The nodes of a tree, and the head of every tree that it grew through.
pub(crate) fn grow(size: u64) -> (Nodes, Vec<TreeHead>) {
    let (mut nodes, mut range) = (Nodes::default(), CompactRange::new());
    let mut heads = vec![range.head()];
    for index in 0..size {
        range
            .push_with(leaf_hash(&entry(index)), |level, index, hash| {
                assert_eq!(nodes.0.insert((level, index), hash), None);
            })
            .unwrap();
        heads.push(range.head());
    }
    (nodes, heads)
}

/// The second implementation: its own storage of the same leaves.
struct Stored(Vec<tlog_tiles::Hash>);

impl tlog_tiles::HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        Ok(indexes.iter().map(|index| self.0[*index as usize]).collect())
    }
}

fn stored(size: u64) -> Stored {
    let mut stored = Stored(Vec::new());
    for index in 0..size {
        let hashes = tlog_tiles::stored_hashes(index, &entry(index), &stored).unwrap();
        stored.0.extend(hashes);
    }
    stored
}

fn theirs(path: &[Digest]) -> Vec<tlog_tiles::Hash> {
    path.iter().map(|hash| tlog_tiles::Hash(hash.0)).collect()
}

fn ours(path: &[u8]) -> Vec<Digest> {
    path.chunks_exact(32).map(|hash| Hex(hash.try_into().unwrap())).collect()
}

/// All sizes to 300.
const DENSE: u64 = 300;

#[test]
fn roots_and_inclusion_proofs_are_those_of_others() {
    let (nodes, heads) = grow(DENSE);
    let stored = stored(DENSE);
    let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    assert_eq!(heads[0].root, empty_root());
    let mut proofs = 0;
    for size in 1..=DENSE {
        tree.push(entry(size - 1));
        let head = heads[size as usize];
        assert_eq!(head.root.0[..], tree.root().as_bytes()[..]);
        assert_eq!(head.root.0, tlog_tiles::tree_hash(size, &stored).unwrap().0);
        assert_eq!(Ok(head.root), root(&nodes, size));
        assert_eq!(CompactRange::load(&nodes, size).unwrap().head(), head);
        for index in 0..size {
            let path = prove_inclusion(&nodes, index, size).unwrap().unwrap();
            let proof = tree.prove_inclusion(index as usize);
            assert_eq!(path, ours(proof.as_bytes()), "{index} in {size}");
            assert_eq!(theirs(&path), tlog_tiles::prove_record(size, index, &stored).unwrap());
            verify_inclusion(leaf_hash(&entry(index)), index, size, head.root, &path).unwrap();
            proofs += 1;
        }
    }
    assert_eq!(proofs, DENSE * (DENSE + 1) / 2);
}

#[test]
fn consistency_proofs_are_those_of_others() {
    let (nodes, heads) = grow(DENSE);
    let stored = stored(DENSE);
    let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    for new in 1..=DENSE {
        tree.push(entry(new - 1));
        for old in 1..=new {
            let path = prove_consistency(&nodes, old, new).unwrap().unwrap();
            if old < new {
                let proof = tree.prove_consistency((new - old) as usize);
                assert_eq!(path, ours(proof.as_bytes()), "{old} to {new}");
                assert_eq!(theirs(&path), tlog_tiles::prove_tree(new, old, &stored).unwrap());
            }
            verify_consistency(heads[old as usize], heads[new as usize], &path).unwrap();
        }
        assert_eq!(prove_consistency(&nodes, 0, new), Ok(Some(Vec::new())));
        assert_eq!(verify_consistency(heads[0], heads[new as usize], &[]), Ok(()));
    }
}

/// Sizes around powers of two: 255, 256, 257, 511, ... 65,537.
fn around_powers() -> Vec<u64> {
    (8..=16u32)
        .flat_map(|power| [-1i64, 0, 1].map(|step| (1u64 << power).wrapping_add_signed(step)))
        .collect()
}

#[test]
fn large_trees_agree_too() {
    let sizes = around_powers();
    let largest = *sizes.last().unwrap();
    let (nodes, heads) = grow(largest);
    let stored = stored(largest);
    for new in &sizes {
        let head = heads[*new as usize];
        assert_eq!(head.root.0, tlog_tiles::tree_hash(*new, &stored).unwrap().0);
        for old in sizes.iter().filter(|old| *old <= new) {
            let path = prove_consistency(&nodes, *old, *new).unwrap().unwrap();
            assert_eq!(theirs(&path), tlog_tiles::prove_tree(*new, *old, &stored).unwrap());
            verify_consistency(heads[*old as usize], head, &path).unwrap();
            let index = old - 1;
            let path = prove_inclusion(&nodes, index, *new).unwrap().unwrap();
            assert_eq!(theirs(&path), tlog_tiles::prove_record(*new, index, &stored).unwrap());
            verify_inclusion(leaf_hash(&entry(index)), index, *new, head.root, &path).unwrap();
        }
    }
}

#[test]
fn no_inclusion_proof_holds_for_anything_else() {
    let (nodes, heads) = grow(40);
    for size in 1..=40u64 {
        let root = heads[size as usize].root;
        for index in 0..size {
            let leaf = leaf_hash(&entry(index));
            let path = prove_inclusion(&nodes, index, size).unwrap().unwrap();
            let holds =
                |leaf, index, size, path: &[Digest]| verify_inclusion(leaf, index, size, root, path).is_ok();
            for other in 0..44 {
                assert_eq!(holds(leaf, other, size, &path), other == index, "{index} as {other} in {size}");
                assert_eq!(holds(leaf_hash(&entry(other)), index, size, &path), other == index);
            }
            for place in 0..path.len() {
                let mut changed = path.clone();
                changed[place].0[31] ^= 1;
                assert!(!holds(leaf, index, size, &changed));
                changed.remove(place);
                assert!(!holds(leaf, index, size, &changed));
            }
            let longer = [&path[..], &[Hex([0; 32])]].concat();
            assert!(!holds(leaf, index, size, &longer), "padding with a zero hash");
            // A node of the tree offered as a leaf, with the part of its path that remains.
            if let Some((_, above)) = path.split_first() {
                let sibling = nodes.0.get(&(1, index / 2)).copied();
                assert!(!sibling.is_some_and(|node| holds(node, index / 2, size, above)));
            }
        }
    }
    // The root itself, with an empty proof, passes for the one leaf of a tree of one and for nothing else.
    let root = heads[8].root;
    assert_eq!(verify_inclusion(root, 0, 8, root, &[]), Err(ProofError::Length { expected: 3, found: 0 }));
    assert_eq!(verify_inclusion(root, 0, 0, root, &[]), Err(ProofError::OutsideTree { index: 0, size: 0 }));
    assert!(verify_inclusion(root, 0, u64::MAX, root, &[]).is_err());
}

#[test]
fn no_consistency_proof_holds_for_anything_else() {
    let (nodes, heads) = grow(40);
    for new in 1..=40u64 {
        for old in 1..=new {
            let path = prove_consistency(&nodes, old, new).unwrap().unwrap();
            let (first, second) = (heads[old as usize], heads[new as usize]);
            for place in 0..path.len() {
                let mut changed = path.clone();
                changed[place].0[0] ^= 0x80;
                assert!(verify_consistency(first, second, &changed).is_err());
                changed.remove(place);
                assert!(verify_consistency(first, second, &changed).is_err());
            }
            let longer = [&path[..], &[Hex([0; 32])]].concat();
            assert!(verify_consistency(first, second, &longer).is_err());
            let forked = TreeHead { root: Hex([7; 32]), ..second };
            assert!(verify_consistency(first, forked, &path).is_err());
            assert!(verify_consistency(TreeHead { root: Hex([7; 32]), ..first }, second, &path).is_err());
            assert_eq!(
                verify_consistency(TreeHead { size: new + 1, ..first }, second, &path),
                Err(ProofError::Sizes { old: new + 1, new })
            );
        }
    }
    let nothing = TreeHead { size: 0, root: Hex([1; 32]) };
    assert_eq!(verify_consistency(nothing, heads[3], &[]), Err(ProofError::OldRootDiffers));
    assert_eq!(verify_consistency(heads[0], nothing, &[]), Err(ProofError::RootDiffers));
    assert_eq!(prove_consistency(&nodes, 3, 2), Ok(None));
    assert_eq!(prove_inclusion(&nodes, 2, 2), Ok(None));
}
