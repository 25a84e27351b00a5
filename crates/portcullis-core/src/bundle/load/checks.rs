//! What holds between the files of a bundle: names are unique, and what is named is there.

use std::collections::{BTreeMap, BTreeSet};

use super::{Credential, MAIN_FILE, Parts, Placed, duplicate, oauth, unknown};
use crate::bundle::diagnostic::Diagnostic;
use crate::bundle::settings::FunctionRole;
use crate::infer::TOOL_TYPES;
use crate::limits::{KEYWORDS_MAX, POLICIES_MAX, TOOLS_MAX};
use crate::tool::SEED_TYPES;

/// Names that two tools have, and tools that are named and not there.
pub(super) fn check_tools(parts: &Parts, diagnostics: &mut Vec<Diagnostic>) {
    let mut names = BTreeMap::new();
    for (number, tool) in parts.tools.iter().enumerate() {
        for name in [&tool.value.name, &tool.value.id] {
            if names.insert(name.as_str(), number).is_some_and(|other| other != number) {
                diagnostics.push(duplicate("tool", name, &tool.place));
            }
        }
    }
    if let Some(tool) = parts.tools.get(TOOLS_MAX) {
        let mut diagnostic = tool.place.clone();
        diagnostic.message = format!("more than {TOOLS_MAX} tools");
        diagnostics.push(diagnostic);
    }
    let valid: Vec<&str> = names.keys().copied().collect();
    for (name, role) in &parts.functions {
        if let FunctionRole::CallTool(tool) = role
            && !names.contains_key(tool.as_str())
        {
            let message = format!("the function `{name}` calls the tool `{tool}`, which is not listed");
            let diagnostic = Diagnostic::new("functions/", "", 0..0, message);
            diagnostics.push(diagnostic.did_you_mean(tool, valid.iter().copied()));
        }
    }
    for tool in parts.plan_tools.iter().filter(|tool| !names.contains_key(tool.value.as_str())) {
        diagnostics.push(unknown("tool", tool, &valid));
    }
}

/// The same for runtime policies, plans and types of tools.
pub(super) fn check_policies(parts: &Parts, diagnostics: &mut Vec<Diagnostic>) {
    if parts.policies.is_empty() && parts.main.is_some() && diagnostics.is_empty() {
        let message = "the bundle has no runtime policy";
        diagnostics
            .push(Diagnostic::new(MAIN_FILE, "", 0..0, message).help("add a [[policy]] to policies/*.toml"));
    }
    let mut names = BTreeSet::new();
    for policy in &parts.policies {
        if !names.insert(&policy.value.name) {
            diagnostics.push(duplicate("runtime policy", &policy.value.name, &policy.place));
        }
    }
    let mut plans = BTreeSet::new();
    for plan in &parts.plans {
        if !plans.insert(&plan.value.name) {
            diagnostics.push(duplicate("plan", &plan.value.name, &plan.place));
        }
    }
    let keywords: usize = parts.policies.iter().map(|policy| policy.value.restricted_keywords.len()).sum();
    if parts.policies.len() > POLICIES_MAX || keywords > KEYWORDS_MAX {
        let message = format!("more than {POLICIES_MAX} runtime policies or {KEYWORDS_MAX} keywords");
        diagnostics.push(Diagnostic::new(MAIN_FILE, "", 0..0, message));
    }
    let tool_types = parts.tools.iter().map(|tool| tool.value.tool_type.as_str());
    let known: BTreeSet<&str> = SEED_TYPES.into_iter().chain(TOOL_TYPES).chain(tool_types).collect();
    let valid: Vec<&str> = known.iter().copied().collect();
    for allowed in parts.allowed_types.iter().filter(|t| !known.contains(t.value.as_str())) {
        diagnostics.push(unknown("tool type", allowed, &valid));
    }
}

/// The policies of credentials against those that there are.
pub(super) fn check_credentials(
    credentials: &[Placed<Credential>],
    policies: &[&str],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for credential in credentials {
        let policy = credential.value.policy.as_ref();
        if let Some(policy) = policy.filter(|policy| !policies.contains(&policy.as_str())) {
            let wanted = Placed { value: policy.clone(), place: credential.place.clone() };
            diagnostics.push(unknown("runtime policy", &wanted, policies));
        }
    }
}

/// The policies that the settings of OAuth name against those that there are.
pub(super) fn check_oauth(oauth: &oauth::Read, policies: &[&str], diagnostics: &mut Vec<Diagnostic>) {
    for wanted in oauth.policies.iter().filter(|wanted| !policies.contains(&wanted.value.as_str())) {
        diagnostics.push(unknown("runtime policy", wanted, policies));
    }
}
