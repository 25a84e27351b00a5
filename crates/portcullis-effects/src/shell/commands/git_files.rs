//! Subcommands of `git` that read files, tracked or not, as other programs do.

use portcullis_core::effect::Verb::Read;

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// `git diff A B` compares files where it is called outside of a repository, with `--no-index` anywhere, and folders
/// with all below them.
pub(super) fn compared(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let outside =
        |word: &Word| words::text(word).starts_with(['/', '~']) || words::text(word).starts_with("..");
    if call.has("--no-index") {
        call.act_on_each(Act::Tree(Read), &call.operands, shell);
    } else if call.subcommand == "diff" {
        let elsewhere = call.has_any(&["-C", "--work-tree"]) && call.operands.len() > 1;
        let files = call.operands.iter().filter(|word| elsewhere || outside(word));
        for word in files.filter(|word| !words::text(word).contains("...")) {
            call.act(Act::Tree(Read), word, shell);
        }
    }
}

/// `REVISION:PATH` and, after `--`, paths: what a file holds or held is shown.
pub(super) fn contents(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let dashes = call.dashes.unwrap_or(call.operands.len());
    for word in call.rest(0).get(..dashes).unwrap_or_default() {
        match words::split(word, ':') {
            // `:/fix` is a message, `:(glob)x` a pattern; of `HEAD:./x` the dot is where git is called.
            Some((_, path)) if !words::text(&path).starts_with(['/', '(', '!', '^']) => {
                call.act(READ, &path, shell);
            }
            _ => {}
        }
    }
    for path in call.rest(dashes).iter().filter(|path| !words::text(path).starts_with(':')) {
        call.act(READ, path, shell);
    }
}

/// `git grep PATTERN [REVISION…] [PATH…]`: what is tracked, unless an option says what else.
pub(super) fn search(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    contents(call, shell);
    let given = call.has_any(&["-e", "-f"]);
    let paths = match call.dashes {
        Some(dashes) => call.rest(dashes),
        None => call.rest(usize::from(!given)),
    };
    if call.has_any(&["--no-index", "--untracked"]) {
        call.act_on_each(Act::Tree(Read), paths, shell);
        if paths.is_empty() {
            call.act(Act::Tree(Read), &call.literal("."), shell);
        }
    } else {
        // A revision is taken for a file of the repository, which it may be as well.
        let plain = paths.iter().filter(|word| !words::text(word).contains(':'));
        plain.for_each(|path| call.act(READ, path, shell));
    }
    true
}

/// `git interpret-trailers [--in-place] FILE…`.
pub(super) fn trailers(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has("--in-place") {
        call.act_on_each(WRITE, &call.operands, shell);
    }
    true
}

/// `git index-pack PACK` writes an index beside the pack, `git pack-objects BASE` packs named after it.
pub(super) fn packs(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act(WRITE, &call.literal("."), shell);
    let act = if call.subcommand == "index-pack" { Act::All(&[READ, WRITE]) } else { WRITE };
    call.act_on_each(act, &call.operands, shell);
    true
}
