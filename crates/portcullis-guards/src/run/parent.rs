//! Holds a run that another run opened to what that run may do.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::delegation::{self, Objection, ParentAnswer};
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// The rule of a call that the run above would have to ask a person about.
pub const HELD: &str = "run/parent/held";
/// The rule of a call that the run above may not make.
pub const DENIED: &str = "run/parent/denied";

/// ## What it does
/// Asks the run that opened this one whether it may do the same now, and denies or holds what it may not.
///
/// ## Why it matters
/// An agent that hands its work to another one must not get done what it may not do itself: a delegate with another
/// policy, another bundle, a fresh budget or a clean history would be a way around all of them.
///
/// ## Fires on
/// An action in a run with a parent, if the parent's own bundle, policy, history and budgets would deny it, or if the
/// parent is paused, halted, frozen, closed or not live (`run/parent/denied`); or if the parent would have to ask a
/// person (`run/parent/held`). If the bundle of the parent is another one, what it would hold is denied: who may
/// approve it is written there. The parent asks its own parent in turn.
///
/// The gate judges the action in the parent, as it stands at that moment, without recording anything there. What the
/// parent says is a fact of the verdict, with the number of the parent's last event. Without it there is a denial
/// (`gate/fact-missing`).
///
/// ## Does not cover
/// Runs whose surface did not name a parent. Replies: those are judged in the run alone, and reach the parent with the
/// end of the run.
///
/// ## Configuration
/// None. Neither `observe` mode nor a client's own prompt relaxes it: if the parent enforces its verdicts, they bind its
/// children.
///
/// ## False positives
/// Work that the user did not ask for in words and that the parent would have been stopped for as well. Give the parent
/// a policy that permits what its delegates do.
///
/// ## References
/// OWASP ASI03, ASI07, ASI08.
#[derive(Debug)]
pub struct Parent;

static META: GuardMeta = GuardMeta {
    id: "run/parent",
    hooks: &[Hook::Action],
    owasp: &["ASI03", "ASI07", "ASI08"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for Parent {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[delegation::PARENT]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        match (context.run.parent(), pending.subject.action()) {
            (Some(_), Some(_)) => vec![delegation::may()],
            _ => Vec::new(),
        }
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if context.run.parent().is_none() || pending.subject.action().is_none() {
            return Ok(Vec::new());
        }
        let Some(FactAnswer::Known(value)) = facts.get(&delegation::may()) else {
            return Err(GuardFailure("what the run above says is not known".to_owned()));
        };
        let answer: ParentAnswer = serde_json::from_value(value.clone())
            .map_err(|error| GuardFailure(format!("what the run above says cannot be read: {error}")))?;
        Ok(answer.objection.iter().map(finding).collect())
    }
}

fn finding(objection: &Objection) -> Finding {
    let Objection { holds, rule, why } = objection;
    if *holds {
        let message = format!("the run that opened this one would need a person's approval: {why} ({rule})");
        return Finding::new(HELD, Verdict::Review, message);
    }
    let message = format!("the run that opened this one may not do this: {why} ({rule})");
    Finding::new(DENIED, Verdict::Deny, message)
        .instead("report back to the agent that delegated this, and leave the call to it")
}
