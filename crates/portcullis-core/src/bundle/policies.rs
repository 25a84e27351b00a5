//! Reads `policies/*.toml`.

use super::placed::{Placed, name_field, placed};
use super::toml_table::{File, Table};
use crate::policy::{PrincipalBudget, RuntimePolicy, Window};

pub(super) type PolicyParts = (Placed<RuntimePolicy>, Vec<Placed<String>>);

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<PolicyParts> {
    table.tables("policy").into_iter().filter_map(|table| read_policy(file, table)).collect()
}

fn read_policy(file: &File<'_>, mut table: Table<'_, '_>) -> Option<PolicyParts> {
    let name = name_field(file, &mut table, "name");
    let types = table.strings("allowed_types");
    let max_steps = table.integer("max_steps", 1);
    let max_side_effects = table.integer("max_side_effects", 0);
    // A limit that is left out must not mean "no limit".
    for (field, missing) in [
        ("allowed_types", types.is_none()),
        ("max_steps", max_steps.is_none()),
        ("max_side_effects", max_side_effects.is_none()),
    ] {
        if missing {
            table.missing(field);
        }
    }
    let max_bytes = table.integer("max_bytes", 1).map(u64::from);
    let max_cost_micros = table.millionths("max_cost");
    let principal = table.table("principal").and_then(|table| read_principal(file, table));
    let approval = table.boolean("approval_for_side_effects").unwrap_or(false);
    let keywords = table.strings("restricted_keywords").unwrap_or_default();
    let escalate = table.boolean("escalate_on_verification_fail").unwrap_or(true);
    table.finish();
    for keyword in &keywords {
        if crate::normalise::keyword(&keyword.value).is_empty() {
            file.report(file.at(keyword.span.clone(), "an empty keyword never matches"));
        }
    }
    let name = name?;
    let types = types?;
    let place = file.at(name.span, "");
    let policy = RuntimePolicy {
        name: name.value,
        allowed_types: types.iter().map(|field| field.value.clone()).collect(),
        max_steps: max_steps?,
        max_side_effects: max_side_effects?,
        max_bytes,
        max_cost_micros,
        principal,
        approval_for_side_effects: approval,
        restricted_keywords: keywords.into_iter().map(|field| field.value).collect(),
        escalate_on_verification_fail: escalate,
    };
    let types = types.into_iter().map(|field| placed(file, field)).collect();
    Some((Placed { value: policy, place }, types))
}

/// The budget of all runs of a principal. One without a window or without any limit would mean *no limit*.
fn read_principal(file: &File<'_>, mut table: Table<'_, '_>) -> Option<PrincipalBudget> {
    let span = table.span.clone();
    let words = Window::ALL.map(|window| (window.as_str(), window));
    let per = table.word("per", &words);
    if per.is_none() {
        table.missing("per");
    }
    let max_steps = table.integer("max_steps", 1).map(u64::from);
    let max_side_effects = table.integer("max_side_effects", 0).map(u64::from);
    let max_bytes = table.integer("max_bytes", 1).map(u64::from);
    let max_cost_micros = table.millionths("max_cost");
    table.finish();
    let limits = [max_steps, max_side_effects, max_bytes, max_cost_micros];
    if limits.iter().all(Option::is_none) {
        let message =
            "the principal has no limit: set `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`";
        file.report(file.at(span, message));
        return None;
    }
    per.map(|per| PrincipalBudget { per, max_steps, max_side_effects, max_bytes, max_cost_micros })
}
