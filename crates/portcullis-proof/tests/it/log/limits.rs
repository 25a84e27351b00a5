//! Every limit of the log's formats holds exactly: what reaches it is read, what is one past it is refused for that.

use std::convert::Infallible;

use portcullis_proof::log::checkpoint::CHECKPOINT_BYTES_MAX;
use portcullis_proof::log::files::NAME_BYTES_MAX;
use portcullis_proof::log::key::{KEY_NAME_BYTES_MAX, TIME_MAX};
use portcullis_proof::log::leaf::LEAF_TEXT_BYTES_MAX;
use portcullis_proof::log::note::{NOTE_BYTES_MAX, signature_lines};
use portcullis_proof::log::proof::{EXTRA_BYTES_MAX, TLOG_PROOF_BYTES_MAX, TlogProof, tlog_proof};
use portcullis_proof::log::tile::{ENTRY_BYTES_MAX, TILE_WIDTH, bundle_bytes, read_bundle, tile_bytes};
use portcullis_proof::log::tree::{
    PROOF_HASHES_MAX, TREE_SIZE_MAX, inclusion_root, prove_consistency, prove_inclusion, root,
    verify_consistency,
};
use portcullis_proof::log::witness::{
    ADD_CHECKPOINT_BYTES_MAX, AddCheckpoint, add_checkpoint, conflict_size,
};
use portcullis_proof::log::{
    Checkpoint, CompactRange, ExportFiles, File, KeyKind, Leaf, NodeSource, Note, ProofError, TextError,
    TileId, TileKind, TreeHead, VerifierKey,
};
use portcullis_proof::trust::ORIGIN_BYTES_MAX;
use portcullis_proof::{Digest, Hex};

use super::notes::{head, signer};
use super::world::{enrol, leaf_key};

const HASH: Digest = Hex([7; 32]);

/// A tree of any size whose nodes are all alike.
struct Alike;

impl NodeSource for Alike {
    type Error = Infallible;

    fn node(&self, _: u8, _: u64) -> Result<Digest, Infallible> {
        Ok(HASH)
    }
}

/// A note of exactly `bytes` bytes: its signature is as long as it takes.
fn note_of(text: &str, bytes: usize) -> String {
    let room = bytes - text.len() - "\n—  \n".len();
    let name = 1 + (room - 1) % 4;
    let note = format!("{text}\n— {} {}\n", "n".repeat(name), "AAAA".repeat((room - name) / 4));
    assert_eq!(note.len(), bytes);
    note
}

/// That something was refused for its length, before anything in it was read.
fn too_long<T: std::fmt::Debug>(read: Result<T, TextError>, limit: usize) {
    let message = format!("{} bytes; such a text has at most {limit}", limit + 1);
    assert_eq!(read.unwrap_err(), TextError { line: 1, byte: 0, message });
}

#[test]
fn notes_and_checkpoints() {
    assert_eq!((NOTE_BYTES_MAX, CHECKPOINT_BYTES_MAX), (262_144, 16_384));
    assert!(Note::parse(note_of("text\n", NOTE_BYTES_MAX).as_bytes()).is_ok());
    too_long(Note::parse(note_of("text\n", NOTE_BYTES_MAX + 1).as_bytes()), NOTE_BYTES_MAX);
    let lines = |bytes: usize| note_of("", bytes + 1).split_off(1);
    assert_eq!(signature_lines(lines(NOTE_BYTES_MAX).as_bytes()).unwrap().len(), 1);
    too_long(signature_lines(lines(NOTE_BYTES_MAX + 1).as_bytes()), NOTE_BYTES_MAX);

    let text = Checkpoint::new("log", head(7)).unwrap().text();
    let extended = |bytes: usize| format!("{text}{}\n", "x".repeat(bytes - text.len() - 1));
    assert_eq!(
        Checkpoint::parse(&extended(CHECKPOINT_BYTES_MAX)).unwrap().text().len(),
        CHECKPOINT_BYTES_MAX
    );
    too_long(Checkpoint::parse(&extended(CHECKPOINT_BYTES_MAX + 1)), CHECKPOINT_BYTES_MAX);
    let lines = |count: usize| format!("{text}{}", "x\n".repeat(count));
    assert_eq!(Checkpoint::parse(&lines(16)).unwrap().text(), lines(16));
    assert_eq!(Checkpoint::parse(&lines(17)).unwrap_err().line, 20);
}

