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

/// Arguments of other names: those of bundles, and the agent's.
type Renamed = &'static [(&'static str, &'static str)];

/// What agents call a tool of bundles, and its arguments: the agent, the tool, theirs, and arguments of other names.
#[rustfmt::skip]
const OWN: &[(&str, &str, &str, Renamed)] = &[
    ("claude-code", "Bash", "Bash", &[]),
    ("claude-code", "Read", "Read", &[]),
    ("claude-code", "Write", "Write", &[]),
    ("claude-code", "Edit", "Edit", &[]),
    ("claude-code", "Glob", "Glob", &[]),
    ("claude-code", "Grep", "Grep", &[]),
    ("claude-code", "LS", "LS", &[]),
    ("claude-code", "WebFetch", "WebFetch", &[]),
    ("claude-code", "WebSearch", "WebSearch", &[]),
    ("claude-code", "ApplyPatch", "ApplyPatch", &[]),
    ("claude-code", "Delete", "Delete", &[]),
    ("gemini-cli", "Bash", "run_shell_command", &[]),
    ("gemini-cli", "Read", "read_file", &[]),
    ("gemini-cli", "Write", "write_file", &[]),
    ("gemini-cli", "Edit", "replace", &[]),
    ("gemini-cli", "Glob", "glob", &[("path", "dir_path")]),
    ("gemini-cli", "Grep", "grep_search", &[("path", "dir_path"), ("glob", "include_pattern")]),
    ("gemini-cli", "LS", "list_directory", &[("path", "dir_path")]),
    ("gemini-cli", "WebFetch", "web_fetch", &[("url", "prompt")]),
    ("gemini-cli", "WebSearch", "google_web_search", &[]),
    ("codex", "Bash", "Bash", &[]),
    ("codex", "Read", "read_file", &[]),
    ("codex", "Grep", "grep_files", &[("glob", "include")]),
    ("codex", "LS", "list_dir", &[("path", "dir_path")]),
    ("codex", "ApplyPatch", "apply_patch", &[("patch", "command")]),
    ("cursor", "Grep", "Grep", &[]),
    ("cursor", "WebFetch", "WebFetch", &[]),
    ("cursor", "Bash", "Shell", &[]),
    ("cursor", "Read", "Read", &[("file_path", "path")]),
    ("cursor", "Write", "Write", &[("file_path", "path"), ("content", "contents")]),
    ("cursor", "Edit", "StrReplace", &[("file_path", "path")]),
    ("cursor", "Glob", "Glob", &[("pattern", "glob_pattern"), ("path", "target_directory")]),
    ("cursor", "LS", "LS", &[("path", "target_directory")]),
    ("cursor", "WebSearch", "WebSearch", &[("query", "search_term")]),
    ("cursor", "Delete", "Delete", &[("file_path", "path")]),
    ("copilot-cli", "Bash", "Bash", &[]),
    ("copilot-cli", "Glob", "Glob", &[]),
    ("copilot-cli", "Grep", "Grep", &[]),
    ("copilot-cli", "WebFetch", "WebFetch", &[]),
    ("copilot-cli", "WebSearch", "WebSearch", &[]),
    ("copilot-cli", "Read", "Read", &[("file_path", "path")]),
    ("copilot-cli", "Write", "Write", &[("file_path", "path"), ("content", "file_text")]),
    ("copilot-cli", "Edit", "Edit", &[("file_path", "path"), ("old_string", "old_str"), ("new_string", "new_str")]),
    ("copilot-cli", "ApplyPatch", "Edit", &[("patch", "input")]),
    ("opencode", "Bash", "bash", &[]),
    ("opencode", "Read", "read", &[("file_path", "filePath")]),
    ("opencode", "Write", "write", &[("file_path", "filePath")]),
    ("opencode", "Edit", "edit", &[("file_path", "filePath"), ("old_string", "oldString"), ("new_string", "newString")]),
    ("opencode", "Glob", "glob", &[]),
    ("opencode", "Grep", "grep", &[("glob", "include")]),
    ("opencode", "LS", "list", &[]),
    ("opencode", "WebFetch", "webfetch", &[]),
    ("opencode", "WebSearch", "websearch", &[]),
    ("opencode", "ApplyPatch", "apply_patch", &[("patch", "patchText")]),
    ("qwen-code", "Bash", "run_shell_command", &[]),
    ("qwen-code", "Read", "read_file", &[]),
    ("qwen-code", "Write", "write_file", &[]),
    ("qwen-code", "Edit", "edit", &[]),
    ("qwen-code", "Glob", "glob", &[]),
    ("qwen-code", "Grep", "grep_search", &[]),
    ("qwen-code", "LS", "list_directory", &[]),
    ("qwen-code", "WebFetch", "web_fetch", &[]),
    ("qwen-code", "WebSearch", "web_search", &[]),
    ("droid", "Bash", "Execute", &[]),
    ("droid", "Read", "Read", &[]),
    ("droid", "WebSearch", "WebSearch", &[]),
    ("droid", "Grep", "Grep", &[("glob", "glob_pattern")]),
    ("droid", "Write", "Create", &[]),
    ("droid", "Edit", "Edit", &[("old_string", "old_str"), ("new_string", "new_str")]),
    ("droid", "Glob", "Glob", &[("path", "folder")]),
    ("droid", "LS", "LS", &[("path", "directory_path")]),
    ("droid", "WebFetch", "FetchUrl", &[]),
    ("droid", "ApplyPatch", "ApplyPatch", &[("patch", "input")]),
    ("kimi-code", "Bash", "Bash", &[]),
    ("kimi-code", "Glob", "Glob", &[]),
    ("kimi-code", "Grep", "Grep", &[]),
    ("kimi-code", "WebSearch", "WebSearch", &[]),
    ("kimi-code", "Read", "Read", &[("file_path", "path")]),
    ("kimi-code", "Write", "Write", &[("file_path", "path")]),
    ("kimi-code", "Edit", "Edit", &[("file_path", "path")]),
    ("kimi-code", "WebFetch", "FetchURL", &[]),
    ("crush", "Bash", "bash", &[]),
    ("crush", "Read", "view", &[]),
    ("crush", "Write", "write", &[]),
    ("crush", "Edit", "edit", &[]),
    ("crush", "Glob", "glob", &[]),
    ("crush", "Grep", "grep", &[("glob", "include")]),
    ("crush", "LS", "ls", &[]),
    ("crush", "WebFetch", "fetch", &[]),
    ("crush", "WebSearch", "web_search", &[]),
    ("pi", "Bash", "bash", &[]),
    ("pi", "Read", "read", &[("file_path", "path")]),
    ("pi", "Write", "write", &[("file_path", "path")]),
    ("pi", "Edit", "edit", &[("file_path", "path"), ("old_string", "oldText"), ("new_string", "newText")]),
    ("pi", "Glob", "find", &[]),
    ("pi", "Grep", "grep", &[]),
    ("pi", "LS", "ls", &[]),
    ("windsurf", "Bash", "run_command", &[("command", "command_line")]),
    ("windsurf", "Read", "read_code", &[]),
    ("kiro", "Bash", "execute_bash", &[]),
    ("kiro", "Read", "read_file", &[("file_path", "path")]),
    ("kiro", "Write", "fs_write", &[("file_path", "path"), ("content", "text")]),
    ("kiro", "Edit", "str_replace", &[("file_path", "path"), ("old_string", "oldStr"), ("new_string", "newStr")]),
    ("kiro", "Delete", "delete_file", &[("file_path", "targetFile")]),
    ("kiro", "LS", "list_directory", &[]),
    ("kiro", "Grep", "grep_search", &[("pattern", "query"), ("glob", "includePattern")]),
    ("kiro", "WebFetch", "web_fetch", &[]),
    ("kiro", "WebSearch", "web_search", &[]),
    ("cline", "Bash", "run_commands", &[("command", "commands")]),
    ("cline", "Read", "read_files", &[("file_path", "files")]),
    ("cline", "Edit", "editor", &[("file_path", "path"), ("old_string", "old_text"), ("new_string", "new_text")]),
    ("cline", "ApplyPatch", "apply_patch", &[("patch", "input")]),
    ("cline", "WebFetch", "fetch_web_content", &[]),
];

