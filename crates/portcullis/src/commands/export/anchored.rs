//! What the log says of a run, once it says all that it will.

use std::path::Path;

use portcullis_core::id::RunId;
use portcullis_gateway::anchor;
use portcullis_ledger::Reader;
use portcullis_ledger::log::{EvidenceFile, LogError, LogPlaces};
use portcullis_proof::log::{Checkpoint, TrustPolicy};

use crate::failure::Failure;

/// The leaves on a run with their proofs, and proofs from the trees that a policy remembers.
pub(super) fn evidence(
    reader: &Reader,
    ledger: &Path,
    run: RunId,
    policy: Option<&TrustPolicy>,
) -> Result<Vec<EvidenceFile>, Failure> {
    let remembered: Vec<u64> =
        policy.iter().flat_map(|policy| &policy.remembered).map(Checkpoint::size).collect();
    anchor::evidence(reader, &LogPlaces::beside(ledger), run, &remembered).map_err(failed)
}

pub(super) fn failed(error: LogError) -> Failure {
    Failure::unreadable(error).help("an export without the log's word needs no log: -o run.export")
}
