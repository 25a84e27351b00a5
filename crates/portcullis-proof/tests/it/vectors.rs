//! The vectors of `specs/run-chain.md`: whole exports, each with the answer that every verifier must give.
//!
//! A change in a vector is a new version of the format. `UPDATE_VECTORS=1` writes the files anew.

mod bodies;
mod contained;
mod erasure;
mod files;
mod kept;
mod lines;
mod meaning;
mod work;

use std::fs;
use std::path::PathBuf;

use portcullis_proof::export::SegmentState;
use portcullis_proof::{
    Attack, Hex, Parent, SegmentStart, Status, Trust, TrustError, event_hash, event_link, payload_commitment,
    segment_link, verify,
};
use serde::{Deserialize, Serialize};

use bodies::body_cases;
use contained::contained_cases;
use erasure::erasure_cases;
use files::file_cases;
use kept::kept_cases;
use lines::line_cases;
use meaning::meaning_cases;
use work::work_cases;

use crate::sample::{Builder, Export, ORIGIN, closed, id, resumed};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    format: String,
    hashes: Vec<HashVector>,
    exports: Vec<ExportVector>,
}

/// The input of one of the four hashes, in its parts, and its value.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct HashVector {
    hash: String,
    input: serde_json::Value,
    value: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ExportVector {
    file: String,
    what: String,
    trust: Option<String>,
    status: Status,
    exit_code: u8,
    attack: Option<Attack>,
    line: Option<u64>,
    seq: Option<u64>,
    /// Payloads verified, withheld and erased; none of an export that is INVALID.
    payloads: Option<[u64; 3]>,
}

/// A vector before its expectation is computed: expectations are stated by hand in [`cases`].
#[derive(Clone)]
struct Case {
    name: &'static str,
    what: &'static str,
    text: Vec<u8>,
    trust: Option<String>,
    status: Status,
    failure: Option<(Attack, u64, Option<u64>)>,
    /// Payloads verified, withheld and erased.
    payloads: [u64; 3],
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/run-chain")
}

#[test]
fn every_vector_gives_its_answer() -> Result<(), TrustError> {
    let (vectors, files) = generate();
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for (name, text) in &files {
            fs::write(folder().join(name), text).unwrap();
        }
        let json = serde_json::to_string_pretty(&vectors).unwrap();
        fs::write(folder().join("vectors.json"), format!("{json}\n")).unwrap();
    }
    let committed: Vectors =
        serde_json::from_str(&fs::read_to_string(folder().join("vectors.json")).unwrap()).unwrap();
    assert_eq!(committed, vectors, "a vector changed: that is a new version of the format");
    for (name, text) in &files {
        assert_eq!(&fs::read(folder().join(name)).unwrap(), text, "{name}");
    }
    let on_disk = fs::read_dir(folder()).unwrap().count();
    assert_eq!(on_disk, files.len() + 1, "a file in the folder is not in vectors.json");
    for vector in &committed.exports {
        let text = fs::read(folder().join(&vector.file)).unwrap();
        let trust = vector.trust.as_deref().map(Trust::parse).transpose()?;
        let report = verify(&*text, trust.as_ref()).unwrap();
        let found = ExportVector {
            status: report.status,
            exit_code: report.exit_code(),
            attack: report.failure.as_ref().map(|failure| failure.attack),
            line: report.failure.as_ref().map(|failure| failure.line),
            seq: report.failure.as_ref().and_then(|failure| failure.seq),
            payloads: report.failure.is_none().then_some({
                let counts = report.payloads;
                [counts.verified, counts.withheld, counts.erased]
            }),
            file: vector.file.clone(),
            what: vector.what.clone(),
            trust: vector.trust.clone(),
        };
        assert_eq!(&found, vector, "{report}");
        if let Some(failure) = report.failure {
            let start: Vec<_> =
                text.split_inclusive(|b| *b == b'\n').take(failure.line as usize - 1).flatten().collect();
            assert_eq!(failure.byte, start.len() as u64, "{}", vector.file);
        }
    }
    Ok(())
}

fn generate() -> (Vectors, Vec<(String, Vec<u8>)>) {
    let cases = cases();
    let files = cases.iter().map(|case| (format!("{}.jsonl", case.name), case.text.clone())).collect();
    let exports = cases
        .into_iter()
        .map(|case| ExportVector {
            file: format!("{}.jsonl", case.name),
            what: case.what.to_owned(),
            trust: case.trust,
            status: case.status,
            exit_code: match case.status {
                Status::Valid => 0,
                Status::Invalid => 1,
                Status::Incomplete => 2,
            },
            attack: case.failure.map(|failure| failure.0),
            line: case.failure.map(|failure| failure.1),
            seq: case.failure.and_then(|failure| failure.2),
            payloads: case.failure.is_none().then_some(case.payloads),
        })
        .collect();
    (Vectors { format: "portcullis-export/v2".to_owned(), hashes: hashes(), exports }, files)
}

