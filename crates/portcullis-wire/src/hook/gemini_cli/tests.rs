//! The shapes of `docs/hooks/reference.md`, filled in.

use serde_json::json;

use super::super::{HookEvent, HookInput, ResultAnswer};
use super::*;

fn read(event: &str, more: &Value) -> Result<HookInput, HookError> {
    let mut input = json!({
        "session_id": "g", "transcript_path": "/home/dev/.gemini/tmp/x/chats/y.json", "cwd": "/home/dev/shop",
        "hook_event_name": event, "timestamp": "2026-08-06T09:00:00.000Z",
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Agent::GeminiCli.parse(input.to_string().as_bytes())
}

/// What the tool and its arguments are in the words of bundles.
fn call(tool: &str, arguments: &Value) -> HookCall {
    let more = json!({"tool_name": tool, "tool_input": arguments});
    let HookEvent::PreToolUse(call) = read("BeforeTool", &more).unwrap().event else { panic!() };
    call
}

fn said(answer: &Answer, event: &HookEvent) -> Value {
    serde_json::from_str(&Agent::GeminiCli.line(answer, None, event)).unwrap()
}

#[test]
fn every_event_is_read() {
    let shell = json!({"tool_name": "run_shell_command", "tool_input": {"command": "ls"}});
    let with = |more: Value| {
        let mut whole = shell.clone();
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        whole
    };
    let ls = call("run_shell_command", &json!({"command": "ls"}));
    let answered = |response: Value| with(json!({ "tool_response": response }));
    for (event, more, expected) in [
        ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
        ("SessionEnd", json!({"reason": "exit"}), HookEvent::SessionEnd),
        ("BeforeAgent", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        ("BeforeTool", shell.clone(), HookEvent::PreToolUse(ls.clone())),
        (
            "AfterTool",
            answered(json!({"llmContent": "a\nb", "returnDisplay": "a"})),
            HookEvent::PostToolUse(ls.clone(), ToolResponse { text: "a\nb".into(), json: false }),
        ),
        (
            "AfterTool",
            answered(json!({"llmContent": [{"text": "a"}], "returnDisplay": "a", "error": null})),
            HookEvent::PostToolUse(ls.clone(), ToolResponse { text: r#"[{"text":"a"}]"#.into(), json: true }),
        ),
        (
            "AfterTool",
            answered(json!({"llmContent": "no", "returnDisplay": "no", "error": {"message": "no"}})),
            HookEvent::PostToolUseFailure(ls.clone(), "no".into()),
        ),
        // A shape that is not documented has happened all the same.
        (
            "AfterTool",
            answered(json!("plain")),
            HookEvent::PostToolUse(ls, ToolResponse { text: "plain".into(), json: false }),
        ),
        (
            "AfterAgent",
            json!({"prompt": "hi", "prompt_response": "done", "stop_hook_active": false}),
            HookEvent::Stop(Some("done".into())),
        ),
        ("BeforeModel", json!({"llm_request": {}}), HookEvent::Other),
        ("Notification", json!({"notification_type": "ToolPermission", "details": {}}), HookEvent::Other),
        ("PreCompress", json!({"trigger": "auto"}), HookEvent::Other),
    ] {
        let read = read(event, &more).unwrap();
        assert_eq!((read.event, read.session.as_str()), (expected, "g"), "{event}");
        assert_eq!(read.directory.as_deref(), Some("/home/dev/shop"));
    }
    assert!(read("AfterAgent", &json!({"stop_hook_active": true})).unwrap().kept_going);
}

#[test]
fn tools_are_those_of_bundles() {
    for (theirs, arguments, ours, as_ours) in [
        (
            "run_shell_command",
            json!({"command": "ls", "dir_path": "src", "description": "d"}),
            "Bash",
            json!({"command": "ls", "workdir": "src", "description": "d"}),
        ),
        (
            "read_file",
            json!({"file_path": "a", "start_line": 1}),
            "Read",
            json!({"file_path": "a", "start_line": 1}),
        ),
        (
            "write_file",
            json!({"file_path": "a", "content": "x"}),
            "Write",
            json!({"file_path": "a", "content": "x"}),
        ),
        (
            "replace",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
        ),
        (
            "glob",
            json!({"pattern": "*", "dir_path": "/etc"}),
            "Glob",
            json!({"pattern": "*", "path": "/etc"}),
        ),
        (
            "grep_search",
            json!({"pattern": "x", "dir_path": "a", "include_pattern": "*.rs"}),
            "Grep",
            json!({"pattern": "x", "path": "a", "glob": "*.rs"}),
        ),
        ("list_directory", json!({"dir_path": "/"}), "LS", json!({"path": "/"})),
        (
            "web_fetch",
            json!({"prompt": "sum up https://a.example/x and\nhttp://b.example"}),
            "WebFetch",
            json!({"prompt": "sum up https://a.example/x and\nhttp://b.example",
                               "url": "https://a.example/x http://b.example"}),
        ),
        ("web_fetch", json!({"url": "https://a.example"}), "WebFetch", json!({"url": "https://a.example"})),
        ("web_fetch", json!({"prompt": "nothing"}), "WebFetch", json!({"prompt": "nothing"})),
        // What nobody has described stays what it is, and is held.
        ("save_memory", json!({"fact": "x"}), "save_memory", json!({"fact": "x"})),
    ] {
        let call = call(theirs, &arguments);
        assert_eq!((call.tool.as_str(), &call.arguments), (ours, &as_ours));
        assert_eq!((call.shown(), &call.id), (theirs, &None));
    }
}

#[test]
fn arguments_that_would_be_two_are_refused() {
    let more =
        json!({"tool_name": "glob", "tool_input": {"pattern": "*", "dir_path": "src", "path": "/etc"}});
    let error = HookError::ForeignArgument { tool: "glob".to_owned(), argument: "path".to_owned() };
    assert_eq!(read("BeforeTool", &more).unwrap_err(), error);
    let url = json!({"url": ["https://a.example"], "prompt": "https://b.example"});
    assert_eq!(call("web_fetch", &url).arguments, url, "its schema refuses it");
}

#[test]
fn a_tool_of_a_server_is_named_by_its_server() {
    let named = |tool: &str, context: Value| {
        let more = json!({"tool_name": tool, "tool_input": {}, "mcp_context": context});
        read("BeforeTool", &more).map(|input| match input.event {
            HookEvent::PreToolUse(call) => (call.shown().to_owned(), call.tool),
            other => panic!("{other:?}"),
        })
    };
    let context = json!({"server_name": "my_files", "tool_name": "read_all", "command": "npx"});
    let expected = ("mcp_my_files_read_all".to_owned(), "mcp__my_files__read_all".to_owned());
    assert_eq!(named("mcp_my_files_read_all", context.clone()).unwrap(), expected);
    // The form of the reference.
    assert_eq!(named("mcp__my_files__read_all", context).unwrap().1, expected.1);
    assert!(named("mcp_x_y", json!({"server_name": 1})).is_err());
    assert!(named("mcp_x_y", json!("x")).is_err());
}

#[test]
fn answers_have_the_documented_form() {
    let event = HookEvent::PreToolUse(call("run_shell_command", &json!({"command": "ls"})));
    let decided = |decision| said(&Answer::Call(decision), &event);
    assert_eq!(decided(Decision::Allow(None)), json!({"decision": "allow"}));
    assert_eq!(decided(Decision::Deny("no".into())), json!({"decision": "deny", "reason": "no"}));
    // The reference knows no `ask`; what it does not know would let the call pass.
    assert_eq!(decided(Decision::Ask("why".into(), None)), json!({"decision": "deny", "reason": "why"}));
    let changed = decided(Decision::Allow(Some(json!({"command": "true"}))));
    assert_eq!(changed["decision"], "deny", "its outcome would be that of another call");
    assert!(changed["reason"].as_str().unwrap().contains("`run_shell_command`"));
    let prompt = HookEvent::Prompt(String::new());
    assert_eq!(
        said(&Answer::PromptBlocked("no".into()), &prompt),
        json!({"decision": "deny", "reason": "no"})
    );
    assert_eq!(
        said(&Answer::GoOn("1 open".into()), &HookEvent::Stop(None)),
        json!({"decision": "deny", "reason": "1 open"})
    );
    let note = Agent::GeminiCli.line(&Answer::Nothing, Some("look"), &event);
    assert_eq!(note, r#"{"systemMessage":"look"}"#);
}

#[test]
fn a_result_is_shown_as_the_gate_leaves_it() {
    let event = HookEvent::PostToolUse(call("web_fetch", &json!({})), ToolResponse::default());
    let answer = |instead: Option<&str>, reason: Option<&str>, context: Option<&str>| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        said(
            &Answer::Result(ResultAnswer {
                instead: instead.map(Value::from),
                reason: owned(reason),
                context: owned(context),
            }),
            &event,
        )
    };
    assert_eq!(
        answer(Some("It [cut] rained."), None, Some("A stretch was cut.")),
        json!({"decision": "deny", "reason": "A stretch was cut.\n\nIt [cut] rained."})
    );
    assert_eq!(
        answer(Some("withheld"), Some("withheld"), None),
        json!({"decision": "deny", "reason": "withheld"})
    );
    assert_eq!(
        answer(None, None, Some("data")),
        json!({"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "data"}})
    );
}
