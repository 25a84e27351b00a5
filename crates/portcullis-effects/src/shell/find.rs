//! `find`: what it reads, deletes, writes and runs.

use portcullis_core::effect::Verb;

use super::interpreter::{Call, Interpreter};
use super::word::Word;

/// Tests that leave only some of the files.
const NARROWING: [&str; 14] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-type",
    "-mtime",
    "-mmin",
    "-size",
    "-empty",
    "-newer",
    "-user",
];

pub(super) fn find(shell: &mut Interpreter<'_, '_>, call: &Call<'_>) -> bool {
    let mut args = call.args;
    while let Some((first, rest)) = args.split_first() {
        match first.literal() {
            Some("-H" | "-L" | "-P") => args = rest,
            Some("-D") => args = rest.get(1..).unwrap_or_default(),
            Some(text) if text.starts_with("-O") => args = rest,
            _ => break,
        }
    }
    let expression = |word: &Word| word.shape.starts_with(['-', '(', '!', ')', ',']);
    let end = args.iter().position(expression).unwrap_or(args.len());
    let (starts, expression) = args.split_at_checked(end).unwrap_or((args, &[]));
    let here = [Word::known(".", call.range.clone())];
    let starts = if starts.is_empty() { &here } else { starts };
    for start in starts {
        shell.path_with(Verb::Read, start, &["recursive"]);
    }
    let narrowed = expression.iter().any(|word| NARROWING.contains(&word.shape.as_str()));
    let found: Vec<Word> = starts.iter().map(|start| below(start, narrowed)).collect();
    let mut known = true;
    if let Some(start) = starts.iter().find(|start| start.shape == "*" && start.value.is_none()) {
        shell.unknown("find", "an action may stand in a word that is not known", start.range.clone());
        known = false;
    }
    let mut at = 0;
    while let Some(word) = expression.get(at) {
        at += 1;
        match word.shape.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = expression.get(at..).unwrap_or_default();
                let ends = |word: &Word| matches!(word.literal(), Some(";" | "+"));
                let end = rest.iter().position(ends).unwrap_or(rest.len());
                let command = rest.get(..end).unwrap_or_default();
                for found in &found {
                    let words: Vec<Word> = command.iter().map(|word| filled(word, found)).collect();
                    shell.run(&words, call.range.clone());
                }
                at += end + 1;
            }
            "-delete" => {
                for found in &found {
                    shell.path_with(Verb::Delete, found, &["recursive"]);
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = expression.get(at) {
                    shell.path(Verb::Write, file);
                }
                at += 1;
            }
            "-files0-from" => {
                shell.path_with(Verb::Read, &Word::unknown(call.range.clone()), &["recursive"]);
                at += 1;
            }
            // The value of the test before it is not known; anything else may be an action.
            _ if word.value.is_none() => {
                let before = at.checked_sub(2).and_then(|before| expression.get(before));
                if !before.is_some_and(|word| word.value.is_some() && word.shape.starts_with('-')) {
                    shell.unknown(
                        "find",
                        "an action may stand in a word that is not known",
                        word.range.clone(),
                    );
                    known = false;
                }
            }
            _ => {}
        }
    }
    known
}

/// What is found below a folder: some of it, or all.
fn below(start: &Word, narrowed: bool) -> Word {
    if !narrowed {
        return start.clone();
    }
    let join = |text: &str| format!("{}/*", text.trim_end_matches('/'));
    Word {
        value: start.value.as_deref().map(join),
        shape: join(&start.shape),
        glob: true,
        range: start.range.clone(),
    }
}

/// A word of `-exec` with what was found for `{}`.
fn filled(word: &Word, found: &Word) -> Word {
    if !word.shape.contains("{}") {
        return word.clone();
    }
    if word.shape == "{}" {
        return Word { range: word.range.clone(), ..found.clone() };
    }
    // In a longer word, such as a script, the name is text that nobody knows.
    Word { value: None, shape: word.shape.replace("{}", "*"), glob: false, range: word.range.clone() }
}
