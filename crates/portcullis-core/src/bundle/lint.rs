//! What a bundle may contain but probably does not intend.
//!
//! A lint is no mistake: the bundle loads. Each has a name, so that it can be found in the manual, and a place.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::diagnostic::{Diagnostic, nearest};
use super::snapshot::Bundle;
use crate::normalise;
use crate::policy::RuntimePolicy;

/// Something that is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    /// Its name: `shadowed-keyword`.
    pub name: &'static str,
    /// Where, what, and what to do.
    pub diagnostic: Diagnostic,
}

/// The lints of runtime policies, the registry, `[authority]` and profiles, in order of the bundle.
pub(super) fn lint(bundle: &Bundle) -> Vec<Lint> {
    let mut lints = Lints(Vec::new());
    for (policy, place) in bundle.policies.iter().zip(&bundle.policy_places) {
        types(bundle, policy, place, &mut lints);
        keywords(policy, place, &mut lints);
        limits(policy, place, &mut lints);
    }
    tools(bundle, &mut lints);
    authority(bundle, &mut lints);
    profiles(bundle, &mut lints);
    lints.0
}

struct Lints(Vec<Lint>);

impl Lints {
    fn push(&mut self, name: &'static str, place: &Diagnostic, message: String, help: &str) {
        let diagnostic = Diagnostic { message, ..place.clone() }.help(help);
        self.0.push(Lint { name, diagnostic });
    }
}

fn types(bundle: &Bundle, policy: &RuntimePolicy, place: &Diagnostic, lints: &mut Lints) {
    let known: BTreeSet<&str> = bundle.registry.iter().map(|tool| tool.tool_type.as_str()).collect();
    for allowed in policy.allowed_types.iter().filter(|allowed| !known.contains(allowed.as_str())) {
        let message = format!("`{}` allows the type `{allowed}`, which no tool has", policy.name);
        lints.push("unused-type", place, message, "remove the type, or list the tools that have it");
    }
    let all = known.len() > 1 && known.iter().all(|known| policy.allowed_types.contains(*known));
    let unhindered = policy.restricted_keywords.is_empty() && !policy.approval_for_side_effects;
    // A step limit is in every policy; one on side effects that never binds does not narrow anything.
    if all && unhindered && policy.max_side_effects >= policy.max_steps && bundle.access.files.is_empty() {
        let message =
            format!("`{}` allows every type of tool, without keywords, approval or limit", policy.name);
        lints.push("over-broad", place, message, "list only the types that the agent needs");
    }
}

fn keywords(policy: &RuntimePolicy, place: &Diagnostic, lints: &mut Lints) {
    let normal: Vec<String> =
        policy.restricted_keywords.iter().map(|keyword| normalise::keyword(keyword)).collect();
    for (number, (keyword, text)) in policy.restricted_keywords.iter().zip(&normal).enumerate() {
        let shadow = normal.iter().enumerate().find(|(other, shorter)| {
            *other != number && text.contains(shorter.as_str()) && (*shorter != text || *other < number)
        });
        let Some(by) = shadow.and_then(|(other, _)| policy.restricted_keywords.get(other)) else { continue };
        let message = format!(
            "the keyword `{keyword}` of `{}` is redundant: `{by}` matches everything that it matches",
            policy.name
        );
        lints.push("shadowed-keyword", place, message, "remove it");
    }
}

fn limits(policy: &RuntimePolicy, place: &Diagnostic, lints: &mut Lints) {
    if policy.approval_for_side_effects && policy.max_side_effects == 0 {
        let message = format!("`{}` requires approvals that can never be used", policy.name);
        let help = "`max_side_effects = 0` denies the call even after a grant; raise it, or remove `approval_for_side_effects`";
        lints.push("useless-approval", place, message, help);
    }
    if policy.max_side_effects > policy.max_steps {
        let message = format!(
            "`{}` allows {} side effects in {} steps: that limit is never reached",
            policy.name, policy.max_side_effects, policy.max_steps
        );
        lints.push("unreachable-limit", place, message, "lower `max_side_effects`");
    }
}

fn tools(bundle: &Bundle, lints: &mut Lints) {
    for (tool, place) in bundle.registry.iter().zip(&bundle.tool_places) {
        let allowed = bundle.policies.iter().any(|policy| policy.allowed_types.contains(&tool.tool_type));
        if tool.enabled && !allowed {
            let message = format!("no policy allows the tool `{}` (type {})", tool.name, tool.tool_type);
            lints.push("unreachable-tool", place, message, "allow its type, or set `enabled = false`");
        }
        if tool.inferred {
            let message = format!("the classification of `{}` is not confirmed", tool.name);
            lints.push("unconfirmed-tool", place, message, "check the entry and remove `inferred = true`");
        }
    }
}

fn authority(bundle: &Bundle, lints: &mut Lints) {
    let tools: Vec<&str> =
        bundle.registry.iter().flat_map(|tool| [tool.name.as_str(), tool.id.as_str()]).collect();
    let mut seen = BTreeSet::new();
    for entry in &bundle.authority_entries {
        let (list, value) = (entry.list, entry.value.as_str());
        if !seen.insert((list, value)) {
            let message = format!("`{value}` is listed twice in `{list}`");
            lints.push("double-entry", &entry.place, message, "remove one of them");
        } else if list == "directories" && !tools.is_empty() {
            let tool = value.rsplit_once('/').map_or(value, |(_, tool)| tool);
            if !tools.contains(&tool) {
                let message = format!("`{value}` in `directories` is a tool that `tools/` does not list");
                let help = nearest(tool, &tools).map_or_else(
                    || "list the tool, or remove the entry".to_owned(),
                    |tool| format!("did you mean `{tool}`?"),
                );
                lints.push("unlisted-directory", &entry.place, message, &help);
            }
        }
    }
}

fn profiles(bundle: &Bundle, lints: &mut Lints) {
    /// What is more than a project needs, and has what nothing contained should read.
    const WIDE: [&str; 8] = ["/", "~", "~/", "{home}", "/home", "/root", "/Users", "/var"];
    for (name, (place, used)) in &bundle.contain.places {
        if !used {
            let message = format!("nothing uses the profile `{name}`");
            lints.push("unused-profile", place, message, "name it in `[contain]`, or remove it");
        }
        let Some(profile) = bundle.contain.profiles.get(name) else { continue };
        let wide = |paths: &[PathBuf]| {
            paths.iter().find(|path| WIDE.iter().any(|wide| path.as_os_str() == *wide)).cloned()
        };
        for (field, paths) in
            [("read", &profile.read), ("execute", &profile.execute), ("write", &profile.write)]
        {
            if let Some(path) = wide(paths) {
                let message =
                    format!("`{name}` has `{}` in `{field}`: keys and settings lie there", path.display());
                lints.push("wide-profile", place, message, "name the folders that are needed");
            }
        }
    }
}
