//! The shapes of `docs/hooks/README.md`, filled in.

use serde_json::json;

use super::super::{HookCall, HookError, HookInput};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({"event": event, "session_id": "313909e", "cwd": "/home/dev/shop"});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Crush.parse(input.to_string().as_bytes())
}

/// What the tool and its arguments are in the words of bundles.
fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments});
    let HookEvent::PreToolUse(call) = read("PreToolUse", &more).unwrap().event else { panic!() };
    call
}

#[test]
fn its_only_event_is_read_and_others_about_calls_are_refused() {
    let ls = call("bash", &json!({"command": "ls"}));
    assert_eq!((ls.tool.as_str(), ls.shown(), &ls.id), ("Bash", "bash", &None));
    // Its documentation has any spelling in settings; what is told has this one.
    for event in ["pre_tool_use", "PostToolUse"] {
        let error = read(event, &json!({"tool_name": "bash", "tool_input": {}})).unwrap_err();
        assert_eq!(error, HookError::UnknownCall { name: event.into(), judged: "PreToolUse" });
    }
    assert_eq!(read("UserPromptSubmit", &json!({"prompt": "hi"})).unwrap().event, HookEvent::Other);
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        (
            "bash",
            json!({"command": "ls", "working_dir": "/p"}),
            "Bash",
            json!({"command": "ls", "workdir": "/p"}),
        ),
        ("view", json!({"file_path": "a"}), "Read", json!({"file_path": "a"})),
        ("grep", json!({"pattern": "x", "include": "*.rs"}), "Grep", json!({"pattern": "x", "glob": "*.rs"})),
        ("ls", json!({}), "LS", json!({"path": "."})),
        ("ls", json!({"path": "/p"}), "LS", json!({"path": "/p"})),
        (
            "fetch",
            json!({"url": "https://a.example", "format": "text"}),
            "WebFetch",
            json!({"url": "https://a.example", "format": "text"}),
        ),
        // What a sub-agent does is not told, so starting one is held; names of servers' tools do not say where the
        // server's ends.
        ("agent", json!({"prompt": "x"}), "agent", json!({"prompt": "x"})),
        ("agentic_fetch", json!({"prompt": "x"}), "agentic_fetch", json!({"prompt": "x"})),
        ("mcp_fs_read", json!({}), "mcp_fs_read", json!({})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
}

#[test]
fn answers_have_the_documented_form() {
    let event = HookEvent::PreToolUse(call(
        "bash",
        &json!({"command": "ls", "working_dir": "/p", "description": ""}),
    ));
    let said = |answer: &Answer| -> Value {
        serde_json::from_str(&Agent::Crush.line(answer, Some("note"), &event)).unwrap()
    };
    let decided = |decision| said(&Answer::Call(decision));
    assert_eq!(decided(Decision::Allow(None)), json!({"decision": "allow"}));
    for decision in [Decision::Deny("no".into()), Decision::Ask("no".into(), None)] {
        assert_eq!(decided(decision), json!({"decision": "deny", "reason": "no"}));
    }
    let changed = json!({"command": "pwd", "workdir": "/p", "description": ""});
    assert_eq!(
        decided(Decision::Allow(Some(changed))),
        json!({"decision": "allow", "updated_input": {"command": "pwd", "working_dir": "/p", "description": ""}})
    );
    // It would put back what was taken away.
    let fewer = decided(Decision::Allow(Some(json!({"command": "pwd", "description": ""}))));
    assert_eq!(fewer["decision"], "deny");
    assert_eq!(said(&Answer::Nothing), json!({}));
}
