//! Writers that lie, and stolen keys.

use portcullis_proof::export::SegmentState;
use portcullis_proof::log::{Leaf, LogAttack, RunState};
use portcullis_proof::{Hex, Parent, Status};

use super::{Case, revoke};
use crate::log::world::{Log, Scene, Story, WRITER, enrol, head_of, leaf_key, other_run, policy, run};

/// What a writer that lies, or a stolen key, does.
pub(super) fn of_writers() -> Vec<Case> {
    let case = |name, what, story: Story, attack, file| {
        let failure = Some((attack, file, None));
        Case { name, what, scene: story.tell().1, status: Status::Invalid, failure }
    };
    let story = Story::default;
    let mut cases = vec![
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
    ];
    let mut unknown = story().tell().1;
    unknown.leaves.remove(0);
    let failure = Some((LogAttack::WriterNotEnrolled, "open.leaf", None));
    cases.push(Case {
        name: "writer-not-enrolled",
        what: "the enrolment is missing",
        scene: unknown,
        status: Status::Invalid,
        failure,
    });
    let mut known = story().tell().1;
    known.policy += &format!("revoked {} 7\n", leaf_key(WRITER).id());
    let failure = Some((LogAttack::WriterRevoked, "mid.leaf", None));
    cases.push(Case {
        name: "writer-revoked-known",
        what: "the reader knows that the writer was revoked",
        scene: known,
        status: Status::Invalid,
        failure,
    });
    // A head that was logged with a signature that does not hold, and an enrolment that comes after the head.
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
        let failure = Some((attack, "closed.leaf", None));
        cases.push(Case { name, what, scene, status: Status::Invalid, failure });
    }
    cases
}
