//! What a witness remembers: the newest checkpoint of every log that it cosigned, as signed, in one JSON file.
//!
//! The file is put whole and durable before a cosignature leaves. Logs that are not watched any more stay in it:
//! forgetting one would let it begin again.

use std::path::{Path, PathBuf};

use portcullis_ledger::log::LogError;
use portcullis_proof::log::{Checkpoint, TreeHead, VerifierKey};
use serde::{Deserialize, Serialize};

use super::LOGS_MAX;
use crate::kept::{Kept, KeptError, beside};

/// The name of the format.
const FORMAT: &str = "portcullis-witness/v1";
/// The longest state that is read: the longest checkpoints of the most logs.
const STATE_BYTES_MAX: u64 = 16 << 20;

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    format: String,
    /// The signed checkpoints, one of each log.
    checkpoints: Vec<String>,
}

/// The newest checkpoints, held by this process.
#[derive(Debug)]
pub(super) struct Remembered {
    kept: Kept,
    newest: Vec<(Checkpoint, String)>,
}

impl Remembered {
    /// Reads a state, or makes an empty one.
    pub(super) fn open(path: &Path, logs: &[VerifierKey]) -> Result<Self, KeptError> {
        let (kept, bytes) = Kept::open(path, STATE_BYTES_MAX)?;
        let newest = match bytes {
            Some(bytes) => read(&bytes, logs).map_err(|message| kept.malformed(message))?,
            None => Vec::new(),
        };
        let remembered = Self { kept, newest };
        remembered.write(&remembered.newest)?;
        Ok(remembered)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// The tree of a log that was cosigned last.
    pub(super) fn head(&self, origin: &str) -> Option<TreeHead> {
        self.newest.iter().find(|(known, _)| known.origin() == origin).map(|(known, _)| known.head())
    }

    /// The signed checkpoint of that tree, where it has this size.
    pub(super) fn note(&self, origin: &str, size: u64) -> Option<&str> {
        let mut newest = self.newest.iter();
        let found = newest.find(|(known, _)| known.origin() == origin && known.size() == size);
        found.map(|(_, note)| note.as_str())
    }

    /// Where the proof of a fork is kept.
    pub(super) fn fork_path(&self) -> PathBuf {
        beside(self.kept.path(), ".fork")
    }

    /// Remembers a checkpoint, durably.
    ///
    /// After an error it is not known which tree is on the disk. Both may be: the old one was cosigned, the new one
    /// continues it, and no signature of the new one has left.
    pub(super) fn put(&mut self, checkpoint: &Checkpoint, note: &str) -> Result<(), LogError> {
        let mut newest = self.newest.clone();
        newest.retain(|(known, _)| known.origin() != checkpoint.origin());
        newest.push((checkpoint.clone(), note.to_owned()));
        newest.sort_by(|one, other| one.0.origin().cmp(other.0.origin()));
        self.write(&newest)?;
        self.newest = newest;
        Ok(())
    }

    fn write(&self, newest: &[(Checkpoint, String)]) -> Result<(), LogError> {
        let checkpoints = newest.iter().map(|(_, note)| note.clone()).collect();
        let form = Form { format: FORMAT.to_owned(), checkpoints };
        // Texts have a JSON form.
        let mut bytes = serde_json::to_vec_pretty(&form).unwrap_or_default();
        bytes.push(b'\n');
        self.kept.put(&bytes)
    }
}

/// Reads a state strictly: every checkpoint is signed by its log, where the log is one of these.
fn read(bytes: &[u8], logs: &[VerifierKey]) -> Result<Vec<(Checkpoint, String)>, String> {
    let form: Form = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if form.format != FORMAT {
        return Err(format!("its `format` is not `{FORMAT}`"));
    }
    if form.checkpoints.len() > LOGS_MAX {
        return Err(format!("it has more than {LOGS_MAX} logs"));
    }
    let mut newest: Vec<(Checkpoint, String)> = Vec::new();
    for text in form.checkpoints {
        let (note, checkpoint) = Checkpoint::from_note(text.as_bytes()).map_err(|error| error.to_string())?;
        let origin = checkpoint.origin();
        if newest.iter().any(|(known, _)| known.origin() == origin) {
            return Err(format!("it has two checkpoints of `{origin}`"));
        }
        let keys: Vec<_> = logs.iter().filter(|key| key.name() == origin).collect();
        if !keys.is_empty() {
            note.verify(keys).map_err(|error| format!("the checkpoint of `{origin}`: {error}"))?;
        }
        newest.push((checkpoint, text));
    }
    Ok(newest)
}
