//! Lists of files that a program reads: on its standard input or in a file.

use std::ops::Range;

use portcullis_core::effect::Verb;

use super::super::interpreter::{Input, Interpreter};
use super::super::word::Word;
use super::words;

/// Most files of a list that are told apart.
const FILES_MAX: usize = 256;

/// The files that the list of that name names are read; a dash means standard input.
pub(super) fn read(list: &Word, shell: &mut Interpreter<'_, '_>) {
    if matches!(words::text(list), "-" | "/dev/stdin") {
        return of_input(Verb::Read, &[], &list.range, shell);
    }
    shell.path(Verb::Read, list);
    shell.unknown("list", "which files are read stands in a file", list.range.clone());
}

/// The files that standard input names meet with this verb.
pub(super) fn of_input(
    verb: Verb,
    attributes: &[&'static str],
    range: &Range<usize>,
    shell: &mut Interpreter<'_, '_>,
) {
    let names: Vec<Word> = match &shell.input {
        Input::None => return,
        Input::Text(text) => {
            let lines = text.split(['\n', '\0']).filter(|line| !line.is_empty());
            lines.take(FILES_MAX + 1).map(|line| Word::known(line, range.clone())).collect()
        }
        Input::Names(names) => names.words.clone(),
        Input::Pipe | Input::File => Vec::new(),
    };
    for name in names.iter().take(FILES_MAX) {
        shell.path_with(verb, name, attributes);
    }
    if names.is_empty() || names.len() > FILES_MAX {
        shell.unknown("list", "which files are read stands on standard input", range.clone());
    }
}
