//! What actions put into things that outlive the run, and what they find there.
//!
//! Words of others are noted with the permit: from then on the call may happen, whatever becomes known of it. That a
//! thing was written anew, so that what was known of it does not count any more, is noted with the outcome.

use std::collections::{BTreeMap, VecDeque};

use portcullis_core::action::Action;
use portcullis_core::aside::OBSERVED;
use portcullis_core::contrast::Prediction;
use portcullis_core::event::{Event, EventBody, OutcomeStatus};
use portcullis_core::id::ActionId;
use portcullis_core::limits::OPEN_ACTIONS_MAX;
use portcullis_core::memory::Texts;
use portcullis_core::state::RunState;
use portcullis_core::taint::{Taint, Tainted};
use portcullis_core::work::Written;
use portcullis_trajectory::carried::Foreign;
use portcullis_trajectory::flow::Flow;
use portcullis_trajectory::memory::RunReading;
use portcullis_trajectory::things::{Things, Touched};

use super::work::written;
use super::{Engine, Read};
use crate::facts::Sources;
use crate::taints::thing_name;

/// Results of which it is remembered what they were read from.
const READ_MAX: usize = 4_096;

/// What the actions touch whose outcome is awaited, and what the latest results were read from.
#[derive(Debug, Default)]
pub(super) struct Open {
    awaited: BTreeMap<ActionId, Touched>,
    /// By the number of the event, in order.
    read: VecDeque<(u64, Vec<String>, Option<Tainted>)>,
    /// Of the latest outcome.
    done: Option<(ActionId, Touched)>,
}

impl Open {
    /// Takes an event into account that is now part of the run.
    pub(super) fn learn(&mut self, event: &Event, touched: Option<Touched>, state: &RunState) {
        match (&event.body, event.body.action(), touched) {
            (EventBody::Outcome { .. }, Some(action), _) if state.awaits_outcome(action).is_none() => {
                self.done = self.awaited.remove(&action).map(|touched| (action, touched));
            }
            (EventBody::Observation { tainted, .. }, Some(action), _) => {
                let done = self.done.take().filter(|(done, _)| *done == action);
                if let Some((_, Touched { reads, .. })) =
                    done.filter(|(_, touched)| !touched.reads.is_empty())
                {
                    if self.read.len() >= READ_MAX {
                        self.read.pop_front();
                    }
                    self.read.push_back((event.seq, reads, tainted.clone()));
                }
            }
            (_, Some(action), Some(touched)) => {
                if self.awaited.len() >= OPEN_ACTIONS_MAX {
                    self.awaited.retain(|action, _| state.open_action(*action).is_some());
                }
                self.awaited.insert(action, touched);
            }
            _ => {}
        }
    }

    fn of(&self, action: ActionId) -> Option<&Touched> {
        self.awaited.get(&action)
    }

    /// Whether it was a thing itself that showed this, and not somebody who had written it there.
    fn is_shown_by(&self, thing: &str, foreign: &Foreign) -> bool {
        let Some(seq) = foreign.seq else { return false };
        let at = self.read.binary_search_by_key(&seq, |(read, ..)| *read).ok();
        let Some((_, reads, tainted)) = at.and_then(|at| self.read.get(at)) else { return false };
        let planted = match (tainted, &foreign.range) {
            (None, _) => false,
            (Some(tainted), Some(range)) => tainted.meets(range),
            (Some(_), None) => true,
        };
        !planted && reads.iter().any(|read| read == thing)
    }
}

/// What is read again of an action of a stored run.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// What it touches.
    pub(super) touched: Option<Touched>,
    /// What is predicted of it.
    pub(super) prediction: Option<Prediction>,
    /// What it writes.
    pub(super) written: Option<Written>,
}

impl Engine {
    fn flow(&self) -> Option<&Flow> {
        self.memory.as_ref().map(|memory| &memory.flow)
    }

