//! Statements about letters, case, punctuation and language.

use super::quantity::is_negation;
use super::reading::{Found, Reading};
use super::token::{Kind, Token};
use crate::family::Family;
use crate::text::language;

pub(super) fn letter_count(reading: &Reading) -> Option<Found> {
    let at = reading.find(&["letter", "character", "symbol"])?;
    let quantity = reading.quantity()?;
    if reading.has(&["word", "words", "capital", "lowercase", "uppercase", "sentence"]) {
        return None;
    }
    let near = [at + 1, at.wrapping_sub(1)];
    let (token, letter) = near.into_iter().find_map(|at| Some((at, one_char(reading.head().get(at)?)?)))?;
    Some(
        Found::new(
            Family::LetterCount { letter, count: quantity.bound },
            &[
                "letter",
                "character",
                "symbol",
                "appear",
                "times",
                "occur",
                "occurrence",
                "occurrences",
                "instances",
                "frequency",
                "found",
            ],
        )
        .using([token])
        .counting(quantity),
    )
}

fn one_char(token: &Token) -> Option<char> {
    let text = match &token.kind {
        Kind::Literal(text) => text.as_str(),
        Kind::Word if token.raw.chars().all(char::is_alphabetic) => token.raw.as_str(),
        Kind::Mark if !matches!(token.raw.as_str(), "." | "," | ":" | ";" | "(" | ")") => token.raw.as_str(),
        Kind::Word | Kind::Mark | Kind::List(_) => return None,
    };
    let mut chars = text.chars().flat_map(char::to_lowercase);
    chars.next().filter(|_| chars.next().is_none())
}

const CASE: &[&str] = &[
    "capital",
    "capitals",
    "capitalized",
    "capitalised",
    "capitalize",
    "uppercase",
    "upper",
    "caps",
    "letter",
    "letters",
    "word",
    "words",
    "allcaps",
    "fully",
    "english",
    "language",
    "lowercase",
    "lower",
    "case",
    "character",
    "characters",
    "small",
    "cased",
    "frequency",
    "count",
    "occurrences",
    "occur",
    "found",
    "instances",
    "upper-case",
];
const UPPER: &[&str] =
    &["capital", "capitals", "capitalized", "capitalised", "uppercase", "caps", "allcaps", "upper"];

pub(super) fn capital_words(reading: &Reading) -> Option<Found> {
    if !reading.has(UPPER) || !reading.has(&["word", "words"]) || reading.has(&["sentence"]) {
        return None;
    }
    let quantity = reading.quantity()?;
    let bound = if quantity.is_explicit { quantity.bound } else { crate::Bound::at_least(quantity.number) };
    Some(Found::new(Family::CapitalWords { count: bound }, CASE).counting(quantity))
}

pub(super) fn no_sentence_capitals(reading: &Reading) -> Option<Found> {
    if !reading.has(&["sentence", "sentences"]) || !reading.quantities.is_empty() {
        return None;
    }
    let start = reading.has(&["first", "start", "begin", "beginning", "initial", "opening", "starting"]);
    let lower = reading.has(&["lowercase", "uncapitalized", "lower", "small"]);
    let upper =
        reading.has(UPPER) || reading.has(&["capitalize", "capitalise", "capitalizing", "capitalization"]);
    (start && (lower || upper && reading.has_negation())).then(|| {
        Found::new(
            Family::NoSentenceCapitals,
            &[
                "capital",
                "capitals",
                "capitalize",
                "capitalise",
                "capitalized",
                "capitalizing",
                "capitalization",
                "uppercase",
                "upper",
                "first",
                "word",
                "letter",
                "sentence",
                "sentences",
                "start",
                "begin",
                "beginning",
                "lowercase",
                "lower",
                "case",
                "initial",
                "any",
                "opening",
                "starting",
                "uncapitalized",
                "leave",
                "small",
                "character",
            ],
        )
    })
}

