//! Parts of words, and words made of parts: `--output=FILE`, `of=FILE`, `@FILE`, `HOST:PATH`.
//!
//! A part of a word that is not known completely is known itself if nothing unknown is in it.

use std::ops::Range;

use super::super::word::Word;

/// The known part of the word; `*` stands for the rest.
pub(super) fn text(word: &Word) -> &str {
    word.value.as_deref().unwrap_or(&word.shape)
}

/// A word that is not in the text but is meant by the text at `range`.
pub(super) fn literal(text: &str, range: Range<usize>) -> Word {
    Word::known(text, range)
}

/// The word with this text in its place.
pub(super) fn part(word: &Word, text: &str) -> Word {
    let known = word.value.is_some() || !text.contains('*');
    Word {
        value: known.then(|| text.to_owned()),
        shape: text.to_owned(),
        glob: word.glob && text.contains(['*', '?', '[']),
        gaps: word.gaps,
        range: word.range.clone(),
        expanded: false,
    }
}

/// What follows `prefix`.
pub(super) fn strip(word: &Word, prefix: &str) -> Option<Word> {
    text(word).strip_prefix(prefix).map(|rest| part(word, rest))
}

/// The parts before and after the first `separator`.
pub(super) fn split(word: &Word, separator: char) -> Option<(Word, Word)> {
    text(word).split_once(separator).map(|(before, after)| (part(word, before), part(word, after)))
}

/// The word with a text before it.
pub(super) fn prefixed(prefix: &str, word: &Word) -> Word {
    Word {
        value: word.value.as_ref().map(|value| format!("{prefix}{value}")),
        shape: format!("{prefix}{}", word.shape),
        ..word.clone()
    }
}

/// The path `word` seen from the folder `base`.
pub(super) fn below(base: &Word, word: &Word) -> Word {
    if word.path().starts_with(['/', '~']) {
        return word.clone();
    }
    let joined =
        |base: &str, rest: &str| if rest == "." { base.to_owned() } else { format!("{base}/{rest}") };
    Word {
        value: base.value.as_ref().zip(word.value.as_ref()).map(|(base, rest)| joined(base, rest)),
        shape: joined(&base.shape, &word.shape),
        gaps: match (&base.value, &word.value) {
            (None, None) => base.gaps.and(word.gaps),
            (None, _) => base.gaps,
            _ => word.gaps,
        },
        glob: base.glob || word.glob,
        range: word.range.clone(),
        expanded: base.expanded,
    }
}

/// The file name at the end of a path or URL, without query.
pub(super) fn file_name(word: &Word) -> Word {
    let path = text(word).split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    part(word, path.rsplit(['/', ':']).next().unwrap_or_default())
}
