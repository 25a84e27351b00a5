//! Arguments that would change how the others are judged: the folder in which a call runs, the one that it searches, further
//! words of a command line.
//!
//! Models send arguments that a tool does not have, and agents ignore them, as a rule. Judging a call in a folder that one of
//! those names would judge another call than the one that is made, so only arguments in the agent's table count. One that
//! names the folder in which the agent works anyway is left out, since it changes nothing whoever reads it. Any other is refused
//! rather than left out: releases add arguments, and the agent meant the call for another folder.

use portcullis_core::infer::{is_working_directory, words_of};
use serde_json::Value;

use super::shape::Renamed;
use super::{HookCall, HookError};

/// What bundles call the folder that a tool searches.
const SEARCHED: &str = "path";
/// Longest name of an argument in an error, in characters.
const SHOWN_MAX: usize = 64;

/// Takes out, or refuses, what a tool of the agent's own, which bundles call `ours`, is not known to have. Names are still the
/// agent's.
pub(super) fn keep_known(
    call: &mut HookCall,
    ours: &str,
    known: Renamed,
    directory: Option<&str>,
) -> Result<(), HookError> {
    let Some(arguments) = call.arguments.as_object_mut() else { return Ok(()) };
    let mut foreign = None;
    arguments.retain(|name, value| {
        if known.iter().any(|(theirs, _)| theirs == name) || !changes_others(name, ours, known) {
            return true;
        }
        let changes_nothing = is_nothing(value) || names_folder(name) && is_here(value, directory);
        if !changes_nothing {
            foreign.get_or_insert_with(|| name.chars().take(SHOWN_MAX).collect());
        }
        false
    });
    match foreign {
        None => Ok(()),
        Some(argument) => Err(HookError::ForeignArgument { tool: call.tool.clone(), argument }),
    }
}

/// Whether the gate would read an argument of this name as something that the others depend on.
fn changes_others(name: &str, ours: &str, known: Renamed) -> bool {
    if names_folder(name) {
        // Many tools have a `path` that bundles call so too.
        return name != SEARCHED || known.iter().any(|(_, meant)| *meant == SEARCHED);
    }
    let words = ["args", "argv", "arguments", "parameters"];
    ours == "Bash" && words.contains(&name.to_lowercase().as_str())
}

fn names_folder(name: &str) -> bool {
    let words = words_of(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    is_working_directory(name)
        || matches!(
            words.as_slice(),
            [SEARCHED]
                | ["dir" | "directory" | "folder" | "root", SEARCHED]
                | [.., "dir" | "directory" | "folder" | "root"]
        )
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether it is the folder in which the agent works, in so many letters.
fn is_here(value: &Value, directory: Option<&str>) -> bool {
    let bare = |folder: &str| folder.trim_end_matches('/').to_owned();
    value.as_str().is_some_and(|folder| {
        matches!(folder, "." | "./") || directory.is_some_and(|directory| bare(directory) == bare(folder))
    })
}

#[cfg(test)]
mod tests;
