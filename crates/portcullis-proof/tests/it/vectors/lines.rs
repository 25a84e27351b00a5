//! Exports in which one line is wrong, and those that look wrong and are not: what `specs/run-chain.md` §5 says of the
//! order in which a line is checked, and of what a failure names.

use portcullis_proof::export::{PayloadRecord, SegmentState, write_record};
use portcullis_proof::{Attack, Hex, Status, event_hash, payload_commitment, trust};

use super::{Case, bad, edit, foreign_payload, payload_line, replace};
use crate::sample::{Builder, Export, ORIGIN, action, closed, id, resumed};

/// A run that was opened.
fn opened() -> Builder {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder
}

fn finished(mut builder: Builder) -> Export {
    builder.close(SegmentState::Closed);
    builder.finish()
}

fn good(name: &'static str, what: &'static str, export: &Export, payloads: [u64; 3]) -> Case {
    Case {
        name,
        what,
        text: export.text.clone(),
        trust: Some(export.trust_text()),
        status: Status::Valid,
        failure: None,
        payloads,
    }
}

pub(super) fn line_cases() -> Vec<Case> {
    [of_first_and_last(), of_places(), of_forms(), of_heads(), of_gaps(), of_payloads(), of_trust()].concat()
}

fn of_first_and_last() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let case = |name, what, text, failure| bad(name, what, text, &closed, failure);
    vec![
        case(
            "first-line-cut",
            "the file ends within its first line",
            edit(&closed, |l| {
                l.truncate(1);
                replace(&mut l[0], "\n", "");
            }),
            (Truncated, 1, None),
        ),
        case(
            "first-line-empty",
            "an empty line stands first",
            edit(&closed, |l| l.insert(0, b"\n".to_vec())),
            (NotAPortcullisExport, 1, None),
        ),
        case(
            "first-line-spelling",
            "white space in the first line",
            edit(&closed, |l| replace(&mut l[0], ",\"run\"", ", \"run\"")),
            (NotAPortcullisExport, 1, None),
        ),
        case(
            "first-line-of-another-kind",
            "the file starts with the record `segment`",
            edit(&closed, |l| drop(l.remove(0))),
            (NotAPortcullisExport, 1, None),
        ),
        case(
            "first-line-origin",
            "the origin has a space",
            edit(&closed, |l| replace(&mut l[0], ORIGIN, "portcullis example")),
            (NotAPortcullisExport, 1, None),
        ),
        case(
            "only-the-first-line",
            "the file ends after its first line",
            edit(&closed, |l| l.truncate(1)),
            (Truncated, 2, None),
        ),
        case(
            "trailing-data-unfinished",
            "a line without its newline follows the end",
            edit(&closed, |l| l.push(b"x".to_vec())),
            (TrailingData, 18, None),
        ),
        case(
            "trailing-export",
            "another export follows the end",
            [&closed.text[..], &resumed(0x02).text].concat(),
            (TrailingData, 18, None),
        ),
    ]
}

/// An `end` record with these members.
fn end(members: &str) -> Vec<u8> {
    format!("{{\"record\":\"end\",{members}}}\n").into_bytes()
}

