//! Kimi Code CLI: `docs/en/customization/hooks.md` and `docs/en/reference/tools.md` of MoonshotAI/kimi-code (at d723cc4), and
//! where they are silent `packages/agent-core-v2/src/features/externalHooks/` of the same commit.
//!
//! A hook denies a call, a prompt or a stop, and nothing else that it answers is read. What it says otherwise becomes part of
//! the conversation after a prompt, so it says nothing. A call that was denied is told as one that failed. Of a result it
//! tells the first 2,000 characters, and does not wait for an answer.

use serde_json::{Map, Value};

use super::answer::{object, reason};
use super::shape::{Kind, Names, Powers, Renamed, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, HookEvent};

static NAMES: Names = Names { id: "tool_call_id", response: "tool_output", ..Names::CLAUDE };

const FILE: Renamed = &[("path", "file_path")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::KimiCode,
    id: "kimi-code",
    name: "Kimi Code",
    powers: Powers {
        withholds_prompts: true,
        tells_denials_as_failures: true,
        reads_any_output: true,
        ..Powers::NONE
    },
    names: &NAMES,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("UserPromptSubmit", Kind::Prompt),
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
        ("PostToolUseFailure", Kind::Failed),
        ("Stop", Kind::Stop),
        ("PermissionRequest", Kind::Aside),
        ("PermissionResult", Kind::Aside),
    ],
    tools: &[
        known("Bash", "Bash", &[("cwd", "workdir")]),
        known("Read", "Read", FILE),
        known("ReadMediaFile", "Read", FILE),
        known("Write", "Write", FILE),
        known("Edit", "Edit", FILE),
        known("Grep", "Grep", &[]),
        known("Glob", "Glob", &[]),
        known("FetchURL", "WebFetch", &[]),
        known("WebSearch", "WebSearch", &[]),
        known("TodoList", "TodoWrite", &[]),
        known("TaskList", "TaskList", &[]),
        known("TaskOutput", "TaskOutput", &[]),
        known("TaskStop", "TaskStop", &[]),
        known("EnterPlanMode", "EnterPlanMode", &[]),
        known("ExitPlanMode", "ExitPlanMode", &[]),
        known("AskUserQuestion", "AskUserQuestion", &[]),
        known("Skill", "Skill", &[]),
        known("Agent", "Agent", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, event: &HookEvent) -> Map<String, Value> {
    let denied = |why: &str| {
        let name = match event {
            HookEvent::Prompt(_) => "UserPromptSubmit",
            HookEvent::Stop(_) => "Stop",
            _ => "PreToolUse",
        };
        let output = object([
            ("hookEventName", name.into()),
            ("permissionDecision", "deny".into()),
            ("permissionDecisionReason", reason(why)),
        ]);
        object([("hookSpecificOutput", output.into())])
    };
    match answer {
        Answer::Nothing | Answer::Call(Decision::Allow(_)) | Answer::Result(_) => Map::new(),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _))
        | Answer::PromptBlocked(why)
        | Answer::GoOn(why) => denied(why),
    }
}

#[cfg(test)]
mod tests;
