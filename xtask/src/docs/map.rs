//! The tables of `ARCHITECTURE.md` that are made from the code: crates with what they use, and events with who writes
//! and reads them.
//!
//! Each stands between two comments. Source is read as text, so that this crate builds without those it looks after.

use std::collections::{BTreeMap, BTreeSet};

use super::Files;
use crate::process::{Failure, Result};

/// The page.
pub(super) const PAGE: &str = "ARCHITECTURE.md";
const EVENTS: &str = "crates/portcullis-core/src/event.rs";

/// The page with its tables as the code has them.
///
/// # Errors
/// The page has no place for a table, or the code is not of the expected form.
pub(super) fn page(page: &str, manifests: &Files, sources: &Files) -> Result<String> {
    let page = replace(page, "crates", &crates(manifests)?)?;
    replace(&page, "events", &events(sources)?)
}

/// Puts a table between the comments of that name.
fn replace(page: &str, name: &str, table: &str) -> Result<String> {
    let begin = format!("<!-- {name}: written by `cargo xtask docs` -->\n");
    let end = format!("<!-- end of {name} -->\n");
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) =
        parts.ok_or_else(|| Failure::new(format!("{PAGE}: no place for the table of {name}")))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// A row for each crate: its description, and the crates of ours that it depends on.
fn crates(manifests: &Files) -> Result<String> {
    let mut uses: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for (path, text) in manifests {
        let manifest: toml::Table = text.parse().map_err(|error| Failure::new(format!("{path}: {error}")))?;
        let package = manifest.get("package").and_then(toml::Value::as_table);
        let field = |name: &str| package?.get(name)?.as_str();
        let name = field("name").ok_or_else(|| Failure::new(format!("{path}: no `name`")))?;
        let description =
            field("description").ok_or_else(|| Failure::new(format!("{path}: no `description`")))?;
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let ours = dependencies.into_iter().flat_map(toml::Table::keys).filter(|on| short(on) != *on);
        uses.insert(name.to_owned(), (description.to_owned(), ours.cloned().collect()));
    }
    let mut table = "| crate | what it is | uses of ours |\n|---|---|---|\n".to_owned();
    let mut done: BTreeSet<String> = BTreeSet::new();
    while done.len() < uses.len() {
        // Those that only use crates above them in the table.
        let next: Vec<&String> = uses
            .iter()
            .filter(|(name, (_, ours))| !done.contains(*name) && ours.iter().all(|on| done.contains(on)))
            .map(|(name, _)| name)
            .collect();
        if next.is_empty() {
            return Err(Failure::new("crates depend on each other in a circle".to_owned()));
        }
        for name in &next {
            let Some((description, ours)) = uses.get(*name) else { continue };
            let ours = match ours.is_empty() {
                true => "nothing".to_owned(),
                false => ours.iter().map(|on| short(on)).collect::<Vec<_>>().join(", "),
            };
            table.push_str(&format!("| `{name}` | {description} | {ours} |\n"));
        }
        done.extend(next.into_iter().cloned().collect::<Vec<_>>());
    }
    Ok(table)
}

/// The name of a crate of ours without what all of them begin with.
fn short(name: &str) -> &str {
    name.strip_prefix("portcullis-").unwrap_or(name)
}

/// A row for each kind of event: what it says, and the crates that make and that read it.
fn events(sources: &Files) -> Result<String> {
    let text = sources.get(EVENTS).ok_or_else(|| Failure::new(format!("`{EVENTS}` is not there")))?;
    let body = text
        .split_once("pub enum EventBody {\n")
        .and_then(|(_, rest)| rest.split_once("\n}\n"))
        .ok_or_else(|| Failure::new(format!("{EVENTS}: no `EventBody`")))?
        .0;
    let mut table = "| event | what it says | written by | read by |\n|---|---|---|---|\n".to_owned();
    let mut said = String::new();
    for line in body.lines() {
        let Some(inner) = line.strip_prefix("    ").filter(|inner| !inner.starts_with(' ')) else { continue };
        if let Some(more) = inner.strip_prefix("/// ") {
            said.push_str(if said.is_empty() { "" } else { " " });
            said.push_str(more);
        } else if inner.starts_with(|first: char| first.is_ascii_uppercase()) {
            let variant = inner.split(['(', ' ', '{']).next().unwrap_or_default();
            let (written, read) = users(sources, variant);
            let what = said.split_once(". ").map_or(said.trim_end_matches('.'), |(first, _)| first);
            table.push_str(&format!("| `{}` | {what} | {written} | {read} |\n", kebab(variant)));
            said.clear();
        }
    }
    Ok(table)
}

