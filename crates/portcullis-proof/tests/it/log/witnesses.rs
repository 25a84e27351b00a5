//! What a witness answers to an honest log and to every kind of dishonest one; what readers hold against a log.

use portcullis_proof::log::history::{NoFork, forked_beginnings, forked_leaves, forked_roots};
use portcullis_proof::log::note::signature_lines;
use portcullis_proof::log::proof::tlog_proof;
use portcullis_proof::log::tree::{prove_consistency, prove_inclusion};
use portcullis_proof::log::witness::{AddCheckpoint, Refusal, add_checkpoint, answer, conflict_size};
use portcullis_proof::log::{
    Checkpoint, CompactRange, Fork, History, HistoryError, KeyKind, NoteSigner, ProofError, TlogProof,
    TreeHead, leaf_hash,
};
use portcullis_proof::{Digest, Hex};

use super::notes::signer;
use super::oracle::{Nodes, entry, grow};

const ORIGIN: &str = "example.com/log";

fn log() -> NoteSigner {
    signer(ORIGIN, KeyKind::Ed25519, 1)
}

fn signed(head: TreeHead) -> String {
    Checkpoint::new(ORIGIN, head).unwrap().sign(&[&log()]).unwrap()
}

fn checkpoint(head: TreeHead) -> Checkpoint {
    Checkpoint::new(ORIGIN, head).unwrap()
}

fn consistency(nodes: &Nodes, old: u64, new: u64) -> Vec<Digest> {
    prove_consistency(nodes, old, new).unwrap().unwrap()
}

/// A log that has other leaves from `from` on.
fn fork(from: u64, size: u64) -> (Nodes, Vec<TreeHead>) {
    let (mut nodes, mut range) = (Nodes::default(), CompactRange::new());
    let mut heads = vec![range.head()];
    for index in 0..size {
        let leaf = if index < from { entry(index) } else { format!("other {index}").into_bytes() };
        range
            .push_with(leaf_hash(&leaf), |level, index, hash| {
                nodes.0.insert((level, index), hash);
            })
            .unwrap();
        heads.push(range.head());
    }
    (nodes, heads)
}

/// A witness with its one file of state.
struct Witness {
    key: NoteSigner,
    seen: Option<TreeHead>,
}

impl Witness {
    fn new() -> Witness {
        Witness { key: signer("witness.example/w", KeyKind::Cosignature, 0x41), seen: None }
    }

    /// The status, and the body.
    fn ask(&mut self, body: &str) -> (u16, String) {
        let logs =
            [log().verifier().clone(), signer("example.com/quiet", KeyKind::Ed25519, 5).verifier().clone()];
        match answer(body.as_bytes(), &logs, |origin| self.seen.filter(|_| origin == ORIGIN)) {
            Ok(request) => {
                self.seen = Some(request.checkpoint.head());
                (200, self.key.sign(&request.checkpoint.text(), 1_700_000_000).unwrap())
            }
            Err(refusal) => (refusal.status(), refusal.body()),
        }
    }
}

#[test]
fn a_witness_follows_an_honest_log() {
    let (nodes, heads) = grow(300);
    let mut witness = Witness::new();
    let mut old = 0;
    for new in [0, 1, 1, 2, 7, 256, 300, 300] {
        let note = signed(heads[new as usize]);
        let body = add_checkpoint(old, &consistency(&nodes, old, new), &note);
        assert_eq!(AddCheckpoint::parse(body.as_bytes()).unwrap().text(), body);
        let (status, lines) = witness.ask(&body);
        assert_eq!(status, 200, "{old} to {new}: {lines}");
        // The answer completes the note.
        let cosigned = format!("{note}{lines}");
        assert_eq!(signature_lines(lines.as_bytes()).unwrap().len(), 1);
        let (note, _) = Checkpoint::from_note(cosigned.as_bytes()).unwrap();
        assert_eq!(note.verify([log().verifier(), witness.key.verifier()]).unwrap().len(), 2);
        old = new;
    }
}

