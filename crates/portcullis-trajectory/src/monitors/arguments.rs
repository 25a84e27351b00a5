//! The arguments of a call as the monitors read them.

use portcullis_core::action::{Action, carried};
use portcullis_core::bundle::Scores;
use portcullis_core::tool::Tool;
use serde_json::Value;

use super::words::{Words, stem_hash, words};

/// Strings of arguments that are read.
const ARGUMENTS_MAX: usize = 256;
/// Bytes of arguments that are read.
const ARGUMENT_BYTES_MAX: usize = 65_536;
/// Deepest nesting of arguments that is read.
const DEPTH_MAX: usize = 64;
/// Bytes of a string that says what a call does. A longer one is a document that it passes on: the content of a file, the
/// body of a mail.
const ACT_MAX: usize = 600;

/// What the arguments of a call say.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Strings, one a line, and what the agent says it will do, which counts like what it does.
    pub(super) text: String,
    /// Folders that are named.
    pub(super) folders: Vec<u64>,
    /// Documents that are passed on. Where scores advise they say nothing about what the call does.
    documents: String,
    apart: bool,
    strings: usize,
}

impl Arguments {
    pub(super) fn of(action: &Action, scores: Scores, tool: Option<&Tool>) -> Self {
        // A program is as long as it is, and does what it says.
        let runs = tool.is_none_or(|tool| tool.tool_type.contains("EXECUTE"));
        let mut said = Self { apart: scores == Scores::Advise && !runs, ..Self::default() };
        said.collect(&carried(&action.arguments, action.continuation.as_ref()), 0);
        if let Some(planned) = &action.planned {
            push(&mut said.text, planned);
        }
        said
    }

    /// The words of all of it, given those of the text.
    pub(super) fn all_words(&self, of_text: Words) -> Words {
        match self.documents.is_empty() {
            true => of_text,
            false => words(&format!("{}{}", self.text, self.documents)),
        }
    }

    fn collect(&mut self, value: &Value, depth: usize) {
        if depth > DEPTH_MAX || self.strings >= ARGUMENTS_MAX {
            return;
        }
        match value {
            Value::String(string) => {
                self.strings += 1;
                let apart = self.apart && string.len() > ACT_MAX;
                push(if apart { &mut self.documents } else { &mut self.text }, string);
                if let Some((folder, _)) =
                    string.rsplit_once('/').filter(|_| !string.contains(char::is_whitespace))
                {
                    self.folders.push(stem_hash(&folder.to_lowercase()));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, depth + 1)),
            Value::Object(map) => map.values().for_each(|item| self.collect(item, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn push(text: &mut String, more: &str) {
    let room = ARGUMENT_BYTES_MAX.saturating_sub(text.len());
    if let Some((more, _)) = more.split_at_checked(more.floor_char_boundary(room)) {
        text.push_str(more);
        text.push('\n');
    }
}
