//! Scenes, each with the answer that every verifier gives.

pub(crate) mod texts;
mod writers;

use portcullis_proof::export::SegmentState;
use portcullis_proof::log::{CompactRange, KeyKind, Leaf, LogAttack, RunState, TreeHead, leaf_hash};
use portcullis_proof::{Hex, Status};

use super::super::notes::signer;
use super::super::world::{Log, Scene, Story, WRITER, checkpoint_of, enrol, leaf_key, policy_alone};
use crate::sample::ORIGIN;

/// A scene with the answer that every verifier gives.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) scene: Scene,
    pub(crate) status: Status,
    /// The attack, the file in which it shows, and the line.
    pub(crate) failure: Option<(LogAttack, &'static str, Option<u64>)>,
}

pub(crate) fn honest() -> (Log, Scene) {
    Story::default().tell()
}

pub(super) fn remember(log: &Log, size: u64) -> String {
    let text = log.checkpoint(size, &[]);
    let mut lines = text.lines().skip(1);
    format!("remember {ORIGIN} {} {}\n", lines.next().unwrap(), lines.next().unwrap())
}

/// The same leaves as a log, one of them another one.
fn forked(log: &Log, index: usize) -> Log {
    let mut other = Log::default();
    for (place, leaf) in log.leaves.iter().enumerate() {
        other.add(if place == index { b"another leaf".to_vec() } else { leaf.clone() });
    }
    other
}

/// The cases whose answer is not `INVALID`.
fn sound() -> Vec<Case> {
    trees().into_iter().chain(runs()).chain(keys()).collect()
}

fn case(name: &'static str, what: &'static str, scene: Scene, status: Status) -> Case {
    Case { name, what, scene, status, failure: None }
}

/// Trees that witnesses cosigned, or that the reader connects with one it remembers.
fn trees() -> Vec<Case> {
    let (log, scene) = honest();
    let mut cases =
        vec![case("valid", "enrolment and heads, cosigned by the quorum", scene.clone(), Status::Valid)];

    let mut alone = scene.clone();
    alone.policy = policy_alone();
    cases.push(case(
        "incomplete-split-view",
        "the policy asks for no witness",
        alone.clone(),
        Status::Incomplete,
    ));
    alone.policy += &remember(&log, log.size());
    cases.push(case(
        "valid-remembered",
        "no witness, but the reader remembers the tree",
        alone,
        Status::Valid,
    ));

    let mut grown = scene.clone();
    let mut later = forked(&log, usize::MAX);
    later.fill(9);
    grown.policy += &remember(&later, later.size());
    cases.push(case(
        "incomplete-unconnected",
        "nothing leads to the remembered tree",
        grown.clone(),
        Status::Incomplete,
    ));
    grown
        .consistency
        .push(("to.consistency".to_owned(), later.consistency(log.size(), later.size()).into_bytes()));
    cases.push(case(
        "valid-connected",
        "a consistency proof leads to the remembered tree",
        grown,
        Status::Valid,
    ));

    let mut stepped = scene.clone();
    stepped.leaves.clear();
    for (name, index, size) in [("writer", 3, 5), ("open", 6, 8), ("closed", 10, log.size())] {
        stepped.prove(&log, name, index, size);
    }
    stepped.consistency.push(("b.consistency".to_owned(), log.consistency(8, log.size()).into_bytes()));
    stepped.consistency.push(("a.consistency".to_owned(), log.consistency(5, 8).into_bytes()));
    cases.push(case("valid-three-trees", "each leaf in the tree of its time", stepped, Status::Valid));
    cases
}

