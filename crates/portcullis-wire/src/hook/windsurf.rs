//! Windsurf, which is Devin Desktop by now: <https://docs.windsurf.com/windsurf/cascade/hooks>, read in stored copies of late
//! 2025 and early 2026; what is newer, such as the name of its settings file, as programs that work with it have it.
//!
//! The event says what kind of call it is, and everything about it is in `tool_info`. A hook denies by exit code 2; nothing
//! that it prints is read. Calls have no names, and of results it tells those of MCP servers alone.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::shape::{Kind, Names, Powers, Shape, Theirs, any_response, known};
use super::{Agent, HookCall, HookError};

static NAMES: Names = Names {
    session: "trajectory_id",
    event: "agent_action_name",
    tool: "",
    arguments: "tool_info",
    response: RESULT,
    prompt: "user_prompt",
    reply: "response",
    inner: &["tool_info"],
    ..Names::CLAUDE
};

/// What a server answered stands among the arguments.
const RESULT: &str = "mcp_result";

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Windsurf,
    id: "windsurf",
    name: "Windsurf",
    powers: Powers { withholds_prompts: true, denies_by_code: true, stops_anyway: true, ..Powers::NONE },
    names: &NAMES,
    events: &[
        ("pre_user_prompt", Kind::Prompt),
        ("pre_run_command", Kind::Before),
        ("pre_read_code", Kind::Before),
        ("pre_write_code", Kind::Before),
        ("pre_mcp_tool_use", Kind::Before),
        ("post_run_command", Kind::After),
        ("post_read_code", Kind::After),
        ("post_write_code", Kind::After),
        ("post_mcp_tool_use", Kind::After),
        ("post_cascade_response", Kind::Stop),
        ("post_cascade_response_with_transcript", Kind::Aside),
        ("post_setup_worktree", Kind::Aside),
    ],
    tools: &[
        known("run_command", "Bash", &[("command_line", "command"), ("cwd", "workdir")]),
        known("read_code", "Read", &[]),
        known("write_code", "MultiEdit", &[]),
    ],
    adapt,
    answered: any_response,
    fields: |_, _| Map::new(),
};

/// A call of a server's tool: `{"mcp_server_name": …, "mcp_tool_name": …, "mcp_tool_arguments": {…}}`.
fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    let Some(told) = call.arguments.as_object_mut() else { return Ok(()) };
    if call.tool != "mcp_tool_use" {
        return Ok(());
    }
    let mut text = |field: &'static str| match told.remove(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(HookError::Missing { field, expected: "text" }),
    };
    let (server, tool) = (text("mcp_server_name")?, text("mcp_tool_name")?);
    let arguments = told.remove("mcp_tool_arguments").filter(|arguments| !arguments.is_null());
    let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
    if !arguments.is_object() {
        return Err(HookError::Missing { field: "mcp_tool_arguments", expected: "an object" });
    }
    call.arguments = arguments;
    call.tool = format!("mcp__{server}__{tool}");
    call.theirs = Some(Theirs { tool, renamed: &[] });
    Ok(())
}

#[cfg(test)]
mod tests;
