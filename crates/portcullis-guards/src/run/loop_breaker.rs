//! Ends the repetition of a denied action.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::verdict::Verdict;

/// How often an identical action is judged and denied before the loop breaker answers: the first call and two
/// retries. The third retry is answered by the loop breaker.
pub const DENIALS_BEFORE_BREAK: u32 = 3;

/// ## What it does
/// Answers the third identical retry of a denied action, and every one after it, with a denial that says so.
///
/// ## Why it matters
/// An agent that is told "no" without being told that asking again is pointless will ask again, at the cost of
/// tokens, time and the reader's patience.
///
/// ## Fires on
/// An action with the same tool and the same arguments as one that was denied three times in a row. Spelling
/// does not matter: keys in another order and other white space are the same action.
///
/// ## Does not cover
/// Variants of a denied action. Calls that wait for an approver: waiting is not a retry storm.
///
/// ## Configuration
/// None. A reload of the bundle clears the counts.
///
/// ## False positives
/// An action that became allowed meanwhile because the run changed is still answered with the denial; a
/// different spelling of the arguments' values, or a reload, clears it.
///
/// ## References
/// OWASP ASI08, LLM10.
#[derive(Debug)]
pub struct LoopBreaker;

static META: GuardMeta = GuardMeta {
    id: "run/loop-breaker",
    hooks: &[Hook::Action],
    owasp: &["ASI08", "LLM10"],
    unfaithful_to: Some(Unfaithful::Observations),
};

impl Guard for LoopBreaker {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        let denials = context.run.denials(action.digest());
        if denials < DENIALS_BEFORE_BREAK {
            return Ok(Vec::new());
        }
        let message = format!("loop breaker: this identical call was already denied {denials} times");
        let finding = Finding::new("run/loop-breaker", Verdict::Deny, message)
            .instead("do something else, or tell the user that this cannot be done");
        Ok(vec![finding])
    }
}
