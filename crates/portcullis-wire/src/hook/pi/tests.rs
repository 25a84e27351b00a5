//! What the extension tells, and is answered.

use serde_json::json;

use super::super::{Decision, HookCall, HookError, HookInput, ResultAnswer, ToolResponse};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({"hook_event_name": event, "session_id": "p", "cwd": "/home/dev/shop"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Pi.parse(input.to_string().as_bytes())
}

/// What the tool and its arguments are in the words of bundles.
fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments, "tool_use_id": "c"});
    let HookEvent::PreToolUse(call) = read("tool_call", &more).unwrap().event else { panic!() };
    call
}

#[test]
fn every_event_is_read() {
    let shell = json!({
        "tool_name": "bash", "tool_input": {"command": "ls"}, "tool_use_id": "c", "tool_response": "a", "error": "no",
    });
    let ls = call("bash", &json!({"command": "ls"}));
    for (event, more, expected) in [
        ("session_start", json!({}), HookEvent::SessionStart),
        ("session_shutdown", json!({}), HookEvent::SessionEnd),
        ("input", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        ("tool_call", shell.clone(), HookEvent::PreToolUse(ls.clone())),
        (
            "tool_result",
            shell.clone(),
            HookEvent::PostToolUse(ls.clone(), ToolResponse { text: "a".into(), json: false }),
        ),
        ("tool_failure", shell, HookEvent::PostToolUseFailure(ls, "no".into())),
    ] {
        assert_eq!(read(event, &more).unwrap().event, expected, "{event}");
    }
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        ("read", json!({"path": "a", "limit": 2}), "Read", json!({"file_path": "a", "limit": 2})),
        ("write", json!({"path": "a", "content": "x"}), "Write", json!({"file_path": "a", "content": "x"})),
        (
            "edit",
            json!({"path": "a", "oldText": "x", "newText": "y"}),
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
        ),
        ("find", json!({"pattern": "*.rs"}), "Glob", json!({"pattern": "*.rs"})),
        ("ls", json!({}), "LS", json!({"path": "."})),
        ("my_tool", json!({"path": "a"}), "my_tool", json!({"path": "a"})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
}

#[test]
fn the_extension_is_answered_in_few_words() {
    let event = HookEvent::PreToolUse(call("write", &json!({"path": "a", "content": "x"})));
    let said = |answer: &Answer, event: &HookEvent| -> Value {
        serde_json::from_str(&Agent::Pi.line(answer, Some("note"), event)).unwrap()
    };
    let decided = |decision| said(&Answer::Call(decision), &event);
    assert_eq!(decided(Decision::Allow(None)), json!({}));
    for decision in [Decision::Deny("no".into()), Decision::Ask("no".into(), None)] {
        assert_eq!(decided(decision), json!({"decision": "deny", "reason": "no"}));
    }
    let changed = Decision::Allow(Some(json!({"file_path": "a", "content": "y"})));
    assert_eq!(decided(changed), json!({"arguments": {"path": "a", "content": "y"}}));
    let prompt = HookEvent::Prompt(String::new());
    assert_eq!(said(&Answer::PromptBlocked("no".into()), &prompt), json!({"withheld": "no"}));
    let whole = ResultAnswer { instead: Some("cut".into()), ..ResultAnswer::default() };
    assert_eq!(said(&Answer::Result(whole), &event), json!({"shown": "cut"}));
}

#[test]
fn names_of_files_are_those_that_pi_opens() {
    for (told, opened) in [
        ("src/a.rs", "src/a.rs"),
        ("@~/.bashrc", "~/.bashrc"),
        ("@../x", "../x"),
        ("@@x", "@x"),
        ("a\u{a0}b", "a b"),
        ("file:///etc/a%20b", "/etc/a b"),
        ("@file://localhost/etc/passwd", "/etc/passwd"),
        ("file:///a%", "/a%"),
    ] {
        assert_eq!(super::opened(told), opened, "{told}");
    }
}
