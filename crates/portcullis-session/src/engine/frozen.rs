//! What a freeze of the run stops, before any guard is asked and whatever the mode.

use portcullis_core::action::{Action, Subject};

use portcullis_core::event::{About, Enforced};
use portcullis_core::finding::Finding;
use portcullis_core::freeze::Frozen;
use portcullis_core::id::ApprovalId;
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::{ApprovalState, RunFreeze};
use portcullis_core::verdict::Verdict;

use super::{Engine, Judgement};
use crate::denial::explain;

impl Engine {
    /// Whether a freeze stops an action with this tool, or thinking where there is none.
    pub(crate) fn is_stopped(&self, tool: Option<&str>) -> bool {
        self.state.freeze().is_some_and(|freeze| match freeze.stops {
            Frozen::Everything => true,
            Frozen::SideEffects => self.is_side_effecting(tool),
        })
    }

    /// The denial of what a freeze stops, or `None` if the guards decide. What is said to the agent, and what it sees of
    /// calls that were made before, is judged as ever.
    pub(super) fn frozen(&self, subject: &Subject<'_>) -> Option<Decision> {
        let freeze = self.state.freeze()?;
        let stopped = match subject {
            Subject::Action(action) => self.is_stopped(action.tool()),
            Subject::Output { .. } => freeze.stops == Frozen::Everything,
            Subject::Input { .. } | Subject::Observation { .. } | Subject::Contained { .. } => false,
        };
        stopped.then(|| denial(freeze))
    }

    /// The denial of a held call that is repeated while a freeze stops it. Nothing is recorded of it: the request stays
    /// as it is, and the call waits on once the run is released.
    pub(super) fn held_back(&self, action: &Action, step: u32, approval: ApprovalId) -> Option<Judgement> {
        let decision = self.frozen(&Subject::Action(action))?;
        let denial = explain(&self.state, self.run, action, &decision);
        Some(Judgement {
            action: action.clone(),
            step,
            decision,
            enforced: Enforced::Withheld,
            denial: Some(denial),
            approval: Some(approval),
            grant: None,
            seen: false,
            contain: None,
            without_hooks: false,
            seq: 0,
        })
    }

    /// Whether a call or a reply still waits for a person: it was not answered, no freeze stops it, and the bundle is the
    /// one that holds it.
    pub(crate) fn waits(&self, approval: ApprovalId) -> bool {
        let pending = self
            .state
            .approval(approval)
            .filter(|entry| entry.state == ApprovalState::Pending && !self.state.is_under_other_rules(entry));
        pending.is_some_and(|entry| match entry.about {
            About::Action(_) => !self.is_stopped(Some(&entry.tool)),
            About::Text(_) => self.state.freeze().is_none_or(|freeze| freeze.stops != Frozen::Everything),
        })
    }
}

fn denial(freeze: &RunFreeze) -> Decision {
    let what = match freeze.stops {
        Frozen::Everything => "a person froze the run",
        Frozen::SideEffects => "a person froze the run, and has released only what has no side effect",
    };
    let message = match &freeze.note {
        Some(note) => format!("{what}: {note}"),
        None => what.to_owned(),
    };
    let instead = match freeze.stops {
        Frozen::Everything => "nothing, until a person releases the run; tell the user that it is frozen",
        Frozen::SideEffects => "calls without side effects; a person has to release the rest",
    };
    let finding = Finding::new(reserved::FROZEN, Verdict::Deny, message).instead(instead);
    Decision { verdict: Verdict::Deny, findings: vec![finding], modified: None }
}
