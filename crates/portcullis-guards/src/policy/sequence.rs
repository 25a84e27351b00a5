//! Enforces rules about what happened before.

use portcullis_core::action::{Action, Hook, Pending};
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::sequence::SOURCE;
use portcullis_core::state::marks::{Now, Tally};
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Judges a call by what happened before it in the run: *never X after Y*, *X only after Y*, *at most N within an hour*,
/// *no more than this amount*.
///
/// ## Why it matters
/// Single calls can each be harmless and their order is not: a report is exported and then mailed, a deployment comes
/// before its tests, one refund becomes twenty.
///
/// ## Fires on
/// The sequences of the bundle, each as the rule `policy/sequence/ID` with the verdict that it names. Calls count from
/// when they are let through, even if their outcome is an error or unknown: they may have acted. Where something is
/// required (`before`, `since`), only a call that succeeded counts. A call that waits for a person, or was stopped, does
/// not count.
///
/// A sequence `over = "principal"` counts the calls of all runs of the run's principal: a fact, which the gate counts over
/// the runs that it holds and those of the window in its store, and records with the verdict. If it cannot be counted, the
/// call is denied (`gate/fact-missing`).
///
/// ## Does not cover
/// What happened in other runs, where the sequence is not over the principal, and in runs that another store records. What
/// a call does that its tool and arguments do not say. A tool that nobody marked. In observe mode what would have been stopped counts, since it happened.
///
/// ## Configuration
/// `sequences/*.toml`: marks name what calls do, sequences judge by them.
///
/// ## False positives
/// An argument that `same` names and that is missing or `null` belongs to everybody: then the marks of all keys count,
/// and none is enough where one is required. If an argument that `where` names is missing, the call is judged, and its
/// mark counts. An amount that cannot be read as a plain decimal number that is not
/// negative makes `sum` fire. Beyond 256 places of one mark, the oldest are remembered together, with the place of the
/// newest among them; beyond 4,096 keys in a run, the marks of new keys count for all.
///
/// ## References
/// Past operators of metric temporal logic: Koymans, *Specifying real-time properties with metric temporal logic*
/// (1990). OWASP ASI02, ASI08.
#[derive(Debug)]
pub struct SequenceRules;

static META: GuardMeta = GuardMeta {
    id: "policy/sequence",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "ASI08"],
    unfaithful_to: Some(Unfaithful::History),
};

impl Guard<RunMemory> for SequenceRules {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[SOURCE]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        let tool = pending.subject.action().and_then(Action::tool);
        tool.and_then(|tool| context.bundle.sequences.asks_principal(tool)).into_iter().collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        let Some(tool) = action.tool() else { return Ok(Vec::new()) };
        let run = context.run;
        let now = Now { at: pending.at, step: run.steps().saturating_add(1), seq: run.seq() };
        let sequences = &context.bundle.sequences;
        let of_principal = match sequences.asks_principal(tool) {
            Some(question) => tallies(&question, facts)?,
            None => Vec::new(),
        };
        let fired = sequences.fired(tool, action.marked(), run.marks(), &of_principal, now);
        let judging = fired.into_iter().filter(|(rule, _)| rule.judges(&action.arguments, run.principal()));
        let found = judging.map(|(rule, why)| {
            let message = match &rule.message {
                Some(message) => format!("{message} ({})", why.0),
                None => why.0,
            };
            let finding = Finding::new(format!("policy/sequence/{}", rule.id), rule.verdict, message);
            match &rule.instead {
                Some(instead) => finding.instead(instead.clone()),
                None => finding,
            }
        });
        Ok(found.collect())
    }
}

/// What of all runs of the principal counts, one for each rule in the question.
fn tallies(question: &FactRequest, facts: &Facts) -> Result<Vec<Tally>, GuardFailure> {
    let Some(FactAnswer::Known(value)) = facts.get(question) else {
        // The pipeline denies before it comes to this.
        return Err(GuardFailure("what all runs of the principal did is not known".to_owned()));
    };
    let tallies: Vec<Tally> = serde_json::from_value(value.clone()).map_err(|error| {
        GuardFailure(format!("what all runs of the principal did cannot be read: {error}"))
    })?;
    let rules = question.question.split(' ').count();
    if tallies.len() != rules {
        let message = format!("there are {} answers about the principal for {rules} rules", tallies.len());
        return Err(GuardFailure(message));
    }
    Ok(tallies)
}
