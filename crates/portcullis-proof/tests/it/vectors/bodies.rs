//! Events that are chained and cannot be read, and bodies that say nothing or too much.

use portcullis_proof::export::SegmentState;
use portcullis_proof::{Attack, Status};

use super::{Case, bad};
use crate::sample::{Builder, Export, action, id};

/// Name, what it is, and events as kind and body.
pub(super) type Told = (&'static str, &'static str, Vec<(&'static str, String)>);

/// A run of one segment whose second event is this line.
fn second(line: &str) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.raw(2, line);
    builder.close(SegmentState::Closed);
    builder.finish()
}

/// A run of one segment with these events, as kind and body, after its opening.
pub(super) fn told(events: &[(&str, &str)]) -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    for (kind, body) in events {
        builder.event(kind, body);
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

pub(super) fn valid(name: &'static str, what: &'static str, export: &Export) -> Case {
    Case {
        name,
        what,
        text: export.text.clone(),
        trust: Some(export.trust_text()),
        status: Status::Valid,
        failure: None,
        payloads: [0; 3],
    }
}

pub(super) fn body_cases() -> Vec<Case> {
    let mut cases = unreadable();
    cases.extend(contradictory());
    cases.extend(odd());
    cases
}

fn unreadable() -> Vec<Case> {
    let line = |from: &str, to: &str| {
        let line = r#"{"v":1,"seq":2,"t":"","kind":"input","actor":"a","cause":1,"payloads":{},"body":{}}"#;
        assert_eq!(line.matches(from).count(), 1, "{from}");
        line.replace(from, to)
    };
    let body = |text: &str| line(r#""body":{}"#, &format!(r#""body":{{"a":{text}}}"#));
    // The line's own object and the body's are two levels.
    let deep = body(&nested(126));
    let payload = |members: &str| line(r#""payloads":{}"#, &format!(r#""payloads":{{"p":{{{members}}}}}"#));
    let digest = "0".repeat(64);
    let cases: Vec<(&'static str, &'static str, String)> = vec![
        ("event-seq-fraction", "`seq` is 2.0", line(r#""seq":2"#, r#""seq":2.0"#)),
        ("event-cause-itself", "an event is its own cause", line(r#""cause":1"#, r#""cause":2"#)),
        ("event-cause-zero", "the cause is event 0", line(r#""cause":1"#, r#""cause":0"#)),
        ("event-cause-absent", "`cause` is left out", line(r#""cause":1,"#, "")),
        ("event-member-unknown", "a member that events do not have", line(r#""v":1"#, r#""v":1,"w":1"#)),
        ("event-of-version-2", "`v` is 2", line(r#""v":1"#, r#""v":2"#)),
        ("event-kind-unknown", "a kind that there is not", line("input", "inputs")),
        ("event-body-a-list", "the body is a list", line(r#""body":{}"#, r#""body":[]"#)),
        ("event-actor-null", "`actor` is null", line(r#""actor":"a""#, r#""actor":null"#)),
        ("event-nested-key-twice", "a key stands twice, once in escapes", body(r#"[{"b":1,"\u0062":2}]"#)),
        ("event-half-a-pair", "half of a surrogate pair", body(r#""\ud800""#)),
        ("event-number-too-large", "a number past the range of binary64", body("1e400")),
        ("event-too-deep", "objects and lists are nested 128 deep", deep),
        ("event-trailing-comma", "a comma before the end of an object", body(r#"{"b":1,}"#)),
        ("event-tab-in-text", "a control character in a text", body("\"a\tb\"")),
        (
            "event-payload-member",
            "a payload has a member that payloads do not have",
            payload(&format!(r#""commitment":"{digest}","media_type":"a","bytes":1,"salt":"b""#)),
        ),
        (
            "event-payload-commitment",
            "a commitment in upper case",
            payload(&format!(r#""commitment":"{}","media_type":"a","bytes":1"#, "A".repeat(64))),
        ),
        (
            "event-payload-length",
            "a length below 0",
            payload(&format!(r#""commitment":"{digest}","media_type":"a","bytes":-1"#)),
        ),
    ];
    let malformed = |(name, what, line): (&'static str, &'static str, String)| {
        let export = second(&line);
        bad(name, what, export.text.clone(), &export, (Attack::EventMalformed, 4, Some(2)))
    };
    cases.into_iter().map(malformed).collect()
}

/// Events of which the last contradicts those before it, or lacks what it has to say.
fn contradictory() -> Vec<Case> {
    let cases =
        [proposals_and_verdicts(), executions_and_outcomes(), approvals(), decisions(), ends()].concat();
    let contradictory = |(name, what, events): Told| {
        let events: Vec<(&str, &str)> = events.iter().map(|(kind, body)| (*kind, body.as_str())).collect();
        let (export, seq) = (told(&events), events.len() as u64 + 1);
        bad(name, what, export.text.clone(), &export, (Attack::StateMachine, seq + 2, Some(seq)))
    };
    cases.into_iter().map(contradictory).collect()
}

/// What an event says of the one action there is.
pub(super) fn a(rest: &str) -> String {
    action(0xa1, rest)
}

fn allow() -> String {
    a(r#","verdict":"allow""#)
}

fn executed() -> String {
    a(r#","enforced":"executed""#)
}

fn proposals_and_verdicts() -> Vec<Told> {
    let (proposed, allow) = (a(""), allow());
    let upper = proposed.replace(&id(0xa1).to_string(), &"A1".repeat(16));
    vec![
        ("proposed-without-action", "no action", vec![("proposed", "{}".into())]),
        ("proposed-id-upper-case", "an id in upper case", vec![("proposed", upper)]),
        (
            "proposed-twice",
            "an action is proposed twice",
            vec![("proposed", proposed.clone()), ("proposed", proposed.clone())],
        ),
        ("verdict-without-verdict", "no verdict", vec![("verdict", "{}".into())]),
        (
            "verdict-unknown",
            "a verdict that there is not, on a text",
            vec![("verdict", r#"{"verdict":"permit"}"#.into())],
        ),
        (
            "verdict-action-null",
            "`action` is there, and null",
            vec![("verdict", r#"{"action":null,"verdict":"allow"}"#.into())],
        ),
        (
            "verdict-unproposed",
            "a verdict on an action that nobody proposed",
            vec![("verdict", allow.clone())],
        ),
        (
            "verdict-after-execution",
            "a verdict on an action that went ahead",
            vec![
                ("proposed", proposed.clone()),
                ("verdict", allow.clone()),
                ("enforcement", executed()),
                ("verdict", allow),
            ],
        ),
    ]
}

fn executions_and_outcomes() -> Vec<Told> {
    let (proposed, allow, executed) = (a(""), allow(), executed());
    let (review, held) = (a(r#","verdict":"review""#), a(r#","enforced":"held""#));
    let unknown = a(r#","status":"unknown""#);
    vec![
        (
            "enforcement-unknown",
            "an enforcement that there is not, on a text",
            vec![("enforcement", r#"{"enforced":"eaten"}"#.into())],
        ),
        (
            "enforcement-before-verdict",
            "an action is held before any verdict",
            vec![("proposed", proposed.clone()), ("enforcement", held)],
        ),
        (
            "asked-of-an-allowed",
            "an action is asked about that was allowed",
            vec![
                ("proposed", proposed.clone()),
                ("verdict", allow.clone()),
                ("enforcement", a(r#","enforced":"asked""#)),
            ],
        ),
        (
            "executed-under-review",
            "an action is executed whose latest verdict is review",
            vec![
                ("proposed", proposed.clone()),
                ("verdict", allow.clone()),
                ("verdict", review),
                ("enforcement", executed.clone()),
            ],
        ),
        (
            "outcome-early",
            "an outcome of an action that did not go ahead",
            vec![
                ("proposed", proposed.clone()),
                ("verdict", allow.clone()),
                ("outcome", a(r#","status":"ok""#)),
            ],
        ),
        (
            "outcome-status-unknown",
            "a status that there is not",
            vec![
                ("proposed", proposed.clone()),
                ("verdict", allow.clone()),
                ("enforcement", executed.clone()),
                ("outcome", a(r#","status":"done""#)),
            ],
        ),
        (
            "outcome-unknown-twice",
            "an outcome is unknown twice",
            vec![
                ("proposed", proposed),
                ("verdict", allow),
                ("enforcement", executed),
                ("outcome", unknown.clone()),
                ("outcome", unknown),
            ],
        ),
    ]
}

fn approvals() -> Vec<Told> {
    let proposed = a("");
    let approval = format!(r#","approval":"{}""#, id(0xc1));
    let (requested, claimed) = (a(&approval), a(&approval));
    let decided = |decision: &str| format!(r#"{{"approval":"{}","decision":"{decision}"}}"#, id(0xc1));
    let (granted, refused) = (decided("granted"), decided("refused"));
    vec![
        (
            "approval-unproposed",
            "an approval of an action that nobody proposed",
            vec![("approval-requested", requested.clone())],
        ),
        (
            "approval-requested-twice",
            "an approval is requested twice",
            vec![
                ("proposed", proposed.clone()),
                ("approval-requested", requested.clone()),
                ("approval-requested", requested.clone()),
            ],
        ),
        (
            "approval-requested-late",
            "an approval is requested after it was decided",
            vec![
                ("proposed", proposed.clone()),
                ("approval-decided", granted.clone()),
                ("approval-requested", requested),
            ],
        ),
        (
            "approval-decision-unknown",
            "a decision that there is not",
            vec![("approval-decided", decided("yes"))],
        ),
        (
            "approval-without-id",
            "a decision on nothing",
            vec![("approval-decided", r#"{"decision":"granted"}"#.into())],
        ),
        (
            "claimed-unproposed",
            "a grant is claimed for an action that nobody proposed",
            vec![("approval-decided", granted.clone()), ("grant-claimed", claimed.clone())],
        ),
        (
            "claimed-after-refusal",
            "a grant is claimed that was taken back",
            vec![
                ("proposed", proposed.clone()),
                ("approval-decided", granted.clone()),
                ("approval-decided", refused),
                ("grant-claimed", claimed.clone()),
            ],
        ),
        (
            "granted-after-claim",
            "a grant for once is given again after it was claimed",
            vec![
                ("proposed", proposed),
                ("approval-decided", granted.clone()),
                ("grant-claimed", claimed),
                ("approval-decided", granted),
            ],
        ),
    ]
}

/// Approvals of texts, and decisions that are neither a yes nor a no.
fn decisions() -> Vec<Told> {
    let decided = |decision: &str| format!(r#"{{"approval":"{}","decision":"{decision}"}}"#, id(0xc1));
    let granted = decided("granted");
    let text = |seq: u64| format!(r#"{{"approval":"{}","text":{seq}}}"#, id(0xc1));
    vec![
        (
            "approval-of-nothing",
            "an approval that is about neither an action nor a text",
            vec![("approval-requested", format!(r#"{{"approval":"{}"}}"#, id(0xc1)))],
        ),
        (
            "approval-of-a-later-text",
            "an approval of a text that is still to come",
            vec![("approval-requested", text(2))],
        ),
        (
            "endorsed-unrequested",
            "somebody agrees to what nobody asked",
            vec![("approval-decided", decided("endorsed"))],
        ),
        (
            "claimed-after-endorsement",
            "a grant is claimed to which not everybody has agreed",
            vec![
                ("approval-requested", text(1)),
                ("approval-decided", decided("endorsed")),
                ("grant-claimed", text(1)),
            ],
        ),
        (
            "answered-after-grant",
            "an approval is answered with words after it was granted",
            vec![
                ("approval-requested", text(1)),
                ("approval-decided", granted.clone()),
                ("approval-decided", decided("answered")),
            ],
        ),
        (
            "revoked-before-grant",
            "a grant is revoked that was not given",
            vec![("approval-requested", text(1)), ("approval-decided", decided("revoked"))],
        ),
        (
            "claimed-after-revocation",
            "a grant is claimed that was revoked",
            vec![
                ("approval-requested", text(1)),
                ("approval-decided", granted.clone()),
                ("approval-decided", decided("revoked")),
                ("grant-claimed", text(1)),
            ],
        ),
    ]
}

/// Ends of a segment.
fn ends() -> Vec<Told> {
    vec![
        (
            "closed-without-count",
            "the end of a segment does not say its number",
            vec![("run-closed", r#"{"state":"closed"}"#.into())],
        ),
        (
            "closed-with-another-count",
            "the end of a segment says another number",
            vec![("run-closed", r#"{"state":"closed","count":3}"#.into())],
        ),
        (
            "closed-as-open",
            "a segment ends as open",
            vec![("run-closed", r#"{"state":"open","count":2}"#.into())],
        ),
    ]
}

/// What looks wrong and is not.
fn odd() -> Vec<Case> {
    let line = format!(
        concat!(
            r#" {{"body": {{"a":{}, "b":-1.5e300, "action":7}}, "payloads":{{}},"#,
            r#""caus\u0065":null,"actor":"","kind":"input","t":"no time","seq":2,"v":1}} "#
        ),
        nested(125)
    );
    let a = |rest: &str| action(0xa1, rest);
    let approval = format!(r#","approval":"{}""#, id(0xc1));
    let claimed = a(&approval);
    let any = format!(r#"{{"approval":"{}","decision":"granted","scope":7}}"#, id(0xc1));
    let many = told(&[
        ("proposed", &a("")),
        ("approval-decided", &any),
        ("grant-claimed", &claimed),
        ("grant-claimed", &claimed),
        ("approval-decided", &any),
        ("grant-claimed", &claimed),
    ]);
    let of_text = format!(r#"{{"approval":"{}","text":1}}"#, id(0xc1));
    let decided = |approval: u8, decision: &str| {
        format!(r#"{{"approval":"{}","decision":"{decision}"}}"#, id(approval))
    };
    let let_pass = told(&[
        ("proposed", &a("")),
        ("verdict", &a(r#","verdict":"deny""#)),
        ("enforcement", &a(r#","enforced":"let-pass""#)),
        ("outcome", &a(r#","status":"unknown""#)),
        ("outcome", &a(r#","status":"error""#)),
        ("verdict", r#"{"verdict":"deny"}"#),
        ("enforcement", r#"{"enforced":"withheld"}"#),
    ]);
    vec![
        valid(
            "valid-odd-event",
            "members in another order, white space, escapes, 127 levels",
            &second(&line),
        ),
        valid("valid-many-claims", "a grant whose scope is not `once` is claimed as often as needed", &many),
        valid(
            "valid-approval-of-text",
            "two people agree to a text, and a call gets words instead",
            &told(&[
                ("approval-requested", &of_text),
                ("approval-decided", &decided(0xc1, "endorsed")),
                ("approval-decided", &decided(0xc1, "granted")),
                ("grant-claimed", &of_text),
                ("proposed", &a("")),
                ("approval-requested", &a(&format!(r#","approval":"{}""#, id(0xc2)))),
                ("approval-decided", &decided(0xc2, "answered")),
                ("approval-decided", &decided(0xc3, "granted")),
                ("approval-decided", &decided(0xc3, "revoked")),
            ]),
        ),
        valid(
            "valid-let-pass",
            "an action is let pass against its verdict, and a text is withheld",
            &let_pass,
        ),
    ]
}
