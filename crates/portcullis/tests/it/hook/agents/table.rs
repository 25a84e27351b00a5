//! How each agent says and is told things.

use std::fs;

use serde_json::{Value, json};

use super::super::{Client, quick_bundle};
use crate::command::project;

/// One agent: its word, and how its hooks say and are told things.
pub(super) struct Agent {
    pub(super) id: &'static str,
    /// The field that names the session.
    pub(super) session: &'static str,
    /// The event of a prompt.
    pub(super) prompt: &'static str,
    /// The event before a call, and the one after it.
    pub(super) events: [&'static str; 2],
    pub(super) shell: &'static str,
    /// The fields that make an event one of a call.
    pub(super) call: fn(&str, Value) -> Value,
    /// A result, as the agent tells it.
    pub(super) result: fn(&str) -> Value,
    /// Why a call is denied, if it is.
    pub(super) denied: fn(&Value) -> Option<&str>,
    /// What is shown in place of a result, if something is.
    pub(super) shown: fn(&Value) -> Option<&str>,
    /// The answer to a call that is permitted and understood.
    pub(super) allowed: &'static str,
    /// What its session leaves in the record after the result of its call.
    pub(super) after: &'static [&'static str],
}

/// A field of an answer that is there.
fn text<'a>(answer: &'a Value, pointer: &str) -> Option<&'a str> {
    answer.pointer(pointer).and_then(Value::as_str)
}

fn named(tool: &str, arguments: Value) -> Value {
    json!({"tool_name": tool, "tool_input": arguments})
}

fn named_with_id(tool: &str, arguments: Value) -> Value {
    json!({"tool_name": tool, "tool_input": arguments, "tool_use_id": "call_9"})
}

/// Why a call is denied in the form of Claude Code.
fn denied_as_claude(answer: &Value) -> Option<&str> {
    let denies = answer["hookSpecificOutput"]["permissionDecision"] == "deny";
    text(answer, "/hookSpecificOutput/permissionDecisionReason").filter(|_| denies)
}

/// What a session leaves in the record, from its opening to the result of its call.
pub(super) const CALLED: [&str; 7] =
    ["run-opened", "input", "proposed", "verdict", "enforcement", "outcome", "observation"];

