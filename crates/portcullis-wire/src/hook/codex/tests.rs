//! The shapes of `codex-rs/hooks/schema/generated/`, filled in, and what its output parser makes of the answers.

use serde_json::json;

use super::super::{HookCall, HookError, HookEvent, HookInput, ResultAnswer, ToolResponse};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({
        "session_id": "c", "turn_id": "t", "transcript_path": null, "cwd": "/home/dev/shop",
        "hook_event_name": event, "model": "m", "permission_mode": "default",
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::Codex.parse(input.to_string().as_bytes())
}

fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments, "tool_use_id": "call_1"});
    let HookEvent::PreToolUse(call) = read("PreToolUse", &more).unwrap().event else { panic!() };
    call
}

fn said(answer: &Answer, event: &HookEvent) -> Value {
    serde_json::from_str(&Agent::Codex.line(answer, None, event)).unwrap()
}

#[test]
fn every_event_is_read() {
    let shell = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_1"});
    let mut answered = shell.clone();
    answered["tool_response"] = "a\n".into();
    let ls = call("Bash", &json!({"command": "ls"}));
    assert_eq!(ls.id.as_deref(), Some("call_1"));
    for (event, more, expected) in [
        ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
        ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        ("PreToolUse", shell.clone(), HookEvent::PreToolUse(ls.clone())),
        (
            "PostToolUse",
            answered,
            HookEvent::PostToolUse(ls, ToolResponse { text: "a\n".into(), json: false }),
        ),
        ("Stop", json!({"stop_hook_active": false, "last_assistant_message": null}), HookEvent::Stop(None)),
        (
            "Stop",
            json!({"stop_hook_active": true, "last_assistant_message": "done"}),
            HookEvent::Stop(Some("done".into())),
        ),
        // It is about a call that its own event judges.
        ("PermissionRequest", shell, HookEvent::Other),
        ("PreCompact", json!({"trigger": "auto"}), HookEvent::Other),
        ("SubagentStop", json!({"agent_id": "a"}), HookEvent::Other),
    ] {
        assert_eq!(read(event, &more).unwrap().event, expected, "{event}");
    }
}

#[test]
fn tools_are_those_of_bundles() {
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (theirs, arguments, ours, as_ours) in [
        ("Bash", json!({"command": "ls"}), "Bash", json!({"command": "ls"})),
        ("apply_patch", json!({"command": patch}), "ApplyPatch", json!({"patch": patch})),
        ("view_image", json!({"path": "a.png"}), "Read", json!({"file_path": "a.png"})),
        ("read_file", json!({"file_path": "/a", "limit": 2}), "Read", json!({"file_path": "/a", "limit": 2})),
        ("list_dir", json!({"dir_path": "/"}), "LS", json!({"path": "/"})),
        (
            "grep_files",
            json!({"pattern": "x", "include": "*.rs", "path": "/"}),
            "Grep",
            json!({"pattern": "x", "glob": "*.rs", "path": "/"}),
        ),
        ("mcp__fs__read", json!({"path": "/"}), "mcp__fs__read", json!({"path": "/"})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments, call.shown()), (ours, &as_ours, theirs));
    }
    // A hosted tool by a name of bundles is none of theirs.
    let foreign = json!({"tool_name": "WebFetch", "tool_input": {"url": "https://a.example"}});
    assert_eq!(read("PreToolUse", &foreign).unwrap_err(), HookError::ForeignTool("WebFetch".into()));
}

/// Whatever the parser calls unsupported lets the call pass: `allow` without changed arguments, `ask`, a denial without
/// a reason, `continue`, `stopReason`, `suppressOutput`, and any field that it does not know.
fn is_supported(answer: &Value) -> bool {
    let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
    let known = ["decision", "reason", "hookSpecificOutput", "systemMessage"];
    if !fields.iter().all(|field| known.contains(&field.as_str())) {
        return false;
    }
    let says = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if answer.get("decision").is_some_and(|decision| decision != "block" || !says(&answer["reason"])) {
        return false;
    }
    let Some(output) = answer.get("hookSpecificOutput") else { return true };
    match output.get("permissionDecision").and_then(Value::as_str) {
        Some("allow") => output["updatedInput"].is_object(),
        Some("deny") => says(&output["permissionDecisionReason"]) && output.get("updatedInput").is_none(),
        Some(_) => false,
        None => output.get("updatedInput").is_none() && output.get("updatedMCPToolOutput").is_none(),
    }
}

#[test]
fn answers_have_the_documented_form() {
    let event = HookEvent::PreToolUse(call("apply_patch", &json!({"command": "x"})));
    let decided = |decision| said(&Answer::Call(decision), &event);
    let denied = |why: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                      "permissionDecisionReason": why}})
    };
    assert_eq!(decided(Decision::Allow(None)), json!({}), "it cannot be said");
    assert_eq!(decided(Decision::Deny("no".into())), denied("no"));
    assert_eq!(decided(Decision::Ask("why".into(), None)), denied("why"), "`ask` lets the call pass");
    assert_eq!(
        decided(Decision::Allow(Some(json!({"patch": "y"})))),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                                      "updatedInput": {"command": "y"}}}),
        "in the agent's own words"
    );
    for decision in [
        Decision::Allow(None),
        Decision::Allow(Some(json!({"patch": "y"}))),
        Decision::Deny(" ".into()),
        Decision::Ask(String::new(), Some(json!({"patch": "y"}))),
    ] {
        assert!(is_supported(&decided(decision.clone())), "{decision:?}");
    }
    let prompt = HookEvent::Prompt(String::new());
    assert_eq!(
        said(&Answer::PromptBlocked("no".into()), &prompt),
        json!({"decision": "block", "reason": "no"})
    );
    let open = said(&Answer::GoOn("1 open".into()), &HookEvent::Stop(None));
    assert_eq!(open, json!({"decision": "block", "reason": "1 open"}));
}

#[test]
fn a_result_is_shown_as_the_gate_leaves_it() {
    let event = HookEvent::PostToolUse(call("mcp__a__b", &json!({})), ToolResponse::default());
    let whole = ResultAnswer {
        instead: Some("It [cut] rained.".into()),
        reason: None,
        context: Some("A stretch was cut.".into()),
    };
    let cut = said(&Answer::Result(whole), &event);
    assert_eq!(cut, json!({"decision": "block", "reason": "A stretch was cut.\n\nIt [cut] rained."}));
    let beside = said(
        &Answer::Result(ResultAnswer { context: Some("data".into()), ..ResultAnswer::default() }),
        &event,
    );
    assert_eq!(beside["hookSpecificOutput"]["additionalContext"], "data");
    assert!(is_supported(&cut) && is_supported(&beside));
}
