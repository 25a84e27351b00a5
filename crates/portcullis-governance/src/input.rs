//! What a pack is made of.

use std::collections::BTreeMap;

use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::Digest;
use portcullis_core::time::Timestamp;

use crate::controls::Controls;
use crate::record::Record;
use crate::zip::Named;

/// A bundle with the files that it was loaded from.
#[derive(Debug, Clone, Copy)]
pub struct BundleSource<'a> {
    /// The bundle.
    pub bundle: &'a Bundle,
    /// Its files by path.
    pub files: &'a BTreeMap<String, Vec<u8>>,
    /// Digest of all that judges under it in this release.
    pub configuration: Digest,
}

/// Payloads of the run that were erased at once, as the store remembers it. The record itself says only which are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why, where a reason was given.
    pub reason: Option<String>,
    /// How many payloads.
    pub payloads: u64,
}

/// What a pack is made of.
#[derive(Debug, Clone, Copy)]
pub struct PackInput<'a> {
    /// The record of the run.
    pub record: &'a Record,
    /// Bundles that are at hand. The one that the run was opened under must be among them.
    pub bundles: &'a [BundleSource<'a>],
    /// The guards of this release, in their declared order.
    pub guards: &'a [&'static GuardMeta],
    /// What is evidence for which controls.
    pub controls: &'a Controls,
    /// Whether to create a pack of a run with unverified replies.
    pub allow_unverified: bool,
    /// What the transparency log says of the run: leaves with their proofs, as files of an export. Empty if the log
    /// does not have it.
    pub evidence: &'a [Named],
    /// What was erased of the run, in order.
    pub erasures: &'a [Erasure],
    /// Now.
    pub generated_at: Timestamp,
}

impl<'a> PackInput<'a> {
    /// The bundle of that digest, where it is at hand.
    pub(crate) fn source(&self, digest: Digest) -> Option<&BundleSource<'a>> {
        self.bundles.iter().find(|source| source.bundle.digest() == digest)
    }

    /// The same without its files.
    pub(crate) fn bundle(&self, digest: Digest) -> Option<&'a Bundle> {
        self.source(digest).map(|source| source.bundle)
    }
}
