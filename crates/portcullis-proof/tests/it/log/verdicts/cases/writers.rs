//! Writers that lie, and stolen keys.

use portcullis_proof::export::SegmentState;
use portcullis_proof::log::{Leaf, LogAttack, RunState};
use portcullis_proof::{Hex, Parent, Status};

use super::{Case, revoke};
use crate::log::world::{Log, Scene, Story, WRITER, enrol, head_of, leaf_key, other_run, policy, run};

/// What a writer that lies, or a stolen key, does.
pub(super) fn of_writers() -> Vec<Case> {
    let told = [keys(), unlike_the_export(), other_ends(), heads_of_a_segment(), numbers_and_parents()];
    told.into_iter().flatten().chain(not_enrolled()).chain(out_of_order()).collect()
}

fn case(name: &'static str, what: &'static str, story: Story, attack: LogAttack, file: &'static str) -> Case {
    failing(name, what, story.tell().1, attack, file)
}

fn failing(
    name: &'static str,
    what: &'static str,
    scene: Scene,
    attack: LogAttack,
    file: &'static str,
) -> Case {
    Case { name, what, scene, status: Status::Invalid, failure: Some((attack, file, None)) }
}

/// Keys that may not sign.
fn keys() -> Vec<Case> {
    let story = Story::default;
    vec![
        case(
            "admin-unknown",
            "a writer enrolled by a key that may not",
            Story { admin: 8, ..story() },
            LogAttack::AdminUnknown,
            "writer.leaf",
        ),
        case(
            "writer-revoked",
            "a head after the writer was revoked",
            Story { between: vec![("revoked", revoke(WRITER, 1), 1)], ..story() },
            LogAttack::WriterRevoked,
            "open.leaf",
        ),
    ]
}

/// Heads that say something else than the export.
fn unlike_the_export() -> Vec<Case> {
    let story = Story::default;
    vec![
        case(
            "head-of-another-run",
            "a head of another run of the writer",
            Story {
                change: |name, head| {
                    if name == "mid" {
                        head.run = other_run()
                    }
                },
                ..story()
            },
            LogAttack::HeadOfAnotherRun,
            "mid.leaf",
        ),
        case(
            "tail-missing",
            "the log has seven events",
            Story {
                change: |name, head| {
                    if name == "closed" {
                        head.count = 7
                    }
                },
                ..story()
            },
            LogAttack::TailMissing,
            "closed.leaf",
        ),
        case(
            "segment-missing",
            "the log has a segment that the export has not",
            Story {
                change: |name, head| {
                    if name == "closed" {
                        head.segment = other_run()
                    }
                },
                ..story()
            },
            LogAttack::TailMissing,
            "closed.leaf",
        ),
        case(
            "chain-rewritten",
            "an event was changed after it was logged",
            Story {
                change: |name, head| {
                    if name == "mid" {
                        head.link = Hex([1; 32])
                    }
                },
                ..story()
            },
            LogAttack::ChainRewritten,
            "mid.leaf",
        ),
    ]
}

/// Heads that say another end than the export.
fn other_ends() -> Vec<Case> {
    let story = Story::default;
    vec![
        case(
            "events-after-close",
            "the export goes on after the logged end",
            Story {
                change: |name, head| {
                    if name == "closed" {
                        *head = head_of(&run(&[(0x51, 6, SegmentState::Closed)]), 0, RunState::Closed, 5)
                    }
                },
                ..story()
            },
            LogAttack::HeadMismatch,
            "closed.leaf",
        ),
        case(
            "closed-as-abandoned",
            "closed in the export, abandoned in the log",
            Story {
                change: |name, head| {
                    if name == "closed" {
                        head.state = RunState::Abandoned
                    }
                },
                ..story()
            },
            LogAttack::HeadMismatch,
            "closed.leaf",
        ),
    ]
}