#[test]
fn a_witness_refuses_a_log_that_forks_or_goes_back() {
    let (nodes, heads) = grow(40);
    let (forked, forked_heads) = fork(10, 40);
    let mut witness = Witness::new();
    assert_eq!(witness.ask(&add_checkpoint(0, &[], &signed(heads[20]))).0, 200);
    let state = witness.seen;
    let path = |old, new| consistency(&nodes, old, new);
    let padded = [&path(20, 30)[..], &[Hex([0; 32])]].concat();
    for (what, body, status) in [
        ("fork of the same size", add_checkpoint(20, &[], &signed(forked_heads[20])), 422),
        ("fork that grew", add_checkpoint(20, &consistency(&forked, 20, 30), &signed(forked_heads[30])), 422),
        (
            "fork with the proof of the true log",
            add_checkpoint(20, &path(20, 30), &signed(forked_heads[30])),
            422,
        ),
        ("rollback", add_checkpoint(10, &path(10, 15), &signed(heads[15])), 409),
        ("rollback that states the true size", add_checkpoint(20, &[], &signed(heads[15])), 400),
        ("old checkpoint again", add_checkpoint(0, &[], &signed(heads[20])), 409),
        ("the empty tree again", add_checkpoint(0, &[], &signed(heads[0])), 409),
        ("no proof", add_checkpoint(20, &[], &signed(heads[30])), 422),
        ("proof from elsewhere", add_checkpoint(20, &path(21, 30), &signed(heads[30])), 422),
        ("padded proof", add_checkpoint(20, &padded, &signed(heads[30])), 422),
        ("future size", add_checkpoint(30, &path(30, 40), &signed(heads[40])), 409),
    ] {
        assert_eq!(witness.ask(&body).0, status, "{what}");
        assert_eq!(witness.seen, state, "{what}");
    }
    let (status, body) = witness.ask(&add_checkpoint(3, &path(3, 30), &signed(heads[30])));
    assert_eq!((status, conflict_size(body.as_bytes())), (409, Ok(20)));
    assert_eq!(witness.ask(&add_checkpoint(20, &path(20, 30), &signed(heads[30]))).0, 200);
}

#[test]
fn a_witness_refuses_whom_it_does_not_know() {
    let (_, heads) = grow(5);
    let mut witness = Witness::new();
    let note = |origin: &str, name: &str, seed: u8| {
        let checkpoint = Checkpoint::new(origin, heads[5]).unwrap();
        add_checkpoint(0, &[], &checkpoint.sign(&[&signer(name, KeyKind::Ed25519, seed)]).unwrap())
    };
    assert_eq!(witness.ask(&note("example.com/unknown", ORIGIN, 1)).0, 404);
    assert_eq!(witness.ask(&note("example.com/quiet", ORIGIN, 1)).0, 403, "the key of one log for another");
    assert_eq!(witness.ask(&note(ORIGIN, ORIGIN, 2)).0, 403);
    let forged = add_checkpoint(0, &[], &signed(heads[5])).replacen(
        &format!("{ORIGIN}\n5\n"),
        &format!("{ORIGIN}\n4\n"),
        1,
    );
    assert_eq!(witness.ask(&forged).0, 403);
    let nonempty = add_checkpoint(0, &[Hex([1; 32])], &signed(heads[5]));
    assert_eq!(witness.ask(&nonempty).0, 422, "a proof from the empty tree is empty");
    assert_eq!(witness.seen, None);
}

#[test]
fn malformed_requests_are_refused_with_their_place() {
    let note = signed(TreeHead { size: 1, root: Hex([1; 32]) });
    let hash = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    for (body, error) in [
        (String::new(), "line 1, byte 0: the text ends where `old NUMBER`"),
        (format!("new 0\n\n{note}"), "line 1, byte 0: expected `old NUMBER`"),
        (format!("old 00\n\n{note}"), "line 1, byte 0: `00` is not a number"),
        (format!("old  0\n\n{note}"), "line 1, byte 0: ` 0` is not a number"),
        (format!("old 9223372036854775808\n\n{note}"), "line 1, byte 0: a tree has at most"),
        (format!("old 0\n{note}"), "line 2, byte 6: `example.com/log` is not base64"),
        (format!("old 1\n{}\n{note}", hash.repeat(64)), "line 65, byte 2841: more than 63 hashes"),
        (format!("old 0\n\n{}", note.replacen("\n1\n", "\n01\n", 1)), "line 4, byte 23: `01`"),
        ("old 0\n\n".to_owned(), "line 3, byte 7: the text ends where the origin"),
        (format!("old 0\n\n{note}junk\n"), "line 8"),
    ] {
        let found = AddCheckpoint::parse(body.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(error), "{body}: {found}");
        let refusal = answer(body.as_bytes(), &[], |_| None).unwrap_err();
        assert_eq!((refusal.status(), refusal.body()), (400, format!("{found}\n")));
    }
    for wrong in
        ["", "1", "01\n", "1\n2\n", "1\n\n", "9223372036854775808\n", "123456789012345678901234567890123\n"]
    {
        assert!(conflict_size(wrong.as_bytes()).is_err(), "{wrong:?}");
    }
    assert_eq!(Refusal::Conflict { size: 7 }.body(), "7\n");
}