    /// What an action that may happen touches, with what it copies from things that it reads.
    pub(super) fn touched(&self, action: &Action, read: &Read<'_>, sources: &dyn Sources) -> Touched {
        let Some(flow) = self.flow() else { return Touched::default() };
        let shown_by = |thing: &str, foreign: &Foreign| self.touches.is_shown_by(thing, foreign);
        let reading = read.reading.get().map(|RunReading { flow, .. }| flow);
        let mut touched = flow.touched(&self.bundle, action, reading, read.effects.get(), shown_by);
        if !touched.writes.is_empty()
            && let Some((labels, marks)) = sources.carried(&touched.reads)
        {
            for taint in &mut touched.writes {
                taint.marks = match (taint.is_clean(), taint.marks.take(), &marks) {
                    (true, _, copied) => copied.clone(),
                    (false, own, copied) => {
                        own.zip(copied.as_ref()).and_then(|(own, copied)| own.and(copied))
                    }
                };
                taint.labels.extend(labels.iter().cloned());
            }
        }
        touched
    }

    /// What others' words an action puts where, once it may happen.
    pub(super) fn written(touched: &Touched) -> Vec<Taint> {
        let others = touched.writes.iter().filter(|taint| !taint.is_clean());
        others.map(|taint| named(Taint { replaces: false, ..taint.clone() })).collect()
    }

    /// The things of which something is known that does not count any more, now that an action has written them anew.
    pub(super) fn written_anew(
        &self,
        action: ActionId,
        status: OutcomeStatus,
        sources: &dyn Sources,
    ) -> Vec<Taint> {
        let touched = self.touches.of(action).filter(|_| status == OutcomeStatus::Ok);
        let anew = touched.into_iter().flat_map(|touched| &touched.writes).filter(|taint| taint.replaces);
        anew.filter(|taint| sources.is_outdated(taint)).cloned().map(named).collect()
    }

    /// What of a result others had written into the things that the action read.
    pub(super) fn tainted(&self, action: ActionId, text: &str, sources: &dyn Sources) -> Option<Tainted> {
        let reads = self.touches.of(action).map_or(&[][..], |touched| &touched.reads);
        self.echoes.joined(sources.tainted(reads, text), text)
    }

    /// The same of what a server says by itself: it may be any of the things that it keeps.
    pub(super) fn tainted_of(&self, server: &str, text: &str, sources: &dyn Sources) -> Option<Tainted> {
        self.echoes.joined(sources.tainted(&Things::kept_by(Some(server)), text), text)
    }

    /// Takes an event into account that is now part of the run, with what was read of its action.
    pub(super) fn learn_read(&mut self, event: &Event, texts: &Texts, read: Recalled) {
        let Recalled { touched, prediction, written } = read;
        self.touches.learn(event, touched, &self.state);
        self.predictions.learn(event, prediction, &self.state);
        self.writes.learn(event, written, texts.get(OBSERVED).map(String::as_str), &self.state);
    }

    /// What is read again of a stored proposal, as far as its own text says.
    pub(super) fn recall_read(&self, event: &Event, texts: &Texts) -> Recalled {
        let EventBody::Proposed(proposed) = &event.body else { return Recalled::default() };
        let writes = proposed.side_effecting && proposed.tool.is_some();
        let json = |name: &str| texts.get(name).and_then(|text| serde_json::from_str(text).ok());
        let Some(arguments) = json("arguments") else {
            return Recalled { written: writes.then(Written::anything), ..Recalled::default() };
        };
        let action = Action::new(proposed.action, proposed.tool.clone(), arguments, None)
            .with_continuation(json("continuation"))
            .in_directory(proposed.directory.clone())
            .of_server(proposed.server.clone());
        let effects = self.pipeline.effects(&self.bundle, &self.state, &action);
        let shown_by = |thing: &str, foreign: &Foreign| self.touches.is_shown_by(thing, foreign);
        let touched =
            self.flow().map(|flow| flow.touched(&self.bundle, &action, None, effects.get(), shown_by));
        let written = action.is_call().then(|| written(effects.get(), writes));
        Recalled { touched, prediction: Some(Prediction::of(effects.get())), written }
    }
}

/// A taint whose thing is named as it may be recorded.
fn named(taint: Taint) -> Taint {
    Taint { thing: thing_name(&taint.thing), ..taint }
}
