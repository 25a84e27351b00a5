//! A seeded simulation: writers, one sequencer that crashes anywhere, witnesses that crash between storing and
//! answering, a network that loses, doubles and reorders, readers in between. All in memory, one thread, no clock; what
//! happens next is drawn by lot from a seed, which a failure prints and `PORTCULLIS_SIMULATION_SEED` repeats.
//!
//! It is the protocol that is tried here, with the parts that the real log is made of: tree, notes, the decision of a
//! witness, the memory of a reader, the monitor. The real log's files are tried by the ledger's own tests.

use std::collections::BTreeMap;

use portcullis_proof::log::leaf::RunState;
use portcullis_proof::log::note::signature_lines;
use portcullis_proof::log::tree::{empty_root, prove_consistency};
use portcullis_proof::log::witness::{Refusal, answer};
use portcullis_proof::log::{
    Checkpoint, CompactRange, History, Leaf, Monitor, Note, RunHead, TreeHead, leaf_hash,
};
use portcullis_proof::{Digest, Hex};

use super::world::{Log, WRITER, enrol, leaf_key, log_key, witness_key};
use crate::sample::ORIGIN;

const SEED: &str = "PORTCULLIS_SIMULATION_SEED";
/// Things that happen before everything is well again.
const STEPS: usize = 400;
const WITNESSES: u8 = 3;
const QUORUM: usize = 2;
/// Seeds in the short form and in the long one.
const SEEDS: u64 = 24;
const SEEDS_LONG: u64 = 1_000;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Lot(u64);

impl Lot {
    fn draw(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.draw(times) == 0
    }
}

/// What survives a crash of the log: its database, in which a transaction is there or not.
#[derive(Clone)]
struct Store {
    waiting: Vec<Vec<u8>>,
    placed: Vec<Vec<u8>>,
    head: TreeHead,
    staged: bool,
}

/// What a round has worked out and not committed yet.
struct Round {
    base: TreeHead,
    taken: usize,
    log: Log,
}

/// Where the sequencer is; a crash brings it back to the start.
enum Sequencer {
    Starts,
    Idle,
    Worked(Round),
    Publishes,
}

enum Message {
    Ask { witness: u8, body: String, head: TreeHead },
    Cosigned { witness: u8, head: TreeHead, line: String },
    Conflict { witness: u8, size: u64 },
}

struct World {
    lot: Lot,
    store: Store,
    backup: Option<Store>,
    sequencer: Sequencer,
    /// The log was told of a tree of its own that it does not know, and signs nothing more.
    stopped: bool,
    /// What is published: leaves as tiles, and the checkpoint that speaks of the first of them.
    tiles: Vec<Vec<u8>>,
    published: Option<String>,
    believed: [u64; WITNESSES as usize],
    /// What each witness stored last, and all that it ever cosigned.
    seen: [TreeHead; WITNESSES as usize],
    cosigned: Vec<Vec<TreeHead>>,
    network: Vec<Message>,
    reader: Option<History>,
    signed: Vec<TreeHead>,
    acknowledged: Vec<Digest>,
    open: Vec<RunHead>,
    runs: u64,
    restored: bool,
}

fn log_of(leaves: &[Vec<u8>]) -> Log {
    let mut log = Log::default();
    for leaf in leaves {
        log.add(leaf.clone());
    }
    log
}

impl World {
    fn new(seed: u64) -> World {
        let empty = TreeHead { size: 0, root: empty_root() };
        let enrolment = enrol(WRITER, 1).sign(&leaf_key(1)).unwrap().bytes().to_vec();
        World {
            lot: Lot(seed),
            store: Store { waiting: vec![enrolment], placed: Vec::new(), head: empty, staged: false },
            backup: None,
            sequencer: Sequencer::Starts,
            stopped: false,
            tiles: Vec::new(),
            published: None,
            believed: [0; WITNESSES as usize],
            seen: [empty; WITNESSES as usize],
            cosigned: vec![Vec::new(); usize::from(WITNESSES)],
            network: Vec::new(),
            reader: None,
            signed: Vec::new(),
            acknowledged: Vec::new(),
            open: Vec::new(),
            runs: 0,
            restored: false,
        }
    }

