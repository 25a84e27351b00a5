//! Holds a run that was stopped.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::state::Phase;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Repeats the stop while a run is clarifying, paused, halted or closed.
///
/// ## Why it matters
/// A stop that withheld only the action that caused it would be a mere suggestion.
///
/// ## Fires on
/// Every action proposed while a question is open (`clarify`), while the run is paused (`pause`), or after it
/// was halted or closed (`halt`).
///
/// ## Does not cover
/// Actions that were let through before the stop and are still executing.
///
/// ## Configuration
/// None. A user input ends clarifying, and ends a pause unless a person paused the run; a person's resume ends every
/// stop except closing. Closing a run and continuing it in a new segment lifts none of them.
///
/// ## False positives
/// None known.
///
/// ## References
/// Seed 001, escalation policy. OWASP ASI10.
#[derive(Debug)]
pub struct RunPhase;

static META: GuardMeta =
    GuardMeta { id: "run/phase", hooks: &[Hook::Action], owasp: &["ASI10"], unfaithful_to: None };

impl Guard<RunMemory> for RunPhase {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        _pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let finding = match context.run.phase() {
            Phase::Running => return Ok(Vec::new()),
            Phase::Clarifying { question } => {
                Finding::new("run/phase/clarifying", Verdict::Clarify, "a question to the user is not answered yet")
                    .question(question.clone())
                    .instead("ask the user and report the answer as input")
            }
            Phase::Paused { .. } => Finding::new("run/phase/paused", Verdict::Pause, "the run is paused")
                .instead("wait for a person to resume the run or, if no person paused it, for the user's next input"),
            Phase::Halted => Finding::new("run/phase/halted", Verdict::Halt, "the run was halted")
                .instead("a person can resume it with `portcullis runs resume`"),
            Phase::Closed(_) => {
                Finding::new("run/phase/closed", Verdict::Halt, "the run is closed").instead("open a new run")
            }
        };
        Ok(vec![finding])
    }
}
