//! Commands that are named as the next step keep the `--home` of this one, so that they act on the same state folder.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use clap::CommandFactory as _;

use crate::cli::Cli;

/// How a command of ours begins, in sentences and in examples.
const PROGRAM: &str = "portcullis ";

/// What follows the program's name where the state folder was named on the command line.
static HOME: OnceLock<String> = OnceLock::new();

/// Remembers the state folder that was named on the command line.
pub(crate) fn keep_home(folder: &Path) {
    // A relative name means another folder elsewhere.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // Said once, at the start.
    let _before = HOME.set(format!("--home {} ", quoted(&folder.to_string_lossy())));
}

/// Standard error, with what [`advice`] does to each line that is written at once.
pub(crate) struct AdvisedErrors;

impl Write for AdvisedErrors {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().write_all(advice(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The text with `--home` in each of our commands that it names.
pub(crate) fn advice(text: &str) -> Cow<'_, str> {
    match HOME.get() {
        None => text.into(),
        Some(home) => with_home(text, home),
    }
}

fn with_home<'t>(text: &'t str, home: &str) -> Cow<'t, str> {
    if !text.contains(PROGRAM) {
        return text.into();
    }
    let known = Cli::command();
    let is_command = |rest: &str| {
        let end =
            rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-').unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let all = rest.split(['`', '\n']).next().unwrap_or_default();
        // One that names a folder means that.
        !all.contains("--home") && known.get_subcommands().any(|command| command.get_name() == word)
    };
    let mut with = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(PROGRAM) {
        let after = at + PROGRAM.len();
        // Within a path or another word it is another program.
        let begins = text.get(..at).is_none_or(|before| {
            before.chars().next_back().is_none_or(|letter| letter.is_whitespace() || "`(\"'".contains(letter))
        });
        if begins && text.get(after..).is_some_and(is_command) {
            with.push_str(text.get(from..after).unwrap_or_default());
            with.push_str(home);
            from = after;
        }
    }
    if from == 0 {
        return text.into();
    }
    with.push_str(text.get(from..).unwrap_or_default());
    with.into()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_advice_keep_the_state_folder() {
        let with = |text| with_home(text, "--home '/a b' ").into_owned();
        for (text, expected) in [
            ("run `portcullis upstream try x`", "run `portcullis --home '/a b' upstream try x`"),
            (
                "portcullis tools changed, then (portcullis runs list)",
                "portcullis --home '/a b' tools changed, then (portcullis --home '/a b' runs list)",
            ),
            ("`portcullis --home /x runs list`", "`portcullis --home /x runs list`"),
            ("a portcullis is a gate", "a portcullis is a gate"),
            ("`portcullis log freeze --home /old` now", "`portcullis log freeze --home /old` now"),
            ("/usr/bin/portcullis serve", "/usr/bin/portcullis serve"),
            ("", ""),
        ] {
            assert_eq!(with(text), expected);
        }
        assert_eq!((quoted("/a/b"), quoted("/it's")), ("/a/b".to_owned(), "'/it'\\''s'".to_owned()));
    }
}