    /// A writer has a head to log: of a new run, or of one that goes on or ends. It tries until it is told that the
    /// head is stored, and may be told wrongly that it is not.
    fn write(&mut self) {
        let goes_on = !self.open.is_empty() && !self.lot.once_in(3);
        let mut head = if goes_on {
            let place = self.lot.draw(self.open.len());
            self.open.swap_remove(place)
        } else {
            let number = self.runs;
            self.runs += 1;
            let writer = leaf_key(WRITER).id();
            RunHead {
                origin: ORIGIN.to_owned(),
                run: Hex([number as u8; 16]),
                segment: Hex([number as u8; 16]),
                ordinal: 0,
                parent: None,
                writer,
                epoch: 0,
                run_no: number,
                state: RunState::Open,
                count: 0,
                link: Hex([0; 32]),
                bundle: Hex([0xb0; 32]),
                previous: None,
                signer: writer,
            }
        };
        if goes_on {
            head.count += 1 + self.lot.draw(9) as u64;
            head.link = Hex([head.count as u8; 32]);
            head.state = if self.lot.once_in(2) { RunState::Closed } else { RunState::Progress };
        }
        let leaf = Leaf::Head(head.clone()).sign(&leaf_key(WRITER)).unwrap();
        loop {
            if self.lot.once_in(10) {
                continue;
            }
            let there = |leaves: &[Vec<u8>]| leaves.iter().any(|other| other == leaf.bytes());
            if !there(&self.store.waiting) && !there(&self.store.placed) {
                self.store.waiting.push(leaf.bytes().to_vec());
            }
            if !self.lot.once_in(10) {
                break;
            }
        }
        self.acknowledged.push(leaf.hash());
        if !head.state.is_final() {
            head.previous = Some(leaf.hash());
            self.open.push(head);
        }
    }

    /// One step of the sequencer, which may be its last.
    fn sequence(&mut self, faults: bool) {
        let crashes = faults && self.lot.once_in(8);
        self.sequencer = match std::mem::replace(&mut self.sequencer, Sequencer::Starts) {
            _ if self.stopped => Sequencer::Starts,
            Sequencer::Starts => {
                // What is published is never ahead of what is remembered; a log that was restored stops here.
                let published = self.published.as_ref().map(|note| checkpoint(note).head());
                match published {
                    Some(head) if head.size > self.store.head.size => self.stopped = true,
                    Some(head) if head.size == self.store.head.size => assert_eq!(head, self.store.head),
                    _ => {}
                }
                if self.store.staged { Sequencer::Publishes } else { Sequencer::Idle }
            }
            Sequencer::Idle if self.store.waiting.is_empty() => Sequencer::Idle,
            Sequencer::Idle => {
                let taken = 1 + self.lot.draw(self.store.waiting.len());
                let leaves: Vec<_> =
                    self.store.placed.iter().chain(&self.store.waiting[..taken]).cloned().collect();
                Sequencer::Worked(Round { base: self.store.head, taken, log: log_of(&leaves) })
            }
            Sequencer::Worked(round) => {
                // The transaction fails before it takes effect, or nobody hears that it did.
                let fails = faults && self.lot.once_in(10);
                if !fails && round.base == self.store.head {
                    self.store.waiting.drain(..round.taken);
                    self.store.head = round.log.head(round.log.size());
                    self.store.placed = round.log.leaves;
                    self.store.staged = true;
                    self.signed.push(self.store.head);
                }
                let unheard = faults && self.lot.once_in(10);
                if fails || unheard { Sequencer::Starts } else { Sequencer::Publishes }
            }
            Sequencer::Publishes => {
                // Beyond what is published may lie tiles of a tree that was signed, and lost when a copy came back
                // before its checkpoint was out. They are written over, as the files of unfinished tiles are.
                let placed = &self.store.placed;
                let there = self.tiles.iter().zip(placed).take_while(|(tile, leaf)| tile == leaf).count();
                let until =
                    if crashes { there + self.lot.draw(placed.len() - there + 1) } else { placed.len() };
                let over = until.min(self.tiles.len());
                self.tiles.splice(there..over, placed[there..until].iter().cloned());
                if crashes {
                    return;
                }
                let log = log_of(&self.store.placed);
                self.published = Some(log.checkpoint(log.size(), &[]));
                if faults && self.lot.once_in(10) {
                    // Published, and still staged: it is published again.
                    return;
                }
                self.store.staged = false;
                Sequencer::Idle
            }
        };
        if crashes {
            self.sequencer = Sequencer::Starts;
        }
    }

    /// The log asks a witness for its cosignature of what is published.
    fn ask(&mut self) {
        let Some(note) = &self.published else { return };
        let head = checkpoint(note).head();
        let witness = self.lot.draw(usize::from(WITNESSES));
        let old = self.believed[witness].min(head.size);
        let log = log_of(&self.tiles);
        let body = log.consistency(old, head.size);
        self.network.push(Message::Ask { witness: witness as u8, body, head });
    }

