//! Events that belong together: written in one transaction or not at all.

use std::collections::BTreeMap;

use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody, PayloadRef};
use portcullis_core::memory::{Reading, Texts};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{Refusal, StoredPayload};

use crate::env::Env;

/// Events and payloads to be made durable together.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events, numbered.
    pub events: Vec<Event>,
    /// Their payloads.
    pub payloads: Vec<StoredPayload>,
    /// What the run's memory will be told, by the number of the event.
    pub said: BTreeMap<u64, Said>,
    /// Set when a payload cannot be stored; the batch must not be made durable then.
    pub refusal: Option<Refusal>,
}

/// The texts of one event, and what was read in them.
#[derive(Debug, Default)]
pub struct Said {
    /// The texts.
    pub texts: Texts,
    /// What was read when the text was judged.
    pub reading: Option<Reading>,
}

/// Builds a [`Batch`], numbering events from where the run stands.
pub(crate) struct BatchBuilder<'e> {
    env: &'e mut dyn Env,
    at: Timestamp,
    seq: u64,
    batch: Batch,
}

impl<'e> BatchBuilder<'e> {
    /// A batch for a run whose last event is number `seq`. All its events carry the same time.
    pub(crate) fn new(env: &'e mut dyn Env, seq: u64) -> Self {
        let at = env.now();
        Self { env, at, seq, batch: Batch::default() }
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    pub(crate) fn id(&mut self) -> [u8; 16] {
        self.env.id()
    }

    /// Number of the last event so far.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn push(&mut self, actor: Actor, cause: Option<u64>, body: EventBody) -> u64 {
        self.push_with(actor, cause, body, [])
    }

    /// Adds an event with payloads, given as (name, media type, bytes); returns its number.
    pub(crate) fn push_with<const N: usize>(
        &mut self,
        actor: Actor,
        cause: Option<u64>,
        body: EventBody,
        payloads: [Option<(&str, &'static str, Vec<u8>)>; N],
    ) -> u64 {
        self.seq += 1;
        let mut refs = BTreeMap::new();
        for (name, media_type, bytes) in payloads.into_iter().flatten() {
            let salt = self.env.salt();
            let length = bytes.len() as u64;
            if let Ok(text) = str::from_utf8(&bytes) {
                let said = self.batch.said.entry(self.seq).or_default();
                said.texts.insert(name.to_owned(), text.to_owned());
            }
            match StoredPayload::new(salt, media_type, bytes) {
                Ok(payload) => {
                    let commitment = payload.commitment();
                    let media_type = media_type.to_owned();
                    refs.insert(name.to_owned(), PayloadRef { commitment, media_type, bytes: length });
                    self.batch.payloads.push(payload);
                }
                Err(refusal) => self.batch.refusal = Some(refusal),
            }
        }
        self.batch.events.push(Event {
            v: EVENT_VERSION,
            seq: self.seq,
            t: self.at,
            actor,
            cause,
            payloads: refs,
            body,
        });
        self.seq
    }

    /// Keeps what was read in the texts of an event.
    pub(crate) fn keep_reading(&mut self, seq: u64, reading: Option<Reading>) {
        self.batch.said.entry(seq).or_default().reading = reading;
    }

    pub(crate) fn finish(self) -> Batch {
        self.batch
    }
}
