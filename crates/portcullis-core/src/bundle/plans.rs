//! Reads `plans/*.toml`.

use serde_json::json;

use super::placed::{Placed, name_field, placed};
use super::snapshot::{Plan, PlanStep};
use super::toml_table::{File, Table};
use crate::limits::PLAN_STEPS_MAX;

/// A plan with the tools that it calls, each with its place.
pub(super) type PlanParts = (Placed<Plan>, Vec<Placed<String>>);

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<PlanParts> {
    table.tables("plan").into_iter().filter_map(|table| read_plan(file, table)).collect()
}

fn read_plan(file: &File<'_>, mut table: Table<'_, '_>) -> Option<PlanParts> {
    let name = name_field(file, &mut table, "name");
    let prompt = table.string("prompt").map(|field| field.value).unwrap_or_default();
    let mut tools = Vec::new();
    let mut steps = Vec::new();
    for mut step in table.tables("step") {
        let action = step.string("action");
        if action.is_none() {
            step.missing("action");
        }
        let tool = step.string("tool");
        let args = step.json("args").map_or_else(|| json!({}), |field| field.value);
        step.finish();
        steps.push(PlanStep {
            action: action.map(|field| field.value).unwrap_or_default(),
            tool: tool.as_ref().map(|field| field.value.clone()),
            args,
        });
        tools.extend(tool.map(|field| placed(file, field)));
    }
    let span = table.span.clone();
    table.finish();
    if steps.is_empty() || steps.len() > PLAN_STEPS_MAX {
        file.report(file.at(span, format!("a plan must have 1 to {PLAN_STEPS_MAX} steps")));
    }
    let name = name?;
    let place = file.at(name.span, "");
    Some((Placed { value: Plan { name: name.value, prompt, steps }, place }, tools))
}