#[test]
fn proofs_and_requests_hold_the_longest_note() {
    let text = Checkpoint::new("log", head(TREE_SIZE_MAX)).unwrap().text();
    let (note, path) = (note_of(&text, NOTE_BYTES_MAX), [HASH; PROOF_HASHES_MAX]);
    let last = TREE_SIZE_MAX - 1;
    let proof = tlog_proof(Some(&[1; EXTRA_BYTES_MAX]), last, &path, &note);
    assert_eq!(TlogProof::parse(proof.as_bytes()).unwrap().text(), proof);
    let request = add_checkpoint(TREE_SIZE_MAX, &path, &note);
    assert_eq!(AddCheckpoint::parse(request.as_bytes()).unwrap().text(), request);

    assert_eq!((TLOG_PROOF_BYTES_MAX, ADD_CHECKPOINT_BYTES_MAX), (393_216, 270_336));
    too_long(TlogProof::parse(&[b'a'; TLOG_PROOF_BYTES_MAX + 1]), TLOG_PROOF_BYTES_MAX);
    too_long(AddCheckpoint::parse(&[b'a'; ADD_CHECKPOINT_BYTES_MAX + 1]), ADD_CHECKPOINT_BYTES_MAX);

    let refused = |proof: String| TlogProof::parse(proof.as_bytes()).unwrap_err().to_string();
    let short = note_of(&text, 200);
    assert!(refused(tlog_proof(Some(&[]), 0, &[], &short)).contains("extra data has 1 to 65536 bytes"));
    let extra = [1; EXTRA_BYTES_MAX + 1];
    assert!(refused(tlog_proof(Some(&extra), 0, &[], &short)).contains("extra data has 1 to 65536 bytes"));
    assert!(
        refused(tlog_proof(None, TREE_SIZE_MAX, &[], &short)).contains("line 2, byte 23: a tree has at most")
    );
    let longer = [HASH; PROOF_HASHES_MAX + 1];
    assert!(refused(tlog_proof(None, 0, &longer, &short)).contains("more than 63 hashes"));
    let refused = |request: String| AddCheckpoint::parse(request.as_bytes()).unwrap_err().to_string();
    assert!(
        refused(add_checkpoint(TREE_SIZE_MAX + 1, &[], &short))
            .contains("line 1, byte 0: a tree has at most")
    );
    assert!(refused(add_checkpoint(0, &longer, &short)).contains("more than 63 hashes"));
    assert_eq!(conflict_size(format!("{TREE_SIZE_MAX}\n").as_bytes()), Ok(TREE_SIZE_MAX));
    assert!(conflict_size(format!("{}\n", TREE_SIZE_MAX + 1).as_bytes()).is_err());
    assert!(conflict_size(b"7\n8\n").is_err());
}

#[test]
fn keys_and_times() {
    let key = |bytes: usize| {
        VerifierKey::new(
            &"k".repeat(bytes),
            KeyKind::Ed25519,
            signer("w", KeyKind::Ed25519, 1).verifier().public(),
        )
    };
    assert_eq!(key(KEY_NAME_BYTES_MAX).unwrap().name().len(), 256);
    assert!(key(KEY_NAME_BYTES_MAX + 1).is_err());
    let origin = |bytes: usize| Checkpoint::new(&"o".repeat(bytes), head(7));
    assert!(origin(ORIGIN_BYTES_MAX).is_ok());
    assert_eq!(origin(ORIGIN_BYTES_MAX + 1).unwrap_err(), "an origin has 1 to 256 bytes");
    let witness = signer("w", KeyKind::Cosignature, 1);
    let signed = format!("text\n\n{}", witness.sign("text\n", TIME_MAX).unwrap());
    let note = Note::parse(signed.as_bytes()).unwrap();
    assert_eq!(note.verify([witness.verifier()]).unwrap()[0].time, Some(TIME_MAX));
}

