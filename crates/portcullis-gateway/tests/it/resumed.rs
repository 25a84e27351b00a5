//! The monitor starts again: what it reads then, and what it believes of its own files.

use std::fs;
use std::path::Path;

use portcullis_gateway::monitor::{LogSource, Look, Watch};
use portcullis_proof::log::{KeyKind, NoteSigner};

use crate::lying::{ORIGIN, Served, Tree, Writer, honest, log_key, other_history};
use crate::monitor::{HOUR, START, kinds, options, trust, watch};

/// One look of a new process that keeps what it read.
fn look_and_keep(source: &LogSource, state: &Path, now: u64) -> Look {
    let mut watch = watch(Some(state));
    let look = watch.look(source, now);
    watch.remember().unwrap();
    assert!(watch.file_leaves().unwrap());
    look
}

#[test]
fn a_second_start_reads_what_is_new_and_judges_it_by_what_was_read_before() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("audit.state");
    let mut tree = Tree::default();
    let writer = Writer::enrolled(&mut tree);
    (0..400).for_each(|number| writer.run(&mut tree, number, true));
    // One goes on, and one number is passed over.
    writer.run(&mut tree, 401, false);
    let served = Served::start();
    let source = LogSource::at(&served.url()).unwrap();
    served.serve(tree.files());
    let look = look_and_keep(&source, &state, START);
    assert_eq!((kinds(&look).len(), look.leaves, look.missing, look.open), (0, 802, 1, 1), "{look:?}");
    let first = served.asked();
    assert!(first.contains(&"tile/entries/000".to_owned()) && first.len() == 7, "{first:?}");

    // Nothing is new: nothing but the checkpoint is read.
    let look = look_and_keep(&source, &state, START + 1);
    assert_eq!((kinds(&look).len(), look.leaves, look.missing, look.open), (0, 0, 1, 1), "{look:?}");
    assert_eq!(served.asked(), ["checkpoint"]);

    // Leaves that contradict what an earlier process read, and one that fills the hole.
    writer.run(&mut tree, 7, false);
    tree.leaves.push(tree.leaves[3].clone());
    let again = tree.leaves[802].clone();
    writer.run(&mut tree, 400, true);
    writer.run(&mut tree, 399, true);
    tree.leaves.push(again);
    served.serve(tree.files());
    let look = look_and_keep(&source, &state, START + 2);
    assert_eq!((look.leaves, look.missing, look.open), (7, 0, 1), "{look:?}");
    let one = Watch::open(options(trust("")), None).unwrap().look(&source, START + 2);
    assert_eq!(kinds(&look), kinds(&one), "as one that read it all at once");
    let asked = served.asked();
    let of_resumed: Vec<_> = asked.iter().take_while(|path| *path != "tile/entries/000").collect();
    let bundles: Vec<_> = of_resumed.iter().filter(|path| path.starts_with("tile/entries/")).collect();
    assert_eq!(bundles, [&"tile/entries/003.p/41"], "{of_resumed:?}");
    assert!(of_resumed.len() < 7, "{of_resumed:?}");
    // Deadlines go on from when the first process saw the leaf.
    let look = look_and_keep(&source, &state, START + 24 * HOUR);
    assert_eq!(kinds(&look), ["run-open"]);
    assert_eq!(served.asked(), ["checkpoint"]);
    // Without the file, everything is read again and nothing told twice.
    let leaves = folder.path().join("audit.state.leaves");
    fs::remove_file(&leaves).unwrap();
    let look = look_and_keep(&source, &state, START + 25 * HOUR);
    assert_eq!((kinds(&look).as_slice(), look.leaves), (&["run-open"][..], 0));
    assert!(served.asked().contains(&"tile/entries/000".to_owned()));
    // Another key may enrol now: all that was judged is judged again.
    let other = NoteSigner::from_seed(ORIGIN, KeyKind::Ed25519, &[9; 32]).unwrap();
    let policy = format!("quorum none\nadmin {}\nadmin {}\n", log_key().verifier(), other.verifier());
    let mut watch = Watch::open(options(trust(&policy)), Some(&state)).unwrap();
    assert_eq!((watch.look(&source, START).leaves, kinds(&look).len()), (0, 1));
    assert!(served.asked().contains(&"tile/entries/000".to_owned()));
}

