//! Notes that a run moves away from its goal.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// Drift from which it is noted.
const NOTED: f64 = 0.3;

/// ## What it does
/// Adds up how far each input and call moves from the stated goal towards something risky, and notes it.
///
/// ## Why it matters
/// Harm that is requested in small steps looks harmless at each of them. The total does not.
///
/// ## Fires on
/// An input or call that adds to drift while the total is at least 0.3 (`warn`). The step has two parts: 0.6 times the
/// rise over the goal (a third for each malicious match, 1 at most), and 0.4 times the escalation (a quarter for each
/// malicious match and sensitive cue, 1 at most). The total stays between 0 and 1, and the message has both step and
/// total. `escalation/table` says what the total means.
///
/// Unless `scores = "stop"`, a step is 0.3 at most, so that several are needed; a pattern counts once until a person
/// resumes the run; and of inputs, only the user's own words are read, as by `input/intent`. In calls, strings of more
/// than 600 bytes are taken for documents that are passed on, and are not read unless the tool executes them.
///
/// ## Does not cover
/// A change of subject that contains nothing risky. A turn without a match lowers the total by 0.1, and a person's
/// resume resets it.
///
/// ## Configuration
/// `[monitors] scores` of `portcullis.toml`; `monitors.toml`: concepts and patterns.
///
/// ## False positives
/// It never stops anything by itself. Of 4,373 ordinary prompts, given after the operator stated a goal, it notes 27.
///
/// ## References
/// Seed 001, drift monitor. OWASP ASI01, ASI10.
#[derive(Debug)]
pub struct Drift;

static META: GuardMeta = GuardMeta {
    id: "trajectory/drift",
    hooks: &[Hook::Input, Hook::Action],
    owasp: &["ASI01", "ASI10"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for Drift {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if matches!(pending.subject, Subject::Input { label, .. } if *label != Label::User) {
            return Ok(Vec::new());
        }
        let memory = context.memory()?;
        let reading = &context.reading()?.monitors;
        if reading.drift < NOTED || reading.step <= 0.0 {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = memory.monitors.names(reading).map(|(name, _)| name).collect();
        let message = format!(
            "this step adds {:.2} to drift, which is {:.2} now: {}",
            reading.step,
            reading.drift,
            names.join(", ")
        );
        Ok(vec![Finding::new("trajectory/drift", Verdict::Warn, message)])
    }
}
