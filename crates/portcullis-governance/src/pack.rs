//! Makes the files of a pack.

use portcullis_core::id::{Digest, RunId};
use portcullis_proof::log::NoteSigner;
use portcullis_proof::log::note::SignError;
use serde_json::{Value, json};

use crate::facts::Facts;
pub use crate::files::{AUDIT_LOG, EXPORT, FILES, LOG_FOLDER, MANIFEST, NOTE};
pub use crate::input::{BundleSource, Erasure, PackInput};
use crate::manifest::{self, FileHash};
use crate::markdown;
use crate::record::Record;
use crate::signals::Signals;
use crate::summary::Metric;
use crate::verification;
use crate::zip::{self, Named, ZipError};
use crate::{audit, failure, policy, risk, summary};

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
