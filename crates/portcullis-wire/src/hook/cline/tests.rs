//! The payloads of `hook-file-hooks.ts`, filled in.

use serde_json::json;

use super::super::{HookInput, ResultAnswer};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({
        "clineVersion": "3.0.0", "timestamp": "2026-08-22T20:03:18.000Z", "taskId": "conv_1",
        "sessionContext": {"rootSessionId": "conv_1"}, "workspaceRoots": ["/home/dev/shop"], "userId": "dev",
        "agent_id": "agent_1", "parent_agent_id": null, "hookName": event,
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Cline.parse(input.to_string().as_bytes())
}

fn call(tool: &str, input: &Value) -> HookCall {
    let more = json!({
        "iteration": 1, "tool_call": {"id": "call_1", "name": tool, "input": input},
        "preToolUse": {"toolName": tool, "parameters": {"commands": "[\"something else\"]"}},
    });
    let HookEvent::PreToolUse(call) = read("tool_call", &more).unwrap().event else { panic!() };
    call
}

#[test]
fn every_event_is_read() {
    let input = json!({"commands": ["ls"]});
    let made = |output: Value, error: Value| {
        json!({"tool_result": {
            "id": "call_1", "name": "run_commands", "input": input, "output": output, "error": error, "durationMs": 5,
        }})
    };
    let ls = call("run_commands", &input);
    let text = |text: &str, json| ToolResponse { text: text.into(), json };
    for (event, more, expected) in [
        ("agent_start", json!({"taskStart": {"taskMetadata": {}}}), HookEvent::Other),
        ("prompt_submit", json!({"userPromptSubmit": {"prompt": "hi", "attachments": []}}), HookEvent::Other),
        ("tool_result", made(json!("a"), Value::Null), HookEvent::PostToolUse(ls.clone(), text("a", false))),
        (
            "tool_result",
            made(json!([{"query": "ls"}]), Value::Null),
            HookEvent::PostToolUse(ls.clone(), text(r#"[{"query":"ls"}]"#, true)),
        ),
        ("tool_result", made(json!("no"), json!("no")), HookEvent::PostToolUseFailure(ls, "no".into())),
        (
            "agent_end",
            json!({"turn": {"outputText": "Done.", "status": "completed"}}),
            HookEvent::Stop(Some("Done.".into())),
        ),
        ("session_shutdown", json!({"reason": "aborted"}), HookEvent::Other),
    ] {
        let read = read(event, &more).unwrap();
        assert_eq!((read.event, read.session.as_str()), (expected, "conv_1"), "{event}");
        assert_eq!(read.directory.as_deref(), Some("/home/dev/shop"));
    }
}

/// The editor makes texts of all arguments, and of a list or a text nothing.
#[test]
fn calls_of_the_editor_are_refused() {
    for (event, member) in [("PreToolUse", "preToolUse"), ("PostToolUse", "postToolUse")] {
        let told = json!({member: {"toolName": "run_commands", "parameters": {"commands": "[\"ls\"]"}}});
        assert!(read(event, &told).is_err(), "{event}");
    }
    for input in [json!(["ls"]), json!("ls")] {
        let told = json!({"tool_call": {"id": "call_1", "name": "run_commands", "input": input}});
        assert!(read("tool_call", &told).is_err(), "{input}");
    }
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        ("run_commands", json!({"commands": ["ls"]}), "Bash", json!({"command": "ls"})),
        ("run_commands", json!({"commands": "ls"}), "Bash", json!({"command": "ls"})),
        ("run_commands", json!({"cmd": "ls"}), "Bash", json!({"command": "ls"})),
        ("run_commands", json!({"command": "ls", "args": null}), "Bash", json!({"command": "ls"})),
        (
            "run_commands",
            json!({"commands": ["cd src", "echo 'a' \"b"]}),
            "Bash",
            json!({"command": "sh -c 'cd src'\nsh -c 'echo '\\''a'\\'' \"b'"}),
        ),
        (
            "read_files",
            json!({"files": [{"path": "/p/a", "start_line": 3, "end_line": null}]}),
            "Read",
            json!({"file_path": "/p/a"}),
        ),
        (
            "read_files",
            json!({"files": ["/p/a", {"filePath": "/p/b"}, {"file_path": "/p/c"}]}),
            "ReadFiles",
            json!({"file_paths": ["/p/a", "/p/b", "/p/c"]}),
        ),
        ("read_files", json!({"paths": "/p/a"}), "Read", json!({"file_path": "/p/a"})),
        ("search_codebase", json!({"queries": ["a", "b"]}), "Grep", json!({"pattern": "a|b", "path": "."})),
        (
            "fetch_web_content",
            json!({"requests": [
                {"url": "https://a.example", "prompt": "A"}, {"url": "https://b.example", "prompt": "B"},
            ]}),
            "WebFetch",
            json!({"url": "https://a.example https://b.example", "prompt": "A\nB"}),
        ),
        (
            "editor",
            json!({"path": "/p/a", "old_text": null, "new_text": "b", "insert_line": null}),
            "Edit",
            json!({"file_path": "/p/a", "new_string": "b"}),
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch"}),
            "ApplyPatch",
            json!({"patch": "*** Begin Patch"}),
        ),
        ("postgres__query", json!({"sql": "SELECT 1"}), "mcp__postgres__query", json!({"sql": "SELECT 1"})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
        assert_eq!(call.id.as_deref(), Some("call_1"));
    }
}

/// Which of them counts is Cline's to say.
#[test]
fn forms_that_are_not_known_are_held() {
    for (tool, arguments) in [
        ("run_commands", json!({"commands": ["ls"], "command": "pwd"})),
        ("run_commands", json!({"command": "ls", "args": ["-l"]})),
        ("run_commands", json!({"commands": []})),
        ("run_commands", json!({"commands": [{"command": "ls"}]})),
        ("read_files", json!({"files": [{"path": "/p/a", "filePath": "/p/b"}]})),
        ("read_files", json!({"files": []})),
        ("spawn_agent", json!({"task": "x"})),
    ] {
        let call = call(tool, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments), (tool, &arguments));
    }
}

#[test]
fn a_denial_cancels_and_is_never_without_a_reason() {
    let event = HookEvent::PreToolUse(call("run_commands", &json!({"commands": ["ls"]})));
    for (answer, expected) in [
        (Answer::Nothing, json!({})),
        (Answer::Call(Decision::Allow(None)), json!({})),
        (Answer::Call(Decision::Deny("no".into())), json!({"cancel": true, "errorMessage": "no"})),
        (
            Answer::Call(Decision::Ask("really?".into(), None)),
            json!({"cancel": true, "errorMessage": "really?"}),
        ),
        (
            Answer::Call(Decision::Deny(" ".into())),
            json!({"cancel": true, "errorMessage": "Portcullis denied it"}),
        ),
        (
            Answer::Result(ResultAnswer { context: Some("data".into()), ..ResultAnswer::default() }),
            json!({"contextModification": "data"}),
        ),
        (Answer::GoOn("1 open".into()), json!({})),
    ] {
        assert_eq!(Agent::Cline.line(&answer, None, &event), expected.to_string());
    }
}
