//! OpenCode: `packages/plugin/src/index.ts` of anomalyco/opencode (at 0149423) and <https://opencode.ai/v1/docs/plugins>, the
//! plugins of version 1.
//!
//! OpenCode starts no hooks. A plugin that `portcullis hook install opencode` writes starts the program, tells it the fields
//! of Claude Code under the events' own names, and does what it is answered: `{"decision": "deny", "reason": …}`,
//! `{"arguments": …}`, `{"shown": …}`.

use serde_json::{Map, Value};

use super::answer::{denied, object, whole_text};
use super::shape::{Kind, Names, Powers, Renamed, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, HookEvent, Replaces};

const FILE: Renamed = &[("filePath", "file_path")];
const EDITED: Renamed =
    &[("filePath", "file_path"), ("oldString", "old_string"), ("newString", "new_string")];
const PATCH: Renamed = &[("patchText", "patch")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::OpenCode,
    id: "opencode",
    name: "OpenCode",
    powers: Powers {
        changes_arguments: true,
        replaces: Replaces::Text,
        replaces_failures: true,
        ..Powers::NONE
    },
    names: &Names::CLAUDE,
    events: &[
        ("session.created", Kind::SessionStart),
        ("session.deleted", Kind::SessionEnd),
        ("chat.message", Kind::Prompt),
        ("tool.execute.before", Kind::Before),
        ("tool.execute.after", Kind::After),
    ],
    tools: &[
        known("bash", "Bash", &[("workdir", "workdir")]),
        known("read", "Read", FILE),
        known("write", "Write", FILE),
        known("edit", "Edit", EDITED),
        known("multiedit", "MultiEdit", FILE),
        known("patch", "ApplyPatch", PATCH),
        known("apply_patch", "ApplyPatch", PATCH),
        known("glob", "Glob", &[]),
        known("grep", "Grep", &[("include", "glob")]),
        known("list", "LS", &[]),
        known("webfetch", "WebFetch", &[]),
        known("websearch", "WebSearch", &[]),
        known("todowrite", "TodoWrite", &[]),
        known("todoread", "TodoWrite", &[]),
        known("question", "AskUserQuestion", &[]),
        known("task", "Agent", &[]),
        known("skill", "Skill", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

pub(super) fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Nothing
        | Answer::Call(Decision::Allow(None))
        | Answer::PromptBlocked(_)
        | Answer::GoOn(_) => Map::new(),
        Answer::Call(Decision::Allow(Some(arguments))) => object([("arguments", arguments.clone())]),
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => denied(why),
        Answer::Result(result) => {
            whole_text(result).map(|text| object([("shown", text.into())])).unwrap_or_default()
        }
    }
}
