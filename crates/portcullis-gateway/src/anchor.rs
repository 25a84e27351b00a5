//! What the transparency log says of a run, once it says all that it will.

use std::thread;
use std::time::{Duration, Instant};

use portcullis_core::id::RunId;
use portcullis_ledger::log::{EvidenceFile, Log, LogError, LogPlaces, LogReader};
use portcullis_ledger::{Reader, SegmentState};

use crate::cosign;

/// How long to wait for the process that has the log to take the run up.
const WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The leaves on a run with their proofs, and proofs from the trees of these sizes. Brings the log up to date if no
/// other process has it. Blocks for up to 5 s.
///
/// # Errors
/// When the log cannot be read, or brought up to date.
pub fn evidence(
    reader: &dyn Reader,
    places: &LogPlaces,
    run: RunId,
    remembered: &[u64],
) -> Result<Vec<EvidenceFile>, LogError> {
    settle(reader, places, run)?;
    LogReader::open(places).and_then(|log| log.evidence(run, remembered))
}

fn settle(reader: &dyn Reader, places: &LogPlaces, run: RunId) -> Result<(), LogError> {
    match Log::open(places) {
        Ok(mut log) => {
            // Witnesses first: nothing is signed that one of them has seen otherwise.
            let mut ask_witnesses = cosign::after_round();
            ask_witnesses(&mut log)?;
            match log.round() {
                Ok(_) => ask_witnesses(&mut log),
                // What was logged before it was frozen, or began to wait, is still proved. What is not there is not in the
                // export, and the verdict over it says so; anyone who makes it can ask what the log waits for.
                Err(LogError::Frozen { .. } | LogError::Unconfirmed(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
        Err(LogError::Busy { .. }) => wait(reader, places, run),
        Err(error) => Err(error),
    }
}

/// Waits for the daemon. What is not there in time is not in the export, and the verdict over it says so.
fn wait(reader: &dyn Reader, places: &LogPlaces, run: RunId) -> Result<(), LogError> {
    let until = Instant::now() + WAIT_MAX;
    while Instant::now() < until {
        match is_settled(reader, places, run) {
            Ok(true) => break,
            // The daemon has only just started, and is about to begin the log.
            Ok(false) | Err(LogError::NoLog { .. }) => {}
            Err(error) => return Err(error),
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Whether the log has all that it will have of a run.
fn is_settled(reader: &dyn Reader, places: &LogPlaces, run: RunId) -> Result<bool, LogError> {
    let segments: Vec<_> = reader
        .segments(run)?
        .iter()
        .map(|segment| (segment.segment, segment.state != SegmentState::Open))
        .collect();
    LogReader::open(places)?.is_settled(run, &segments)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portcullis_core::event::ClosedState;
    use portcullis_core::principal::{CredentialKind, Principal};
    use portcullis_ledger::{OpenOptions, SqliteLedger, SqliteReader};
    use portcullis_session::bundles::Bundles;
    use portcullis_session::credentials::Identity;
    use portcullis_session::gate::{Gate, RunRequest};
    use portcullis_session::shipped;

    use super::*;
    use crate::home::Home;

    #[tokio::test]
    async fn a_log_that_is_about_to_begin_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        let ledger = Arc::new(SqliteLedger::open(&home.ledger(), OpenOptions::default()).unwrap());
        let bundles = Bundles::new(None, &shipped::default_bundle()).unwrap();
        let gate = Gate::new(ledger, Arc::new(portcullis_session::policy::pipeline()), bundles);
        let identity = Identity {
            kind: CredentialKind::Agent,
            principal: Principal::named("agent"),
            policy: None,
            of_this_machine: true,
        };
        let run = gate.open(RunRequest::new(identity, "test")).await.unwrap().run.id();
        gate.close(run, ClosedState::Closed).await.unwrap();
        let places = home.store().log();
        let reader = SqliteReader::open(&home.ledger()).unwrap();
        assert!(matches!(is_settled(&reader, &places, run), Err(LogError::NoLog { .. })));
        let begun = places.clone();
        let daemon = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            Log::open(&begun).unwrap().round().map(drop).unwrap();
        });
        wait(&reader, &places, run).unwrap();
        assert!(is_settled(&reader, &places, run).unwrap());
        daemon.join().unwrap();
    }
}
