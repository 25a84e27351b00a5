//! What may be appended: lines that are chained by construction.
//!
//! A [`ChainedLine`] can only be made from the head it follows, and a [`StoredPayload`] only from its bytes, so
//! the writer never has to hash: it compares heads. A line that was chained to anything but the last stored
//! event is refused.

use portcullis_core::event::{ClosedState, Event, EventBody};
use portcullis_core::id::{ActionId, Commitment, RunId, SegmentId};
use portcullis_core::state::progress::Progress;
use portcullis_proof::chain::hex_text;
use portcullis_proof::export::PAYLOAD_BYTES_MAX;
use portcullis_proof::{Digest, Hex, event_hash, event_link, payload_commitment};

use crate::error::Refusal;
use crate::facts::FactChange;
use crate::rows::ApprovalRow;
use crate::taints::TaintRow;

/// The most events of one append.
pub const EVENTS_PER_APPEND_MAX: usize = 1_024;

/// A process that writes, by the id that it drew when it opened the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner([u8; Owner::BYTES]);

impl Owner {
    pub(crate) const BYTES: usize = 8;

    pub(crate) fn from_bytes(bytes: [u8; Owner::BYTES]) -> Owner {
        Owner(bytes)
    }

    /// The owner with this id, 16 digits in hexadecimal, or `None` if it is not one.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Owner> {
        let mut bytes = [0; Owner::BYTES];
        let lower = text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 2 * Owner::BYTES || !lower {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Owner(bytes))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex_text(&self.0))
    }
}

/// The right to write a run. A run has one owner at a time; each time that it is taken up, the epoch grows. An append
/// under an earlier lease is refused, so a writer that was taken for dead cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Who writes.
    pub owner: Owner,
    /// Segments of the run before this one.
    pub epoch: u64,
}

/// The head of a segment: the place that the next event follows, and the lease under which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The run.
    pub run: RunId,
    /// The segment.
    pub segment: SegmentId,
    /// The right to write the segment.
    pub lease: Lease,
    /// The seq of the last event of the run, 0 before the first.
    pub count: u64,
    /// The link of that event; the segment's first link when it has no event yet.
    pub link: Digest,
}

/// An event with its line and its link.
#[derive(Debug, Clone)]
pub struct ChainedLine {
    pub(crate) before: Head,
    pub(crate) kind: &'static str,
    pub(crate) action: Option<ActionId>,
    pub(crate) t_micros: i64,
    pub(crate) line: Vec<u8>,
    pub(crate) link: Digest,
    pub(crate) named: Vec<Commitment>,
    pub(crate) closes: Option<ClosedState>,
}

impl ChainedLine {
    /// Chains an event to the head it follows. Refuses an event whose seq is not the next one, whose line is too
    /// long, and a `run-closed` that counts wrongly.
    pub fn new(before: Head, event: &Event) -> Result<ChainedLine, Refusal> {
        let next = before.count.saturating_add(1);
        if event.seq != next {
            return Err(Refusal::OutOfOrder {
                run: before.run,
                count: before.count,
                after: event.seq.saturating_sub(1),
            });
        }
        let closes = match &event.body {
            EventBody::RunClosed { count, .. } if *count != next => {
                return Err(Refusal::Event(format!(
                    "`run-closed` counts {count} events but is event {next}"
                )));
            }
            EventBody::RunClosed { state, .. } => Some(*state),
            // A writer that is alive loses nothing; a gap would be a hole that the store cannot hold.
            EventBody::Gap { .. } => {
                return Err(Refusal::Event("this store has no gaps to admit".to_owned()));
            }
            _ => None,
        };
        let line = event.to_line().map_err(|error| Refusal::Event(error.to_string()))?;
        let link = event_link(
            Hex(*before.run.as_bytes()),
            Hex(*before.segment.as_bytes()),
            event.seq,
            before.link,
            event_hash(&line),
        );
        Ok(ChainedLine {
            before,
            kind: event.body.kind(),
            action: event.body.action(),
            t_micros: event.t.as_micros(),
            line,
            link,
            named: event.payloads.values().map(|payload| payload.commitment).collect(),
            closes,
        })
    }

    /// The head after this event: what the next one is chained to.
    pub fn head(&self) -> Head {
        Head { count: self.seq(), link: self.link, ..self.before }
    }

    /// The seq.
    pub fn seq(&self) -> u64 {
        self.before.count.saturating_add(1)
    }

    /// The bytes that are hashed and stored.
    pub fn line(&self) -> &[u8] {
        &self.line
    }
}

