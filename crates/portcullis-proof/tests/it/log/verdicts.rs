//! The verdict over a run: what an honest log gives, and that every lie of a log, a writer or an export is named.

pub(crate) mod cases;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use expect_test::expect;
use portcullis_proof::export::SegmentState;
use portcullis_proof::log::leaf::{LEAF_TEXT_BYTES_MAX, SignedLeaf};
use portcullis_proof::log::proof::tlog_proof;
use portcullis_proof::log::tile::ENTRY_BYTES_MAX;
use portcullis_proof::log::verdict::{EVIDENCE_CONSISTENCY_MAX, EVIDENCE_LEAVES_MAX, UNPROVEN};
use portcullis_proof::log::{Leaf, LogAttack, RunState, TrustPolicy, judge};
use portcullis_proof::report::CheckResult;
use portcullis_proof::{Hex, Status};

use super::world::{Log, Scene, Story, WRITER, enrol, head_of, leaf_key, policy_alone, read_leaf, run};
use crate::sample::ORIGIN;
use cases::{cases, honest, remember, texts};

/// The check that finds it.
fn check_of(attack: LogAttack) -> &'static str {
    match attack {
        LogAttack::FilesMismatched
        | LogAttack::LeafMalformed
        | LogAttack::ProofMalformed
        | LogAttack::ConsistencyMalformed => "format",
        LogAttack::WrongOrigin => "origin",
        LogAttack::UnknownLog | LogAttack::CheckpointForged | LogAttack::QuorumMissing => "checkpoint",
        LogAttack::NotInLog => "inclusion",
        LogAttack::LogForked | LogAttack::LogNotContinued => "history",
        LogAttack::AdminUnknown
        | LogAttack::LeafForged
        | LogAttack::WriterNotEnrolled
        | LogAttack::WriterRevoked => "writers",
        LogAttack::HeadOfAnotherRun
        | LogAttack::HeadMismatch
        | LogAttack::TailMissing
        | LogAttack::ChainRewritten
        | LogAttack::HeadRegressed
        | LogAttack::HeadForked
        | LogAttack::ClosedTwice
        | LogAttack::RunNumberReused => "heads",
    }
}

#[test]
fn every_case_has_its_answer() {
    let mut named = BTreeSet::new();
    for case in cases() {
        let report = case.scene.judge();
        assert_eq!(report.status, case.status, "{}: {report}", case.name);
        let found =
            report.failure.as_ref().map(|failure| (failure.attack, failure.file.as_str(), failure.line));
        assert_eq!(found, case.failure, "{}: {report}", case.name);
        named.extend(report.failure.as_ref().map(|failure| failure.attack));
        assert_eq!(report.checks.len(), 9);
        assert_eq!(report.unproven, UNPROVEN);
        if let Some(failure) = &report.failure {
            assert!(report.to_string().contains(&failure.message));
            let word = serde_json::to_value(failure.attack).unwrap();
            let first = format!("INVALID {} in `{}`", word.as_str().unwrap(), failure.file);
            assert!(report.to_string().starts_with(&first), "{report}");
            // The checks before it were made, those after it were not.
            let failed =
                report.checks.iter().position(|check| check.name == check_of(failure.attack)).unwrap();
            for (index, check) in report.checks.iter().enumerate() {
                let result = match index.cmp(&failed) {
                    Ordering::Less => check.result != CheckResult::Fail,
                    Ordering::Equal => check.result == CheckResult::Fail && check.detail == failure.message,
                    Ordering::Greater => {
                        check.result == CheckResult::NotChecked
                            && check.detail == "stopped at the first failure"
                    }
                };
                assert!(result, "{}: {report}", case.name);
            }
            // The place is the first byte of the line.
            let files = case.scene.leaves.iter().flatten().chain(&case.scene.consistency);
            let (_, bytes) = files.into_iter().find(|(name, _)| *name == failure.file).unwrap();
            if let Some(line) = failure.line {
                let before: usize = bytes
                    .split_inclusive(|byte| *byte == b'\n')
                    .take(line as usize - 1)
                    .map(<[u8]>::len)
                    .sum();
                assert_eq!(failure.byte, before as u64, "{}", case.name);
            }
            assert!(failure.byte <= bytes.len() as u64);
        }
    }
    // All but that of files, which is made where files have names.
    assert_eq!(named.len(), 22, "every attack is named by a case: {named:?}");
}

#[test]
fn what_is_not_of_its_format_is_named_where_it_shows() {
    for (case, byte) in texts::of_texts() {
        let failure = case.scene.judge().failure.unwrap();
        assert_eq!(failure.byte, byte, "{}: {}", case.name, failure.message);
    }
}