fn hashes() -> Vec<HashVector> {
    let vector = |hash: &str, input: serde_json::Value, value: Hex<32>| HashVector {
        hash: hash.to_owned(),
        input,
        value: value.to_string(),
    };
    let line = r#"{"v":1,"seq":1,"t":"2026-11-21T01:02:03.000000Z","kind":"run-opened","actor":"gate","cause":null,"payloads":{},"body":{}}"#;
    let (run, segment, parent) = (id(0x01), id(0x51), Parent { segment: id(0x50), link: Hex([0xee; 32]) });
    let first =
        SegmentStart { origin: ORIGIN, run, segment, writer: "writer-1", ordinal: 0, after: 0, parent: None };
    let later = SegmentStart { ordinal: 2, after: 300, parent: Some(parent), ..first };
    let start = |start: &SegmentStart<'_>| {
        serde_json::json!({"origin": start.origin, "run": start.run, "segment": start.segment,
            "writer": start.writer, "ordinal": start.ordinal, "after": start.after, "parent": start.parent})
    };
    let (event, link_0) = (event_hash(line.as_bytes()), segment_link(&first));
    let salt = [0x5a; 32];
    vec![
        vector("event_hash", serde_json::json!({"line": line}), event),
        vector("link_0", start(&first), link_0),
        vector("link_0", start(&later), segment_link(&later)),
        vector(
            "link_n",
            serde_json::json!({"run": run, "segment": segment, "seq": 1, "before": link_0, "event_hash": event}),
            event_link(run, segment, 1, link_0, event),
        ),
        vector(
            "commitment",
            serde_json::json!({"salt": Hex(salt), "media_type": "text/plain", "text": "hello"}),
            payload_commitment(&salt, "text/plain", b"hello"),
        ),
    ]
}

