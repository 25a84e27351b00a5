//! What guards and checks did not look at: replies, tools, hooks, and what the bundle leaves open.

use std::collections::BTreeMap;

use portcullis_contracts::verify::Status;
use portcullis_core::action::Hook;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ConfigChange, EventBody};

use super::entry::{Risk, risk, tool_names};
use crate::facts::{ActionFact, Facts, hook_word};
use crate::input::PackInput;
use crate::markdown::{all_names, code, count, events, names};

/// Replies that nobody held against anything.
pub(super) fn replies(facts: &Facts, bundle: Option<&Bundle>) -> Vec<Risk> {
    let unverified = facts.unverified_replies();
    let empty: Vec<u64> = facts
        .replies
        .iter()
        .filter(|reply| {
            reply
                .checks
                .as_ref()
                .is_some_and(|checks| checks.iter().all(|check| check.status == Status::NotApplicable))
        })
        .map(|reply| reply.reply)
        .collect();
    let withheld: Vec<u64> =
        facts.replies.iter().filter(|reply| reply.checks.is_none()).map(|reply| reply.event).collect();
    let none = if bundle.is_some_and(|bundle| bundle.verification.is_none()) {
        ": the bundle has no `[verification]`"
    } else {
        ""
    };
    [
        risk(
            &unverified,
            "Replies that were not verified",
            || {
                format!(
                    "{} delivered without a check ({}){none}.",
                    count(unverified.len(), "reply was", "replies were"),
                    events(&unverified)
                )
            },
            "add `[verification]` to the bundle and name the tools whose results are documents",
        ),
        risk(
            &empty,
            "Replies to which no check applied",
            || {
                format!(
                    "All checks of {} were N/A ({}).",
                    count(empty.len(), "reply", "replies"),
                    events(&empty)
                )
            },
            "retrieve documents before the reply, or set `citations = \"always\"`",
        ),
        risk(
            &withheld,
            "Answers of checks that are not available",
            || {
                format!(
                    "The answers of {} are withheld or erased ({}).",
                    count(withheld.len(), "verification", "verifications"),
                    events(&withheld)
                )
            },
            "create the pack with payloads",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Tools that are not classified.
pub(super) fn tools(facts: &Facts, bundle: Option<&Bundle>) -> Vec<Risk> {
    let Some(bundle) = bundle else { return Vec::new() };
    let called = |wanted: &dyn Fn(&str) -> bool| -> Vec<&ActionFact> {
        facts.actions.iter().filter(|action| action.tool.as_deref().is_some_and(wanted)).collect()
    };
    let unknown = called(&|tool| bundle.registry.get(tool).is_none());
    let inferred = called(&|tool| bundle.registry.get(tool).is_some_and(|tool| tool.inferred));
    let at = |actions: &[&ActionFact]| -> Vec<u64> { actions.iter().map(|action| action.proposed).collect() };
    let went =
        |actions: &[&ActionFact]| actions.iter().filter(|action| action.went_ahead().is_some()).count();
    [
        risk(
            &at(&unknown),
            "Tools that the registry does not know",
            || {
                format!(
                    "{} of {} ({}), of which {} went ahead; the bundle answers unknown tools with *{}*.",
                    count(unknown.len(), "call", "calls"),
                    tool_names(&unknown),
                    events(&at(&unknown)),
                    went(&unknown),
                    bundle.unknown_tools
                )
            },
            "describe them in `tools/`, or set `unknown_tools = \"deny\"`",
        ),
        risk(
            &at(&inferred),
            "Tools whose classification was guessed",
            || {
                format!(
                    "{} of {} ({}), classified only by what their server says.",
                    count(inferred.len(), "call", "calls"),
                    tool_names(&inferred),
                    events(&at(&inferred))
                )
            },
            "review their entries in `tools/` and remove `inferred`",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Tools that servers listed and nobody classified, and those that are described again.
pub(super) fn offered(input: &PackInput<'_>, bundle: &Bundle) -> Vec<Risk> {
    let (mut unknown, mut changed) = (BTreeMap::new(), BTreeMap::new());
    for event in input.record.events() {
        let EventBody::Config(ConfigChange::ToolsListed { tools, .. }) = &event.body else { continue };
        for tool in tools {
            if bundle.registry.get(&tool.name).is_none() {
                unknown.entry(tool.name.as_str()).or_insert(event.seq);
            }
            if tool.changed_from.is_some() {
                changed.entry(tool.name.as_str()).or_insert(event.seq);
            }
        }
    }
    let at = |tools: &BTreeMap<&str, u64>| {
        let mut at: Vec<u64> = tools.values().copied().collect();
        at.sort_unstable();
        at.dedup();
        at
    };
    let listed = |tools: &BTreeMap<&str, u64>| {
        let named = names(tools.keys().copied());
        format!("{}: {named} ({})", count(tools.len(), "tool", "tools"), events(&at(tools)))
    };
    [
        risk(
            &at(&unknown),
            "Tools on offer that are not classified",
            || {
                format!(
                    "Servers offered the agent tools that are not in the registry, {}; the bundle answers calls of such tools with *{}*.",
                    listed(&unknown),
                    bundle.unknown_tools
                )
            },
            "describe them in `tools/`, or set `unknown_tools = \"deny\"`",
        ),
        risk(
            &at(&changed),
            "Tools whose description changed",
            || format!("Servers changed the descriptions of {} since a person accepted them.", listed(&changed)),
            "review the change with `portcullis tools changed`, then accept it or remove the server",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Hooks at which nothing came up, with the guards that had nothing to look at.
pub(super) fn hooks(input: &PackInput<'_>, facts: &Facts) -> Vec<Risk> {
    let mut risks = Vec::new();
    let why = [
        (Hook::Input, "what the user said", "have the surface report inputs"),
        (Hook::Observation, "what tools returned", "have the surface report outcomes with their content"),
        (Hook::Output, "what the agent replied", "have the surface report replies"),
    ];
    for (hook, what, reduce) in why {
        // Without a call that went ahead there is no result to look at.
        let expected = match hook {
            Hook::Observation => {
                facts.actions.iter().any(|action| action.tool.is_some() && action.went_ahead().is_some())
            }
            _ => true,
        };
        if !expected || !facts.looked_at(hook).is_empty() {
            continue;
        }
        let guards: Vec<&str> =
            input.guards.iter().filter(|guard| guard.hooks.contains(&hook)).map(|guard| guard.id).collect();
        risks.push(Risk {
            title: "Guards that had nothing to look at",
            fact: format!(
                "The record has nothing of {what}, so {} at the hook {} never ran: {}.",
                count(guards.len(), "guard", "guards"),
                hook_word(hook),
                all_names(guards)
            ),
            reduce,
        });
    }
    risks
}

/// What the bundle leaves open, where the run had use for it.
pub(super) fn unset(input: &PackInput<'_>, facts: &Facts, bundle: &Bundle) -> Vec<Risk> {
    let calls: Vec<u64> =
        facts.actions.iter().filter(|action| action.tool.is_some()).map(|action| action.proposed).collect();
    let mut risks = Vec::new();
    let policy = input.record.opened().and_then(|opened| bundle.policy(&opened.policy));
    if let Some(policy) = policy {
        let mut missing = Vec::new();
        for (name, set) in [
            ("max_bytes", policy.max_bytes.is_some()),
            ("max_cost", policy.max_cost_micros.is_some()),
            ("principal", policy.principal.is_some()),
        ] {
            if !set {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            risks.extend(risk(
                &calls,
                "Limits that the policy does not set",
                || {
                    format!(
                        "{} judged without {}, which {} does not set.",
                        count(calls.len(), "call was", "calls were"),
                        names(missing),
                        code(&policy.name)
                    )
                },
                "set them in the policy; `principal` bounds all runs of one principal together",
            ));
        }
    }
    if bundle.access.files.is_empty() {
        risks.extend(risk(
            &calls,
            "No access policies",
            || {
                format!(
                    "No rule limits access to resources: {} judged by type and limits alone.",
                    count(calls.len(), "call was", "calls were")
                )
            },
            "write `access/*.cedar`",
        ));
    }
    if bundle.tests.is_empty() {
        risks.push(Risk {
            title: "Policies without cases",
            fact: format!(
                "The bundle {} has no file in `tests/`: the verdicts of its policies are not tested.",
                code(&bundle.digest().to_string())
            ),
            reduce: "write cases and run `portcullis policy test`",
        });
    }
    risks
}
