//! Qwen Code: `docs/users/features/hooks.md` of QwenLM/qwen-code (at 00d06c8), tools by `docs/developers/tools/` (at 06e95d7),
//! names of servers' tools by `packages/core/src/tools/mcp-tool.ts` (at 0397705), and where the code differs
//! `packages/core/src/core/toolHookTriggers.ts` (at 01ed106).
//!
//! Its event of a prompt comes before each request to the model, with results of tools in `prompt`, so only
//! `submitted_prompt` is the user's word. Of a call it takes a denial; `updatedInput`, which its documentation names, is not in
//! the code. Results cannot be replaced: it appends `additionalContext`.

use serde_json::{Map, Value};

use super::answer::{beside, blocked, object};
use super::shape::{Kind, Names, Powers, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, HookEvent, claude_code};

static NAMES: Names = Names { prompt: "submitted_prompt", ..Names::CLAUDE };

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::QwenCode,
    id: "qwen-code",
    name: "Qwen Code",
    powers: Powers { withholds_prompts: true, shows_notes: true, ..Powers::NONE },
    names: &NAMES,
    events: &[
        ("SessionStart", Kind::SessionStart),
        ("SessionEnd", Kind::SessionEnd),
        ("UserPromptSubmit", Kind::Submitted),
        ("PreToolUse", Kind::Before),
        ("PostToolUse", Kind::After),
        ("PostToolUseFailure", Kind::Failed),
        ("PermissionDenied", Kind::NotMade),
        ("Stop", Kind::Stop),
        ("PermissionRequest", Kind::Aside),
    ],
    tools: &[
        known("run_shell_command", "Bash", &[("directory", "workdir")]),
        known("read_file", "Read", &[]),
        known("write_file", "Write", &[]),
        known("edit", "Edit", &[]),
        known("replace", "Edit", &[]),
        known("notebook_edit", "NotebookEdit", &[]),
        known("glob", "Glob", &[]),
        known("grep_search", "Grep", &[]),
        known("search_file_content", "Grep", &[]),
        known("list_directory", "LS", &[]),
        known("web_fetch", "WebFetch", &[]),
        known("web_search", "WebSearch", &[]),
        known("todo_write", "TodoWrite", &[]),
        known("task_create", "TaskCreate", &[]),
        known("task_get", "TaskGet", &[]),
        known("task_list", "TaskList", &[]),
        known("task_update", "TaskUpdate", &[]),
        known("task_stop", "TaskStop", &[]),
        known("task_output", "TaskOutput", &[]),
        known("ask_user_question", "AskUserQuestion", &[]),
        known("exit_plan_mode", "ExitPlanMode", &[]),
        known("skill", "Skill", &[]),
        known("agent", "Agent", &[]),
        known("task", "Agent", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, event: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing => Map::new(),
        Answer::Call(Decision::Allow(_)) => allowed(),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => {
            object([("hookSpecificOutput", claude_code::call(&Decision::Deny(why.clone())))])
        }
        Answer::PromptBlocked(why) | Answer::GoOn(why) => blocked(why),
        Answer::Result(result) => {
            let failed = matches!(event, HookEvent::PostToolUseFailure(..));
            beside(result, if failed { "PostToolUseFailure" } else { "PostToolUse" })
        }
    }
}

/// A reason is required, of a permission too.
fn allowed() -> Map<String, Value> {
    let output = object([
        ("hookEventName", "PreToolUse".into()),
        ("permissionDecision", "allow".into()),
        ("permissionDecisionReason", "Portcullis permits it".into()),
    ]);
    object([("hookSpecificOutput", output.into())])
}
