//! What the daemon made of a proposal, on this side of the socket.
//!
//! A [`Permit`] is made here, of the daemon's answer, and nowhere else. Whatever executes an action takes one by
//! value, so that no code path of a surface executes what was not permitted, and none executes it twice.

use portcullis_core::denial::Denial;
use portcullis_core::event::Enforced;
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, ApprovalId};
use portcullis_core::verdict::Verdict;
use serde_json::Value;

use crate::api::ActionAnswer;

/// The daemon's judgement of an action, whichever way it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The action's name from here on.
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
    /// Number of the last event written for it.
    pub seq: u64,
}

/// The right to execute one action, once.
#[derive(Debug)]
#[must_use = "a permit that is dropped leaves its action without an outcome"]
pub struct Permit {
    judged: Judged,
    arguments: Option<Value>,
    seen: bool,
}

impl Permit {
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

    /// Reads the daemon's answer. One that contradicts itself is an error, and permits nothing.
    pub(crate) fn of(answer: ActionAnswer) -> Result<Self, &'static str> {
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
            (true, None) => Ok(Self::Permitted(Permit { judged, arguments, seen })),
            (false, _) if enforced.proceeds() => Err("an action goes ahead without a permit"),
            (false, None) => Err("it denies without a reason"),
            (false, Some(denial)) => Ok(Self::Stopped(Stopped { judged, denial })),
        }
    }

    /// A scripted answer, for tests of those who act on one.
    #[cfg(test)]
    pub(crate) fn scripted(answer: ActionAnswer) -> Self {
        Self::of(answer).unwrap()
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
        Proposed::of(serde_json::from_value(answer).unwrap())
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
