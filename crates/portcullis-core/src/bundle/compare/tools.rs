//! The registry of tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Direction, Found};
use crate::bundle::Bundle;
use crate::tool::{ArgsSchema, Tool};
use crate::verdict::Verdict;

impl Found {
    pub(super) fn tools(&mut self, old: &Bundle, new: &Bundle) {
        for tool in old.registry.iter() {
            match new.registry.iter().find(|other| other.name == tool.name) {
                Some(other) => self.tool(tool, other, (old, new)),
                None => {
                    let direction = when_gone(tool, new.unknown_tools);
                    let after = format!("not listed, unknown_tools = {}", new.unknown_tools);
                    self.push(format!("tool `{}`", tool.name), listed(tool), after, direction);
                }
            }
        }
        for tool in
            new.registry.iter().filter(|tool| !old.registry.iter().any(|other| other.name == tool.name))
        {
            let direction = when_new(tool, old.unknown_tools);
            let before = format!("not listed, unknown_tools = {}", old.unknown_tools);
            self.push(format!("tool `{}`", tool.name), before, listed(tool), direction);
        }
    }

    fn tool(&mut self, old: &Tool, new: &Tool, (before, after): (&Bundle, &Bundle)) {
        let Tool {
            id,
            name,
            tool_type,
            description,
            side_effecting,
            risk,
            cost_micros,
            trusted,
            excise,
            enabled,
            effects: _,
            inferred,
            args,
        } = old;
        let part = |field: &str| format!("tool `{name}` {field}");
        self.value(part("id"), id, &new.id);
        if *tool_type != new.tool_type {
            let direction = match widens(before, tool_type, after, &new.tool_type) {
                true => Direction::Loosened,
                // Access policies may tell types apart too.
                false => Direction::Changed,
            };
            self.push(part("type"), tool_type.clone(), new.tool_type.clone(), direction);
        }
        // Where effects are declared, nothing is read out of the description.
        if old.effects.is_empty() || new.effects.is_empty() {
            self.value(part("description"), description, &new.description);
        } else {
            self.neutral(part("description"), description, &new.description);
        }
        self.flag(part("side_effecting"), *side_effecting, new.side_effecting, true);
        if risk.total_cmp(&new.risk).is_ne() {
            let direction = if new.risk < *risk { Direction::Loosened } else { Direction::Tightened };
            self.push(part("risk"), risk.to_string(), new.risk.to_string(), direction);
        }
        if *cost_micros != new.cost_micros {
            let direction =
                if new.cost_micros < *cost_micros { Direction::Loosened } else { Direction::Tightened };
            let shown = |micros: u64| format!("{micros}e-6");
            self.push(part("cost"), shown(*cost_micros), shown(new.cost_micros), direction);
        }
        self.flag(part("trusted"), *trusted, new.trusted, false);
        self.flag(part("excise"), *excise, new.excise, true);
        self.flag(part("enabled"), *enabled, new.enabled, false);
        self.value(part("inferred"), inferred, &new.inferred);
        if args.as_value() != new.args.as_value() {
            let (before, after) = (args.as_value().to_string(), new.args.as_value().to_string());
            self.push(part("args"), before, after, schema_direction(args, &new.args));
        }
        self.declared_effects(&part("effects"), old, new);
    }

    fn declared_effects(&mut self, part: &str, old: &Tool, new: &Tool) {
        let of = |tool: &Tool| -> BTreeMap<String, String> {
            tool.effects.iter().map(|held| (held.argument.clone(), held.effect.clone())).collect()
        };
        let (before, after) = (of(old), of(new));
        if before == after {
            return;
        }
        let direction = if before.keys().any(|argument| !after.contains_key(argument)) {
            // What was declared is read no longer, or is guessed from names where nothing is declared.
            Direction::Loosened
        } else if !before.is_empty()
            && before.iter().all(|(argument, effect)| after.get(argument) == Some(effect))
        {
            Direction::Tightened
        } else {
            Direction::Changed
        };
        let shown = |held: &BTreeMap<String, String>| match held.is_empty() {
            true => "none declared".to_owned(),
            false => {
                let held = held.iter().map(|(argument, effect)| format!("{argument} = {effect}"));
                held.collect::<Vec<_>>().join(", ")
            }
        };
        self.push(part, shown(&before), shown(&after), direction);
    }
}

