//! What a monitor has read of the leaves, in a file beside its state, so that the next start reads only what is new.
//!
//! ```text
//! portcullis-monitor-leaves/v1 sum of what follows
//! {"origin", "admins", "size", "peaks": the tree of the leaves, "monitor": what they say}
//! ```
//!
//! It is derived: anyone who deletes it has all leaves read again. It is believed as if the leaves had been read, so
//! it is used only where its sum holds, it is of this log and of these keys, and its tree is the beginning of the
//! tree that the log shows.

use std::fs;
use std::io;
use std::path::Path;

use portcullis_core::id::DigestBuilder;
use portcullis_proof::Digest;
use portcullis_proof::log::{Checkpoint, CompactRange, Monitor, MonitorState, VerifierKey};
use serde::{Deserialize, Serialize};

/// The name of the format.
const FORMAT: &str = "portcullis-monitor-leaves/v1";
/// The longest file: a million runs or so. Of a longer log, the beginning is kept and the rest read again.
const LEAVES_BYTES_MAX: usize = 256 << 20;

/// The file, after its first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    origin: String,
    /// The keys that may enrol and revoke, since what a leaf says depends on them.
    admins: Vec<String>,
    size: u64,
    peaks: Vec<Digest>,
    monitor: MonitorState,
}

/// A reader of leaves: the tree of those that were read, and what they say.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) range: CompactRange,
    pub(super) monitor: Monitor,
}

impl Read {
    /// Nothing is read yet.
    pub(super) fn nothing(origin: &str, admins: &[VerifierKey]) -> Self {
        Self { range: CompactRange::new(), monitor: Monitor::new(origin, admins.to_vec()) }
    }

    /// What a file says, or `None` if there is no file, or where others may enrol writers now. `told` leaves of the
    /// tree of
    /// `newest` were reported on.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn from_file(
        path: &Path,
        origin: &str,
        admins: &[VerifierKey],
        told: u64,
        newest: Option<&Checkpoint>,
    ) -> Result<Option<Self>, String> {
        let bytes = match fs::metadata(path) {
            Ok(meta) if meta.len() > LEAVES_BYTES_MAX as u64 => {
                return Err(format!("it has more than {LEAVES_BYTES_MAX} bytes"));
            }
            Ok(_) => fs::read(path).map_err(|error| error.to_string())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let Saved { origin: of, admins: under, size, peaks, monitor } = parse(&bytes)?;
        if of != origin {
            return Err(format!("it belongs to the log `{}`, not to `{origin}`", of.escape_debug()));
        }
        if under != names(admins) {
            return Ok(None);
        }
        let range = CompactRange::from_peaks(size, peaks).ok_or("its `peaks` are not those of its `size`")?;
        if monitor.next_index() != size {
            return Err(format!("it has read {} leaves of {size}", monitor.next_index()));
        }
        if size > told {
            return Err(format!("it has read {size} leaves, and {told} were reported on"));
        }
        if newest.is_some_and(|newest| newest.size() == size && newest.root() != range.head().root) {
            return Err(format!("its tree of {size} leaves is not the tree that the log signed"));
        }
        let monitor = Monitor::resume(origin, admins.to_vec(), monitor).map_err(|error| error.to_string())?;
        Ok(Some(Self { range, monitor }))
    }

    /// The file, or `None` if it would be too long.
    pub(super) fn to_bytes(&self, origin: &str, admins: &[VerifierKey]) -> Option<Vec<u8>> {
        let saved = Saved {
            origin: origin.to_owned(),
            admins: names(admins),
            size: self.range.size(),
            peaks: self.range.peaks().to_vec(),
            monitor: self.monitor.state(),
        };
        let text = serde_json::to_vec(&saved).ok()?;
        let mut bytes = format!("{FORMAT} {}\n", sum(&text)).into_bytes();
        bytes.extend_from_slice(&text);
        (bytes.len() <= LEAVES_BYTES_MAX).then_some(bytes)
    }
}

fn names(admins: &[VerifierKey]) -> Vec<String> {
    let mut names: Vec<String> = admins.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

fn sum(text: &[u8]) -> String {
    DigestBuilder::new(FORMAT).part(text).finish().to_string()
}

fn parse(bytes: &[u8]) -> Result<Saved, String> {
    let damaged = || "its checksum does not match: it is damaged, or was changed by hand".to_owned();
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
    let (first, text) = bytes.split_at_checked(end + 1).ok_or_else(damaged)?;
    let first = String::from_utf8_lossy(first);
    let stated = first
        .strip_prefix(FORMAT)
        .ok_or_else(|| format!("it does not begin with `{FORMAT}`: it is damaged, or of another release"))?;
    if stated.trim() != sum(text) {
        return Err(damaged());
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}
