//! What a tool does to what its arguments name.
//!
//! The name decides first, as an agent and a person read it: `delete_file` deletes whatever its type is. Then the
//! type, then whether there are side effects. A tool of which nothing is understood reads and writes.

use portcullis_core::effect::Verb;
use portcullis_core::infer::words_of;
use portcullis_core::tool::Tool;

use super::holds::Holds;

/// What is done to a resource, in order.
pub type Verbs = Vec<Verb>;

/// What the words of a tool's name say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Read,
    Write,
    Delete,
    Move,
    Copy,
    Upload,
    Execute,
    Configure,
    Send,
}

fn deed(word: &str) -> Option<(Deed, &'static str)> {
    Some(match word {
        "read" | "get" | "list" | "search" | "find" | "view" | "show" | "cat" | "ls" | "stat" | "grep"
        | "glob" | "fetch" | "query" | "inspect" | "describe" | "tree" | "info" | "load" | "open"
        | "count" | "lookup" | "summarize" | "summarise" | "analyze" | "analyse" | "diff" | "compare"
        | "retrieve" | "check" => (Deed::Read, "reads"),
        "write" | "append" | "save" | "store" | "create" | "mkdir" | "edit" | "update" | "patch"
        | "replace" | "put" | "touch" | "modify" | "insert" | "overwrite" | "download" | "export" | "set"
        | "add" | "make" | "unzip" | "extract" | "backup" => (Deed::Write, "writes"),
        "delete" | "remove" | "rm" | "rmdir" | "unlink" | "purge" | "erase" | "wipe" | "destroy"
        | "trash" | "clear" | "truncate" | "drop" => (Deed::Delete, "deletes"),
        "move" | "rename" | "mv" => (Deed::Move, "moves"),
        "copy" | "cp" | "duplicate" | "clone" => (Deed::Copy, "copies"),
        "upload" | "attach" | "share" | "publish" => (Deed::Upload, "hands on"),
        "run" | "execute" | "exec" | "launch" | "start" | "eval" | "invoke" => (Deed::Execute, "runs"),
        "chmod" | "chown" | "chgrp" => (Deed::Configure, "changes the permissions of"),
        "send" | "email" | "mail" | "post" | "submit" | "notify" | "forward" | "reply" => {
            (Deed::Send, "sends")
        }
        _ => return None,
    })
}

/// The deed in a name: the first word of its last segment counts before the others.
fn deed_of(name: &str) -> Option<(Deed, String)> {
    let last = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let last = last.rsplit("__").next().unwrap_or(last);
    let mut words = words_of(last);
    words.extend(words_of(name));
    words.iter().find_map(|word| {
        let (deed, does) = deed(word)?;
        Some((deed, format!("`{word}` in the tool's name {does} it")))
    })
}