/// A payload with what opens its commitment.
#[derive(Debug, Clone)]
pub struct StoredPayload {
    commitment: Commitment,
    pub(crate) salt: [u8; 32],
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl StoredPayload {
    /// Commits to a payload. `salt` must be unpredictable and used once. Refuses more than 10 MiB, and a salt of
    /// zeros.
    pub fn new(
        salt: [u8; 32],
        media_type: impl Into<String>,
        bytes: Vec<u8>,
    ) -> Result<StoredPayload, Refusal> {
        if bytes.len() > PAYLOAD_BYTES_MAX {
            return Err(Refusal::PayloadTooLong { bytes: bytes.len(), limit: PAYLOAD_BYTES_MAX });
        }
        // In the table, it says that the payload is erased.
        if salt == [0; 32] {
            return Err(Refusal::SaltZero);
        }
        let media_type = media_type.into();
        let commitment = Commitment::from_bytes(payload_commitment(&salt, &media_type, &bytes).0);
        Ok(StoredPayload { commitment, salt, media_type, bytes })
    }

    /// A payload as it appears in the store.
    pub(crate) fn stored(
        commitment: [u8; 32],
        salt: [u8; 32],
        media_type: String,
        bytes: Vec<u8>,
    ) -> StoredPayload {
        StoredPayload { commitment: Commitment::from_bytes(commitment), salt, media_type, bytes }
    }

    /// Whether salt, media type and bytes are what the commitment commits to.
    pub(crate) fn opens(&self) -> bool {
        payload_commitment(&self.salt, &self.media_type, &self.bytes).0 == *self.commitment.as_bytes()
    }

    /// What is in the event.
    pub fn commitment(&self) -> Commitment {
        self.commitment
    }

    /// The media type.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What becomes durable together: consecutive events of one segment, their payloads, the rows of the approvals they
/// speak of, and the summary of the run. An append that ends in `run-closed` ends the segment.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// The events, each chained to the one before. At least one, at most [`EVENTS_PER_APPEND_MAX`].
    pub events: Vec<ChainedLine>,
    /// Payloads that these events name.
    pub payloads: Vec<StoredPayload>,
    /// Rows of the approvals index, replaced as a whole.
    pub approvals: Vec<ApprovalRow>,
    /// Rows of the index of taints that these events add.
    pub taints: Vec<TaintRow>,
    /// What these events do to the index of facts.
    pub facts: Vec<FactChange>,
    /// How far the run has come after these events: its summary, replaced as a whole.
    pub progress: Progress,
}

impl Append {
    /// The heads before and after.
    pub(crate) fn span(&self) -> Option<(Head, Head)> {
        Some((self.events.first()?.before, self.events.last()?.head()))
    }

    /// The bytes that wait in the queue.
    pub(crate) fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.line.len()).sum::<usize>()
            + self.payloads.iter().map(|payload| payload.bytes.len()).sum::<usize>()
            + self.approvals.iter().map(|approval| approval.text_bytes()).sum::<usize>()
    }

    /// What can be refused without a look at the store. Runs on the caller's thread.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.events.is_empty() {
            return Err(Refusal::Event("an append without events".to_owned()));
        }
        if self.events.len() > EVENTS_PER_APPEND_MAX {
            let limit = EVENTS_PER_APPEND_MAX as u64;
            return Err(Refusal::OverLimit { what: "events in one append", limit });
        }
        for pair in self.events.windows(2) {
            let [before, event] = pair else { continue };
            if before.head() != event.before {
                return Err(Refusal::OutOfOrder {
                    run: event.before.run,
                    count: before.seq(),
                    after: event.before.count,
                });
            }
            if before.closes.is_some() {
                return Err(Refusal::Event("an event follows `run-closed`".to_owned()));
            }
        }
        for payload in &self.payloads {
            if !self.events.iter().any(|event| event.named.contains(&payload.commitment)) {
                return Err(Refusal::PayloadUnnamed(payload.commitment));
            }
        }
        for taint in &self.taints {
            let by = self.events.iter().find(|event| event.seq() == taint.seq);
            if !by.is_some_and(|event| event.named.contains(&taint.commitment)) {
                return Err(Refusal::PayloadUnnamed(taint.commitment));
            }
        }
        for fact in &self.facts {
            let FactChange::Written(new) = fact else { continue };
            let by = self.events.iter().find(|event| event.seq() == new.seq);
            if !by.is_some_and(|event| event.named.contains(&new.commitment)) {
                return Err(Refusal::PayloadUnnamed(new.commitment));
            }
        }
        Ok(())
    }
}
