//! The arguments of a call as the monitors read them.

use std::cell::OnceCell;

use portcullis_core::action::{Action, carried};
use portcullis_core::bundle::Scores;
use portcullis_core::tool::Tool;
use serde_json::Value;

use super::words::{ADDRESSES_MAX, Word, Words, stem_hash, words};

/// Strings of arguments that are read.
const ARGUMENTS_MAX: usize = 256;
/// Bytes of arguments that are read.
const ARGUMENT_BYTES_MAX: usize = 65_536;
/// Deepest nesting of arguments that is read.
const DEPTH_MAX: usize = 64;
/// Bytes of a string that says what a call does. A longer one is a document that it passes on: the content of a file, the
/// body of a mail.
const ACT_MAX: usize = 600;

/// The words of all that the arguments of a call say. Those of documents are cut when they are first asked for: few
/// calls are judged by them.
pub(super) struct AllWords<'a> {
    of_text: &'a Words,
    documents: &'a str,
    of_documents: OnceCell<Words>,
}

impl<'a> AllWords<'a> {
    /// Of arguments whose text has these words.
    pub(super) fn of(arguments: &'a Arguments, of_text: &'a Words) -> Self {
        Self { of_text, documents: &arguments.documents, of_documents: OnceCell::new() }
    }

    fn parts(&self) -> impl Iterator<Item = &Words> {
        let of_documents = || self.of_documents.get_or_init(|| words(self.documents));
        // The second part is asked for only where the first says nothing.
        std::iter::once(self.of_text).chain(std::iter::once_with(of_documents))
    }

    /// Whether any word is one of these.
    pub(super) fn any(&self, is: impl Fn(&Word) -> bool) -> bool {
        self.parts().any(|part| part.list.iter().any(&is))
    }

    /// Whether any of the first addresses is one of these.
    pub(super) fn any_address(&self, is: impl Fn(u64) -> bool) -> bool {
        self.parts().flat_map(|part| &part.addresses).take(ADDRESSES_MAX).any(|address| is(*address))
    }
}

/// Bytes that the text of most calls has room in.
const TEXT_BYTES: usize = 256;

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
        let text = String::with_capacity(TEXT_BYTES);
        let mut said = Self { text, apart: scores == Scores::Advise && !runs, ..Self::default() };
        said.collect(&carried(&action.arguments, action.continuation.as_ref()), 0);
        if let Some(planned) = &action.planned {
            push(&mut said.text, planned);
        }
        said
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
                let is_path = !string.contains(char::is_whitespace);
                if let Some((folder, _)) = is_path.then(|| string.rsplit_once('/')).flatten() {
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
