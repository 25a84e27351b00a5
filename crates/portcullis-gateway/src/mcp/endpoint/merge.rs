//! One answer of many servers.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Most entries of a list, of all servers together.
const ENTRIES_MAX: usize = 4096;
/// Longest instructions of all servers together, in bytes.
const INSTRUCTIONS_BYTES_MAX: usize = 64 * 1024;

/// What one server answered, page by page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part<'p> {
    /// The server's name in the bundle.
    pub(super) name: &'p str,
    /// What the names of its tools begin with.
    pub(super) prefix: &'p str,
    pub(super) pages: &'p [Value],
}

/// What the answer to a method is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// How servers introduce themselves.
    Hello,
    /// A list of this field, whose entries have names.
    NamedList(&'static str),
    /// A list of this field, whose entries have addresses.
    List(&'static str),
    /// The first answer, of which all are alike.
    First,
}

/// How the answer to a method is made, where all servers are asked.
pub(super) fn made(method: &str) -> Option<Made> {
    Some(match method {
        "initialize" | "server/discover" => Made::Hello,
        "tools/list" => Made::NamedList("tools"),
        "prompts/list" => Made::NamedList("prompts"),
        "resources/list" => Made::List("resources"),
        "resources/templates/list" => Made::List("resourceTemplates"),
        "tasks/list" => Made::List("tasks"),
        "ping" | "logging/setLevel" => Made::First,
        _ => return None,
    })
}

/// The answer. `None`: no server has answered.
pub(super) fn merged(made: Made, parts: &[Part<'_>]) -> Option<Value> {
    let first = parts.iter().find_map(|part| part.pages.first())?;
    Some(match made {
        Made::First => first.clone(),
        Made::Hello => hello(parts),
        Made::NamedList(field) => list(field, parts, true),
        Made::List(field) => list(field, parts, false),
    })
}

fn list(field: &str, parts: &[Part<'_>], named: bool) -> Value {
    let mut entries = Vec::new();
    let mut names = HashSet::new();
    let counts: Vec<usize> = parts.iter().map(|part| entries_of(part, field).count()).collect();
    for (part, share) in parts.iter().zip(shares(&counts, ENTRIES_MAX)) {
        let most = entries.len() + share;
        for entry in entries_of(part, field) {
            let mut entry = entry.clone();
            if named {
                let Some(name) = entry.get("name").and_then(Value::as_str) else { continue };
                let name = format!("{}{name}", part.prefix);
                if !names.insert(name.clone()) {
                    continue;
                }
                if let Some(entry) = entry.as_object_mut() {
                    entry.insert("name".to_owned(), name.into());
                }
            }
            if entries.len() == most {
                tracing::warn!(
                    "the server `{}` lists more than {share} {field}, its share of {ENTRIES_MAX}: the rest is left out",
                    part.name
                );
                break;
            }
            entries.push(entry);
        }
    }
    finished(json!({ field: entries }), parts)
}

fn entries_of<'p>(part: &Part<'p>, field: &str) -> impl Iterator<Item = &'p Value> {
    part.pages.iter().filter_map(move |page| page.get(field)?.as_array()).flatten()
}

/// How many of `counts` fit into `room`: who wants too much leaves as much for each of the others as it gets itself.
fn shares(counts: &[usize], mut room: usize) -> Vec<usize> {
    let mut smallest_first: Vec<usize> = (0..counts.len()).collect();
    smallest_first.sort_by_key(|at| counts.get(*at));
    let mut shares = vec![0; counts.len()];
    for (done, at) in smallest_first.into_iter().enumerate() {
        let fair = room / (counts.len() - done);
        let share = counts.get(at).copied().unwrap_or(0).min(fair);
        if let Some(own) = shares.get_mut(at) {
            *own = share;
        }
        room -= share;
    }
    shares
}

fn hello(parts: &[Part<'_>]) -> Value {
    let mut capabilities = Value::Object(Map::new());
    let mut instructions = String::new();
    let mut version: Option<&str> = None;
    let mut versions: Option<Vec<&Value>> = None;
    for (part, page) in parts.iter().filter_map(|part| Some((part, part.pages.first()?))) {
        unite(&mut capabilities, page.get("capabilities").unwrap_or(&Value::Null));
        if let Some(text) = page.get("instructions").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            let text = format!("Tools that begin with `{}` ({}):\n{text}\n\n", part.prefix, part.name);
            if instructions.len() + text.len() <= INSTRUCTIONS_BYTES_MAX {
                instructions.push_str(&text);
            }
        }
        if let Some(spoken) = page.get("protocolVersion").and_then(Value::as_str) {
            // Revisions are dates, so they compare as text.
            version = Some(version.map_or(spoken, |least| least.min(spoken)));
        }
        if let Some(spoken) = page.get("supportedVersions").and_then(Value::as_array) {
            versions = Some(match versions {
                None => spoken.iter().collect(),
                Some(known) => known.into_iter().filter(|version| spoken.contains(version)).collect(),
            });
        }
    }
    let mut whole = json!({
        "capabilities": capabilities,
        "serverInfo": {"name": "portcullis", "version": env!("CARGO_PKG_VERSION")},
    });
    if let Some(whole) = whole.as_object_mut() {
        if let Some(version) = version {
            whole.insert("protocolVersion".to_owned(), version.into());
        }
        if let Some(versions) = versions {
            whole.insert("supportedVersions".to_owned(), versions.into_iter().cloned().collect());
        }
        if !instructions.is_empty() {
            whole.insert("instructions".to_owned(), instructions.trim_end().into());
        }
    }
    finished(whole, parts)
}

/// Adds what the answers say of themselves: that they are whole, and for how long they may be kept, by whom.
fn finished(mut whole: Value, parts: &[Part<'_>]) -> Value {
    let pages = || parts.iter().flat_map(|part| part.pages);
    let Some(object) = whole.as_object_mut() else { return whole };
    if pages().any(|page| page.get("resultType").is_some()) {
        object.insert("resultType".to_owned(), "complete".into());
    }
    let kept = pages().map(|page| page.get("ttlMs").and_then(Value::as_u64));
    if let Some(least) = kept.collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().min()) {
        object.insert("ttlMs".to_owned(), json!(least));
        // What one caller sees depends on who it is.
        object.insert("cacheScope".to_owned(), "private".into());
    }
    whole
}

/// Adds what one server can to what the others can.
fn unite(all: &mut Value, one: &Value) {
    match (all, one) {
        (Value::Object(all), Value::Object(one)) => {
            for (name, value) in one {
                match all.get_mut(name) {
                    None => {
                        all.insert(name.clone(), value.clone());
                    }
                    Some(known) => unite(known, value),
                }
            }
        }
        (all @ Value::Bool(false), Value::Bool(true)) => *all = Value::Bool(true),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(made: Made, pages: [&[Value]; 2]) -> Value {
        let part = |number: usize| Part {
            name: ["a", "b"][number],
            prefix: ["a__", "b__"][number],
            pages: pages[number],
        };
        merged(made, &[part(0), part(1)]).unwrap()
    }

    #[test]
    fn lists_are_joined_and_names_told_apart() {
        let one = [
            json!({"tools": [{"name": "x", "title": "X"}, {"no": "name"}], "nextCursor": "2"}),
            json!({"tools": [{"name": "y"}]}),
        ];
        let two = [json!({"tools": [{"name": "x"}, {"name": "x"}]})];
        assert_eq!(
            merge(Made::NamedList("tools"), [&one, &two]),
            json!({"tools": [{"name": "a__x", "title": "X"}, {"name": "a__y"}, {"name": "b__x"}]})
        );
        let resources = [
            json!({"resources": [{"uri": "u"}], "ttlMs": 5, "cacheScope": "public", "resultType": "complete"}),
        ];
        let others = [json!({"resources": [], "ttlMs": 3, "resultType": "complete"})];
        assert_eq!(
            merge(Made::List("resources"), [&resources, &others]),
            json!({"resources": [{"uri": "u"}], "resultType": "complete", "ttlMs": 3, "cacheScope": "private"})
        );
        assert_eq!(merged(Made::First, &[]), None);
    }

    #[test]
    fn a_server_that_lists_too_much_hides_nobody_elses_tools() {
        assert_eq!(shares(&[9, 2, 9], 12), [5, 2, 5]);
        assert_eq!(shares(&[3, 2], 12), [3, 2]);
        assert_eq!(shares(&[], 12), [0; 0]);
        let many: Vec<Value> = (0..ENTRIES_MAX).map(|number| json!({"name": number.to_string()})).collect();
        let (one, two) = ([json!({"tools": many})], [json!({"tools": [{"name": "x"}]})]);
        let list = merge(Made::NamedList("tools"), [&one, &two]);
        let listed = list["tools"].as_array().unwrap();
        assert_eq!((listed.len(), &listed[ENTRIES_MAX - 1]["name"]), (ENTRIES_MAX, &json!("b__x")));
    }

    #[test]
    fn introductions_say_what_all_can_together() {
        let one =
            [json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "A"}, "instructions": "Do.",
                          "capabilities": {"tools": {"listChanged": false}, "logging": {}}})];
        let two =
            [json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}})];
        let whole = merge(Made::Hello, [&one, &two]);
        assert_eq!(whole["protocolVersion"], "2025-06-18");
        assert_eq!(whole["capabilities"], json!({"tools": {"listChanged": true}, "logging": {}}));
        assert_eq!(whole["instructions"], "Tools that begin with `a__` (a):\nDo.");
        let one = [json!({"supportedVersions": ["2026-07-28", "2025-11-25"], "resultType": "complete"})];
        let two = [json!({"supportedVersions": ["2026-07-28"], "resultType": "complete"})];
        assert_eq!(merge(Made::Hello, [&one, &two])["supportedVersions"], json!(["2026-07-28"]));
    }
}
