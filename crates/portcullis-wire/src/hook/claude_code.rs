//! Claude Code: <https://code.claude.com/docs/en/hooks>, as of 2.1.121.

use serde_json::{Map, Value, json};

use super::answer::object;
use super::shape::{Kind, Names, Powers, Shape, any_response, as_it_is};
use super::{Agent, Answer, Decision, HookEvent, Replaces, ResultAnswer};

/// The names under which bundles describe tools.
pub(super) const TOOLS: [&str; 32] = [
    "Agent",
    "ApplyPatch",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Delete",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "ReadFiles",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::ClaudeCode,
    id: "claude-code",
    name: "Claude Code",
    powers: Powers {
        asks: true,
        runs_contained: true,
        changes_arguments: true,
        withholds_prompts: true,
        // What is shown instead of another tool's result has to have its shape, which not all releases take.
        replaces: Replaces::Value,
        replaces_servers_only: true,
        shows_notes: true,
        ..Powers::NONE
    },
    names: &Names::CLAUDE,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("UserPromptSubmit", Kind::Prompt),
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
        ("PostToolUseFailure", Kind::Failed),
        ("PermissionDenied", Kind::NotMade),
        ("Stop", Kind::Stop),
        // Its prompt asks the user, and the call is judged by its own event.
        ("PermissionRequest", Kind::Aside),
    ],
    tools: &[],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, event: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing => Map::new(),
        Answer::Call(decision) => object([("hookSpecificOutput", call(decision))]),
        Answer::PromptBlocked(why) | Answer::GoOn(why) => {
            object([("decision", "block".into()), ("reason", why.as_str().into())])
        }
        Answer::Result(answer) => result(answer, event),
    }
}

/// The answer to `PreToolUse`.
pub(super) fn call(decision: &Decision) -> Value {
    let (word, why, arguments) = match decision {
        Decision::Allow(arguments) => ("allow", None, arguments),
        Decision::Deny(why) => ("deny", Some(why), &None),
        Decision::Ask(why, arguments) => ("ask", Some(why), arguments),
    };
    let mut output = object([("hookEventName", "PreToolUse".into()), ("permissionDecision", word.into())]);
    if let Some(why) = why {
        output.insert("permissionDecisionReason".into(), super::answer::reason(why));
    }
    if let Some(arguments) = arguments {
        output.insert("updatedInput".into(), arguments.clone());
    }
    output.into()
}

/// The answer to `PostToolUse` or `PostToolUseFailure`. Something is shown instead for tools of MCP servers; for others
/// since 2.1.121, where it has the shape of the tool's result; and never for a failure.
fn result(answer: &ResultAnswer, event: &HookEvent) -> Map<String, Value> {
    let ResultAnswer { instead, reason, context } = answer.clone();
    let failed = matches!(event, HookEvent::PostToolUseFailure(..));
    let name = if failed { "PostToolUseFailure" } else { "PostToolUse" };
    let mut output = object([("hookEventName", name.into())]);
    let mut fields = Map::new();
    if let Some(context) = context {
        output.insert("additionalContext".into(), context.into());
    }
    if let Some(reason) = reason.filter(|_| !failed) {
        fields.insert("decision".into(), "block".into());
        fields.insert("reason".into(), reason.into());
    }
    if let Some(instead) = instead.filter(|_| !failed) {
        if matches!(event, HookEvent::PostToolUse(call, _) if call.is_mcp()) {
            // What clients before 2.1.121 call it.
            output.insert("updatedMCPToolOutput".into(), instead.clone());
        }
        output.insert("updatedToolOutput".into(), instead);
    }
    fields.insert("hookSpecificOutput".into(), json!(output));
    fields
}
