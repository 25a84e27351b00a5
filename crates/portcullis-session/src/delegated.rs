//! What the runs below a run have used up, as that run counts it.
//!
//! A call below is counted when it is judged, while the runs above are locked, so that two runs below cannot both take
//! what is left for one. What was permitted and did not happen is not given back, and a verdict that could not be stored
//! stays counted: where the count is wrong, it is too high.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::fact::FactAnswer;
use portcullis_core::guard::Context;
use portcullis_core::memory::NoMemory;
use portcullis_core::state::RunState;
use portcullis_core::usage::Used;

use crate::facts::usage;

/// The count of one run.
#[derive(Debug, Default)]
pub(crate) struct Delegated(Mutex<Count>);

#[derive(Debug, Default)]
struct Count {
    used: Used,
    /// Why it is not complete, if it is not.
    lacks: Option<String>,
}

/// How a run counts a call below: whether as a side effect, and at which cost.
pub(crate) type Weigh<'a> = &'a dyn Fn(&str) -> (bool, u64);

impl Delegated {
    /// A count that lacks what is stored of the runs below.
    pub(crate) fn incomplete() -> Self {
        let lacks = Some("what the runs below have used is not counted yet; try again".to_owned());
        Self(Mutex::new(Count { used: Used::default(), lacks }))
    }

    /// Adds what was stored. What became durable since then may count twice.
    pub(crate) fn complete(&self, stored: Result<Used, String>) {
        let mut count = self.lock();
        match stored {
            Ok(used) => *count = Count { used: count.used.plus(used), lacks: None },
            Err(why) => count.lacks = Some(why),
        }
    }

    pub(crate) fn charge(&self, used: Used) {
        let mut count = self.lock();
        count.used = count.used.plus(used);
    }

    /// The answer to the question what was used up; `again` leaves out the step of an action that was counted before.
    pub(crate) fn answer(&self, again: bool) -> FactAnswer {
        let count = self.lock();
        let step = Used { steps: u64::from(again), ..Used::default() };
        match &count.lacks {
            None => usage(count.used.minus(step)),
            Some(why) => FactAnswer::Failed(why.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a run counts calls below, kept for when the run itself is not at hand.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) bundle: Arc<Bundle>,
    pub(crate) state: RunState,
}

impl Weights {
    /// See [`Weigh`].
    pub(crate) fn of(&self, tool: &str) -> (bool, u64) {
        let cost = self.bundle.registry.get(tool).map_or(0, |tool| tool.cost_micros);
        let policy = self.bundle.policy(self.state.policy());
        let side_effecting = policy.is_none_or(|policy| {
            Context::<NoMemory>::new(&self.bundle, policy, &self.state).is_side_effecting(tool)
        });
        (side_effecting, cost)
    }
}

/// What events of a run below use up that stood as `state` before them.
pub(crate) fn used_by(state: &RunState, events: &[Event], weigh: Weigh<'_>) -> Used {
    let weight = |tool: Option<&str>, side_effecting: bool, cost_micros: u64| {
        let (side_effect, cost) = tool.map_or((false, 0), weigh);
        (side_effect || side_effecting, cost.max(cost_micros))
    };
    let mut proposed = None;
    let mut used = Used::default();
    for event in events {
        let bytes = |name: &str| event.payloads.get(name).map_or(0, |payload| payload.bytes);
        used = used.plus(match &event.body {
            EventBody::Proposed(new) => {
                let tool = new.tool.as_deref();
                proposed = Some((new.action, weight(tool, new.side_effecting, new.cost_micros)));
                Used { steps: 1, bytes: bytes("arguments"), ..Used::default() }
            }
            EventBody::Enforcement { action: Some(action), enforced, .. } if enforced.may_happen() => {
                let new = proposed.filter(|(id, _)| id == action).map(|(_, weight)| weight);
                let open = state.open_action(*action);
                let held =
                    open.map(|open| weight(open.tool.as_deref(), open.side_effecting, open.cost_micros));
                // One that is not remembered counts as a side effect.
                let (side_effect, cost_micros) = new.or(held).unwrap_or((true, 0));
                Used { side_effects: u64::from(side_effect), cost_micros, ..Used::default() }
            }
            EventBody::Observation { .. } => Used { bytes: bytes("content"), ..Used::default() },
            _ => Used::default(),
        });
    }
    used
}
