//! Reads `engines.toml`: executables of the operator that are asked about actions.
//!
//! ```toml
//! [[engine]]
//! name = "classifier"             # findings have the rule `program/engine/classifier`
//! command = "/opt/classifier/run" # runs contained, with `arguments` and then `worker`
//! sha256 = "9f86d081884c7d65…"    # of the executable
//! tools = ["send_*"]              # asked about calls of these; about every action if absent
//! profile = "read-only"           # of the bundle, or a built-in one
//! wait_ms = 200                   # for one answer
//! workers = 1
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::programs::NAME_BYTES_MAX;
use super::toml_table::{File, Table};
use crate::limits::SEQUENCE_TOOLS_MAX;

/// The most engines of a bundle.
pub const ENGINES_MAX: usize = 16;
/// The longest time for one answer, in milliseconds.
const WAIT_MS_MAX: u32 = 10_000;
/// The most workers of one engine.
const WORKERS_MAX: u32 = 8;
/// How long one has where nothing is said.
const WAIT_MS: u32 = 200;

/// An executable that is asked about actions. It can deny and hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// Its name.
    pub name: String,
    /// The executable, from the root.
    pub command: PathBuf,
    /// What it is given before `worker`.
    pub arguments: Vec<String>,
    /// Its SHA-256, in 64 hexadecimal digits.
    pub sha256: String,
    /// Names of tools, `*` at the end standing for any rest; empty: every action.
    pub tools: Vec<String>,
    /// Name of the profile under which it runs.
    pub profile: String,
    /// How long it has for an answer, in milliseconds.
    pub wait_ms: u32,
    /// Processes of it at once.
    pub workers: usize,
}

impl EngineSettings {
    /// Whether it is asked about an action with this tool.
    #[must_use]
    pub fn wants(&self, tool: Option<&str>) -> bool {
        let fits = |name: &str| {
            self.tools.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => pattern == name,
            })
        };
        self.tools.is_empty() || tool.is_some_and(fits)
    }
}

/// Reads the tables of one file. What is wrong is reported, and the table left out.
pub(super) fn read(file: &File<'_>, table: &mut Table<'_, '_>) -> Vec<EngineSettings> {
    let mut names = BTreeSet::new();
    let mut engines = Vec::new();
    for (number, table) in table.tables("engine").into_iter().enumerate() {
        let span = table.span.clone();
        if number == ENGINES_MAX {
            file.report(file.at(span.clone(), format!("there are more than {ENGINES_MAX} engines")));
        }
        let Some(engine) = read_one(file, table) else { continue };
        if !names.insert(engine.name.clone()) {
            file.report(file.at(span, format!("there are two engines named `{}`", engine.name)));
        }
        engines.push(engine);
    }
    engines
}

fn read_one(file: &File<'_>, mut table: Table<'_, '_>) -> Option<EngineSettings> {
    let [name, command, sha256] = ["name", "command", "sha256"].map(|field| {
        let value = table.string(field);
        if value.is_none() {
            table.missing(field);
        }
        value
    });
    let texts = |field: Option<Vec<super::toml_table::Field<String>>>| {
        field.unwrap_or_default().into_iter().map(|text| text.value).collect::<Vec<_>>()
    };
    let arguments = texts(table.strings("arguments"));
    let tools = texts(table.strings("tools"));
    let profile = table.string("profile").map_or_else(|| "read-only".to_owned(), |profile| profile.value);
    let wait_ms = within(file, &mut table, "wait_ms", WAIT_MS_MAX).unwrap_or(WAIT_MS);
    let workers = within(file, &mut table, "workers", WORKERS_MAX).unwrap_or(1);
    let span = table.span.clone();
    table.finish();
    let (name, command, sha256) = (name?, command?, sha256?);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_digest =
        |text: &str| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let wrong = [
        (name.value.is_empty() || name.value.len() > NAME_BYTES_MAX || !name.value.chars().all(plain)).then(
            || {
                file.at(name.span.clone(), format!("`{}` is no name of an engine", name.value))
                    .help(format!("lower-case letters, digits, `-` and `_`, at most {NAME_BYTES_MAX}"))
            },
        ),
        (!command.value.starts_with('/'))
            .then(|| file.at(command.span.clone(), "`command` is a path from the root")),
        (!is_digest(&sha256.value)).then(|| {
            file.at(sha256.span.clone(), "`sha256` is 64 hexadecimal digits: `sha256sum` prints them")
        }),
        (tools.len() > SEQUENCE_TOOLS_MAX)
            .then(|| file.at(span, format!("`tools` names at most {SEQUENCE_TOOLS_MAX}"))),
    ];
    let mistakes: Vec<_> = wrong.into_iter().flatten().collect();
    if !mistakes.is_empty() {
        mistakes.into_iter().for_each(|mistake| file.report(mistake));
        return None;
    }
    Some(EngineSettings {
        name: name.value,
        command: PathBuf::from(command.value),
        arguments,
        sha256: sha256.value,
        tools,
        profile,
        wait_ms,
        workers: usize::try_from(workers).unwrap_or(1),
    })
}

/// A whole number from 1 to a limit.
fn within(file: &File<'_>, table: &mut Table<'_, '_>, field: &'static str, most: u32) -> Option<u32> {
    let number: u32 = table.integer(field, 1)?;
    if number > most {
        let span = table.span.clone();
        file.report(file.at(span, format!("`{field}` is at most {most}")));
        return None;
    }
    Some(number)
}
