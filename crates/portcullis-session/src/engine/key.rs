//! The key of a run's digests.
//!
//! Digests of actions stay in the record forever, so that the same action is known again, in this segment and in
//! those after it. If they were digests of the arguments alone, anyone able to guess all arguments could test the
//! guess long after they were erased. So each run has a random key, a payload of its first event, that goes into all
//! of them, and that is erased with the first other payload of the run. A run that is taken up without one (it was
//! erased, or the run is older than keys) gets a new key: what was asked or denied before is then not known again.

use portcullis_core::aside::DIGEST_KEY;
use portcullis_core::event::{ConfigChange, Event, EventBody};
use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_core::memory::Texts;

use super::{Engine, TEXT};
use crate::batch::{BatchBuilder, note_secrets};

/// How an id begins that a surface made of the call itself, because its client has none. A digest follows that anyone
/// with the call can compute again.
pub const UNNAMED_CALL: &str = "unnamed:";

impl Engine {
    /// A new key, as the payload of the event that brings it.
    pub(super) fn new_key(batch: &mut BatchBuilder<'_>) -> (&'static str, &'static str, Vec<u8>) {
        let key = Digest::from_bytes(batch.random());
        (DIGEST_KEY, TEXT, key.to_string().into_bytes())
    }

    /// Takes the key from the event that brings it.
    pub(super) fn learn_key(&mut self, event: &Event, texts: &Texts) {
        let brings =
            matches!(&event.body, EventBody::RunOpened(_) | EventBody::Config(ConfigChange::Resumed { .. }));
        if brings && let Some(key) = texts.get(DIGEST_KEY).and_then(|key| key.parse().ok()) {
            self.key = Some(key);
        }
    }

    /// Replaces the key with the one that the record has at an event. Only for judging records: it is not secret.
    pub(crate) fn renew_key(&mut self, event: u64) {
        let key = DigestBuilder::new("portcullis/replayed-key/v1").part(&event.to_be_bytes());
        self.key = Some(key.finish());
    }

    /// A surface's id of a call as it appears in the record: without secrets, and keyed where it is a digest.
    pub fn call_name(&self, call: &str) -> String {
        let mut name = match (call.strip_prefix(UNNAMED_CALL), &self.key) {
            (Some(digest), Some(key)) => {
                let keyed = DigestBuilder::new("portcullis/call-in-run/v1")
                    .part(key.as_bytes())
                    .part(digest.as_bytes())
                    .finish();
                format!("{UNNAMED_CALL}{keyed}")
            }
            _ => call.to_owned(),
        };
        note_secrets(&mut name, &self.bundle);
        name
    }
}
