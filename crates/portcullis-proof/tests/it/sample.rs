//! Exports made by hand, good and bad.

use std::collections::BTreeMap;

use portcullis_proof::chain::hex_text;
use portcullis_proof::export::{
    EXPORT_FORMAT, EXPORT_FORMAT_ERASED, EndRecord, ErasedRecord, ExportRecord, HeadRecord, PayloadRecord,
    SegmentRecord, SegmentState, read_record, write_event, write_record,
};
use portcullis_proof::{
    Digest, Head, Hex, Id, Parent, Report, SegmentStart, Trust, event_hash, event_link, payload_commitment,
    segment_link, trust, verify,
};

pub(crate) const ORIGIN: &str = "portcullis/example";

/// An id whose sixteen bytes are all the same.
pub(crate) fn id(byte: u8) -> Id {
    Hex([byte; 16])
}

/// An event body that speaks of action `byte`.
pub(crate) fn action(byte: u8, rest: &str) -> String {
    format!(r#"{{"action":"{}"{rest}}}"#, id(byte))
}

/// A finished export with what a verifier of it may trust.
#[derive(Clone)]
pub(crate) struct Export {
    pub(crate) text: Vec<u8>,
    pub(crate) run: Id,
    /// The link of every event.
    pub(crate) heads: Vec<Head>,
}

impl Export {
    /// The trust file of someone who saw the last event.
    pub(crate) fn trust_text(&self) -> String {
        self.trust_at(self.heads.last().unwrap().count)
    }

    /// The trust file of someone who saw event `count`.
    pub(crate) fn trust_at(&self, count: u64) -> String {
        let head = *self.heads.iter().find(|head| head.count == count).unwrap();
        format!("{}{}\n", trust::preamble(ORIGIN), trust::head_line(self.run, head))
    }

    pub(crate) fn lines(&self) -> Vec<Vec<u8>> {
        self.text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }
}

pub(crate) fn check(text: &[u8], trust: Option<&str>) -> Report {
    let trust = trust.map(|text| Trust::parse(text).unwrap());
    verify(text, trust.as_ref()).unwrap()
}

/// Writes an export as a gate would.
pub(crate) struct Builder {
    out: Vec<u8>,
    origin: &'static str,
    run: Id,
    segment: Id,
    segments: u64,
    seq: u64,
    events: u64,
    link: Digest,
    heads: Vec<Head>,
    payloads: BTreeMap<Digest, (Digest, &'static str, Vec<u8>)>,
}

impl Builder {
    pub(crate) fn new(run: u8) -> Builder {
        Builder::of_store(ORIGIN, run)
    }

    /// A run of another store.
    pub(crate) fn of_store(origin: &'static str, run: u8) -> Builder {
        let mut out = Vec::new();
        let record = ExportRecord { format: EXPORT_FORMAT.into(), origin: origin.into(), run: id(run) };
        write_record(&mut out, &record).unwrap();
        Builder {
            out,
            origin,
            run: id(run),
            segment: id(0),
            segments: 0,
            seq: 0,
            events: 0,
            link: Hex([0; 32]),
            heads: Vec::new(),
            payloads: BTreeMap::new(),
        }
    }

    pub(crate) fn segment(&mut self, segment: u8, writer: &str) {
        let parent = (self.segments > 0).then_some(Parent { segment: self.segment, link: self.link });
        self.segment = id(segment);
        let (ordinal, after) = (self.segments, self.seq);
        self.link = segment_link(&SegmentStart {
            origin: self.origin,
            run: self.run,
            segment: self.segment,
            writer,
            ordinal,
            after,
            parent,
        });
        let record = SegmentRecord {
            segment: self.segment,
            writer: writer.into(),
            ordinal,
            after,
            parent,
            link: self.link,
        };
        write_record(&mut self.out, &record).unwrap();
        self.segments += 1;
    }

    /// A segment whose record is this line, which has its first link.
    pub(crate) fn segment_as(&mut self, segment: Id, link: Digest, line: &[u8]) {
        (self.segment, self.link) = (segment, link);
        self.out.extend_from_slice(line);
        self.segments += 1;
    }

    /// Where the chain stands.
    pub(crate) fn link(&self) -> Digest {
        self.link
    }

    /// Hands over the payloads of another run.
    pub(crate) fn payloads_of(&mut self, other: &Builder) {
        self.payloads.clone_from(&other.payloads);
    }

    pub(crate) fn event(&mut self, kind: &str, body: &str) {
        self.event_naming(kind, body, "");
    }

    /// An event with one payload, whose salt follows from its bytes so that vectors stay as they are.
    pub(crate) fn event_with(&mut self, kind: &str, body: &str, media_type: &'static str, bytes: &[u8]) {
        let salt = event_hash(bytes);
        let commitment = payload_commitment(&salt.0, media_type, bytes);
        self.payloads.insert(commitment, (salt, media_type, bytes.to_vec()));
        let payload = format!(
            r#""content":{{"commitment":"{commitment}","media_type":"{media_type}","bytes":{}}}"#,
            bytes.len()
        );
        self.event_naming(kind, body, &payload);
    }

    pub(crate) fn event_naming(&mut self, kind: &str, body: &str, payloads: &str) {
        let seq = self.seq + 1;
        let cause = if seq == 1 { "null".to_owned() } else { (seq - 1).to_string() };
        self.raw(
            seq,
            &format!(
                r#"{{"v":1,"seq":{seq},"t":"2026-11-21T01:02:{:02}.000000Z","kind":"{kind}","actor":"gate","cause":{cause},"payloads":{{{payloads}}},"body":{body}}}"#,
                seq % 60
            ),
        );
    }

    /// An event line as it is, chained as number `seq`.
    pub(crate) fn raw(&mut self, seq: u64, line: &str) {
        self.link = event_link(self.run, self.segment, seq, self.link, event_hash(line.as_bytes()));
        self.seq = seq;
        self.events += 1;
        self.heads.push(Head { count: seq, link: self.link });
        write_event(&mut self.out, self.link, line.as_bytes()).unwrap();
    }

    /// Closes the segment and writes its head.
    pub(crate) fn close(&mut self, state: SegmentState) {
        let count = self.seq + 1;
        self.event("run-closed", &format!(r#"{{"state":"{}","count":{count}}}"#, state.as_str()));
        self.head(state);
    }

    pub(crate) fn head(&mut self, state: SegmentState) {
        let record = HeadRecord { segment: self.segment, state, count: self.seq, link: self.link };
        write_record(&mut self.out, &record).unwrap();
    }

    pub(crate) fn finish(mut self) -> Export {
        for (commitment, (salt, media_type, bytes)) in &self.payloads {
            write_record(&mut self.out, &PayloadRecord::new(*commitment, *salt, media_type, bytes)).unwrap();
        }
        let payloads = self.payloads.len() as u64;
        let end = EndRecord { segments: self.segments, events: self.events, payloads, erased: None };
        write_record(&mut self.out, &end).unwrap();
        Export { text: self.out, run: self.run, heads: self.heads }
    }
}

/// A run of one segment: an action that is allowed, one that is denied.
pub(crate) fn closed(run: u8, question: &str) -> Export {
    let mut builder = Builder::new(run);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.event_with("input", "{}", "text/plain", question.as_bytes());
    builder.event_with("proposed", &action(0xa1, ""), "application/json", br#"{"path":"notes.txt"}"#);
    builder.event("verdict", &action(0xa1, r#","verdict":"allow""#));
    builder.event("enforcement", &action(0xa1, r#","enforced":"executed""#));
    builder.event_with(
        "outcome",
        &action(0xa1, r#","status":"ok""#),
        "application/octet-stream",
        b"\xff\x00\xfe",
    );
    builder.event("proposed", &action(0xa2, ""));
    builder.event("verdict", &action(0xa2, r#","verdict":"deny""#));
    builder.event("enforcement", &action(0xa2, r#","enforced":"withheld""#));
    builder.close(SegmentState::Closed);
    builder.finish()
}

/// The same export after the payloads that hold one of these texts were erased.
pub(crate) fn erased(export: &Export, texts: &[&str]) -> Export {
    let mut lines = export.lines();
    let first = String::from_utf8(lines[0].clone()).unwrap();
    lines[0] = first.replace(EXPORT_FORMAT, EXPORT_FORMAT_ERASED).into_bytes();
    let (mut payloads, mut erased) = (0, 0);
    for line in &mut lines {
        let Ok(record) = read_record::<PayloadRecord<'_>>(line.strip_suffix(b"\n").unwrap()) else {
            continue;
        };
        if texts.iter().any(|text| record.text.as_deref().is_some_and(|said| said.contains(text))) {
            let record = ErasedRecord { commitment: record.commitment };
            line.clear();
            write_record(line, &record).unwrap();
            erased += 1;
        } else {
            payloads += 1;
        }
    }
    assert_eq!(erased, texts.len() as u64);
    let end = lines.last_mut().unwrap();
    let said: EndRecord = read_record(end.strip_suffix(b"\n").unwrap()).unwrap();
    let said = EndRecord { payloads, erased: Some(erased), ..said };
    end.clear();
    write_record(end, &said).unwrap();
    Export { text: lines.concat(), ..export.clone() }
}

/// A run whose first writer died in the middle of an action, and which goes on with a held and granted one.
pub(crate) fn resumed(run: u8) -> Export {
    let mut builder = Builder::new(run);
    builder.segment(0x51, "writer-1");
    builder.event("run-opened", "{}");
    builder.event("proposed", &action(0xa1, ""));
    builder.event("verdict", &action(0xa1, r#","verdict":"warn""#));
    builder.event("enforcement", &action(0xa1, r#","enforced":"executed""#));
    builder.event("outcome", &action(0xa1, r#","status":"unknown""#));
    builder.close(SegmentState::Abandoned);
    builder.segment(0x52, "writer-2");
    builder.event("config", r#"{"change":"resumed","parent":"abandoned"}"#);
    builder.event_with("proposed", &action(0xa2, ""), "application/json", br#"{"to":"ops@example.org"}"#);
    builder.event("verdict", &action(0xa2, r#","verdict":"review""#));
    builder.event("enforcement", &action(0xa2, r#","enforced":"held""#));
    let approval = hex_text(&[0xc1; 16]);
    builder.event("approval-requested", &action(0xa2, &format!(r#","approval":"{approval}""#)));
    builder.event(
        "approval-decided",
        &format!(r#"{{"approval":"{approval}","decision":"granted","scope":"once"}}"#),
    );
    builder.event("grant-claimed", &action(0xa2, &format!(r#","approval":"{approval}""#)));
    builder.event("verdict", &action(0xa2, r#","verdict":"allow""#));
    builder.event("enforcement", &action(0xa2, r#","enforced":"executed""#));
    builder.event("outcome", &action(0xa2, r#","status":"ok""#));
    builder.close(SegmentState::Closed);
    builder.finish()
}