/// Heads of one segment that cannot all be true.
fn heads_of_a_segment() -> Vec<Case> {
    let story = Story::default;
    vec![
        case(
            "head-regressed",
            "a later head with fewer events",
            Story {
                heads: vec![
                    ("mid", 0, RunState::Progress, 4),
                    ("back", 0, RunState::Progress, 2),
                    ("closed", 0, RunState::Closed, 6),
                ],
                ..story()
            },
            LogAttack::HeadRegressed,
            "back.leaf",
        ),
        case(
            "opened-twice",
            "the segment is opened again",
            Story { heads: vec![("open", 0, RunState::Open, 0), ("again", 0, RunState::Open, 1)], ..story() },
            LogAttack::HeadRegressed,
            "again.leaf",
        ),
        case(
            "progress-after-close",
            "the segment goes on after its end",
            Story {
                heads: vec![("closed", 0, RunState::Closed, 6), ("mid", 0, RunState::Progress, 6)],
                ..story()
            },
            LogAttack::HeadRegressed,
            "mid.leaf",
        ),
        case(
            "closed-twice",
            "two ends of one segment",
            Story {
                heads: vec![("closed", 0, RunState::Closed, 6), ("again", 0, RunState::Closed, 6)],
                change: |name, head| {
                    if name == "again" {
                        head.bundle = Hex([3; 32])
                    }
                },
                ..story()
            },
            LogAttack::ClosedTwice,
            "again.leaf",
        ),
        case(
            "head-forked",
            "two heads that follow the same head",
            Story {
                heads: vec![
                    ("open", 0, RunState::Open, 0),
                    ("mid", 0, RunState::Progress, 4),
                    ("other", 0, RunState::Progress, 5),
                ],
                change: |name, head| {
                    if name != "open" {
                        head.previous = Some(Hex([7; 32]));
                    }
                },
                ..story()
            },
            LogAttack::HeadForked,
            "other.leaf",
        ),
    ]
}

/// Heads that give a segment another number, or another parent.
fn numbers_and_parents() -> Vec<Case> {
    let story = Story::default;
    vec![
        case(
            "run-renumbered",
            "two heads of a segment with different numbers",
            Story {
                change: |name, head| {
                    if name == "closed" {
                        head.run_no = 9;
                    }
                },
                ..story()
            },
            LogAttack::HeadMismatch,
            "closed.leaf",
        ),
        case(
            "run-number-reused",
            "one number for two segments",
            Story {
                segments: vec![(0x51, 3, SegmentState::Closed), (0x52, 3, SegmentState::Closed)],
                heads: vec![("first", 0, RunState::Closed, 3), ("second", 1, RunState::Closed, 6)],
                change: |_, head| head.run_no = 4,
                ..story()
            },
            LogAttack::RunNumberReused,
            "second.leaf",
        ),
        case(
            "parent-changed",
            "the head continues another segment",
            Story {
                change: |name, head| {
                    if name == "open" {
                        head.ordinal = 1;
                        head.parent = Some(Parent { segment: other_run(), link: Hex([9; 32]) })
                    }
                },
                ..story()
            },
            LogAttack::HeadMismatch,
            "open.leaf",
        ),
    ]
}

/// Enrolments that are missing or taken back.
fn not_enrolled() -> [Case; 2] {
    let mut unknown = Story::default().tell().1;
    unknown.leaves.remove(0);
    let mut known = Story::default().tell().1;
    known.policy += &format!("revoked {} 7\n", leaf_key(WRITER).id());
    [
        failing(
            "writer-not-enrolled",
            "the enrolment is missing",
            unknown,
            LogAttack::WriterNotEnrolled,
            "open.leaf",
        ),
        failing(
            "writer-revoked-known",
            "the reader knows that the writer was revoked",
            known,
            LogAttack::WriterRevoked,
            "mid.leaf",
        ),
    ]
}

/// A head that was logged with a signature that does not hold, and an enrolment that comes after the head.
fn out_of_order() -> Vec<Case> {
    let mut cases = Vec::new();
    let facts = run(&[(0x51, 6, SegmentState::Closed)]);
    let closed = Leaf::Head(head_of(&facts, 0, RunState::Closed, 6)).sign(&leaf_key(WRITER)).unwrap();
    let mut bytes = closed.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    for (name, what, order, attack) in [
        ("leaf-forged", "the signature of a head does not hold", [0, 1], LogAttack::LeafForged),
        (
            "enrolled-later",
            "the head was logged before its writer was enrolled",
            [1, 0],
            LogAttack::WriterNotEnrolled,
        ),
    ] {
        let mut log = Log::default();
        let enrolment = enrol(WRITER, 1).sign(&leaf_key(1)).unwrap().bytes().to_vec();
        let files = [("writer", enrolment), ("closed", bytes.clone())];
        for place in order {
            let (_, leaf) = &files[place];
            log.add(leaf.clone());
        }
        let mut scene =
            Scene { leaves: Vec::new(), consistency: Vec::new(), policy: policy(), run: facts.clone() };
        for (index, place) in order.into_iter().enumerate() {
            scene.prove(&log, files[place].0, index as u64, 2);
        }
        cases.push(failing(name, what, scene, attack, "closed.leaf"));
    }
    cases
}
