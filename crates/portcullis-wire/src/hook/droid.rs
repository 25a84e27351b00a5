//! Factory Droid: `docs/reference/hooks-reference.mdx` of Factory-AI/factory at a80aa7c (24 July 2026), with
//! <https://docs.factory.ai/harness/hooks>, which is newer and says that events stand at the top of `hooks.json`.
//!
//! The arguments of its tools are documented for `Execute` and `Create` alone; the others are as programs that were tried
//! with releases 0.161 to 0.186 take them. It names no calls, tells no failures, and replaces no results.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{beside, blocked, object};
use super::shape::{Kind, Names, Powers, Renamed, Shape, any_response, known};
use super::{Agent, Answer, Decision, HookCall, HookError, HookEvent, claude_code};

const EDITED: Renamed = &[("old_str", "old_string"), ("new_str", "new_string")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Droid,
    id: "droid",
    name: "Factory Droid",
    powers: Powers { withholds_prompts: true, shows_notes: true, ..Powers::NONE },
    names: &Names::CLAUDE,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("UserPromptSubmit", Kind::Prompt),
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
        ("Stop", Kind::Stop),
    ],
    tools: &[
        known("Execute", "Bash", &[]),
        known("Read", "Read", &[]),
        known("Create", "Write", &[]),
        known("Edit", "Edit", EDITED),
        known("ApplyPatch", "ApplyPatch", &[("input", "patch")]),
        known("Grep", "Grep", &[("glob_pattern", "glob")]),
        known("Glob", "Glob", &[("folder", "path")]),
        known("LS", "LS", &[("directory_path", "path")]),
        known("FetchUrl", "WebFetch", &[]),
        known("WebSearch", "WebSearch", &[]),
        known("TodoWrite", "TodoWrite", &[]),
        known("AskUser", "AskUserQuestion", &[]),
        known("ExitSpecMode", "ExitPlanMode", &[]),
        known("Skill", "Skill", &[]),
        known("Task", "Agent", &[]),
    ],
    adapt,
    answered: any_response,
    fields,
};

fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    match call.tool.as_str() {
        "Edit" => several_edits(call),
        "Glob" => one_pattern(call),
        _ => Ok(()),
    }
}

/// One call may make several changes of a file: `{"file_path": …, "changes": [{"old_str": …, "new_str": …}]}`.
fn several_edits(call: &mut HookCall) -> Result<(), HookError> {
    let Some(arguments) = call.arguments.as_object_mut() else { return Ok(()) };
    let Some(mut changes) = arguments.remove("changes") else { return Ok(()) };
    for change in changes.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        for (theirs, ours) in EDITED {
            if let Some(text) = change.remove(*theirs) {
                change.insert((*ours).to_owned(), text);
            }
        }
    }
    if arguments.insert("edits".to_owned(), changes).is_some() {
        return Err(HookError::TwoNames("edits"));
    }
    "MultiEdit".clone_into(&mut call.tool);
    Ok(())
}

/// It takes several patterns: any of them, which is what braces say.
fn one_pattern(call: &mut HookCall) -> Result<(), HookError> {
    let Some(arguments) = call.arguments.as_object_mut() else { return Ok(()) };
    let Some(Value::Array(patterns)) = arguments.get("patterns") else { return Ok(()) };
    let Some(patterns) = patterns.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let pattern = match patterns.as_slice() {
        [] => return Ok(()),
        [one] => (*one).to_owned(),
        several => format!("{{{}}}", several.join(",")),
    };
    arguments.remove("patterns");
    match arguments.insert("pattern".to_owned(), pattern.into()) {
        Some(_) => Err(HookError::TwoNames("pattern")),
        None => Ok(()),
    }
}

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing => Map::new(),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => {
            object([("hookSpecificOutput", claude_code::call(&Decision::Deny(why.clone())))])
        }
        Answer::Call(decision) => object([("hookSpecificOutput", claude_code::call(decision))]),
        Answer::PromptBlocked(why) | Answer::GoOn(why) => blocked(why),
        Answer::Result(result) => beside(result, "PostToolUse"),
    }
}

#[cfg(test)]
mod tests;
