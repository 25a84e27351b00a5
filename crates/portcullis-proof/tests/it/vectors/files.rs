//! Files whose payloads, lines or records are not as they were written.

use portcullis_proof::Attack;
use portcullis_proof::export::{EndRecord, write_record};

use super::{Case, bad, edit, foreign_payload, payload_line, replace};
use crate::sample::{Export, closed};

pub(super) fn file_cases() -> Vec<Case> {
    payload_cases().into_iter().chain(form_cases()).chain(record_cases()).collect()
}

fn payload_cases() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    vec![
        bad(
            "payload-altered",
            "another question under the same commitment",
            edit(&closed, |l| replace(&mut l[payload_line(&closed, "what is due?")], "due", "owed")),
            &closed,
            (PayloadAltered, payload_line(&closed, "what is due?") as u64 + 1, Some(2)),
        ),
        bad(
            "payload-unknown",
            "a payload of another run",
            edit(&closed, |l| l[13] = foreign_payload()),
            &closed,
            (PayloadUnknown, 14, None),
        ),
        bad(
            "payload-missing",
            "a payload is dropped, the end record is not changed",
            edit(&closed, |l| drop(l.remove(14))),
            &closed,
            (PayloadMissing, 16, None),
        ),
        bad(
            "payload-order",
            "two payloads are swapped",
            edit(&closed, |l| l.swap(13, 14)),
            &closed,
            (RecordOutOfOrder, 15, None),
        )
        .with_seq_of_second_payload(&closed),
    ]
}

/// Files that are cut, or have white space where none is.
fn form_cases() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    vec![
        bad(
            "truncated",
            "the record `end` is cut off",
            edit(&closed, |l| drop(l.pop())),
            &closed,
            (Truncated, 17, None),
        ),
        bad(
            "truncated-in-a-line",
            "the last newline is cut off",
            edit(&closed, |l| replace(&mut l[16], "\n", "")),
            &closed,
            (Truncated, 17, None),
        ),
        bad(
            "trailing-data",
            "an empty line follows the end",
            edit(&closed, |l| l.push(b"\n".to_vec())),
            &closed,
            (TrailingData, 18, None),
        ),
        bad(
            "blank-line",
            "an empty line stands between two events",
            edit(&closed, |l| l.insert(5, b"\n".to_vec())),
            &closed,
            (LineMalformed, 6, None),
        ),
        bad(
            "carriage-return",
            "a record ends in CR LF",
            edit(&closed, |l| replace(&mut l[12], "\n", "\r\n")),
            &closed,
            (LineMalformed, 13, None),
        ),
        bad(
            "record-spelling",
            "white space in a record",
            edit(&closed, |l| replace(&mut l[12], ",\"state\"", ", \"state\"")),
            &closed,
            (LineMalformed, 13, None),
        ),
    ]
}

/// Records that are twice there, in another order or of another format.
fn record_cases() -> Vec<Case> {
    use Attack::*;
    let closed = closed(0x01, "what is due?");
    let mut counted = Vec::new();
    write_record(&mut counted, &EndRecord { segments: 1, events: 11, payloads: 3, erased: None }).unwrap();
    vec![
        bad(
            "record-duplicate-key",
            "a key stands twice in a record",
            edit(&closed, |l| replace(&mut l[12], ",\"count\"", ",\"count\":1,\"count\"")),
            &closed,
            (LineMalformed, 13, None),
        ),
        bad(
            "record-order",
            "the head stands before the last event",
            edit(&closed, |l| l.swap(11, 12)),
            &closed,
            (EventMissing, 12, Some(10)),
        ),
        bad(
            "second-export-record",
            "the first line stands twice",
            edit(&closed, |l| l.insert(1, l[0].clone())),
            &closed,
            (RecordOutOfOrder, 2, None),
        ),
        bad(
            "count-mismatch",
            "the end record counts 11 events",
            edit(&closed, |l| l[16] = counted),
            &closed,
            (CountMismatch, 17, None),
        ),
        bad(
            "not-an-export",
            "a JSON file",
            b"{\"messages\":[]}\n".to_vec(),
            &closed,
            (NotAPortcullisExport, 1, None),
        ),
        bad(
            "other-version",
            "the format of a later version",
            edit(&closed, |l| replace(&mut l[0], "export/v1", "export/v3")),
            &closed,
            (NotAPortcullisExport, 1, None),
        ),
        bad("empty", "an empty file", Vec::new(), &closed, (NotAPortcullisExport, 1, None)),
    ]
}

impl Case {
    /// Payloads stand in order of commitment, so which event comes second is not for the author to choose.
    fn with_seq_of_second_payload(mut self, export: &Export) -> Case {
        let line = String::from_utf8(export.lines()[13].clone()).unwrap();
        let commitment = line.split('"').nth(7).unwrap().to_owned();
        let event =
            export.lines().iter().position(|l| String::from_utf8_lossy(l).contains(&commitment)).unwrap();
        self.failure = self.failure.map(|(attack, line, _)| (attack, line, Some(event as u64 - 1)));
        self
    }
}
