//! A log with a run in it, made by hand, so that each part of it can be made wrong.

use std::collections::BTreeMap;

use portcullis_proof::export::SegmentState;
use portcullis_proof::log::leaf::{LeafSigner, SignedLeaf};
use portcullis_proof::log::proof::tlog_proof;
use portcullis_proof::log::tree::{prove_consistency, prove_inclusion};
use portcullis_proof::log::witness::add_checkpoint;
use portcullis_proof::log::{
    Checkpoint, CompactRange, Evidence, File, KeyKind, Leaf, LogReport, LoggedLeaf, NoteSigner, RunFacts,
    RunHead, RunState, SegmentFacts, TreeHead, TrustPolicy, judge, leaf_hash,
};
use portcullis_proof::{Digest, Head, Hex, Id, Parent, SegmentStart, event_hash, event_link, segment_link};

use super::notes::signer;
use super::oracle::{Nodes, entry};
use crate::sample::{ORIGIN, id};

/// The log's key.
pub(crate) fn log_key() -> NoteSigner {
    signer(ORIGIN, KeyKind::Ed25519, 1)
}

pub(crate) fn witness_key(number: u8) -> NoteSigner {
    signer(&format!("witness.example/w{number}"), KeyKind::Cosignature, 0x40 + number)
}

/// The key of seed `seed` that signs leaves. Seed 1 is the log's key too, which is the admin where there is no other.
pub(crate) fn leaf_key(seed: u8) -> LeafSigner {
    LeafSigner::from_seed(&[seed; 32])
}

/// The seed of the writer of the run.
pub(crate) const WRITER: u8 = 0x20;

/// A log in memory.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) leaves: Vec<Vec<u8>>,
    nodes: Nodes,
    range: CompactRange,
    heads: Vec<TreeHead>,
}

impl Log {
    pub(crate) fn add(&mut self, leaf: Vec<u8>) -> u64 {
        let index = self.leaves.len() as u64;
        if self.heads.is_empty() {
            self.heads.push(self.range.head());
        }
        let nodes = &mut self.nodes.0;
        self.range
            .push_with(leaf_hash(&leaf), |level, index, hash| {
                nodes.insert((level, index), hash);
            })
            .unwrap();
        self.heads.push(self.range.head());
        self.leaves.push(leaf);
        index
    }

    pub(crate) fn add_signed(&mut self, leaf: Leaf, seed: u8) -> u64 {
        self.add(leaf.sign(&leaf_key(seed)).unwrap().bytes().to_vec())
    }

    /// Leaves that are no business of the run.
    pub(crate) fn fill(&mut self, count: u64) {
        for number in 0..count {
            self.add(entry(number));
        }
    }

    pub(crate) fn head(&self, size: u64) -> TreeHead {
        self.heads[size as usize]
    }

    pub(crate) fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// A checkpoint that the log signed and witnesses cosigned.
    pub(crate) fn checkpoint(&self, size: u64, witnesses: &[u8]) -> String {
        checkpoint_of(ORIGIN, self.head(size), witnesses)
    }

    pub(crate) fn proof(&self, index: u64, size: u64, witnesses: &[u8]) -> String {
        tlog_proof(None, index, &self.path(index, size), &self.checkpoint(size, witnesses))
    }

    pub(crate) fn path(&self, index: u64, size: u64) -> Vec<Digest> {
        prove_inclusion(&self.nodes, index, size).unwrap().unwrap()
    }

    pub(crate) fn consistency(&self, old: u64, new: u64) -> String {
        let path = prove_consistency(&self.nodes, old, new).unwrap().unwrap();
        add_checkpoint(old, &path, &self.checkpoint(new, &[]))
    }
}

pub(crate) fn checkpoint_of(origin: &str, head: TreeHead, witnesses: &[u8]) -> String {
    let checkpoint = Checkpoint::new(origin, head).unwrap();
    let key = signer(origin, KeyKind::Ed25519, 1);
    let mut note = checkpoint.sign(&[&key]).unwrap();
    for number in witnesses {
        note += &witness_key(*number).sign(&checkpoint.text(), 1_800_000_000 + u64::from(*number)).unwrap();
    }
    note
}

