//! `find`: what it reads, deletes, writes and runs.

use portcullis_core::effect::Verb;

use super::interpreter::{Call, Interpreter};
use super::word::Word;
use crate::path::glob::overlap;

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

/// Other words that take a value.
const VALUED: [&str; 31] = [
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-files0-from",
    "-fls",
    "-fprint",
    "-fprint0",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-inum",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-printf",
    "-regextype",
    "-samefile",
    "-uid",
    "-used",
    "-xtype",
    "-flags",
    "-Bmin",
    "-Btime",
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
    let mut known = true;
    if let Some(start) = starts.iter().find(|start| start.shape == "*" && start.value.is_none()) {
        shell.unknown("find", "an action may stand in a word that is not known", start.range.clone());
        known = false;
    }
    let mut at = 0;
    while let Some(word) = expression.get(at) {
        let tests = expression.get(..at).unwrap_or_default();
        at += 1;
        match word.shape.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = expression.get(at..).unwrap_or_default();
                let end = command_length(rest);
                let command = rest.get(..end).unwrap_or_default();
                for (found, _) in found(starts, narrowed, tests, expression) {
                    let words: Vec<Word> = command.iter().map(|word| filled(word, &found)).collect();
                    shell.run(&words, call.range.clone());
                }
                at += end + 1;
            }
            "-delete" => {
                for (found, attributes) in found(starts, narrowed, tests, expression) {
                    shell.path_with(Verb::Delete, &found, attributes);
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

/// What an action gets, with the attributes of its removal: all, or what the tests before it leave. Where a start
/// may itself be what they look for, it is among it.
fn found(
    starts: &[Word],
    narrowed: bool,
    tests: &[Word],
    expression: &[Word],
) -> Vec<(Word, &'static [&'static str])> {
    let mut found: Vec<(Word, &'static [&'static str])> = Vec::new();
    for start in starts {
        if !narrowed {
            found.push((start.clone(), &["recursive"]));
            continue;
        }
        found.push((below(start), &["recursive"]));
        if !starts_deeper(expression) && !leave_out(tests, start) {
            found.push((start.clone(), &[]));
        }
    }
    found
}

/// Something below a folder.
fn below(start: &Word) -> Word {
    let join = |text: &str| format!("{}/*", text.trim_end_matches('/'));
    Word { value: start.value.as_deref().map(join), shape: join(&start.shape), glob: true, ..start.clone() }
}

/// Whether `-mindepth` keeps the starts out.
fn starts_deeper(expression: &[Word]) -> bool {
    let mut words = expression.iter().skip_while(|word| word.shape != "-mindepth").skip(1);
    words
        .next()
        .and_then(Word::literal)
        .and_then(|depth| depth.parse::<u32>().ok())
        .is_some_and(|depth| depth > 0)
}

/// Whether the tests before an action surely do not hold for the start itself: in each alternative there is one that
/// it fails. Groups are not told apart, which asks for more than is needed.
fn leave_out(tests: &[Word], start: &Word) -> bool {
    let (mut all, mut here, mut negated) = (true, false, false);
    let mut at = 0;
    while let Some(word) = tests.get(at) {
        at += 1;
        let Some(test) = word.literal() else { return false };
        let rest = tests.get(at..).unwrap_or_default();
        match test {
            "," => return false,
            "!" | "-not" => {
                if rest.first().is_none_or(|next| matches!(next.shape.as_str(), "(" | "!" | "-not")) {
                    return false;
                }
                negated = true;
                continue;
            }
            "-o" | "-or" => {
                all &= here;
                here = false;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => at += command_length(rest) + 1,
            _ => {
                let value = rest.first().and_then(Word::literal);
                here |= !negated && value.is_some_and(|value| fails(start, test, value));
                at += values(test);
            }
        }
        negated = false;
    }
    all && here
}

/// How many words the command after `-exec` has.
fn command_length(words: &[Word]) -> usize {
    let files = |before: Option<usize>| {
        before.and_then(|before| words.get(before)).is_some_and(|word| word.shape == "{}")
    };
    let ends = |(at, word): (usize, &Word)| match word.literal() {
        Some(";") => true,
        Some("+") => files(at.checked_sub(1)),
        _ => false,
    };
    words.iter().enumerate().position(ends).unwrap_or(words.len())
}

/// How many words after a word of the expression are its values.
fn values(test: &str) -> usize {
    match test {
        "-fprintf" => 2,
        "-empty" => 0,
        _ if test.starts_with("-newer") || VALUED.contains(&test) || NARROWING.contains(&test) => 1,
        _ => 0,
    }
}

/// Whether a start surely fails a test.
fn fails(start: &Word, test: &str, value: &str) -> bool {
    let Some(path) = &start.value else { return false };
    let trimmed = path.trim_end_matches('/');
    let name = trimmed.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
    let apart = |text: &str| !value.contains('\\') && !overlap(&value.to_lowercase(), &text.to_lowercase());
    match test {
        "-name" | "-iname" => apart(name),
        "-path" | "-ipath" | "-wholename" | "-iwholename" => apart(path),
        "-type" => {
            let folder = path.ends_with('/') || matches!(name, "." | "..");
            folder && !value.contains('d')
        }
        _ => false,
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
    Word { value: None, shape: word.shape.replace("{}", "*"), glob: false, ..word.clone() }
}
