//! Statements about words that have to be there, must not be, or so many times; and about fixed answers.

use super::quantity::is_negation;
use super::reading::{Found, Reading};
use super::token::Kind;
use super::vocabulary::is_filler;
use crate::bound::Bound;
use crate::family::Family;

const WORD: &[&str] =
    &["word", "words", "keyword", "keywords", "term", "terms", "phrase", "phrases", "expression", "string"];
const VOCABULARY: &[&str] = &[
    "word",
    "words",
    "keyword",
    "keywords",
    "term",
    "terms",
    "phrase",
    "phrases",
    "appear",
    "appears",
    "occur",
    "occurs",
    "mention",
    "mentioned",
    "mentioning",
    "incorporate",
    "incorporating",
    "incorporated",
    "contain",
    "exclude",
    "excluded",
    "excluding",
    "omit",
    "forbidden",
    "banned",
    "prohibited",
    "absent",
    "times",
    "time",
    "found",
    "used",
    "occurrences",
    "occurrence",
    "repeated",
    "frequency",
    "instances",
    "following",
    "expression",
    "string",
    "say",
    "weave",
    "work",
    "least",
    "free",
    "none",
    "can't",
    "cannot",
    "mustn't",
    "shouldn't",
    "without",
    "list",
    "abstain",
    "disallowed",
    "feature",
    "featuring",
    "isn't",
    "aren't",
    "zero",
    "devoid",
    "skip",
    "neither",
    "nor",
    "single",
    "throughout",
    "won't",
    "ban",
    "forbid",
    "prohibit",
    "leave",
    "out",
    "exact",
    "off",
    "limits",
    "these",
    "containing",
];

pub(super) fn keyword_count(reading: &Reading) -> Option<Found> {
    let quantity = reading.quantity()?;
    let counted = quantity.is_times
        || reading.has(&["times", "time", "occurrences", "occurrence", "instances"])
        || reading.has(&["appear", "occur"]);
    if !counted || reading.has(&["letter", "capital", "uppercase", "caps", "sentence", "paragraph", "bullet"])
    {
        return None;
    }
    let (mut used, mut words) = meant(reading)?;
    if words.len() != 1 {
        return None;
    }
    let (word, note) = clean(&words.pop()?);
    used.extend(quantity.start..quantity.end);
    let found = Found::new(Family::KeywordCount { keyword: word, count: quantity.bound }, VOCABULARY)
        .using(used)
        .counting(quantity);
    Some(match note {
        Some(note) => found.note(note),
        None => found,
    })
}

pub(super) fn includes(reading: &Reading) -> Option<Found> {
    if reading.has_negation() || !reading.quantities.is_empty() || !reading.has(WORD) && !is_list(reading) {
        return None;
    }
    if reading.has(&["one"]) && reading.has(&["option", "options", "either"])
        || reading.has(&[
            "start", "begin", "end", "finish", "conclude", "first", "last", "wrap", "repeat", "letter",
            "capital",
        ])
    {
        return None;
    }
    reading.find(&[
        "include",
        "contain",
        "use",
        "mention",
        "incorporate",
        "feature",
        "have",
        "appear",
        "weave",
        "work",
        "say",
        "add",
        "insert",
        "keyword",
        "keywords",
        "employ",
        "occur",
        "need",
        "present",
        "put",
        "place",
    ])?;
    let (used, words) = meant(reading)?;
    let (keywords, notes) = clean_all(words)?;
    Some(with_notes(Found::new(Family::Includes { keywords }, VOCABULARY).using(used), notes))
}

pub(super) fn excludes(reading: &Reading) -> Option<Found> {
    if !reading.has_negation() || !reading.quantities.is_empty() || !reading.has(WORD) && !is_list(reading) {
        return None;
    }
    if reading.has(&[
        "capitalize",
        "capital",
        "letter",
        "sentence",
        "paragraph",
        "repeat",
        "start",
        "begin",
        "end",
        "finish",
    ]) {
        return None;
    }
    let (used, words) = meant(reading)?;
    let (words, notes) = clean_all(words)?;
    Some(with_notes(Found::new(Family::Excludes { words }, VOCABULARY).using(used), notes))
}