#[test]
fn a_reader_follows_a_log_forwards_only() {
    let (nodes, heads) = grow(40);
    let (forked, forked_heads) = fork(10, 40);
    let mut history = History::new(checkpoint(heads[20]));
    let mut advance = |head: TreeHead, path: &[Digest]| {
        let before = history.clone();
        let result = history.advance(checkpoint(head), path);
        assert!(result.is_ok() || history == before);
        result
    };
    assert_eq!(advance(heads[15], &[]), Err(HistoryError::RolledBack { known: 20, found: 15 }));
    assert_eq!(advance(forked_heads[20], &[]), Err(HistoryError::Forked { size: 20 }));
    let error = ProofError::OldRootDiffers;
    let fork = advance(forked_heads[30], &consistency(&forked, 20, 30));
    assert_eq!(fork, Err(HistoryError::NotContinued { known: 20, found: 30, error }));
    assert_eq!(advance(heads[20], &[]), Ok(()));
    assert_eq!(advance(heads[40], &consistency(&nodes, 20, 40)), Ok(()));
    let other = Checkpoint::new("example.com/other", heads[40]).unwrap();
    assert!(matches!(history.advance(other, &[]), Err(HistoryError::WrongOrigin { .. })));
    assert_eq!(history.newest().size(), 40);
}

#[test]
fn a_fork_is_shown_to_others() {
    let (nodes, heads) = grow(40);
    let (forked, forked_heads) = fork(10, 40);
    let key = log();
    let key = key.verifier();
    let shown = forked_roots(signed(heads[20]).as_bytes(), signed(forked_heads[20]).as_bytes(), key);
    assert!(matches!(shown, Ok(Fork::Roots { .. })));
    // Trees that agree, trees of two sizes, and a note that the log did not sign, show nothing.
    let none = |one: &str, other: &str| forked_roots(one.as_bytes(), other.as_bytes(), key).unwrap_err();
    assert_eq!(none(&signed(heads[20]), &signed(heads[20])), NoFork::NoContradiction);
    assert_eq!(none(&signed(heads[20]), &signed(forked_heads[21])), NoFork::NoContradiction);
    let unsigned = checkpoint(forked_heads[20]).sign(&[&signer(ORIGIN, KeyKind::Ed25519, 2)]).unwrap();
    assert!(matches!(none(&signed(heads[20]), &unsigned), NoFork::Signature(_)));
    // Two leaves in one place show it whatever the sizes.
    let proof = |nodes: &Nodes, index, head: TreeHead| {
        tlog_proof(None, index, &prove_inclusion(nodes, index, head.size).unwrap().unwrap(), &signed(head))
    };
    let (one, other) = (proof(&nodes, 12, heads[20]), proof(&forked, 12, forked_heads[33]));
    let leaves = [leaf_hash(&entry(12)), leaf_hash(b"other 12")];
    let shown = forked_leaves((leaves[0], one.as_bytes()), (leaves[1], other.as_bytes()), key);
    assert!(matches!(shown, Ok(Fork::Leaves { index: 12, .. })));
    let same = forked_leaves((leaves[0], one.as_bytes()), (leaves[0], one.as_bytes()), key);
    assert_eq!(same, Err(NoFork::NoContradiction));
    let wrong = forked_leaves((leaves[1], one.as_bytes()), (leaves[0], other.as_bytes()), key);
    assert_eq!(wrong, Err(NoFork::Proof(ProofError::RootDiffers)));
    let honest = forked_leaves(
        (leaf_hash(&entry(9)), proof(&nodes, 9, heads[20]).as_bytes()),
        (leaf_hash(&entry(9)), proof(&forked, 9, forked_heads[33]).as_bytes()),
        key,
    );
    assert_eq!(honest, Err(NoFork::NoContradiction));
}

