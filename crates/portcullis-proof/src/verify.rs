//! The verifier: one pass over an export, in the order of its lines, up to the first thing that is wrong.
//!
//! It believes nothing in the file. Whose run it should be, and where its chain should stand, come from the trust
//! file; everything else is computed again. Its memory grows with the actions, approvals and payloads of the run
//! (each bounded by a limit), never with the length of the file.
//!
//! Every event line carries its link, which is not needed to prove anything: the head alone would do. It is there
//! so that the verifier can say *which* event was touched. Who recomputes the links after touching one changes
//! the head, and meets the trust file.

mod ahead;
mod payloads;
mod records;

use std::collections::HashMap;
use std::io::{self, BufRead};

use ahead::{EventLine, ReadEvent};
use payloads::{Named, described};
use records::Record;

use crate::chain::{Digest, Id, Parent, SegmentStart, event_hash, event_link, segment_link};
use crate::diagnose::{Broken, Chain, Place, diagnose};
use crate::event::Event;
use crate::export::{
    EXPORT_FORMAT, EXPORT_FORMAT_ERASED, EndRecord, ExportRecord, HeadRecord, LINE_BYTES_MAX, LineError,
    Lines, PAYLOAD_RECORD_BYTES_MAX, SegmentRecord, SegmentState, event_parts, read_record, record_kind,
};
use crate::kin::{KIN_MAX, Kin};
use crate::logged::{SEGMENTS_KEPT_MAX, Segments};
use crate::report::{Attack, Failure, Head, PayloadCounts, Report, Status};
use crate::state::{StateError, Trajectory};
use crate::trust::{Trust, check_origin};

/// The most payloads of one run that are followed.
pub const PAYLOADS_MAX: usize = 1 << 20;

/// The longest writer id in bytes.
pub const WRITER_BYTES_MAX: usize = 256;

/// Why an export could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The reader failed.
    #[error("could not read the export: {0}")]
    Io(#[from] io::Error),
    /// The run is larger than the verifier follows.
    #[error("line {line}: the run has more than {limit} {what}; this verifier follows no more")]
    TooLarge {
        /// The line, from 1.
        line: u64,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Verifies an export. Without a trust file the best answer is `INCOMPLETE`.
///
/// # Errors
/// When the export could not be read to the point where an answer is possible. Everything that is wrong *with*
/// the export is an answer, not an error.
pub fn verify(reader: impl BufRead, trust: Option<&Trust>) -> Result<Report, ReadError> {
    verify_with(reader, trust, None, &mut Kin::default())
}

/// Verifies an export, notes what it says of other runs and, where asked to, keeps its segments.
pub(crate) fn verify_with(
    reader: impl BufRead,
    trust: Option<&Trust>,
    segments: Option<&mut Segments>,
    kin: &mut Kin,
) -> Result<Report, ReadError> {
    let mut lines = Lines::new(reader);
    let mut verifier = Verifier::new(trust, segments, kin);
    match verifier.read(&mut lines) {
        Ok(()) => Ok(verifier.report(None)),
        Err(Stop::Failed(failure)) => Ok(verifier.report(Some(failure))),
        Err(Stop::Broken(broken)) => {
            let failure = diagnose(&mut lines, &verifier.chain(), broken);
            Ok(verifier.report(Some(failure)))
        }
        Err(Stop::Unreadable(error)) => Err(error),
    }
}

/// Why the verifier reads no further.
enum Stop {
    Failed(Failure),
    Broken(Broken),
    Unreadable(ReadError),
}

impl Place {
    fn fail<T>(self, attack: Attack, seq: Option<u64>, message: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Failed(self.failure(attack, seq, message)))
    }
}

/// What may be on the next line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Export,
    Segment,
    EventOrHead,
    SegmentOrPayloadOrEnd,
    PayloadOrEnd,
    Nothing,
}

impl Expect {
    fn as_str(self) -> &'static str {
        match self {
            Expect::Export => "the record `export`",
            Expect::Segment => "a record `segment`",
            Expect::EventOrHead => "an event or the record `head`",
            Expect::SegmentOrPayloadOrEnd => "a record `segment`, `payload` or `end`",
            Expect::PayloadOrEnd => "a record `payload` or `end`",
            Expect::Nothing => "the end of the file",
        }
    }
}

