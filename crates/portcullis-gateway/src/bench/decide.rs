//! The pure decision: `Pipeline::decide` with all built-in guards, timed call by call.

use std::hint::black_box;
use std::time::{Duration, Instant};

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody, RunOpened};
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::id::ActionId;
use portcullis_core::memory::LazyReading;
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_session::workload;
use serde::Serialize;

use super::distribution::{Distribution, Recorder};
use super::{BenchError, workload_bundle};

/// Sizes of arguments that are measured, in bytes of JSON.
const SIZES: [usize; 2] = [256, 4_096];
/// Different calls that take turns, so that no single one is learnt by heart.
const CALLS: usize = 64;
/// Pairs of clock readings that are timed.
const CLOCK_READINGS: usize = 1_000_000;

/// What [`decide`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecideReport {
    /// What two readings of the clock cost by themselves; it is part of every time below.
    pub clock: Distribution,
    /// One for each size of arguments.
    pub sizes: Vec<DecideSize>,
}

/// Decisions on arguments of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecideSize {
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Decisions a second on one core, without reading the clock in between.
    pub per_second: f64,
    /// Times of single decisions, reading the clock included.
    pub latency: Distribution,
}

/// Measures the decision for about `time`, divided between the sizes.
///
/// Each call is allowed, so every guard looks at all of it; its arguments are held against a JSON Schema and
/// searched for 100 keywords. The action's digest and the events are not part of it: see [`super::step()`].
///
/// # Errors
/// [`BenchError`].
pub fn decide(time: Duration) -> Result<DecideReport, BenchError> {
    let clock = clock()?;
    let share = time / u32::try_from(SIZES.len()).unwrap_or(1);
    let sizes = SIZES.into_iter().map(|bytes| measure(bytes, share)).collect::<Result<_, _>>()?;
    Ok(DecideReport { clock, sizes })
}

fn clock() -> Result<Distribution, BenchError> {
    let mut recorder = Recorder::new()?;
    for _ in 0..CLOCK_READINGS {
        let begin = Instant::now();
        recorder.add(begin.elapsed());
    }
    Ok(recorder.finish())
}

fn measure(bytes: usize, time: Duration) -> Result<DecideSize, BenchError> {
    let bundle = workload_bundle()?;
    let policy = bundle
        .policy(workload::POLICY)
        .ok_or_else(|| BenchError::Bundle(format!("`{}` does not exist", workload::POLICY)))?;
    let pipeline = portcullis_session::policy::pipeline();
    let memory = pipeline.begin_memory();
    let state = RunState::fold(&[opened(&bundle)]);
    let context = Context::new(&bundle, policy, &state);
    let facts = Facts::none();
    let actions: Vec<Action> = (0..CALLS)
        .map(|number| {
            let id = ActionId::from_bytes([u8::try_from(number).unwrap_or(0); 16]);
            Action::new(id, Some(workload::tool(number)), workload::arguments(number, bytes), None)
        })
        .collect();
    let judge = |action| {
        let pending = Pending { at: Timestamp::default(), subject: Subject::Action(action), grant: None };
        match &memory {
            Some(memory) => {
                let reading = LazyReading::of(memory, &bundle, pending);
                black_box(pipeline.decide(&context.with_reading(&reading), black_box(&pending), &facts))
            }
            None => black_box(pipeline.decide(&context, black_box(&pending), &facts)),
        }
    };
    // A first round over all calls, to see that they are what they should be and to warm the caches.
    for action in &actions {
        let decision = judge(action);
        if decision.verdict != Verdict::Allow {
            return Err(BenchError::NotAllowed(decision.verdict.to_string()));
        }
    }

    let mut rounds = 0_u64;
    let begin = Instant::now();
    while begin.elapsed() < time / 2 {
        actions.iter().for_each(|action| drop(judge(action)));
        rounds += 1;
    }
    let per_second = (rounds * CALLS as u64) as f64 / begin.elapsed().as_secs_f64();

    let mut recorder = Recorder::new()?;
    let begin = Instant::now();
    while begin.elapsed() < time / 2 {
        for action in &actions {
            let asked = Instant::now();
            let decision = judge(action);
            recorder.add(asked.elapsed());
            drop(decision);
        }
    }
    Ok(DecideSize { argument_bytes: bytes, per_second, latency: recorder.finish() })
}

fn opened(bundle: &portcullis_core::bundle::Bundle) -> Event {
    let opened = RunOpened {
        principal: Principal::named("bench"),
        surface: "bench".into(),
        session: None,
        policy: workload::POLICY.into(),
        bundle: bundle.digest(),
        configuration: None,
        mode: bundle.mode,
        place: None,
        parent: None,
    };
    Event {
        v: EVENT_VERSION,
        seq: 1,
        t: Timestamp::default(),
        actor: Actor::gate(),
        cause: None,
        payloads: std::collections::BTreeMap::new(),
        body: EventBody::RunOpened(opened),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sizes_are_measured() {
        let report = decide(Duration::from_millis(200)).unwrap();
        assert_eq!(report.sizes.iter().map(|size| size.argument_bytes).collect::<Vec<_>>(), SIZES);
        assert!(report.sizes.iter().all(|size| size.latency.count > 0 && size.per_second > 0.0));
        assert_eq!(report.clock.count, CLOCK_READINGS as u64);
    }
}
