//! What a report says, to the letter: which check failed, where, and with what words. A person acts on these.

use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use portcullis_proof::export::{LINE_BYTES_MAX, SegmentState};
use portcullis_proof::report::CheckResult;
use portcullis_proof::{Attack, Status, Trust, verify};

use crate::sample::{Builder, Export, check, closed, resumed};

fn says(text: &[u8], trust: Option<&str>, expected: &Expect) {
    expected.assert_eq(&check(text, trust).to_string());
}

/// An export with one of its lines changed.
fn altered(export: &Export, line: usize, from: &str, to: &str) -> Vec<u8> {
    let mut lines = export.lines();
    let text = String::from_utf8(lines[line].clone()).unwrap();
    assert!(text.contains(from), "{text}");
    lines[line] = text.replacen(from, to, 1).into_bytes();
    lines.concat()
}

#[test]
fn a_report_says_what_was_found() {
    let export = closed(0x01, "what is due?");
    says(
        &export.text,
        Some(&export.trust_text()),
        &expect![[r#"
        VALID
          run         01010101010101010101010101010101 of `portcullis/example`
          head        10 268d45075d8c0f7623ac66e00306f416f91483a3b78bae4691ef4ea5d6f05c36
          format      pass: every line is canonical and in order
          chain       pass: 10 events in 1 segment follow from each other
          trajectory  pass: every action was judged before it went ahead
          payloads    pass: 3 verified, 0 withheld, 0 erased
          anchor      pass: a trusted head covers all 10 events
          closure     pass: the run is closed with event 10
    "#]],
    );
    says(
        &export.text,
        None,
        &expect![[r#"
        INCOMPLETE
          run         01010101010101010101010101010101 of `portcullis/example`
          head        10 268d45075d8c0f7623ac66e00306f416f91483a3b78bae4691ef4ea5d6f05c36
          format      pass: every line is canonical and in order
          chain       pass: 10 events in 1 segment follow from each other
          trajectory  pass: every action was judged before it went ahead
          payloads    pass: 3 verified, 0 withheld, 0 erased
          anchor      not checked: no trust file: without one, a chain can be rewritten as a whole
          closure     pass: the run is closed with event 10
    "#]],
    );
    says(
        &resumed(0x02).text,
        Some(&export.trust_text()),
        &expect![[r#"
        INCOMPLETE
          run         02020202020202020202020202020202 of `portcullis/example`
          head        17 baea76e54d47d8bc9ef2d16d22edc422ec416904a2b779b1ac8fefb9241c53e2
          format      pass: every line is canonical and in order
          chain       pass: 17 events in 2 segments follow from each other
          trajectory  pass: every action was judged before it went ahead
          payloads    pass: 1 verified, 0 withheld, 0 erased
          anchor      not checked: the trust file has no head of this run
          closure     pass: the run is closed with event 17
    "#]],
    );
}

#[test]
fn a_report_says_what_stopped_it() {
    let export = closed(0x01, "what is due?");
    let unlike = altered(&export, 9, "deny", "allow");
    says(
        &unlike,
        Some(&export.trust_text()),
        &expect![[r#"
        INVALID event-altered at line 10, byte 2268, event 8: event 8 does not hash to its link: it or its link was altered, or belongs to another run
          run         01010101010101010101010101010101 of `portcullis/example`
          head        7 ed827df197686ac67eda30bc735a5fa22298d57f16547bdc6146ca630891d489
          format      not checked: stopped at the first failure
          chain       FAIL: event 8 does not hash to its link: it or its link was altered, or belongs to another run
          trajectory  not checked: stopped at the first failure
          payloads    not checked: stopped at the first failure
          anchor      not checked: stopped at the first failure
          closure     not checked: stopped at the first failure
    "#]],
    );
    says(
        b"",
        None,
        &expect![[r#"
        INVALID not-a-portcullis-export at line 1, byte 0: the file is empty
          format      FAIL: the file is empty
          chain       not checked: stopped at the first failure
          trajectory  not checked: stopped at the first failure
          payloads    not checked: stopped at the first failure
          anchor      not checked: stopped at the first failure
          closure     not checked: stopped at the first failure
    "#]],
    );
    let number = altered(&export, 1, r#""segment":"51515151515151515151515151515151""#, r#""segment":5"#);
    says(
        &number,
        None,
        &expect![[r#"
        INVALID line-malformed at line 2, byte 123: invalid type: integer `5`, expected 32 lower-case hexadecimal digits at line 1 column 31
          run         01010101010101010101010101010101 of `portcullis/example`
          format      FAIL: invalid type: integer `5`, expected 32 lower-case hexadecimal digits at line 1 column 31
          chain       not checked: stopped at the first failure
          trajectory  not checked: stopped at the first failure
          payloads    not checked: stopped at the first failure
          anchor      not checked: stopped at the first failure
          closure     not checked: stopped at the first failure
    "#]],
    );
}

#[test]
fn every_attack_is_found_by_its_check() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/run-chain");
    let vectors = fs::read_to_string(folder.join("vectors.json")).unwrap();
    let vectors: serde_json::Value = serde_json::from_str(&vectors).unwrap();
    let mut found = Vec::new();
    for vector in vectors["exports"].as_array().unwrap() {
        let text = fs::read(folder.join(vector["file"].as_str().unwrap())).unwrap();
        let trust = vector["trust"].as_str().map(|text| Trust::parse(text).unwrap());
        let report = verify(&*text, trust.as_ref()).unwrap();
        let Some(failure) = &report.failure else { continue };
        let expected = match failure.attack {
            Attack::NotAPortcullisExport
            | Attack::LineMalformed
            | Attack::RecordOutOfOrder
            | Attack::Truncated
            | Attack::TrailingData
            | Attack::CountMismatch => "format",
            Attack::SegmentAltered
            | Attack::SegmentSpliced
            | Attack::EventAltered
            | Attack::EventMalformed
            | Attack::EventMissing
            | Attack::EventReordered
            | Attack::EventDuplicated
            | Attack::HeadMismatch => "chain",
            Attack::StateMachine => "trajectory",
            Attack::PayloadAltered | Attack::PayloadUnknown | Attack::PayloadMissing => "payloads",
            Attack::WrongOrigin | Attack::ChainRewritten | Attack::TailMissing => "anchor",
        };
        for check in &report.checks {
            let (result, detail) = if check.name == expected {
                (CheckResult::Fail, failure.message.as_str())
            } else {
                (CheckResult::NotChecked, "stopped at the first failure")
            };
            assert_eq!((check.result, check.detail.as_str()), (result, detail), "{vector}");
        }
        let first = format!("INVALID {} at line {}, ", vector["attack"].as_str().unwrap(), failure.line);
        assert!(report.to_string().starts_with(&first), "{report}");
        found.push(failure.attack);
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 21, "an attack without a vector, or one that is new here: {found:?}");
}

/// The last event has nothing after it but the head of its segment, which tells a touched event from a missing one.
#[test]
fn the_head_tells_what_became_of_the_last_event() {
    let export = closed(0x01, "what is due?");
    let attack = |text: &[u8]| {
        let failure = check(text, Some(&export.trust_text())).failure.unwrap();
        (failure.attack, failure.line, failure.seq)
    };
    let renumbered = altered(&export, 11, r#""seq":10"#, r#""seq":12"#);
    assert_eq!(attack(&renumbered), (Attack::EventAltered, 12, Some(10)));
    let mut dropped = export.lines();
    dropped.remove(10);
    assert_eq!(attack(&dropped.concat()), (Attack::EventMissing, 11, Some(9)));
    // Without the link that the head has, it may as well be another event.
    let mut lines = export.lines();
    lines[11] = altered(&export, 11, r#""seq":10"#, r#""seq":12"#)
        .split_inclusive(|byte| *byte == b'\n')
        .nth(11)
        .unwrap()
        .to_vec();
    lines[11][0] = if lines[11][0] == b'0' { b'1' } else { b'0' };
    assert_eq!(attack(&lines.concat()), (Attack::EventMissing, 12, Some(10)));
}

#[test]
fn a_cut_export_says_what_should_follow() {
    let export = closed(0x01, "what is due?");
    let lines = export.lines();
    assert_eq!(lines.len(), 17);
    for cut in 1..17 {
        let failure = check(&lines[..cut].concat(), None).failure.unwrap();
        let follows = match cut {
            1 => "a record `segment`",
            2..=12 => "an event or the record `head`",
            13 => "a record `segment`, `payload` or `end`",
            _ => "a record `payload` or `end`",
        };
        let message = format!("the file ends before {follows}");
        assert_eq!((failure.attack, failure.message), (Attack::Truncated, message), "{cut} lines");
    }
    let twice = [&lines[..1], &lines[..]].concat().concat();
    let failure = check(&twice, None).failure.unwrap();
    assert!(failure.message.ends_with(" where a record `segment` should be"), "{}", failure.message);
    for more in ["x", "x\n", "\n"] {
        let failure = check(&[&export.text, more.as_bytes()].concat(), None).failure.unwrap();
        assert_eq!((failure.attack, failure.line), (Attack::TrailingData, 18), "{more:?}");
    }
}

#[test]
fn what_stands_in_the_wrong_place_is_named() {
    let failure = |text: &[u8]| {
        let failure = check(text, None).failure.unwrap();
        (failure.attack, failure.message)
    };
    // Events that follow from each other, before the first segment and after its head.
    let mut builder = Builder::new(0x01);
    builder.event("run-opened", "{}");
    let message = "an event where a record `segment` should be".to_owned();
    assert_eq!(failure(&builder.finish().text), (Attack::RecordOutOfOrder, message));
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.close(SegmentState::Closed);
    builder.event("evidence", "{}");
    let message = "an event where a record `segment`, `payload` or `end` should be".to_owned();
    assert_eq!(failure(&builder.finish().text), (Attack::RecordOutOfOrder, message));

    let export = closed(0x01, "what is due?");
    for text in [altered(&export, 13, "{", "\n{"), altered(&export, 13, "\n", "\r\n")] {
        let message = "an empty line or a carriage return; lines end in a single newline".to_owned();
        assert_eq!(failure(&text), (Attack::LineMalformed, message));
    }
}

/// Payloads may be longer than events, and both longer than what is read at once.
#[test]
fn lines_may_be_long() {
    let export = closed(0x01, &"x".repeat(LINE_BYTES_MAX + 1));
    assert_eq!(check(&export.text, Some(&export.trust_text())).status, Status::Valid);
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    for _ in 0..3 {
        builder.event("evidence", &format!(r#"{{"name":"{}"}}"#, "x".repeat(1_000_000)));
    }
    builder.close(SegmentState::Closed);
    let export = builder.finish();
    assert_eq!(check(&export.text, Some(&export.trust_text())).status, Status::Valid);
}
