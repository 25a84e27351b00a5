//! What one wrong field of a segment, an event or a payload record is answered, everything else being as it should:
//! the chain agrees, so that only the check of that field is left to find it.

use portcullis_proof::export::{EVENT_BYTES_MAX, SegmentRecord, SegmentState, write_record};
use portcullis_proof::verify::WRITER_BYTES_MAX;
use portcullis_proof::{
    Attack, Parent, Report, SegmentStart, Status, Trust, event_hash, payload_commitment, segment_link, verify,
};

use crate::sample::{Builder, Export, ORIGIN, id};

/// The answer to a run, whose trust file agrees with it.
fn judged(export: &Export) -> Report {
    verify(&*export.text, Some(&Trust::parse(&export.trust_text()).unwrap())).unwrap()
}

fn attack(export: &Export) -> Option<(Attack, String)> {
    judged(export).failure.map(|failure| (failure.attack, failure.message))
}

fn opened(run: u8) -> Builder {
    let mut run = Builder::new(run);
    run.segment(1, "writer");
    run.event("run-opened", "{}");
    run
}

#[test]
fn a_writer_has_at_most_so_many_bytes() {
    let with = |bytes: usize| {
        let mut run = Builder::new(0x21);
        run.segment(1, &"w".repeat(bytes));
        run.event("run-opened", "{}");
        run.close(SegmentState::Closed);
        judged(&run.finish())
    };
    assert_eq!(with(WRITER_BYTES_MAX).status, Status::Valid);
    let failure = with(WRITER_BYTES_MAX + 1).failure.unwrap();
    assert_eq!(failure.attack, Attack::LineMalformed);
    assert!(failure.message.contains("the writer id has more than"), "{}", failure.message);
}

/// A second segment whose record says `ordinal`, `after` and `parent`, and whose links follow from what it says.
fn second_segment(ordinal: u64, after: u64, another_parent: bool) -> Option<(Attack, String)> {
    let mut run = opened(0x22);
    run.close(SegmentState::Abandoned);
    let mut link = run.link();
    if another_parent {
        link.0[0] ^= 1;
    }
    let parent = Some(Parent { segment: id(1), link });
    let (run_id, segment, writer) = (id(0x22), id(2), "writer");
    let start = SegmentStart { origin: ORIGIN, run: run_id, segment, writer, ordinal, after, parent };
    let link = segment_link(&start);
    let record = SegmentRecord { segment, writer: writer.into(), ordinal, after, parent, link };
    let mut line = Vec::new();
    write_record(&mut line, &record).unwrap();
    run.segment_as(segment, link, &line);
    run.event("observation", "{}");
    run.close(SegmentState::Closed);
    attack(&run.finish())
}

#[test]
fn a_segment_follows_the_one_before_it_in_every_field() {
    assert_eq!(second_segment(1, 2, false), None);
    for (ordinal, after, another_parent) in
        [(2, 2, false), (0, 2, false), (1, 1, false), (1, 3, false), (1, 2, true)]
    {
        let (attack, message) = second_segment(ordinal, after, another_parent).unwrap();
        assert_eq!(attack, Attack::SegmentSpliced, "{ordinal} {after} {another_parent}: {message}");
    }
}

#[test]
fn no_segment_follows_an_open_one() {
    let mut run = opened(0x23);
    run.head(SegmentState::Open);
    run.segment(2, "writer");
    run.event("observation", "{}");
    run.close(SegmentState::Closed);
    let (attack, message) = attack(&run.finish()).unwrap();
    assert_eq!(attack, Attack::StateMachine);
    assert!(message.contains("follows one that is still open"), "{message}");
}

#[test]
fn a_run_has_a_state_once_it_has_a_segment() {
    let whole = opened(0x24);
    let text = whole.finish().text;
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let state = |lines: &[&[u8]]| verify(&*lines.concat(), None).unwrap().state;
    assert_eq!(state(&lines[..1]), None);
    assert_eq!(state(&lines[..2]), Some(SegmentState::Open));
}