fn listed(tool: &Tool) -> String {
    let enabled = if tool.enabled { "listed" } else { "listed, disabled" };
    let effect = if tool.side_effecting { "side-effecting" } else { "not side-effecting" };
    format!("{enabled}, {}, {effect}, risk {}", tool.tool_type, tool.risk)
}

/// A tool that is listed no longer gets what `unknown_tools` says.
fn when_gone(tool: &Tool, unknown_tools: Verdict) -> Direction {
    if unknown_tools >= Verdict::Deny {
        Direction::Tightened
    } else if !tool.enabled || unknown_tools.permits() {
        Direction::Loosened
    } else {
        Direction::Changed
    }
}

/// A tool that is listed from now on got what `unknown_tools` says before.
fn when_new(tool: &Tool, unknown_tools: Verdict) -> Direction {
    if !tool.enabled {
        Direction::Tightened
    } else if !unknown_tools.permits() || !tool.side_effecting || tool.trusted {
        Direction::Loosened
    } else {
        Direction::Changed
    }
}

/// Whether a runtime policy allows the tool's new type that did not allow its old one.
fn widens(before: &Bundle, old_type: &str, after: &Bundle, new_type: &str) -> bool {
    let allows = |bundle: &Bundle, policy: &str, tool_type: &str| {
        let policy = bundle.policies().iter().find(|other| other.name == policy);
        policy.is_some_and(|policy| policy.allowed_types.iter().any(|allowed| allowed == tool_type))
    };
    let mut policies = after.policies().iter();
    policies.any(|policy| allows(after, &policy.name, new_type) && !allows(before, &policy.name, old_type))
}

/// Looser if any constraint is gone or wider, whatever else is narrower.
fn schema_direction(old: &ArgsSchema, new: &ArgsSchema) -> Direction {
    let any = json!({"type": "object"});
    if *old.as_value() == any {
        return Direction::Tightened;
    }
    let more = match (old.declared_arguments(), new.declared_arguments()) {
        (Some(_), None) => true,
        (Some(old), Some(new)) => !new.is_subset(&old),
        (None, _) => false,
    };
    if more || opens(old.as_value(), new.as_value()) { Direction::Loosened } else { Direction::Changed }
}

/// Whether a keyword of a schema is gone or wider, at any depth. Loading bounds the depth.
fn opens(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().any(|(keyword, before)| {
            let informs = matches!(keyword.as_str(), "title" | "description" | "default" | "examples");
            new.get(keyword)
                .map_or(!informs, |after| before != after && widens_keyword(keyword, before, after))
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            old.iter().zip(new).any(|(old, new)| opens(old, new))
        }
        (Value::Bool(false), _) => true,
        _ => false,
    }
}

fn widens_keyword(keyword: &str, old: &Value, new: &Value) -> bool {
    let lacks = |all: &Value, of: &Value| match (all.as_array(), of.as_array()) {
        (Some(all), Some(of)) => of.iter().any(|entry| !all.contains(entry)),
        _ => false,
    };
    match (keyword, old.as_f64(), new.as_f64()) {
        (_, Some(old), Some(new)) if keyword.to_lowercase().contains("max") => new > old,
        (_, Some(old), Some(new)) if keyword.to_lowercase().contains("min") => new < old,
        ("required", ..) => lacks(new, old),
        ("enum" | "type", ..) if old.is_array() && new.is_array() => lacks(old, new),
        _ => opens(old, new),
    }
}
