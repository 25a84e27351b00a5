//! Codex CLI: <https://developers.openai.com/codex/hooks> as of 2026-05-18 and later, with `codex-rs/hooks/` of openai/codex
//! (output parser at 0ea8381).
//!
//! A hook can deny a call, and cannot allow one: `permissionDecision: "allow"` is an error unless arguments are changed,
//! `"ask"`, `continue: false`, `stopReason` and fields that it does not know are errors, and after an error the call is made.
//! So is a denial without a reason. Of a result it shows the reason of `decision: "block"` instead.

use serde_json::{Map, Value};

use super::answer::{beside, blocked, object, whole_text};
use super::shape::{Kind, Names, Powers, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, HookEvent, Replaces, claude_code};

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Codex,
    id: "codex",
    name: "Codex CLI",
    powers: Powers {
        changes_arguments: true,
        withholds_prompts: true,
        replaces: Replaces::Text,
        replaces_failures: true,
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
        ("Stop", Kind::Stop),
        ("PermissionRequest", Kind::Aside),
    ],
    tools: &[
        // Releases until now tell the command alone; the tool has the folder too.
        known("Bash", "Bash", &[("workdir", "workdir")]),
        known("apply_patch", "ApplyPatch", &[("command", "patch")]),
        known("view_image", "Read", &[("path", "file_path")]),
        known("read_file", "Read", &[]),
        known("list_dir", "LS", &[("dir_path", "path")]),
        known("grep_files", "Grep", &[("include", "glob")]),
        known("update_plan", "TodoWrite", &[]),
        known("request_user_input", "AskUserQuestion", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    let denied =
        |why: &str| object([("hookSpecificOutput", claude_code::call(&Decision::Deny(why.to_owned())))]);
    match answer {
        // Its own rules and its sandbox decide.
        Answer::Nothing | Answer::Call(Decision::Allow(None)) => Map::new(),
        Answer::Call(decision @ Decision::Allow(Some(_))) => {
            object([("hookSpecificOutput", claude_code::call(decision))])
        }
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => denied(why),
        Answer::PromptBlocked(why) | Answer::GoOn(why) => blocked(why),
        Answer::Result(result) => match whole_text(result) {
            Some(text) => blocked(&text),
            None => beside(result, "PostToolUse"),
        },
    }
}

#[cfg(test)]
mod tests;