/// A run of one or two segments, as its chain is computed; all links are kept.
pub(crate) fn run(segments: &[(u8, u64, SegmentState)]) -> RunFacts<'static> {
    let run = id(0x01);
    let mut facts: Vec<SegmentFacts> = Vec::new();
    for (ordinal, (segment, events, state)) in segments.iter().enumerate() {
        let segment = id(*segment);
        let before = facts.last().map(|last| (last.segment, last.end));
        let parent = before.map(|(segment, end)| Parent { segment, link: end.link });
        let after = before.map_or(0, |(_, end)| end.count);
        let start = SegmentStart {
            origin: ORIGIN,
            run,
            segment,
            writer: "writer",
            ordinal: ordinal as u64,
            after,
            parent,
        };
        let mut link = segment_link(&start);
        let start = Head { count: after, link };
        let mut links = BTreeMap::new();
        for seq in after + 1..=after + events {
            link = event_link(run, segment, seq, link, event_hash(format!("event {seq}").as_bytes()));
            links.insert(seq, link);
        }
        let end = Head { count: after + events, link };
        facts.push(SegmentFacts {
            segment,
            ordinal: ordinal as u64,
            parent,
            state: *state,
            start,
            end,
            links,
        });
    }
    RunFacts { origin: ORIGIN, run, segments: facts }
}

/// The head of a segment after event `count`.
pub(crate) fn head_of(facts: &RunFacts<'_>, place: usize, state: RunState, count: u64) -> RunHead {
    let segment = &facts.segments[place];
    let link = if count == segment.start.count { segment.start.link } else { segment.links[&count] };
    let writer = leaf_key(WRITER).id();
    RunHead {
        origin: ORIGIN.to_owned(),
        run: facts.run,
        segment: segment.segment,
        ordinal: segment.ordinal,
        parent: segment.parent,
        writer,
        epoch: 0,
        run_no: place as u64,
        state,
        count,
        link,
        bundle: Hex([0xb0; 32]),
        previous: (state != RunState::Open).then_some(Hex([0xe0 + place as u8; 32])),
        signer: writer,
    }
}

pub(crate) fn enrol(seed: u8, admin: u8) -> Leaf {
    Leaf::Enrol {
        origin: ORIGIN.to_owned(),
        public: leaf_key(seed).public(),
        label: "the gate of the office".to_owned(),
        admin: leaf_key(admin).id(),
    }
}

/// An export's part about the log, with what its reader trusts and what the chain says.
#[derive(Clone)]
pub(crate) struct Scene {
    /// Name and bytes of each leaf, name and bytes of its proof.
    pub(crate) leaves: Vec<[(String, Vec<u8>); 2]>,
    pub(crate) consistency: Vec<(String, Vec<u8>)>,
    pub(crate) policy: String,
    pub(crate) run: RunFacts<'static>,
}

