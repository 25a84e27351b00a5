//! A fork as one file that anyone with the log's key can check (`specs/transparency-log.md` §5).

use portcullis_proof::Digest;
use portcullis_proof::log::history::{NoFork, forked_beginnings};
use portcullis_proof::log::note::NOTE_BYTES_MAX;
use portcullis_proof::log::{Checkpoint, Fork, Note, Policy};
use serde::{Deserialize, Serialize};

/// The name of the format.
const FORMAT: &str = "portcullis-fork/v1";
/// The longest file: two notes, whose every byte may be escaped, and a proof.
pub const FORK_BYTES_MAX: usize = 2 * 6 * NOTE_BYTES_MAX + (16 << 10);

/// Two signed trees that contradict each other, with the proof that they do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkProof {
    format: String,
    smaller: String,
    larger: String,
    beginning: Digest,
    path: Vec<Digest>,
}

/// Why a file does not show a fork.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// It is not of the format.
    #[error("it is not a `{FORMAT}`: {0}")]
    Malformed(String),
    /// The policy does not name its log.
    #[error("the policy names no log `{0}`")]
    UnknownLog(String),
    /// It shows none.
    #[error("it shows no fork: {0}")]
    None(#[from] NoFork),
}

impl ForkProof {
    /// Puts a proof together. Nothing is checked.
    #[must_use]
    pub fn new(smaller: &str, larger: &str, beginning: Digest, path: Vec<Digest>) -> Self {
        let format = FORMAT.to_owned();
        Self { format, smaller: smaller.to_owned(), larger: larger.to_owned(), beginning, path }
    }

    /// A name for its file; the same contradiction has the same name.
    #[must_use]
    pub fn file_name(&self) -> String {
        let beginning = self.beginning.to_string();
        format!("fork-{}.json", beginning.get(..16).unwrap_or(&beginning))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ForkError::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ForkError> {
        if bytes.len() > FORK_BYTES_MAX {
            return Err(ForkError::Malformed(format!("more than {FORK_BYTES_MAX} bytes")));
        }
        let proof: Self =
            serde_json::from_slice(bytes).map_err(|error| ForkError::Malformed(error.to_string()))?;
        if proof.format != FORMAT {
            let found: String = proof.format.chars().take(80).collect();
            return Err(ForkError::Malformed(format!("its `format` is `{}`", found.escape_debug())));
        }
        Ok(proof)
    }

    /// The file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Texts and numbers have a JSON form.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Checks that a log of the policy forked, and how.
    ///
    /// # Errors
    /// Why it is not shown.
    pub fn check(&self, policy: &Policy) -> Result<Fork, ForkError> {
        let note = Note::parse(self.smaller.as_bytes()).map_err(NoFork::from)?;
        let checkpoint = Checkpoint::parse(note.text()).map_err(NoFork::from)?;
        let origin = checkpoint.origin();
        let mut answer = Err(ForkError::UnknownLog(origin.to_owned()));
        for log in policy.logs().iter().filter(|log| log.key.name() == origin) {
            let (smaller, larger) = (self.smaller.as_bytes(), self.larger.as_bytes());
            match forked_beginnings(smaller, larger, self.beginning, &self.path, &log.key) {
                Ok(fork) => return Ok(fork),
                Err(error) => answer = Err(error.into()),
            }
        }
        answer
    }
}
