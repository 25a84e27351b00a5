//! Exports whose chain is without fault and whose story cannot be true.

use portcullis_proof::Attack;
use portcullis_proof::export::SegmentState;

use super::{Case, bad};
use crate::sample::{Builder, Export, action, id};

/// Events as kind and body.
type Story<'a> = Vec<(&'a str, String)>;

/// A run of one segment with the given events after `run-opened`, chained without a fault.
fn told(events: &Story<'_>) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    for (kind, body) in events {
        builder.event(kind, body);
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

/// A run of one segment whose first event is this.
fn opened_by(kind: &str, body: &str) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event(kind, body);
    builder.close(SegmentState::Closed);
    builder.finish()
}

pub(super) fn meaning_cases() -> Vec<Case> {
    use Attack::*;
    let a = |rest: &str| action(0xa1, rest);
    let proposed = ("proposed", a(""));
    let allow = ("verdict", a(r#","verdict":"allow""#));
    let deny = ("verdict", a(r#","verdict":"deny""#));
    let executed = ("enforcement", a(r#","enforced":"executed""#));
    let outcome = ("outcome", a(r#","status":"ok""#));
    let approval = format!(r#","approval":"{}""#, id(0xc1));
    let granted =
        ("approval-decided", format!(r#"{{"approval":"{}","decision":"granted","scope":"once"}}"#, id(0xc1)));
    let claimed = ("grant-claimed", a(&approval));
    let told_badly: [(&str, &str, Story<'_>); 8] = [
        (
            "executed-unjudged",
            "an action is executed before any verdict",
            vec![proposed.clone(), executed.clone()],
        ),
        (
            "executed-denied",
            "an action is executed against its verdict",
            vec![proposed.clone(), deny, executed.clone()],
        ),
        (
            "executed-twice",
            "an action is executed twice",
            vec![proposed.clone(), allow.clone(), executed.clone(), executed.clone()],
        ),
        (
            "outcome-twice",
            "an action has two outcomes",
            vec![proposed.clone(), allow, executed, outcome.clone(), outcome],
        ),
        ("claimed-ungranted", "a grant is claimed that nobody gave", vec![proposed.clone(), claimed.clone()]),
        (
            "claimed-twice",
            "a grant for once is claimed twice",
            vec![proposed.clone(), granted, claimed.clone(), claimed],
        ),
        (
            "closed-twice",
            "an event follows the end of its segment",
            vec![("run-closed", r#"{"state":"closed","count":2}"#.to_owned())],
        ),
        (
            "gap-of-nothing",
            "a gap admits the loss of an event that is there",
            vec![("gap", r#"{"from":1,"to":1,"cause":"x"}"#.to_owned())],
        ),
    ];
    let mut cases: Vec<Case> = told_badly
        .into_iter()
        .map(|(name, what, events)| {
            let export = told(&events);
            // Told events fail at the last of them; one more `run-closed` fails at the one that follows.
            let seq = if name == "closed-twice" { 3 } else { events.len() as u64 + 1 };
            bad(name, what, export.text.clone(), &export, (StateMachine, seq + 2, Some(seq)))
        })
        .collect();
    cases.extend(opened_badly());
    cases
}

/// Runs whose first event is not what it should be.
fn opened_badly() -> [Case; 2] {
    use Attack::*;
    let unopened = opened_by("input", "{}");
    let doubled = opened_by("run-opened", r#"{"mode":"enforce","mode":"observe"}"#);
    [
        bad(
            "not-opened",
            "the run does not start with `run-opened`",
            unopened.text.clone(),
            &unopened,
            (StateMachine, 3, Some(1)),
        ),
        bad(
            "event-duplicate-key",
            "a key stands twice in a chained event",
            doubled.text.clone(),
            &doubled,
            (EventMalformed, 3, Some(1)),
        ),
    ]
}