/// The crates that make an event of this kind, and those that look at one.
fn users(sources: &Files, variant: &str) -> (String, String) {
    let name = format!("EventBody::{variant}");
    let (mut written, mut read) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in sources.iter().filter(|(path, _)| !is_test(path)) {
        let Some(owner) = path.split('/').nth(1).map(short) else { continue };
        let code = text.split_once("#[cfg(test)]\nmod tests").map_or(text.as_str(), |(code, _)| code);
        for (at, _) in code.match_indices(&name) {
            let rest = code.get(at + name.len()..).unwrap_or_default();
            if rest.starts_with(|next: char| next.is_ascii_alphanumeric()) {
                continue;
            }
            let _ = if is_pattern(rest) { read.insert(owner) } else { written.insert(owner) };
        }
    }
    let list = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    (list(written), list(read))
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
}

/// Whether what follows the name of a variant makes it a pattern: a part that is left out, an arm, another alternative.
fn is_pattern(rest: &str) -> bool {
    let fields = match rest.trim_start().chars().next() {
        Some(open @ ('(' | '{')) => {
            let close = if open == '(' { ')' } else { '}' };
            let mut depth = 0_usize;
            rest.find(|letter: char| {
                depth += usize::from(letter == open);
                depth -= usize::from(letter == close && depth > 0);
                letter == close && depth == 0
            })
        }
        _ => None,
    };
    let (fields, after) = fields.and_then(|end| rest.split_at_checked(end + 1)).unwrap_or(("", rest));
    let after = after.trim_start();
    fields.contains("..")
        || fields.trim_end_matches([')', '}']).trim().trim_start_matches(['(', '{']).trim() == "_"
        || ["=>", "|", "= ", "if "].iter().any(|sign| after.starts_with(sign))
        || after.lines().next().is_some_and(|line| line.contains("=>") || line.contains(") = "))
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_told_from_readers() {
        for pattern in ["(run) => {", " { action, .. } if x", "(_))", " {} | Self::X", "(config) = body"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for made in ["(opened);", " { action, status };", " {}, [text]", " { label: Label::Tool(x) })"] {
            assert!(!is_pattern(made), "{made}");
        }
        let events = "pub enum EventBody {\n    /// Said. More.\n    RunOpened {\n        /// x\n    },\n}\n";
        let session = "fn f() { push(EventBody::RunOpened { a }); }";
        let proof = "match x { EventBody::RunOpened { .. } => {} EventBody::RunOpenedTwice => {} }";
        let sources: Files = [
            (EVENTS, events),
            ("crates/portcullis-session/src/a.rs", session),
            ("crates/portcullis-guards/src/b.rs", proof),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        let table = super::events(&sources).unwrap();
        assert!(table.ends_with("| `run-opened` | Said | session | guards |\n"), "{table}");
    }

    #[test]
    fn crates_stand_below_those_that_they_use() {
        let manifest = |name: &str, on: &str| {
            format!("[package]\nname = \"{name}\"\ndescription = \"d\"\n[dependencies]\n{on}")
        };
        let manifests: Files = [
            ("a", manifest("portcullis-a", "portcullis-b.workspace = true\nserde.workspace = true\n")),
            ("b", manifest("portcullis-b", "")),
        ]
        .map(|(path, text)| (path.to_owned(), text))
        .into();
        let table = crates(&manifests).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows, ["| `portcullis-b` | d | nothing |", "| `portcullis-a` | d | b |"]);
        assert!(replace("x", "crates", &table).is_err());
    }
}
