//! Which argument holds what, and what is done to it.
//!
//! The bundle says it (`effects` of a tool) or [`portcullis_core::infer`] does, from names, formats and what the
//! tool is about. Arguments that the schema does not name are taken by their own names; of a tool that the bundle
//! does not know, by what their values look like as well. What is done to a path or a host follows from the
//! words of the tool's name and from its type ([`verbs`]); SQL, shell and code say it themselves.

mod holds;
pub(crate) mod plan;
pub mod verbs;

use std::fmt;

use portcullis_core::infer::{Hints, infer, words_of};
use portcullis_core::tool::Tool;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use holds::Holds;
pub use verbs::Verbs;

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one argument of a tool is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The argument: a property of the arguments object.
    pub argument: String,
    /// What it holds.
    pub holds: Holds,
    /// What is done to what it names; empty if the text says it.
    pub verbs: Verbs,
    /// Whether the bundle says so; else it was inferred.
    pub declared: bool,
    /// Why.
    pub why: String,
}

/// How the arguments of a tool are read, in the order of its declaration or schema.
pub fn explain(tool: &Tool) -> Vec<Explained> {
    let declared = is_declared(tool);
    let properties = tool.args.as_value().get("properties").and_then(Value::as_object);
    let listed: Vec<(String, Holds)> = if declared {
        let effects = tool.effects.iter();
        effects.filter_map(|effect| Some((effect.argument.clone(), Holds::named(&effect.effect)?))).collect()
    } else {
        inferred(tool, &Map::new())
    };
    let explained = listed.into_iter().map(|(argument, holds)| {
        let (verbs, verb_why) = verbs::of(Some(tool), &tool.name, &argument, holds);
        let format = properties
            .and_then(|properties| properties.get(&argument))
            .and_then(|property| property.get("format").or_else(|| property.pointer("/items/format")))
            .and_then(Value::as_str);
        let holds_why = match (declared, format) {
            (true, _) => "the bundle declares it".to_owned(),
            (false, Some(format)) if matches!(holds, Holds::Url | Holds::Email) => {
                format!("its format is `{format}`")
            }
            (false, _) => format!("its name says `{}`", words_of(&argument).pop().unwrap_or_default()),
        };
        let why = match verb_why {
            Some(verb_why) => format!("{holds_why}; {verb_why}"),
            None => holds_why,
        };
        Explained { argument, holds, verbs, declared, why }
    });
    explained.collect()
}

/// Whether the operator wrote which arguments hold what.
pub(crate) fn is_declared(tool: &Tool) -> bool {
    !tool.inferred && !tool.effects.is_empty()
}

/// What the arguments of a call hold. Only arguments of the top level are listed; what is in them is read with
/// them.
pub(crate) fn of_call(
    tool: Option<&Tool>,
    name: &str,
    arguments: &Map<String, Value>,
) -> Vec<(String, Holds)> {
    match tool {
        Some(tool) if is_declared(tool) => {
            let effects = tool.effects.iter();
            let declared = effects
                .filter_map(|effect| Some((effect.argument.clone(), Holds::named(&effect.effect)?)))
                .collect();
            with_other_spellings(declared, arguments)
        }
        Some(tool) => with_other_spellings(inferred(tool, arguments), arguments),
        None => {
            let mut found = from_names(name, "", arguments.keys().map(|key| (key, &Value::Null)));
            for (key, value) in arguments {
                if !found.iter().any(|(known, _)| known == key)
                    && let Some(holds) = looks_like(value)
                {
                    found.push((key.clone(), holds));
                }
            }
            // The order of JSON's keys means nothing.
            found.sort_by(|a, b| a.0.cmp(&b.0));
            found
        }
    }
}

