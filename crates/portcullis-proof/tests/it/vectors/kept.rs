//! What is put into session state, and what is done to facts.

use portcullis_proof::Attack;
use portcullis_proof::export::SegmentState;

use super::bodies::valid;
use super::{Case, bad};
use crate::sample::{Builder, Export};

const AGENT: &str = "agent:ana";
const PERSON: &str = "approver:bo";

/// Kind, actor, body. `RUN` in a body is the run.
type Done = (&'static str, &'static str, &'static str);

const PUT: Done = ("state", AGENT, r#"{"op":"put","cell":1}"#);
const PUT_AGAIN: Done = ("state", AGENT, r#"{"op":"put","cell":1,"replaces":2}"#);
const WRITTEN: Done = ("fact", AGENT, r#"{"op":"write"}"#);
const FORGOTTEN: Done = ("fact", AGENT, r#"{"op":"forget","fact":"RUN.2"}"#);

fn told(done: &[Done]) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    let run = "01".repeat(16);
    for (seq, (kind, actor, body)) in (2..).zip(done) {
        let body = body.replace("RUN", &run);
        let line = format!(
            r#"{{"v":1,"seq":{seq},"t":"","kind":"{kind}","actor":"{actor}","cause":1,"payloads":{{}},"body":{body}}}"#
        );
        builder.raw(seq, &line);
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

pub(super) fn kept_cases() -> Vec<Case> {
    let contradictory = |(name, what, done): (&'static str, &'static str, Vec<Done>)| {
        let (export, seq) = (told(&done), done.len() as u64 + 1);
        bad(name, what, export.text.clone(), &export, (Attack::StateMachine, seq + 2, Some(seq)))
    };
    let mut cases: Vec<Case> = done_wrongly().into_iter().map(contradictory).collect();
    cases.push(valid(
        "valid-state",
        "two keys are put, one again and again, and what is stale is refused",
        &told(&[
            PUT,
            PUT_AGAIN,
            ("state", AGENT, r#"{"op":"put","cell":1,"replaces":2,"refused":"stale"}"#),
            ("state", AGENT, r#"{"op":"put","cell":2}"#),
            ("state", AGENT, r#"{"op":"put","cell":1,"replaces":3,"labels":["tool:x"]}"#),
            ("state", AGENT, r#"{"op":"put","refused":"malformed"}"#),
        ]),
    ));
    cases.push(valid(
        "valid-fact",
        "facts are established, read and forgotten, one of another run by a person",
        &told(&[
            WRITTEN,
            ("fact", AGENT, r#"{"op":"write","replaces":["RUN.2"],"scope":"workspace","labels":["user"]}"#),
            ("fact", AGENT, r#"{"op":"read","facts":["RUN.2","RUN.3"]}"#),
            FORGOTTEN,
            ("fact", AGENT, r#"{"op":"forget","refused":"forgotten"}"#),
            ("fact", PERSON, r#"{"op":"forget","fact":"abababababababababababababababab.7"}"#),
        ]),
    ));
    cases
}

/// Records of which the last event says what nobody may do, or what cannot be.
fn done_wrongly() -> Vec<(&'static str, &'static str, Vec<Done>)> {
    let state = |body: &'static str| ("state", AGENT, body);
    let fact = |body: &'static str| ("fact", AGENT, body);
    vec![
        ("state-stale", "a value replaces one that is no longer there", vec![PUT, PUT_AGAIN, PUT_AGAIN]),
        ("state-blind", "a value is put over another without its version", vec![PUT, PUT]),
        ("state-unmade", "a value replaces one of a key that has none", vec![PUT_AGAIN]),
        ("state-number-left-out", "a number is left out", vec![PUT, state(r#"{"op":"put","cell":3}"#)]),
        ("state-no-cell", "it does not say which key", vec![state(r#"{"op":"put"}"#)]),
        ("state-unknown", "an operation that nobody knows", vec![PUT, state(r#"{"op":"clear","cell":1}"#)]),
        ("state-by-person", "a person puts a value", vec![("state", PERSON, r#"{"op":"put","cell":1}"#)]),
        ("fact-forgotten-twice", "a fact is forgotten twice", vec![WRITTEN, FORGOTTEN, FORGOTTEN]),
        ("fact-unwritten", "a fact of this run is forgotten that it did not write", vec![PUT, FORGOTTEN]),
        ("fact-unnamed", "it does not say which fact is forgotten", vec![fact(r#"{"op":"forget"}"#)]),
        (
            "fact-name-malformed",
            "the number of the event has a zero in front",
            vec![WRITTEN, fact(r#"{"op":"forget","fact":"RUN.02"}"#)],
        ),
        (
            "fact-name-too-big",
            "the number of the event is past 64 bits",
            vec![WRITTEN, fact(r#"{"op":"forget","fact":"RUN.18446744073709551616"}"#)],
        ),
        ("fact-unknown", "an operation that nobody knows", vec![WRITTEN, fact(r#"{"op":"change"}"#)]),
        ("fact-by-person", "a person establishes a fact", vec![("fact", PERSON, r#"{"op":"write"}"#)]),
        ("fact-read-by-gate", "the gate reads a fact", vec![WRITTEN, ("fact", "gate", r#"{"op":"read"}"#)]),
    ]
}
