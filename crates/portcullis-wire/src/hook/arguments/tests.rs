//! Every agent: only its own argument says in which folder a call is judged.

use serde_json::json;

use super::super::{Agent, HookEvent, shape};
use super::*;

/// A call before it is made, in a session of an agent that works in `/home/dev/shop`.
fn call(agent: Agent, tool: &str, arguments: &Value) -> Result<HookCall, HookError> {
    let shape = agent.shape();
    let names = shape.names;
    let before = shape.events.iter().find(|(_, kind)| *kind == shape::Kind::Before).unwrap().0;
    // Of Windsurf the event says which tool it is.
    let before = if names.tool.is_empty() { format!("pre_{tool}") } else { before.to_owned() };
    let mut event = json!({
        names.session: "s", names.event: before, names.directory: "/home/dev/shop", names.arguments: arguments,
    });
    if !names.tool.is_empty() {
        event[names.tool] = tool.into();
    }
    match agent.parse(event.to_string().as_bytes())?.event {
        HookEvent::PreToolUse(call) => Ok(call),
        other => panic!("{other:?}"),
    }
}

/// The shell of every agent, and the arguments by which it takes a folder.
const SHELLS: [(Agent, &str, &[&str]); 13] = [
    (Agent::ClaudeCode, "Bash", &[]),
    (Agent::GeminiCli, "run_shell_command", &["dir_path"]),
    (Agent::Codex, "Bash", &["workdir"]),
    (Agent::Cursor, "Shell", &["working_directory", "cwd"]),
    (Agent::CopilotCli, "Bash", &[]),
    (Agent::OpenCode, "bash", &["workdir"]),
    (Agent::QwenCode, "run_shell_command", &["directory"]),
    (Agent::Droid, "Execute", &[]),
    (Agent::KimiCode, "Bash", &["cwd"]),
    (Agent::Crush, "bash", &["working_dir"]),
    (Agent::Pi, "bash", &[]),
    (Agent::Windsurf, "run_command", &["cwd"]),
    (Agent::Kiro, "execute_bash", &["cwd"]),
];

/// Names that agents have for the folder of a call.
const FOLDERS: [&str; 14] = [
    "cwd",
    "CWD",
    "workdir",
    "work_dir",
    "working_dir",
    "workingDirectory",
    "working_directory",
    "current_dir",
    "chdir",
    "dir",
    "dir_path",
    "directory",
    "folder",
    "root",
];

#[test]
fn a_shell_runs_in_the_folder_that_its_own_argument_names() {
    for (agent, shell, own) in SHELLS {
        assert!(Agent::ALL.contains(&agent));
        for name in own {
            let read = call(agent, shell, &json!({"command": "ls", *name: "/srv"})).unwrap();
            let ours = json!({"command": "ls", "workdir": "/srv"});
            assert_eq!((read.tool.as_str(), &read.arguments), ("Bash", &ours), "{agent:?}: {name}");
        }
        for name in FOLDERS.into_iter().chain(["args", "Arguments"]).filter(|name| !own.contains(name)) {
            let error = call(agent, shell, &json!({"command": "ls", name: "/srv"})).unwrap_err();
            // Its `cwd` is looked for in the event, too.
            if agent == Agent::Windsurf && matches!(error, HookError::Field(_)) {
                continue;
            }
            let foreign = HookError::ForeignArgument { tool: shell.to_owned(), argument: name.to_owned() };
            assert_eq!(error, foreign, "{agent:?}");
        }
    }
    // Cline's takes a list of command lines.
    assert_eq!(SHELLS.len() + 1, Agent::ALL.len());
}

#[test]
fn no_tool_of_any_agent_is_judged_in_a_folder_that_it_does_not_take() {
    for agent in Agent::ALL {
        for known in agent.shape().tools {
            for name in FOLDERS {
                let read = call(agent, known.theirs, &json!({ name: "/srv" }));
                let takes = known.arguments.iter().any(|(theirs, _)| *theirs == name);
                assert_eq!(read.is_ok(), takes, "{agent:?} {}: {name}: {read:?}", known.theirs);
            }
        }
    }
    for tool in super::super::claude_code::TOOLS {
        assert!(call(Agent::ClaudeCode, tool, &json!({"cwd": "/srv"})).is_err(), "{tool}");
    }
}

#[test]
fn the_name_that_bundles_have_for_it_is_not_the_agents() {
    for (agent, tool, own) in [
        (Agent::GeminiCli, "glob", "dir_path"),
        (Agent::GeminiCli, "grep_search", "dir_path"),
        (Agent::GeminiCli, "list_directory", "dir_path"),
        (Agent::Droid, "Glob", "folder"),
        (Agent::Droid, "LS", "directory_path"),
        (Agent::Codex, "list_dir", "dir_path"),
    ] {
        let read = call(agent, tool, &json!({"pattern": "../*", own: "src"})).unwrap();
        assert_eq!(read.arguments["path"], "src", "{agent:?} {tool}");
        for name in ["path", "Path"] {
            let error = call(agent, tool, &json!({"pattern": "../*", name: "/tmp/a/b"})).unwrap_err();
            assert!(matches!(error, HookError::ForeignArgument { .. }), "{agent:?} {tool}: {error}");
        }
    }
    for (agent, tool) in [
        (Agent::ClaudeCode, "Grep"),
        (Agent::Cursor, "Grep"),
        (Agent::Codex, "grep_files"),
        (Agent::CopilotCli, "glob"),
        (Agent::OpenCode, "list"),
        (Agent::QwenCode, "grep_search"),
        (Agent::KimiCode, "Glob"),
        (Agent::Droid, "Grep"),
        (Agent::Crush, "glob"),
        (Agent::Pi, "find"),
    ] {
        let read = call(agent, tool, &json!({"pattern": "x", "path": "src"})).unwrap();
        assert_eq!(read.arguments["path"], "src", "{agent:?} {tool}");
    }
}

#[test]
fn what_changes_nothing_is_left_out() {
    for (agent, shell, own) in SHELLS {
        for value in [json!("/home/dev/shop"), json!("/home/dev/shop/"), json!("."), json!(""), json!(null)] {
            let name = if own.contains(&"workdir") { "cwd" } else { "workdir" };
            let read = call(agent, shell, &json!({"command": "ls", name: value})).unwrap();
            assert_eq!(read.arguments, json!({"command": "ls"}), "{agent:?}: {value}");
        }
        for value in [json!("/home/dev/shop/src"), json!("./src"), json!([1]), json!(7), json!("/home/dev")] {
            let name = if own.contains(&"workdir") { "cwd" } else { "workdir" };
            assert!(
                call(agent, shell, &json!({"command": "ls", name: value})).is_err(),
                "{agent:?}: {value}"
            );
        }
    }
}

/// What their servers take is for bundles to say.
#[test]
fn arguments_of_servers_and_of_unknown_tools_stay() {
    let arguments = json!({"cwd": "/srv", "args": ["x"]});
    for agent in Agent::ALL.into_iter().filter(|agent| !agent.shape().names.tool.is_empty()) {
        for tool in ["mcp__shell__run", "do_something"] {
            assert_eq!(call(agent, tool, &arguments).unwrap().arguments, arguments, "{agent:?} {tool}");
        }
        let skill = json!({"skill": "x", "args": "y"});
        assert_eq!(call(Agent::ClaudeCode, "Skill", &skill).unwrap().arguments, skill);
    }
}
