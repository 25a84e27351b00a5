//! pi: `packages/coding-agent/docs/extensions.md` of earendil-works/pi (at 005aeb9), tools by `packages/coding-agent/src/core/tools/`
//! of badlogic/pi-mono (at 83378aa).
//!
//! pi starts no hooks. An extension that `portcullis hook install pi` writes starts the program, tells it the fields of Claude
//! Code under the events' own names, and does what it is answered: what OpenCode's plugin is, and `{"withheld": …}` of a
//! prompt. pi has no permissions of its own, and makes no call if an extension fails before it.

use serde_json::{Map, Value};

use super::answer::{object, reason};
use super::shape::{Kind, Names, Powers, Renamed, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, HookEvent, Replaces, opencode};

const FILE: Renamed = &[("path", "file_path")];
const EDITED: Renamed = &[("path", "file_path"), ("oldText", "old_string"), ("newText", "new_string")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Pi,
    id: "pi",
    name: "pi",
    powers: Powers {
        runs_contained: true,
        changes_arguments: true,
        withholds_prompts: true,
        replaces: Replaces::Text,
        replaces_failures: true,
        ..Powers::NONE
    },
    names: &Names::CLAUDE,
    events: &[
        ("session_start", Kind::SessionStart),
        ("session_shutdown", Kind::SessionEnd),
        ("input", Kind::Prompt),
        ("tool_call", Kind::Before),
        ("tool_result", Kind::After),
        ("tool_failure", Kind::Failed),
    ],
    tools: &[
        known("bash", "Bash", &[]),
        known("read", "Read", FILE),
        known("write", "Write", FILE),
        known("edit", "Edit", EDITED),
        known("find", "Glob", &[]),
        known("grep", "Grep", &[]),
        known("ls", "LS", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, event: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::PromptBlocked(why) => object([("withheld", reason(why))]),
        _ => opencode::fields(answer, event),
    }
}

#[cfg(test)]
mod tests;
