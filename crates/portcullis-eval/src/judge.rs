//! Judging one action by itself, and how much of that goes into reading effects and asking the access policies.
//!
//! The pipeline is the one that every surface runs, with two parts that look at the clock when they begin and when
//! they end. So it is the cost within whole decisions that is told, with whatever the rest of the step leaves in the
//! processor's caches. A reading of the clock at either end is part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use portcullis_access::AccessGuard;
use portcullis_core::action::{Action, Pending};
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{EffectReader, Effects};
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{Judgement, Proposal};
use portcullis_session::policy::{self, Pipeline};
use portcullis_trajectory::memory::{Context, RunMemory};
use serde_json::Value;

use crate::report::Timing;
use crate::suite::EvalError;

/// What single decisions took.
#[derive(Debug, Default)]
pub(crate) struct Times {
    whole: Vec<Duration>,
    access: Vec<Duration>,
}

impl Times {
    /// Of the whole steps.
    pub(crate) fn whole(&mut self) -> Timing {
        Timing::of(std::mem::take(&mut self.whole))
    }

    /// Of the effects and the access policies in each.
    pub(crate) fn access(&mut self) -> Timing {
        Timing::of(std::mem::take(&mut self.access))
    }
}

/// Judges actions, each in a run of its own.
#[derive(Debug)]
pub(crate) struct Judge {
    pipeline: Arc<Pipeline>,
    watch: Arc<Stopwatch>,
    bundle: Arc<Bundle>,
}

impl Judge {
    /// By the guards that every surface runs.
    pub(crate) fn new(bundle: &Arc<Bundle>) -> Self {
        let (pipeline, watch) = Stopwatch::pipeline();
        Self { pipeline, watch, bundle: Arc::clone(bundle) }
    }

    /// Judges a call and notes what it took: parse, effects, guards, digests, events and state.
    ///
    /// # Errors
    /// The bundle's default policy is not there.
    pub(crate) fn judge(
        &self,
        principal: Principal,
        tool: &str,
        arguments: Value,
        times: &mut Times,
    ) -> Result<Judgement, EvalError> {
        let (bundle, pipeline) = (Arc::clone(&self.bundle), Arc::clone(&self.pipeline));
        let run = DryRun::open_as(bundle, pipeline, self.bundle.default_policy(), principal, None);
        let mut run = run.map_err(|error| EvalError::Bundle(error.to_string()))?;
        let proposal = Proposal { tool: Some(tool.to_owned()), arguments, ..Proposal::default() };
        self.watch.take();
        let began = Instant::now();
        let judgement = run.propose(proposal);
        times.whole.push(began.elapsed());
        times.access.push(self.watch.take());
        Ok(judgement)
    }
}

/// Adds up what its parts take. For one decision at a time: the parts of two at once would be told together.
#[derive(Debug, Default)]
struct Stopwatch {
    /// How many parts are at work: the guard reads the effects itself where nobody did before, and that is told once.
    at_work: AtomicU32,
    nanoseconds: AtomicU64,
}

/// What the guard of access policies is called.
fn access_id() -> &'static str {
    Guard::<RunMemory>::meta(&AccessGuard).id
}

impl Stopwatch {
    /// The pipeline of all guards, and what tells the time of its two parts.
    fn pipeline() -> (Arc<Pipeline>, Arc<Self>) {
        let watch = Arc::new(Self::default());
        let mut guards = policy::guards();
        for guard in guards.iter_mut().filter(|guard| guard.meta().id == access_id()) {
            *guard = Box::new(Timed(AccessGuard, Arc::clone(&watch)));
        }
        let reader = Timed(portcullis_effects::Reader, Arc::clone(&watch));
        (Arc::new(policy::pipeline_of(guards).with_effects(Box::new(reader))), watch)
    }

    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let outermost = self.at_work.fetch_add(1, Relaxed) == 0;
        let began = Instant::now();
        let done = work();
        if outermost {
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.nanoseconds.fetch_add(took, Relaxed);
        }
        self.at_work.fetch_sub(1, Relaxed);
        done
    }

    /// What was added up since this was asked last.
    fn take(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.swap(0, Relaxed))
    }
}

#[derive(Debug)]
struct Timed<T>(T, Arc<Stopwatch>);

impl<R: EffectReader> EffectReader for Timed<R> {
    fn read(&self, bundle: &Bundle, run: &RunState, action: &Action) -> Effects {
        self.1.during(|| self.0.read(bundle, run, action))
    }
}

impl<G: Guard<RunMemory>> Guard<RunMemory> for Timed<G> {
    fn meta(&self) -> &'static GuardMeta {
        self.0.meta()
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        self.1.during(|| self.0.needs(context, pending))
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        self.1.during(|| self.0.decide(context, pending, facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_within_another_is_told_once_and_only_until_it_is_asked() {
        let watch = Stopwatch::default();
        let began = Instant::now();
        watch.during(|| watch.during(|| std::thread::sleep(Duration::from_millis(20))));
        let all = began.elapsed();
        let told = watch.take();
        assert!(told >= Duration::from_millis(20) && told <= all, "{told:?} of {all:?}");
        assert_eq!(watch.take(), Duration::ZERO);
    }

    #[test]
    fn it_is_the_pipeline_that_judges_everywhere() {
        let ids = |pipeline: &Pipeline| pipeline.guards().map(|guard| guard.meta().id).collect::<Vec<_>>();
        assert_eq!(ids(&Stopwatch::pipeline().0), ids(&policy::pipeline()));
        assert!(ids(&policy::pipeline()).contains(&access_id()));
    }
}