#[test]
fn trees() {
    let largest = TreeHead { size: TREE_SIZE_MAX, root: root(&Alike, TREE_SIZE_MAX).unwrap() };
    let path = prove_inclusion(&Alike, 0, TREE_SIZE_MAX).unwrap().unwrap();
    assert_eq!(path.len(), PROOF_HASHES_MAX);
    assert!(inclusion_root(HASH, 0, TREE_SIZE_MAX, &path).is_ok());
    let (index, size) = (0, TREE_SIZE_MAX + 1);
    assert_eq!(prove_inclusion(&Alike, index, size), Ok(None));
    assert_eq!(inclusion_root(HASH, index, size, &path), Err(ProofError::OutsideTree { index, size }));

    let path = prove_consistency(&Alike, 1, TREE_SIZE_MAX).unwrap().unwrap();
    assert_eq!(path.len(), PROOF_HASHES_MAX);
    let first = TreeHead { size: 1, root: HASH };
    assert_eq!(
        verify_consistency(first, TreeHead { root: HASH, ..largest }, &path),
        Err(ProofError::RootDiffers)
    );
    assert_eq!(prove_consistency(&Alike, 1, size), Ok(None));
    let past = TreeHead { size, root: HASH };
    assert_eq!(verify_consistency(first, past, &path), Err(ProofError::Sizes { old: 1, new: size }));

    let mut range = CompactRange::load(&Alike, TREE_SIZE_MAX - 1).unwrap();
    range.push(HASH).unwrap();
    let full = range.clone();
    assert!(range.push(HASH).is_err());
    assert_eq!((range.size(), &range), (TREE_SIZE_MAX, &full));
}

#[test]
fn leaves_and_bundles() {
    let labelled = |bytes: usize| match enrol(1, 1) {
        Leaf::Enrol { origin, public, admin, .. } => {
            Leaf::Enrol { origin, public, label: "l".repeat(bytes), admin }.sign(&leaf_key(1))
        }
        other => panic!("{other:?}"),
    };
    assert!(labelled(LEAF_TEXT_BYTES_MAX).is_ok());
    let error = labelled(LEAF_TEXT_BYTES_MAX + 1).unwrap_err().to_string();
    assert!(error.contains("a text of 257 bytes; it may have 256"), "{error}");

    let bundle = bundle_bytes(&[vec![1; ENTRY_BYTES_MAX]]).unwrap();
    assert_eq!(read_bundle(&bundle, 1).unwrap(), [&[1; ENTRY_BYTES_MAX][..]]);
    assert!(bundle_bytes(&[vec![1; ENTRY_BYTES_MAX + 1]]).unwrap_err().message.contains("may have 65535"));
    let wide = usize::from(TILE_WIDTH);
    assert_eq!(read_bundle(&bundle_bytes(&vec![[1]; wide]).unwrap(), TILE_WIDTH).unwrap().len(), wide);
    assert!(bundle_bytes(&vec![[1]; wide + 1]).is_err());
}

#[test]
fn tiles() {
    let bytes = |level| {
        let tile = TileId::new(TileKind::Hashes { level }, 0, 1).unwrap();
        tile_bytes(&Alike, tile).unwrap().map(|bytes| bytes.len())
    };
    // Eight levels of a tree are one of tiles, and a tree has 63.
    assert_eq!([bytes(0), bytes(7), bytes(8), bytes(63)], [Some(32), Some(32), None, None]);
}

#[test]
fn names_of_evidence() {
    let problem = |name: String| {
        let file = |name| File { name, bytes: b"" };
        let (leaf, proof) = (format!("log/{name}.leaf"), format!("log/{name}.tlog-proof"));
        ExportFiles::sort(&[file(&leaf), file(&proof)]).problem
    };
    assert_eq!(problem("n".repeat(NAME_BYTES_MAX)), None);
    assert!(problem("n".repeat(NAME_BYTES_MAX + 1)).is_some());
    assert!(problem(String::new()).is_some());
    assert_eq!(problem("az-09".to_owned()), None);
    let sorted = ExportFiles::sort(&[File { name: "log/1.consistency", bytes: b"proof" }]);
    assert_eq!((sorted.problem, sorted.evidence.consistency.len()), (None, 1));
    for wrong in ["A", "a_b", "a/b", "a\\b", "é", " "] {
        assert!(problem(wrong.to_owned()).is_some(), "{wrong}");
    }
}
