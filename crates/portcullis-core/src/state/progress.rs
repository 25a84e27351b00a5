//! How far a run has come: the part of its state that a list of runs shows.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{ClosedState, Event, Mode};
use crate::freeze::Frozen;
use crate::id::Digest;
use crate::limits::OPEN_ACTIONS_MAX;

pub use super::counts::VerdictCounts;
use super::{Phase, RunState};

/// Whether a run may go on, in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// It may.
    #[default]
    Running,
    /// The user was asked something.
    Clarifying,
    /// It waits for an input or a person's resume.
    Paused,
    /// It ended; only a person resumes it.
    Halted,
    /// Closed in good order.
    Closed,
    /// Its writer or its last client died.
    Abandoned,
}

impl RunPhase {
    /// All phases.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Clarifying, Self::Paused, Self::Halted, Self::Closed, Self::Abandoned];

    /// The word, as it stands in the API and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Clarifying => "clarifying",
            Self::Paused => "paused",
            Self::Halted => "halted",
            Self::Closed => "closed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl From<&Phase> for RunPhase {
    fn from(phase: &Phase) -> Self {
        match phase {
            Phase::Running => Self::Running,
            Phase::Clarifying { .. } => Self::Clarifying,
            Phase::Paused { .. } => Self::Paused,
            Phase::Halted => Self::Halted,
            Phase::Closed(ClosedState::Closed) => Self::Closed,
            Phase::Closed(ClosedState::Abandoned) => Self::Abandoned,
        }
    }
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The way the agent came in: `mcp`, `http`, ... Empty before `run-opened`.
    pub surface: String,
    /// Name of the runtime policy in force. Empty before `run-opened`.
    pub policy: String,
    /// Digest of the bundle in force; none before `run-opened`.
    pub bundle: Option<Digest>,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// Whether it may go on.
    pub phase: RunPhase,
    /// What a freeze stops, or `None` if it is not frozen.
    pub frozen: Option<Frozen>,
    /// Steps so far.
    pub steps: u32,
    /// Side effects that executed or are executing.
    pub side_effects: u32,
    /// How often each verdict was given.
    pub verdicts: VerdictCounts,
}

impl Progress {
    /// How far a run will have come once `events` are added to `state`, which stays as it is. Costs as much as the events,
    /// however long the run is.
    pub fn after(state: &RunState, events: &[Event]) -> Self {
        let mut part = state.part_for(events);
        events.iter().for_each(|event| part.apply(event));
        part.progress()
    }
}

impl RunState {
    /// What a list of runs shows of it.
    pub fn progress(&self) -> Progress {
        Progress {
            surface: self.surface.clone(),
            policy: self.policy.clone(),
            bundle: self.bundle,
            mode: self.mode,
            phase: self.phase().into(),
            frozen: self.freeze.as_ref().map(|freeze| freeze.stops),
            steps: self.steps,
            side_effects: self.side_effects,
            verdicts: self.verdicts,
        }
    }