/// The role of an argument where there are two ends.
fn role(argument: &str) -> Option<bool> {
    let is = |words: &[&str]| words_of(argument).iter().any(|word| words.contains(&word.as_str()));
    let from = is(&["source", "src", "from", "old", "input", "original", "local", "before"]);
    let to = is(&["destination", "dest", "dst", "to", "target", "new", "output", "out", "after"]);
    match (from, to) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Whether calls of the tool only look things up: the operator says that they have no side effects, and its type
/// is none that has.
fn only_reads(tool: Option<&Tool>) -> bool {
    const CHANGING: [&str; 6] = ["SEND_EMAIL", "WRITE_FILE", "EXECUTE", "PAY", "DELETE", "MODIFY"];
    tool.is_some_and(|tool| !tool.side_effecting && !CHANGING.contains(&tool.tool_type.as_str()))
}

/// What is done to what an argument names, and why; empty if the text says it.
pub fn of(tool: Option<&Tool>, name: &str, argument: &str, holds: Holds) -> (Verbs, Option<String>) {
    let (verbs, why) = match holds {
        _ if holds.speaks_for_itself() => return (Vec::new(), None),
        Holds::Path => of_path(tool, name, argument),
        Holds::Url => of_url(tool, name),
        Holds::Email if only_reads(tool) => (vec![Verb::Read], "the tool only looks things up".to_owned()),
        Holds::Email => (vec![Verb::Send], "addresses are sent to".to_owned()),
        _ => (vec![Verb::Pay], "money is paid".to_owned()),
    };
    (verbs, Some(why))
}

fn of_path(tool: Option<&Tool>, name: &str, argument: &str) -> (Verbs, String) {
    if matches!(argument_word(argument).as_str(), "cwd" | "workdir" | "attachment" | "attachments") {
        return (vec![Verb::Read], "its name says that it is only read".to_owned());
    }
    if let Some((deed, why)) = deed_of(name) {
        let role = role(argument);
        let verbs = match (deed, role) {
            (Deed::Read, Some(false)) if words_of(argument).iter().any(|word| word.starts_with("out")) => {
                vec![Verb::Write]
            }
            (Deed::Read | Deed::Upload | Deed::Send, _) => vec![Verb::Read],
            (Deed::Copy, Some(true)) => vec![Verb::Read],
            (Deed::Write, Some(true)) => vec![Verb::Read],
            (Deed::Write, _) | (Deed::Copy | Deed::Move, Some(false)) => vec![Verb::Write],
            (Deed::Copy, None) => vec![Verb::Read, Verb::Write],
            (Deed::Delete, _) => vec![Verb::Delete],
            (Deed::Move, Some(true)) => vec![Verb::Read, Verb::Delete],
            (Deed::Move, None) => vec![Verb::Read, Verb::Write, Verb::Delete],
            (Deed::Execute, _) => vec![Verb::Execute],
            (Deed::Configure, _) => vec![Verb::Configure],
        };
        // A harmless word in the name of a tool that the operator calls something worse.
        let declared = tool.and_then(|tool| by_type(&tool.tool_type));
        let understated = matches!(deed, Deed::Read) && tool.is_some_and(|tool| tool.side_effecting);
        if let Some(verb) = declared.filter(|verb| understated && !verbs.contains(verb)) {
            let mut both = verbs;
            both.push(verb);
            return (both, format!("{why}, and so does its type"));
        }
        return (verbs, why);
    }
    let Some(tool) = tool else {
        return (vec![Verb::Read, Verb::Write], "what the tool does is not known".to_owned());
    };
    match by_type(&tool.tool_type) {
        Some(verb) => (vec![verb], format!("the tool's type is {}", tool.tool_type)),
        None if !tool.side_effecting => (vec![Verb::Read], "the tool has no side effects".to_owned()),
        None => (vec![Verb::Read, Verb::Write], "what the tool does to it is not known".to_owned()),
    }
}

fn argument_word(argument: &str) -> String {
    words_of(argument).pop().unwrap_or_default()
}

fn by_type(tool_type: &str) -> Option<Verb> {
    match tool_type {
        "RETRIEVE_DOCS" | "WEB_FETCH" | "QUERY_DB" | "CALCULATE" | "SEND_EMAIL" => Some(Verb::Read),
        "WRITE_FILE" | "MODIFY" => Some(Verb::Write),
        "DELETE" => Some(Verb::Delete),
        "EXECUTE" => Some(Verb::Execute),
        _ => None,
    }
}

fn of_url(tool: Option<&Tool>, name: &str) -> (Verbs, String) {
    let type_ = tool.map(|tool| tool.tool_type.as_str());
    if only_reads(tool) || type_ == Some("WEB_FETCH") {
        let why = "a fetch reads; one with a body or another method than GET sends".to_owned();
        return (vec![Verb::Read], why);
    }
    match deed_of(name) {
        Some((Deed::Read, why)) if tool.is_none_or(|tool| !tool.side_effecting) => (vec![Verb::Read], why),
        Some((Deed::Write, why)) if name.to_ascii_lowercase().contains("download") => (vec![Verb::Read], why),
        _ if tool.is_none() => (vec![Verb::Read, Verb::Send], "what the tool does is not known".to_owned()),
        _ => (vec![Verb::Send], "the tool has side effects".to_owned()),
    }
}
