//! What was seen of actions and servers that ran contained.

use portcullis_proof::Attack;

use super::bodies::{Told, a, told, valid};
use super::{Case, bad};

/// What an enforcement says of an action that runs contained.
const CONTAINED: &str = r#","contained":{"profile":"project"}"#;

/// An action with its verdict and its enforcement, which says this besides.
fn judged(verdict: &str, enforced: &str, besides: &str) -> Vec<(&'static str, String)> {
    vec![
        ("proposed", a("")),
        ("verdict", a(&format!(r#","verdict":"{verdict}""#))),
        ("enforcement", a(&format!(r#","enforced":"{enforced}"{besides}"#))),
    ]
}

fn contained() -> Vec<(&'static str, String)> {
    judged("allow", "executed", CONTAINED)
}

fn ended() -> (&'static str, String) {
    ("observed", a(r#","ended":{"level":"process","how":{"status":0}}"#))
}

fn connection() -> (&'static str, String) {
    ("observed", a(r#","connection":{"port":443,"verdict":"refused"}"#))
}

pub(super) fn contained_cases() -> Vec<Case> {
    let contradictory = |(name, what, events): Told| {
        let events: Vec<(&str, &str)> = events.iter().map(|(kind, body)| (*kind, body.as_str())).collect();
        let (export, seq) = (told(&events), events.len() as u64 + 1);
        bad(name, what, export.text.clone(), &export, (Attack::StateMachine, seq + 2, Some(seq)))
    };
    let mut cases: Vec<Case> = observed_wrongly().into_iter().map(contradictory).collect();
    let after = |more: Vec<(&'static str, String)>| {
        let events = [contained(), more].concat();
        told(&events.iter().map(|(kind, body)| (*kind, body.as_str())).collect::<Vec<_>>())
    };
    let outcome = ("outcome", a(r#","status":"ok""#));
    let server = |what: &str| ("observed", format!(r#"{{"server":"files","{what}":{{}}}}"#));
    cases.push(valid(
        "valid-observed",
        "a contained action connects, ends before its outcome is known, and what it left connects on; so does a server",
        &after(vec![
            connection(),
            ended(),
            ("verdict", r#"{"verdict":"warn"}"#.to_owned()),
            outcome.clone(),
            connection(),
            server("connection"),
            server("ended"),
        ]),
    ));
    cases.push(valid(
        "valid-observed-late",
        "a contained action is observed to end after its outcome, which was unknown",
        &after(vec![("outcome", a(r#","status":"unknown""#)), outcome, ended()]),
    ));
    cases
}

/// Records of which the last event says of an action what it cannot have done.
fn observed_wrongly() -> Vec<Told> {
    let then =
        |events: Vec<(&'static str, String)>, last: Vec<(&'static str, String)>| [events, last].concat();
    let with = |body: &str| ("observed", a(body));
    vec![
        ("observed-unproposed", "an action is observed that nobody proposed", vec![ended()]),
        (
            "observed-withheld",
            "an action is observed that was withheld, though it says that it was contained",
            then(judged("deny", "withheld", CONTAINED), vec![ended()]),
        ),
        (
            "observed-held",
            "an action is observed to connect while it is held",
            then(judged("review", "held", CONTAINED), vec![connection()]),
        ),
        (
            "observed-asked",
            "an action is observed that was left to the client's prompt, without a permit",
            then(judged("review", "asked", CONTAINED), vec![ended()]),
        ),
        (
            "observed-uncontained",
            "an action is observed that went ahead, but not contained",
            then(judged("allow", "executed", ""), vec![ended()]),
        ),
        ("observed-twice", "an action is observed to end twice", then(contained(), vec![ended(), ended()])),
        (
            "observed-nothing",
            "an observation that says neither how it ended nor of a connection",
            then(contained(), vec![with("")]),
        ),
        (
            "observed-both",
            "an observation that says how it ended and of a connection",
            then(contained(), vec![with(r#","ended":{},"connection":{}"#)]),
        ),
        (
            "observed-nobody",
            "an observation of neither an action nor a server",
            vec![("observed", r#"{"ended":{}}"#.to_owned())],
        ),
    ]
}
