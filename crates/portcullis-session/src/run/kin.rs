//! Runs of delegated agents: how a live run opens others, what it is asked about their calls, and how they end.
//!
//! A run is locked by one that it opened while a call of that one is judged, and never the other way round: so no two
//! runs wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portcullis_core::action::Subject;
use portcullis_core::delegation::ParentAnswer;
use portcullis_core::event::{Event, EventBody, Parent};
use portcullis_core::fact::FactRecord;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::label::Label;
use portcullis_core::limits::{CHILDREN_MAX, CHILDREN_OPEN_MAX, DEPTH_MAX};
use portcullis_core::state::{Phase, RunState};
use portcullis_core::taint::Tainted;
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use tokio::sync::OwnedMutexGuard;

use super::{Live, Run};
use crate::delegated;
use crate::engine::{Asking, ChildEnd, Proposal};
use crate::env::Env as _;
use crate::error::{NoChild, SessionError};
use crate::facts::Gathered;
use crate::principals::Wanted;

/// The live runs that have opened others.
#[derive(Debug, Default)]
pub(crate) struct Family(Mutex<HashMap<RunId, Weak<Run>>>);

impl Family {
    /// Adds a run that opens another one, or was taken up and had opened others before.
    pub(crate) fn add(&self, run: &Arc<Run>) {
        self.lock().insert(run.id, Arc::downgrade(run));
    }

    fn get(&self, run: RunId) -> Option<Arc<Run>> {
        self.lock().get(&run).and_then(Weak::upgrade)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Weak<Run>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut runs = self.family.lock();
        // It may have been taken up since.
        if runs.get(&self.id).is_some_and(|run| run.strong_count() == 0) {
            runs.remove(&self.id);
        }
    }
}

/// What the runs above need before they are asked about a call, as far as they are live.
#[derive(Debug, Default)]
pub(super) struct AskedAbove {
    /// The transparency log must have the run before the call has an effect.
    pub(super) log: bool,
    /// The usage of the principal must be known.
    pub(super) usage: Wanted,
    /// What sources say, for each run.
    facts: Vec<Vec<FactRecord>>,
}

/// A run above, locked.
#[derive(Debug)]
pub(crate) struct Above {
    live: OwnedMutexGuard<Live>,
    facts: Vec<FactRecord>,
}

impl Above {
    pub(super) fn counts_principal(&self) -> Wanted {
        self.live.engine.counts_principal()
    }

    /// Whether it may make a call of a run below. `given` is what is at hand there, with the runs above this one.
    pub(crate) fn may(&self, asking: &Asking<'_>, at: Timestamp, given: Gathered<'_>) -> ParentAnswer {
        let Live { engine, taints, below, .. } = &*self.live;
        let principal = engine.principal();
        let again = asking.again;
        engine.may(asking, at, &Gathered { facts: &self.facts, taints, principal, below, again, ..given })
    }

    /// Counts what events of a run below use up that stood as `state` before them.
    pub(super) fn charge(&self, state: &RunState, events: &[Event]) {
        let weigh = |tool: &str| self.live.engine.weigh(tool);
        self.live.below.charge(delegated::used_by(state, events, &weigh));
    }
}

impl Run {
    /// The runs above, the nearest first, as far as they are live.
    fn above(&self) -> impl Iterator<Item = Arc<Run>> {
        self.lineage.iter().map_while(|run| self.family.get(*run))
    }

    /// The runs above, the nearest first.
    pub(crate) fn lineage(&self) -> &[RunId] {
        &self.lineage
    }

    /// Asks what the runs above need to know of a call, one after the other.
    pub(super) async fn ask_above(&self, proposal: &Proposal) -> Result<AskedAbove, SessionError> {
        let mut asked = AskedAbove::default();
        for run in self.above() {
            let mut live = match run.lock_open().await {
                Ok(live) => live,
                Err(SessionError::Closed(_)) => break,
                Err(error) => return Err(error),
            };
            asked.log |= live.wants_log(proposal);
            asked.usage = asked.usage.and(live.engine.counts_principal());
            let at = live.env.now();
            let facts = live.engine.needs(at, proposal, &run.sources);
            drop(live);
            asked.facts.push(run.sources.gather(run.id, &run.principal.id, facts).await);
        }
        Ok(asked)
    }

    /// Locks the runs above, the nearest first, up to one that is not live or was closed meanwhile.
    pub(super) async fn lock_above(&self, asked: AskedAbove) -> Result<Vec<Above>, SessionError> {
        let mut above = Vec::new();
        for (run, facts) in self.above().zip(asked.facts) {
            let mut live = Arc::clone(&run.live).lock_owned().await;
            if live.check_open().is_err() {
                break;
            }
            if live.follow_freezes().await? {
                run.changed.notify_waiters();
            }
            above.push(Above { live, facts });
        }
        Ok(above)
    }