pub(super) fn whole_case(reading: &Reading) -> Option<Found> {
    if !reading.quantities.is_empty() || reading.has(&["sentence", "title", "heading", "name", "first"]) {
        return None;
    }
    let head = reading.head();
    let lower = reading.has(&["lowercase", "lowercased"])
        || reading.pair(&["lower", "small"], &["case", "cased", "letter", "letters"]).is_some();
    let upper_at = head.iter().position(|token| token.is(UPPER));
    let denied = upper_at
        .is_some_and(|at| (at.saturating_sub(5)..at).any(|before| head.get(before).is_some_and(is_negation)));
    let english = reading.has(&["english"]);
    if lower && !reading.has_negation() || denied && (lower || !reading.has(&["word"])) {
        return Some(Found::new(Family::AllLowercase { english }, CASE));
    }
    let lower_denied = lower && reading.has_negation();
    (upper_at.is_some() && !denied && (!lower || lower_denied) || lower_denied && upper_at.is_none())
        .then(|| Found::new(Family::AllCapitals { english }, CASE))
}

/// A mark by its name, which may be two words.
type NamedMark = (&'static [&'static str], Option<&'static [&'static str]>, char);

const MARKS: &[NamedMark] = &[
    (&["comma", "commas", "commaless"], None, ','),
    (&["exclamation"], Some(&["mark", "marks", "point", "points"]), '!'),
    (&["question"], Some(&["mark", "marks"]), '?'),
    (&["semicolon", "semicolons"], None, ';'),
    (&["colon", "colons"], None, ':'),
    (&["period", "periods"], None, '.'),
    (&["full"], Some(&["stop", "stops"]), '.'),
    (&["hyphen", "hyphens"], None, '-'),
    (&["em"], Some(&["dash", "dashes"]), '—'),
    (&["asterisk", "asterisks"], None, '*'),
    (&["hashtag", "hashtags"], None, '#'),
    (&["apostrophe", "apostrophes"], None, '\''),
];

pub(super) fn without(reading: &Reading) -> Option<Found> {
    if !reading.has_negation() || !reading.quantities.is_empty() {
        return None;
    }
    let mut named = MARKS.iter().filter_map(|&(names, second, mark)| {
        let at = match second {
            None => reading.find(names)?,
            Some(second) => reading.pair(names, second)?,
        };
        Some((at, second.is_some(), mark))
    });
    let (at, two, mark) = named.next()?;
    if named.next().is_some() {
        return None;
    }
    // A clause against a mark, not a text that mentions one.
    let used = if two { vec![at, at + 1] } else { vec![at] };
    Some(
        Found::new(
            Family::Without { mark },
            &[
                "punctuation",
                "mark",
                "marks",
                "free",
                "exclude",
                "excluding",
                "omit",
                "symbol",
                "symbols",
                "character",
                "forbidden",
                "prohibited",
                "abstain",
                "zero",
                "devoid",
                "eschew",
                "commaless",
                "single",
                "banned",
                "skip",
                "disallowed",
                "can't",
                "cannot",
                "mustn't",
                "shouldn't",
                "occur",
                "found",
                "absent",
                "none",
                "sign",
                "isn't",
                "aren't",
                "won't",
                "forgo",
                "ban",
                "prohibit",
                "forbid",
                "leave",
                "out",
                "even",
                "completely",
            ],
        )
        .using(used)
        .using(literal_of(reading, mark)),
    )
}

/// A literal that only shows the mark.
fn literal_of(reading: &Reading, mark: char) -> Option<usize> {
    reading
        .tokens
        .iter()
        .position(|token| matches!(&token.kind, Kind::Literal(text) if text.trim().chars().eq([mark])))
}

pub(super) fn language(reading: &Reading) -> Option<Found> {
    if !reading.quantities.is_empty() {
        return None;
    }
    let head = reading.head();
    let mut named = head.iter().enumerate().filter_map(|(at, token)| {
        let code = language::code_of(&token.raw).filter(|_| token.raw.len() > 2)?;
        Some((at, code))
    });
    let (at, code) = named.next()?;
    if named.next().is_some() {
        return None;
    }
    let is_cue = reading.has(&[
        "language", "respond", "response", "answer", "write", "reply", "output", "written", "only", "entire",
        "speak", "text", "use", "using",
    ]);
    let before = at.checked_sub(1).and_then(|at| head.get(at)).is_some_and(|token| {
        token.is(&[
            "in",
            "the",
            "into",
            "use",
            "using",
            "only",
            "be",
            "is",
            "entirely",
            "exclusively",
            "pure",
        ])
    });
    (is_cue && before).then(|| {
        Found::new(
            Family::Language { code: code.to_owned() },
            &[
                "language",
                "languages",
                "exclusively",
                "entirely",
                "other",
                "allowed",
                "speak",
                "pure",
                "solely",
                "another",
            ],
        )
        .using([at])
    })
}
