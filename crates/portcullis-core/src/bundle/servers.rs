//! MCP servers that the daemon puts the gate in front of: where each is, and what its tools are called.

use std::collections::BTreeMap;

use super::diagnostic::Diagnostic;
use super::toml_table::{Field, File, Table};

/// Most words of a server's command.
const WORDS_MAX: usize = 256;
/// Longest address, and longest word of a command, in bytes.
const WORD_BYTES_MAX: usize = 4096;
/// Longest prefix, and longest name, in bytes.
const PREFIX_BYTES_MAX: usize = 64;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Where it is.
    pub at: McpServerAt,
    /// What the names of its tools and prompts begin with beside those of other servers; none: its name and `__`.
    pub prefix: Option<String>,
    /// Seconds for which it may say nothing while it works on a request; none: the gate's own limit.
    pub silent_s: Option<u32>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServerAt {
    /// It is started: its program and arguments.
    Command(Vec<String>),
    /// It is behind an address.
    Address(String),
}

impl McpServer {
    /// What the names of its tools begin with where there are other servers.
    #[must_use]
    pub fn prefix(&self, name: &str) -> String {
        self.prefix.clone().unwrap_or_else(|| format!("{name}__"))
    }
}

/// Takes what a server's table says of where it is; `None` where it says nothing.
pub(super) fn read(file: &File<'_>, name: &Field<String>, table: &mut Table<'_, '_>) -> Option<McpServer> {
    let (command, url) = (table.strings("command"), table.string("url"));
    let (prefix, silent_s) = (table.string("prefix"), table.integer("silent_s", 1));
    let report = |field: &Field<String>, why: &str| file.report(file.at(field.span.clone(), why));
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_plain(&prefix.value)) {
        report(prefix, "a prefix has at most 64 letters, digits and `_`, `-`, `.`");
    }
    let at = match (command, url) {
        (None, None) => {
            if prefix.is_some() || silent_s.is_some() {
                report(name, "`[server.NAME]` has neither `command` nor `url`");
            }
            return None;
        }
        _ if !is_plain(&name.value) || name.value.starts_with('.') => {
            report(
                name,
                "a server of `/mcp` has a name of at most 64 letters, digits and `_`, `-`, `.`, and no `.` at its start",
            );
            return None;
        }
        (Some(_), Some(url)) => {
            report(&url, "a server has a `command` or a `url`, not both");
            return None;
        }
        (Some(command), None) => {
            if command.is_empty() || command.len() > WORDS_MAX {
                report(name, "`command` has 1 to 256 words: a program and its arguments");
            }
            if let [line] = command.as_slice()
                && line.value.contains(' ')
                && !line.value.starts_with('/')
            {
                let words: Vec<String> = line.value.split(' ').map(|word| format!("{word:?}")).collect();
                let why =
                    format!("no shell reads `command`: write its words, `command = [{}]`", words.join(", "));
                report(line, &why);
            }
            for word in command.iter().filter(|word| word.value.len() > WORD_BYTES_MAX) {
                report(word, "a word of a command has at most 4096 bytes");
            }
            McpServerAt::Command(command.into_iter().map(|word| word.value).collect())
        }
        (None, Some(url)) => {
            let known = url.value.starts_with("https://") || url.value.starts_with("http://");
            if !known || url.value.len() > WORD_BYTES_MAX {
                report(&url, "`url` begins with `https://` or `http://` and has at most 4096 bytes");
            }
            let authority = url.value.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
            if authority.is_some_and(|authority| authority.contains('@')) {
                report(
                    &url,
                    "`url` has a user or a password, which would be in every record: `portcullis upstream` keeps credentials",
                );
            }
            McpServerAt::Address(url.value)
        }
    };
    Some(McpServer { at, prefix: prefix.map(|prefix| prefix.value), silent_s })
}

fn is_plain(name: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    name.len() <= PREFIX_BYTES_MAX && name.bytes().all(sign)
}

/// Reports servers whose tools could not be told apart by their names.
pub(super) fn check(
    file: &File<'_>,
    servers: &BTreeMap<String, McpServer>,
    places: &BTreeMap<String, Diagnostic>,
) {
    let prefixes: Vec<(&String, String)> =
        servers.iter().map(|(name, server)| (name, server.prefix(name))).collect();
    for (number, (name, prefix)) in prefixes.iter().enumerate() {
        let clash = prefixes.iter().enumerate().find(|(other, (_, longer))| {
            *other != number && longer.starts_with(prefix.as_str()) && (longer != prefix || *other < number)
        });
        if let (Some((_, (other, _))), Some(place)) = (clash, places.get(*name)) {
            let message = format!(
                "tools of `{name}` begin with `{prefix}`, and so do those of `{other}`: give one of them another `prefix`"
            );
            file.report(Diagnostic { message, ..place.clone() });
        }
    }
}
