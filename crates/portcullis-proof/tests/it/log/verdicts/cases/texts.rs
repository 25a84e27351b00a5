//! Leaves, proofs and checkpoints that are not of their format, each at the byte where that shows; and checkpoints with
//! more than one signature that does not hold.

use portcullis_proof::Status;
use portcullis_proof::log::{KeyKind, LogAttack};

use super::super::super::notes::signer;
use super::super::super::world::{Scene, checkpoint_of};
use super::{Case, honest, proof_with};
use crate::sample::ORIGIN;

/// A name, what was done, the file, its line where it has lines, the byte, and the scene.
type Told = (&'static str, &'static str, LogAttack, &'static str, Option<u64>, u64, Scene);

/// Each with the byte that its answer names.
pub(crate) fn of_texts() -> Vec<(Case, u64)> {
    let told = of_leaves().into_iter().chain(of_proofs()).chain(of_signatures());
    let case = |(name, what, attack, file, line, byte, scene)| {
        (Case { name, what, scene, status: Status::Invalid, failure: Some((attack, file, line)) }, byte)
    };
    told.map(case).collect()
}

/// Where the fields of a head of `portcullis/example` start.
const ORIGIN_AT: usize = 23;
const ORDINAL_AT: usize = 77;
const PARENT_LINK_AT: usize = 101;
const STATE_AT: usize = 181;
const PREVIOUS_AT: usize = 254;
const SIGNER_AT: usize = 286;
const SIGNATURE_AT: usize = 318;

fn of_leaves() -> Vec<Told> {
    let changed = |place: usize, change: fn(&mut Vec<u8>)| {
        let (_, mut scene) = honest();
        change(&mut scene.leaves[place][0].1);
        scene
    };
    let head = |name, what, byte: usize, change| {
        (name, what, LogAttack::LeafMalformed, "closed.leaf", None, byte as u64, changed(3, change))
    };
    let enrol = |name, what, byte: u64, change| {
        (name, what, LogAttack::LeafMalformed, "writer.leaf", None, byte, changed(0, change))
    };
    vec![
        head("leaf-of-no-kind", "a label that no leaf has", 0, |leaf| leaf[0] = b'P'),
        head("leaf-empty", "no byte", 0, Vec::clear),
        head("leaf-origin-empty", "an origin without a byte", ORIGIN_AT, |leaf| leaf[ORIGIN_AT + 3] = 0),
        head("leaf-origin-too-long", "an origin of 257 bytes", ORIGIN_AT, |leaf| leaf[ORIGIN_AT + 2] = 1),
        head("leaf-origin-space", "an origin with a space", ORIGIN_AT, |leaf| leaf[ORIGIN_AT + 6] = b' '),
        head("leaf-origin-control", "an origin with a control character", ORIGIN_AT + 4, |leaf| {
            leaf[ORIGIN_AT + 6] = 7
        }),
        head("leaf-origin-not-text", "an origin that is not UTF-8", ORIGIN_AT + 4, |leaf| {
            leaf[ORIGIN_AT + 6] = 0xff
        }),
        head("leaf-parent-half", "a parent link without its segment", PARENT_LINK_AT + 32, |leaf| {
            leaf[PARENT_LINK_AT] = 1
        }),
        head("leaf-parent-missing", "a second segment without parent", PARENT_LINK_AT + 32, |leaf| {
            leaf[ORDINAL_AT + 7] = 1
        }),
        head("leaf-state-unknown", "state 4", STATE_AT + 1, |leaf| leaf[STATE_AT] = 4),
        head("leaf-open-with-previous", "an open head that follows another", PREVIOUS_AT + 32, |leaf| {
            leaf[STATE_AT] = 0
        }),
        head("leaf-closed-by-another", "closed by another key than the writer's", SIGNER_AT + 32, |leaf| {
            leaf[SIGNER_AT] ^= 1;
        }),
        head("leaf-signature-cut", "a signature of 63 bytes", SIGNATURE_AT, |leaf| {
            leaf.truncate(leaf.len() - 1)
        }),
        head("leaf-longer", "a byte after the signature", SIGNATURE_AT + 64, |leaf| leaf.push(0)),
        // "portcullis/enrol/v1\0", the origin with its length, type, key, label.
        enrol("enrolment-key-type", "a key of type 2", 43, |leaf| leaf[42] = 2),
        enrol("enrolment-key-two-spellings", "a key whose y is 2^255 - 15 in place of 4", 75, |leaf| {
            leaf[43..75].copy_from_slice(&[&[0xf1][..], &[0xff; 30], &[0x7f]].concat());
        }),
        enrol("enrolment-key-low-order", "a key of low order", 75, |leaf| {
            leaf[43..75].copy_from_slice(&[&[1][..], &[0; 31]].concat());
        }),
        enrol("enrolment-label-too-long", "a label of 65,535 bytes", 75, |leaf| leaf[77..79].fill(0xff)),
        enrol("enrolment-label-control", "a label with a control character", 79, |leaf| leaf[79] = b'\n'),
    ]
}

fn of_proofs() -> Vec<Told> {
    let changed = |from: &str, to: &str| {
        let (_, mut scene) = honest();
        let text = String::from_utf8(scene.proof_mut("mid").clone()).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        *scene.proof_mut("mid") = text.replacen(from, to, 1).into_bytes();
        scene
    };
    // The file starts: format (23 bytes), `index 8`, 3 hashes of 45 bytes, an empty line, the checkpoint.
    let proof = |name, what, line, byte, scene| {
        (name, what, LogAttack::ProofMalformed, "mid.tlog-proof", Some(line), byte, scene)
    };
    let (_, mut cut) = honest();
    cut.proof_mut("mid").pop();
    let cut_at = cut.proof_mut("mid").iter().rposition(|byte| *byte == b'\n').unwrap() as u64 + 1;
    let (_, mut two) = honest();
    let text = String::from_utf8(two.proof_mut("mid").clone()).unwrap();
    let text = text.replacen("portcullis/example\n12\n", "portcullis/example\n012\n", 1) + "junk\n";
    *two.proof_mut("mid") = text.into_bytes();
    vec![
        proof("proof-format", "the first line names another version", 1, 0, changed("proof@v1", "proof@v2")),
        proof("proof-extra-empty", "an `extra` without bytes", 2, 23, changed("index 8", "extra \nindex 8")),
        proof("proof-index-padded", "an index with a leading zero", 2, 23, changed("index 8", "index 08")),
        proof(
            "proof-index-too-large",
            "an index that no tree has",
            2,
            23,
            changed("index 8", "index 9223372036854775807"),
        ),
        proof("proof-hash-cut", "a hash of 31 bytes", 3, 31, changed("index 8\n", "index 8\nAAAA\n")),
        proof("proof-control", "a control character", 2, 23, changed("index 8", "index\t8")),
        proof("proof-unfinished", "the last line has no newline", 13, cut_at, cut),
        proof("proof-two-faults", "the size is padded, and a line follows: the first is named", 8, 186, two),
    ]
}

fn of_signatures() -> Vec<Told> {
    let (log, scene) = honest();
    let size = log.size();
    let checkpoint = checkpoint_of(ORIGIN, log.head(size), &[1, 2]);
    let other = checkpoint_of(ORIGIN, log.head(size - 1), &[1, 2]);
    let lines = |text: &str| -> Vec<String> { text.lines().map(|line| format!("{line}\n")).collect() };
    let (mine, others) = (lines(&checkpoint), lines(&other));
    // Text of three lines, an empty line, the log's signature, those of the witnesses.
    let noted = |signatures: &[&str]| {
        let mut scene = scene.clone();
        let text = mine[..4].concat() + &signatures.concat();
        *scene.proof_mut("writer") = proof_with(&log, 3, size, &text);
        scene
    };
    let at = |place: usize| 212 + mine[..place].iter().map(String::len).sum::<usize>() as u64;
    let stranger = signer("portcullis/other", KeyKind::Ed25519, 3);
    let forged = stranger.sign("another text\n", 0).unwrap();
    let with_stranger = |line: &str| {
        let mut scene = noted(&[&mine[4], line, &mine[5], &mine[6]]);
        scene.policy = format!("log {}\n{}", stranger.verifier(), scene.policy);
        scene
    };
    let forged_at = |name, what, line, byte, scene| {
        (name, what, LogAttack::CheckpointForged, "writer.tlog-proof", Some(line), byte, scene)
    };
    vec![
        forged_at(
            "witness-forged",
            "the first witness signed another tree",
            13,
            at(5),
            noted(&[&mine[4], &others[5], &mine[6]]),
        ),
        forged_at(
            "witness-and-log-forged",
            "witness and log signed another tree, the witness in the line above",
            12,
            at(4),
            noted(&[&others[5], &others[4], &mine[6]]),
        ),
        forged_at(
            "witness-forged-log-absent",
            "the log did not sign, and a witness signed another tree",
            12,
            at(4),
            noted(&[&others[5], &mine[6]]),
        ),
        forged_at(
            "other-log-forged",
            "another log of the policy signed another text",
            13,
            at(5),
            with_stranger(&forged),
        ),
        forged_at(
            "log-absent",
            "both witnesses signed, and the log did not",
            8,
            212,
            noted(&[&mine[5], &mine[6]]),
        ),
    ]
}
