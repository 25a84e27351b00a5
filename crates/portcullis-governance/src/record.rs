//! One run as its export hands it over: the verified events with the payloads that are there.
//!
//! The export is the only source. It is verified before anything else is read in it, so no file of a pack is ever
//! made from a record that was changed.

use std::collections::{BTreeMap, HashMap, HashSet};

use portcullis_core::aside::{ERASED, WITHHELD};
use portcullis_core::event::{Event, EventBody, RunOpened};
use portcullis_core::id::{Commitment, RunId};
use portcullis_proof::export::{
    ErasedRecord, HeadRecord, LineError, Lines, PAYLOAD_RECORD_BYTES_MAX, PayloadRecord, SegmentState,
    event_parts, read_record, record_kind,
};
use portcullis_proof::{Digest, Head, ReadError, Report, Status, verify};

/// The most events of a run that a pack is made of.
pub const EVENTS_MAX: usize = 200_000;

/// The largest export that a pack is made of, in bytes.
pub const EXPORT_BYTES_MAX: usize = 512 << 20;

/// Why no pack can be made of an export.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It could not be read to its end.
    #[error("cannot read the record of the run: {0}")]
    Read(#[from] ReadError),
    /// It was changed.
    #[error("the record of the run does not verify: {0}")]
    Invalid(String),
    /// It is too long.
    #[error("the run has more than {limit} {what}, which is the limit of a governance pack")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// An event is not one of this release.
    #[error("event {seq} of the run: {message}")]
    Event {
        /// Its number.
        seq: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Nothing was recorded.
    #[error("the run has no opening event, so it cannot be reported on")]
    Empty,
}

/// A payload that is at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their media type.
    pub media_type: String,
}

/// The record of one run.
#[derive(Debug)]
pub struct Record {
    export: Vec<u8>,
    report: Report,
    origin: String,
    run: RunId,
    head: Head,
    state: SegmentState,
    segments: usize,
    events: Vec<Event>,
    payloads: HashMap<Commitment, Payload>,
    /// Those that the store erased.
    erased: HashSet<Commitment>,
}

impl Record {
    /// Reads and verifies an export.
    ///
    /// # Errors
    /// When it does not verify, is over a limit, or holds nothing.
    pub fn read(export: Vec<u8>) -> Result<Self, RecordError> {
        if export.len() > EXPORT_BYTES_MAX {
            return Err(RecordError::TooLarge { what: "bytes of record", limit: EXPORT_BYTES_MAX });
        }
        let report = verify(export.as_slice(), None)?;
        if let (Status::Invalid, Some(failure)) = (report.status, &report.failure) {
            let place = format!("line {}, byte {}", failure.line, failure.byte);
            return Err(RecordError::Invalid(format!("{} at {place}: {}", failure.attack, failure.message)));
        }
        let (Some(origin), Some(run), Some(head)) = (report.origin.clone(), report.run, report.head) else {
            return Err(RecordError::Empty);
        };
        let mut record = Self {
            report,
            origin,
            run: RunId::from_bytes(run.0),
            head,
            state: SegmentState::Open,
            segments: 0,
            events: Vec::new(),
            payloads: HashMap::new(),
            erased: HashSet::new(),
            export: Vec::new(),
        };
        record.lines(&export)?;
        record.join();
        record.export = export;
        match record.events.first().map(|event| &event.body) {
            Some(EventBody::RunOpened(_)) => Ok(record),
            _ => Err(RecordError::Empty),
        }
    }

