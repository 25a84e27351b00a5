//! Governance packs of runs in a store: what the pure half needs, gathered.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::{Digest, RunId};
use portcullis_governance::controls::{Controls, ControlsError, OWN_FILE_BYTES_MAX, OWN_FILES_MAX};
use portcullis_governance::record::EVENTS_MAX;
use portcullis_governance::zip::Named;
use portcullis_governance::{BundleSource, Erasure, Pack, PackError, PackInput, Record, RecordError};
use portcullis_ledger::clock::now;
use portcullis_ledger::log::{EvidenceFile, LogError, LogPlaces, LogReader, WriterState, writer_notes};
use portcullis_ledger::{ErasureRow, ExportOptions, LedgerError, Reader, Refusal};
use portcullis_proof::log::leaf::{Leaf, SignedLeaf};
use portcullis_proof::log::{KeyId, NoteSigner};
use portcullis_session::{configuration, policy};

use crate::anchor;

/// The files of a bundle by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Why there is no pack.
#[derive(Debug, thiserror::Error)]
pub enum GovernanceError {
    /// The store.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The pack.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A shipped mapping of controls does not fit this release.
    #[error(transparent)]
    Controls(#[from] ControlsError),
    /// The log, or the key of its writer.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files have the right digest and no longer load.
    #[error("this release cannot load the bundle {digest}: {message}")]
    Bundle {
        /// Its digest.
        digest: Digest,
        /// The first mistake.
        message: String,
    },
}

/// What is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct PackOptions<'a> {
    /// A pack although no reply of the run was verified.
    pub allow_unverified: bool,
    /// What is evidence for which controls, or `None` for the mappings that ship.
    pub controls: Option<&'a Controls>,
    /// Trees of the log, by their sizes, from which proofs are added.
    pub remembered: &'a [u64],
}

/// Why someone's own mappings of controls are not taken.
#[derive(Debug, thiserror::Error)]
pub enum OwnControlsError {
    /// A file or folder.
    #[error("cannot read controls from `{}`: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Mistakes in the files, with their places.
    #[error("{error}")]
    Mistakes {
        /// The mistakes. Files are named with their folders.
        error: ControlsError,
        /// The texts of the files.
        files: BTreeMap<String, String>,
    },
}

/// The mappings that ship and those in the `*.toml` files of folders.
///
/// # Errors
/// [`OwnControlsError`], for a folder without such a file too.
pub fn controls(folders: &[PathBuf]) -> Result<Controls, OwnControlsError> {
    let mut files = BTreeMap::new();
    for folder in folders {
        let read = read_controls(folder, &mut files)
            .map_err(|(path, source)| OwnControlsError::Io { path, source })?;
        if read == 0 {
            let source = io::Error::other("no file in it ends in `.toml`");
            return Err(OwnControlsError::Io { path: folder.clone(), source });
        }
    }
    Controls::with_own(&files, &guards()).map_err(|error| OwnControlsError::Mistakes { error, files })
}

/// Reads the mappings of a folder; how many there are, those that were read before too.
fn read_controls(folder: &Path, files: &mut BTreeMap<String, String>) -> Result<usize, (PathBuf, io::Error)> {
    let mut read = 0;
    let failed = |path: &Path, error| (path.to_owned(), error);
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let bytes = std::fs::metadata(&path).map_err(|error| failed(&path, error))?.len();
        if bytes > OWN_FILE_BYTES_MAX as u64 {
            let why = format!("the file has {bytes} bytes; the limit is {OWN_FILE_BYTES_MAX}");
            return Err(failed(&path, io::Error::other(why)));
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        files.insert(path.display().to_string(), text);
        read += 1;
        if files.len() > OWN_FILES_MAX {
            let why = format!("there are more than {OWN_FILES_MAX} files");
            return Err(failed(folder, io::Error::other(why)));
        }
    }
    Ok(read)
}

/// The key that signs for a run: that of the writer of its heads, or, if the log has none of them or the key is
/// gone, of the writer that signs now.
fn signer(places: &LogPlaces, origin: &str, evidence: &[Named]) -> Result<NoteSigner, LogError> {
    let leaves = evidence.iter().rev().filter_map(|(_, bytes)| SignedLeaf::parse(bytes).ok());
    let head = leaves.filter_map(|leaf| match leaf.leaf {
        Leaf::Head(head) => Some(head.writer),
        _ => None,
    });
    if let Some(signer) = head.into_iter().next().and_then(|key| writer_notes(places, key, origin).ok()) {
        return Ok(signer);
    }
    let writers = LogReader::open(places)?.status()?.writers;
    let current = writers.iter().find(|writer| writer.state == WriterState::Current);
    let key: KeyId = current.map(|writer| writer.key).ok_or_else(|| LogError::LeafRefused {
        message: "no writer is enrolled, so nothing can be signed for the store".to_owned(),
    })?;
    writer_notes(places, key, origin)
}

/// What is known of all guards of this release.
#[must_use]
pub fn guards() -> Vec<&'static GuardMeta> {
    policy::guards().iter().map(|guard| guard.meta()).collect()
}

/// Makes the pack of a run. `files_of` gives the files of a bundle by its digest, where they are at hand.
///
/// # Errors
/// [`GovernanceError`].
pub fn pack(
    reader: &dyn Reader,
    run: RunId,
    places: &LogPlaces,
    files_of: impl Fn(Digest) -> Option<Files>,
    options: PackOptions<'_>,
) -> Result<Pack, GovernanceError> {
    let summary = reader.run(run)?.ok_or_else(|| LedgerError::from(Refusal::RunUnknown(run.to_string())))?;
    if summary.events > EVENTS_MAX as u64 {
        return Err(RecordError::TooLarge { what: "events", limit: EVENTS_MAX }.into());
    }
    // First the log, then the run: a run that goes on meanwhile has more events than its heads say, not fewer.
    let evidence: Vec<Named> = anchor::evidence(reader, places, run, options.remembered)?
        .into_iter()
        .map(|EvidenceFile { name, bytes }| (name, bytes))
        .collect();
    let mut export = Vec::new();
    reader.export_run(run, &mut export, ExportOptions { payloads: true })?;
    let record = Record::read(export)?;
    let mut at_hand: Vec<(Bundle, Files)> = Vec::new();
    for digest in record.bundles() {
        let Some(files) = files_of(digest).filter(|files| Bundle::digest_of(files) == digest) else {
            continue;
        };
        let bundle = policy::load(&files).map_err(|mistakes| GovernanceError::Bundle {
            digest,
            message: mistakes.first().map(ToString::to_string).unwrap_or_default(),
        })?;
        at_hand.push((bundle, files));
    }
    let bundles: Vec<BundleSource<'_>> = at_hand
        .iter()
        .map(|(bundle, files)| {
            let configuration = configuration::digest(bundle.digest());
            BundleSource { bundle, files, configuration }
        })
        .collect();
    let guards = guards();
    let shipped;
    let controls = match options.controls {
        Some(controls) => controls,
        None => {
            shipped = Controls::embedded(&guards)?;
            &shipped
        }
    };
    let erasures: Vec<Erasure> = reader
        .erasures(run)?
        .into_iter()
        .map(|ErasureRow { at, by, reason, payloads }| Erasure { at, by, reason, payloads })
        .collect();
    let input = PackInput {
        record: &record,
        erasures: &erasures,
        bundles: &bundles,
        guards: &guards,
        controls,
        allow_unverified: options.allow_unverified,
        evidence: &evidence,
        generated_at: now(),
    };
    let signer = signer(places, record.origin(), &evidence)?;
    Ok(portcullis_governance::build(&input, &signer)?)
}
