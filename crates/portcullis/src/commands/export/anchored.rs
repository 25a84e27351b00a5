//! What the log says of a run, once it says all that it will.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use portcullis_core::id::RunId;
use portcullis_ledger::log::{EvidenceFile, Log, LogError, LogPlaces, LogReader};
use portcullis_ledger::{Reader, SegmentState};
use portcullis_proof::log::{Checkpoint, TrustPolicy};

use crate::failure::Failure;

/// How long to wait for the process that has the log to take the run up.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The leaves on a run with their proofs. Brings the log up to date where nobody else has it.
pub(super) fn evidence(
    reader: &Reader,
    ledger: &Path,
    run: RunId,
    policy: Option<&TrustPolicy>,
) -> Result<Vec<EvidenceFile>, Failure> {
    let places = LogPlaces::beside(ledger);
    settle(reader, &places, run).map_err(failed)?;
    let remembered: Vec<u64> =
        policy.iter().flat_map(|policy| &policy.remembered).map(Checkpoint::size).collect();
    LogReader::open(&places).and_then(|log| log.evidence(run, &remembered)).map_err(failed)
}

pub(super) fn failed(error: LogError) -> Failure {
    Failure::unreadable(error).help("an export without the log's word needs no log: -o run.export")
}

fn settle(reader: &Reader, places: &LogPlaces, run: RunId) -> Result<(), LogError> {
    match Log::open(places) {
        Ok(mut log) => match log.round() {
            // What was logged before it was frozen is still proved.
            Ok(_) | Err(LogError::Frozen { .. }) => Ok(()),
            Err(error) => Err(error),
        },
        Err(LogError::Busy { .. }) => wait(reader, places, run),
        Err(error) => Err(error),
    }
}

/// Waits for the daemon. What is not there in time is not in the export, and the verdict over it says so.
fn wait(reader: &Reader, places: &LogPlaces, run: RunId) -> Result<(), LogError> {
    let until = Instant::now() + WAIT_MAX;
    while Instant::now() < until {
        let segments: Vec<_> = reader
            .segments(run)?
            .iter()
            .map(|segment| (segment.segment, segment.state != SegmentState::Open))
            .collect();
        if LogReader::open(places)?.is_settled(run, &segments)? {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
