//! Codex CLI: <https://developers.openai.com/codex/hooks> as of 2026-05-18 and later, with `codex-rs/hooks/` of openai/codex
//! (output parser at 0ea8381).
//!
//! A hook can deny a call, and cannot allow one: `permissionDecision: "allow"` is an error unless arguments are changed,
//! `"ask"`, `continue: false`, `stopReason` and fields that it does not know are errors, and after an error the call is made.
//! So is a denial without a reason. Of a result it shows the reason of `decision: "block"` instead.

use serde_json::{Map, Value};

use super::answer::{object, reason, whole_text};
use super::shape::{Kind, Names, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, claude_code};

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Codex,
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
        known("Bash", "Bash", &[]),
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
};

pub(super) fn fields(answer: &Answer) -> Map<String, Value> {
    let blocked = |why: &str| object([("decision", "block".into()), ("reason", reason(why))]);
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
            None => beside(result.context.as_ref().or(result.reason.as_ref())),
        },
    }
}

fn beside(context: Option<&String>) -> Map<String, Value> {
    let Some(context) = context else { return Map::new() };
    let output =
        object([("hookEventName", "PostToolUse".into()), ("additionalContext", context.as_str().into())]);
    object([("hookSpecificOutput", output.into())])
}

#[cfg(test)]
mod tests;