/// Runs that are open, went on, or are not all there.
fn runs() -> Vec<Case> {
    let (_, scene) = honest();
    let mut cases = Vec::new();
    let (_, open) = Story {
        segments: vec![(0x51, 6, SegmentState::Open)],
        heads: vec![("open", 0, RunState::Open, 0), ("mid", 0, RunState::Progress, 4)],
        ..Story::default()
    }
    .tell();
    cases.push(case(
        "incomplete-open",
        "the run goes on; four of six events are logged",
        open,
        Status::Incomplete,
    ));
    let mut nothing = scene.clone();
    nothing.leaves.clear();
    cases.push(case("incomplete-no-leaf", "the export says nothing of the log", nothing, Status::Incomplete));
    let mut unlinked = scene.clone();
    unlinked.run.segments[0].links.clear();
    cases.push(case(
        "incomplete-link",
        "the chain was not computed where a head speaks of it",
        unlinked,
        Status::Incomplete,
    ));

    let (_, resumed) = Story {
        segments: vec![(0x51, 3, SegmentState::Abandoned), (0x52, 4, SegmentState::Closed)],
        heads: vec![
            ("died", 0, RunState::Abandoned, 3),
            ("again", 1, RunState::Open, 3),
            ("closed", 1, RunState::Closed, 7),
        ],
        // The first writer died; the one that goes on ends its segment.
        change: |name, head| {
            if name == "died" {
                head.writer = leaf_key(0x21).id();
            }
        },
        ..Story::default()
    }
    .tell();
    cases.push(case("valid-resumed", "a run that another writer went on with", resumed, Status::Valid));
    cases
}

/// Writers and their keys.
fn keys() -> Vec<Case> {
    let mut cases = Vec::new();
    let admin = signer("example.com/admin", KeyKind::Ed25519, 9);
    let (_, mut administered) = Story { admin: 9, ..Story::default() }.tell();
    administered.policy += &format!("admin {}\n", admin.verifier());
    cases.push(case("valid-admin", "writers are enrolled by a key of its own", administered, Status::Valid));
    let (_, revoked) = Story { after: vec![("revoked", revoke(WRITER, 1), 1)], ..Story::default() }.tell();
    cases.push(case("valid-revoked-later", "the writer was revoked after the run", revoked, Status::Valid));
    let epoch =
        Leaf::Epoch { origin: ORIGIN.into(), writer: leaf_key(WRITER).id(), epoch: 1, runs: 7, last: None };
    let (_, restarted) = Story {
        between: vec![("epoch", epoch, WRITER)],
        change: |_, head| head.epoch = 1,
        ..Story::default()
    }
    .tell();
    cases.push(case("valid-epoch", "the writer counts anew", restarted, Status::Valid));
    cases
}

pub(crate) fn revoke(writer: u8, admin: u8) -> Leaf {
    let (writer, admin) = (leaf_key(writer).id(), leaf_key(admin).id());
    Leaf::Revoke { origin: ORIGIN.into(), writer, reason: "the key was on a lost disk".into(), admin }
}

/// What a log that lies, or somebody who changes an export, does.
fn of_logs() -> Vec<Case> {
    let (log, scene) = honest();
    let groups = [unreadable(&scene), of_another_log(&log, &scene), forged(&log, &scene)];
    groups
        .into_iter()
        .flatten()
        .chain(not_in_log(&log, &scene))
        .chain(forked_logs(&log, &scene))
        .chain(rewritten(&log, &scene))
        .collect()
}

/// A case whose answer is that there was this attack, which shows in that file and line.
fn attacked(
    name: &'static str,
    what: &'static str,
    scene: Scene,
    attack: LogAttack,
    file: &'static str,
    line: Option<u64>,
) -> Case {
    Case { name, what, scene, status: Status::Invalid, failure: Some((attack, file, line)) }
}

/// Files that do not have their form.
fn unreadable(scene: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut changed = scene.clone();
    changed.leaves[3][0].1.pop();
    cases.push(attacked(
        "leaf-cut",
        "the last byte of a leaf is missing",
        changed,
        LogAttack::LeafMalformed,
        "closed.leaf",
        None,
    ));
    let mut changed = scene.clone();
    changed.proof_mut("mid").extend_from_slice(b"junk\n");
    cases.push(attacked(
        "proof-junk",
        "a line after a proof",
        changed,
        LogAttack::ProofMalformed,
        "mid.tlog-proof",
        Some(14),
    ));
    let mut changed = scene.clone();
    changed.consistency.push(("x.consistency".to_owned(), b"old 1\n".to_vec()));
    cases.push(attacked(
        "consistency-cut",
        "a consistency proof ends early",
        changed,
        LogAttack::ConsistencyMalformed,
        "x.consistency",
        Some(2),
    ));
    cases
}