#[test]
fn a_report_says_what_is_anchored() {
    let (log, scene) = honest();
    let report = scene.judge();
    assert_eq!((report.tree_size, report.root), (Some(log.size()), Some(log.head(log.size()).root)));
    assert_eq!((report.anchored, report.seen_by, report.exit_code()), (Some(6), Some(1_800_000_001), 0));
    expect![[r#"
        VALID
          format      pass: 4 leaves and 0 consistency proofs
          origin      pass: all of it is of `portcullis/example`
          checkpoint  pass: 1 checkpoints, signed by a log of the policy and as its quorum asks
          inclusion   pass: 4 leaves are in the log
          history     pass: 1 trees, each the beginning of the next
          writers     pass: 3 leaves of 1 enrolled writers
          heads       pass: the heads of 1 segments agree with the chain
          closure     pass: the log has the end of the run, after event 6
          split-view  pass: the witnesses of the policy saw the same tree
          not proven  uniqueness: the log may hold other heads of this run
          not proven  suppression: other runs of the writer may have been left out; its run numbers tell
          not proven  revocation: only revocations in the export or the policy are known
          not proven  source: the writer may have recorded what did not happen
    "#]]
    .assert_eq(&report.to_string());
    let json = serde_json::to_string(&report).unwrap();
    assert!(
        json.starts_with(r#"{"status":"VALID","failure":null,"checks":[{"name":"format","result":"pass""#),
        "{json}"
    );
}

/// Two beginnings of one tree agree with each other, so every tree has to be led to the largest one.
#[test]
fn every_tree_is_led_to_the_largest() {
    let (log, mut scene) = honest();
    let largest = log.size();
    *scene.proof_mut("writer") = log.proof(3, 5, &[1, 2]).into_bytes();
    *scene.proof_mut("open") = log.proof(6, 8, &[1, 2]).into_bytes();
    let status = |steps: &[(u64, u64)]| {
        let mut scene = scene.clone();
        for (old, new) in steps {
            scene.consistency.push((format!("{old}.consistency"), log.consistency(*old, *new).into_bytes()));
        }
        let report = scene.judge();
        let open = report.checks.iter().find(|check| check.result != CheckResult::Pass);
        (report.status, open.map(|check| check.detail.clone()))
    };
    let lacks = |size| {
        let message = format!("no proof leads from the tree of {size} leaves to that of {largest}");
        (Status::Incomplete, Some(message))
    };
    assert_eq!(status(&[(5, 8), (8, largest)]), (Status::Valid, None));
    assert_eq!(status(&[(5, largest), (8, largest)]), (Status::Valid, None));
    assert_eq!(status(&[]), lacks(8));
    assert_eq!(status(&[(5, largest)]), lacks(8));
    assert_eq!(status(&[(5, 8), (5, largest)]), lacks(8));
    assert_eq!(status(&[(8, largest)]), lacks(5));
}

/// A writer may have logged its progress up to the event that turned out to be the last.
#[test]
fn the_end_may_follow_progress_without_an_event_between() {
    let heads = vec![("open", 0, RunState::Open, 0), ("mid", 0, RunState::Progress, 6)];
    let closed = ("closed", 0, RunState::Closed, 6);
    let (_, scene) = Story { heads: [heads, vec![closed]].concat(), ..Story::default() }.tell();
    assert_eq!(scene.judge().status, Status::Valid);
}

#[test]
fn the_chain_is_asked_where_heads_speak_of_it() {
    let (_, scene) = honest();
    let wanted = scene.with_evidence(|evidence| evidence.wanted());
    let segment = scene.run.segments[0].segment;
    assert_eq!(wanted, [(segment, 0), (segment, 4), (segment, 6)]);
}

#[test]
fn there_is_a_limit_to_evidence() {
    let (_, mut scene) = honest();
    scene.leaves = vec![scene.leaves[0].clone(); EVIDENCE_LEAVES_MAX + 1];
    let trust = TrustPolicy::parse(scene.policy.as_bytes()).unwrap();
    let judged = |scene: &Scene| scene.with_evidence(|evidence| judge(evidence, &trust, &scene.run));
    let error = judged(&scene).unwrap_err().to_string();
    assert_eq!(error, "the export has 4097 leaves; this verifier reads at most 4096");
    scene.leaves.pop();
    scene.leaves[0][0].1.clear();
    let failure = judged(&scene).unwrap().failure.unwrap();
    assert_eq!(failure.attack, LogAttack::LeafMalformed, "as many as are read");
    let file = ("1.consistency".to_owned(), Vec::new());
    scene.consistency = vec![file.clone(); EVIDENCE_CONSISTENCY_MAX];
    assert!(judged(&scene).is_ok());
    scene.consistency.push(file);
    let error = judged(&scene).unwrap_err().to_string();
    assert_eq!(error, "the export has 257 consistency proofs; this verifier reads at most 256");
    // A leaf that stands twice is no contradiction.
    let (_, mut scene) = honest();
    scene.leaves.push(scene.leaves[3].clone());
    assert_eq!(scene.judge().status, Status::Valid);
}

#[test]
fn every_changed_byte_of_the_evidence_is_found() {
    let facts = run(&[(0x51, 2, SegmentState::Closed)]);
    let mut log = Log::default();
    log.add_signed(enrol(WRITER, 1), 1);
    log.add_signed(Leaf::Head(head_of(&facts, 0, RunState::Closed, 2)), WRITER);
    // Signatures of witnesses are changed elsewhere; here the log signs alone, and the reader remembers its tree.
    let policy = format!("{}{}", policy_alone(), remember(&log, 2));
    let mut scene = Scene { leaves: Vec::new(), consistency: Vec::new(), policy, run: facts };
    for (name, index) in [("writer", 0), ("closed", 1)] {
        scene.prove(&log, name, index, 2);
        *scene.proof_mut(name) =
            tlog_proof(None, index, &log.path(index, 2), &log.checkpoint(2, &[])).into_bytes();
    }
    assert_eq!(scene.judge().status, Status::Valid);
    let mut tried = 0;
    let mut survivors = Vec::new();
    for pair in 0..2 {
        for part in 0..2 {
            for byte in 0..scene.leaves[pair][part].1.len() {
                let mut changed = scene.clone();
                changed.leaves[pair][part].1[byte] ^= 1 << (byte % 8);
                tried += 1;
                if changed.judge().status != Status::Invalid {
                    survivors.push((pair, part, byte));
                }
            }
        }
    }
    assert_eq!(survivors, []);
    assert_eq!(tried, scene.leaves.iter().flatten().map(|(_, bytes)| bytes.len()).sum::<usize>());
    // Files swapped, dropped or doubled.
    let mut swapped = scene.clone();
    let [first, second] = &mut swapped.leaves[..] else { panic!() };
    std::mem::swap(&mut first[1], &mut second[1]);
    assert_eq!(swapped.judge().status, Status::Invalid);
    let mut dropped = scene.clone();
    dropped.leaves.pop();
    assert_eq!(dropped.judge().status, Status::Incomplete);
}

#[test]
fn leaves_round_trip_and_contradictions_are_refused() {
    let (_, scene) = honest();
    for [(_, bytes), _] in &scene.leaves {
        let leaf = read_leaf(bytes);
        let seed = if matches!(leaf, Leaf::Enrol { .. }) { 1 } else { WRITER };
        assert_eq!(leaf.sign(&leaf_key(seed)).unwrap().bytes(), bytes);
    }
    let facts = run(&[(0x51, 6, SegmentState::Closed)]);
    let head = |state| head_of(&facts, 0, state, 4);
    let mut cases: Vec<(Leaf, &str)> = Vec::new();
    let mut add = |change: &dyn Fn(&mut portcullis_proof::log::RunHead), state, error| {
        let mut head = head(state);
        change(&mut head);
        cases.push((Leaf::Head(head), error));
    };
    add(
        &|head| head.previous = Some(Hex([1; 32])),
        RunState::Open,
        "an open head, and no other, is without a head",
    );
    add(&|head| head.previous = None, RunState::Closed, "an open head, and no other, is without a head");
    add(&|head| head.ordinal = 1, RunState::Open, "the first segment, and no other, is without parent");
    add(&|head| head.writer = Hex([7; 32]), RunState::Closed, "only an abandoned segment may be ended");
    add(&|head| head.origin = "two words".into(), RunState::Open, "an origin has no white space");
    add(&|head| head.origin = String::new(), RunState::Open, "an origin has 1 to 256");
    let writer = leaf_key(WRITER).id();
    let epoch = |epoch, last| Leaf::Epoch { origin: ORIGIN.into(), writer, epoch, runs: 1, last };
    cases.push((epoch(0, None), "epoch 0 begins with the enrolment"));
    cases.push((epoch(1, Some(Hex([0; 32]))), "a hash in it is all zeros"));
    for (leaf, error) in cases {
        let found = leaf.sign(&leaf_key(WRITER)).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
    assert!(
        Leaf::Head(head(RunState::Closed))
            .sign(&leaf_key(3))
            .unwrap_err()
            .message
            .contains("is to be signed by")
    );
    let long = Leaf::Revoke {
        origin: ORIGIN.into(),
        writer,
        reason: "x".repeat(LEAF_TEXT_BYTES_MAX + 1),
        admin: writer,
    };
    assert!(long.sign(&leaf_key(WRITER)).unwrap_err().message.contains("it may have 256"));
    for reason in ["a\nb", "\u{85}", "\u{7f}"] {
        let (origin, reason) = (ORIGIN.to_owned(), reason.to_owned());
        let unfit = Leaf::Revoke { origin, writer, reason, admin: writer };
        assert!(unfit.sign(&leaf_key(WRITER)).unwrap_err().message.contains("without control characters"));
    }
    let padded = |bytes: usize| {
        let mut leaf = scene.leaves[0][0].1.clone();
        leaf.resize(bytes, 0);
        SignedLeaf::parse(&leaf).unwrap_err().message
    };
    assert_eq!(padded(ENTRY_BYTES_MAX), "something follows the signature");
    assert_eq!(padded(ENTRY_BYTES_MAX + 1), "65536 bytes; a leaf has at most 65535");
    let states = [RunState::Open, RunState::Progress, RunState::Closed, RunState::Abandoned];
    assert_eq!(states.map(RunState::as_str), ["open", "progress", "closed", "abandoned"]);
}