    /// The network hands over one message, out of turn, twice, or not at all.
    fn deliver(&mut self, faults: bool) {
        if self.network.is_empty() {
            return;
        }
        let place = self.lot.draw(self.network.len());
        let message = self.network.swap_remove(place);
        if faults && self.lot.once_in(5) {
            return;
        }
        match message {
            Message::Ask { witness, body, head } => {
                if faults && self.lot.once_in(5) {
                    self.network.push(Message::Ask { witness, body: body.clone(), head });
                }
                self.witness(witness, &body, faults);
            }
            Message::Cosigned { witness, head, line } => {
                // Whoever hands it on has verified it.
                let text = Checkpoint::new(ORIGIN, head).unwrap().text();
                let signature = &signature_lines(line.as_bytes()).unwrap()[0];
                assert!(witness_key(witness + 1).verifier().verify(&text, &signature.signature).is_ok());
                let believed = &mut self.believed[usize::from(witness)];
                *believed = (*believed).max(head.size);
            }
            Message::Conflict { witness, size } => {
                // A witness saw a tree that this log does not know: it was restored from a copy.
                self.stopped |= size > self.store.head.size;
                self.believed[usize::from(witness)] = size;
            }
        }
    }

    fn witness(&mut self, witness: u8, body: &str, faults: bool) {
        let place = usize::from(witness);
        let seen = self.seen[place];
        match answer(body.as_bytes(), &[log_key().verifier().clone()], |_| Some(seen)) {
            Ok(request) => {
                let head = request.checkpoint.head();
                self.seen[place] = head;
                self.cosigned[place].push(head);
                if faults && self.lot.once_in(5) {
                    // It is stopped when it has stored and not answered.
                    return;
                }
                // Its clock may stand anywhere.
                let time = self.lot.draw(2_000_000_000) as u64;
                let line = witness_key(witness + 1).sign(&request.checkpoint.text(), time).unwrap();
                self.network.push(Message::Cosigned { witness, head, line });
            }
            Err(Refusal::Conflict { size }) => self.network.push(Message::Conflict { witness, size }),
            Err(Refusal::Inconsistent(error)) => assert!(self.restored, "an honest log was refused: {error}"),
            // The old size of a request is never past the new one.
            Err(other) => panic!("{other}"),
        }
    }

    /// A reader goes on to what is published.
    fn read(&mut self) {
        let Some(note) = &self.published else { return };
        let parsed = Note::parse(note.as_bytes()).unwrap();
        parsed.verify([log_key().verifier()]).unwrap();
        let next = checkpoint(note);
        if self.reader.as_ref().is_some_and(|history| history.newest() == &next) {
            return;
        }
        assert!(self.tiles.len() as u64 >= next.size(), "a checkpoint is out before its tiles");
        let log = log_of(&self.tiles);
        assert_eq!(log.head(next.size()).root, next.root(), "the tiles do not lead to the checkpoint");
        match &mut self.reader {
            None => self.reader = Some(History::new(next)),
            Some(history) => {
                let path = consistency(&self.tiles, history.newest().size(), next.size());
                history.advance(next, &path).unwrap();
            }
        }
    }

    /// Somebody makes a copy of the log's database, or puts an old one in its place.
    fn restore(&mut self) {
        match self.backup.take() {
            None => self.backup = Some(self.store.clone()),
            Some(old) if old.head.size < self.store.head.size => {
                self.store = old;
                self.sequencer = Sequencer::Starts;
                self.restored = true;
            }
            Some(_) => {}
        }
    }

    fn happen(&mut self, restores: bool) {
        match self.lot.draw(12) {
            0..=2 => self.write(),
            3..=6 => self.sequence(true),
            7 => self.ask(),
            8..=9 => self.deliver(true),
            10 => self.read(),
            _ if restores && self.lot.once_in(8) => self.restore(),
            _ => self.deliver(true),
        }
    }

    /// Everything works again; until nothing is left to do.
    fn heal(&mut self) {
        for _ in 0..STEPS {
            self.sequence(false);
            let quiet = self.store.waiting.is_empty() && matches!(self.sequencer, Sequencer::Idle);
            if self.stopped || (quiet && self.seen.iter().all(|seen| *seen == self.store.head)) {
                break;
            }
            if quiet {
                self.ask();
            }
            while !self.network.is_empty() {
                self.deliver(false);
            }
        }
        if !self.restored {
            self.read();
        }
    }

