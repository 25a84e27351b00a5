//! What a monitor remembers of a log between two looks, in one JSON file.
//!
//! It is little: the newest checkpoint, how many leaves were reported on, and when the log had how many. What the
//! leaves say is in a file of its own (`leaves`), which may be behind.

use std::path::Path;

use portcullis_ledger::log::LogError;
use portcullis_proof::log::{Checkpoint, TrustPolicy};
use serde::{Deserialize, Serialize};

use crate::kept::{Kept, KeptError};

/// The name of the format.
const FORMAT: &str = "portcullis-monitor/v1";
/// The longest state that is read.
const STATE_BYTES_MAX: u64 = 4 << 20;
/// The most sizes that are kept with their times.
const SIZES_MAX: usize = 4096;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    format: String,
    origin: String,
    /// The newest checkpoint, as it was signed.
    checkpoint: Option<String>,
    /// The leaves that were reported on.
    pub(super) told: u64,
    /// The newest time that a witness stated, on a checkpoint that the policy takes.
    pub(super) cosigned: Option<u64>,
    /// When the first look was, in seconds since 1970.
    began: Option<u64>,
    /// The sizes that the log had, each with the time when it was first seen.
    sizes: Vec<(u64, u64)>,
}

impl Memory {
    /// Nothing is remembered yet.
    pub(super) fn new(origin: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            origin: origin.to_owned(),
            checkpoint: None,
            told: 0,
            cosigned: None,
            began: None,
            sizes: Vec::new(),
        }
    }

    /// Takes hold of a state and reads it. An unusable state is treated as missing; the reason is returned last.
    pub(super) fn open(
        path: &Path,
        origin: &str,
        trust: &TrustPolicy,
    ) -> Result<(Kept, Self, Option<String>), KeptError> {
        let kept = Kept::hold(path)?;
        let memory = match kept.read(STATE_BYTES_MAX) {
            Ok(None) => Ok(Self::new(origin)),
            Ok(Some(bytes)) => read(&bytes, origin, trust),
            Err(KeptError::Malformed { message, .. }) => Err(message),
            Err(error) => return Err(error),
        };
        Ok(match memory {
            Ok(memory) => (kept, memory, None),
            Err(message) => (kept, Self::new(origin), Some(message)),
        })
    }

    pub(super) fn put(&self, kept: &Kept) -> Result<(), LogError> {
        // Texts and numbers have a JSON form.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        kept.put(&bytes)
    }

    /// The newest checkpoint with its note.
    pub(super) fn newest(&self) -> Option<(Checkpoint, &str)> {
        let note = self.checkpoint.as_deref()?;
        let (_, checkpoint) = Checkpoint::from_note(note.as_bytes()).ok()?;
        Some((checkpoint, note))
    }

    /// Remembers a checkpoint that continues the newest one.
    pub(super) fn advance(&mut self, checkpoint: &Checkpoint, note: String, now: u64) {
        self.checkpoint = Some(note);
        if self.sizes.last().is_none_or(|(size, _)| *size < checkpoint.size()) {
            self.sizes.push((checkpoint.size(), now));
        }
        if self.sizes.len() > SIZES_MAX {
            // Every other one goes, and never the newest: what is forgotten counts as seen a little later.
            let last = self.sizes.len() - 1;
            let mut place = 0;
            self.sizes.retain(|_| {
                place += 1;
                place % 2 == 0 || place > last
            });
        }
    }

    /// When leaf `index` was first seen, if known.
    pub(super) fn seen(&self, index: u64) -> Option<u64> {
        let place = self.sizes.partition_point(|(size, _)| *size <= index);
        self.sizes.get(place).map(|(_, time)| *time)
    }

    /// Since when there should have been a cosignature: the newest one, or the first look.
    pub(super) fn fresh_at(&mut self, now: u64) -> u64 {
        let began = *self.began.get_or_insert(now);
        self.cosigned.unwrap_or(began)
    }
}

fn read(bytes: &[u8], origin: &str, trust: &TrustPolicy) -> Result<Memory, String> {
    let memory: Memory = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if memory.format != FORMAT {
        return Err(format!("its `format` is not `{FORMAT}`"));
    }
    if memory.origin != origin {
        return Err(format!("it belongs to the log `{}`, not to `{origin}`", memory.origin.escape_debug()));
    }
    if memory.sizes.len() > SIZES_MAX || !memory.sizes.is_sorted_by(|one, other| one.0 < other.0) {
        return Err("its `sizes` do not grow".to_owned());
    }
    let mut known = 0;
    if let Some(note) = &memory.checkpoint {
        let (note, checkpoint) = Checkpoint::from_note(note.as_bytes()).map_err(|error| error.to_string())?;
        let logs = trust.policy.logs().iter().map(|log| &log.key).filter(|key| key.name() == origin);
        note.verify(logs.collect::<Vec<_>>()).map_err(|error| format!("its checkpoint: {error}"))?;
        known = checkpoint.size();
    }
    if memory.told > known {
        return Err(format!("it has reported on {} leaves of {known}", memory.told));
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use portcullis_proof::log::TreeHead;

    use super::*;

    #[test]
    fn sizes_are_thinned_and_times_are_never_too_early() {
        let mut memory = Memory::new("example.com/log");
        for size in 1..=20_000u64 {
            let head = TreeHead { size, root: portcullis_proof::Hex([7; 32]) };
            let checkpoint = Checkpoint::new("example.com/log", head).unwrap();
            // Leaf `index` is first seen at time `index + 1`.
            memory.advance(&checkpoint, String::new(), size);
            assert!(memory.sizes.len() <= SIZES_MAX);
            assert_eq!(memory.sizes.last(), Some(&(size, size)));
        }
        for index in 0..20_000 {
            assert!(memory.seen(index).unwrap() > index);
        }
        assert_eq!(memory.seen(20_000), None);
    }
}
