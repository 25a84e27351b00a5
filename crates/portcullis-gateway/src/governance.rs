//! Governance packs of runs in a store: what the pure half needs, gathered.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::time::Timestamp;
use portcullis_governance::record::EVENTS_MAX;
use portcullis_governance::{BundleSource, Pack, PackError, PackInput, Record, RecordError};
use portcullis_ledger::{ExportOptions, LedgerError, Reader, Refusal};
use portcullis_proof::log::{KeyError, KeyKind, NoteSigner};
use portcullis_session::credentials::{CredentialError, writer_seed};
use portcullis_session::policy;

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
    /// The key.
    #[error(transparent)]
    Key(#[from] CredentialError),
    /// The key's name.
    #[error("the store's name cannot be that of a key: {0}")]
    Name(#[from] KeyError),
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
pub struct PackOptions {
    /// A pack although no reply of the run was verified.
    pub allow_unverified: bool,
}

/// The key that signs for a store. It is made at its first use.
///
/// # Errors
/// When it cannot be read or made.
pub fn signer(credentials: &Path, origin: &str) -> Result<NoteSigner, GovernanceError> {
    let seed = writer_seed(credentials)?;
    Ok(NoteSigner::from_seed(origin, KeyKind::Ed25519, &seed)?)
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
    credentials: &Path,
    files_of: impl Fn(Digest) -> Option<Files>,
    options: PackOptions,
) -> Result<Pack, GovernanceError> {
    let summary = reader.run(run)?.ok_or_else(|| LedgerError::from(Refusal::RunUnknown(run.to_string())))?;
    if summary.events > EVENTS_MAX as u64 {
        return Err(RecordError::TooLarge { what: "events", limit: EVENTS_MAX }.into());
    }
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
    let bundles: Vec<BundleSource<'_>> =
        at_hand.iter().map(|(bundle, files)| BundleSource { bundle, files }).collect();
    let input = PackInput {
        record: &record,
        bundles: &bundles,
        guards: &guards(),
        allow_unverified: options.allow_unverified,
        checkpoint: None,
        generated_at: now(),
    };
    let signer = signer(credentials, record.origin())?;
    Ok(portcullis_governance::build(&input, &signer)?)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
