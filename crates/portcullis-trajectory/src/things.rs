//! Things: what an action reads and writes that outlives the run, by the names under which a store knows their taints.
//!
//! Files and tables are named by the effects of the call. What a server keeps otherwise, such as notes, is named by
//! the server and the key in the arguments, if there is one: a call without a key may read all of them.

use portcullis_core::action::Action;
use portcullis_core::effect::{Effect, ResourceKind, Verb};
use portcullis_core::infer::words_of;
use portcullis_core::taint::{THINGS_MAX, Taint};
use serde_json::Value as Json;

use crate::deed::Deed;
use crate::kind::CallKind;
use crate::trajectory::Call;
use crate::words::stem_hash;

/// What an action has to do with things that outlive the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Things {
    /// What it reads.
    pub reads: Vec<String>,
    /// What it writes.
    pub writes: Vec<String>,
    /// What it writes is written anew, so that nothing of what was there before is left.
    pub replaces: bool,
}

/// The same, with what of it others wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// What it reads.
    pub reads: Vec<String>,
    /// What it writes; clean where nothing of it is others'.
    pub writes: Vec<Taint>,
}

/// Stands for the key of records that were written without one.
const NO_KEY: &str = "-";
/// Stands for the keys of all records that were written with one.
const ANY_KEY: &str = "*";
/// Names of arguments that name a record, the surest first.
const KEYS: [&str; 7] = ["key", "id", "name", "title", "topic", "subject", "slug"];
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 256;
/// Verbs that write a thing as a whole.
const WHOLE: [&str; 8] = ["write", "save", "overwrite", "create", "store", "put", "replace", "set"];
/// Words of a tool's name that say that only a part is written.
const PART: [&str; 8] = ["append", "edit", "insert", "patch", "line", "row", "block", "comment"];

impl Things {
    /// Of a call with its effects.
    pub fn of(call: &Call, action: &Action, effects: &[Effect]) -> Self {
        let mut things = Self::default();
        for effect in effects {
            let Some(name) = name(effect) else { continue };
            match effect.verb {
                Verb::Read | Verb::Execute => push(&mut things.reads, name),
                Verb::Write => push(&mut things.writes, name),
                Verb::Delete | Verb::Send | Verb::Pay | Verb::Configure => {}
            }
        }
        let runs = effects.iter().any(|effect| effect.verb == Verb::Execute);
        if things.reads.is_empty() && things.writes.is_empty() && !runs {
            things.take_records(call, action);
        }
        // Of a command it is not known whether it appends.
        let one = things.writes.len() == 1 || things.writes.iter().any(|name| name.starts_with("record "));
        things.replaces = one && !runs && writes_whole(&call.kind);
        things
    }

    /// What a server keeps and gives by key.
    fn take_records(&mut self, call: &Call, action: &Action) {
        let server = action.server.as_deref().unwrap_or(NO_KEY);
        let record = |key: &str| format!("record {key} of {server}");
        let key = key(&action.arguments);
        if !call.kind.changes {
            push(&mut self.reads, record(key.as_deref().unwrap_or(ANY_KEY)));
            push(&mut self.reads, record(NO_KEY));
        } else if call.kind.deed == Deed::Change {
            // What is read without a key may be any of them.
            let known = key.as_ref().map(|_| record(ANY_KEY));
            push(&mut self.writes, record(key.as_deref().unwrap_or(NO_KEY)));
            known.into_iter().for_each(|any| push(&mut self.writes, any));
        }
    }

    /// What a server keeps, for whoever does not say which of it is read.
    pub fn kept_by(server: Option<&str>) -> Vec<String> {
        let server = server.unwrap_or(NO_KEY);
        [ANY_KEY, NO_KEY].map(|key| format!("record {key} of {server}")).into()
    }

    /// Whether a thing is one of many that are written one by one: a clean record says nothing of the others.
    pub fn is_gathered(thing: &str) -> bool {
        let rest = thing.strip_prefix("record ");
        let key = rest.and_then(|rest| rest.split_once(" of ")).map(|(key, _)| key);
        key.is_some_and(|key| [NO_KEY, ANY_KEY].contains(&key))
    }
}

