//! Judges what the user wants by what the user says.

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{RunMemory, RunReading};
use portcullis_trajectory::monitors::Intent;

/// ## What it does
/// Scores each input of the user: 0.4 malicious patterns + 0.3 risky words + 0.3 risk of what is asked for, each 0 to 1.
///
/// ## Why it matters
/// What is stopped before the agent plans it needs no further guard.
///
/// ## Fires on
/// A score of at least 0.2 (`warn`), 0.4 (`pause`) or 0.7 (`halt`); the last two times 1 - s/2 at sensitivity s, so 0.30
/// and 0.525 at the default of 0.5. Any text that orders the assistant to drop its rules, hands over orders as if they
/// were the operator's, or puts a role without limits over it counts as three malicious patterns, which is a `halt` at
/// each sensitivity (rule `input/intent/override`).
///
/// ## Does not cover
/// What the operator says. Languages other than English. Harm that is asked for in words that the patterns do not have:
/// later calls are looked at as well (`trajectory/drift`, `trajectory/violations`).
///
/// ## Configuration
/// `monitors.toml`: weights, thresholds, sensitivity, concepts and patterns.
///
/// ## False positives
/// Risky words alone never stop an input: a pattern needs several concepts in one stretch of text. Patterns count a quarter
/// where the user protects something or works on security, fiction or teaching, and what is quoted as an example is not
/// asked for.
///
/// ## References
/// Seed 001, intent classifier and injection detector. OWASP ASI01, LLM01.
#[derive(Debug)]
pub struct InputIntent;

static META: GuardMeta =
    GuardMeta { id: "input/intent", hooks: &[Hook::Input], owasp: &["ASI01", "LLM01"], unfaithful_to: None };

/// The family of patterns that are orders over orders.
const OVERRIDE: &str = "override";
/// Malicious matches from which such a pattern is a halt whatever the sensitivity.
const FULL: f64 = 1.0;

impl Guard for InputIntent {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        if !matches!(pending.subject, Subject::Input { label: Label::User, .. }) {
            return Ok(Vec::new());
        }
        let memory: &RunMemory = context.memory()?;
        let reading = &context.reading::<RunReading>()?.monitors;
        let weights = &context.bundle.monitors.weights;
        let score = reading.intent.score;
        let names: Vec<&str> = memory.monitors.names(reading).map(|(name, _)| name).collect();
        let overrides = memory.monitors.names(reading).any(|(_, family)| family == OVERRIDE)
            && reading.intent.malicious >= FULL;
        let (rule, verdict) = if overrides {
            ("input/intent/override", Verdict::Halt)
        } else if score >= Intent::threshold(weights.hard, weights) {
            ("input/intent/hard", Verdict::Halt)
        } else if score >= Intent::threshold(weights.soft, weights) {
            ("input/intent/soft", Verdict::Pause)
        } else if score >= weights.warn {
            ("input/intent/warn", Verdict::Warn)
        } else {
            return Ok(Vec::new());
        };
        let Intent { malicious, keywords, action, .. } = reading.intent;
        let because = if names.is_empty() { "risky words".to_owned() } else { names.join(", ") };
        let message = format!(
            "the intent score is {score:.2} (malicious {malicious:.2}, risky words {keywords:.2}, action {action:.2}): {because}"
        );
        let mut finding = Finding::new(rule, verdict, message);
        if let Some((start, end)) = reading.place {
            finding = finding.at(Span { pointer: "/text".into(), start, end });
        }
        Ok(vec![finding])
    }
}
