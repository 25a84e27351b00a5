//! Cursor: <https://cursor.com/docs/hooks.md> as of September 2026 (CLI 2026.09.18), as far as stored copies and
//! descriptions of it show: the names of arguments of its tools are not documented.
//!
//! A hook before a call denies it or takes the user's prompt away; `ask` is not carried out there. Only results of MCP
//! servers can be replaced, and no failure.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{object, reason, whole_text};
use super::shape::{Kind, Names, Powers, Renamed, Shape, Theirs, any_response, known};
use super::{Agent, Answer, Decision, HookCall, HookError, HookEvent, Replaces};

static NAMES: Names = Names {
    session: "conversation_id",
    response: "tool_output",
    error: "error_message",
    reply: "text",
    kept_going: "loop_count",
    ..Names::CLAUDE
};

/// Versions differ in what they call a file.
const FILE: Renamed = &[("path", "file_path"), ("target_file", "file_path")];
const WRITTEN: Renamed = &[("path", "file_path"), ("target_file", "file_path"), ("contents", "content")];
const FOLDER: Renamed = &[("target_directory", "path"), ("path", "path")];
/// The documentation has the first, the CLI the second.
const SHELL: Renamed = &[("working_directory", "workdir"), ("cwd", "workdir")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Cursor,
    id: "cursor",
    name: "Cursor",
    powers: Powers {
        changes_arguments: true,
        withholds_prompts: true,
        replaces: Replaces::Text,
        replaces_servers_only: true,
        ..Powers::NONE
    },
    names: &NAMES,
    events: &[
        ("sessionStart", Kind::SessionStart),
        ("sessionEnd", Kind::SessionEnd),
        ("beforeSubmitPrompt", Kind::Prompt),
        ("preToolUse", Kind::Before),
        ("postToolUse", Kind::After),
        ("postToolUseFailure", Kind::Failed),
        ("stop", Kind::Stop),
        // They come beside `preToolUse`, which judges the call.
        ("beforeMCPExecution", Kind::Aside),
        ("afterMCPExecution", Kind::Aside),
    ],
    tools: &[
        known("Shell", "Bash", SHELL),
        known("Read", "Read", FILE),
        known("Write", "Write", WRITTEN),
        known("Edit", "Edit", FILE),
        known("StrReplace", "Edit", FILE),
        known("Delete", "Delete", FILE),
        known("Grep", "Grep", FOLDER),
        known("Glob", "Glob", &[("glob_pattern", "pattern"), ("target_directory", "path"), ("path", "path")]),
        known("LS", "LS", FOLDER),
        known("WebFetch", "WebFetch", &[]),
        known("WebSearch", "WebSearch", &[("search_term", "query")]),
        known("TodoWrite", "TodoWrite", &[]),
        known("AskQuestion", "AskUserQuestion", &[]),
        known("Task", "Agent", &[]),
    ],
    adapt,
    answered: any_response,
    fields,
};

/// `MCP:TOOL`, or `MCP:SERVER:TOOL`.
fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    if let Some(named) = call.tool.strip_prefix("MCP:") {
        let named = format!("mcp__{}", named.replace(':', "__"));
        let theirs = std::mem::replace(&mut call.tool, named);
        call.theirs = Some(Theirs { tool: theirs, renamed: &[] });
    }
    Ok(())
}

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing => Map::new(),
        Answer::Call(Decision::Allow(arguments)) => {
            let mut fields = object([("permission", "allow".into())]);
            if let Some(arguments) = arguments {
                fields.insert("updated_input".into(), arguments.clone());
            }
            fields
        }
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => object([
            ("permission", "deny".into()),
            ("user_message", reason(why)),
            ("agent_message", reason(why)),
        ]),
        Answer::PromptBlocked(why) => object([("continue", false.into()), ("user_message", reason(why))]),
        Answer::GoOn(why) => object([("followup_message", reason(why))]),
        Answer::Result(result) => match (whole_text(result), &result.context, &result.reason) {
            (Some(text), ..) => object([("updated_mcp_tool_output", text.into())]),
            (None, Some(beside), _) | (None, None, Some(beside)) => {
                object([("additional_context", beside.as_str().into())])
            }
            (None, None, None) => Map::new(),
        },
    }
}
