//! The permit: the value without which no action executes.
//!
//! A [`Permit`] is made here and nowhere else: of a judgement once the verdict, and the fact that the action goes ahead,
//! are durable in the ledger; or, on the other side of the daemon's socket, of the daemon's answer that this is so.
//! Whatever executes an action takes a permit by value, so no code path executes an action that was not judged and
//! recorded, and none executes it twice.

use portcullis_core::denial::Denial;
use portcullis_core::event::Enforced;
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, ApprovalId};
use portcullis_core::verdict::Verdict;
use serde_json::Value;

use crate::engine::{Contain, Judgement};
use crate::error::SessionError;
use crate::surface::ActionAnswer;

/// The gate's judgement of an action, whichever way it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The action's name from here on. A retry of a held call keeps the name it had.
    pub action: ActionId,
    /// Its number in the run, from 1.
    pub step: u32,
    /// The join of all findings.
    pub verdict: Verdict,
    /// What is done about it.
    pub enforced: Enforced,
    /// The approval that is waited for, or was.
    pub approval: Option<ApprovalId>,
    /// All findings in declared order.
    pub findings: Vec<Finding>,
    /// Number of the last event that was durable when it was answered.
    pub seq: u64,
}

/// The right to execute one action, once.
#[derive(Debug)]
#[must_use = "a permit that is dropped leaves its action without an outcome"]
pub struct Permit {
    judged: Judged,
    arguments: Option<Value>,
    seen: bool,
    contain: Option<Box<Contain>>,
    without_hooks: bool,
}

impl Permit {
    /// The permit of a judgement whose events up to number `seq` are durable, or `None` if the action does not go
    /// ahead.
    pub(crate) fn issue(judgement: &Judgement, seq: u64) -> Option<Self> {
        if !judgement.enforced.proceeds() {
            return None;
        }
        let edited = judgement.decision.modified.as_ref();
        let edited = edited.filter(|_| judgement.enforced == Enforced::Replaced);
        let judged = Judged {
            action: judgement.action.id,
            step: judgement.step,
            verdict: judgement.decision.verdict,
            enforced: judgement.enforced,
            approval: judgement.approval.or(judgement.grant),
            findings: judgement.decision.findings.clone(),
            seq,
        };
        let (arguments, contain) = (edited.cloned(), judgement.contain.clone().map(Box::new));
        let Judgement { seen, without_hooks, .. } = *judgement;
        Some(Self { judged, arguments, seen, contain, without_hooks })
    }

    /// The action.
    pub fn action(&self) -> ActionId {
        self.judged.action
    }

    /// How it was judged.
    pub fn judged(&self) -> &Judged {
        &self.judged
    }

    /// The arguments to use instead of those proposed, where findings edited them.
    pub fn edited_arguments(&self) -> Option<&Value> {
        self.arguments.as_ref()
    }

    /// The same, by value: the permit is used up.
    pub fn into_edited_arguments(self) -> Option<Value> {
        self.arguments
    }

    /// How the action is to be contained, where it is: who executes it runs it under this profile and reports with the
    /// ticket what was seen.
    pub fn contain(&self) -> Option<&Contain> {
        self.contain.as_deref()
    }

    /// The action goes ahead as it is, where other command lines are contained: who executes it keeps git from running
    /// hooks, which call what contained programs may have written.
    pub fn is_without_hooks(&self) -> bool {
        self.without_hooks
    }

    /// All that the action does is in its text, or a person granted this very call.
    pub fn is_seen(&self) -> bool {
        self.seen
    }

    /// The run only observes: the verdict was noted, and the action goes ahead whatever it says.
    pub fn is_let_pass(&self) -> bool {
        self.judged.enforced == Enforced::LetPass
    }
}

/// There is no permit.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// How it was judged.
    pub judged: Judged,
    /// Why not, for the agent.
    pub denial: Denial,
}

/// What became of a proposal.
#[derive(Debug)]
pub enum Proposed {
    /// The action may happen.
    Permitted(Permit),
    /// It must not happen on the gate's word; where it was [asked](Enforced::Asked), the client's own prompt decides.
    Stopped(Stopped),
}

impl Proposed {
    /// The judgement, whichever way it went.
    #[must_use]
    pub fn judged(&self) -> &Judged {
        match self {
            Self::Permitted(permit) => &permit.judged,
            Self::Stopped(stopped) => &stopped.judged,
        }
    }

    /// Whether there is a permit.
    #[must_use]
    pub fn is_permitted(&self) -> bool {
        matches!(self, Self::Permitted(_))
    }

