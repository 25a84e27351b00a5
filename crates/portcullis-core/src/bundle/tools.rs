//! Reads `tools/*.toml`.

use serde_json::json;

use super::placed::{Placed, name_field};
use super::toml_table::{Field, File, Table};
use crate::infer::{EFFECTS, EffectArgument};
use crate::tool::{ArgsSchema, Tool};

pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<Placed<Tool>> {
    table.tables("tool").into_iter().filter_map(|table| read_tool(file, table)).collect()
}

fn read_tool(file: &File<'_>, mut table: Table<'_, '_>) -> Option<Placed<Tool>> {
    let name = name_field(file, &mut table, "name");
    let id = table.string("id");
    let tool_type = name_field(file, &mut table, "type");
    let description = table.string("description").map(|field| field.value).unwrap_or_default();
    let side_effecting = table.boolean("side_effecting");
    if side_effecting.is_none() {
        table.missing("side_effecting");
    }
    let risk = table.fraction("risk").unwrap_or(0.5);
    let cost_micros = table.millionths("cost").unwrap_or(0);
    let trusted = table.boolean("trusted").unwrap_or(false);
    let excise = table.boolean("excise").unwrap_or(true);
    let enabled = table.boolean("enabled").unwrap_or(true);
    let inferred = table.boolean("inferred").unwrap_or(false);
    let args = table.json("args");
    let effects = table.entries("effects").unwrap_or_default();
    let span = table.span.clone();
    table.finish();
    for (_, effect) in effects.iter().filter(|(_, effect)| !EFFECTS.contains(&effect.value.as_str())) {
        let message = format!("`{}` is not an effect", effect.value);
        file.report(file.at(effect.span.clone(), message).did_you_mean(&effect.value, EFFECTS));
    }
    let schema = args.as_ref().map_or_else(|| json!({"type": "object"}), |field| field.value.clone());
    let args = match ArgsSchema::compile(&schema) {
        Ok(args) => args,
        Err(message) => {
            file.report(file.at(args.map_or(span, |field| field.span), format!("`args` is {message}")));
            return None;
        }
    };
    // An effect on an argument that no call has would never be read.
    let declared = args.declared_arguments();
    for (argument, _) in &effects {
        if let Some(known) = declared.as_ref().filter(|known| !known.contains(argument.value.as_str())) {
            let message =
                format!("`effects` names the argument `{}`, which `args` does not declare", argument.value);
            let known = known.iter().copied();
            file.report(file.at(argument.span.clone(), message).did_you_mean(&argument.value, known));
        }
    }
    let effect = |(argument, effect): (Field<String>, Field<String>)| EffectArgument {
        argument: argument.value,
        effect: effect.value,
    };
    let (name, tool_type) = (name?, tool_type?);
    let place = file.at(name.span, "");
    let value = Tool {
        id: id.map_or_else(|| name.value.clone(), |id| id.value),
        name: name.value,
        tool_type: tool_type.value,
        description,
        side_effecting: side_effecting?,
        risk,
        cost_micros,
        trusted,
        excise,
        enabled,
        effects: effects.into_iter().map(effect).collect(),
        inferred,
        args,
    };
    Some(Placed { value, place })
}
