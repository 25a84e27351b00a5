//! Tools whose name reads and whose arguments can hold a program: their draft is side-effecting until a person says
//! otherwise.

use portcullis_core::infer::{Inferred, UNKNOWN_RISK, infer, words_of};
use portcullis_wire::mcp::list::ListedTool;
use serde_json::{Value, json};

/// How deep a schema is searched for arguments.
const DEPTH_MAX: usize = 16;

/// Makes the draft of such a tool side-effecting. What to warn of; none where the name says that the tool acts.
pub(super) fn raise(tool: &ListedTool, schema_usable: bool, inferred: &mut Inferred) -> Option<String> {
    let by_words = infer(&tool.name, &tool.description, &json!({}), &tool.hints);
    if by_words.side_effecting {
        return None;
    }
    let declared =
        inferred.effects.iter().find(|held| matches!(held.effect.as_str(), "shell" | "code" | "sql"));
    if let Some(held) = declared {
        return Some(format!(
            "its name reads, but its argument `{}` holds {}: drafted as side-effecting",
            held.argument, held.effect
        ));
    }
    let why = match program_argument(&tool.input_schema, DEPTH_MAX) {
        Some(argument) => format!("its name reads, but its argument `{argument}` may hold a program"),
        None if !schema_usable => "its name reads, but nobody knows its arguments".to_owned(),
        None => return None,
    };
    if !inferred.side_effecting {
        inferred.tool_type = "OTHER".to_owned();
        inferred.side_effecting = true;
        inferred.risk = inferred.risk.max(UNKNOWN_RISK);
    }
    Some(format!("{why}: drafted as side-effecting; change it if that is wrong"))
}

/// The first argument, at any depth, that is named after something that is run.
fn program_argument(schema: &Value, depth: usize) -> Option<&str> {
    let below = depth.checked_sub(1)?;
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            let named = properties.into_iter().flatten().find(|(name, property)| is_program(name, property));
            named
                .map(|(name, _)| name.as_str())
                .or_else(|| object.values().find_map(|value| program_argument(value, below)))
        }
        Value::Array(items) => items.iter().find_map(|item| program_argument(item, below)),
        _ => None,
    }
}

fn is_program(name: &str, property: &Value) -> bool {
    // One of a few given words, a number or a switch is no program.
    let fixed = property.get("enum").is_some()
        || property.get("const").is_some()
        || matches!(property.get("type").and_then(Value::as_str), Some("boolean" | "integer" | "number"));
    let words = words_of(name);
    let runs = |word: &String| {
        matches!(
            word.as_str(),
            "cmd"
                | "cmds"
                | "command"
                | "commands"
                | "cmdline"
                | "script"
                | "scripts"
                | "shell"
                | "sql"
                | "exec"
                | "eval"
        )
    };
    // A postal code is none.
    !fixed && (words.iter().any(runs) || matches!(words.as_slice(), [word] if word == "code"))
}