    /// Whose words an input is. In a run that another one opened, it is the agent of that one that speaks, unless it only
    /// repeats what user or operator said there. Either way it is that agent who chose to say it, so what it has seen by now
    /// is recorded here first.
    pub(super) async fn spoken_by(&self, text: &str, label: Label) -> Result<Label, SessionError> {
        let Some(parent) = self.lineage.first() else { return Ok(label) };
        let Some(above) = self.family.get(*parent) else { return Ok(Label::Run(*parent)) };
        let (repeated, seen) = {
            let live = above.live.lock().await;
            (live.engine.heard(text, &label), live.engine.state().labels().clone())
        };
        if !self.with_state(|state, _| seen.is_subset(state.labels())).await {
            self.write(|engine, env| Ok(engine.parent_saw(env, seen))).await?;
        }
        Ok(if repeated { label } else { Label::Run(*parent) })
    }

    /// Records that this run opens another one, and says what that one begins with.
    pub(crate) async fn open_child(self: &Arc<Self>, child: RunId) -> Result<Parent, SessionError> {
        let refuse = |why| Err(SessionError::NoChild { run: self.id, why });
        let depth = u32::try_from(self.lineage.len()).unwrap_or(DEPTH_MAX).saturating_add(1);
        if depth > DEPTH_MAX {
            return refuse(NoChild::TooDeep);
        }
        let mut live = self.lock_open().await?;
        let state = live.engine.state();
        if state.freeze().is_some() {
            return refuse(NoChild::Frozen);
        }
        if *state.phase() != Phase::Running {
            return refuse(NoChild::Stopped);
        }
        if state.children().open() >= CHILDREN_OPEN_MAX || state.children().len() >= CHILDREN_MAX {
            return refuse(NoChild::TooMany);
        }
        // Before the first call of the other one looks for it.
        self.family.add(self);
        let Live { engine, env, .. } = &mut *live;
        let batch = engine.open_child(env, child);
        let seq = live.commit(batch).await?;
        let (link, labels) = (digest_of(live.head.link), live.engine.state().labels().clone());
        Ok(Parent { run: self.id, seq, link, depth, labels })
    }

    /// Records the end of a run that this one opened, unless it is recorded already or this one has ended.
    pub(crate) async fn child_closed(&self, end: ChildEnd) -> Result<(), SessionError> {
        let known = self
            .with_state(|state, _| state.children().iter().find(|(run, _)| *run == end.run))
            .await
            .is_none_or(|(_, ended)| ended == Some(end.count));
        if known {
            return Ok(());
        }
        let text = end.reply.clone().unwrap_or_default();
        let (label, tainted) = (Label::Run(end.run), Tainted::default());
        let subject =
            Subject::Observation { action: None, text: &text, label: &label, tainted: Some(&tainted) };
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_text(at, subject, sources),
            |engine, env, sources| Ok(engine.child_closed(env, &end, sources)),
        );
        judged.await.map(drop)
    }

    /// How this run ended, for the run that opened it: `None` if it has not.
    pub(crate) async fn ended(&self) -> Option<ChildEnd> {
        let live = self.live.lock().await;
        let state = live.engine.state();
        let Phase::Closed(how) = state.phase() else { return None };
        Some(ChildEnd {
            run: self.id,
            state: *how,
            count: live.head.count,
            link: Some(digest_of(live.head.link)),
            labels: state.labels().clone(),
            reply: live.engine.latest_reply().map(str::to_owned),
        })
    }

    /// The runs that this one opened, each with the number of the last event that it is known to have ended with.
    pub(crate) async fn children(&self) -> Vec<(RunId, Option<u64>)> {
        self.with_state(|state, _| state.children().iter().collect()).await
    }

    /// Adds what is stored of the runs below to what they have used up.
    pub(crate) fn counted_below(&self, stored: Result<Used, String>) {
        self.below.complete(stored);
    }
}

impl Live {
    /// Counts for the runs above what the agent saw. What it does was counted when it was judged.
    pub(super) fn count_seen(&self, events: &[Event]) {
        if self.lineage.is_empty() {
            return;
        }
        let seen = events.iter().filter(|event| matches!(event.body, EventBody::Observation { .. }));
        let used = seen.fold(Used::default(), |used, event| {
            used.plus(delegated::used_by(self.engine.state(), std::slice::from_ref(event), &|_| (false, 0)))
        });
        if used == Used::default() {
            return;
        }
        for run in self.lineage.iter().filter_map(|run| self.family.get(*run)) {
            run.below.charge(used);
        }
    }
}

/// A link as the vocabulary of events has it.
pub(crate) fn digest_of(link: portcullis_proof::Digest) -> Digest {
    Digest::from_bytes(link.0)
}
