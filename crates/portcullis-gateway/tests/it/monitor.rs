//! The monitor over real HTTP, against a log that lies in every way that this file could think of.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use portcullis_gateway::monitor::{ForkError, ForkProof, LogSource, Look, Watch, WatchOptions};
use portcullis_proof::log::history::NoFork;
use portcullis_proof::log::{Fork, KeyKind, Note, NoteSigner, TrustPolicy};
use serde_json::json;

use crate::lying::{ORIGIN, Served, Tree, Writer, honest, log_key, other_history};

/// What a log does to its files.
type Lie<'l> = dyn Fn(&mut BTreeMap<String, Vec<u8>>) + 'l;

/// The hour that the clock of these tests begins at.
pub(crate) const START: u64 = 1_800_000_000;
pub(crate) const HOUR: u64 = 3600;

pub(crate) fn trust(more: &str) -> TrustPolicy {
    let text = format!("log {}\n{more}", log_key().verifier());
    let text = if text.contains("quorum") { text } else { format!("{text}quorum none\n") };
    TrustPolicy::parse(text.as_bytes()).unwrap()
}

pub(crate) fn options(trust: TrustPolicy) -> WatchOptions {
    WatchOptions { trust, origin: ORIGIN.to_owned(), missing_for: HOUR, open_for: 24 * HOUR, stale: HOUR }
}

pub(crate) fn watch(state: Option<&Path>) -> Watch {
    Watch::open(options(trust("")), state).unwrap()
}

/// A log that was followed up to a tree.
struct Followed {
    served: Served,
    source: LogSource,
    watch: Watch,
}

impl Followed {
    fn to(tree: &Tree) -> Followed {
        let served = Served::start();
        let source = LogSource::at(&served.url()).unwrap();
        let mut followed = Followed { served, source, watch: watch(None) };
        let look = followed.shown(tree.files());
        assert_eq!(kinds(&look), [""; 0]);
        assert_eq!((look.incomplete, look.leaves), (None, tree.size()));
        followed
    }

    fn look(&mut self) -> Look {
        self.watch.look(&self.source, START)
    }

    fn shown(&mut self, files: BTreeMap<String, Vec<u8>>) -> Look {
        self.served.serve(files);
        self.look()
    }
}

pub(crate) fn kinds(look: &Look) -> Vec<&str> {
    look.alerts.iter().map(|alert| alert.kind.as_str()).collect()
}

/// The one alert, of this kind.
fn only(look: &Look, kind: &str) -> Option<ForkProof> {
    assert_eq!(kinds(look), [kind], "{look:?}");
    look.alerts[0].fork.as_deref().cloned()
}

/// The proof holds for whoever has the log's key, and for nobody else.
fn holds(proof: &ForkProof, sizes: [u64; 2]) {
    let read = ForkProof::parse(&proof.to_bytes()).unwrap();
    assert_eq!(read, *proof);
    let Ok(Fork::Beginnings { trees, .. }) = read.check(&trust("").policy) else { panic!("{proof:?}") };
    assert_eq!(trees.map(|tree| tree.size()), sizes);
    let other = NoteSigner::from_seed(ORIGIN, KeyKind::Ed25519, &[9; 32]).unwrap();
    let policy = format!("log {}\nquorum none\n", other.verifier());
    let policy = TrustPolicy::parse(policy.as_bytes()).unwrap().policy;
    assert!(matches!(read.check(&policy), Err(ForkError::None(NoFork::Signature(_)))));
}

#[test]
fn an_honest_log_is_followed_and_each_leaf_is_reported_on_once() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("audit.state");
    let (served, tree) = (Served::start(), honest(300));
    let source = LogSource::at(&served.url()).unwrap();
    let mut seen = 0;
    // Over full and partial tiles; each look by a new process.
    for size in [0, 1, 100, 256, 256, 257, 512, 601] {
        served.serve(tree.first(size).files());
        let mut watch = watch(Some(&state));
        let look = watch.look(&source, START);
        assert_eq!((kinds(&look).len(), &look.incomplete, look.leaves), (0, &None, size - seen));
        assert_eq!(look.tree, Some(tree.first(size).head()));
        assert_eq!(watch.look(&source, START).leaves, 0);
        watch.remember().unwrap();
        seen = size;
    }
    // Partial tiles that went away while the monitor was reading: the full ones will do.
    let mut files = tree.files();
    files.insert("checkpoint".to_owned(), tree.first(300).signed().into_bytes());
    files.retain(|path, _| !path.contains(".p/"));
    let first = tree.first(300).files();
    let name = "tile/1/000.p/1";
    files.insert(name.to_owned(), first[name].clone());
    served.serve(files);
    let look = watch(None).look(&source, START);
    assert_eq!((kinds(&look).len(), look.incomplete, look.leaves), (0, None, 300));
    // From the folder, too.
    for (path, bytes) in tree.files() {
        let path = folder.path().join("log").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let source = LogSource::at(folder.path().join("log").to_str().unwrap()).unwrap();
    assert_eq!(watch(None).look(&source, START).leaves, 601);
}