/// What an agent calls an action; `None` if it has no such tool.
fn own(agent: &str, action: &Action) -> Option<(&'static str, Value)> {
    let known = OWN.iter().find(|(whose, ours, ..)| (*whose, *ours) == (agent, &action.tool));
    let (_, _, tool, names) = known?;
    let mut arguments = renamed(&action.arguments, names);
    if (agent, *tool) == ("droid", "Glob") {
        // It takes several.
        let pattern = arguments.as_object_mut().unwrap().remove("pattern");
        arguments["patterns"] = json!([pattern]);
    }
    if (agent, *tool) == ("cline", "fetch_web_content") {
        arguments["prompt"] = "What does it say?".into();
        arguments = json!({"requests": [arguments]});
    }
    if let ("cline", Some(list)) = (agent, arguments.get_mut("commands")) {
        *list = json!([list]);
    }
    if let ("cline", Some(list)) = (agent, arguments.get_mut("files")) {
        *list = json!([{"path": list, "start_line": null}]);
    }
    Some((*tool, arguments))
}

/// What an agent calls a tool and its arguments, and what it says of the server.
pub(super) struct Call {
    tool: String,
    arguments: Value,
    server: Option<Value>,
}

/// What an agent calls an action; why not, if it has no such tool.
pub(super) fn theirs(agent: &str, action: &Action) -> Result<Call, &'static str> {
    if agent == "crush" && (action.user.is_some() || action.result.is_some()) {
        return Err("tells neither prompts nor results");
    }
    if agent == "cline" && action.user.is_some() {
        return Err("tells no prompts");
    }
    if agent == "windsurf" && !action.tool.starts_with("mcp__") {
        if action.result.is_some() {
            return Err("tells results of servers' tools only");
        }
        if !OWN_TOOLS.contains(&action.tool.as_str()) {
            return Err("has no such tool");
        }
    }
    let named = |tool: String, server| Call { tool, arguments: action.arguments.clone(), server };
    if let Some((server, tool)) = action.tool.strip_prefix("mcp__").and_then(|name| name.split_once("__")) {
        return match agent {
            "claude-code" | "codex" | "copilot-cli" | "qwen-code" | "droid" | "kimi-code" | "pi" => {
                Ok(named(action.tool.clone(), None))
            }
            "gemini-cli" => {
                let context = json!({"server_name": server, "tool_name": tool});
                Ok(named(format!("mcp_{server}_{tool}"), Some(context)))
            }
            "cursor" => Ok(named(format!("MCP:{server}:{tool}"), None)),
            "kiro" => Ok(named(format!("@{server}/{tool}"), None)),
            "cline" => Ok(named(format!("{server}__{tool}"), None)),
            "windsurf" => {
                let told = json!({
                    "mcp_server_name": server, "mcp_tool_name": tool, "mcp_tool_arguments": action.arguments,
                });
                Ok(Call { tool: "mcp_tool_use".into(), arguments: told, server: None })
            }
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
        "pi" => ["session_id", "input", "tool_call", "tool_result"],
        "opencode" => ["session_id", "chat.message", "tool.execute.before", "tool.execute.after"],
        "windsurf" => ["trajectory_id", "pre_user_prompt", "pre", "post"],
        "cline" => ["taskId", "", "tool_call", "tool_result"],
        _ => ["session_id", "UserPromptSubmit", "PreToolUse", "PostToolUse"],
    }
}

