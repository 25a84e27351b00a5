//! `runtime_policy.json`: what governed the run, as the bundle says it, from which event on.

use portcullis_core::bundle::Bundle;
use portcullis_core::id::canonical_json;
use portcullis_core::policy::RuntimePolicy;
use serde_json::{Value, json};

use crate::input::PackInput;
use crate::period::{Period, periods};

/// A policy in the words of seed 000, with the limits that it does not have.
fn policy(policy: &RuntimePolicy) -> Value {
    json!({
        "name": policy.name,
        "allowed_tool_types": policy.allowed_types,
        "max_steps": policy.max_steps,
        "max_side_effect_actions": policy.max_side_effects,
        "require_approval_for_side_effects": policy.approval_for_side_effects,
        "restricted_keywords": policy.restricted_keywords,
        "escalate_on_verification_fail": policy.escalate_on_verification_fail,
        "max_bytes": policy.max_bytes,
        "max_cost_micros": policy.max_cost_micros,
        "principal_budget": policy.principal,
    })
}

/// SHA-256 input of a policy: its canonical JSON, as it appears in the file.
pub(crate) fn canonical(bundle: &Bundle, name: &str) -> Option<String> {
    bundle.policy(name).map(|found| canonical_json(&policy(&found)))
}

fn tools(bundle: &Bundle) -> Vec<Value> {
    let tool = |tool: &portcullis_core::tool::Tool| {
        json!({
            "id": tool.id, "name": tool.name, "type": tool.tool_type, "description": tool.description,
            "is_side_effecting": tool.side_effecting, "risk": tool.risk, "enabled": tool.enabled,
            "trusted": tool.trusted, "inferred": tool.inferred, "args_schema": tool.args.as_value(),
        })
    };
    bundle.registry.iter().map(tool).collect()
}

/// `runtime_policy.json`.
pub(crate) fn json(input: &PackInput<'_>) -> Value {
    let period = |period: &Period| {
        let bundle = input.bundle(period.bundle);
        json!({
            "from_event": period.from,
            "bundle": period.bundle,
            "configuration": period.configuration,
            "mode": period.mode,
            "name": period.policy,
            "policy": bundle.and_then(|bundle| bundle.policy(&period.policy).map(|found| policy(&found))),
            "unknown_tools": bundle.map(|bundle| bundle.unknown_tools),
            "tools": bundle.map(tools),
        })
    };
    let periods: Vec<Value> = periods(input.record.events()).iter().map(period).collect();
    json!({"format": "portcullis-runtime-policy/v1", "run": input.record.run(), "periods": periods})
}
