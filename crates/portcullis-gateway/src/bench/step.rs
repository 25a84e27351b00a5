//! A whole step of a run in memory, early and late: law 7 says that the cost does not grow with the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::policy::Pipeline;
use portcullis_session::workload;
use serde::Serialize;

use super::distribution::{Distribution, Recorder};
use super::{BenchError, workload_bundle};

/// Bytes of the arguments of each call.
const ARGUMENT_BYTES: usize = 256;
/// The steps that are compared.
const EARLY: usize = 10;
const LATE: usize = 10_000;
/// Steps on either side of them that are timed.
const AROUND: usize = 5;
/// Runs whose windows are taken together in one comparison.
const RUNS_EARLY: usize = 200;
/// Steps after the late one that are timed, so that both sides count as many: a run takes long to get there.
const AFTER_LATE: usize = RUNS_EARLY * (2 * AROUND + 1);

/// What [`step`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Around step 10.
    pub early: StepWindow,
    /// Around step 10,000.
    pub late: StepWindow,
    /// Median of the late ones over median of the early ones.
    pub ratio: f64,
}

/// Steps at one age of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepWindow {
    /// The step.
    pub step: usize,
    /// Times of single steps: digest, decision, events with payload commitments, state; then outcome, its
    /// events, state.
    pub latency: Distribution,
}

/// Measures for about `time`, and at least once.
///
/// # Errors
/// [`BenchError`].
pub fn step(time: Duration) -> Result<StepReport, BenchError> {
    let bundle = workload_bundle()?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let (mut early, mut late) = (Recorder::new()?, Recorder::new()?);
    let begin = Instant::now();
    loop {
        // In turns, so that a change in the machine's speed meets both.
        for _ in 0..RUNS_EARLY {
            walk(&bundle, &pipeline, EARLY - AROUND, 2 * AROUND + 1, &mut early)?;
        }
        walk(&bundle, &pipeline, LATE - AROUND, AFTER_LATE, &mut late)?;
        if begin.elapsed() >= time {
            break;
        }
    }
    let (early, late) = (early.finish(), late.finish());
    let ratio = late.p50_ns as f64 / early.p50_ns.max(1) as f64;
    Ok(StepReport {
        argument_bytes: ARGUMENT_BYTES,
        early: StepWindow { step: EARLY, latency: early },
        late: StepWindow { step: LATE, latency: late },
        ratio,
    })
}

/// Opens a run, takes `skip` steps, then times `timed` more.
fn walk(
    bundle: &Arc<Bundle>,
    pipeline: &Arc<Pipeline>,
    skip: usize,
    timed: usize,
    into: &mut Recorder,
) -> Result<(), BenchError> {
    let run = DryRun::open(Arc::clone(bundle), Arc::clone(pipeline), workload::POLICY);
    let mut run = run.map_err(|error| BenchError::Bundle(error.to_string()))?;
    for number in 0..skip + timed {
        let proposal = Proposal {
            tool: Some(workload::tool(number)),
            arguments: workload::arguments(number, ARGUMENT_BYTES),
            ..Proposal::default()
        };
        let content = Some("the note was filed".to_owned());
        let begin = Instant::now();
        let judged = run.propose(proposal);
        run.outcome(judged.action.id, OutcomeStatus::Ok, content);
        let took = begin.elapsed();
        if judged.decision.verdict != Verdict::Allow {
            return Err(BenchError::NotAllowed(judged.decision.verdict.to_string()));
        }
        if number >= skip {
            into.add(took);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ages_are_measured_alike() {
        let report = step(Duration::ZERO).unwrap();
        assert_eq!(report.early.latency.count, report.late.latency.count);
        // Not the figure of the benchmark, which needs a quiet machine and an optimised build: only that the
        // cost does not grow in step with the run, which would make it a thousand times as high.
        assert!(report.ratio < 20.0, "{}", report.ratio);
    }
}