#[test]
fn a_fork_is_found_and_proven_at_the_same_size_grown_and_shrunk() {
    let (tree, fork) = (honest(60), other_history(10, 60));
    for (followed, shown) in
        [(41, 41), (41, 101), (64, 101), (21, 22), (1, 1), (101, 41), (101, 64), (23, 22)]
    {
        let (followed, shown) = (tree.first(followed), fork.first(shown));
        let mut log = Followed::to(&followed);
        // What the log had is still served beside what it shows now.
        let mut files = followed.files();
        files.extend(shown.files());
        let forked = followed.head() != shown.head() && followed.size().min(shown.size()) > 21;
        let look = log.shown(files);
        if !forked {
            // Up to the tenth run both histories are one.
            assert!(look.alerts.is_empty() || look.alerts[0].fork.is_none(), "{look:?}");
            continue;
        }
        let sizes = [followed.size().min(shown.size()), followed.size().max(shown.size())];
        holds(&only(&look, "log-forked").unwrap(), sizes);
        assert_eq!(look.tree, Some(followed.head()), "and it is not followed");
        let again = log.look();
        assert_eq!((kinds(&again).len(), again.standing), (0, 1), "told once, and it still holds");
        // Shown the truth again, the monitor goes on; shown the fork again, it tells again.
        assert_eq!(log.shown(tree.files()).standing, 0);
        assert_eq!(log.shown(shown.files()).standing, 1);
    }
}

#[test]
fn a_log_that_goes_back_is_told_though_nothing_else_contradicts() {
    let tree = honest(60);
    let mut log = Followed::to(&tree);
    for size in [0, 1, 64, 120] {
        let look = log.shown(tree.first(size).files());
        assert!(only(&look, "rolled-back").is_none());
        assert!(look.alerts[0].message.contains(&format!("had 121 leaves and now shows {size}")));
    }
    assert_eq!(log.shown(tree.files()).standing, 0);
}

#[test]
fn a_reader_that_remembers_a_tree_is_not_shown_another_at_its_first_look() {
    let (tree, fork) = (honest(60), other_history(10, 60));
    let served = Served::start();
    let source = LogSource::at(&served.url()).unwrap();
    let remember = |tree: &Tree| {
        let signed = tree.signed();
        let root = signed.lines().nth(2).unwrap().to_owned();
        Watch::open(options(trust(&format!("quorum none\nremember {ORIGIN} {} {root}\n", tree.size()))), None)
            .unwrap()
    };
    served.serve(tree.files());
    for size in [41, 121] {
        assert_eq!(kinds(&remember(&tree.first(size)).look(&source, START)), [""; 0], "{size}");
    }
    assert_eq!(kinds(&remember(&fork.first(41)).look(&source, START)), ["log-forked"]);
    served.serve(tree.first(40).files());
    assert_eq!(kinds(&remember(&tree.first(41)).look(&source, START)), ["rolled-back"]);
}

#[test]
fn checkpoints_of_others_are_not_followed() {
    let tree = honest(20);
    let mut log = Followed::to(&tree.first(11));
    let other = NoteSigner::from_seed("portcullis/other", KeyKind::Ed25519, &[1; 32]).unwrap();
    let thief = NoteSigner::from_seed(ORIGIN, KeyKind::Ed25519, &[9; 32]).unwrap();
    for (checkpoint, kind) in [
        (tree.signed_by(&other), "wrong-origin"),
        (tree.signed_by(&thief), "checkpoint-forged"),
        (tree.signed().replacen("\n41\n", "\n42\n", 1), "checkpoint-forged"),
    ] {
        let mut files = tree.files();
        files.insert("checkpoint".to_owned(), checkpoint.into_bytes());
        let look = log.shown(files);
        only(&look, kind);
        assert_eq!((look.leaves, look.tree), (0, Some(tree.first(11).head())));
    }
    assert_eq!(log.shown(tree.files()).leaves, 30);
}

