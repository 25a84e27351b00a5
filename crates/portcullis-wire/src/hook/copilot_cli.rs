//! GitHub Copilot CLI: `content/copilot/reference/hooks-reference.md` of github/docs (at 05da5bc), in the form whose events
//! have names like `PreToolUse`: fields and tools have the names of Claude Code there, arguments have their own.
//!
//! It names no calls, so a call whose arguments were changed would come back as another one. What a hook says of a prompt is
//! dropped.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{object, reason, whole_text};
use super::shape::{Kind, Names, Powers, Renamed, Shape, known, response, within};
use super::{Agent, Answer, Decision, HookCall, HookError, HookEvent, Replaces, ToolResponse};
use crate::fields;

static NAMES: Names = Names { response: "tool_result", ..Names::CLAUDE };

const FILE: Renamed = &[("path", "file_path")];
const CREATED: Renamed = &[("path", "file_path"), ("file_text", "content")];
const EDITED: Renamed = &[("path", "file_path"), ("old_str", "old_string"), ("new_str", "new_string")];
const PATCH: Renamed = &[("input", "patch"), ("command", "patch")];
/// What a patch is called where it is called `Edit`.
const PATCHED: Renamed = &[("input", "patch"), ("command", "patch"), ("patch", "patch")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::CopilotCli,
    id: "copilot-cli",
    name: "Copilot CLI",
    powers: Powers { replaces: Replaces::Text, ..Powers::NONE },
    names: &NAMES,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("UserPromptSubmit", Kind::Prompt),
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
        ("PostToolUseFailure", Kind::Failed),
        ("Stop", Kind::Stop),
        ("PermissionRequest", Kind::Aside),
    ],
    // Before a call they have the names of Claude Code; after it, versions differ.
    tools: &[
        known("Bash", "Bash", &[]),
        known("bash", "Bash", &[]),
        known("Read", "Read", FILE),
        known("view", "Read", FILE),
        known("Write", "Write", CREATED),
        known("create", "Write", CREATED),
        known("Edit", "Edit", EDITED),
        known("edit", "Edit", EDITED),
        known("str_replace_editor", "Edit", EDITED),
        known("apply_patch", "ApplyPatch", PATCH),
        known("Grep", "Grep", &[]),
        known("grep", "Grep", &[]),
        known("rg", "Grep", &[]),
        known("Glob", "Glob", &[]),
        known("glob", "Glob", &[]),
        known("WebFetch", "WebFetch", &[]),
        known("web_fetch", "WebFetch", &[]),
        known("WebSearch", "WebSearch", &[]),
        known("web_search", "WebSearch", &[]),
        known("AskUserQuestion", "AskUserQuestion", &[]),
        known("ask_user", "AskUserQuestion", &[]),
        known("TodoWrite", "TodoWrite", &[]),
        known("update_todo", "TodoWrite", &[]),
        known("Agent", "Agent", &[]),
        known("Task", "Agent", &[]),
        known("task", "Agent", &[]),
    ],
    adapt,
    answered,
    fields,
};

/// A patch is called `Edit`, too. What of both is carried out is not told, so it has to be one or the other.
fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    let Some(arguments) = call.arguments.as_object_mut().filter(|_| call.tool == "Edit") else {
        return Ok(());
    };
    let is_patch = |(theirs, _): &&(&'static str, &'static str)| {
        let value = arguments.get(*theirs);
        // An editor of several commands has one of that name, which is a word.
        value.is_some_and(|value| {
            *theirs != "command" || value.as_str().is_none_or(|text| text.contains("***"))
        })
    };
    let patches: Vec<_> = PATCHED.iter().filter(is_patch).collect();
    let Some((theirs, ours)) = patches.first().copied() else { return Ok(()) };
    let edits = ["file_path", "old_string", "new_string"].iter().any(|name| arguments.contains_key(*name));
    if edits || patches.len() > 1 {
        return Err(HookError::TwoNames(ours));
    }
    if let Some(patch) = arguments.remove(*theirs) {
        arguments.insert((*ours).to_owned(), patch);
    }
    "ApplyPatch".clone_into(&mut call.tool);
    if let Some(renamed) = call.theirs.as_mut() {
        renamed.renamed = PATCHED
            .iter()
            .position(|(name, _)| name == theirs)
            .and_then(|at| PATCHED.get(at..=at))
            .unwrap_or_default();
    }
    Ok(())
}

/// `{"result_type": "success", "text_result_for_llm": …}`.
fn answered(raw: Option<&RawValue>) -> (ToolResponse, bool) {
    match within(raw, &["text_result_for_llm", "result_type"]) {
        Ok([Some(text), kind]) => {
            let failed = fields::present(kind).is_some_and(|kind| kind.get() != "\"success\"");
            (response(Some(text)), failed)
        }
        _ => (response(raw), false),
    }
}

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing | Answer::PromptBlocked(_) => Map::new(),
        Answer::Call(Decision::Allow(_)) => object([("permissionDecision", "allow".into())]),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => {
            object([("permissionDecision", "deny".into()), ("permissionDecisionReason", reason(why))])
        }
        Answer::GoOn(why) => object([("decision", "block".into()), ("reason", reason(why))]),
        Answer::Result(result) => match (whole_text(result), &result.context, &result.reason) {
            (Some(text), ..) => {
                let shown = object([("resultType", "success".into()), ("textResultForLlm", text.into())]);
                object([("modifiedResult", shown.into())])
            }
            (None, Some(beside), _) | (None, None, Some(beside)) => {
                object([("additionalContext", beside.as_str().into())])
            }
            (None, None, None) => Map::new(),
        },
    }
}
