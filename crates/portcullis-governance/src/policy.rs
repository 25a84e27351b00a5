//! `runtime_policy.json`: what governed the run, as the bundle says it, from which event on.

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ConfigChange, EventBody, Mode};
use portcullis_core::id::{Digest, canonical_json};
use portcullis_core::policy::RuntimePolicy;
use serde_json::{Value, json};

use crate::pack::PackInput;
use crate::record::Record;

/// A stretch of the run under one bundle and policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) from: u64,
    pub(crate) bundle: Digest,
    /// All that judged, where the run says.
    pub(crate) configuration: Option<Digest>,
    pub(crate) policy: String,
    pub(crate) mode: Mode,
}

/// The stretches in order.
pub(crate) fn periods(record: &Record) -> Vec<Period> {
    let mut periods: Vec<Period> = Vec::new();
    for event in record.events() {
        let period = match &event.body {
            EventBody::RunOpened(opened) => Period {
                from: event.seq,
                bundle: opened.bundle,
                configuration: opened.configuration,
                policy: opened.policy.clone(),
                mode: opened.mode,
            },
            EventBody::Config(ConfigChange::BundleLoaded { bundle, configuration, policy, mode }) => Period {
                from: event.seq,
                bundle: *bundle,
                configuration: *configuration,
                policy: policy.clone(),
                mode: *mode,
            },
            _ => continue,
        };
        let same = |last: &Period| {
            (last.bundle, &last.policy, last.mode) == (period.bundle, &period.policy, period.mode)
        };
        if !periods.last().is_some_and(same) {
            periods.push(period);
        }
    }
    periods
}

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
    let periods: Vec<Value> = periods(input.record).iter().map(period).collect();
    json!({"format": "portcullis-runtime-policy/v1", "run": input.record.run(), "periods": periods})
}
