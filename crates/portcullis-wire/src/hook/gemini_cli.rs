//! Gemini CLI: `docs/hooks/reference.md` of google-gemini/gemini-cli at 5411f11 (0.56.0-nightly.20260806), and where it is
//! silent `packages/core/src/hooks/` of the same commit.
//!
//! It names no calls: equal calls cannot be told apart, and a call whose arguments were changed would come back as another
//! one. Of a result it shows what a hook gives instead (`decision: "deny"`, `reason`). `hookSpecificOutput.tool_output`,
//! which the reference names too, is not in the code.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{beside, denied, object, whole_text};
use super::shape::{Kind, Names, Powers, Renamed, Shape, Theirs, known, optional, response, within};
use super::{
    Agent, Answer, Decision, HookCall, HookError, HookEvent, NAME_BYTES_MAX, Replaces, ToolResponse,
};
use crate::fields;

static NAMES: Names = Names { reply: "prompt_response", ..Names::CLAUDE };

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::GeminiCli,
    id: "gemini-cli",
    name: "Gemini CLI",
    powers: Powers {
        withholds_prompts: true,
        replaces: Replaces::Text,
        replaces_failures: true,
        shows_notes: true,
        ..Powers::NONE
    },
    names: &NAMES,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("BeforeAgent", Kind::Prompt),
        ("BeforeTool", Kind::Before),
        ("AfterTool", Kind::After),
        ("AfterAgent", Kind::Stop),
    ],
    tools: &[
        known("run_shell_command", "Bash", &[("dir_path", "workdir")]),
        known("read_file", "Read", &[]),
        known("write_file", "Write", &[]),
        known("replace", "Edit", &[]),
        known("glob", "Glob", &[("dir_path", "path")]),
        known("grep_search", "Grep", SEARCHED),
        known("search_file_content", "Grep", SEARCHED),
        known("list_directory", "LS", &[("dir_path", "path")]),
        known("web_fetch", "WebFetch", &[]),
        known("google_web_search", "WebSearch", &[]),
        known("write_todos", "TodoWrite", &[]),
        known("update_topic", "TodoWrite", &[]),
        known("tracker_create_task", "TaskCreate", &[]),
        known("tracker_update_task", "TaskUpdate", &[]),
        known("tracker_get_task", "TaskGet", &[]),
        known("tracker_list_tasks", "TaskList", &[]),
        known("ask_user", "AskUserQuestion", &[]),
        known("enter_plan_mode", "EnterPlanMode", &[]),
        known("exit_plan_mode", "ExitPlanMode", &[]),
        known("activate_skill", "Skill", &[]),
        known("invoke_agent", "Agent", &[]),
    ],
    adapt,
    answered,
    fields,
};

const SEARCHED: Renamed = &[("dir_path", "path"), ("include_pattern", "glob")];

fn adapt(call: &mut HookCall, server: Option<&RawValue>) -> Result<(), HookError> {
    if call.tool == "WebFetch" {
        add_urls(call);
    }
    let [server_name, tool_name] = within(server, &["server_name", "tool_name"])?;
    let server = optional("mcp_context.server_name", server_name, NAME_BYTES_MAX)?;
    let tool = optional("mcp_context.tool_name", tool_name, NAME_BYTES_MAX)?;
    // The tool's own name does not say where the server's ends: `mcp_SERVER_TOOL`.
    if let (Some(server), Some(tool)) = (server, tool) {
        let named = format!("mcp__{server}__{tool}");
        if named != call.tool {
            let theirs = std::mem::replace(&mut call.tool, named);
            call.theirs = Some(Theirs { tool: theirs, renamed: &[] });
        }
    }
    Ok(())
}

/// A page is fetched by a prompt that has its URL in it: each word with `://`, as the tool takes it.
fn add_urls(call: &mut HookCall) {
    let Some(arguments) = call.arguments.as_object_mut() else { return };
    let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let urls: Vec<&str> = prompt.split_whitespace().filter(|word| word.contains("://")).collect();
    let urls = urls.join(" ");
    match arguments.get_mut("url") {
        _ if urls.is_empty() => {}
        Some(Value::String(url)) => *url = format!("{url} {urls}"),
        // What is no text is refused by its schema.
        Some(_) => {}
        None => {
            arguments.insert("url".to_owned(), urls.into());
        }
    }
}

/// `{"llmContent": …, "returnDisplay": …, "error": …}`: the agent reads the first.
fn answered(raw: Option<&RawValue>) -> (ToolResponse, bool) {
    let Ok([content, error]) = within(raw, &["llmContent", "error"]) else { return (response(raw), false) };
    let failed = fields::present(error).is_some();
    match fields::present(content) {
        Some(_) => (response(content), failed),
        None => (response(raw), failed),
    }
}

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing => Map::new(),
        // It never takes the client's own prompt away.
        Answer::Call(Decision::Allow(_)) => object([("decision", "allow".into())]),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _))
        | Answer::PromptBlocked(why)
        | Answer::GoOn(why) => denied(why),
        Answer::Result(result) => match whole_text(result) {
            Some(text) => denied(&text),
            None => beside(result, "AfterTool"),
        },
    }
}

#[cfg(test)]
mod tests;
