//! What all agents have in common, and the forms of those whose files have no tests of their own.

use proptest::prelude::*;
use serde_json::json;

use super::answer::reason;
use super::*;

fn read(value: &Value) -> Result<HookInput, HookError> {
    parse(value.to_string().as_bytes())
}

fn parse(input: &[u8]) -> Result<HookInput, HookError> {
    Agent::ClaudeCode.parse(input)
}

fn call_of(tool: &str, arguments: Value) -> HookCall {
    HookCall { tool: tool.into(), arguments, id: None, theirs: None }
}

/// The answer of an agent to an event.
fn said(agent: Agent, answer: &Answer, event: &HookEvent) -> Value {
    serde_json::from_str(&agent.line(answer, None, event)).unwrap()
}

fn input(name: &str, more: &Value) -> Value {
    let mut input = json!({
        "session_id": "s", "transcript_path": "/t", "cwd": "/p", "permission_mode": "default",
        "hook_event_name": name, "novel": {"a": [1]},
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

#[test]
fn every_event_is_read() {
    let call = HookCall { id: Some("c".into()), ..call_of("Bash", json!({"command": "ls"})) };
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "c"});
    let with = |more: Value| {
        let mut tool = tool.clone();
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    for (name, more, event) in [
        ("SessionStart", json!({"source": "startup"}), HookEvent::SessionStart),
        ("SessionEnd", json!({"reason": "exit"}), HookEvent::SessionEnd),
        ("UserPromptSubmit", json!({"prompt": "hi"}), HookEvent::Prompt("hi".into())),
        ("PreToolUse", tool.clone(), HookEvent::PreToolUse(call.clone())),
        (
            "PostToolUse",
            with(json!({"tool_response": {"stdout": "x"}})),
            HookEvent::PostToolUse(
                call.clone(),
                ToolResponse { text: r#"{"stdout":"x"}"#.into(), json: true },
            ),
        ),
        (
            "PostToolUse",
            with(json!({"tool_response": "x\ny"})),
            HookEvent::PostToolUse(call.clone(), ToolResponse { text: "x\ny".into(), json: false }),
        ),
        (
            "PostToolUseFailure",
            with(json!({"error": "no", "is_interrupt": false})),
            HookEvent::PostToolUseFailure(call.clone(), "no".into()),
        ),
        ("PermissionDenied", tool.clone(), HookEvent::PermissionDenied(call.clone())),
        ("Stop", json!({"stop_hook_active": false}), HookEvent::Stop(None)),
        ("Stop", json!({"last_assistant_message": "done"}), HookEvent::Stop(Some("done".into()))),
        ("SubagentStop", json!({}), HookEvent::Other),
        ("Notification", json!({"message": "m"}), HookEvent::Other),
        ("PreCompact", json!({"trigger": "auto"}), HookEvent::Other),
        ("NotYetInvented", json!({}), HookEvent::Other),
        ("PermissionRequest", tool.clone(), HookEvent::Other),
    ] {
        let read = read(&input(name, &more)).unwrap();
        assert_eq!((read.name.as_str(), read.event), (name, event));
        assert_eq!((read.session.as_str(), read.directory.as_deref()), ("s", Some("/p")));
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let refused = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
    assert!(refused("").starts_with("the hook input cannot be read"));
    assert!(refused("[]").starts_with("the hook input cannot be read"));
    assert!(refused(r#"{"session_id":"s"}"#).contains("`hook_event_name`"));
    assert!(refused(r#"{"hook_event_name":"Stop"}"#).contains("`session_id`"));
    let twice = r#"{"session_id":"s","hook_event_name":"Stop","hook_event_name":"PreToolUse"}"#;
    assert!(refused(twice).contains("occurs twice"));
    let case = r#"{"session_id":"s","hook_event_name":"Stop","Hook_Event_Name":"PreToolUse"}"#;
    assert!(refused(case).contains("only in case"));
    let arguments = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","command":"rm"}}"#;
    assert!(refused(arguments).contains("duplicate key `command`"), "{}", refused(arguments));
    let error = |name, more| read(&input(name, &more)).unwrap_err().to_string();
    assert!(error("PreToolUse", json!({"tool_input": {}})).contains("`tool_name`"));
    assert!(error("PreToolUse", json!({"tool_name": "T", "tool_input": "x"})).contains("`tool_input`"));
    assert!(error("Stop", json!({"cwd": "relative"})).contains("`cwd`"));
    assert!(error("UserPromptSubmit", json!({})).contains("`prompt`"));
    assert!(error("Stop", json!({"session_id": "s".repeat(300)})).contains("more than the limit"));
    assert_eq!(parse(&vec![b' '; INPUT_BYTES_MAX + 1]), Err(HookError::TooLarge));
    assert_eq!(parse(b"{\xff"), Err(HookError::InvalidUtf8(1)));
}

#[test]
fn an_unknown_event_about_a_call_is_refused() {
    for name in ["preToolUse", "pre_tool_use", "BeforeTool", "NotYetInvented"] {
        for more in [json!({"tool_name": "Bash"}), json!({"tool_input": {"command": "ls"}})] {
            let error = read(&input(name, &more)).unwrap_err();
            let judged = "PreToolUse";
            assert_eq!(error, HookError::UnknownCall { name: name.to_owned(), judged }, "{more}");
        }
    }
}

#[test]
fn what_has_happened_is_kept_whatever_it_looks_like() {
    let text = r#"{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"T","tool_input":{},"tool_response":"\ud800"}"#;
    let HookEvent::PostToolUse(_, content) = parse(text.as_bytes()).unwrap().event else { panic!() };
    assert_eq!(content, ToolResponse { text: r#""\ud800""#.into(), json: true });
    assert_eq!(content.replaced_by(r#""\ud800 cut""#), None);
    let long = input("Stop", &json!({"last_assistant_message": "ä".repeat(TEXT_BYTES_MAX / 2 + 1)}));
    let HookEvent::Stop(Some(reply)) = read(&long).unwrap().event else { panic!() };
    assert!(reply.ends_with("bytes in all]") && reply.len() < TEXT_BYTES_MAX + 64);
}

#[test]
fn answers_have_the_documented_form() {
    let event = HookEvent::PreToolUse(call_of("Bash", json!({"command": "ls"})));
    let parsed = |decision| said(Agent::ClaudeCode, &Answer::Call(decision), &event);
    assert_eq!(
        parsed(Decision::Deny("no".into())),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}})
    );
    assert_eq!(
        parsed(Decision::Allow(Some(json!({"a": 1})))),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}})
    );
    assert_eq!(parsed(Decision::Ask("?".into(), None))["hookSpecificOutput"]["permissionDecision"], "ask");
    assert_eq!(parsed(Decision::Allow(None))["hookSpecificOutput"]["permissionDecision"], "allow");
    assert_eq!(said(Agent::ClaudeCode, &Answer::Nothing, &event), json!({}));
    let note = Agent::ClaudeCode.line(&Answer::Nothing, Some("look"), &event);
    assert_eq!(note, r#"{"systemMessage":"look"}"#);
}

#[test]
fn a_result_is_replaced_by_one_of_its_shape() {
    let response = |text: &str, json| ToolResponse { text: text.into(), json };
    assert_eq!(response("a b", false).replaced_by("a [cut]"), Some("a [cut]".into()));
    let bash = response(r#"{"stdout":"a b","isImage":false,"more":[1.0,null,"c"]}"#, true);
    let cut = r#"{"stdout":"a [cut]","isImage":false,"more":[1.0,null,"d"]}"#;
    assert_eq!(bash.replaced_by(cut), Some(serde_json::from_str(cut).unwrap()));
    for other in [
        r#"{"stdout":"a [cut]","isImage":true,"more":[1.0,null,"d"]}"#,
        r#"{"stdout":["a"],"isImage":false,"more":[1.0,null,"d"]}"#,
        r#"{"stdout":"a","isImage":false,"more":[1.0,null]}"#,
        r#"{"stdout":"a","isImage":false}"#,
        r#"{"stdout":"a","isImage":false,"less":[1.0,null,"c"]}"#,
        r#"{"stdout":"a [cut "quoted"]","isImage":false}"#,
        "a",
        "",
    ] {
        assert_eq!(bash.replaced_by(other), None, "{other}");
    }
    assert_eq!(response("{\n[cut by the gate]", true).replaced_by("{}"), None);
}

#[test]
fn answers_about_results_have_the_documented_form() {
    let line = |tool: &str, answer: ResultAnswer, failed| {
        let call = call_of(tool, json!({}));
        let event = match failed {
            true => HookEvent::PostToolUseFailure(call, String::new()),
            false => HookEvent::PostToolUse(call, ToolResponse::default()),
        };
        said(Agent::ClaudeCode, &Answer::Result(answer), &event)
    };
    let whole = ResultAnswer {
        instead: Some("cut".into()),
        reason: Some("why".into()),
        context: Some("where".into()),
    };
    assert_eq!(
        line("Read", whole.clone(), false),
        json!({"decision": "block", "reason": "why", "hookSpecificOutput": {
            "hookEventName": "PostToolUse", "additionalContext": "where", "updatedToolOutput": "cut"}})
    );
    let output = &line("mcp__a__b", whole.clone(), false)["hookSpecificOutput"];
    assert_eq!(
        (&output["updatedToolOutput"], &output["updatedMCPToolOutput"]),
        (&json!("cut"), &json!("cut"))
    );
    assert_eq!(
        line("mcp__a__b", whole, true),
        json!({"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "where"}})
    );
    let blocked = Answer::PromptBlocked("no \"way\"".into());
    let line = Agent::ClaudeCode.line(&blocked, None, &HookEvent::Prompt(String::new()));
    assert_eq!(line, r#"{"decision":"block","reason":"no \"way\""}"#);
}

/// What every agent has in common, so that one more is held to it too.
#[test]
fn an_event_about_a_call_that_is_not_known_is_refused_by_every_agent() {
    for agent in Agent::ALL {
        let names = agent.shape().names;
        let judged = agent.shape().events.iter().find(|(_, kind)| *kind == shape::Kind::Before).unwrap().0;
        assert_eq!(Agent::named(agent.id()), Some(agent));
        for more in [json!({names.tool: "x"}), json!({names.arguments: {}})] {
            let mut event = json!({names.session: "s", names.event: "NotYetInvented"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let error = agent.parse(event.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(judged), "{agent:?}: {error}");
        }
        // Before a call, whatever cannot be read in one way is an error, and an error blocks.
        let by_event = names.tool.is_empty();
        for (tool, arguments) in [
            (json!("x"), json!("text")),
            (json!("x"), json!([1])),
            (json!(""), json!({})),
            (json!(7), json!({})),
            (json!(null), json!({})),
            (json!("x".repeat(NAME_BYTES_MAX + 1)), json!({})),
        ] {
            if by_event && arguments.is_object() {
                continue;
            }
            let event = json!({names.session: "s", names.event: judged, names.tool: tool,
                               names.arguments: arguments});
            assert!(agent.parse(event.to_string().as_bytes()).is_err(), "{agent:?}: {event}");
        }
    }
}

#[test]
fn tools_of_other_agents_names_are_not_taken_for_those_of_bundles() {
    let named = |agent: &Agent| !agent.shape().tools.is_empty() && !agent.shape().names.tool.is_empty();
    for agent in Agent::ALL.into_iter().filter(named) {
        let shape = agent.shape();
        for ours in claude_code::TOOLS {
            let event = json!({
                shape.names.session: "s", shape.names.tool: ours, shape.names.arguments: {},
                shape.names.event: shape.events.iter().find(|(_, kind)| *kind == shape::Kind::Before).unwrap().0,
            });
            let read = agent.parse(event.to_string().as_bytes());
            let known = shape.tools.iter().any(|known| known.theirs == ours);
            assert_eq!(read.is_ok(), known, "{agent:?}: {ours}");
        }
    }
}

/// A bundle that describes another tool by such a name would be circumvented by an agent that calls one of its own so.
#[test]
fn all_tools_of_the_shipped_bundle_are_known_by_name() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/developer/tools");
    let text = std::fs::read_to_string(folder.join("claude-code.toml")).unwrap();
    let ids: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'))
        .filter(|id| !claude_code::TOOLS.contains(id))
        .collect();
    assert_eq!(ids, [""; 0]);
    for known in Agent::ALL.iter().flat_map(|agent| agent.shape().tools) {
        assert!(text.contains(&format!("id = \"{}\"\n", known.ours)), "{}", known.ours);
    }
}

/// An event before a call, and what is read of the call.
fn called(agent: Agent, tool: &str, arguments: &Value) -> HookCall {
    let names = agent.shape().names;
    let name = agent.shape().events.iter().find(|(_, kind)| *kind == shape::Kind::Before).unwrap().0;
    let event = json!({names.session: "s", names.event: name, names.tool: tool, names.arguments: arguments});
    let HookEvent::PreToolUse(call) = agent.parse(event.to_string().as_bytes()).unwrap().event else {
        panic!()
    };
    call
}

#[test]
fn cursor_is_answered_as_it_reads_it() {
    let call = called(Agent::Cursor, "Write", &json!({"path": "a", "contents": "x"}));
    assert_eq!((call.tool.as_str(), &call.arguments), ("Write", &json!({"file_path": "a", "content": "x"})));
    let event = HookEvent::PreToolUse(call);
    let decided = |decision| said(Agent::Cursor, &Answer::Call(decision), &event);
    let denied = json!({"permission": "deny", "user_message": "no", "agent_message": "no"});
    assert_eq!(decided(Decision::Deny("no".into())), denied);
    assert_eq!(decided(Decision::Ask("no".into(), None)), denied, "it does not ask before a call");
    assert_eq!(decided(Decision::Allow(None)), json!({"permission": "allow"}));
    // Two of its names stand for one of ours: which one it takes is not known.
    let changed = decided(Decision::Allow(Some(json!({"file_path": "b", "content": "y"}))));
    assert_eq!(changed["updated_input"], json!({"path": "b", "contents": "y"}));
    let prompt = HookEvent::Prompt(String::new());
    let blocked = json!({"continue": false, "user_message": "no"});
    assert_eq!(said(Agent::Cursor, &Answer::PromptBlocked("no".into()), &prompt), blocked);
    let open = said(Agent::Cursor, &Answer::GoOn("1 open".into()), &HookEvent::Stop(None));
    assert_eq!(open, json!({"followup_message": "1 open"}));
    assert_eq!(called(Agent::Cursor, "MCP:files:read", &json!({})).tool, "mcp__files__read");
    let two = json!({"conversation_id": "s", "hook_event_name": "preToolUse", "tool_name": "Read",
                     "tool_input": {"path": "a", "file_path": "b"}});
    let error = Agent::Cursor.parse(two.to_string().as_bytes()).unwrap_err();
    assert_eq!(error, HookError::TwoNames("file_path"));
    let roots =
        json!({"conversation_id": "s", "hook_event_name": "sessionStart", "workspace_roots": ["/p", "/q"]});
    let read = Agent::Cursor.parse(roots.to_string().as_bytes()).unwrap();
    assert_eq!(read.directory.as_deref(), Some("/p"));
}

#[test]
fn copilot_cli_is_answered_as_it_reads_it() {
    let edit = json!({"path": "a", "old_str": "x", "new_str": "y"});
    let ours = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    // Before a call and after it, so that the outcome is that of the call.
    for tool in ["Edit", "edit"] {
        let call = called(Agent::CopilotCli, tool, &edit);
        assert_eq!((call.tool.as_str(), &call.arguments), ("Edit", &ours));
    }
    let patch = json!({"input": "*** Begin Patch"});
    for tool in ["Edit", "apply_patch"] {
        let call = called(Agent::CopilotCli, tool, &patch);
        assert_eq!(
            (call.tool.as_str(), &call.arguments),
            ("ApplyPatch", &json!({"patch": "*** Begin Patch"}))
        );
    }
    // Of a patch beside an edit it is not known which one is carried out.
    for (patch, edit) in [
        ("input", "path"),
        ("patch", "file_path"),
        ("input", "old_str"),
        ("input", "new_string"),
        ("command", "path"),
        ("input", "patch"),
    ] {
        let both = json!({patch: "*** Begin Patch", edit: "x"});
        let event = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": both});
        let error = Agent::CopilotCli.parse(event.to_string().as_bytes()).unwrap_err();
        assert_eq!(error, HookError::TwoNames("patch"), "{both}");
    }
    let command = json!({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"});
    assert_eq!(called(Agent::CopilotCli, "str_replace_editor", &command).tool, "Edit");
    assert_eq!(called(Agent::CopilotCli, "Edit", &json!({"patch": "*** Begin Patch"})).tool, "ApplyPatch");
    let event = HookEvent::PreToolUse(called(Agent::CopilotCli, "Bash", &json!({"command": "ls"})));
    let decided = |decision| said(Agent::CopilotCli, &Answer::Call(decision), &event);
    assert_eq!(decided(Decision::Allow(None)), json!({"permissionDecision": "allow"}));
    let denied = json!({"permissionDecision": "deny", "permissionDecisionReason": "no"});
    assert_eq!(decided(Decision::Deny("no".into())), denied);
    assert_eq!(decided(Decision::Ask("no".into(), None)), denied);
    let changed = decided(Decision::Allow(Some(json!({"command": "true"}))));
    assert_eq!(changed["permissionDecision"], "deny", "its outcome would be that of another call");
    let result = |kind: &str| {
        let event = json!({"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "bash",
            "tool_input": {}, "tool_result": {"result_type": kind, "text_result_for_llm": "x"}});
        Agent::CopilotCli.parse(event.to_string().as_bytes()).unwrap().event
    };
    assert!(matches!(result("success"), HookEvent::PostToolUse(_, response) if response.text == "x"));
    assert!(matches!(result("failure"), HookEvent::PostToolUseFailure(_, text) if text == "x"));
    let cut = ResultAnswer { instead: Some("y".into()), reason: None, context: None };
    assert_eq!(
        said(Agent::CopilotCli, &Answer::Result(cut), &result("success")),
        json!({"modifiedResult": {"resultType": "success", "textResultForLlm": "y"}})
    );
}

#[test]
fn the_plugin_of_opencode_is_answered_in_few_words() {
    let call = called(Agent::OpenCode, "edit", &json!({"filePath": "a", "oldString": "x", "newString": "y"}));
    assert_eq!(call.arguments, json!({"file_path": "a", "old_string": "x", "new_string": "y"}));
    let event = HookEvent::PreToolUse(call);
    let decided = |decision| said(Agent::OpenCode, &Answer::Call(decision), &event);
    assert_eq!(decided(Decision::Allow(None)), json!({}));
    assert_eq!(decided(Decision::Deny("no".into())), json!({"decision": "deny", "reason": "no"}));
    assert_eq!(
        decided(Decision::Allow(Some(json!({"file_path": "b"})))),
        json!({"arguments": {"filePath": "b"}})
    );
}

#[test]
fn qwen_code_is_answered_as_it_reads_it() {
    let call = called(Agent::QwenCode, "run_shell_command", &json!({"command": "ls", "directory": "/srv"}));
    assert_eq!((call.tool.as_str(), &call.arguments), ("Bash", &json!({"command": "ls", "workdir": "/srv"})));
    let event = HookEvent::PreToolUse(call.clone());
    let decided =
        |decision| said(Agent::QwenCode, &Answer::Call(decision), &event)["hookSpecificOutput"].clone();
    assert_eq!(decided(Decision::Allow(None))["permissionDecision"], "allow");
    // It does not take changed arguments, so the call is not made.
    for decision in [
        Decision::Deny("no".into()),
        Decision::Ask("hm".into(), None),
        Decision::Allow(Some(json!({"command": "pwd"}))),
    ] {
        assert_eq!(decided(decision.clone())["permissionDecision"], "deny", "{decision:?}");
    }
    // Only what the user has typed is the user's word: `prompt` may be the result of a tool.
    let prompt = |more: &Value| {
        let mut event =
            json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "delete all"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Agent::QwenCode.parse(event.to_string().as_bytes()).unwrap().event
    };
    assert_eq!(prompt(&json!({})), HookEvent::Other);
    assert_eq!(prompt(&json!({"submitted_prompt": "hi"})), HookEvent::Prompt("hi".into()));
    // Nothing replaces a result, so what is said of it stands beside it.
    assert_eq!(Agent::QwenCode.replaces(&call, false), Replaces::Nothing);
    for (event, name) in [
        (HookEvent::PostToolUse(call.clone(), ToolResponse::default()), "PostToolUse"),
        (HookEvent::PostToolUseFailure(call, String::new()), "PostToolUseFailure"),
    ] {
        let beside = Answer::Result(ResultAnswer { reason: Some("data".into()), ..ResultAnswer::default() });
        let told = json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": "data"}});
        assert_eq!(said(Agent::QwenCode, &beside, &event), told);
    }
}

#[test]
fn a_reason_is_never_empty() {
    assert_eq!(reason(" \n"), "Portcullis denied it");
    let event = HookEvent::PreToolUse(call_of("Bash", json!({})));
    for agent in Agent::ALL {
        let denied = Answer::Call(Decision::Deny(String::new()));
        let line = agent.refusal(&denied, &event).unwrap_or_else(|| agent.line(&denied, None, &event));
        assert!(line.contains("Portcullis denied it"), "{agent:?}: {line}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for agent in Agent::ALL {
            let _ = agent.parse(&bytes);
        }
    }
}
