//! Governance packs of runs in a store: what the pure half needs, gathered.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::time::Timestamp;
use portcullis_governance::record::EVENTS_MAX;
use portcullis_governance::zip::Named;
use portcullis_governance::{BundleSource, Pack, PackError, PackInput, Record, RecordError};
use portcullis_ledger::log::{EvidenceFile, LogError, LogPlaces, LogReader, WriterState, writer_notes};
use portcullis_ledger::{ExportOptions, LedgerError, Reader, Refusal};
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
    /// The log, or the key of its writer.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files have the right digest and no longer load.
    #[error("the bundle {digest} does not load in this release: {message}")]
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
    /// Trees of the log, by their sizes, from which proofs are added.
    pub remembered: &'a [u64],
}

/// The key that signs for a run: that of the writer of its heads, or, where the log has none of them or the key is
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
        message: "no writer is enrolled, so nobody can sign for the store".to_owned(),
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
    reader: &Reader,
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
    let input = PackInput {
        record: &record,
        bundles: &bundles,
        guards: &guards(),
        allow_unverified: options.allow_unverified,
        evidence: &evidence,
        generated_at: now(),
    };
    let signer = signer(places, record.origin(), &evidence)?;
    Ok(portcullis_governance::build(&input, &signer)?)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