/// What another log said.
fn of_another_log(log: &Log, scene: &Scene) -> Vec<Case> {
    let size = log.size();
    let mut cases = Vec::new();
    let (_, moved) = Story {
        change: |name, head| {
            if name == "mid" {
                head.origin = "portcullis/other".into()
            }
        },
        ..Story::default()
    }
    .tell();
    cases.push(attacked(
        "wrong-origin-leaf",
        "a head was signed for another log",
        moved,
        LogAttack::WrongOrigin,
        "mid.leaf",
        None,
    ));
    let mut moved = scene.clone();
    let other = checkpoint_of("portcullis/other", log.head(size), &[1, 2]);
    *moved.proof_mut("open") = proof_with(log, 6, size, &other);
    cases.push(attacked(
        "wrong-origin-checkpoint",
        "the tree of another log",
        moved,
        LogAttack::WrongOrigin,
        "open.tlog-proof",
        Some(8),
    ));
    let mut unknown = scene.clone();
    unknown.policy = unknown.policy.replacen(&log_line(ORIGIN), &log_line("portcullis/other"), 1);
    cases.push(attacked(
        "unknown-log",
        "the policy names another log",
        unknown,
        LogAttack::UnknownLog,
        "writer.tlog-proof",
        Some(8),
    ));
    cases
}

/// Trees that the log or its witnesses did not sign.
fn forged(log: &Log, scene: &Scene) -> Vec<Case> {
    let size = log.size();
    let mut cases = Vec::new();
    let mut forged = scene.clone();
    let tree = log.head(size);
    let claimed = log.checkpoint(size, &[1, 2]).replacen(
        &format!("\n{}\n", tree.size),
        &format!("\n{}\n", tree.size + 1),
        1,
    );
    *forged.proof_mut("writer") = proof_with(log, 3, size, &claimed);
    cases.push(attacked(
        "checkpoint-changed",
        "another size over old signatures",
        forged,
        LogAttack::CheckpointForged,
        "writer.tlog-proof",
        Some(12),
    ));
    let mut substituted = scene.clone();
    let own = checkpoint_of(ORIGIN, log.head(size), &[1, 2]).replacen(
        &log_signature(log, size),
        &foreign_signature(log, size),
        1,
    );
    *substituted.proof_mut("writer") = proof_with(log, 3, size, &own);
    cases.push(attacked(
        "key-substituted",
        "a checkpoint signed by a key that the policy does not name",
        substituted,
        LogAttack::CheckpointForged,
        "writer.tlog-proof",
        Some(8),
    ));
    let mut few = scene.clone();
    *few.proof_mut("closed") = log.proof(10, size, &[1, 1]).into_bytes();
    cases.push(attacked(
        "quorum-missing",
        "one witness cosigned twice",
        few,
        LogAttack::QuorumMissing,
        "closed.tlog-proof",
        Some(7),
    ));
    let mut tiny = scene.clone();
    let leaf = tiny.leaves[3][0].1.clone();
    let mut alone = CompactRange::new();
    alone.push(leaf_hash(&leaf)).unwrap();
    *tiny.proof_mut("closed") = proof_file(0, &[], &checkpoint_of(ORIGIN, alone.head(), &[]));
    cases.push(attacked(
        "one-leaf-tree",
        "a tree of one leaf, signed by the stolen key of the log",
        tiny,
        LogAttack::QuorumMissing,
        "closed.tlog-proof",
        Some(4),
    ));
    cases
}

/// Leaves that are not where the proof has them.
fn not_in_log(log: &Log, scene: &Scene) -> Vec<Case> {
    let size = log.size();
    let mut cases = Vec::new();
    let mut absent = scene.clone();
    *absent.proof_mut("closed") = log.proof(11, size, &[1, 2]).into_bytes();
    cases.push(attacked(
        "not-in-log",
        "the proof of another leaf",
        absent,
        LogAttack::NotInLog,
        "closed.tlog-proof",
        Some(2),
    ));
    let mut padded = scene.clone();
    let path = [log.path(10, size), vec![Hex([0; 32])]].concat();
    *padded.proof_mut("closed") = proof_file(10, &path, &log.checkpoint(size, &[1, 2]));
    cases.push(attacked(
        "padded-proof",
        "one hash more than the tree has levels",
        padded,
        LogAttack::NotInLog,
        "closed.tlog-proof",
        Some(2),
    ));
    let mut node = scene.clone();
    let root = TreeHead { size: 1, root: log.head(size).root };
    *node.proof_mut("closed") = proof_file(0, &[], &checkpoint_of(ORIGIN, root, &[1, 2]));
    cases.push(attacked(
        "root-as-leaf",
        "an empty proof under a root",
        node,
        LogAttack::NotInLog,
        "closed.tlog-proof",
        Some(2),
    ));
    cases
}

