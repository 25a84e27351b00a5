//! How the calls of a tool are read, as far as it follows from the tool and the names of arguments: worked out at the
//! first call of the tool, kept beside the registry.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use portcullis_core::infer::{is_working_directory, words_of};
use portcullis_core::tool::{Registry, Tool};
use serde_json::{Map, Value};

use super::{Holds, Verbs, is_declared, of_answers, of_call, verbs};

/// Words in the name of a tool that searches folders.
const SEARCHES: [&str; 7] = ["grep", "rg", "ripgrep", "tree", "search", "searches", "walk"];
/// Words in the name of a tool that takes folders as a whole.
const GOES_BELOW: [&str; 12] = [
    "copy",
    "cp",
    "clone",
    "duplicate",
    "archive",
    "zip",
    "tar",
    "compress",
    "backup",
    "sync",
    "mirror",
    "recursive",
];

/// How calls with certain arguments are read.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The arguments that hold something, in the order in which they are read.
    pub(crate) held: Vec<Held>,
    /// The pointer of the arguments: `/arguments`.
    pub(crate) pointer: String,
    /// What the names of arguments say, sorted by name.
    names: Vec<(String, Says)>,
    /// The tool's name says that it searches what is below a folder.
    pub(crate) searches: bool,
    /// The tool's name says that it takes folders with what is below them, unless an argument says otherwise.
    pub(crate) goes_below: bool,
}

/// An argument that holds something.
#[derive(Debug)]
pub(crate) struct Held {
    /// Its name.
    pub(crate) argument: String,
    /// Its pointer: `/arguments/NAME`.
    pub(crate) pointer: String,
    /// What it holds.
    pub(crate) holds: Holds,
    /// What is done to what it names.
    pub(crate) verbs: Verbs,
    /// What its name says.
    pub(crate) says: Says,
}

/// What the name of an argument says beside what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Says {
    /// The working directory of the call.
    pub(crate) directory: bool,
    /// The folder in which something is looked for.
    pub(crate) folder: bool,
    /// By a pattern, which paths are meant.
    pub(crate) pattern: bool,
    /// Whether what is below is taken too.
    pub(crate) recursive: bool,
    /// The method of a request.
    pub(crate) method: bool,
    /// What a request carries.
    pub(crate) body: bool,
    /// A field of a message's header: one line.
    pub(crate) header: bool,
}

impl Says {
    fn of(name: &str) -> Self {
        let words = words_of(name);
        let last = words.last().map(String::as_str).unwrap_or_default();
        Self {
            directory: is_working_directory(name),
            folder: matches!(last, "path" | "dir" | "directory" | "folder" | "root"),
            pattern: matches!(last, "pattern" | "patterns" | "glob" | "globs"),
            recursive: matches!(last, "recursive" | "recurse"),
            method: matches!(last, "method" | "verb"),
            body: matches!(
                last,
                "body"
                    | "data"
                    | "payload"
                    | "json"
                    | "form"
                    | "content"
                    | "upload"
                    | "attachment"
                    | "attachments"
            ),
            header: matches!(
                last,
                "subject" | "title" | "topic" | "from" | "sender" | "name" | "header" | "headers"
            ),
        }
    }
}

impl Plan {
    /// For calls of the tool `name`, which is `tool` where the bundle knows it, with these arguments.
    pub(crate) fn of(tool: Option<&Tool>, name: &str, arguments: &Map<String, Value>) -> Self {
        Self::with(tool, name, arguments, arguments.keys())
    }

    /// For calls of the tool `name` that have no other arguments than those that are written down.
    fn declared(tool: &Tool, name: &str) -> Self {
        let properties = tool.args.as_value().get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flat_map(Map::keys);
        let effects = tool.effects.iter().filter(|_| is_declared(tool)).map(|effect| &effect.argument);
        Self::with(Some(tool), name, &Map::new(), properties.chain(effects))
    }

    /// For an object at `pointer` that goes to the tool beside its arguments, where these arguments are its settings.
    pub(crate) fn of_answers(
        tool: Option<&Tool>,
        name: &str,
        members: &Map<String, Value>,
        arguments: &Map<String, Value>,
        pointer: &str,
    ) -> Self {
        let held = of_answers(tool, name, members);
        Self::of_held(tool, name, held, arguments.keys().chain(members.keys()), pointer)
    }

    fn with<'n>(
        tool: Option<&Tool>,
        name: &str,
        arguments: &Map<String, Value>,
        names: impl Iterator<Item = &'n String>,
    ) -> Self {
        Self::of_held(tool, name, of_call(tool, name, arguments), names, "/arguments")
    }

    fn of_held<'n>(
        tool: Option<&Tool>,
        name: &str,
        held: Vec<(String, Holds)>,
        names: impl Iterator<Item = &'n String>,
        pointer: &str,
    ) -> Self {
        let mut names: Vec<(String, Says)> = names.map(|name| (name.clone(), Says::of(name))).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.dedup_by(|a, b| a.0 == b.0);
        let held = held.into_iter().map(|(argument, holds)| Held {
            pointer: format!("{pointer}/{}", escaped(&argument)),
            holds,
            verbs: verbs::of(tool, name, &argument, holds).0,
            says: Says::of(&argument),
            argument,
        });
        let words = words_of(name);
        let says = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        Self {
            held: held.collect(),
            pointer: pointer.to_owned(),
            names,
            searches: says(&SEARCHES),
            goes_below: says(&GOES_BELOW),
        }
    }

    /// What the name of an argument says, or `None` if the plan was not made for it.
    pub(crate) fn says(&self, name: &str) -> Option<Says> {
        let at = self.names.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.names.get(at).map(|(_, says)| *says)
    }
}

/// The plans of a registry's tools.
#[derive(Debug)]
pub(crate) struct Plans(Vec<[OnceLock<Plan>; 2]>);

impl Plans {
    /// Of a registry: made when the first is asked for. `None` if there is no room beside it.
    pub(crate) fn of(registry: &Registry) -> Option<Arc<Self>> {
        registry.derived(|registry| Self(registry.iter().map(|_| Default::default()).collect()))
    }

    /// How calls of the tool `name` are read, where they have no other arguments than those that are written down.
    pub(crate) fn get(&self, registry: &Registry, name: &str) -> Option<&Plan> {
        let (by_name, by_id) = self.0.get(registry.position(name)?).map(|[name, id]| (name, id))?;
        let tool = registry.get(name)?;
        // Calls use the name or the id, and what the one says the other need not.
        let place = if tool.name == name { by_name } else { by_id };
        Some(place.get_or_init(|| Plan::declared(tool, name)))
    }
}

/// A name as a part of a JSON pointer (RFC 6901).
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) {
        Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(name)
    }
}
