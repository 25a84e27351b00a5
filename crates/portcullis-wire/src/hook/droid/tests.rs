//! The shapes of `hooks-reference.mdx`, filled in.

use serde_json::json;

use super::super::{HookInput, ResultAnswer, ToolResponse};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({
        "session_id": "d", "transcript_path": "/home/dev/.factory/projects/x/y.jsonl", "cwd": "/home/dev/shop",
        "permission_mode": "off", "hook_event_name": event,
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Droid.parse(input.to_string().as_bytes())
}

/// What the tool and its arguments are in the words of bundles.
fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments});
    let HookEvent::PreToolUse(call) = read("PreToolUse", &more).unwrap().event else { panic!() };
    call
}

fn said(answer: &Answer, event: &HookEvent) -> Value {
    serde_json::from_str(&Agent::Droid.line(answer, None, event)).unwrap()
}

#[test]
fn every_event_is_read() {
    let created = json!({
        "tool_name": "Create", "tool_input": {"file_path": "/p/f.txt", "content": "x"},
        "tool_response": {"filePath": "/p/f.txt", "success": true},
    });
    let call = call("Create", &created["tool_input"]);
    let response = ToolResponse { text: r#"{"filePath":"/p/f.txt","success":true}"#.into(), json: true };
    for (event, more, expected) in [
        ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
        ("SessionEnd", json!({"reason": "other"}), HookEvent::SessionEnd),
        ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        ("PreToolUse", created.clone(), HookEvent::PreToolUse(call.clone())),
        ("PostToolUse", created, HookEvent::PostToolUse(call, response)),
        ("Stop", json!({"stop_hook_active": true}), HookEvent::Stop(None)),
        ("SubagentStop", json!({"stop_hook_active": false}), HookEvent::Other),
        ("PreCompact", json!({"trigger": "manual", "custom_instructions": ""}), HookEvent::Other),
        ("Notification", json!({"message": "done"}), HookEvent::Other),
    ] {
        let read = read(event, &more).unwrap();
        assert_eq!((read.event, read.session.as_str()), (expected, "d"), "{event}");
        assert_eq!(read.kept_going, event == "Stop");
    }
    // What releases are said to have sent before: nothing passes by it.
    let camel =
        br#"{"sessionId": "d", "hookEventName": "PreToolUse", "tool_name": "Execute", "tool_input": {}}"#;
    assert!(Agent::Droid.parse(camel).is_err());
}

#[test]
fn tools_are_those_of_bundles() {
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (theirs, arguments, ours, as_ours) in [
        ("Execute", json!({"command": "ls"}), "Bash", json!({"command": "ls"})),
        (
            "Edit",
            json!({"file_path": "a", "old_str": "x", "new_str": "y", "change_all": true}),
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "change_all": true}),
        ),
        (
            "Edit",
            json!({"file_path": "a", "changes": [{"old_str": "x", "new_str": "y"}]}),
            "MultiEdit",
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
        ),
        ("ApplyPatch", json!({"input": patch}), "ApplyPatch", json!({"patch": patch})),
        ("LS", json!({}), "LS", json!({"path": "."})),
        ("LS", json!({"directory_path": "/p"}), "LS", json!({"path": "/p"})),
        ("Glob", json!({"patterns": ["*.rs"]}), "Glob", json!({"pattern": "*.rs"})),
        (
            "Glob",
            json!({"patterns": ["*.rs", "/etc/*"], "folder": "src"}),
            "Glob",
            json!({"pattern": "{*.rs,/etc/*}", "path": "src"}),
        ),
        // What it does not take is left for the schema to refuse.
        ("Glob", json!({"patterns": [1]}), "Glob", json!({"patterns": [1]})),
        ("FetchUrl", json!({"url": "https://a.example"}), "WebFetch", json!({"url": "https://a.example"})),
        ("mcp__memory__list", json!({}), "mcp__memory__list", json!({})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
    let refused = |tool: &str, arguments: Value| {
        read("PreToolUse", &json!({"tool_name": tool, "tool_input": arguments})).unwrap_err()
    };
    assert_eq!(refused("Bash", json!({"command": "ls"})), HookError::ForeignTool("Bash".into()));
    assert_eq!(refused("Glob", json!({"pattern": "a", "patterns": ["b"]})), HookError::TwoNames("pattern"));
    assert_eq!(refused("Edit", json!({"edits": [], "changes": []})), HookError::TwoNames("edits"));
}

#[test]
fn answers_have_the_documented_form() {
    let event = HookEvent::PreToolUse(call("Execute", &json!({"command": "ls"})));
    let decided = |decision| said(&Answer::Call(decision), &event)["hookSpecificOutput"].clone();
    assert_eq!(
        decided(Decision::Allow(None)),
        json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"})
    );
    let denied = json!({
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no",
    });
    assert_eq!(decided(Decision::Deny("no".into())), denied);
    assert_eq!(decided(Decision::Ask("no".into(), None)), denied, "a person decides with the gate");
    // It names no calls, so that the outcome would be that of another call.
    let changed = decided(Decision::Allow(Some(json!({"command": "pwd"}))));
    assert_eq!(changed["permissionDecision"], "deny");
    let prompt = HookEvent::Prompt(String::new());
    let blocked = json!({"decision": "block", "reason": "no"});
    assert_eq!(said(&Answer::PromptBlocked("no".into()), &prompt), blocked);
    assert_eq!(said(&Answer::GoOn("no".into()), &HookEvent::Stop(None)), blocked);
    let after = HookEvent::PostToolUse(call("Execute", &json!({})), ToolResponse::default());
    let beside = Answer::Result(ResultAnswer { context: Some("data".into()), ..ResultAnswer::default() });
    assert_eq!(
        said(&beside, &after),
        json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "data"}})
    );
}