#[test]
fn only_a_gap_that_says_which_events_are_missing_admits_them() {
    let jump = |seq: u64, kind: &str, from: u64, to: u64| {
        let mut run = opened(0x25);
        let line = format!(
            r#"{{"v":1,"seq":{seq},"t":"","kind":"{kind}","actor":"gate","cause":null,"payloads":{{}},"body":{{"from":{from},"to":{to}}}}}"#
        );
        run.raw(seq, &line);
        run.close(SegmentState::Closed);
        attack(&run.finish()).map(|(attack, _)| attack)
    };
    assert_eq!(jump(5, "gap", 2, 4), None);
    assert_eq!(jump(5, "gap", 3, 4), Some(Attack::EventMissing));
    assert_eq!(jump(5, "gap", 2, 3), Some(Attack::EventMissing));
    assert_eq!(jump(5, "observation", 2, 4), Some(Attack::EventMissing));
    // Nothing is missing, and the gap says just that.
    assert_eq!(jump(2, "gap", 2, 1), Some(Attack::StateMachine));
}

/// A run that names a payload as it says, after naming it as it is.
fn named(media_type: &str, bytes: u64, twice: bool) -> Option<(Attack, String)> {
    let text = b"what is due?";
    let commitment = payload_commitment(&event_hash(text).0, "text/plain", text);
    let mut run = opened(0x26);
    run.event_with("input", "{}", "text/plain", text);
    let (first, second) =
        if twice { (("text/plain", 12), (media_type, bytes)) } else { ((media_type, bytes), ("", 0)) };
    let mut other = opened(0x27);
    for (media_type, bytes) in [first, second].into_iter().filter(|(media_type, _)| !media_type.is_empty()) {
        other.event_naming(
            "input",
            "{}",
            &format!(
                r#""content":{{"commitment":"{commitment}","media_type":"{media_type}","bytes":{bytes}}}"#
            ),
        );
    }
    other.payloads_of(&run);
    other.close(SegmentState::Closed);
    attack(&other.finish())
}

#[test]
fn a_payload_is_what_every_event_says_of_it() {
    assert_eq!(named("text/plain", 12, false), None);
    assert_eq!(named("text/plain", 12, true), None);
    for (media_type, bytes) in [("text/plain", 13), ("text/html", 12)] {
        let (attack, message) = named(media_type, bytes, true).unwrap();
        assert_eq!(attack, Attack::StateMachine);
        assert!(message.contains("differs from what event 2 says"), "{message}");
        let (attack, message) = named(media_type, bytes, false).unwrap();
        assert_eq!(attack, Attack::PayloadAltered);
        assert!(message.contains("event 2 states a different length or media type"), "{message}");
    }
}

/// Longer than what is read ahead, so that the line is read by itself.
#[test]
fn an_event_may_be_as_long_as_the_format_says() {
    let with = |longer: usize| {
        let mut run = opened(0x28);
        let line = |text: &str| {
            format!(
                r#"{{"v":1,"seq":2,"t":"","kind":"observation","actor":"gate","cause":null,"payloads":{{}},"body":{{"text":"{text}"}}}}"#
            )
        };
        run.raw(2, &line(&"x".repeat(EVENT_BYTES_MAX - line("").len() + longer)));
        run.event("observation", "{}");
        run.close(SegmentState::Closed);
        attack(&run.finish()).map(|(attack, _)| attack)
    };
    assert_eq!(with(0), None);
    assert_eq!(with(1), Some(Attack::LineMalformed));
}

/// A line that is too long is what it would be if it were short: no export, no line, or what follows the end.
#[test]
fn a_line_that_is_too_long_is_named_by_its_place() {
    let mut run = opened(0x29);
    run.close(SegmentState::Closed);
    let export = run.finish();
    let long = vec![b'x'; 65 + EVENT_BYTES_MAX + 1];
    for end in [&b"\n"[..], b""] {
        let line = [&long, end].concat();
        let attack =
            |text: &[u8]| verify(text, None).unwrap().failure.map(|found| (found.attack, found.line));
        assert_eq!(attack(&line), Some((Attack::NotAPortcullisExport, 1)));
        let lines = export.lines();
        let among = [&lines[..3].concat(), &line[..]].concat();
        assert_eq!(attack(&among), Some((Attack::LineMalformed, 4)));
        assert_eq!(attack(&[&export.text, &line[..]].concat()), Some((Attack::TrailingData, 7)));
    }
}