/// A line is first of its form, then in its place.
fn of_places() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let case = |name, what, text, failure| bad(name, what, text, &closed, failure);
    let lines = closed.lines();
    let insert = |at: usize, line: &[u8]| edit(&closed, |l| l.insert(at, line.to_vec()));
    let mut spaced = lines[12].clone();
    replace(&mut spaced, ",\"state\"", ", \"state\"");
    vec![
        case(
            "head-out-of-place",
            "the head stands twice",
            insert(13, &lines[12]),
            (RecordOutOfOrder, 14, None),
        ),
        case(
            "head-out-of-place-malformed",
            "a head stands where it may not, and has white space",
            insert(14, &spaced),
            (LineMalformed, 15, None),
        ),
        case(
            "end-early",
            "the end stands among the events",
            insert(4, &lines[16]),
            (RecordOutOfOrder, 5, None),
        ),
        case(
            "end-early-of-version-2",
            "an end of version 2 stands among the events of version 1",
            insert(4, &end(r#""segments":1,"events":10,"payloads":3,"erased":0"#)),
            (LineMalformed, 5, None),
        ),
        case(
            "segment-early",
            "a segment starts before the head of the one before it",
            insert(4, &lines[1]),
            (RecordOutOfOrder, 5, None),
        ),
        case(
            "segment-late",
            "a segment follows a payload",
            insert(14, &lines[1]),
            (RecordOutOfOrder, 15, None),
        ),
        case(
            "event-after-the-head",
            "an event follows the head of its segment",
            insert(13, &lines[5]),
            (RecordOutOfOrder, 14, None),
        ),
        case(
            "event-after-the-head-unreadable",
            "what is no event follows the head, with a link before it",
            insert(13, &[&lines[5][..65], b"{}\n"].concat()),
            (RecordOutOfOrder, 14, None),
        ),
    ]
}

/// Lines of no form, and of one that may not be where they are.
fn of_forms() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let case = |name, what, text, failure| bad(name, what, text, &closed, failure);
    let insert = |at: usize, line: &[u8]| edit(&closed, |l| l.insert(at, line.to_vec()));
    vec![
        case(
            "record-unknown",
            "a record of no kind",
            insert(13, b"{\"record\":\"note\"}\n"),
            (LineMalformed, 14, None),
        ),
        case("line-of-nothing", "neither a record nor a link", insert(4, b"due\n"), (LineMalformed, 5, None)),
        case(
            "payload-in-hex",
            "text is written as hexadecimal digits",
            edit(&closed, |l| {
                let at = payload_line(&closed, "what is due?");
                replace(&mut l[at], r#""text":"what is due?""#, r#""hex":"7768617420697320647565""#);
            }),
            (LineMalformed, payload_line(&closed, "what is due?") as u64 + 1, None),
        ),
        case(
            "end-counts-two-ways",
            "the end counts one more event, and one more payload",
            edit(&closed, |l| l[16] = end(r#""segments":1,"events":11,"payloads":4"#)),
            (PayloadMissing, 17, None),
        ),
        Case {
            text: edit(&closed, |l| {
                replace(&mut l[0], "export/v1", "export/v2");
                l[16] = end(r#""segments":1,"events":10,"payloads":3,"erased":0"#);
            }),
            ..good("valid-version-2", "version 2, and nothing was erased", &closed, [3, 0, 0])
        },
    ]
}

fn of_heads() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let mut empty = Builder::new(0x01);
    empty.segment(0x51, "writer-1");
    empty.head(SegmentState::Open);
    let empty = empty.finish();
    let no_trust = format!("{}head {} 1 {}\n", trust::preamble(ORIGIN), id(0x07), Hex([0; 32]));
    let with_trust = |case: Case| Case { trust: Some(no_trust.clone()), ..case };
    let mut open = opened();
    open.head(SegmentState::Open);
    open.segment(0x52, "writer-2");
    open.event("config", "{}");
    let open = finished(open);
    let other = format!("\"segment\":\"{}\",\"state\"", id(0x59));
    let own = format!("\"segment\":\"{}\",\"state\"", id(0x51));
    vec![
        with_trust(Case {
            status: Status::Incomplete,
            ..good("incomplete-no-event", "a segment without an event", &bare(&empty), [0; 3])
        }),
        with_trust(bad(
            "head-closed-without-event",
            "a segment without an event is closed",
            edit(&empty, |l| replace(&mut l[2], "open", "closed")),
            &closed,
            (HeadMismatch, 3, Some(0)),
        )),
        bad(
            "head-beyond-the-end",
            "the head counts two events more",
            edit(&closed, |l| replace(&mut l[12], r#""count":10"#, r#""count":12"#)),
            &closed,
            (EventMissing, 13, Some(11)),
        ),
        bad(
            "head-of-another-segment",
            "the head counts two events more, of another segment",
            edit(&closed, |l| {
                replace(&mut l[12], r#""count":10"#, r#""count":12"#);
                replace(&mut l[12], &own, &other);
            }),
            &closed,
            (HeadMismatch, 13, Some(10)),
        ),
        bad(
            "segment-after-an-open-one",
            "a segment follows one that is open",
            open.text.clone(),
            &open,
            (StateMachine, 5, Some(2)),
        ),
        bad(
            "last-seq-altered",
            "the last event says that it is event 12; its link and the head are as they were",
            edit(&closed, |l| replace(&mut l[11], r#""seq":10"#, r#""seq":12"#)),
            &closed,
            (EventAltered, 12, Some(10)),
        ),
        bad(
            "event-unreadable-and-unchained",
            "an event is no JSON, and does not follow",
            edit(&closed, |l| replace(&mut l[5], "\"kind\"", "kind")),
            &closed,
            (EventAltered, 6, Some(4)),
        ),
    ]
}

/// For a run without an event there is no trusted head.
fn bare(export: &Export) -> Export {
    let heads = vec![portcullis_proof::Head { count: 1, link: Hex([0; 32]) }];
    Export { heads, ..export.clone() }
}

fn gap(seq: u64, body: &str) -> String {
    format!(
        r#"{{"v":1,"seq":{seq},"t":"","kind":"gap","actor":"gate","cause":null,"payloads":{{}},"body":{body}}}"#
    )
}

fn of_gaps() -> Vec<Case> {
    use Attack::*;
    let mut first = Builder::new(0x01);
    first.segment(0x51, "writer-1");
    first.raw(3, &gap(3, r#"{"from":1,"to":2,"cause":"disk lost"}"#));
    first.event("input", "{}");
    let first = finished(first);
    let with = |body: &str| {
        let mut builder = opened();
        builder.raw(5, &gap(5, body));
        finished(builder)
    };
    let case = |name, what, body: &str| {
        let export = with(body);
        bad(name, what, export.text.clone(), &export, (EventMissing, 4, Some(2)))
    };
    let admitted = with(r#"{"from":2,"to":4}"#);
    let lost = portcullis_proof::Head { count: 3, link: Hex([7; 32]) };
    let known = format!("{}{}\n", admitted.trust_text(), trust::head_line(id(0x01), lost));
    vec![
        good("valid-gap-at-the-start", "events 1 and 2 are lost, the opening among them", &first, [0; 3]),
        case("gap-too-short", "a gap admits one event less than are missing", r#"{"from":2,"to":3}"#),
        case("gap-too-early", "a gap admits an event that is there", r#"{"from":1,"to":4}"#),
        case("gap-in-words", "a gap says its numbers as text", r#"{"from":"2","to":"4"}"#),
        Case {
            trust: Some(known),
            ..bad(
                "gap-over-a-trusted-head",
                "the reader knows an event that a gap admits lost",
                admitted.text.clone(),
                &admitted,
                (ChainRewritten, 4, Some(3)),
            )
        },
    ]
}

fn of_payloads() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let mut altered = foreign_payload();
    replace(&mut altered, "paid", "owed");
    let text = b"what is due?";
    let salt = event_hash(text);
    let commitment = payload_commitment(&salt.0, "text/plain", text);
    let named = |media_type: &str, bytes: u64| {
        format!(r#""content":{{"commitment":"{commitment}","media_type":"{media_type}","bytes":{bytes}}}"#)
    };
    let mut given = Vec::new();
    write_record(&mut given, &PayloadRecord::new(commitment, salt, "text/plain", text)).unwrap();
    // Two events name it, the second of them as `second` says; the payload is handed over.
    let told = |first: &str, second: &str| {
        let mut builder = opened();
        builder.event_naming("input", "{}", first);
        builder.event_naming("observation", "{}", second);
        let export = finished(builder);
        let text = edit(&export, |l| {
            let end = l.len() - 1;
            replace(&mut l[end], r#""payloads":0"#, r#""payloads":1"#);
            l.insert(end, given.clone());
        });
        Export { text, ..export }
    };
    let case = |name, what, export: &Export, failure| bad(name, what, export.text.clone(), export, failure);
    let twice = format!("{},{}", named("text/plain", 12), named("text/plain", 13).replace("content", "more"));
    vec![
        good(
            "valid-payload-named-twice",
            "two events name one payload",
            &told(&named("text/plain", 12), &named("text/plain", 12)),
            [1, 0, 0],
        ),
        case(
            "payload-of-another-type",
            "the payload opens its commitment, and the event says another media type",
            &told(&named("text/html", 12), ""),
            (PayloadAltered, 8, Some(2)),
        ),
        case(
            "payload-of-another-length",
            "the payload opens its commitment, and the events say another length",
            &told(&named("text/plain", 11), &named("text/plain", 11)),
            (PayloadAltered, 8, Some(2)),
        ),
        case(
            "payload-of-two-types",
            "two events name one payload with different media types",
            &told(&named("text/plain", 12), &named("text/html", 12)),
            (StateMachine, 5, Some(3)),
        ),
        case(
            "payload-of-two-lengths",
            "one event names one payload with different lengths",
            &told(&twice, ""),
            (StateMachine, 4, Some(2)),
        ),
        bad(
            "payload-altered-and-unknown",
            "a payload of another run that does not open its commitment",
            edit(&closed, |l| l[13] = altered),
            &closed,
            (PayloadAltered, 14, None),
        ),
    ]
}

fn of_trust() -> Vec<Case> {
    use Attack::*;
    let export = closed(0x01, "what is due?");
    let link = |count: u64| export.heads.iter().find(|head| head.count == count).copied().unwrap();
    let other = |count| portcullis_proof::Head { count, link: Hex([7; 32]) };
    let line = |head| trust::head_line(id(0x01), head);
    let trusting = |heads: &[String]| Some(format!("{}{}\n", trust::preamble(ORIGIN), heads.join("\n")));
    let by_hand = format!(
        "# kept by audit\r\n\r\nportcullis-trust/v1\r\n{}\r\norigin {ORIGIN}\r\n# later\r\n{}",
        line(link(10)),
        line(link(4))
    );
    let mut wrong = opened();
    wrong.event("verdict", &action(0xa1, r#","verdict":"allow""#));
    let wrong = finished(wrong);
    let bad = |name, what, heads: &[String], failure| Case {
        trust: trusting(heads),
        ..bad(name, what, export.text.clone(), &export, failure)
    };
    vec![
        Case {
            trust: Some(by_hand),
            ..good(
                "valid-trust-by-hand",
                "comments before the first line, CR LF, heads in no order, no newline at the end",
                &export,
                [3, 0, 0],
            )
        },
        bad(
            "trust-of-two-minds",
            "two links for one event, the right one second",
            &[line(other(10)), line(link(10))],
            (ChainRewritten, 12, Some(10)),
        ),
        bad(
            "trust-wrong-first",
            "the link of event 4 is another one, and there is no event 12",
            &[line(other(12)), line(other(4))],
            (ChainRewritten, 6, Some(4)),
        ),
        bad(
            "trust-beyond-the-end",
            "events 12 and 14 are known, and are not there",
            &[line(other(14)), line(other(12))],
            (TailMissing, 17, Some(11)),
        ),
        Case {
            trust: trusting(&[line(other(2))]),
            ..super::bad(
                "rewritten-before-meaning",
                "an event that is not the trusted one, and contradicts those before it",
                wrong.text.clone(),
                &wrong,
                (ChainRewritten, 4, Some(2)),
            )
        },
    ]
}