    /// Why not, if there is no permit.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Permitted(_) => None,
            Self::Stopped(stopped) => Some(&stopped.denial),
        }
    }

    /// The permit, if there is one.
    #[must_use]
    pub fn permit(self) -> Option<Permit> {
        match self {
            Self::Permitted(permit) => Some(permit),
            Self::Stopped(_) => None,
        }
    }

    /// What was decided in this process.
    pub(crate) fn decided(judgement: Judgement, permit: Option<Permit>) -> Result<Self, SessionError> {
        if let Some(permit) = permit {
            return Ok(Self::Permitted(permit));
        }
        let Judgement { action, step, decision, enforced, denial, approval, grant, seq, .. } = judgement;
        // Whatever does not go ahead says why; without that, nothing is known of it.
        let denial = denial.ok_or(SessionError::CutShort)?;
        let judged = Judged {
            action: action.id,
            step,
            verdict: decision.verdict,
            enforced,
            approval: approval.or(grant),
            findings: decision.findings,
            seq,
        };
        Ok(Self::Stopped(Stopped { judged, denial }))
    }

    /// Reads the daemon's answer, which [`ActionAnswer::of`] made on its side: for the client of its socket, and for no
    /// one else.
    ///
    /// # Errors
    /// The answer contradicts itself, and permits nothing.
    pub fn received(answer: ActionAnswer) -> Result<Self, &'static str> {
        let ActionAnswer {
            action,
            step,
            verdict,
            enforced,
            permit,
            arguments,
            denial,
            approval,
            seen,
            contain,
            without_hooks,
            findings,
            seq,
        } = answer;
        let judged = Judged { action, step, verdict, enforced, approval, findings, seq };
        match (permit, denial) {
            (true, _) if !enforced.proceeds() => Err("it permits an action that is not executed"),
            (true, Some(_)) => Err("it both permits and denies"),
            (true, None) if arguments.is_some() != (enforced == Enforced::Replaced) => {
                Err("it does not say which arguments are permitted")
            }
            (true, None) => {
                let contain = contain.map(Box::new);
                Ok(Self::Permitted(Permit { judged, arguments, seen, contain, without_hooks }))
            }
            (false, _) if contain.is_some() => Err("it contains what it does not permit"),
            (false, _) if enforced.proceeds() => Err("an action goes ahead without a permit"),
            (false, None) => Err("it denies without a reason"),
            (false, Some(denial)) => Ok(Self::Stopped(Stopped { judged, denial })),
        }
    }
}

impl ActionAnswer {
    /// The answer to a proposal. Takes the permit by value: this is where it leaves the process, and the caller
    /// executes the action on the strength of this answer.
    #[must_use]
    pub fn of(proposed: Proposed) -> Self {
        let (judged, permit, denial) = match proposed {
            Proposed::Permitted(Permit { judged, arguments, seen, contain, without_hooks }) => {
                (judged, Some((arguments, seen, contain.map(|contain| *contain), without_hooks)), None)
            }
            Proposed::Stopped(Stopped { judged, denial }) => (judged, None, Some(denial)),
        };
        let Judged { action, step, verdict, enforced, approval, findings, seq } = judged;
        let permitted = permit.is_some();
        let (arguments, seen, contain, without_hooks) = permit.unwrap_or_default();
        Self {
            action,
            step,
            verdict,
            enforced,
            permit: permitted,
            arguments,
            denial,
            approval,
            seen,
            contain,
            without_hooks,
            findings,
            seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(changes: &[(&str, Value)]) -> Result<Proposed, &'static str> {
        let mut answer = json!({
            "action": "a".repeat(32), "step": 1, "verdict": "allow", "enforced": "executed", "permit": true,
            "findings": [], "seq": 4,
        });
        for (field, value) in changes {
            answer[field] = value.clone();
        }
        Proposed::received(serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn an_answer_that_contradicts_itself_permits_nothing() {
        let denial = json!({
            "class": "denied", "verdict": "deny", "rule": "policy/x", "target": "t", "message": "no",
            "retry": {"when": "never", "left": 0}, "run": "b".repeat(32), "action": "a".repeat(32),
        });
        let no = ("permit", json!(false));
        let withheld = ("enforced", json!("withheld"));
        assert!(read(&[]).unwrap().permit().is_some());
        let replaced = [("enforced", json!("replaced")), ("arguments", json!({"a": 1}))];
        assert!(read(&replaced).unwrap().permit().is_some());
        let stopped = read(&[no.clone(), withheld.clone(), ("denial", denial.clone())]).unwrap();
        assert!(stopped.permit().is_none());

        for changes in [
            &[withheld.clone()][..],
            &[("enforced", json!("held"))],
            &[("enforced", json!("asked"))],
            &[("denial", denial.clone())],
            &[("enforced", json!("replaced"))],
            &[("arguments", json!({"a": 1}))],
            &[no.clone(), ("denial", denial)],
            &[no, withheld],
        ] {
            assert!(read(changes).is_err(), "{changes:?}");
        }
    }
}
