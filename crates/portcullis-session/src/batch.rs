//! Events that belong together: written in one transaction or not at all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::aside::TAINT;
use portcullis_core::bundle::Bundle;
use portcullis_core::contrast::Prediction;
use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody, PayloadRef};
use portcullis_core::memory::Texts;
use portcullis_core::taint::Taint;
use portcullis_core::time::Timestamp;
use portcullis_core::work::Written;
use portcullis_ledger::{Refusal, StoredPayload};
use portcullis_trajectory::memory::RunReading;
use portcullis_trajectory::redact::{Redacted, redact, redact_own};
use portcullis_trajectory::things::Touched;

use crate::env::Env;
use crate::mapped::without_mapped;

/// The parameter of a payload's media type that says how many secrets were replaced by notes before it was stored.
pub const REDACTED: &str = "redacted";

/// The media type of words that are set aside.
const ASIDE: &str = "application/json";

/// Events and payloads to be made durable together.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events, numbered.
    pub events: Vec<Event>,
    /// Their payloads.
    pub payloads: Vec<StoredPayload>,
    /// What the run's memory will be given, by the number of the event.
    pub said: BTreeMap<u64, Said>,
    /// What its events say was written into things, by the number of the event.
    pub taints: Vec<(u64, Taint)>,
    /// Set when a payload cannot be stored; the batch must not be made durable then.
    pub refusal: Option<Refusal>,
}

/// The texts of one event, and what was read in them.
#[derive(Debug, Default)]
pub struct Said {
    /// The texts.
    pub texts: Texts,
    /// What was read when the text was judged.
    pub reading: Option<RunReading>,
    /// What an action touches that may happen.
    pub touched: Option<Touched>,
    /// What was read of an action that goes ahead contained.
    pub prediction: Option<Prediction>,
    /// What an action writes that may happen.
    pub written: Option<Written>,
}

/// Builds a [`Batch`], numbering events from where the run stands.
pub(crate) struct BatchBuilder<'e> {
    env: &'e mut dyn Env,
    at: Timestamp,
    seq: u64,
    /// Says whether secrets are kept from the store; the gate's own, and those that it maps, always are.
    bundle: Arc<Bundle>,
    batch: Batch,
}

impl<'e> BatchBuilder<'e> {
    /// A batch for a run whose last event is number `seq`. All its events carry the same time.
    pub(crate) fn new(env: &'e mut dyn Env, seq: u64, bundle: Arc<Bundle>) -> Self {
        let at = env.now();
        Self { env, at, seq, bundle, batch: Batch::default() }
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// Random bytes that are used for nothing else.
    pub(crate) fn random(&mut self) -> [u8; 32] {
        self.env.salt()
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

    /// Adds an event with payloads, given as (name, media type, bytes), and one for the words that are not in its
    /// line; returns its number.
    pub(crate) fn push_with<const N: usize>(
        &mut self,
        actor: Actor,
        cause: Option<u64>,
        body: EventBody,
        payloads: [Option<(&str, &'static str, Vec<u8>)>; N],
    ) -> u64 {
        self.seq += 1;
        let mut event = Event {
            v: EVENT_VERSION,
            seq: self.seq,
            t: self.at,
            actor,
            cause,
            payloads: BTreeMap::new(),
            body,
        };
        let bundle = &self.bundle;
        event.each_text(&mut |text| note_secrets(text, bundle));
        for (name, media_type, bytes) in payloads.into_iter().flatten() {
            // The memory of the run sees what was there, the store what may be kept.
            let (stored, media_type) = match String::from_utf8(bytes) {
                Ok(text) => {
                    let (stored, media_type) = self.stored(&text, media_type);
                    let said = self.batch.said.entry(self.seq).or_default();
                    said.texts.insert(name.to_owned(), text);
                    (stored, media_type)
                }
                Err(other) => (other.into_bytes(), media_type.to_owned()),
            };
            self.keep(&mut event, name, media_type, stored);
        }
        if let Some((name, words)) = event.body.aside() {
            self.keep(&mut event, name, ASIDE.to_owned(), words.into_bytes());
        }
        self.batch.events.push(event);
        self.seq
    }

    /// Keeps a payload of an event.
    fn keep(&mut self, event: &mut Event, name: &str, media_type: String, stored: Vec<u8>) {
        let length = stored.len() as u64;
        match StoredPayload::new(self.env.salt(), media_type.as_str(), stored) {
            Ok(payload) => {
                let commitment = payload.commitment();
                event.payloads.insert(name.to_owned(), PayloadRef { commitment, media_type, bytes: length });
                self.batch.payloads.push(payload);
            }
            Err(refusal) => self.batch.refusal = Some(refusal),
        }
    }

    /// A text as it is stored, with its media type, which says how many secrets it has lost.
    fn stored(&self, text: &str, media_type: &str) -> (Vec<u8>, String) {
        let redacted = redacted(text, &self.bundle);
        let media_type = match redacted.secrets {
            0 => media_type.to_owned(),
            secrets => format!("{media_type}; {REDACTED}={secrets}"),
        };
        (redacted.text.into_owned().into_bytes(), media_type)
    }

    /// Keeps what was read in the texts of an event.
    pub(crate) fn keep_reading(&mut self, seq: u64, reading: Option<RunReading>) {
        self.batch.said.entry(seq).or_default().reading = reading;
    }

    /// Adds an event with what it says was written into things, as a payload of it.
    pub(crate) fn push_tainted(
        &mut self,
        actor: Actor,
        cause: Option<u64>,
        body: EventBody,
        taints: Vec<Taint>,
    ) -> u64 {
        // Texts, numbers and lists of them always have a JSON text.
        let text = (!taints.is_empty()).then(|| serde_json::to_vec(&taints).unwrap_or_default());
        let seq = self.push_with(actor, cause, body, [text.map(|text| (TAINT, ASIDE, text))]);
        self.batch.taints.extend(taints.into_iter().map(|taint| (seq, taint)));
        seq
    }

    /// Keeps what an action touches that may happen.
    pub(crate) fn keep_touched(&mut self, seq: u64, touched: Touched) {
        if touched == Touched::default() {
            return;
        }
        self.batch.said.entry(seq).or_default().touched = Some(touched);
    }

    /// Keeps what was read of an action that goes ahead contained.
    pub(crate) fn keep_prediction(&mut self, seq: u64, prediction: Option<Prediction>) {
        if prediction.is_some() {
            self.batch.said.entry(seq).or_default().prediction = prediction;
        }
    }

    /// Keeps what an action writes that may happen.
    pub(crate) fn keep_written(&mut self, seq: u64, written: Option<Written>) {
        if written.is_some() {
            self.batch.said.entry(seq).or_default().written = written;
        }
    }

    pub(crate) fn finish(self) -> Batch {
        self.batch
    }
}

/// A text as it may be stored by a bundle.
fn redacted<'t>(text: &'t str, bundle: &Bundle) -> Redacted<'t> {
    let redacted = if bundle.ledger.redact { redact(text) } else { redact_own(text) };
    without_mapped(redacted, &bundle.credentials)
}

/// Puts a note in place of each secret in a text of an event.
pub(crate) fn note_secrets(text: &mut String, bundle: &Bundle) {
    if let Cow::Owned(noted) = redacted(text, bundle).text {
        *text = noted;
    }
}

/// The same by form alone, whatever the bundle says.
pub(crate) fn note_known_secrets(text: &mut String) {
    if let Cow::Owned(noted) = redact(text).text {
        *text = noted;
    }
}