struct Verifier<'t> {
    trust: Option<&'t Trust>,
    kept: Option<&'t mut Segments>,
    kin: &'t mut Kin,
    /// The trusted heads of this run that are still ahead.
    heads: &'t [Head],
    anchored: Option<u64>,
    expect: Expect,
    origin: Option<String>,
    run: Option<Id>,
    segment: Id,
    segments: u64,
    /// The state of the latest segment; `Open` until its `run-closed`.
    state: SegmentState,
    /// The head of the chain: the last event's seq, and the link that the next event follows.
    seq: u64,
    link: Digest,
    last_event: Option<Head>,
    events: u64,
    trajectory: Trajectory,
    named: HashMap<Digest, Named>,
    payloads: u64,
    /// Payloads that the file says were erased, or `None` if its version cannot say so.
    erased: Option<u64>,
    last_payload: Option<Digest>,
}

impl<'t> Verifier<'t> {
    fn new(trust: Option<&'t Trust>, kept: Option<&'t mut Segments>, kin: &'t mut Kin) -> Verifier<'t> {
        Verifier {
            trust,
            kept,
            kin,
            heads: &[],
            anchored: None,
            expect: Expect::Export,
            origin: None,
            run: None,
            segment: Id::from([0; 16]),
            segments: 0,
            state: SegmentState::Open,
            seq: 0,
            link: Digest::from([0; 32]),
            last_event: None,
            events: 0,
            trajectory: Trajectory::default(),
            named: HashMap::new(),
            payloads: 0,
            erased: None,
            last_payload: None,
        }
    }

    fn read<R: BufRead>(&mut self, lines: &mut Lines<R>) -> Result<(), Stop> {
        loop {
            while self.ahead(lines)? {}
            let bytes_max = match self.expect {
                Expect::SegmentOrPayloadOrEnd | Expect::PayloadOrEnd => PAYLOAD_RECORD_BYTES_MAX,
                _ => LINE_BYTES_MAX,
            };
            let advanced = lines.advance(bytes_max);
            let place = Place { line: lines.number, byte: lines.byte };
            match advanced {
                Ok(true) => self.line(place, lines.line())?,
                Ok(false) if self.expect == Expect::Nothing => return Ok(()),
                Ok(false) if self.expect == Expect::Export => {
                    return place.fail(Attack::NotAPortcullisExport, None, "the file is empty");
                }
                Ok(false) => {
                    let message = format!("the file ends before {}", self.expect.as_str());
                    return place.fail(Attack::Truncated, None, message);
                }
                Err(LineError::Unfinished) if self.expect == Expect::Nothing => {
                    return place.fail(Attack::TrailingData, None, "data follows the record `end`");
                }
                Err(LineError::Unfinished) => {
                    return place.fail(Attack::Truncated, None, "the file ends within this line");
                }
                Err(LineError::TooLong(_)) if self.expect == Expect::Nothing => {
                    return place.fail(Attack::TrailingData, None, "data follows the record `end`");
                }
                Err(LineError::TooLong(limit)) => {
                    let first = self.expect == Expect::Export;
                    let attack = if first { Attack::NotAPortcullisExport } else { Attack::LineMalformed };
                    return place.fail(attack, None, format!("the line has more than {limit} bytes"));
                }
                Err(LineError::Read(error)) => return Err(Stop::Unreadable(error.into())),
            }
        }
    }

    fn line(&mut self, place: Place, line: &[u8]) -> Result<(), Stop> {
        if self.expect == Expect::Nothing {
            return place.fail(Attack::TrailingData, None, "data follows the record `end`");
        }
        if self.expect == Expect::Export {
            return self.export(place, line);
        }
        if line.is_empty() || line.contains(&b'\r') {
            let message = "an empty line or a carriage return; lines end in a single newline";
            return place.fail(Attack::LineMalformed, None, message);
        }
        let Some(kind) = record_kind(line) else {
            return match event_parts(line) {
                Some((link, text)) if self.expect == Expect::EventOrHead => {
                    let line = EventLine { before: self.link, link, text };
                    self.event(place, &line, line.read(self.run(), self.segment))
                }
                Some(_) => self.out_of_order(place, "an event"),
                None => place.fail(Attack::LineMalformed, None, "neither a record nor a link with an event"),
            };
        };
        // A line is first of its form, then in its place.
        let record = match self.record(kind, line) {
            Ok(record) => record,
            Err(message) => return place.fail(Attack::LineMalformed, None, message),
        };
        let payloads = matches!(self.expect, Expect::SegmentOrPayloadOrEnd | Expect::PayloadOrEnd);
        match (record, self.expect) {
            (Record::Segment(record), Expect::Segment | Expect::SegmentOrPayloadOrEnd) => {
                self.start(place, &record)
            }
            (Record::Head(record), Expect::EventOrHead) => self.head(place, record),
            (Record::Payload(read), _) if payloads => self.payload(place, Ok(read)),
            (Record::Erased(record), _) if payloads => self.erased(place, record),
            (Record::End(record), _) if payloads => self.end(place, &record),
            _ => self.out_of_order(place, &format!("a record `{kind}`")),
        }
    }

    fn out_of_order(&self, place: Place, found: &str) -> Result<(), Stop> {
        let message = format!("{found} where {} should be", self.expect.as_str());
        place.fail(Attack::RecordOutOfOrder, None, message)
    }

    fn export(&mut self, place: Place, line: &[u8]) -> Result<(), Stop> {
        let fail = |message: String| place.failure(Attack::NotAPortcullisExport, None, message);
        let record: ExportRecord<'_> = read_record(line).map_err(|error| Stop::Failed(fail(error)))?;
        self.erased = match &*record.format {
            EXPORT_FORMAT => None,
            EXPORT_FORMAT_ERASED => Some(0),
            other => {
                let message = format!(
                    "format `{}`, this verifier reads `{EXPORT_FORMAT}` and `{EXPORT_FORMAT_ERASED}`",
                    other.escape_debug()
                );
                return Err(Stop::Failed(fail(message)));
            }
        };
        check_origin(&record.origin).map_err(|error| Stop::Failed(fail(error)))?;
        self.run = Some(record.run);
        self.trajectory = Trajectory::of(record.run);
        self.origin = Some(record.origin.clone().into_owned());
        if let Some(trust) = self.trust {
            if record.origin != trust.origin() {
                let message = format!("origin `{}`, the trust file has `{}`", record.origin, trust.origin());
                return place.fail(Attack::WrongOrigin, None, message);
            }
            self.heads = trust.heads(record.run);
        }
        self.expect = Expect::Segment;
        Ok(())
    }

    fn start(&mut self, place: Place, record: &SegmentRecord<'_>) -> Result<(), Stop> {
        let start = SegmentStart {
            origin: self.origin.as_deref().unwrap_or_default(),
            run: self.run(),
            segment: record.segment,
            writer: &record.writer,
            ordinal: record.ordinal,
            after: record.after,
            parent: record.parent,
        };
        let next = Some(self.seq.saturating_add(1));
        if segment_link(&start) != record.link {
            let message =
                "origin, run or this record was altered: they do not hash to the segment's first link";
            return place.fail(Attack::SegmentAltered, next, message);
        }
        let parent = (self.segments > 0).then_some(Parent { segment: self.segment, link: self.link });
        if record.ordinal != self.segments || record.after != self.seq || record.parent != parent {
            let message = format!(
                "this segment is number {} after event {}, expected number {} after event {} with the segment \
                 before it as parent: segments are missing, swapped or of another run",
                record.ordinal, record.after, self.segments, self.seq
            );
            return place.fail(Attack::SegmentSpliced, next, message);
        }
        if self.segments > 0 && self.state == SegmentState::Open {
            return place.fail(Attack::StateMachine, next, "a segment follows one that is still open");
        }
        if let Some(kept) = &mut self.kept {
            let limit = SEGMENTS_KEPT_MAX;
            kept.start(&start, record.link).map_err(|()| too_large(place, "segments", limit))?;
        }
        self.segment = record.segment;
        self.link = record.link;
        self.segments += 1;
        self.state = SegmentState::Open;
        self.expect = Expect::EventOrHead;
        Ok(())
    }

    /// Takes an event line, which was read as the one that follows this chain's last link.
    fn event(&mut self, place: Place, line: &EventLine<'_>, read: ReadEvent<'_>) -> Result<(), Stop> {
        let link = line.link;
        let expected = self.seq.saturating_add(1);
        let (event, follows) = match read {
            Ok(read) => read,
            // A line that cannot be read is altered, unless it was written like this.
            Err(message) => {
                let hash = event_hash(line.text);
                if event_link(self.run(), self.segment, expected, line.before, hash) != link {
                    return Err(Stop::Broken(Broken { place, seq: None, link }));
                }
                return place.fail(Attack::EventMalformed, Some(expected), message);
            }
        };
        let seq = event.seq;
        if follows != link || (seq != expected && !admits_gap(&event, expected)) {
            return Err(Stop::Broken(Broken { place, seq: Some(seq), link }));
        }
        self.trusted(place, Head { count: seq, link })?;
        self.follow(place, &event)?;
        let kin = self.kin.event(line.text, &event, link);
        kin.map_err(|()| too_large(place, "runs that it opened", KIN_MAX))?;
        self.seq = seq;
        self.link = link;
        self.last_event = Some(Head { count: seq, link });
        self.events += 1;
        if let Some(kept) = &mut self.kept {
            kept.event(Head { count: seq, link });
        }
        Ok(())
    }

    /// Holds a link against the trusted heads up to it.
    fn trusted(&mut self, place: Place, head: Head) -> Result<(), Stop> {
        while let Some((trusted, rest)) =
            self.heads.split_first().filter(|(trusted, _)| trusted.count <= head.count)
        {
            if *trusted != head {
                let message = format!(
                    "chain rewritten after event {}: the trust file has link {} for event {}",
                    self.anchored.unwrap_or(0),
                    trusted.link,
                    trusted.count
                );
                return place.fail(Attack::ChainRewritten, Some(trusted.count), message);
            }
            self.anchored = Some(head.count);
            self.heads = rest;
        }
        Ok(())
    }

    /// What an event means: for the run, for its action, and for its payloads.
    fn follow(&mut self, place: Place, event: &Event<'_>) -> Result<(), Stop> {
        let seq = Some(event.seq);
        let contradiction = |message: String| Stop::Failed(place.failure(Attack::StateMachine, seq, message));
        if self.state != SegmentState::Open {
            return Err(contradiction("an event follows the `run-closed` of its segment".to_owned()));
        }
        if (event.seq == 1) && event.kind != "run-opened" {
            return Err(contradiction(format!("a run starts with `run-opened`, not with `{}`", event.kind)));
        }
        if event.kind == "gap" && !admits_gap(event, self.seq.saturating_add(1)) {
            return Err(contradiction("a `gap` admits exactly the events missing before it".to_owned()));
        }
        if event.kind == "run-closed" {
            let count = event.body.number("count").map_err(contradiction)?;
            if count != event.seq {
                return Err(contradiction(format!(
                    "`run-closed` counts {count} events and is number {}",
                    event.seq
                )));
            }
            self.state = match event.body.text("state").map_err(contradiction)? {
                "closed" => SegmentState::Closed,
                "abandoned" => SegmentState::Abandoned,
                other => return Err(contradiction(format!("`run-closed` has the state `{other}`"))),
            };
        }
        self.trajectory.apply(event).map_err(|error| match error {
            StateError::Violation(message) => contradiction(message),
            StateError::TooMany(what, limit) => too_large(place, what, limit),
        })?;
        for (_, payload) in &event.payloads.0 {
            if self.named.len() == PAYLOADS_MAX && !self.named.contains_key(&payload.commitment) {
                return Err(too_large(place, "payloads", PAYLOADS_MAX));
            }
            let described = described(payload.bytes, &payload.media_type);
            let named = self.named.entry(payload.commitment).or_insert(Named { seq: event.seq, described });
            if named.described != described {
                let message =
                    format!("payload `{}` differs from what event {} says", payload.commitment, named.seq);
                return Err(contradiction(message));
            }
        }
        Ok(())
    }

    fn head(&mut self, place: Place, record: HeadRecord) -> Result<(), Stop> {
        let next = self.seq.saturating_add(1);
        if record.segment == self.segment && record.count > self.seq {
            let message = format!("events {next} to {} are missing before this head", record.count);
            return place.fail(Attack::EventMissing, Some(next), message);
        }
        let stands =
            HeadRecord { segment: self.segment, state: self.state, count: self.seq, link: self.link };
        if record != stands {
            let message = format!(
                "the segment is at event {} with link {} and is {}, but its head says {} with link {} and {}",
                self.seq,
                self.link,
                self.state.as_str(),
                record.count,
                record.link,
                record.state.as_str()
            );
            return place.fail(Attack::HeadMismatch, Some(self.seq), message);
        }
        if let Some(kept) = &mut self.kept {
            kept.end(self.state);
        }
        self.expect = Expect::SegmentOrPayloadOrEnd;
        Ok(())
    }

    fn end(&mut self, place: Place, record: &EndRecord) -> Result<(), Stop> {
        let (counted, erased) = (record.erased.unwrap_or(0), self.erased.unwrap_or(0));
        if record.payloads > self.payloads || counted > erased {
            let message = format!(
                "the record counts {} payloads and {counted} erased ones, the export has {} and {erased}",
                record.payloads, self.payloads
            );
            return place.fail(Attack::PayloadMissing, None, message);
        }
        let there = (self.segments, self.events, self.payloads, erased);
        if (record.segments, record.events, record.payloads, counted) != there {
            let message = format!(
                "{} segments, {} events, {} payloads and {counted} erased ones are counted; {}, {}, {} and \
                 {erased} are there",
                record.segments, record.events, record.payloads, self.segments, self.events, self.payloads
            );
            return place.fail(Attack::CountMismatch, None, message);
        }
        if let Some(trusted) = self.heads.last() {
            let message = format!(
                "the trust file remembers {} events, the run ends with event {}",
                trusted.count, self.seq
            );
            return place.fail(Attack::TailMissing, Some(self.seq.saturating_add(1)), message);
        }
        self.expect = Expect::Nothing;
        Ok(())
    }

    fn chain(&self) -> Chain {
        Chain { run: self.run(), segment: self.segment, seq: self.seq }
    }

    fn run(&self) -> Id {
        self.run.unwrap_or(Id::from([0; 16]))
    }

    fn report(self, failure: Option<Failure>) -> Report {
        let named = self.named.len() as u64;
        let erased = self.erased.unwrap_or(0);
        let withheld = named.saturating_sub(self.payloads).saturating_sub(erased);
        let payloads = PayloadCounts { named, verified: self.payloads, withheld, erased };
        let details = [
            Ok("every line is canonical and in order".to_owned()),
            Ok(format!(
                "{} in {} follow from each other",
                count(self.events, "event", "events"),
                count(self.segments, "segment", "segments")
            )),
            Ok(match self.trajectory.without_outcome() {
                0 => "every action was judged before it went ahead".to_owned(),
                open => format!("every action was judged before it went ahead; {open} without an outcome"),
            }),
            Ok(format!("{} verified, {withheld} withheld, {erased} erased", self.payloads)),
            self.anchor(),
            match self.state {
                SegmentState::Open => Err(format!("the run is still open after event {}", self.seq)),
                state => Ok(format!("the run is {} with event {}", state.as_str(), self.seq)),
            },
        ];
        Report {
            status: Status::Incomplete,
            failure,
            checks: Vec::new(),
            origin: self.origin,
            run: self.run,
            state: (self.segments > 0).then_some(self.state),
            segments: self.segments,
            events: self.events,
            head: self.last_event,
            anchored: self.anchored,
            payloads,
        }
        .conclude(details)
    }

    fn anchor(&self) -> Result<String, String> {
        match (self.trust, self.anchored) {
            (None, _) => Err("no trust file: without one, a chain can be rewritten as a whole".to_owned()),
            (Some(_), None) => Err("the trust file has no head of this run".to_owned()),
            (Some(_), Some(anchored)) if anchored < self.seq => {
                Err(format!("events {} to {} are after the last trusted head", anchored + 1, self.seq))
            }
            (Some(_), Some(anchored)) => Ok(format!("a trusted head covers all {anchored} events")),
        }
    }
}

fn too_large(place: Place, what: &'static str, limit: usize) -> Stop {
    Stop::Unreadable(ReadError::TooLarge { line: place.line, what, limit })
}

/// Whether the event admits that everything from `expected` up to it was lost. It is the only legal hole.
fn admits_gap(event: &Event<'_>, expected: u64) -> bool {
    event.kind == "gap"
        && event.seq > expected
        && event.body.number("from") == Ok(expected)
        && event.body.number("to") == Ok(event.seq - 1)
}

/// A number with its noun.
fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
