//! The shapes of `docs/en/customization/hooks.md` and of the code, filled in.

use serde_json::json;

use super::super::{HookCall, HookError, HookInput, ResultAnswer, ToolResponse};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({
        "hook_event_name": event, "session_id": "session_k", "session_title": "t", "client_type": "kimi_code_cli",
        "cwd": "/home/dev/shop",
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::KimiCode.parse(input.to_string().as_bytes())
}

/// What the tool and its arguments are in the words of bundles.
fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments, "tool_call_id": "call_1"});
    let HookEvent::PreToolUse(call) = read("PreToolUse", &more).unwrap().event else { panic!() };
    call
}

#[test]
fn every_event_is_read() {
    let shell = |more: Value| {
        let mut whole =
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_call_id": "call_1"});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole
    };
    let ls = call("Bash", &json!({"command": "ls"}));
    assert_eq!(ls.id.as_deref(), Some("call_1"));
    let failed = json!({"name": "Error", "message": "no"});
    for (event, more, expected) in [
        ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
        ("SessionEnd", json!({"reason": "exit"}), HookEvent::SessionEnd),
        ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        (
            "UserPromptSubmit",
            json!({"prompt": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            HookEvent::Prompt("a\nb".into()),
        ),
        (
            "UserPromptSubmit",
            json!({"prompt": [{"type": "image", "url": "u"}]}),
            HookEvent::Prompt(r#"[{"type":"image","url":"u"}]"#.into()),
        ),
        ("PreToolUse", shell(json!({})), HookEvent::PreToolUse(ls.clone())),
        (
            "PostToolUse",
            shell(json!({"tool_output": "a\n"})),
            HookEvent::PostToolUse(ls.clone(), ToolResponse { text: "a\n".into(), json: false }),
        ),
        (
            "PostToolUseFailure",
            shell(json!({ "error": failed })),
            HookEvent::PostToolUseFailure(ls, failed.to_string()),
        ),
        ("Stop", json!({"stop_hook_active": false}), HookEvent::Stop(None)),
        // They are about calls that their own event judges.
        ("PermissionRequest", shell(json!({})), HookEvent::Other),
        ("PermissionResult", shell(json!({})), HookEvent::Other),
        ("TurnStarted", json!({"prompt": "hi"}), HookEvent::Other),
    ] {
        assert_eq!(read(event, &more).unwrap().event, expected, "{event}");
    }
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        ("Bash", json!({"command": "ls", "cwd": "/p"}), "Bash", json!({"command": "ls", "workdir": "/p"})),
        ("Read", json!({"path": "a", "n_lines": 2}), "Read", json!({"file_path": "a", "n_lines": 2})),
        ("ReadMediaFile", json!({"path": "a.png"}), "Read", json!({"file_path": "a.png"})),
        (
            "Write",
            json!({"path": "a", "content": "x", "mode": "append"}),
            "Write",
            json!({"file_path": "a", "content": "x", "mode": "append"}),
        ),
        ("FetchURL", json!({"url": "https://a.example"}), "WebFetch", json!({"url": "https://a.example"})),
        ("mcp__fs__read", json!({"path": "/"}), "mcp__fs__read", json!({"path": "/"})),
        // It starts agents of its own; nobody has described it.
        ("AgentSwarm", json!({"items": []}), "AgentSwarm", json!({"items": []})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
    let foreign = json!({"tool_name": "LS", "tool_input": {}});
    assert_eq!(read("PreToolUse", &foreign).unwrap_err(), HookError::ForeignTool("LS".into()));
}

/// Whatever stands on standard output after a prompt becomes a part of the conversation.
#[test]
fn nothing_is_said_but_denials() {
    let said = |answer: &Answer, event: &HookEvent| Agent::KimiCode.line(answer, Some("note"), event);
    let call = HookEvent::PreToolUse(call("Bash", &json!({"command": "ls"})));
    let prompt = HookEvent::Prompt(String::new());
    let stop = HookEvent::Stop(None);
    assert_eq!(said(&Answer::Nothing, &prompt), " ");
    assert_eq!(said(&Answer::Call(Decision::Allow(None)), &call), " ");
    let beside = Answer::Result(ResultAnswer { context: Some("data".into()), ..ResultAnswer::default() });
    assert_eq!(said(&beside, &call), " ");
    for (answer, event, name) in [
        (Answer::Call(Decision::Deny("no".into())), &call, "PreToolUse"),
        (Answer::Call(Decision::Ask("no".into(), None)), &call, "PreToolUse"),
        (Answer::PromptBlocked("no".into()), &prompt, "UserPromptSubmit"),
        (Answer::GoOn("no".into()), &stop, "Stop"),
    ] {
        let said: Value = serde_json::from_str(&said(&answer, event)).unwrap();
        let output = json!({
            "hookEventName": name, "permissionDecision": "deny", "permissionDecisionReason": "no",
        });
        assert_eq!(said, json!({ "hookSpecificOutput": output }), "{answer:?}");
    }
    let changed = said(&Answer::Call(Decision::Allow(Some(json!({"command": "pwd"})))), &call);
    assert!(changed.contains("deny"), "it takes no changed arguments: {changed}");
}
