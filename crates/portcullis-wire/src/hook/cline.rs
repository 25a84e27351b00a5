//! Cline, its CLI: `sdk/packages/core/src/hooks/hook-file-hooks.ts` of cline/cline at 21cb8d2 (22 August 2026), tools by
//! `sdk/packages/core/src/extensions/tools/schemas.ts` of the same commit.
//!
//! What is told twice, as it is (`tool_call`) and with every argument as a text (`preToolUse`), is taken as it is. The editor
//! tells the latter alone, so that its calls cannot be read. A denial ends the run. Several commands are each run in a
//! shell of their own.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{object, reason};
use super::shape::{Kind, Names, Powers, Renamed, Shape, Theirs, known, response, within};
use super::{Agent, Answer, Decision, HookCall, HookError, HookEvent, ToolResponse};
use crate::fields;

static NAMES: Names = Names {
    session: "taskId",
    roots: "workspaceRoots",
    event: "hookName",
    tool: "name",
    arguments: "input",
    id: "id",
    response: CALLED,
    reply: "outputText",
    inner: &["tool_call", CALLED, "turn"],
    ..Names::CLAUDE
};

/// A call that was made, with its output or its error.
const CALLED: &str = "tool_result";

const EDITED: Renamed = &[("path", "file_path"), ("old_text", "old_string"), ("new_text", "new_string")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Cline,
    id: "cline",
    name: "Cline",
    powers: Powers { stops_anyway: true, ..Powers::NONE },
    names: &NAMES,
    events: &[
        ("tool_call", Kind::Before),
        ("tool_result", Kind::After),
        ("agent_end", Kind::Stop),
        // Messages that hooks and tools add are told likewise.
        ("prompt_submit", Kind::Aside),
        // Of the editor, whose calls cannot be read: leaving them without an opinion would let them pass.
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
    ],
    tools: &[
        known("editor", "Edit", EDITED),
        known("apply_patch", "ApplyPatch", &[("input", "patch")]),
        known("skills", "Skill", &[]),
        known("ask_question", "AskUserQuestion", &[]),
    ],
    adapt,
    answered,
    fields,
};

fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    let Some(arguments) = call.arguments.as_object_mut() else { return Ok(()) };
    // What is not said may be `null`.
    arguments.retain(|_, value| !value.is_null());
    let read = match call.tool.as_str() {
        "run_commands" => only(arguments).and_then(commands).map(|read| ("Bash", read)),
        "read_files" => only(arguments).and_then(files),
        "search_codebase" => only(arguments).and_then(queries).map(|read| ("Grep", read)),
        "fetch_web_content" => only(arguments).and_then(requests).map(|read| ("WebFetch", read)),
        tool => match tool.split_once("__") {
            Some((server, name)) if call.theirs.is_none() => {
                let named = format!("mcp__{server}__{name}");
                call.theirs = Some(Theirs { tool: std::mem::replace(&mut call.tool, named), renamed: &[] });
                return Ok(());
            }
            _ => return Ok(()),
        },
    };
    // In a form that is not known it keeps its name, and is held.
    if let Some((ours, read)) = read {
        let theirs = std::mem::replace(&mut call.tool, ours.to_owned());
        call.theirs = Some(Theirs { tool: theirs, renamed: &[] });
        call.arguments = Value::Object(read);
    }
    Ok(())
}

/// The one argument of a call: of several, it depends on all of them which one counts.
fn only(arguments: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut all = arguments.iter();
    let (name, value) = all.next()?;
    all.next().is_none().then_some((name, value))
}

/// One text, or several.
fn texts(value: &Value) -> Option<Vec<&str>> {
    let texts = match value {
        Value::Array(values) => values.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?,
        value => vec![value.as_str()?],
    };
    (!texts.is_empty()).then_some(texts)
}

/// Command lines, which one shell after another runs.
fn commands((name, value): (&str, &Value)) -> Option<Map<String, Value>> {
    let commands = match name {
        "commands" => texts(value)?,
        "command" | "cmd" => vec![value.as_str()?],
        _ => return None,
    };
    let line = match commands.as_slice() {
        [one] => (*one).to_owned(),
        several => {
            let shell = |line: &&str| format!("sh -c '{}'", line.replace('\'', r"'\''"));
            several.iter().map(shell).collect::<Vec<_>>().join("\n")
        }
    };
    Some(object([("command", line.into())]))
}

/// Files, of which some lines may be wanted.
fn files((name, value): (&str, &Value)) -> Option<(&'static str, Map<String, Value>)> {
    if !matches!(name, "files" | "file_paths" | "paths") {
        return None;
    }
    let path = |file: &Value| match file {
        Value::Object(members) => {
            let mut paths =
                members.iter().filter(|(name, _)| !matches!(name.as_str(), "start_line" | "end_line"));
            let (name, path) = paths.next()?;
            let is_path =
                matches!(name.as_str(), "path" | "file_path" | "filePath") && paths.next().is_none();
            path.as_str().filter(|_| is_path).map(str::to_owned)
        }
        file => file.as_str().map(str::to_owned),
    };
    let several = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let paths = several.iter().map(path).collect::<Option<Vec<_>>>()?;
    match paths.as_slice() {
        [] => None,
        [one] => Some(("Read", object([("file_path", one.as_str().into())]))),
        _ => Some(("ReadFiles", object([("file_paths", paths.into())]))),
    }
}

/// Expressions, any of which is looked for.
fn queries((name, value): (&str, &Value)) -> Option<Map<String, Value>> {
    let queries = texts(value).filter(|_| name == "queries")?;
    Some(object([("pattern", queries.join("|").into()), ("path", ".".into())]))
}

/// Pages, with what is asked of them.
fn requests((name, value): (&str, &Value)) -> Option<Map<String, Value>> {
    let requests = value.as_array().filter(|requests| name == "requests" && !requests.is_empty())?;
    let all = |member: &str, between: &str| {
        let texts = requests.iter().map(|request| request.get(member).and_then(Value::as_str));
        texts.collect::<Option<Vec<_>>>().map(|texts| texts.join(between))
    };
    Some(object([("url", all("url", " ")?.into()), ("prompt", all("prompt", "\n")?.into())]))
}

/// `{"output": …, "error": …}`.
fn answered(raw: Option<&RawValue>) -> (ToolResponse, bool) {
    let Ok([output, error]) = within(raw, &["output", "error"]) else { return (response(raw), false) };
    match fields::present(error) {
        Some(_) => (response(error), true),
        None => (response(output), false),
    }
}

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => {
            object([("cancel", true.into()), ("errorMessage", reason(why))])
        }
        Answer::Result(result) => {
            let told = result.context.as_ref().or(result.reason.as_ref());
            told.map(|text| object([("contextModification", text.as_str().into())])).unwrap_or_default()
        }
        Answer::Nothing | Answer::Call(Decision::Allow(_)) | Answer::PromptBlocked(_) | Answer::GoOn(_) => {
            Map::new()
        }
    }
}

#[cfg(test)]
mod tests;
