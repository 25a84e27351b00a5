//! pi: `packages/coding-agent/docs/extensions.md` of earendil-works/pi (at 005aeb9), tools by `packages/coding-agent/src/core/tools/`
//! of badlogic/pi-mono (at 83378aa).
//!
//! pi starts no hooks. An extension that `portcullis hook install pi` writes starts the program, tells it the fields of Claude
//! Code under the events' own names, and does what it is answered: what OpenCode's plugin is, and `{"withheld": …}` of a
//! prompt. pi has no permissions of its own, and makes no call if an extension fails before it.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{object, reason};
use super::shape::{Kind, Names, Powers, Renamed, Shape, any_response, known};
use super::{Agent, Answer, HookCall, HookError, HookEvent, Replaces, opencode};

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
    adapt,
    answered: any_response,
    fields,
};

/// Names of files as pi opens them (`core/tools/path-utils.ts` and `utils/paths.ts` of earendil-works/pi): without an `@` in
/// front, with plain spaces, and those of `file:` addresses. The home folder is the reader's to find.
fn adapt(call: &mut HookCall, _: Option<&RawValue>) -> Result<(), HookError> {
    const TOOLS: [&str; 6] = ["Read", "Write", "Edit", "Glob", "Grep", "LS"];
    if !TOOLS.contains(&call.tool.as_str()) {
        return Ok(());
    }
    for name in ["file_path", "path"] {
        if let Some(Value::String(path)) = call.arguments.get_mut(name) {
            *path = opened(path);
        }
    }
    Ok(())
}

fn opened(path: &str) -> String {
    let is_space =
        |letter| matches!(letter, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}');
    let spaced: String = path.chars().map(|letter| if is_space(letter) { ' ' } else { letter }).collect();
    let path = spaced.strip_prefix('@').unwrap_or(&spaced);
    let Some(address) = path.strip_prefix("file://") else { return path.to_owned() };
    unescaped(address.strip_prefix("localhost").unwrap_or(address)).into_owned()
}

/// Text with `%41` for `A`, and so on.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits =
            more.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn fields(answer: &Answer, event: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::PromptBlocked(why) => object([("withheld", reason(why))]),
        _ => opencode::fields(answer, event),
    }
}

#[cfg(test)]
mod tests;