impl Scene {
    pub(crate) fn with_evidence<T>(&self, f: impl FnOnce(&Evidence<'_>) -> T) -> T {
        let leaves = self
            .leaves
            .iter()
            .map(|[leaf, proof]| LoggedLeaf {
                leaf: File { name: &leaf.0, bytes: &leaf.1 },
                proof: File { name: &proof.0, bytes: &proof.1 },
            })
            .collect();
        let consistency = self.consistency.iter().map(|(name, bytes)| File { name, bytes }).collect();
        f(&Evidence { leaves, consistency })
    }

    pub(crate) fn judge(&self) -> LogReport {
        let trust = TrustPolicy::parse(self.policy.as_bytes()).unwrap();
        self.with_evidence(|evidence| judge(evidence, &trust, &self.run).unwrap())
    }

    /// Adds leaf `index` of a log with its proof in the tree of `size` leaves.
    pub(crate) fn prove(&mut self, log: &Log, name: &str, index: u64, size: u64) {
        let leaf = (format!("{name}.leaf"), log.leaves[index as usize].clone());
        let proof = (format!("{name}.tlog-proof"), log.proof(index, size, &[1, 2]).into_bytes());
        self.leaves.push([leaf, proof]);
    }

    /// The proof of a leaf by its name.
    pub(crate) fn proof_mut(&mut self, name: &str) -> &mut Vec<u8> {
        let wanted = format!("{name}.tlog-proof");
        &mut self.leaves.iter_mut().find(|[_, proof]| proof.0 == wanted).unwrap()[1].1
    }
}

/// A policy that asks for two of two witnesses.
pub(crate) fn policy() -> String {
    format!(
        "log {}\nwitness one {}\nwitness two {}\ngroup both all one two\nquorum both\n",
        log_key().verifier(),
        witness_key(1).verifier(),
        witness_key(2).verifier()
    )
}

/// A policy that takes the log's word.
pub(crate) fn policy_alone() -> String {
    format!("log {}\nquorum none\n", log_key().verifier())
}

/// How a log and its export differ from honest ones.
pub(crate) struct Story {
    pub(crate) segments: Vec<(u8, u64, SegmentState)>,
    /// Each head by name: segment, state, count.
    pub(crate) heads: Vec<(&'static str, usize, RunState, u64)>,
    /// What is changed in a head before it is signed.
    pub(crate) change: fn(&str, &mut RunHead),
    /// Who signs the heads, and who the enrolment.
    pub(crate) writer: u8,
    pub(crate) admin: u8,
    /// Leaves after the enrolment and before the heads, and after the heads.
    pub(crate) between: Vec<(&'static str, Leaf, u8)>,
    pub(crate) after: Vec<(&'static str, Leaf, u8)>,
}

impl Default for Story {
    fn default() -> Story {
        Story {
            segments: vec![(0x51, 6, SegmentState::Closed)],
            heads: vec![
                ("open", 0, RunState::Open, 0),
                ("mid", 0, RunState::Progress, 4),
                ("closed", 0, RunState::Closed, 6),
            ],
            change: |_, _| (),
            writer: WRITER,
            admin: 1,
            between: Vec::new(),
            after: Vec::new(),
        }
    }
}

impl Story {
    /// The log and the export that tell it; all is proven in the tree of all leaves.
    pub(crate) fn tell(self) -> (Log, Scene) {
        let facts = run(&self.segments);
        let mut log = Log::default();
        log.fill(3);
        let mut proven = vec![("writer", log.add_signed(enrol(self.writer, self.admin), self.admin))];
        for (name, leaf, seed) in self.between {
            proven.push((name, log.add_signed(leaf, seed)));
        }
        log.fill(2);
        let mut previous = BTreeMap::new();
        for (name, place, state, count) in self.heads {
            let mut head = head_of(&facts, place, state, count);
            head.previous = head.previous.and(previous.get(&place).copied().or(head.previous));
            (head.writer, head.signer) = (leaf_key(self.writer).id(), leaf_key(self.writer).id());
            (self.change)(name, &mut head);
            let index = log.add_signed(Leaf::Head(head), self.writer);
            previous.insert(place, leaf_hash(&log.leaves[index as usize]));
            proven.push((name, index));
            log.fill(1);
        }
        for (name, leaf, seed) in self.after {
            proven.push((name, log.add_signed(leaf, seed)));
        }
        let mut scene = Scene { leaves: Vec::new(), consistency: Vec::new(), policy: policy(), run: facts };
        for (name, index) in proven {
            scene.prove(&log, name, index, log.size());
        }
        (log, scene)
    }
}

/// The leaf of a file.
pub(crate) fn read_leaf(bytes: &[u8]) -> Leaf {
    SignedLeaf::parse(bytes).unwrap().leaf
}

pub(crate) fn other_run() -> Id {
    id(0x02)
}
