//! Kiro, of the IDE since 1.0 and of the CLI with its third engine: <https://kiro.dev/docs/hooks/> as of September 2026, and
//! <https://kiro.dev/docs/cli/v3/hooks/>. The pages do not show what a hook is told. That is as others have captured it, of
//! the IDE in July and of CLI 2.27 with `--v3` in October 2026, and so are the arguments of tools.
//!
//! A hook denies by exit code 2. What it prints becomes a part of the conversation, so it prints nothing. Hooks of agents of
//! CLI 2 are others.

use serde_json::Map;
use serde_json::value::RawValue;

use super::shape::{Kind, Names, Powers, Renamed, Shape, Theirs, any_response, known};
use super::{Agent, HookCall, HookError};

const FILE: Renamed = &[("path", "file_path")];
const WRITTEN: Renamed = &[("path", "file_path"), ("text", "content")];
const APPENDED: Renamed = &[("path", "file_path"), ("text", "new_string")];
const REPLACED: Renamed = &[("path", "file_path"), ("oldStr", "old_string"), ("newStr", "new_string")];

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Kiro,
    id: "kiro",
    name: "Kiro",
    powers: Powers {
        withholds_prompts: true,
        reads_any_output: true,
        denies_by_code: true,
        stops_anyway: true,
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
    ],
    tools: &[
        known("execute_bash", "Bash", &[("cwd", "workdir")]),
        known("read_file", "Read", FILE),
        known("read_code", "Read", FILE),
        known("fs_write", "Write", WRITTEN),
        known("fs_append", "Edit", APPENDED),
        known("str_replace", "Edit", REPLACED),
        known("delete_file", "Delete", &[("targetFile", "file_path")]),
        known("list_directory", "LS", &[]),
        known("grep_search", "Grep", &[("query", "pattern"), ("includePattern", "glob")]),
        known("file_search", "Glob", &[("query", "pattern")]),
        known("web_fetch", "WebFetch", &[]),
        known("web_search", "WebSearch", &[]),
        known("todo_list", "TodoWrite", &[]),
    ],
    adapt,
    answered: any_response,
    fields: |_, _| Map::new(),
};

fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    // Of a server: `@SERVER/TOOL`.
    if let Some((server, tool)) = call.tool.strip_prefix('@').and_then(|named| named.split_once('/')) {
        let named = format!("mcp__{server}__{tool}");
        let theirs = std::mem::replace(&mut call.tool, named);
        call.theirs = Some(Theirs { tool: theirs, renamed: &[] });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
