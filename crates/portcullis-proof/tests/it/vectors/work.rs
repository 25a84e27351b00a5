//! What is done to work items, and by whom.

use portcullis_proof::Attack;
use portcullis_proof::export::SegmentState;

use super::bodies::valid;
use super::{Case, bad};
use crate::sample::{Builder, Export};

const AGENT: &str = "agent:ana";
const GATE: &str = "gate";
const PERSON: &str = "approver:bo";

/// Operation, item, state after, who; a state of `refused` is a refusal.
type Done = (&'static str, u64, &'static str, &'static str);

const MADE: Done = ("create", 1, "pending", AGENT);
const STARTED: Done = ("start", 1, "in_progress", AGENT);
const CLAIMED: Done = ("claim", 1, "claimed", AGENT);
const CHECKED: Done = ("check", 1, "verified", GATE);

fn told(operations: &[Done]) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    for (seq, (op, item, state, actor)) in (2..).zip(operations) {
        let body = match *state {
            "refused" => format!(r#"{{"op":"{op}","item":{item},"refused":"wrong_state"}}"#),
            "" => format!(r#"{{"op":"{op}","items":[{item}]}}"#),
            state => format!(r#"{{"op":"{op}","item":{item},"state":"{state}"}}"#),
        };
        let line = format!(
            r#"{{"v":1,"seq":{seq},"t":"","kind":"work","actor":"{actor}","cause":1,"payloads":{{}},"body":{body}}}"#
        );
        builder.raw(seq, &line);
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

pub(super) fn work_cases() -> Vec<Case> {
    let contradictory = |(name, what, operations): (&'static str, &'static str, Vec<Done>)| {
        let (export, seq) = (told(&operations), operations.len() as u64 + 1);
        bad(name, what, export.text.clone(), &export, (Attack::StateMachine, seq + 2, Some(seq)))
    };
    let mut cases: Vec<Case> = done_wrongly().into_iter().map(contradictory).collect();
    cases.push(valid(
        "valid-work",
        "an item is claimed, turned down, claimed again and verified; another one is set, accepted, attested and buried",
        &told(&[
            MADE,
            ("propose", 1, "pending", AGENT),
            ("accept", 1, "pending", PERSON),
            STARTED,
            ("attest", 1, "refused", AGENT),
            CLAIMED,
            ("check", 1, "claimed", GATE),
            ("check", 1, "in_progress", GATE),
            CLAIMED,
            ("stale", 1, "", GATE),
            ("create", 2, "pending", PERSON),
            ("require", 2, "pending", PERSON),
            ("decline", 2, "pending", PERSON),
            ("start", 2, "in_progress", AGENT),
            ("claim", 2, "claimed", AGENT),
            ("ask_changes", 2, "in_progress", PERSON),
            ("claim", 2, "claimed", AGENT),
            ("attest", 2, "verified", PERSON),
            ("bury", 2, "verified", PERSON),
            ("start", 2, "refused", AGENT),
            CHECKED,
        ]),
    ));
    cases
}

/// Records of which the last event says of an item what nobody may do to it.
fn done_wrongly() -> Vec<(&'static str, &'static str, Vec<Done>)> {
    let claimed = |last: Done| vec![MADE, STARTED, CLAIMED, last];
    vec![
        (
            "work-verified-by-agent",
            "an agent attests its own item",
            claimed(("attest", 1, "verified", AGENT)),
        ),
        ("work-checked-by-agent", "an agent checks its own item", claimed(("check", 1, "verified", AGENT))),
        (
            "work-checked-by-person",
            "a person is said to have checked",
            claimed(("check", 1, "verified", PERSON)),
        ),
        ("work-buried-by-agent", "an agent buries an item", vec![MADE, ("bury", 1, "pending", AGENT)]),
        ("work-unclaimed", "an item is verified that nobody claimed", vec![MADE, STARTED, CHECKED]),
        ("work-unstarted", "an item is claimed that nobody started", vec![MADE, CLAIMED]),
        ("work-unmade", "an item is started that nobody made", vec![STARTED]),
        ("work-made-twice", "an item is made twice", vec![MADE, MADE]),
        ("work-number-left-out", "a number is left out", vec![MADE, ("create", 3, "pending", AGENT)]),
        (
            "work-after-burial",
            "an item is started after it was buried",
            vec![MADE, ("bury", 1, "pending", PERSON), STARTED],
        ),
        (
            "work-verified-again",
            "changes are asked for of what is verified",
            vec![MADE, STARTED, CLAIMED, CHECKED, ("ask_changes", 1, "in_progress", PERSON)],
        ),
        (
            "work-criteria-late",
            "criteria are set after the start",
            vec![MADE, STARTED, ("require", 1, "in_progress", PERSON)],
        ),
        ("work-started-to-claimed", "starting makes it claimed", vec![MADE, ("start", 1, "claimed", AGENT)]),
        ("work-stale-by-agent", "an agent says what is stale", vec![MADE, ("stale", 1, "", AGENT)]),
        ("work-unknown", "an operation that nobody knows", vec![MADE, ("delete", 1, "pending", PERSON)]),
    ]
}
