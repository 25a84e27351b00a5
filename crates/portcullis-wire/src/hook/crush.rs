//! Crush: `docs/hooks/README.md` of charmbracelet/crush at 37f36e9 (21 August 2026); tools and their arguments by
//! `internal/agent/tools/` of the same commit.
//!
//! It has one event, that before a call. Changed arguments are put over those of the call, so none can be taken away. Calls of
//! its sub-agents are not told: the tools that start one, `agent` and `agentic_fetch`, keep their names, and are held
//! until a bundle describes them.

use serde_json::{Map, Value};

use super::answer::{denied, object};
use super::shape::{Kind, Names, Powers, Shape, any_response, as_it_is, known};
use super::{Agent, Answer, Decision, HookEvent};

static NAMES: Names = Names { event: "event", ..Names::CLAUDE };

pub(super) static SHAPE: Shape = Shape {
    agent: Agent::Crush,
    id: "crush",
    name: "Crush",
    powers: Powers { changes_arguments: true, merges_arguments: true, hides_outcomes: true, ..Powers::NONE },
    names: &NAMES,
    events: &[("PreToolUse", Kind::Before)],
    tools: &[
        known("bash", "Bash", &[("working_dir", "workdir")]),
        known("view", "Read", &[]),
        known("write", "Write", &[]),
        known("edit", "Edit", &[]),
        known("multiedit", "MultiEdit", &[]),
        known("glob", "Glob", &[]),
        known("grep", "Grep", &[("include", "glob")]),
        known("ls", "LS", &[]),
        known("fetch", "WebFetch", &[]),
        known("web_fetch", "WebFetch", &[]),
        known("web_search", "WebSearch", &[]),
        known("todos", "TodoWrite", &[]),
        known("question", "AskUserQuestion", &[]),
        known("job_output", "BashOutput", &[]),
        known("job_kill", "KillShell", &[]),
    ],
    adapt: as_it_is,
    answered: any_response,
    fields,
};

fn fields(answer: &Answer, _: &HookEvent) -> Map<String, Value> {
    match answer {
        Answer::Call(Decision::Allow(arguments)) => {
            let mut fields = object([("decision", "allow".into())]);
            if let Some(arguments) = arguments {
                fields.insert("updated_input".into(), arguments.clone());
            }
            fields
        }
        Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) => denied(why),
        Answer::Nothing | Answer::PromptBlocked(_) | Answer::GoOn(_) | Answer::Result(_) => Map::new(),
    }
}

#[cfg(test)]
mod tests;