fn is_list(reading: &Reading) -> bool {
    reading.tokens.iter().any(|token| matches!(token.kind, Kind::List(_)))
        || !reading.literals().is_empty()
            && reading.has(&["include", "mention", "contain", "avoid", "exclude", "use", "say"])
}

fn with_notes(mut found: Found, notes: Vec<String>) -> Found {
    found.notes.extend(notes);
    found
}

/// The words a statement names: literals, or what follows `word`, `keywords` and similar.
fn meant(reading: &Reading) -> Option<(Vec<usize>, Vec<String>)> {
    let literals = reading.literals();
    if !literals.is_empty() {
        return Some(literals.into_iter().unzip());
    }
    let head = reading.head();
    let mut at = head.iter().rposition(|token| token.is(WORD))? + 1;
    // Further words of the announcement: `the following words in your reply: a, b`.
    if let Some(colon) = (at..head.len()).find(|&at| head.get(at).is_some_and(|token| token.is_mark(':'))) {
        at = colon + 1;
    }
    let (mut used, mut words) = (Vec::new(), Vec::new());
    while let Some(token) = head.get(at) {
        let joins = token.is(&["and", "or", "nor"]) || token.is_mark(',');
        let stray =
            token.kind == Kind::Mark && matches!(token.raw.as_str(), "\"" | "'" | "[" | "]" | "(" | ")");
        if token.kind == Kind::Word && !joins {
            let comes_first = words.is_empty();
            if !comes_first && (is_filler(token) || is_negation(token)) || is_end(reading, at) {
                break;
            }
            words.push(token.raw.clone());
            used.push(at);
        } else if !joins && !stray {
            break;
        }
        at += 1;
        let parted = head.get(at).is_some_and(|token| token.is(&["and", "or", "nor"]) || token.is_mark(','));
        if !words.is_empty() && token.kind == Kind::Word && !joins && !parted {
            break;
        }
    }
    (!words.is_empty()).then_some((used, words))
}

/// Whether the announcement goes on here instead of naming a word: `words in your reply`.
fn is_end(reading: &Reading, at: usize) -> bool {
    reading.head().get(at).is_some_and(|token| {
        token.is(&[
            "in", "should", "must", "may", "can", "that", "which", "are", "is", "shall", "will", "below",
            "listed", "your", "at",
        ])
    })
}

fn clean_all(words: Vec<String>) -> Option<(Vec<String>, Vec<String>)> {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    for word in words {
        let (word, note) = clean(&word);
        notes.extend(note);
        if !word.is_empty() && !out.contains(&word) {
            out.push(word);
        }
    }
    (!out.is_empty()).then_some((out, notes))
}

/// A keyword without stray quotation marks and commas at its ends, which lists made by machine carry.
fn clean(word: &str) -> (String, Option<String>) {
    let clean = word.trim().trim_matches(['"', '“', '”']).trim_end_matches([',', ';']).trim();
    let note = (clean != word).then(|| format!("`{word}` is read as `{clean}`"));
    (clean.to_owned(), note)
}

pub(super) fn options(reading: &Reading) -> Option<Found> {
    let literals = reading.literals();
    let one_of = reading.pair(&["one"], &["of"]).is_some()
        || reading.has(&["option", "options", "either", "choices", "choose", "pick", "select"]);
    if !one_of || literals.len() < 2 || reading.has_negation() {
        return None;
    }
    if reading
        .quantities
        .iter()
        .any(|quantity| quantity.bound != Bound::exactly(1) && quantity.bound != Bound::at_least(1))
    {
        return None;
    }
    let (used, options): (Vec<usize>, Vec<String>) = literals.into_iter().unzip();
    let ones = reading.quantities.iter().flat_map(|quantity| quantity.start..quantity.end);
    Some(
        Found::new(
            Family::Options { options },
            &[
                "option",
                "options",
                "choice",
                "choices",
                "choose",
                "pick",
                "select",
                "following",
                "phrase",
                "phrases",
                "one",
                "either",
                "exactly",
                "statement",
                "statements",
                "answers",
                "verbatim",
                "or",
                "sentence",
                "sentences",
                "these",
            ],
        )
        .using(used)
        .using(ones),
    )
}
