//! What the name of an argument says, whatever its value: read once for each name that a registry's schemas have.

use std::sync::Arc;

use portcullis_core::infer::words_of;
use portcullis_core::names::ByName;
use portcullis_core::tool::Tool;
use serde_json::Value as Json;

use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::protections;
use crate::words::{hash, stem_hash};

/// Longest argument that counts as one value whatever it looks like, in bytes.
pub(crate) const WHOLE_BYTES_MAX: usize = 80;

/// What an argument is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// To whom or where to.
    Target,
    /// A text, such as a message's body.
    Content,
    /// What the call is done to, or with.
    Object,
}

/// Names of arguments whose value names what is set: `field: iban`.
const FIELDS: [&str; 21] = [
    "tag",
    "what",
    "feature",
    "f",
    "field",
    "fields",
    "feld",
    "campo",
    "champ",
    "veld",
    "pole",
    "property",
    "attribute",
    "setting",
    "option",
    "parameter",
    "param",
    "column",
    "cambio",
    "key",
    "path",
];

/// Names of arguments of which the value is what something is set to: `value: muted`.
const VALUES: [&str; 7] = ["value", "val", "v", "set", "to", "reason", "outcome"];

/// Names of arguments of tools for anything that say which of them is done: `task: purge_mailbox`.
const TASKS: [&str; 11] =
    ["tag", "task", "job", "workflow", "playbook", "procedure", "process", "routine", "name", "run", "do"];

/// Names of arguments of which the value switches something on or off.
const SWITCHES: [&str; 12] = [
    "state", "status", "value", "mode", "enabled", "active", "on", "power", "action", "command", "cmd", "set",
];

/// Names of arguments that hold the words of a command: `args: -n catalog delete pvc data-0`.
const COMMANDS: [&str; 5] = ["args", "argv", "cmd", "line", "argline"];

/// Names of arguments that say what somebody may do.
const RIGHTS: [&str; 5] = ["role", "permission", "privilege", "acl", "clearance"];

/// Last words of names of arguments that say what stands on the thing that is clicked.
const LABELS: [&str; 14] = [
    "element",
    "label",
    "button",
    "text",
    "title",
    "name",
    "description",
    "control",
    "path",
    "menu",
    "image",
    "action",
    "instruction",
    "form",
];

/// A name, read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArgumentName {
    pub(crate) words: Vec<String>,
    /// The classes of all its words.
    pub(crate) classes: Classes,
    /// Those of the last, which says what it is: `email_id` names a mail, `recipient_id` somebody.
    pub(crate) last: Classes,
    /// The things it speaks of.
    pub(crate) things: Arc<[u64]>,
    /// Of these, those whose change is grave.
    pub(crate) grave_things: Vec<u64>,
    /// Its value names what is set.
    pub(crate) is_field: bool,
    /// Its value is what something is set to.
    pub(crate) is_value: bool,
    /// Its value may be a role.
    pub(crate) is_level: bool,
    /// Its value names which task is done.
    pub(crate) is_task: bool,
    /// Its value switches something on or off.
    pub(crate) is_switch: bool,
    /// Its value is a command.
    pub(crate) is_command: bool,
    /// Its value is what a person would read on what is clicked.
    pub(crate) is_label: bool,
    /// Its value says what somebody may do.
    pub(crate) is_right: bool,
    /// Its value says who sees something.
    pub(crate) is_audience: bool,
    /// It names a protection.
    pub(crate) is_protection: bool,
    /// It names a lock.
    pub(crate) is_lock: bool,
    /// It says that something which protects is switched off.
    pub(crate) disables: bool,
    /// It says that something is approved without anybody.
    pub(crate) is_automatic: bool,
}

impl ArgumentName {
    /// Reads a name. Linear in its length.
    pub(crate) fn of(lexicon: &Lexicon, name: &str) -> Self {
        let words = words_of(name);
        let key: Vec<(u64, u64)> =
            words.iter().map(|word| (hash(word.as_bytes()), lexicon.base(stem_hash(word)))).collect();
        let classes_of = |(hash, stem): &(u64, u64)| lexicon.classes_of(*hash, *stem);
        // A bare `key` names a record, `api_key` is one.
        let bare = matches!(name, "key" | "keys");
        let keys = key.iter().filter(|(hash, stem)| !bare && lexicon.is_grave(*hash, *stem));
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let rights = RIGHTS.map(|right| lexicon.base(stem_hash(right)));
        Self {
            classes: key.iter().map(classes_of).fold(Classes::default(), Classes::or),
            last: key.last().map(classes_of).unwrap_or_default(),
            things: key.iter().map(|(_, stem)| lexicon.thing(*stem)).collect(),
            grave_things: keys.map(|(_, stem)| lexicon.thing(*stem)).collect(),
            is_field: FIELDS.contains(&name),
            is_value: VALUES.contains(&name),
            is_level: matches!(name, "as" | "level"),
            is_task: TASKS.contains(&name),
            is_switch: SWITCHES.contains(&name),
            is_command: COMMANDS.contains(&name),
            is_label: words.last().is_some_and(|last| LABELS.contains(&last.as_str())),
            is_right: key.iter().any(|(_, stem)| rights.contains(stem)),
            is_audience: has(&["privacy", "visibility", "audience", "sharing"]),
            is_protection: protections::are_protections(&words),
            is_lock: has(&["lock", "locked"]),
            disables: protections::disable(&words),
            is_automatic: has(&["auto", "always"]) && has(&["approve", "allow", "accept"]),
            words,
        }
    }
}

/// The names that are read already.
#[derive(Debug, Default)]
pub(crate) struct ArgumentNames(ByName<Arc<ArgumentName>>);

impl ArgumentNames {
    /// The names of properties in the schemas of tools, at any depth.
    pub(crate) fn of_tools<'t>(lexicon: &Lexicon, tools: impl Iterator<Item = &'t Tool>) -> Self {
        let mut names = Self::default();
        for tool in tools {
            names.collect(lexicon, tool.args.as_value());
        }
        names
    }

    fn collect(&mut self, lexicon: &Lexicon, schema: &Json) {
        match schema {
            Json::Object(map) => {
                if let Some(Json::Object(properties)) = map.get("properties") {
                    for name in
                        properties.keys().filter(|name| !self.0.contains_key(*name)).collect::<Vec<_>>()
                    {
                        self.0.insert(name.clone(), Arc::new(ArgumentName::of(lexicon, name)));
                    }
                }
                map.values().for_each(|inner| self.collect(lexicon, inner));
            }
            Json::Array(items) => items.iter().for_each(|inner| self.collect(lexicon, inner)),
            _ => {}
        }
    }

    /// A name, as it was read or read now.
    pub(crate) fn get(&self, lexicon: &Lexicon, name: &str) -> Arc<ArgumentName> {
        match self.0.get(name) {
            Some(known) => Arc::clone(known),
            None => Arc::new(ArgumentName::of(lexicon, name)),
        }
    }
}
