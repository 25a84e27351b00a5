//! Events as they were captured, filled in.

use serde_json::{Value, json};

use super::super::{Answer, Decision, HookEvent, HookInput, ToolResponse};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({"session_id": "sess_1", "hook_event_name": event, "cwd": "/home/dev/shop"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Kiro.parse(input.to_string().as_bytes())
}

fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments});
    let HookEvent::PreToolUse(call) = read("PreToolUse", &more).unwrap().event else { panic!() };
    call
}

#[test]
fn every_event_is_read() {
    let ran = json!({"tool_name": "execute_bash", "tool_input": {"command": "ls"}, "tool_response": "Exit Code: 0"});
    let response = ToolResponse { text: "Exit Code: 0".into(), json: false };
    for (event, more, expected) in [
        ("SessionStart", json!({}), HookEvent::SessionStart),
        ("SessionEnd", json!({}), HookEvent::SessionEnd),
        ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        (
            "PostToolUse",
            ran,
            HookEvent::PostToolUse(call("execute_bash", &json!({"command": "ls"})), response),
        ),
        ("Stop", json!({}), HookEvent::Stop(None)),
        ("PostFileSave", json!({"file_path": "/home/dev/shop/a"}), HookEvent::Other),
        ("PreTaskExec", json!({"spec_name": "s", "task_name": "t"}), HookEvent::Other),
    ] {
        let read = read(event, &more).unwrap();
        assert_eq!((read.event, read.session.as_str()), (expected, "sess_1"), "{event}");
    }
    // Hooks of agents of CLI 2 have events of other names.
    let error = read("preToolUse", &json!({"tool_name": "shell", "tool_input": {}})).unwrap_err();
    assert_eq!(error, HookError::UnknownCall { name: "preToolUse".into(), judged: "PreToolUse" });
    // The IDE before 1.0 told its hooks nothing.
    assert!(Agent::Kiro.parse(b"").is_err());
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        (
            "execute_bash",
            json!({"command": "ls", "cwd": "/home/dev", "run_in_background": false, "timeout": 10}),
            "Bash",
            json!({"command": "ls", "workdir": "/home/dev", "run_in_background": false, "timeout": 10}),
        ),
        (
            "read_file",
            json!({"path": "/p/a", "offset": 1}),
            "Read",
            json!({"file_path": "/p/a", "offset": 1}),
        ),
        (
            "fs_write",
            json!({"path": "/p/a", "text": "x"}),
            "Write",
            json!({"file_path": "/p/a", "content": "x"}),
        ),
        (
            "fs_append",
            json!({"path": "/p/a", "text": "x"}),
            "Edit",
            json!({"file_path": "/p/a", "new_string": "x"}),
        ),
        (
            "str_replace",
            json!({"path": "/p/a", "oldStr": "a", "newStr": "b", "replace_all": false}),
            "Edit",
            json!({"file_path": "/p/a", "old_string": "a", "new_string": "b", "replace_all": false}),
        ),
        ("delete_file", json!({"targetFile": "/p/a"}), "Delete", json!({"file_path": "/p/a"})),
        ("list_directory", json!({"depth": 1}), "LS", json!({"depth": 1, "path": "."})),
        (
            "grep_search",
            json!({"query": "x", "includePattern": "*.rs"}),
            "Grep",
            json!({"pattern": "x", "glob": "*.rs"}),
        ),
        ("@postgres/query", json!({"sql": "SELECT 1"}), "mcp__postgres__query", json!({"sql": "SELECT 1"})),
        // Nobody has shown what is told of these: they are held.
        ("read_files", json!({"paths": ["/p/a"]}), "read_files", json!({"paths": ["/p/a"]})),
        ("invoke_sub_agent", json!({}), "invoke_sub_agent", json!({})),
        ("mcp_postgres_query", json!({}), "mcp_postgres_query", json!({})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
}

#[test]
fn it_is_denied_by_the_exit_code_and_told_nothing_else() {
    let event = HookEvent::PreToolUse(call("execute_bash", &json!({"command": "ls"})));
    let denied = Answer::Call(Decision::Deny("no".into()));
    assert_eq!(Agent::Kiro.refusal(&denied, &event).as_deref(), Some("no"));
    for answer in [Answer::Call(Decision::Allow(None)), Answer::Nothing, Answer::GoOn("1 open".into())] {
        assert_eq!(Agent::Kiro.refusal(&answer, &event), None);
        assert_eq!(Agent::Kiro.line(&answer, Some("note"), &event), " ");
    }
}
