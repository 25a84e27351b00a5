//! Makes the files of a pack.

use std::collections::BTreeMap;

use portcullis_core::bundle::Bundle;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::time::Timestamp;
use portcullis_proof::log::NoteSigner;
use portcullis_proof::log::note::SignError;
use serde_json::{Value, json};

use crate::controls::Controls;
use crate::facts::Facts;
use crate::manifest::{self, FileHash};
use crate::markdown;
use crate::record::Record;
use crate::signals::Signals;
use crate::summary::Metric;
use crate::verification;
use crate::zip::{self, Named, ZipError};
use crate::{audit, failure, policy, risk, summary};

/// The manifest's file.
pub const MANIFEST: &str = "evidence_manifest.json";
/// The file of its signature.
pub const NOTE: &str = "evidence_manifest.note";
/// The audit log's file.
pub const AUDIT_LOG: &str = "audit_log.jsonl";
/// The record's file.
pub const EXPORT: &str = "run.export";
/// What the log says of the run is in files whose names begin so.
pub const LOG_FOLDER: &str = "log/";

/// The files of a pack in their order. Before the manifest stands what the log says of the run, below `log/`.
pub const FILES: [&str; 12] = [
    "summary_report.json",
    "summary_report.md",
    "runtime_policy.json",
    "verification_results.json",
    AUDIT_LOG,
    "failure_mode_analysis.md",
    "residual_risk_summary.md",
    "controls.json",
    "controls.md",
    EXPORT,
    MANIFEST,
    NOTE,
];

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

/// Why there is no pack.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The bundle that judged the run is not at hand.
    #[error("the run was judged by the bundle {0}, which is not available")]
    BundleMissing(Digest),
    /// Replies were given and none was verified.
    #[error("this run has no verification of outputs: none of its {replies} ({events}) was verified")]
    NotVerified {
        /// How many.
        replies: String,
        /// Which events.
        events: String,
    },
    /// The manifest could not be signed.
    #[error("cannot sign the manifest: {0}")]
    Sign(#[from] SignError),
    /// The archive.
    #[error(transparent)]
    Zip(#[from] ZipError),
    /// A file could not be written as JSON.
    #[error("cannot write `{file}`: {message}")]
    Json {
        /// The file.
        file: &'static str,
        /// Why.
        message: String,
    },
}

/// The files of one run.
#[derive(Debug, Clone)]
pub struct Pack {
    /// The run.
    pub run: RunId,
    /// The metrics of the summary.
    pub metrics: Vec<Metric>,
    /// The files in the order of [`FILES`], and those of the log.
    pub files: Vec<Named>,
}

impl Pack {
    /// The file of that name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, bytes)| bytes.as_slice())
    }

    /// All of them as one archive.
    ///
    /// # Errors
    /// When they are over a limit.
    pub fn zip(&self) -> Result<Vec<u8>, ZipError> {
        zip::write(&self.files)
    }
}

/// Makes the pack of a run.
///
/// # Errors
/// [`PackError`].
pub fn build(input: &PackInput<'_>, signer: &NoteSigner) -> Result<Pack, PackError> {
    let record = input.record;
    if let Some(opened) = record.opened()
        && input.bundle(opened.bundle).is_none()
    {
        return Err(PackError::BundleMissing(opened.bundle));
    }
    let facts = Facts::of(record);
    let unverified = facts.unverified_replies();
    if facts.replies.is_empty() && !unverified.is_empty() && !input.allow_unverified {
        let replies = markdown::count(unverified.len(), "reply", "replies");
        return Err(PackError::NotVerified { replies, events: markdown::events(&unverified) });
    }
    let signals = Signals::of(input);
    let evidence = input.controls.evidence(record, &facts, input.guards);
    let rows = audit::rows(record);
    let mut lines = Vec::with_capacity(rows.len());
    for (_, row) in &rows {
        lines.push(serde_json::to_vec(row).map_err(|error| unwritten(AUDIT_LOG, &error))?);
    }
    let mut audit_log = Vec::new();
    for line in &lines {
        audit_log.extend_from_slice(line);
        audit_log.push(b'\n');
    }
    let named = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    let mut files = vec![
        named("summary_report.json", pretty("summary_report.json", &summary::json(record, &facts))?),
        named("summary_report.md", summary::markdown(record, &facts)),
        named("runtime_policy.json", pretty("runtime_policy.json", &policy::json(input))?),
        named(
            "verification_results.json",
            pretty("verification_results.json", &verification_results(record, &facts, &rows))?,
        ),
        named(AUDIT_LOG, audit_log),
        named("failure_mode_analysis.md", failure::markdown(input, &facts, &signals)),
        named("residual_risk_summary.md", risk::markdown(input, &facts, &signals)),
        named("controls.json", pretty("controls.json", &json!(evidence))?),
        named("controls.md", evidence.markdown()),
        named(EXPORT, record.export().to_vec()),
    ];
    let evidence = input.evidence.iter();
    let hashes = files.iter().chain(evidence).map(|(name, bytes)| FileHash::of(name, bytes)).collect();
    let manifest = manifest::manifest(input, signer.verifier().to_string(), hashes, &rows, &lines);
    let bytes = pretty(MANIFEST, &json!(manifest))?;
    let note = manifest::sign(&manifest, &bytes, signer)?;
    files.extend(input.evidence.iter().cloned());
    files.push(named(MANIFEST, bytes));
    files.push(named(NOTE, note.into_bytes()));
    Ok(Pack { run: record.run(), metrics: summary::metrics(record, &facts), files })
}

fn unwritten(file: &'static str, error: &serde_json::Error) -> PackError {
    PackError::Json { file, message: error.to_string() }
}

fn pretty(file: &'static str, value: &Value) -> Result<Vec<u8>, PackError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| unwritten(file, &error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// `verification_results.json`: the answers of all checks in their seven columns.
fn verification_results(record: &Record, facts: &Facts, rows: &[(u64, audit::AuditRow)]) -> Value {
    let step =
        |reply: u64| rows.iter().find(|(event, _)| *event == reply).map_or(0, |(_, row)| row.step_number);
    let results = facts.replies.iter().filter_map(|reply| {
        reply.checks.as_ref().map(|checks| verification::rows(checks, step(reply.reply)))
    });
    let results: Vec<_> = results.flatten().collect();
    let withheld = facts.replies.iter().filter(|reply| reply.checks.is_none()).map(|reply| reply.reply);
    json!({
        "format": "portcullis-verification-results/v1",
        "run": record.run(),
        "replies": facts.of_kind("output"),
        "replies_not_verified": facts.unverified_replies(),
        "replies_whose_results_are_withheld": withheld.collect::<Vec<u64>>(),
        "results": results,
    })
}