/// With the arguments that have such a name in other letters: `Path` for `path`. Some servers take both for the same.
fn with_other_spellings(
    mut found: Vec<(String, Holds)>,
    arguments: &Map<String, Value>,
) -> Vec<(String, Holds)> {
    let spelt: Vec<(String, Holds)> = arguments
        .keys()
        .flat_map(|key| {
            let meant = found.iter().filter(move |(name, _)| name != key && is_same_name(name, key));
            meant.map(|(_, holds)| (key.clone(), *holds))
        })
        .collect();
    for other in spelt {
        if !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

/// Whether two names differ in the case of their letters alone, as readers fold it that do not tell them apart.
fn is_same_name(one: &str, other: &str) -> bool {
    // By way of capitals, for letters such as the long s that are small forms of another.
    let folded = |name: &str| name.to_uppercase().to_lowercase();
    one.eq_ignore_ascii_case(other) || (!one.is_ascii() || !other.is_ascii()) && folded(one) == folded(other)
}

/// What the members of an object hold that goes to a tool beside its arguments. Nothing is declared of them: what the
/// tool's own arguments of that name hold, else what their names say, else what their values look like.
pub(crate) fn of_answers(
    tool: Option<&Tool>,
    name: &str,
    members: &Map<String, Value>,
) -> Vec<(String, Holds)> {
    let mut found = tool.map(|tool| of_call(Some(tool), name, members)).unwrap_or_default();
    found.retain(|(known, _)| members.contains_key(known));
    for (key, holds) in of_call(None, name, members) {
        if !found.iter().any(|(known, _)| *known == key) {
            found.push((key, holds));
        }
    }
    found
}

/// From the schema, and the names of arguments that it does not list.
fn inferred(tool: &Tool, arguments: &Map<String, Value>) -> Vec<(String, Holds)> {
    let properties = tool.args.as_value().get("properties").and_then(Value::as_object);
    let listed = properties.into_iter().flatten();
    let others = arguments.iter().filter(|(key, _)| properties.is_none_or(|known| !known.contains_key(*key)));
    let all = listed.chain(others.map(|(key, _)| (key, &Value::Null)));
    from_names(&tool.name, &tool.description, all)
}

fn from_names<'v>(
    name: &str,
    description: &str,
    properties: impl Iterator<Item = (&'v String, &'v Value)>,
) -> Vec<(String, Holds)> {
    let describe = |property: &Value| if property.is_object() { property.clone() } else { json!({}) };
    let properties: Map<String, Value> =
        properties.map(|(key, property)| (key.clone(), describe(property))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let found = infer(name, description, &schema, &Hints::default()).effects;
    found.into_iter().filter_map(|effect| Some((effect.argument, Holds::named(&effect.effect)?))).collect()
}

/// What a whole value looks like, for arguments about which nothing else is known.
fn looks_like(value: &Value) -> Option<Holds> {
    let text = match value {
        Value::String(text) => text.trim(),
        Value::Array(items) => return items.iter().find_map(|item| item.as_str().and_then(looks_like_text)),
        _ => return None,
    };
    looks_like_text(text)
}

pub(crate) fn looks_like_text(text: &str) -> Option<Holds> {
    let begins = |prefixes: &[&str]| {
        prefixes
            .iter()
            .any(|prefix| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
    };
    let spaced = text.contains(char::is_whitespace);
    if begins(&["http://", "https://", "ftp://", "ws://", "wss://"]) {
        Some(Holds::Url)
    } else if begins(&["file:"]) || (begins(&["/", "~/", "./", "../"]) && !spaced) {
        Some(Holds::Path)
    } else if !spaced
        && text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'))
    {
        Some(Holds::Email)
    } else {
        None
    }
}

/// Names of members that hold the value itself, in an object where a text was expected.
pub(crate) fn fits(holds: Holds, name: &str) -> bool {
    let words = words_of(name);
    let Some(last) = words.last().map(String::as_str) else { return false };
    match holds {
        Holds::Path => matches!(
            last,
            "path"
                | "paths"
                | "file"
                | "files"
                | "filename"
                | "filepath"
                | "dir"
                | "directory"
                | "folder"
                | "uri"
                | "url"
                | "source"
                | "src"
                | "destination"
                | "dest"
                | "dst"
                | "target"
                | "from"
                | "to"
                | "old"
                | "new"
        ),
        Holds::Url => matches!(last, "url" | "urls" | "uri" | "href" | "link" | "endpoint" | "src" | "host"),
        Holds::Email => matches!(
            last,
            "email"
                | "emails"
                | "mail"
                | "address"
                | "addresses"
                | "to"
                | "cc"
                | "bcc"
                | "recipient"
                | "recipients"
        ),
        Holds::Sql => matches!(last, "sql" | "query" | "statement" | "text"),
        Holds::Shell => matches!(last, "command" | "commands" | "cmd" | "script" | "run"),
        Holds::Code => matches!(last, "code" | "script" | "source"),
        Holds::Money | Holds::Task | Holds::Patch => false,
    }
}
