//! `find`: what it reads, deletes, writes and runs.

use portcullis_core::effect::Verb;

use super::find_words::{NARROWING, command_length};
use super::found::found;
use super::interpreter::{Call, Interpreter, Names, Printed};
use super::word::Word;

/// Actions other than printing names.
const ACTIONS: [&str; 11] = [
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fls", "-fprintf", "-printf",
    "-ls",
];

/// Programs that remove what they are given.
const REMOVERS: [&str; 4] = ["rm", "unlink", "shred", "rmdir"];

/// Whether tests choose by what they look for, so that the repository's own files are not among what is found: its
/// files have any type, age and size.
fn selects(tests: &[Word]) -> bool {
    let mut before = "";
    tests.iter().zip(tests.iter().skip(1)).any(|(test, value)| {
        let negated = matches!(before, "!" | "-not");
        before = &test.shape;
        let named = matches!(
            test.shape.as_str(),
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" | "-regex" | "-iregex"
        );
        let any = value.shape.chars().all(|char| matches!(char, '*' | '?' | '.' | '/'));
        named && if negated { value.shape.contains(".git") } else { !any }
    }) || tests.iter().any(|test| test.shape == "-empty")
}

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
    let narrows = |word: &Word| NARROWING.contains(&word.shape.as_str()) || word.shape.starts_with("-newer");
    let narrowed = expression.iter().any(narrows);
    let search = Search { starts, narrowed, expression };
    let mut known = true;
    if let Some(start) = starts.iter().find(|start| start.shape == "*" && start.value.is_none()) {
        shell.unknown("find", "an action may stand in a word that is not known", start.range.clone());
        known = false;
    }
    let mut at = 0;
    let (mut acts, mut prints) = (false, None);
    while let Some(word) = expression.get(at) {
        let tests = expression.get(..at).unwrap_or_default();
        at += 1;
        acts |= ACTIONS.contains(&word.shape.as_str());
        match word.shape.as_str() {
            "-print" => prints = Some(false),
            "-print0" => prints = Some(prints.unwrap_or(true)),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = expression.get(at..).unwrap_or_default();
                let end = command_length(rest);
                search.execute(shell, call, tests, rest.get(..end).unwrap_or_default());
                at += end + 1;
            }
            "-delete" => search.delete(shell, tests),
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
    // Without an action what is found is printed.
    if let Some(zero) = prints.filter(|_| !acts).or((!acts).then_some(false)) {
        let words = search.found(expression).into_iter().map(|(word, _)| word).collect();
        shell.output = Some(Printed::Names(Names { words, zero }.into()));
    }
    known
}

/// Where is looked, and for what.
struct Search<'w> {
    starts: &'w [Word],
    /// Whether the tests leave only some of the files.
    narrowed: bool,
    expression: &'w [Word],
}

impl Search<'_> {
    /// What an action gets after these tests.
    fn found(&self, tests: &[Word]) -> Vec<(Word, &'static [&'static str])> {
        found(self.starts, self.narrowed, tests, self.expression)
    }

    /// `-exec COMMAND`.
    fn execute(&self, shell: &mut Interpreter<'_, '_>, call: &Call<'_>, tests: &[Word], command: &[Word]) {
        let removes = command.first().is_some_and(|word| REMOVERS.contains(&word.shape.as_str()));
        if removes && !selects(tests) {
            self.delete_repositories(shell);
        }
        for (found, _) in self.found(tests) {
            let words: Vec<Word> = command.iter().map(|word| filled(word, &found)).collect();
            shell.run(&words, call.range.clone());
        }
    }

    /// `-delete`.
    fn delete(&self, shell: &mut Interpreter<'_, '_>, tests: &[Word]) {
        for (found, attributes) in self.found(tests) {
            shell.path_with(Verb::Delete, &found, attributes);
        }
        if !selects(tests) {
            self.delete_repositories(shell);
        }
    }

    fn delete_repositories(&self, shell: &mut Interpreter<'_, '_>) {
        self.starts.iter().for_each(|start| shell.delete_repository_in(start, &["recursive"]));
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
    // `{}.bak` is a name beside it.
    let plain = |rest: &&str| rest.chars().all(|char| char.is_ascii_alphanumeric() || "._-/".contains(char));
    if let Some(rest) = word.literal().and_then(|text| text.strip_prefix("{}")).filter(plain) {
        let join = |text: &String| format!("{text}{rest}");
        let value = found.value.as_ref().map(join);
        return Word { value, shape: join(&found.shape), range: word.range.clone(), ..found.clone() };
    }
    // In a longer word, such as a script, the name is text that nobody knows.
    Word {
        glob: false,
        shape: word.shape.replace("{}", "*"),
        expanded: word.expanded,
        ..Word::unknown(word.range.clone())
    }
}
