//! Holds a run to its budgets of bytes and cost.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;

const MICROS: u64 = 1_000_000;

/// ## What it does
/// Denies a call once the run has used up the bytes or the cost that its runtime policy permits.
///
/// ## Why it matters
/// An agent that goes astray is expensive before it is harmful, and a slow leak is many small calls.
///
/// ## Fires on
/// A call in a run whose arguments and results together have reached `max_bytes` (`run/budget/bytes`), or whose own cost
/// would take the run beyond `max_cost` (`run/budget/cost`).
///
/// ## Does not cover
/// Steps and side effects, which are limits of the runtime policy's ladder. What the agent's own model costs: the gate
/// sees calls. Several runs of one principal together.
///
/// ## Configuration
/// `max_bytes` and `max_cost` of a runtime policy; `cost` of a tool, in the unit that `max_cost` has, with at most six
/// decimals. None of them means no limit, and a call that costs nothing.
///
/// ## False positives
/// Large results that were asked for: raise `max_bytes`.
///
/// ## References
/// OWASP ASI08, LLM10.
#[derive(Debug)]
pub struct Budget;

static META: GuardMeta =
    GuardMeta { id: "run/budget", hooks: &[Hook::Action], owasp: &["ASI08", "LLM10"], unfaithful_to: None };

impl Guard for Budget {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(tool) = pending.subject.action().and_then(|action| action.tool.as_deref()) else {
            return Ok(Vec::new());
        };
        let (usage, policy) = (context.run.usage(), context.policy);
        let mut findings = Vec::new();
        if let Some(limit) = policy.max_bytes.filter(|limit| usage.bytes() >= *limit) {
            let message = format!(
                "{} bytes of arguments and results have passed; `{}` permits {limit}",
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

fn denial(rule: &'static str, message: String) -> Finding {
    Finding::new(rule, Verdict::Deny, message)
        .instead("finish with what is known, or ask the user to start a new run")
}

/// Millionths as a number of units without trailing zeros.
fn units(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / MICROS, micros % MICROS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