#[test]
fn tiles_that_are_not_those_of_the_tree_are_told_and_nothing_in_them_is_believed() {
    let tree = honest(200);
    let swap = |files: &mut BTreeMap<String, Vec<u8>>, one: &str, other: &str| {
        let bytes = files[one].clone();
        let before = files.insert(other.to_owned(), bytes).unwrap();
        files.insert(one.to_owned(), before);
    };
    let lies: [(&str, &str, &Lie<'_>); 8] = [
        ("a changed leaf", "leaves-differ", &|files| files.get_mut("tile/entries/000").unwrap()[100] ^= 1),
        ("a leaf too few", "leaves-differ", &|files| {
            let leaves = tree.leaves[256..400].to_vec();
            let bytes = portcullis_proof::log::tile::bundle_bytes(&leaves).unwrap();
            files.insert("tile/entries/001.p/145".to_owned(), bytes);
        }),
        ("padding with the last leaf", "leaves-differ", &|files| {
            let mut leaves = tree.leaves[256..400].to_vec();
            leaves.push(leaves[143].clone());
            let bytes = portcullis_proof::log::tile::bundle_bytes(&leaves).unwrap();
            files.insert("tile/entries/001.p/145".to_owned(), bytes);
        }),
        ("leaves in another order", "leaves-differ", &|files| {
            let mut leaves = tree.leaves[..256].to_vec();
            leaves.swap(3, 4);
            let bytes = portcullis_proof::log::tile::bundle_bytes(&leaves).unwrap();
            files.insert("tile/entries/000".to_owned(), bytes);
        }),
        ("no bundle at all", "leaves-differ", &|files| {
            files.insert("tile/entries/000".to_owned(), b"no".to_vec());
        }),
        ("a changed hash", "leaves-differ", &|files| files.get_mut("tile/0/001.p/145").unwrap()[9] ^= 1),
        ("hashes in another order", "leaves-differ", &|files| {
            files.get_mut("tile/0/001.p/145").unwrap().rotate_left(32);
        }),
        ("a short tile", "tiles-differ", &|files| {
            files.get_mut("tile/0/001.p/145").unwrap().pop();
        }),
    ];
    for (name, kind, lie) in lies {
        let mut log = Followed::to(&tree.first(0));
        let mut files = tree.files();
        lie(&mut files);
        let look = log.shown(files);
        assert_eq!(kinds(&look), [kind], "{name}: {look:?}");
        assert!(look.leaves.is_multiple_of(256), "{name}: {} leaves", look.leaves);
        // Once the truth is shown, all of it is read.
        let leaves = look.leaves;
        let look = log.shown(tree.files());
        assert_eq!((kinds(&look).len(), look.leaves + leaves, look.standing), (0, 401, 0), "{name}");
    }
    // Tiles of another tree do not lead to the checkpoint: no fork is claimed.
    let mut log = Followed::to(&tree.first(300));
    let mut files = tree.files();
    swap(&mut files, "tile/0/000", "tile/1/000.p/1");
    files.get_mut("tile/0/001.p/145").unwrap()[9] ^= 1;
    let look = log.shown(files);
    assert_eq!(kinds(&look), ["tiles-differ"], "{look:?}");
}

#[test]
fn what_cannot_be_read_is_incomplete_and_no_alert() {
    let tree = honest(200);
    let mut log = Followed::to(&tree.first(100));
    log.served.serve(tree.files());
    for (path, status, bytes, expected) in [
        ("checkpoint", 500, b"out of order".to_vec(), "answered with 500"),
        ("checkpoint", 404, b"".to_vec(), "answered with 404"),
        ("checkpoint", 302, b"".to_vec(), "answered with 302"),
        ("checkpoint", 200, b"<html>Sign in".to_vec(), "not a checkpoint"),
        ("checkpoint", 200, vec![b'x'; 300 << 10], "more than 262144 bytes"),
        ("tile/0/000", 503, b"".to_vec(), "the server answers 503"),
        ("tile/0/000", 404, b"".to_vec(), "no such tile"),
        ("tile/0/000", 200, vec![0; 9000], "more than 8192 bytes"),
        ("tile/entries/000", 404, b"".to_vec(), "could not read `tile/entries/000`"),
    ] {
        let good = tree.files()[path].clone();
        log.served.change(path, |file| *file = (status, bytes));
        let look = log.look();
        assert_eq!(kinds(&look), [""; 0], "{path} {status}");
        assert!(look.incomplete.as_ref().is_some_and(|why| why.contains(expected)), "{look:?}");
        log.served.change(path, |file| *file = (200, good));
    }
    let look = log.look();
    assert_eq!((look.incomplete, look.leaves), (None, 301));
    let nobody = LogSource::at("http://127.0.0.1:1/log").unwrap();
    assert!(watch(None).look(&nobody, START).incomplete.is_some());
    assert!(LogSource::at("http://user:secret@127.0.0.1/").is_err());
}

#[test]
fn a_fork_between_two_looks_that_broke_off_is_still_found() {
    let (tree, fork) = (honest(200), other_history(10, 200));
    let mut log = Followed::to(&tree.first(21));
    let mut files = tree.files();
    files.remove("tile/entries/001.p/145");
    let look = log.shown(files);
    assert!(look.incomplete.is_some() && look.leaves == 235, "{look:?}");
    let mut files = tree.files();
    files.extend(fork.files());
    holds(&only(&log.shown(files), "log-forked").unwrap(), [401, 401]);
}

#[test]
fn leaves_are_judged_and_deadlines_run() {
    let mut tree = Tree::default();
    let writer = Writer::enrolled(&mut tree);
    writer.run(&mut tree, 0, true);
    writer.run(&mut tree, 2, true);
    writer.run(&mut tree, 3, false);
    tree.leaves.push(b"padding".to_vec());
    writer.run(&mut tree, 0, false);
    let served = Served::start();
    served.serve(tree.files());
    let source = LogSource::at(&served.url()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("audit.state");
    let mut first = watch(Some(&state));
    let look = first.look(&source, START);
    let found: Vec<_> = look.alerts.iter().map(|alert| (alert.index, alert.kind.as_str())).collect();
    assert_eq!(found, [(Some(6), "leaf-malformed")], "the same open head again is no contradiction");
    assert_eq!((look.missing, look.open), (1, 1));
    first.remember().unwrap();
    drop(first);

    // A new process knows since when it has waited.
    let mut second = watch(Some(&state));
    assert_eq!(kinds(&second.look(&source, START + HOUR - 1)), [""; 0]);
    let look = second.look(&source, START + HOUR);
    assert_eq!(kinds(&look), ["run-missing"]);
    assert!(look.alerts[0].message.contains("number 1 of epoch 0"), "{look:?}");
    assert_eq!(kinds(&second.look(&source, START + 23 * HOUR)), [""; 0]);
    assert_eq!(kinds(&second.look(&source, START + 24 * HOUR)), ["run-open"]);
    second.remember().unwrap();
    // What comes late ends the alert.
    writer.run(&mut tree, 1, true);
    served.serve(tree.files());
    let look = second.look(&source, START + 25 * HOUR);
    assert_eq!((kinds(&look).len(), look.standing, look.missing), (0, 1, 0), "{look:?}");
    drop(second);
    // Whoever looks once is told of what holds, each time.
    assert_eq!(kinds(&watch(Some(&state)).look(&source, START + 26 * HOUR)), ["run-open"]);
}

#[test]
fn cosignatures_are_asked_for_as_the_policy_says() {
    let auditor = NoteSigner::from_seed("auditor.example/w", KeyKind::Cosignature, &[7; 32]).unwrap();
    let tree = honest(3);
    let cosigned = |tree: &Tree, time: u64| {
        let signed = tree.signed();
        let line = auditor.sign(Note::parse(signed.as_bytes()).unwrap().text(), time).unwrap();
        let mut files = tree.files();
        files.insert("checkpoint".to_owned(), format!("{signed}{line}").into_bytes());
        files
    };
    let served = Served::start();
    let source = LogSource::at(&served.url()).unwrap();
    let policy = trust(&format!("witness w {}\nquorum w\n", auditor.verifier()));
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("audit.state");
    let mut watch = Watch::open(options(policy.clone()), Some(&state)).unwrap();
    served.serve(tree.files());
    let look = watch.look(&source, START);
    let why = look.incomplete.as_deref().unwrap();
    assert!(why.contains("the quorum `w` is not reached") && look.leaves == 7, "{look:?}");
    assert_eq!(kinds(&watch.look(&source, START + HOUR)), [""; 0]);
    assert_eq!(kinds(&watch.look(&source, START + HOUR + 1)), ["cosignature-stale"]);
    served.serve(cosigned(&tree, START + HOUR));
    let look = watch.look(&source, START + 2 * HOUR);
    assert_eq!((look.incomplete, look.standing, look.cosigned), (None, 0, Some(START + HOUR)));
    watch.remember().unwrap();
    drop(watch);
    let mut watch = Watch::open(options(policy), Some(&state)).unwrap();
    assert_eq!(kinds(&watch.look(&source, START + 2 * HOUR + 1)), ["cosignature-stale"]);
    // One cosignature that does not hold condemns the note.
    let mut files = cosigned(&tree, START);
    let note = String::from_utf8(files["checkpoint"].clone()).unwrap();
    let (_, line) = note.rsplit_once("— ").unwrap();
    let wrong = format!("{}— {line}", honest(4).signed());
    files = honest(4).files();
    files.insert("checkpoint".to_owned(), wrong.into_bytes());
    served.serve(files);
    let look = watch.look(&source, START + 2 * HOUR);
    assert_eq!(kinds(&look), ["checkpoint-forged"]);
}

#[test]
fn states_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("audit.state");
    let served = Served::start();
    served.serve(honest(3).files());
    let source = LogSource::at(&served.url()).unwrap();
    let mut watch = watch(Some(&state));
    watch.look(&source, START);
    watch.remember().unwrap();
    let open = || Watch::open(options(trust("")), Some(&state));
    assert!(open().unwrap_err().to_string().starts_with("another process has the state"));
    drop(watch);
    drop(open().unwrap());
    let good = fs::read_to_string(&state).unwrap();
    for wrong in [
        String::new(),
        "{}".to_owned(),
        good.replace("portcullis-monitor/v1", "portcullis-monitor/v2"),
        good.replace(&format!("\"origin\": \"{ORIGIN}\""), "\"origin\": \"portcullis/other\""),
        good.replace("\\n7\\n", "\\n8\\n"),
        good.replace("\"told\": 7", "\"told\": 8"),
        good.replace("\"sizes\": [", "\"sizes\": [[9, 1],"),
        good.replace("\"told\"", "\"tell\""),
        "x".repeat(5 << 20),
    ] {
        assert_ne!(wrong, good);
        fs::write(&state, &wrong).unwrap();
        for _ in 0..2 {
            // Told at each start until it was told to its end, and everything begins anew.
            let mut watch = open().unwrap();
            let look = watch.look(&source, START);
            assert_eq!((kinds(&look).as_slice(), look.leaves), (&["state-unusable"][..], 7), "{look:?}");
            assert_eq!(kinds(&watch.look(&source, START)), [""; 0]);
        }
        assert_eq!(fs::read_to_string(&state).unwrap(), wrong, "nothing is written over it");
        let mut watch = open().unwrap();
        watch.look(&source, START);
        watch.remember().unwrap();
        drop(watch);
        assert_eq!(kinds(&open().unwrap().look(&source, START)), [""; 0]);
        let aside = folder.path().join("audit.state.unusable-1");
        assert_eq!(fs::read_to_string(&aside).unwrap(), wrong, "and it is kept");
        fs::remove_file(aside).unwrap();
    }
    fs::write(&state, "no").unwrap();
    for number in 1..=16 {
        fs::write(folder.path().join(format!("audit.state.unusable-{number}")), "no").unwrap();
    }
    let mut watch = open().unwrap();
    watch.look(&source, START);
    let error = watch.remember().unwrap_err().to_string();
    assert!(error.contains("16 like it lie beside it"), "{error}");
    assert_eq!(fs::read_to_string(&state).unwrap(), "no");
}

#[test]
fn proofs_of_forks_are_read_strictly() {
    let (one, other) = (honest(12), other_history(10, 12));
    let path = Vec::new();
    let proof = ForkProof::new(&one.signed(), &other.signed(), other.head().root, path);
    holds(&proof, [25, 25]);
    let mut value: serde_json::Value = serde_json::from_slice(&proof.to_bytes()).unwrap();
    for (field, wrong) in [
        ("format", json!("portcullis-fork/v2")),
        ("beginning", json!("00")),
        ("path", json!(null)),
        ("more", json!(1)),
    ] {
        let before = value.clone();
        value[field] = wrong;
        let error = ForkProof::parse(value.to_string().as_bytes()).unwrap_err();
        assert!(matches!(error, ForkError::Malformed(_)), "{field}");
        value = before;
    }
    let same = ForkProof::new(&one.signed(), &one.signed(), one.head().root, Vec::new());
    assert!(matches!(same.check(&trust("").policy), Err(ForkError::None(NoFork::NoContradiction))));
    let text = ForkProof::new("no note", &one.signed(), one.head().root, Vec::new());
    assert!(matches!(text.check(&trust("").policy), Err(ForkError::None(NoFork::Text(_)))));
    let other = NoteSigner::from_seed("portcullis/other", KeyKind::Ed25519, &[1; 32]).unwrap();
    let unknown = ForkProof::new(&one.signed_by(&other), &one.signed_by(&other), one.head().root, Vec::new());
    assert!(matches!(unknown.check(&trust("").policy), Err(ForkError::UnknownLog(_))));
}