    /// As much of the state as the [progress](Self::progress) after `events` depends on: the actions that they name, and
    /// everything that is one value.
    fn part_for(&self, events: &[Event]) -> Self {
        let mut part = Self {
            surface: self.surface.clone(),
            policy: self.policy.clone(),
            mode: self.mode,
            bundle: self.bundle,
            phase: self.phase.clone(),
            closed: self.closed.clone(),
            freeze: self.freeze.clone(),
            steps: self.steps,
            side_effects: self.side_effects,
            verdicts: self.verdicts,
            executing: self.executing,
            ..Self::default()
        };
        for id in events.iter().filter_map(|event| event.body.action()) {
            if let Some(action) = self.actions.get(&id) {
                part.actions.insert(id, action.clone(), OPEN_ACTIONS_MAX);
            }
            if let Some(action) = self.unresolved.get(&id) {
                part.unresolved.insert(id, action.clone(), OPEN_ACTIONS_MAX);
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        Actor, ApprovalDecision, ConfigChange, Control, EVENT_VERSION, Enforced, EventBody, Lasting,
        OutcomeStatus, Proposed, RunOpened, VerdictRecord,
    };
    use crate::id::{ActionId, ApprovalId};
    use crate::label::{Label, LabelSet};
    use crate::principal::Principal;
    use crate::time::Timestamp;
    use crate::verdict::Verdict;

    const DIGEST: Digest = Digest::from_bytes([7; 32]);
    const CONTROLS: [Control; 6] = [
        Control::Halt,
        Control::Pause,
        Control::Resume,
        Control::Freeze,
        Control::ReleaseReads,
        Control::Release,
    ];

    /// An event of any kind that bears on the progress, from a number.
    fn body(what: u8, which: u8) -> EventBody {
        let action = ActionId::from_bytes([which; 16]);
        let statuses = [OutcomeStatus::Ok, OutcomeStatus::NotExecuted, OutcomeStatus::Unknown];
        let enforcements = [Enforced::Executed, Enforced::Asked, Enforced::Withheld, Enforced::Held];
        match what {
            0 | 1 => EventBody::Proposed(Proposed {
                action,
                step: u32::from(which) + 1,
                tool: None,
                server: None,
                side_effecting: which.is_multiple_of(2),
                digest: DIGEST,
                directory: None,
                call: None,
                likeness: None,
                cost_micros: 0,
                confidence: None,
            }),
            2 => EventBody::Verdict(VerdictRecord {
                action: Some(action),
                verdict: Verdict::ALL[usize::from(which) % 8],
                policy_action: Verdict::Allow.policy_action(),
                escalation: Verdict::Allow.escalation(),
                rule: None,
                reason: None,
                findings: Vec::new(),
                bundle: DIGEST,
                policy: String::new(),
                facts: Vec::new(),
                grant: None,
                marks: Vec::new(),
            }),
            3 | 4 => EventBody::Enforcement {
                action: Some(action),
                enforced: enforcements[usize::from(which) % 4],
                call: None,
                contained: None,
            },
            5 | 6 => EventBody::Outcome { action, status: statuses[usize::from(which) % 3] },
            7 => EventBody::Control { control: CONTROLS[usize::from(which) % CONTROLS.len()], note: None },
            8 => EventBody::Input { label: Label::User },
            9 => EventBody::RunClosed { state: ClosedState::Closed, count: 0, successor: None },
            10 => EventBody::Config(ConfigChange::Resumed { parent: ClosedState::Closed }),
            11 => EventBody::Config(ConfigChange::BundleLoaded {
                bundle: Digest::from_bytes([which; 32]),
                configuration: None,
                policy: format!("policy-{which}"),
                mode: if which == 0 { Mode::Observe } else { Mode::Enforce },
            }),
            12 => EventBody::ApprovalDecided {
                approval: ApprovalId::from_bytes([which; 16]),
                decision: ApprovalDecision::Granted,
                scope: None,
                lasting: Lasting::default(),
                shown: None,
                labels: LabelSet::default(),
                note: None,
            },
            _ => EventBody::RunOpened(RunOpened {
                principal: Principal::named("ida"),
                surface: "test".to_owned(),
                session: None,
                policy: "standard".to_owned(),
                bundle: DIGEST,
                configuration: None,
                mode: Mode::Enforce,
                place: None,
                parent: None,
            }),
        }
    }

    proptest::proptest! {
        /// A batch that is only looked at comes to what it comes to when it is added.
        #[test]
        fn what_a_batch_comes_to_is_known_before_it_is_added(
            batches in proptest::collection::vec(
                proptest::collection::vec((0..14_u8, 0..9_u8), 1..6), 1..30)
        ) {
            let mut state = RunState::new();
            for batch in batches {
                let first = state.seq() + 1;
                let events: Vec<Event> = batch
                    .into_iter()
                    .zip(first..)
                    .map(|((what, which), seq)| Event {
                        v: EVENT_VERSION,
                        seq,
                        t: Timestamp::from_micros(0),
                        actor: if which == 1 { Actor::gate() } else { Actor::user() },
                        cause: None,
                        payloads: std::collections::BTreeMap::new(),
                        body: body(what, which),
                    })
                    .collect();
                let expected = Progress::after(&state, &events);
                events.iter().for_each(|event| state.apply(event));
                proptest::prop_assert_eq!(state.progress(), expected);
            }
        }
    }
}
