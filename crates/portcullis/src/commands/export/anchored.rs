//! What the log says of a run, once it says all that it will.

use std::io::Write as _;

use portcullis_core::id::RunId;
use portcullis_gateway::anchor;
use portcullis_ledger::log::{EvidenceFile, LogError, LogPlaces, LogReader};
use portcullis_ledger::{Location, Reader};
use portcullis_proof::log::{Checkpoint, TrustPolicy};

use crate::failure::Failure;
use crate::out::clean_line;

/// The leaves on a run with their proofs, and proofs from the trees that a policy remembers.
pub(super) fn evidence(
    reader: &dyn Reader,
    store: &Location,
    run: RunId,
    policy: Option<&TrustPolicy>,
) -> Result<Vec<EvidenceFile>, Failure> {
    let remembered: Vec<u64> =
        policy.iter().flat_map(|policy| &policy.remembered).map(Checkpoint::size).collect();
    let places = store.log();
    let evidence = anchor::evidence(reader, &places, run, &remembered).map_err(failed)?;
    note_waiting(&places);
    Ok(evidence)
}

/// Says on standard error that the log waits, where it does: what it has not logged is not in what is handed over.
pub(crate) fn note_waiting(places: &LogPlaces) {
    let Ok(status) = LogReader::open(places).and_then(|log| log.status()) else { return };
    if let (Some(wait), None) = (status.waits, status.frozen) {
        // Nobody reads it: what is handed over is the same.
        let _unread = writeln!(
            anstream::stderr(),
            "note: {}; unlogged events are missing from it, so its verdict is INCOMPLETE",
            clean_line(&wait.to_string())
        );
    }
}

pub(super) fn failed(error: LogError) -> Failure {
    Failure::unreadable(error).help("an export without evidence from the log needs no log: -o run.export")
}
