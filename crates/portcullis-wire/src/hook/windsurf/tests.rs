//! The shapes of the page, filled in.

use serde_json::json;

use super::super::{Answer, Decision, HookEvent, HookInput, ResultAnswer, ToolResponse};
use super::*;

fn read(event: &str, told: &Value) -> Result<HookInput, HookError> {
    let input = json!({
        "agent_action_name": event, "trajectory_id": "w", "execution_id": "e", "model_name": "SWE-1.5",
        "timestamp": "2026-02-03T10:00:00Z", "tool_info": told,
    });
    Agent::Windsurf.parse(input.to_string().as_bytes())
}

fn call(event: &str, told: &Value) -> HookCall {
    let HookEvent::PreToolUse(call) = read(event, told).unwrap().event else { panic!("{event}") };
    call
}

#[test]
fn every_event_is_read() {
    let command = json!({"command_line": "npm install", "cwd": "/home/dev/shop"});
    let issue = json!({
        "mcp_server_name": "github", "mcp_tool_name": "create_issue", "mcp_tool_arguments": {"title": "Bug"},
    });
    let mut answered = issue.clone();
    answered["mcp_result"] = "#7".into();
    let nothing = ToolResponse::default();
    for (event, told, expected) in [
        ("pre_user_prompt", json!({"user_prompt": "hi"}), HookEvent::Prompt("hi".into())),
        (
            "post_run_command",
            command.clone(),
            HookEvent::PostToolUse(call("pre_run_command", &command), nothing.clone()),
        ),
        (
            "post_mcp_tool_use",
            answered,
            HookEvent::PostToolUse(
                call("pre_mcp_tool_use", &issue),
                ToolResponse { text: "#7".into(), json: false },
            ),
        ),
        ("post_cascade_response", json!({"response": "Done."}), HookEvent::Stop(Some("Done.".into()))),
        ("post_cascade_response_with_transcript", json!({"transcript_path": "/t"}), HookEvent::Other),
        ("post_setup_worktree", json!({"worktree_path": "/w"}), HookEvent::Other),
    ] {
        let read = read(event, &told).unwrap();
        assert_eq!((read.event, read.session.as_str()), (expected, "w"), "{event}");
        assert!(read.kept_going, "what it is told then, it does not read");
    }
    // Releases of 2025 named no conversation here, so that what follows would be another run.
    let unnamed = json!({"agent_action_name": "pre_user_prompt", "trajectory_id": "", "tool_info": {"user_prompt": "hi"}});
    assert!(Agent::Windsurf.parse(unnamed.to_string().as_bytes()).is_err());
    assert!(matches!(
        read("pre_delete_code", &json!({"file_path": "/p"})).unwrap_err(),
        HookError::UnknownCall { .. }
    ));
}

#[test]
fn calls_are_those_of_bundles() {
    let edits = json!([{"old_string": "a", "new_string": "b"}]);
    for (event, told, ours, arguments, shown) in [
        (
            "pre_run_command",
            json!({"command_line": "ls", "cwd": "/home/dev/shop"}),
            "Bash",
            json!({"command": "ls", "workdir": "/home/dev/shop"}),
            "run_command",
        ),
        ("pre_read_code", json!({"file_path": "/p/a"}), "Read", json!({"file_path": "/p/a"}), "read_code"),
        (
            "pre_write_code",
            json!({"file_path": "/p/a", "edits": edits}),
            "MultiEdit",
            json!({"file_path": "/p/a", "edits": edits}),
            "write_code",
        ),
        (
            "pre_mcp_tool_use",
            json!({"mcp_server_name": "s", "mcp_tool_name": "t", "mcp_tool_arguments": {"a": 1}}),
            "mcp__s__t",
            json!({"a": 1}),
            "t",
        ),
        (
            "pre_mcp_tool_use",
            json!({"mcp_server_name": "s", "mcp_tool_name": "t"}),
            "mcp__s__t",
            json!({}),
            "t",
        ),
    ] {
        let call = call(event, &told);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &arguments, shown));
    }
    let there = json!({"command_line": "ls", "cwd": "/home/dev/shop"});
    assert_eq!(read("pre_run_command", &there).unwrap().directory.as_deref(), Some("/home/dev/shop"));
    for told in [
        json!({}),
        json!({"mcp_server_name": "s"}),
        json!({"mcp_server_name": "", "mcp_tool_name": "t"}),
        json!({"mcp_server_name": "s", "mcp_tool_name": ["t"]}),
        json!({"mcp_server_name": "s", "mcp_tool_name": "t", "mcp_tool_arguments": "x"}),
    ] {
        assert!(read("pre_mcp_tool_use", &told).is_err(), "{told}");
    }
    assert!(read("pre_run_command", &json!("ls")).is_err());
}

#[test]
fn it_is_denied_by_the_exit_code() {
    let event = HookEvent::PreToolUse(call("pre_run_command", &json!({"command_line": "ls"})));
    let refusal = |answer: &Answer, event: &HookEvent| Agent::Windsurf.refusal(answer, event);
    let decided = |decision| refusal(&Answer::Call(decision), &event);
    assert_eq!(decided(Decision::Allow(None)), None);
    assert_eq!(decided(Decision::Deny("no".into())).as_deref(), Some("no"));
    assert_eq!(decided(Decision::Ask("no".into(), None)).as_deref(), Some("no"));
    // Arguments cannot be changed.
    assert!(decided(Decision::Allow(Some(json!({"command": "pwd"})))).is_some());
    let prompt = HookEvent::Prompt(String::new());
    assert_eq!(refusal(&Answer::PromptBlocked("no".into()), &prompt).as_deref(), Some("no"));
    let beside = Answer::Result(ResultAnswer { context: Some("data".into()), ..ResultAnswer::default() });
    assert_eq!(refusal(&beside, &event).as_deref(), Some("data"));
    assert_eq!(refusal(&Answer::Nothing, &event), None);
    assert_eq!(Agent::Windsurf.line(&Answer::Nothing, Some("note"), &event), "{}");
}