/// The lines of an export with one change.
fn edit(export: &Export, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Vec<u8> {
    let mut lines = export.lines();
    change(&mut lines);
    lines.concat()
}

fn replace(line: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(line.clone()).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
    *line = text.replace(from, to).into_bytes();
}

fn cases() -> Vec<Case> {
    let mut cases = good_cases();
    cases.extend(chain_cases());
    cases.extend(file_cases());
    cases.extend(meaning_cases());
    cases.extend(erasure_cases());
    cases.extend(line_cases());
    cases.extend(body_cases());
    cases.extend(contained_cases());
    cases.extend(work_cases());
    cases.extend(kept_cases());
    cases
}

fn still_open() -> Export {
    let mut open = Builder::new(0x01);
    open.segment(0x51, "writer-1");
    open.event("run-opened", "{}");
    open.head(SegmentState::Open);
    open.finish()
}

fn with_a_gap() -> Export {
    let mut gap = Builder::new(0x01);
    gap.segment(0x51, "writer-1");
    gap.event("run-opened", "{}");
    gap.raw(
        5,
        r#"{"v":1,"seq":5,"t":"","kind":"gap","actor":"gate","cause":null,"payloads":{},"body":{"from":2,"to":4,"cause":"disk lost"}}"#,
    );
    gap.close(SegmentState::Closed);
    gap.finish()
}

fn good(
    name: &'static str,
    what: &'static str,
    text: &[u8],
    trust: Option<String>,
    status: Status,
    payloads: [u64; 3],
) -> Case {
    Case { name, what, text: text.to_vec(), trust, status, failure: None, payloads }
}

fn good_cases() -> Vec<Case> {
    valid_cases().into_iter().chain(incomplete_cases()).collect()
}

fn valid_cases() -> Vec<Case> {
    let (closed, resumed, gap) = (closed(0x01, "what is due?"), resumed(0x02), with_a_gap());
    let withheld = edit(&closed, |lines| {
        lines.remove(13);
        replace(&mut lines[15], r#""payloads":3"#, r#""payloads":2"#);
    });
    vec![
        good(
            "valid-closed",
            "a closed run, its last head trusted",
            &closed.text,
            Some(closed.trust_text()),
            Status::Valid,
            [3, 0, 0],
        ),
        good(
            "valid-resumed",
            "an abandoned segment, a second one with a grant",
            &resumed.text,
            Some(resumed.trust_text()),
            Status::Valid,
            [1, 0, 0],
        ),
        good(
            "valid-gap",
            "events 2 to 4 are lost and admitted",
            &gap.text,
            Some(gap.trust_text()),
            Status::Valid,
            [0, 0, 0],
        ),
        good(
            "valid-payload-withheld",
            "one of three payloads is not handed over",
            &withheld,
            Some(closed.trust_text()),
            Status::Valid,
            [2, 1, 0],
        ),
    ]
}

fn incomplete_cases() -> Vec<Case> {
    let (closed, resumed, open) = (closed(0x01, "what is due?"), resumed(0x02), still_open());
    vec![
        good("incomplete-no-trust", "no trust file", &closed.text, None, Status::Incomplete, [3, 0, 0]),
        good(
            "incomplete-no-head",
            "the trust file knows another run only",
            &closed.text,
            Some(resumed.trust_text()),
            Status::Incomplete,
            [3, 0, 0],
        ),
        good(
            "incomplete-tail",
            "the last trusted head is event 4 of 10",
            &closed.text,
            Some(closed.trust_at(4)),
            Status::Incomplete,
            [3, 0, 0],
        ),
        good(
            "incomplete-open",
            "the run is still open",
            &open.text,
            Some(open.trust_text()),
            Status::Incomplete,
            [0, 0, 0],
        ),
    ]
}

fn bad(
    name: &'static str,
    what: &'static str,
    text: Vec<u8>,
    export: &Export,
    failure: (Attack, u64, Option<u64>),
) -> Case {
    Case {
        name,
        what,
        text,
        trust: Some(export.trust_text()),
        status: Status::Invalid,
        failure: Some(failure),
        payloads: [0; 3],
    }
}

fn chain_cases() -> Vec<Case> {
    event_cases().into_iter().chain(head_cases()).collect()
}

/// Events that were changed, dropped, moved or put in.
fn event_cases() -> Vec<Case> {
    use Attack::*;
    // Line 3 is event 1 of `closed`, so line n + 2 (index n + 1) is event n.
    let (closed, other) = (closed(0x01, "what is due?"), closed(0x03, "what was paid?"));
    vec![
        bad(
            "event-altered",
            "event 8: deny became allow",
            edit(&closed, |l| replace(&mut l[9], "deny", "allow")),
            &closed,
            (EventAltered, 10, Some(8)),
        ),
        bad(
            "event-seq-altered",
            "event 5 says it is event 7",
            edit(&closed, |l| replace(&mut l[6], r#""seq":5"#, r#""seq":7"#)),
            &closed,
            (EventAltered, 7, Some(5)),
        ),
        bad(
            "event-link-altered",
            "the link of event 4",
            edit(&closed, |l| l[5][0] = if l[5][0] == b'0' { b'1' } else { b'0' }),
            &closed,
            (EventAltered, 6, Some(4)),
        ),
        bad(
            "event-of-another-run",
            "event 2 of another run in place of event 2",
            edit(&closed, |l| l[3] = other.lines()[3].clone()),
            &closed,
            (EventAltered, 4, Some(2)),
        ),
        bad(
            "event-missing",
            "event 8, the denial, is dropped",
            edit(&closed, |l| drop(l.remove(9))),
            &closed,
            (EventMissing, 10, Some(8)),
        ),
        bad(
            "event-missing-last",
            "event 10, the last, is dropped",
            edit(&closed, |l| drop(l.remove(11))),
            &closed,
            (EventMissing, 12, Some(10)),
        ),
        bad(
            "event-reordered",
            "events 4 and 6 are swapped",
            edit(&closed, |l| l.swap(5, 7)),
            &closed,
            (EventReordered, 6, Some(4)),
        ),
        bad(
            "event-duplicated",
            "event 4 stands twice",
            edit(&closed, |l| l.insert(6, l[5].clone())),
            &closed,
            (EventDuplicated, 7, Some(5)),
        ),
    ]
}

/// Segments and heads that were changed, and runs that a head does not know.
fn head_cases() -> Vec<Case> {
    use Attack::*;
    let (closed, resumed) = (closed(0x01, "what is due?"), resumed(0x02));
    let drop_first_segment = edit(&resumed, |lines| drop(lines.drain(1..9)));
    vec![
        bad(
            "segment-altered",
            "the writer of the segment",
            edit(&closed, |l| replace(&mut l[1], "writer-1", "writer-9")),
            &closed,
            (SegmentAltered, 2, Some(1)),
        ),
        bad(
            "segment-missing",
            "the first segment is dropped",
            drop_first_segment,
            &resumed,
            (SegmentSpliced, 2, Some(1)),
        ),
        bad(
            "head-altered",
            "the head says abandoned",
            edit(&closed, |l| replace(&mut l[12], "closed", "abandoned")),
            &closed,
            (HeadMismatch, 13, Some(10)),
        ),
        bad(
            "chain-rewritten",
            "another run with the same id, sound in itself",
            closed_again().text,
            &closed,
            (ChainRewritten, 12, Some(10)),
        ),
        bad(
            "tail-missing",
            "a shorter run with the same id, sound in itself",
            shorter().text,
            &closed,
            (TailMissing, 6, Some(3)),
        ),
        bad(
            "wrong-origin",
            "the trust file is of another store",
            closed.text.clone(),
            &closed,
            (WrongOrigin, 1, None),
        )
        .of_another_store(),
    ]
}

impl Case {
    fn of_another_store(mut self) -> Case {
        self.trust = self.trust.map(|trust| trust.replace(ORIGIN, "portcullis/elsewhere"));
        self
    }
}

/// The run `closed(0x01, ..)`, with another question and all links computed again.
fn closed_again() -> Export {
    closed(0x01, "what is owed?")
}

fn shorter() -> Export {
    let mut builder = Builder::new(0x01);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.close(SegmentState::Closed);
    builder.finish()
}

fn payload_line(export: &Export, text: &str) -> usize {
    export.lines().iter().position(|line| String::from_utf8_lossy(line).contains(text)).unwrap()
}

fn foreign_payload() -> Vec<u8> {
    let other = closed(0x03, "what was paid?");
    other.lines()[payload_line(&other, "what was paid?")].clone()
}