fn push(names: &mut Vec<String>, name: String) {
    if names.len() < THINGS_MAX && !names.contains(&name) {
        names.push(name);
    }
}

/// The name of what an effect touches, if what is written there can be read again.
fn name(effect: &Effect) -> Option<String> {
    let resource = &effect.resource;
    match resource.kind {
        ResourceKind::Path if resource.is("resolved") && !resource.is("device") && !resource.is("glob") => {
            Some(format!("path {}", resource.name))
        }
        ResourceKind::Table => Some(format!("table {}", resource.name)),
        _ => None,
    }
}

/// Whether a call writes a thing as a whole, by the name of its tool.
fn writes_whole(kind: &CallKind) -> bool {
    let named =
        |word: &&str| kind.verbs.contains(&stem_hash(word)) || kind.objects.contains(&stem_hash(word));
    WHOLE.iter().any(|word| kind.verbs.contains(&stem_hash(word))) && !PART.iter().any(named)
}

/// The key of a record: the short argument whose name says best that it names something.
fn key(arguments: &Json) -> Option<String> {
    let best = |name: &str| {
        let last = words_of(name).pop()?;
        KEYS.iter().position(|key| *key == last)
    };
    let keys = arguments.as_object()?.iter().filter_map(|(name, value)| {
        let text = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|id| id.to_string()))?;
        (text.len() <= KEY_BYTES_MAX).then_some((best(name)?, text.trim().to_lowercase()))
    });
    keys.min().map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use portcullis_core::effect::Resource;
    use portcullis_core::id::ActionId;
    use serde_json::json;

    use super::*;
    use crate::flow::built_in;
    use crate::kind::{CallKind, ToolView};

    fn things(tool: &str, arguments: Json, effects: &[Effect]) -> Things {
        let lexicon = built_in();
        let call = Call::new(&lexicon, CallKind::of(&lexicon, &ToolView::unknown(tool)), &arguments);
        let action = Action::new(ActionId::from_bytes([0; 16]), Some(tool.to_owned()), arguments, None)
            .of_server(Some("notes".into()));
        Things::of(&call, &action, effects)
    }

    fn path(verb: Verb, name: &str) -> Effect {
        Effect::new(verb, Resource::new(ResourceKind::Path, name).with("resolved", true))
    }

    #[test]
    fn files_are_named_by_effects_and_a_part_does_not_replace_them() {
        let file = [path(Verb::Write, "/a.md")];
        let written = things("write_file", json!({"path": "a.md", "content": "x"}), &file);
        assert_eq!((written.writes, written.replaces), (vec!["path /a.md".to_owned()], true));
        assert!(!things("append_to_file", json!({"path": "a.md"}), &file).replaces);
        assert!(!things("edit_file", json!({"path": "a.md"}), &file).replaces);
        let read = things("read_file", json!({"path": "a.md"}), &[path(Verb::Read, "/a.md")]);
        assert_eq!(read.reads, ["path /a.md"]);
    }

    #[test]
    fn records_are_named_by_server_and_key() {
        let saved = things("save_note", json!({"key": "Supplier", "text": "x"}), &[]);
        assert_eq!(saved.writes, ["record supplier of notes", "record * of notes"]);
        assert!(saved.replaces && Things::is_gathered("record * of notes"));
        assert!(!Things::is_gathered("record supplier of notes"));
        let one = things("get_note", json!({"key": "supplier"}), &[]);
        assert_eq!(one.reads, ["record supplier of notes", "record - of notes"]);
        assert_eq!(things("list_notes", json!({}), &[]).reads, ["record * of notes", "record - of notes"]);
        assert_eq!(things("add_memory", json!({"text": "x"}), &[]).writes, ["record - of notes"]);
        assert_eq!(things("send_mail", json!({"to": "a@example.org", "body": "x"}), &[]), Things::default());
    }
}