pub(super) static AGENTS: [Agent; 13] = [
    Agent {
        id: "gemini-cli",
        session: "session_id",
        prompt: "BeforeAgent",
        events: ["BeforeTool", "AfterTool"],
        shell: "run_shell_command",
        call: named,
        result: |text| json!({"tool_response": {"llmContent": text, "returnDisplay": text}}),
        denied: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "deny"),
        shown: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "deny"),
        allowed: r#"{"decision":"allow"}"#,
        after: &["evidence", "output", "run-closed"],
    },
    Agent {
        id: "codex",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "Bash",
        call: named_with_id,
        result: |text| json!({ "tool_response": text }),
        denied: denied_as_claude,
        shown: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "block"),
        allowed: "{}",
        after: &["evidence", "output", "run-closed"],
    },
    Agent {
        id: "cursor",
        session: "conversation_id",
        prompt: "beforeSubmitPrompt",
        events: ["preToolUse", "postToolUse"],
        shell: "Shell",
        call: named_with_id,
        result: |text| json!({ "tool_output": text }),
        denied: |answer| text(answer, "/agent_message").filter(|_| answer["permission"] == "deny"),
        shown: |answer| text(answer, "/updated_mcp_tool_output"),
        allowed: r#"{"permission":"allow"}"#,
        after: &["evidence", "output", "run-closed"],
    },
    Agent {
        id: "copilot-cli",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "Bash",
        call: named,
        result: |text| json!({"tool_result": {"result_type": "success", "text_result_for_llm": text}}),
        denied: |answer| {
            text(answer, "/permissionDecisionReason").filter(|_| answer["permissionDecision"] == "deny")
        },
        shown: |answer| {
            let success = answer["modifiedResult"]["resultType"] == "success";
            text(answer, "/modifiedResult/textResultForLlm").filter(|_| success)
        },
        allowed: r#"{"permissionDecision":"allow"}"#,
        after: &["evidence", "output", "run-closed"],
    },
    Agent {
        id: "opencode",
        session: "session_id",
        prompt: "chat.message",
        events: ["tool.execute.before", "tool.execute.after"],
        shell: "bash",
        call: named_with_id,
        result: |text| json!({ "tool_response": text }),
        denied: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "deny"),
        shown: |answer| text(answer, "/shown"),
        allowed: "{}",
        // It tells no replies.
        after: &["run-closed"],
    },
    Agent {
        id: "qwen-code",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "run_shell_command",
        call: named_with_id,
        result: |text| json!({ "tool_response": {"llmContent": text} }),
        denied: denied_as_claude,
        shown: |_| None,
        allowed: r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Portcullis permits it"}}"#,
        after: &["evidence", "output", "run-closed"],
    },
    Agent {
        id: "droid",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "Execute",
        call: named,
        result: |text| json!({ "tool_response": text }),
        denied: denied_as_claude,
        shown: |_| None,
        allowed: r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
        // It tells no replies.
        after: &["evidence", "evidence", "run-closed"],
    },
    Agent {
        id: "kimi-code",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "Bash",
        call: |tool, arguments| json!({"tool_name": tool, "tool_input": arguments, "tool_call_id": "call_9"}),
        result: |text| json!({ "tool_output": text }),
        denied: denied_as_claude,
        shown: |_| None,
        allowed: "{}",
        after: &["evidence", "evidence", "run-closed"],
    },
    Agent {
        id: "crush",
        session: "session_id",
        prompt: "",
        events: ["PreToolUse", ""],
        shell: "bash",
        call: named,
        result: |_| json!({}),
        denied: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "deny"),
        shown: |_| None,
        allowed: r#"{"decision":"allow"}"#,
        after: &[],
    },
    Agent {
        id: "pi",
        session: "session_id",
        prompt: "input",
        events: ["tool_call", "tool_result"],
        shell: "bash",
        call: named_with_id,
        result: |text| json!({ "tool_response": text }),
        denied: |answer| text(answer, "/reason").filter(|_| answer["decision"] == "deny"),
        shown: |answer| text(answer, "/shown"),
        allowed: "{}",
        // It tells no replies.
        after: &["run-closed"],
    },
    Agent {
        id: "windsurf",
        session: "trajectory_id",
        prompt: "pre_user_prompt",
        events: ["pre_run_command", "post_run_command"],
        shell: "run_command",
        call: |tool, arguments| match tool {
            "run_command" => json!({"tool_info": {
                "command_line": arguments["command"], "cwd": "/home/dev/shop",
            }}),
            // It has no other tool that a bundle could not know.
            tool => json!({"agent_action_name": "pre_mcp_tool_use", "tool_info": {
                "mcp_server_name": "some", "mcp_tool_name": tool, "mcp_tool_arguments": arguments,
            }}),
        },
        result: |_| json!({}),
        denied: |answer| text(answer, "/refused"),
        shown: |_| None,
        allowed: "{}",
        after: &["output"],
    },
    Agent {
        id: "kiro",
        session: "session_id",
        prompt: "UserPromptSubmit",
        events: ["PreToolUse", "PostToolUse"],
        shell: "execute_bash",
        call: named,
        result: |text| json!({ "tool_response": text }),
        denied: |answer| text(answer, "/refused"),
        shown: |_| None,
        allowed: "{}",
        after: &["evidence", "run-closed"],
    },
    Agent {
        id: "cline",
        session: "taskId",
        prompt: "",
        events: ["tool_call", "tool_result"],
        shell: "run_commands",
        call: |tool, arguments| json!({"tool_call": {"id": "call_9", "name": tool, "input": arguments}}),
        result: |text| json!({"tool_result": {"output": text}}),
        denied: |answer| text(answer, "/errorMessage").filter(|_| answer["cancel"] == true),
        shown: |_| None,
        allowed: "{}",
        after: &["observation", "output"],
    },
];

impl Agent {
    /// The field that names an event.
    pub(super) fn named_by(&self) -> &'static str {
        match self.id {
            "crush" => "event",
            "windsurf" => "agent_action_name",
            "cline" => "hookName",
            _ => "hook_event_name",
        }
    }

    /// Whether it is denied something by exit code 2, and reads no answer.
    pub(super) fn is_told_by_code(&self) -> bool {
        matches!(self.id, "windsurf" | "kiro")
    }

    pub(super) fn event(&self, name: &str, fields: &[Value]) -> Vec<u8> {
        let mut event = json!({self.session: "one", "cwd": "/home/dev/shop", self.named_by(): name});
        for more in fields {
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        event.to_string().into_bytes()
    }

    /// An answer under the bundle whose held calls are answered at once.
    pub(super) fn answer(&self, client: &Client, event: &[u8]) -> Value {
        let bundle = quick_bundle(client.folder.path());
        let args = ["--agent", self.id, "--bundle", bundle.to_str().unwrap()];
        if !self.is_told_by_code() {
            return client.answer(&args, event);
        }
        let ran = client.tell(&args, event);
        match ran.code {
            2 => json!({"refused": ran.stderr}),
            code => {
                assert_eq!((code, ran.stderr.as_str()), (0, ""), "{}", self.id);
                assert!(matches!(ran.stdout.trim(), "" | "{}"), "{}: {}", self.id, ran.stdout);
                json!({})
            }
        }
    }

    pub(super) fn before(&self, client: &Client, tool: &str, arguments: Value) -> Value {
        self.answer(client, &self.event(self.events[0], &[(self.call)(tool, arguments)]))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let file = project().join(format!("crates/portcullis/tests/it/hook/{}/session.jsonl", self.id));
        fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    }
}

/// The agent of a word.
pub(super) fn agent(id: &str) -> &'static Agent {
    AGENTS.iter().find(|agent| agent.id == id).unwrap()
}