#[test]
fn what_was_read_is_filed_now_and_then_by_a_monitor_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (state, leaves) = (folder.path().join("audit.state"), folder.path().join("audit.state.leaves"));
    let (served, tree) = (Served::start(), honest(400));
    let source = LogSource::at(&served.url()).unwrap();
    let mut watch = watch(Some(&state));
    let mut filed = Vec::new();
    for size in (0..800).step_by(25) {
        served.serve(tree.first(size).files());
        assert_eq!(kinds(&watch.look(&source, START)), [""; 0]);
        watch.remember().unwrap();
        let text = fs::read_to_string(&leaves).unwrap_or_default();
        if let Some((_, rest)) = text.split_once("\"size\":") {
            filed.push(rest.split(',').next().unwrap().parse::<u64>().unwrap());
        }
    }
    filed.dedup();
    assert_eq!(filed, [275, 550]);
    drop(watch);
    // A process that was killed in between reads on from there.
    served.asked();
    let look = look_and_keep(&source, &state, START);
    assert_eq!((kinds(&look).len(), look.leaves), (0, 0));
    assert!(!served.asked().iter().any(|path| ["tile/entries/000", "tile/entries/001"].contains(&&**path)));
}

#[test]
fn what_was_read_is_not_believed_where_it_is_damaged_or_of_another_history() {
    let folder = tempfile::tempdir().unwrap();
    let (state, leaves) = (folder.path().join("audit.state"), folder.path().join("audit.state.leaves"));
    let (served, tree) = (Served::start(), honest(60));
    let source = LogSource::at(&served.url()).unwrap();
    served.serve(tree.first(101).files());
    look_and_keep(&source, &state, START);
    let good = fs::read(&leaves).unwrap();
    let small = fs::read(&state).unwrap();
    let same = |small: &[u8], bytes: &[u8], expected: &str| {
        fs::write(&state, small).unwrap();
        fs::write(&leaves, bytes).unwrap();
        served.asked();
        let look = look_and_keep(&source, &state, START);
        assert_eq!(kinds(&look), ["state-unusable"], "{expected}: {look:?}");
        assert!(look.alerts[0].message.contains(expected), "{expected} in {look:?}");
        assert!(served.asked().contains(&"tile/entries/000.p/101".to_owned()), "all is read again");
        assert_eq!(kinds(&look_and_keep(&source, &state, START)), [""; 0], "told once, and put right");
        assert_eq!(fs::read(&leaves).unwrap(), good);
    };
    // Every byte counts; these stand for all of them.
    for place in (0..good.len()).step_by(good.len() / 40) {
        let mut damaged = good.clone();
        damaged[place] ^= 1;
        same(&small, &damaged, "damaged");
    }
    same(&small, &good[..good.len() - 1], "damaged");
    same(&small, b"", "damaged");
    same(&small, b"portcullis-monitor-leaves/v2 00\n{}", "of another release");
    // Sound in itself, and not what was remembered.
    let elsewhere = tempfile::tempdir().unwrap();
    let other_state = elsewhere.path().join("audit.state");
    let filed_of = |tree: &Tree| {
        served.serve(tree.files());
        for file in [&other_state, &elsewhere.path().join("audit.state.leaves")] {
            let _there = fs::remove_file(file);
        }
        look_and_keep(&source, &other_state, START);
        served.serve(honest(60).first(101).files());
        fs::read(elsewhere.path().join("audit.state.leaves")).unwrap()
    };
    let fork = other_history(10, 60);
    same(&small, &filed_of(&fork.first(101)), "is not the tree that the log signed");
    same(&small, &filed_of(&fork.first(61)), "is not the beginning of the tree of 101 leaves");
    same(&small, &filed_of(&tree.first(103)), "it has read 103 leaves, and 101 were reported on");
    // The beginning of the same history will do.
    fs::write(&leaves, filed_of(&tree.first(61))).unwrap();
    assert_eq!(kinds(&look_and_keep(&source, &state, START)), [""; 0]);
    // The state is gone and what was read is not.
    fs::remove_file(&state).unwrap();
    let look = look_and_keep(&source, &state, START);
    assert_eq!((kinds(&look).as_slice(), look.leaves), (&["state-unusable"][..], 101), "{look:?}");
}