/// Logs with two trees of one size.
fn forked_logs(log: &Log, scene: &Scene) -> Vec<Case> {
    let size = log.size();
    let mut cases = Vec::new();
    let fork = forked(log, 0);
    let mut two = scene.clone();
    two.leaves[3][1].1 = fork.proof(10, size, &[1, 2]).into_bytes();
    cases.push(attacked(
        "log-forked",
        "two trees of one size",
        two,
        LogAttack::LogForked,
        "closed.tlog-proof",
        Some(7),
    ));
    let mut known = scene.clone();
    known.policy += &remember(&fork, size);
    cases.push(attacked(
        "log-forked-remembered",
        "the reader remembers another tree of this size",
        known,
        LogAttack::LogForked,
        "writer.tlog-proof",
        Some(8),
    ));
    let mut place = scene.clone();
    let filler = enrol(0x30, 1).sign(&leaf_key(1)).unwrap().bytes().to_vec();
    let mut twice = Log::default();
    for (index, leaf) in log.leaves.iter().enumerate() {
        twice.add(if index == 10 { filler.clone() } else { leaf.clone() });
    }
    twice.fill(1);
    place.prove(&twice, "twin", 10, size + 1);
    cases.push(attacked(
        "log-forked-leaf",
        "two leaves in one place",
        place,
        LogAttack::LogForked,
        "twin.tlog-proof",
        Some(2),
    ));
    cases
}

/// Logs that did not go on from the tree they showed.
fn rewritten(log: &Log, scene: &Scene) -> Vec<Case> {
    let size = log.size();
    let mut cases = Vec::new();
    let mut rewritten = scene.clone();
    let mut later = forked(log, 1);
    later.fill(5);
    rewritten.policy += &remember(&later, later.size());
    rewritten
        .consistency
        .push(("to.consistency".to_owned(), later.consistency(size, later.size()).into_bytes()));
    cases.push(attacked(
        "log-rewritten",
        "the remembered tree does not contain this one",
        rewritten,
        LogAttack::LogNotContinued,
        "to.consistency",
        Some(1),
    ));
    let mut stray = scene.clone();
    stray.consistency.push(("to.consistency".to_owned(), log.consistency(2, 4).into_bytes()));
    cases.push(attacked(
        "consistency-stray",
        "a consistency proof between trees that nobody speaks of",
        stray,
        LogAttack::LogNotContinued,
        "to.consistency",
        Some(1),
    ));
    let mut back = scene.clone();
    let mut longer = forked(log, usize::MAX);
    longer.fill(3);
    back.policy += &remember(&longer, longer.size());
    let cut = forked(log, 2);
    back.leaves[3][1].1 = cut.proof(10, size - 1, &[1, 2]).into_bytes();
    back.consistency
        .push(("to.consistency".to_owned(), longer.consistency(size - 1, longer.size()).into_bytes()));
    cases.push(attacked(
        "log-rolled-back",
        "the log was restored from a copy and went on otherwise",
        back,
        LogAttack::LogNotContinued,
        "to.consistency",
        Some(1),
    ));
    cases
}

pub(crate) fn cases() -> Vec<Case> {
    let texts = texts::of_texts().into_iter().map(|(case, _)| case);
    sound().into_iter().chain(of_logs()).chain(writers::of_writers()).chain(texts).collect()
}

fn proof_file(index: u64, path: &[portcullis_proof::Digest], note: &str) -> Vec<u8> {
    portcullis_proof::log::proof::tlog_proof(None, index, path, note).into_bytes()
}

fn proof_with(log: &Log, index: u64, size: u64, note: &str) -> Vec<u8> {
    proof_file(index, &log.path(index, size), note)
}

fn log_line(origin: &str) -> String {
    format!("log {}\n", signer(origin, KeyKind::Ed25519, 1).verifier())
}

fn log_signature(log: &Log, size: u64) -> String {
    log.checkpoint(size, &[]).lines().last().unwrap().to_owned()
}

fn foreign_signature(log: &Log, size: u64) -> String {
    let text = log.checkpoint(size, &[]);
    let (text, _) = text.split_once("\n\n").unwrap();
    signer(ORIGIN, KeyKind::Ed25519, 2).sign(&format!("{text}\n"), 0).unwrap().trim_end().to_owned()
}
