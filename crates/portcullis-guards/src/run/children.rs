//! Counts what the runs below a run have used up toward the limits of that run.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::delegation;
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::usage::Used;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Holds a run together with all runs that it opened, and that those opened, to the limits that its runtime policy sets
/// for one run.
///
/// ## Why it matters
/// A limit on a run would be no limit if the run could open another one and go on there.
///
/// ## Fires on
/// An action of a run that has opened others, if they have used something of a limit, and its own usage and theirs
/// together would exceed `max_steps` (`run/children/steps`), `max_side_effects` (`run/children/side-effects`) or
/// `max_cost` (`run/children/cost`), or have reached `max_bytes` (`run/children/bytes`). An action of such another run,
/// since [`run/parent`](run-parent.md) asks the run above, which answers with its limits.
///
/// What the runs below have used is a fact: the gate counts it and records it with the verdict. If it cannot be counted,
/// the action is denied (`gate/fact-missing`).
///
/// ## Does not cover
/// Budgets of the principal, which count every run by themselves ([`run/budget`](run-budget.md)).
///
/// ## Configuration
/// The limits of the runtime policy. A call below counts as a side effect if the run's own bundle or that of the run
/// below says so, and costs the larger of both costs. Whatever was permitted counts, even if it did not happen in the
/// end.
///
/// ## False positives
/// Many delegates that share one small limit: raise it in the policy of the run that opens them.
///
/// ## References
/// OWASP ASI08, LLM10.
#[derive(Debug)]
pub struct Children;

static META: GuardMeta =
    GuardMeta { id: "run/children", hooks: &[Hook::Action], owasp: &["ASI08", "LLM10"], unfaithful_to: None };

impl Guard<RunMemory> for Children {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[delegation::CHILDREN]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        match (context.run.children().is_empty(), pending.subject.action()) {
            (false, Some(_)) => vec![delegation::used_below()],
            _ => Vec::new(),
        }
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let (false, Some(action)) = (context.run.children().is_empty(), pending.subject.action()) else {
            return Ok(Vec::new());
        };
        let below = used_below(facts)?;
        let (run, policy) = (context.run, context.policy);
        let mut findings = Vec::new();
        // What the run uses up by itself is for the guards of its own limits to say.
        let mut exceed = |rule: &'static str, what: &str, own: u64, below: u64, limit: u64| {
            if below == 0 {
                return;
            }
            let message = format!(
                "this run has used {own} and the runs that it opened {below} of the {limit} {what} that `{}` permits",
                policy.name
            );
            let instead = "finish with what is known, or ask the user to start a new run";
            findings.push(Finding::new(rule, Verdict::Deny, message).instead(instead));
        };
        // A held call that is made again was counted when it was first made.
        let again = run.open_action(action.id).is_some();
        let own = run.used();
        let (steps, limit) = (own.steps.saturating_add(below.steps), u64::from(policy.max_steps));
        if steps >= limit && !again {
            exceed("run/children/steps", "steps", own.steps, below.steps, limit);
        }
        let Some(tool) = action.tool() else { return Ok(findings) };
        let limit = u64::from(policy.max_side_effects);
        let side_effects = own.side_effects.saturating_add(below.side_effects);
        if side_effects >= limit && context.is_side_effecting(tool) {
            exceed("run/children/side-effects", "side effects", own.side_effects, below.side_effects, limit);
        }
        if let Some(limit) = policy.max_bytes.filter(|limit| own.bytes.saturating_add(below.bytes) >= *limit)
        {
            exceed("run/children/bytes", "bytes", own.bytes, below.bytes, limit);
        }
        let cost = context.bundle.registry.get(tool).map_or(0, |tool| tool.cost_micros);
        let spent = own.cost_micros.saturating_add(below.cost_micros).saturating_add(cost);
        if let Some(limit) = policy.max_cost_micros.filter(|limit| cost > 0 && spent > *limit) {
            exceed("run/children/cost", "millionths", own.cost_micros, below.cost_micros, limit);
        }
        Ok(findings)
    }
}

fn used_below(facts: &Facts) -> Result<Used, GuardFailure> {
    match facts.get(&delegation::used_below()) {
        Some(FactAnswer::Known(value)) => serde_json::from_value(value.clone())
            .map_err(|error| GuardFailure(format!("the usage of the runs below cannot be read: {error}"))),
        // The pipeline denies before it comes to this.
        _ => Err(GuardFailure("the usage of the runs below is not known".to_owned())),
    }
}