    /// What must hold, whatever happened.
    fn check(&self) {
        let last = self.cosigned.iter().flatten().max_by_key(|head| head.size);
        for history in &self.cosigned {
            for pair in history.windows(2) {
                assert!(pair[0].size <= pair[1].size, "a witness went back");
                assert!(
                    pair[0].size < pair[1].size || pair[0] == pair[1],
                    "a witness saw two trees of one size"
                );
            }
        }
        if self.restored {
            // The copy may lead to another tree, of which no quorum cosigned anything past the old one.
            self.check_quorum();
            return;
        }
        let final_log = log_of(&self.store.placed);
        for head in self.signed.iter().chain(self.cosigned.iter().flatten()) {
            assert_eq!(final_log.head(head.size), *head, "two checkpoints contradict each other");
        }
        assert!(!self.stopped, "an honest log stopped");
        assert_eq!(self.store.waiting.len(), 0);
        assert_eq!(last, Some(&self.store.head), "the witnesses are not up to date");
        let placed: BTreeMap<Digest, usize> =
            self.store.placed.iter().map(|leaf| leaf_hash(leaf)).zip(0..).collect();
        assert_eq!(placed.len(), self.store.placed.len(), "a leaf has two places");
        assert!(
            self.acknowledged.iter().all(|head| placed.contains_key(head)),
            "an acknowledged head is lost"
        );
        assert_eq!(placed.len(), self.acknowledged.len() + 1, "there are leaves that nobody wrote");
        let mut monitor = Monitor::new(ORIGIN, vec![log_key().verifier().clone()]);
        for leaf in &self.tiles {
            assert_eq!(monitor.read(leaf).unwrap(), []);
        }
        assert_eq!((monitor.missing().count(), monitor.open().count()), (0, self.open.len()));
    }

    /// No two trees that a quorum cosigned contradict each other.
    fn check_quorum(&self) {
        let mut votes: BTreeMap<(u64, [u8; 32]), Vec<usize>> = BTreeMap::new();
        for (witness, history) in self.cosigned.iter().enumerate() {
            for head in history {
                let voters = votes.entry((head.size, head.root.0)).or_default();
                if !voters.contains(&witness) {
                    voters.push(witness);
                }
            }
        }
        let mut agreed: BTreeMap<u64, [u8; 32]> = BTreeMap::new();
        for ((size, root), voters) in votes {
            if voters.len() >= QUORUM {
                assert_eq!(*agreed.entry(size).or_insert(root), root, "two quorums for {size} leaves");
            }
        }
    }
}

fn checkpoint(note: &str) -> Checkpoint {
    Checkpoint::from_note(note.as_bytes()).unwrap().1
}

fn consistency(leaves: &[Vec<u8>], old: u64, new: u64) -> Vec<Digest> {
    let mut nodes = super::oracle::Nodes::default();
    let mut range = CompactRange::new();
    for leaf in leaves {
        range
            .push_with(leaf_hash(leaf), |level, index, hash| {
                nodes.0.insert((level, index), hash);
            })
            .unwrap();
    }
    prove_consistency(&nodes, old, new).unwrap().unwrap()
}

/// Runs one seed; how often the log was stopped and restored, and the leaves of its end.
fn simulate(seed: u64) -> (bool, bool, usize) {
    let mut world = World::new(seed);
    // Every fourth world has somebody with an old copy.
    let restores = seed.is_multiple_of(4);
    for _ in 0..STEPS {
        world.happen(restores);
    }
    world.heal();
    world.check();
    (world.stopped, world.restored, world.store.placed.len())
}

#[test]
fn whatever_happens_no_head_is_lost_and_no_checkpoint_contradicts_another() {
    let seeds: Vec<u64> = match std::env::var(SEED) {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) if std::env::var_os("PORTCULLIS_TEST_LONG").is_some() => (0..SEEDS_LONG).collect(),
        Err(_) => (0..SEEDS).collect(),
    };
    let (mut stopped, mut restored, mut leaves) = (0, 0, 0);
    for seed in &seeds {
        // What a failure prints last before it says what is wrong.
        println!("simulation: {SEED}={seed}");
        let done = simulate(*seed);
        stopped += usize::from(done.0);
        restored += usize::from(done.1);
        leaves += done.2;
    }
    println!("{} worlds, {leaves} leaves; {restored} restored from a copy, {stopped} stopped", seeds.len());
    if seeds.len() > 1 {
        assert!(leaves > seeds.len() * 20 && restored > 0 && stopped > 0);
    }
}
