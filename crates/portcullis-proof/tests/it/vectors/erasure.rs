//! Exports that say which payloads were erased: version 2 of the format.

use portcullis_proof::export::{ErasedRecord, write_record};
use portcullis_proof::{Attack, Hex, Status};

use super::{Case, bad, edit, payload_line, replace};
use crate::sample::{Export, closed, erased};

/// The line of a commitment, counted from 0: of the event that names it, and of its record.
fn places(whole: &Export, text: &str) -> (usize, usize) {
    let at = payload_line(whole, text);
    let line = String::from_utf8(whole.lines()[at].clone()).unwrap();
    let commitment = line.split('"').nth(7).unwrap();
    (payload_line(whole, commitment), at)
}

pub(super) fn erasure_cases() -> Vec<Case> {
    let whole = closed(0x01, "what is due?");
    let less = erased(&whole, &["what is due?"]);
    sound(&whole, &less).into_iter().chain(attacked(&whole, &less)).collect()
}

/// Exports of which `less` has one payload less than the `whole`, since it was erased.
fn sound(whole: &Export, less: &Export) -> Vec<Case> {
    let good = |name, what, text: Vec<u8>, payloads| Case {
        name,
        what,
        text,
        trust: Some(whole.trust_text()),
        status: Status::Valid,
        failure: None,
        payloads,
    };
    let both = erased(whole, &["what is due?", "notes.txt"]);
    let withheld = edit(less, |lines| {
        lines.remove(payload_line(less, "notes.txt"));
        replace(lines.last_mut().unwrap(), r#""payloads":2"#, r#""payloads":1"#);
    });
    vec![
        good("valid-erased", "one of three payloads is erased", less.text.clone(), [2, 0, 1]),
        good("valid-erased-two", "two of three payloads are erased", both.text, [1, 0, 2]),
        good(
            "valid-erased-withheld",
            "one payload is handed over, one withheld, one erased",
            withheld,
            [1, 1, 1],
        ),
    ]
}

/// The same, changed afterwards.
fn attacked(whole: &Export, less: &Export) -> Vec<Case> {
    use Attack::*;
    let (event, at) = places(whole, "what is due?");
    let seq = Some(event as u64 - 1);
    let erased_line = |commitment| {
        let mut line = Vec::new();
        write_record(&mut line, &ErasedRecord { commitment: Hex(commitment) }).unwrap();
        line
    };
    vec![
        bad(
            "erased-unknown",
            "an erased payload that no event names",
            edit(less, |l| l[at] = erased_line([0; 32])),
            whole,
            (PayloadUnknown, at as u64 + 1, None),
        ),
        bad(
            "erased-and-given",
            "a payload is handed over and said to be erased",
            edit(less, |l| {
                l.insert(at, whole.lines()[at].clone());
                replace(l.last_mut().unwrap(), r#""payloads":2"#, r#""payloads":3"#);
            }),
            whole,
            (RecordOutOfOrder, at as u64 + 2, seq),
        ),
        bad(
            "erased-missing",
            "the record of an erased payload is dropped",
            edit(less, |l| drop(l.remove(at))),
            whole,
            (PayloadMissing, 16, None),
        ),
        bad(
            "erased-uncounted",
            "an erased payload is not counted",
            edit(less, |l| replace(l.last_mut().unwrap(), r#""erased":1"#, r#""erased":0"#)),
            whole,
            (CountMismatch, 17, None),
        ),
        bad(
            "erased-in-version-1",
            "version 1 has no erased payloads",
            edit(less, |l| replace(&mut l[0], "export/v2", "export/v1")),
            whole,
            (LineMalformed, at as u64 + 1, None),
        ),
        bad(
            "version-2-without-erased",
            "version 2 counts erased payloads",
            edit(whole, |l| replace(&mut l[0], "export/v1", "export/v2")),
            whole,
            (LineMalformed, 17, None),
        ),
        bad(
            "erased-before-the-head",
            "an erased payload stands among the events",
            edit(less, |l| l.insert(5, less.lines()[at].clone())),
            whole,
            (RecordOutOfOrder, 6, None),
        ),
    ]
}
