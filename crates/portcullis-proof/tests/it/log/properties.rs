//! Every parser, over texts near to good ones: it never panics, and what it reads it writes the same.

use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::witness::AddCheckpoint;
use portcullis_proof::log::{Checkpoint, Leaf, Note, Policy, RunState, TlogProof, TrustPolicy, VerifierKey};
use portcullis_proof::{Digest, Hex, Parent};
use proptest::prelude::*;

use super::verdicts::cases::honest;
use super::world::{leaf_key, log_key, policy};
use crate::sample::ORIGIN;

/// One change at random: some bytes of a text replaced by others.
#[derive(Debug, Clone)]
struct Change {
    at: prop::sample::Index,
    cut: usize,
    insert: Vec<u8>,
}

impl Change {
    fn make(&self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        let from = self.at.index(text.len());
        let to = (from + self.cut).min(text.len());
        text.splice(from..to, self.insert.iter().copied());
        text
    }
}

fn changes() -> impl Strategy<Value = Change> {
    let insert = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::sample::select(vec![
            "\n",
            "\n\n",
            " ",
            "0",
            "=",
            "A",
            "extra YQ==\n",
            "old 1\n",
            "— a AAAAAAE=\n",
            "# x\n",
            "\t"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    (any::<prop::sample::Index>(), 0..4usize, insert).prop_map(|(at, cut, insert)| Change { at, cut, insert })
}

/// Good texts, made once.
struct Texts {
    leaf: Vec<u8>,
    proof: Vec<u8>,
    note: Vec<u8>,
    request: Vec<u8>,
    policy: Vec<u8>,
    vkey: String,
}

static TEXTS: std::sync::LazyLock<Texts> = std::sync::LazyLock::new(|| {
    let (log, scene) = honest();
    let ours = format!(
        "admin {}\nremember {ORIGIN} 0 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\nrevoked {} 7\n",
        log_key().verifier(),
        leaf_key(3).id()
    );
    Texts {
        leaf: scene.leaves[2][0].1.clone(),
        proof: scene.leaves[2][1].1.clone(),
        note: log.checkpoint(log.size(), &[1, 2]).into_bytes(),
        request: log.consistency(5, log.size()).into_bytes(),
        policy: format!("{}{ours}", policy()).into_bytes(),
        vkey: log_key().verifier().to_string(),
    }
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_read_is_written_the_same(change in changes()) {
        let texts = &*TEXTS;
        let bytes = change.make(&texts.leaf);
        if let Ok(leaf) = SignedLeaf::parse(&bytes) {
            prop_assert_eq!(leaf.bytes(), &bytes[..]);
        }
        let bytes = change.make(&texts.proof);
        if let Ok(proof) = TlogProof::parse(&bytes) {
            prop_assert_eq!(proof.text().into_bytes(), bytes);
        }
        let bytes = change.make(&texts.request);
        if let Ok(request) = AddCheckpoint::parse(&bytes) {
            prop_assert_eq!(request.text().into_bytes(), bytes);
        }
        let bytes = change.make(&texts.note);
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes.clone());
            if let Ok(checkpoint) = Checkpoint::parse(note.text()) {
                prop_assert_eq!(checkpoint.text(), note.text());
            }
        }
        if let Ok(text) = String::from_utf8(change.make(texts.vkey.as_bytes()))
            && let Ok(key) = text.parse::<VerifierKey>()
        {
            prop_assert_eq!(key.to_string(), text);
        }
        // A policy has blanks and comments; what it means is kept.
        if let Ok(trust) = TrustPolicy::parse(&change.make(&texts.policy)) {
            prop_assert_eq!(TrustPolicy::parse(&trust.to_bytes()), Ok(trust));
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = SignedLeaf::parse(&bytes);
        prop_assert!(TlogProof::parse(&bytes).is_err() && AddCheckpoint::parse(&bytes).is_err());
        prop_assert!(Policy::parse(&bytes).is_err());
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn leaves_round_trip(
        ids in any::<[[u8; 16]; 3]>(),
        hashes in any::<[[u8; 32]; 4]>(),
        numbers in any::<[u64; 4]>(),
        state in 0..4usize,
        origin in "[a-z0-9./é-]{1,40}",
    ) {
        let states = [RunState::Open, RunState::Progress, RunState::Closed, RunState::Abandoned];
        let key = leaf_key(5);
        let parent = Parent { segment: Hex(ids[2]), link: Hex(hashes[0]) };
        let leaf = Leaf::Head(portcullis_proof::log::RunHead {
            origin,
            run: Hex(ids[0]),
            segment: Hex(ids[1]),
            ordinal: numbers[0],
            parent: (numbers[0] > 0).then_some(parent),
            writer: if state == 3 { Digest::from(hashes[3]) } else { key.id() },
            epoch: numbers[1],
            run_no: numbers[2],
            state: states[state],
            count: numbers[3],
            link: Hex(hashes[1]),
            bundle: Hex(hashes[2]),
            previous: (state > 0).then_some(Hex(hashes[3])),
            signer: key.id(),
        });
        let signed = leaf.clone().sign(&key).unwrap();
        prop_assert_eq!(&SignedLeaf::parse(signed.bytes()).unwrap().leaf, &leaf);
        prop_assert!(signed.verify(&key.public()).is_ok());
    }
}
