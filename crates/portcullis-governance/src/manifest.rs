//! The evidence manifest: hashes of everything that the pack rests on and holds, and the note that signs it.
//!
//! The manifest is a file like the others. What is signed is a short note (C2SP `signed-note`) that names the store, the
//! run with its head, and the manifest by its hash:
//!
//! ```text
//! portcullis/evidence-manifest/v1
//! <origin>
//! <run> <count of events> <last link>
//! <SHA-256 of the manifest> <its bytes>
//!
//! — <origin> <signature>
//! ```
//!
//! So one signature ties every file to the hash chain of its run.

use portcullis_core::event::{Event, Mode};
use portcullis_core::id::{Commitment, Digest, RunId};
use portcullis_core::time::Timestamp;
use portcullis_proof::export::SegmentState;
use portcullis_proof::log::note::{SignError, sign_note};
use portcullis_proof::log::{NoteSigner, TlogProof};
use serde::{Deserialize, Serialize};

use crate::audit::AuditRow;
use crate::input::PackInput;
use crate::period::{Period, periods};
use crate::policy;
use crate::record::Record;
pub use crate::sha::{Sha, sha256};

/// The name and version of the format.
pub const MANIFEST_FORMAT: &str = "portcullis-evidence-manifest/v1";
/// The first line of the note.
pub const NOTE_LABEL: &str = "portcullis/evidence-manifest/v1";

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_FORMAT`].
    pub format: String,
    /// The run.
    pub run: RunId,
    /// The store that it was recorded in.
    pub origin: String,
    /// When the pack was made, by its creator's clock.
    pub generated_at: Timestamp,
    /// What made it.
    pub program: String,
    /// The key that signs, as a claim: what a reader believes is brought by the reader.
    pub key: String,
    /// The head of the run.
    pub head: ManifestHead,
    /// Bundles and policies in force.
    pub policies: Vec<PolicyHash>,
    /// What the agent received, and what it proposed.
    pub inputs: Vec<PayloadHash>,
    /// What tools returned, what the agent replied, and what was found of it.
    pub outputs: Vec<PayloadHash>,
    /// Documents of the bundle.
    pub knowledge: Vec<FileHash>,
    /// The plan of a simulated run.
    pub plan: Option<FileHash>,
    /// Every other file of the pack.
    pub artifacts: Vec<FileHash>,
    /// The lines of `audit_log.jsonl`.
    pub audit_log: Vec<LineHash>,
    /// The tree of the transparency log that has the run; null where the log does not have it.
    pub log: Option<LogHash>,
}

/// A tree of the log, by its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHash {
    /// Its leaves.
    pub size: u64,
    /// Its root.
    pub root: Sha,
    /// Leaves on the run that come along with proofs.
    pub leaves: usize,
    /// Signatures on the checkpoint besides that of the log.
    pub cosignatures: usize,
}

/// The head of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestHead {
    /// Its events.
    pub count: u64,
    /// The link of the last one.
    pub link: Sha,
    /// The state of its last segment.
    pub state: SegmentState,
}

/// A policy that governed the run from an event on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyHash {
    /// The event.
    pub from_event: u64,
    /// The bundle, by its digest.
    pub bundle: Digest,
    /// All that judges, by its digest; null where the run does not say.
    pub configuration: Option<Digest>,
    /// The name of the policy.
    pub name: String,
    /// Whether verdicts were enforced.
    pub mode: Mode,
    /// SHA-256 of the canonical JSON of the policy; null where the bundle was not at hand.
    pub sha256: Option<Sha>,
    /// The files of the bundle; empty where it was not at hand.
    pub files: Vec<FileHash>,
}

/// A file, a document or a plan by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Sha,
}

impl FileHash {
    /// Of bytes.
    #[must_use]
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        Self { name: name.to_owned(), bytes: bytes.len() as u64, sha256: sha256(bytes) }
    }
}

/// A payload of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadHash {
    /// The event.
    pub event: u64,
    /// Its name in the event.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub bytes: u64,
    /// The salted commitment in the event.
    pub commitment: Commitment,
    /// SHA-256 of the bytes; null where they are withheld or erased, so that their content cannot be guessed.
    pub sha256: Option<Sha>,
}

/// A line of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineHash {
    /// The event that it is about.
    pub event: u64,
    /// SHA-256 of the line without its newline.
    pub sha256: Sha,
}

/// What the evidence says of the tree that it is from: the largest that its proofs lead to.
pub(crate) fn logged(evidence: &[crate::zip::Named]) -> Option<LogHash> {
    let proofs = evidence.iter().filter(|(name, _)| name.ends_with(".tlog-proof"));
    let proofs: Vec<TlogProof<'_>> = proofs.filter_map(|(_, bytes)| TlogProof::parse(bytes).ok()).collect();
    let largest = proofs.iter().max_by_key(|proof| proof.checkpoint.head().size)?;
    let head = largest.checkpoint.head();
    let cosignatures = largest.note.signatures().len().saturating_sub(1);
    Some(LogHash { size: head.size, root: head.root, leaves: proofs.len(), cosignatures })
}

/// Makes the manifest of what was written so far.
pub(crate) fn manifest(
    input: &PackInput<'_>,
    key: String,
    artifacts: Vec<FileHash>,
    rows: &[(u64, AuditRow)],
    lines: &[Vec<u8>],
) -> Manifest {
    let record = input.record;
    let head = record.head();
    let (inputs, outputs) = payloads(record);
    let opened = record.opened().map(|opened| opened.bundle);
    let bundle = opened.and_then(|digest| input.bundle(digest));
    let knowledge = bundle.map(|bundle| {
        bundle.knowledge.iter().map(|(id, text)| FileHash::of(id, text.as_bytes())).collect::<Vec<_>>()
    });
    let audit_log = rows.iter().zip(lines);
    Manifest {
        format: MANIFEST_FORMAT.to_owned(),
        run: record.run(),
        origin: record.origin().to_owned(),
        generated_at: input.generated_at,
        program: format!("portcullis {}", env!("CARGO_PKG_VERSION")),
        key,
        head: ManifestHead { count: head.count, link: head.link, state: record.state() },
        policies: policies(input),
        inputs,
        outputs,
        knowledge: knowledge.unwrap_or_default(),
        plan: plan(input),
        artifacts,
        audit_log: audit_log
            .map(|((event, _), line)| LineHash { event: *event, sha256: sha256(line) })
            .collect(),
        log: logged(input.evidence),
    }
}

fn policies(input: &PackInput<'_>) -> Vec<PolicyHash> {
    let hash = |period: Period| {
        let source = input.source(period.bundle);
        let canonical = source.and_then(|source| policy::canonical(source.bundle, &period.policy));
        let files = source.map(|source| {
            source.files.iter().map(|(path, bytes)| FileHash::of(path, bytes)).collect::<Vec<_>>()
        });
        PolicyHash {
            from_event: period.from,
            bundle: period.bundle,
            configuration: period.configuration,
            name: period.policy,
            mode: period.mode,
            sha256: canonical.map(|text| sha256(text.as_bytes())),
            files: files.unwrap_or_default(),
        }
    };
    periods(input.record.events()).into_iter().map(hash).collect()
}

/// Kinds whose payloads the agent works from, or proposes.
const INPUT_KINDS: [&str; 2] = ["input", "proposed"];

fn payloads(record: &Record) -> (Vec<PayloadHash>, Vec<PayloadHash>) {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for event in record.events() {
        let to = if INPUT_KINDS.contains(&event.body.kind()) { &mut inputs } else { &mut outputs };
        to.extend(of_event(record, event));
    }
    (inputs, outputs)
}

fn of_event<'r>(record: &'r Record, event: &'r Event) -> impl Iterator<Item = PayloadHash> + 'r {
    event.payloads.iter().map(|(name, payload)| PayloadHash {
        event: event.seq,
        name: name.clone(),
        media_type: payload.media_type.clone(),
        bytes: payload.bytes,
        commitment: payload.commitment,
        sha256: record.payload(&payload.commitment).map(|found| sha256(&found.bytes)),
    })
}

/// The plan that a simulated run followed: the one of the bundle whose request is the run's first input.
fn plan(input: &PackInput<'_>) -> Option<FileHash> {
    let opened = input.record.opened().filter(|opened| opened.surface == crate::summary::SIMULATOR)?;
    let bundle = input.bundle(opened.bundle)?;
    let first = input.record.events().iter().find(|event| event.body.kind() == "input")?;
    let prompt = input.record.named(first, "text")?;
    let plan = bundle.plans.iter().find(|plan| plan.prompt.as_bytes() == prompt)?;
    let steps = plan
        .steps
        .iter()
        .map(|step| serde_json::json!({"action": step.action, "tool_name": step.tool, "args": step.args}));
    let steps: Vec<serde_json::Value> = steps.collect();
    let value = serde_json::json!({"name": plan.name, "prompt": plan.prompt, "steps": steps});
    Some(FileHash::of(&plan.name, portcullis_core::id::canonical_json(&value).as_bytes()))
}

/// What the note says of a manifest.
#[must_use]
pub fn note_text(manifest: &Manifest, bytes: &[u8]) -> String {
    let head = manifest.head;
    format!(
        "{NOTE_LABEL}\n{}\n{} {} {}\n{} {}\n",
        manifest.origin,
        manifest.run,
        head.count,
        head.link,
        sha256(bytes),
        bytes.len()
    )
}

/// The signed note of a manifest.
///
/// # Errors
/// When the origin cannot be in a note.
pub fn sign(manifest: &Manifest, bytes: &[u8], signer: &NoteSigner) -> Result<String, SignError> {
    sign_note(&note_text(manifest, bytes), &[signer])
}