    fn lines(&mut self, export: &[u8]) -> Result<(), RecordError> {
        let mut lines = Lines::new(export);
        loop {
            match lines.advance(PAYLOAD_RECORD_BYTES_MAX) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(LineError::Read(error)) => return Err(RecordError::Read(ReadError::Io(error))),
                // It was whole a moment ago.
                Err(_) => return Err(RecordError::Invalid("a line is incomplete".to_owned())),
            }
            if let Some((_, line)) = event_parts(lines.line()) {
                if self.events.len() == EVENTS_MAX {
                    return Err(RecordError::TooLarge { what: "events", limit: EVENTS_MAX });
                }
                let event = Event::from_line(line).map_err(|error| RecordError::Event {
                    seq: self.events.len() + 1,
                    message: error.to_string(),
                })?;
                self.events.push(event);
                continue;
            }
            let unsound = RecordError::Invalid;
            match record_kind(lines.line()) {
                Some("payload") => {
                    let record: PayloadRecord<'_> = read_record(lines.line()).map_err(unsound)?;
                    let bytes = record.bytes().map_err(RecordError::Invalid)?.into_owned();
                    let payload = Payload { bytes, media_type: record.media_type.into_owned() };
                    self.payloads.insert(Commitment::from_bytes(record.commitment.0), payload);
                }
                Some("erased") => {
                    let record: ErasedRecord = read_record(lines.line()).map_err(unsound)?;
                    self.erased.insert(Commitment::from_bytes(record.commitment.0));
                }
                Some("head") => {
                    let head: HeadRecord = read_record(lines.line()).map_err(unsound)?;
                    self.state = head.state;
                    self.segments += 1;
                }
                _ => {}
            }
        }
    }

    /// Puts the words back that events have set aside.
    fn join(&mut self) {
        for event in &mut self.events {
            let Some(commitment) = event.aside().map(|payload| payload.commitment) else { continue };
            let words = self.payloads.get(&commitment).and_then(|words| str::from_utf8(&words.bytes).ok());
            event.join(words, if self.erased.contains(&commitment) { ERASED } else { WITHHELD });
        }
    }

    /// The export, byte for byte.
    #[must_use]
    pub fn export(&self) -> &[u8] {
        &self.export
    }

    /// What the verifier found about the export by itself.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The name of the store.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Number and link of the last event.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The link of the last event.
    #[must_use]
    pub fn link(&self) -> Digest {
        self.head.link
    }

    /// The state of the last segment.
    #[must_use]
    pub fn state(&self) -> SegmentState {
        self.state
    }

    /// How many writers wrote it, one after the other.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// The events in order, with their words where those are there.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How it was opened. A record without that is never made.
    #[must_use]
    pub fn opened(&self) -> Option<&RunOpened> {
        match self.events.first().map(|event| &event.body) {
            Some(EventBody::RunOpened(opened)) => Some(opened),
            _ => None,
        }
    }

    /// The bundles that judged it, by their digests, in the order in which they came into force.
    #[must_use]
    pub fn bundles(&self) -> Vec<portcullis_core::id::Digest> {
        let mut digests = Vec::new();
        for period in crate::period::periods(self.events()) {
            if !digests.contains(&period.bundle) {
                digests.push(period.bundle);
            }
        }
        digests
    }

    /// The payload of a commitment, or `None` if it was withheld or erased.
    #[must_use]
    pub fn payload(&self, commitment: &Commitment) -> Option<&Payload> {
        self.payloads.get(commitment)
    }

    /// Whether the store erased the payload behind a commitment.
    #[must_use]
    pub fn is_erased(&self, commitment: &Commitment) -> bool {
        self.erased.contains(commitment)
    }

    /// A payload of an event by name, as bytes.
    #[must_use]
    pub fn named(&self, event: &Event, name: &str) -> Option<&[u8]> {
        self.payload(&event.payloads.get(name)?.commitment).map(|payload| payload.bytes.as_slice())
    }

    /// The payloads of an event that are text, by name.
    #[must_use]
    pub fn texts(&self, event: &Event) -> BTreeMap<String, String> {
        let text = |name: &String| {
            let bytes = self.named(event, name)?;
            Some((name.clone(), String::from_utf8_lossy(bytes).into_owned()))
        };
        event.payloads.keys().filter_map(text).collect()
    }
}
