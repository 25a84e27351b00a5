//! What each agent calls an action, and how it tells of it: written a second time, independently of the adapters.

use serde_json::{Map, Value, json};

use super::PROJECT;
use super::table::Action;

/// Gives arguments other names.
fn renamed(arguments: &Value, names: &[(&str, &str)]) -> Value {
    let name = |name: &String| {
        names.iter().find(|(ours, _)| ours == name).map_or(name.clone(), |(_, theirs)| (*theirs).into())
    };
    arguments
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (name(key), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// What an agent calls an action; `None` if it has no such tool.
fn own(agent: &str, action: &Action) -> Option<(&'static str, Value)> {
    let (tool, names): (&str, &[(&str, &str)]) = match (agent, action.tool.as_str()) {
        ("claude-code", "Bash") | ("codex", "Bash") | ("copilot-cli", "Bash") => ("Bash", &[]),
        ("claude-code", "Read") => ("Read", &[]),
        ("claude-code", "Write") => ("Write", &[]),
        ("claude-code", "Edit") => ("Edit", &[]),
        ("claude-code", "Glob") | ("copilot-cli", "Glob") => ("Glob", &[]),
        ("claude-code", "Grep") | ("copilot-cli" | "cursor", "Grep") => ("Grep", &[]),
        ("claude-code", "LS") => ("LS", &[]),
        ("claude-code" | "copilot-cli" | "cursor", "WebFetch") => ("WebFetch", &[]),
        ("claude-code" | "copilot-cli", "WebSearch") => ("WebSearch", &[]),
        ("claude-code", "ApplyPatch") => ("ApplyPatch", &[]),
        ("claude-code", "Delete") => ("Delete", &[]),
        ("gemini-cli", "Bash") => ("run_shell_command", &[]),
        ("gemini-cli", "Read") => ("read_file", &[]),
        ("gemini-cli", "Write") => ("write_file", &[]),
        ("gemini-cli", "Edit") => ("replace", &[]),
        ("gemini-cli", "Glob") => ("glob", &[("path", "dir_path")]),
        ("gemini-cli", "Grep") => ("grep_search", &[("path", "dir_path"), ("glob", "include_pattern")]),
        ("gemini-cli", "LS") => ("list_directory", &[("path", "dir_path")]),
        ("gemini-cli", "WebFetch") => ("web_fetch", &[("url", "prompt")]),
        ("gemini-cli", "WebSearch") => ("google_web_search", &[]),
        ("codex", "Read") => ("read_file", &[]),
        ("codex", "Grep") => ("grep_files", &[("glob", "include")]),
        ("codex", "LS") => ("list_dir", &[("path", "dir_path")]),
        ("codex", "ApplyPatch") => ("apply_patch", &[("patch", "command")]),
        ("cursor", "Bash") => ("Shell", &[]),
        ("cursor", "Read") => ("Read", &[("file_path", "path")]),
        ("cursor", "Write") => ("Write", &[("file_path", "path"), ("content", "contents")]),
        ("cursor", "Edit") => ("StrReplace", &[("file_path", "path")]),
        ("cursor", "Glob") => ("Glob", &[("pattern", "glob_pattern"), ("path", "target_directory")]),
        ("cursor", "LS") => ("LS", &[("path", "target_directory")]),
        ("cursor", "WebSearch") => ("WebSearch", &[("query", "search_term")]),
        ("cursor", "Delete") => ("Delete", &[("file_path", "path")]),
        ("copilot-cli", "Read") => ("Read", &[("file_path", "path")]),
        ("copilot-cli", "Write") => ("Write", &[("file_path", "path"), ("content", "file_text")]),
        ("copilot-cli", "Edit") => {
            ("Edit", &[("file_path", "path"), ("old_string", "old_str"), ("new_string", "new_str")])
        }
        ("copilot-cli", "ApplyPatch") => ("Edit", &[("patch", "input")]),
        ("qwen-code", "Bash") => ("run_shell_command", &[]),
        ("qwen-code", "Read") => ("read_file", &[]),
        ("qwen-code", "Write") => ("write_file", &[]),
        ("qwen-code", "Edit") => ("edit", &[]),
        ("qwen-code", "Glob") => ("glob", &[]),
        ("qwen-code", "Grep") => ("grep_search", &[]),
        ("qwen-code", "LS") => ("list_directory", &[]),
        ("qwen-code", "WebFetch") => ("web_fetch", &[]),
        ("qwen-code", "WebSearch") => ("web_search", &[]),
        ("opencode", "Bash") => ("bash", &[]),
        ("opencode", "Read") => ("read", &[("file_path", "filePath")]),
        ("opencode", "Write") => ("write", &[("file_path", "filePath")]),
        ("opencode", "Edit") => {
            ("edit", &[("file_path", "filePath"), ("old_string", "oldString"), ("new_string", "newString")])
        }
        ("opencode", "Glob") => ("glob", &[]),
        ("opencode", "Grep") => ("grep", &[("glob", "include")]),
        ("opencode", "LS") => ("list", &[]),
        ("opencode", "WebFetch") => ("webfetch", &[]),
        ("opencode", "WebSearch") => ("websearch", &[]),
        ("opencode", "ApplyPatch") => ("apply_patch", &[("patch", "patchText")]),
        _ => return None,
    };
    Some((tool, renamed(&action.arguments, names)))
}

/// What an agent calls a tool and its arguments, and what it says of the server.
pub(super) struct Call {
    tool: String,
    arguments: Value,
    server: Option<Value>,
}

/// What an agent calls an action; why not, if it has no such tool.
pub(super) fn theirs(agent: &str, action: &Action) -> Result<Call, &'static str> {
    let named = |tool: String, server| Call { tool, arguments: action.arguments.clone(), server };
    if let Some((server, tool)) = action.tool.strip_prefix("mcp__").and_then(|name| name.split_once("__")) {
        return match agent {
            "claude-code" | "codex" | "copilot-cli" | "qwen-code" => Ok(named(action.tool.clone(), None)),
            "gemini-cli" => {
                let context = json!({"server_name": server, "tool_name": tool});
                Ok(named(format!("mcp_{server}_{tool}"), Some(context)))
            }
            "cursor" => Ok(named(format!("MCP:{server}:{tool}"), None)),
            _ => Err("names of servers' tools do not say where the server's ends"),
        };
    }
    if !OWN_TOOLS.contains(&action.tool.as_str()) {
        return Ok(named(action.tool.clone(), None));
    }
    let (tool, arguments) = own(agent, action).ok_or("has no such tool")?;
    Ok(Call { tool: tool.into(), arguments, server: None })
}

/// Tools of agents' own.
const OWN_TOOLS: [&str; 11] =
    ["ApplyPatch", "Bash", "Delete", "Edit", "Glob", "Grep", "LS", "Read", "WebFetch", "WebSearch", "Write"];

/// An agent's names of the session, and of the events of a prompt, before and after a call.
fn names(agent: &str) -> [&'static str; 4] {
    match agent {
        "gemini-cli" => ["session_id", "BeforeAgent", "BeforeTool", "AfterTool"],
        "cursor" => ["conversation_id", "beforeSubmitPrompt", "preToolUse", "postToolUse"],
        "opencode" => ["session_id", "chat.message", "tool.execute.before", "tool.execute.after"],
        _ => ["session_id", "UserPromptSubmit", "PreToolUse", "PostToolUse"],
    }
}

/// A prompt, as an agent tells it.
pub(super) fn prompt(agent: &str, session: &str, text: &str) -> String {
    let [field, name, ..] = names(agent);
    let mut event = json!({field: session, "hook_event_name": name, "cwd": PROJECT, "prompt": text});
    if agent == "qwen-code" {
        event["submitted_prompt"] = text.into();
    }
    event.to_string()
}

/// The event before a call, as an agent tells it.
pub(super) fn before(agent: &str, session: &str, call: &Call) -> Value {
    let [field, _, name, _] = names(agent);
    let mut event = json!({
        field: session, "hook_event_name": name, "cwd": PROJECT, "tool_name": call.tool, "tool_input": call.arguments,
    });
    if let Some(server) = &call.server {
        event["mcp_context"] = server.clone();
    }
    event
}

/// The event after a call, as an agent tells it.
pub(super) fn after(agent: &str, session: &str, call: &Call, result: &str) -> String {
    let [.., name] = names(agent);
    let mut event = before(agent, session, call);
    event["hook_event_name"] = name.into();
    let (field, said) = match agent {
        "gemini-cli" => ("tool_response", json!({"llmContent": result, "returnDisplay": result})),
        "cursor" => ("tool_output", result.into()),
        "copilot-cli" => ("tool_result", json!({"result_type": "success", "text_result_for_llm": result})),
        _ => ("tool_response", result.into()),
    };
    event[field] = said;
    event.to_string()
}