#[test]
fn a_tree_that_begins_otherwise_is_a_fork_whatever_its_size() {
    let (nodes, heads) = grow(40);
    let (forked, forked_heads) = fork(10, 40);
    let key = log();
    let key = key.verifier();
    let mut shown = 0;
    for small in 1..=40usize {
        for large in small..=40 {
            let path = consistency(&forked, small as u64, large as u64);
            let fork = |beginning, path: &[Digest]| {
                let (one, other) = (signed(heads[small]), signed(forked_heads[large]));
                forked_beginnings(one.as_bytes(), other.as_bytes(), beginning, path, key)
            };
            let result = fork(forked_heads[small].root, &path);
            assert_eq!(result.is_ok(), small > 10, "{small} of {large}: {result:?}");
            shown += usize::from(result.is_ok());
            // What the log signed is no other beginning, and one that the larger tree does not have is not proven.
            assert!(fork(heads[small].root, &path).is_err());
            assert!(fork(leaf_hash(b"any"), &path).is_err());
            // An honest log is not shown to have forked by anything.
            let (one, other) = (signed(heads[small]), signed(heads[large]));
            let honest = consistency(&nodes, small as u64, large as u64);
            for beginning in [heads[small].root, forked_heads[small].root, leaf_hash(b"any")] {
                for path in [&honest, &path] {
                    let none = forked_beginnings(one.as_bytes(), other.as_bytes(), beginning, path, key);
                    assert!(none.is_err(), "{small} of {large}");
                }
            }
        }
    }
    assert_eq!(shown, 30 * 31 / 2);
    let empty = forked_beginnings(
        signed(heads[0]).as_bytes(),
        signed(forked_heads[20]).as_bytes(),
        leaf_hash(b"any"),
        &[],
        key,
    );
    assert_eq!(empty, Err(NoFork::Proof(ProofError::OldRootDiffers)), "there is one empty tree");
}

#[test]
fn proof_files_are_read_strictly() {
    let (nodes, heads) = grow(20);
    let path = prove_inclusion(&nodes, 7, 20).unwrap().unwrap();
    for extra in [None, Some(&b"extra"[..])] {
        let file = tlog_proof(extra, 7, &path, &signed(heads[20]));
        let proof = TlogProof::parse(file.as_bytes()).unwrap();
        assert_eq!((proof.text(), proof.extra.as_deref()), (file.clone(), extra));
        assert_eq!(proof.verify_leaf(leaf_hash(&entry(7))), Ok(()));
        assert_eq!(proof.verify_leaf(leaf_hash(&entry(8))), Err(ProofError::RootDiffers));
    }
    let note = signed(heads[20]);
    for (file, error) in [
        (String::new(), "line 1, byte 0: the text ends where the name of the format"),
        (
            format!("c2sp.org/tlog-proof@v2\nindex 7\n\n{note}"),
            "line 1, byte 0: expected `c2sp.org/tlog-proof@v1`",
        ),
        (format!("c2sp.org/tlog-proof@v1\n\n{note}"), "line 2, byte 23: expected `index NUMBER`"),
        (format!("c2sp.org/tlog-proof@v1\nextra \nindex 7\n\n{note}"), "line 2, byte 23: extra data has"),
        (
            format!("c2sp.org/tlog-proof@v1\nextra YQ\nindex 7\n\n{note}"),
            "line 2, byte 23: `YQ` is not base64",
        ),
        (
            format!("c2sp.org/tlog-proof@v1\nextra YQ==\nextra YQ==\nindex 7\n\n{note}"),
            "line 3, byte 34: expected `index",
        ),
        (format!("c2sp.org/tlog-proof@v1\nindex 07\n\n{note}"), "line 2, byte 23: `07`"),
        (
            format!("c2sp.org/tlog-proof@v1\nindex 9223372036854775807\n\n{note}"),
            "line 2, byte 23: a tree has",
        ),
        (format!("c2sp.org/tlog-proof@v1\nindex 7\nAAAA\n\n{note}"), "line 3, byte 31: `AAAA` has 3 bytes"),
        (format!("c2sp.org/tlog-proof@v1\nindex 7\n\n\n{note}"), "line 4, byte 32: an origin has"),
        (
            format!("c2sp.org/tlog-proof@v1\nindex 7\n\n{}", note.trim_end()),
            "the text ends without a newline",
        ),
    ] {
        let found = TlogProof::parse(file.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(error), "{file}: {found}");
    }
}
