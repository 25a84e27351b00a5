//! Holds a run to its budgets of bytes and cost, and all runs of a principal to theirs.

use portcullis_core::action::{Action, Hook, Pending};
use portcullis_core::fact::{FactAnswer, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::policy::{PrincipalBudget, Window};
use portcullis_core::usage::Used;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

const MICROS: u64 = 1_000_000;

/// ## What it does
/// Denies a call once the run has used up the bytes or the cost that its runtime policy permits, and an action once all
/// runs of its principal together have used up what the policy permits in an hour or a day.
///
/// ## Why it matters
/// An agent that goes astray is expensive before it is harmful, and a slow leak is many small calls.
///
/// ## Fires on
/// A call in a run whose arguments and results together have reached `max_bytes` (`run/budget/bytes`), or whose own
/// cost would take the run over `max_cost` (`run/budget/cost`).
///
/// An action of a principal whose runs have taken `max_steps` since the window began (`run/budget/principal-steps`),
/// one with side effects after `max_side_effects` (`run/budget/principal-side-effects`), a call after `max_bytes`
/// (`run/budget/principal-bytes`), or one whose own cost would exceed `max_cost` (`run/budget/principal-cost`). Usage
/// is a fact: the gate counts it over all runs that it holds and the runs of the window in its store, and records it
/// with the verdict. If it cannot be counted, the action is denied (`gate/fact-missing`).
///
/// ## Does not cover
/// Steps and side effects of one run, which are limits of the runtime policy's ladder. The cost of the agent's own
/// model: the gate sees only calls. Runs of a principal that another store records.
///
/// ## Configuration
/// `max_bytes` and `max_cost` of a runtime policy; `cost` of a tool, in the unit of `max_cost`, with at most six
/// decimals. If they are left out, there is no limit, and a call costs nothing. `[policy.principal]` with `per` (`hour`
/// or `day`, in UTC) and at least one of `max_steps`, `max_side_effects`, `max_bytes`, `max_cost`. Runs under other
/// policies count as well; the limits are those of the acting run. Whatever was permitted counts, even if it did not
/// happen in the end.
///
/// ## False positives
/// Large results that were requested: raise `max_bytes`. A busy morning that leaves nothing for the afternoon: use the
/// hour as the window.
///
/// ## References
/// OWASP ASI08, LLM10.
#[derive(Debug)]
pub struct Budget;

static META: GuardMeta =
    GuardMeta { id: "run/budget", hooks: &[Hook::Action], owasp: &["ASI08", "LLM10"], unfaithful_to: None };

impl Guard<RunMemory> for Budget {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[Window::SOURCE]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        match (&context.policy.principal, pending.subject.action()) {
            (Some(budget), Some(_)) => vec![budget.per.usage()],
            _ => Vec::new(),
        }
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        let mut findings = Vec::new();
        if let Some(budget) = &context.policy.principal {
            let used = used_by_principal(budget, facts)?;
            findings.extend(principal(context, budget, used, action));
        }
        let Some(tool) = action.tool() else { return Ok(findings) };
        let (usage, policy) = (context.run.usage(), context.policy);
        if let Some(limit) = policy.max_bytes.filter(|limit| usage.bytes() >= *limit) {
            let message = format!(
                "arguments and results have {} bytes in total; `{}` permits {limit}",
                usage.bytes(),
                policy.name
            );
            findings.push(denial("run/budget/bytes", message));
        }
        let cost = context.bundle.registry.get(tool).map_or(0, |tool| tool.cost_micros);
        let spent = usage.cost_micros();
        if let Some(limit) =
            policy.max_cost_micros.filter(|limit| cost > 0 && spent.saturating_add(cost) > *limit)
        {
            let message = format!(
                "a call of `{tool}` costs {}, and {} of the {} that `{}` permits are spent",
                units(cost),
                units(spent),
                units(limit),
                policy.name
            );
            findings.push(denial("run/budget/cost", message));
        }
        Ok(findings)
    }
}

fn used_by_principal(budget: &PrincipalBudget, facts: &Facts) -> Result<Used, GuardFailure> {
    match facts.get(&budget.per.usage()) {
        Some(FactAnswer::Known(value)) => serde_json::from_value(value.clone())
            .map_err(|error| GuardFailure(format!("the usage of the principal cannot be read: {error}"))),
        // The pipeline denies before it comes to this.
        _ => Err(GuardFailure("the usage of the principal is not known".to_owned())),
    }
}

/// Holds all runs of the principal to their budget. `used` is what was used up before this action.
fn principal(
    context: &Context<'_>,
    budget: &PrincipalBudget,
    used: Used,
    action: &Action,
) -> Option<Finding> {
    let (per, policy) = (budget.per.as_str(), &context.policy.name);
    let denial = |rule, message| {
        let instead = format!("wait for the next {per} in UTC, or ask the operator for a larger budget");
        Some(Finding::new(rule, Verdict::Deny, message).instead(instead))
    };
    let reached = |used: u64, limit: Option<u64>| limit.filter(|limit| used >= *limit);
    // A held call that is made again was counted when it was first made.
    let again = context.run.open_action(action.id).is_some();
    if let Some(limit) = reached(used.steps, budget.max_steps).filter(|_| !again) {
        let message = format!(
            "the principal's runs have taken {} steps; `{policy}` permits {limit} each {per}",
            used.steps
        );
        return denial("run/budget/principal-steps", message);
    }
    let tool = action.tool()?;
    if let Some(limit) = reached(used.side_effects, budget.max_side_effects)
        && context.is_side_effecting(tool)
    {
        let message = format!(
            "the limit of {limit} side effects each {per} that `{policy}` sets for all runs of the principal is used up"
        );
        return denial("run/budget/principal-side-effects", message);
    }
    if let Some(limit) = reached(used.bytes, budget.max_bytes) {
        let message = format!(
            "arguments and results in the principal's runs have {} bytes in total; `{policy}` permits {limit} each {per}",
            used.bytes
        );
        return denial("run/budget/principal-bytes", message);
    }
    let cost = context.bundle.registry.get(tool).map_or(0, |tool| tool.cost_micros);
    let limit =
        budget.max_cost_micros.filter(|limit| cost > 0 && used.cost_micros.saturating_add(cost) > *limit)?;
    let message = format!(
        "a call of `{tool}` costs {}, and the principal's runs have spent {} of the {} each {per} that `{policy}` permits",
        units(cost),
        units(used.cost_micros),
        units(limit)
    );
    denial("run/budget/principal-cost", message)
}

fn denial(rule: &'static str, message: String) -> Finding {
    Finding::new(rule, Verdict::Deny, message)
        .instead("finish with what is known, or ask the user to start a new run")
}

/// Millionths as a number of units without trailing zeros.
fn units(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / MICROS, micros % MICROS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