/// A prompt, as an agent tells it.
pub(super) fn prompt(agent: &str, session: &str, text: &str) -> String {
    let [field, name, ..] = names(agent);
    if agent == "windsurf" {
        let told = json!({"user_prompt": text});
        return json!({field: session, "agent_action_name": name, "tool_info": told}).to_string();
    }
    let mut event = json!({field: session, "hook_event_name": name, "cwd": PROJECT, "prompt": text});
    if agent == "qwen-code" {
        event["submitted_prompt"] = text.into();
    }
    event.to_string()
}

/// The event before a call, as an agent tells it.
pub(super) fn before(agent: &str, session: &str, call: &Call) -> Value {
    let [field, _, name, _] = names(agent);
    if agent == "windsurf" {
        let mut told = call.arguments.clone();
        if call.tool == "run_command" {
            told["cwd"] = PROJECT.into();
        }
        let name = format!("{name}_{}", call.tool);
        return json!({field: session, "agent_action_name": name, "tool_info": told});
    }
    if agent == "cline" {
        let told = json!({"id": "call_1", "name": call.tool, "input": call.arguments});
        return json!({field: session, "hookName": name, "workspaceRoots": [PROJECT], name: told});
    }
    let mut event = json!({
        field: session, "hook_event_name": name, "cwd": PROJECT, "tool_name": call.tool, "tool_input": call.arguments,
    });
    if let Some(server) = &call.server {
        event["mcp_context"] = server.clone();
    }
    if agent == "crush" {
        event["event"] = name.into();
    }
    event
}

/// The event after a call, as an agent tells it.
pub(super) fn after(agent: &str, session: &str, call: &Call, result: &str) -> String {
    let [field, .., name] = names(agent);
    let mut event = before(agent, session, call);
    if agent == "windsurf" {
        event["agent_action_name"] = format!("{name}_{}", call.tool).into();
        event["tool_info"]["mcp_result"] = result.into();
        return event.to_string();
    }
    if agent == "cline" {
        let mut told = event["tool_call"].take();
        told["output"] = result.into();
        return json!({field: session, "hookName": name, "workspaceRoots": [PROJECT], name: told})
            .to_string();
    }
    event["hook_event_name"] = name.into();
    let (member, said) = match agent {
        "gemini-cli" => ("tool_response", json!({"llmContent": result, "returnDisplay": result})),
        "cursor" | "kimi-code" => ("tool_output", result.into()),
        "copilot-cli" => ("tool_result", json!({"result_type": "success", "text_result_for_llm": result})),
        _ => ("tool_response", result.into()),
    };
    event[member] = said;
    event.to_string()
}
