//! Ends repetition: of a denied action, of calls that are all alike, of denials.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::limits::{CALLS_COMPARED_MAX, VERDICTS_REMEMBERED_MAX};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// How often an identical action is judged and denied before the loop breaker answers: the first call and two
/// retries. The third retry is answered by the loop breaker.
pub const DENIALS_BEFORE_BREAK: u32 = 3;

/// ## What it does
/// Answers the third identical retry of a denied action, and every later one, with a denial that says so. Denies a call
/// that resembles many of the latest ones, and pauses a run in which most of the latest calls were denied.
///
/// ## Why it matters
/// An agent that gets a "no" without learning that retries are pointless will retry, at the cost of tokens, time and
/// the reader's patience. An agent that gets nowhere tries the same with small changes, and one that was talked into
/// something looks for an unlocked door.
///
/// ## Fires on
/// An action with the same tool and the same arguments as one that was denied three times in a row. Spelling does not
/// matter: keys in another order and other white space are the same action (`run/loop-breaker`). A call with the same
/// tool and the same words in its arguments, ignoring case and punctuation, as ten of the latest 32
/// (`run/loop-breaker/alike`). A call after twelve of the latest 20 were denied, counted from the user's latest input
/// (`run/loop-breaker/denials`): the run pauses until the user or a person speaks.
///
/// ## Does not cover
/// Variants in other words. Calls that wait for an approver: waiting is not a retry storm.
///
/// ## Configuration
/// `[loops]` in `portcullis.toml`: `alike` and `denials`, 0 turns the limit off. A reload of the bundle clears the
/// counts of identical denials.
///
/// ## False positives
/// An action that has become allowed meanwhile because the run changed is still answered with the denial; a different
/// spelling of the arguments' values, or a reload, clears it. An agent that polls with the same arguments is denied
/// after ten calls: raise `alike`, or give it a tool that waits.
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

impl Guard<RunMemory> for LoopBreaker {
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
        let (run, loops) = (context.run, &context.bundle.loops);
        let instead = "do something else, or tell the user that this cannot be done";
        let mut findings = Vec::new();
        let denials = run.denials(action.digest());
        if denials >= DENIALS_BEFORE_BREAK {
            let message = format!("loop breaker: this identical call was already denied {denials} times");
            findings.push(Finding::new("run/loop-breaker", Verdict::Deny, message).instead(instead));
        }
        let alike = action.likeness().map_or(0, |likeness| run.usage().alike(likeness));
        if loops.alike > 0 && alike >= loops.alike {
            let message =
                format!("loop breaker: {alike} of the latest {CALLS_COMPARED_MAX} calls were like this one");
            findings.push(Finding::new("run/loop-breaker/alike", Verdict::Deny, message).instead(instead));
        }
        let denied = run.usage().denied_lately();
        if loops.denials > 0 && denied >= loops.denials {
            let message =
                format!("loop breaker: {denied} of the latest {VERDICTS_REMEMBERED_MAX} calls were denied");
            findings.push(
                Finding::new("run/loop-breaker/denials", Verdict::Pause, message)
                    .instead("tell the user what was denied, and ask how to proceed"),
            );
        }
        Ok(findings)
    }
}
