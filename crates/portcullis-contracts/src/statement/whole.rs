//! Statements about the reply as a whole: its format, what it is wrapped in, how it starts and ends.

use super::reading::{Found, Reading};
use super::token::Kind;
use crate::family::Family;

const FORMAT: &[&str] = &[
    "json",
    "yaml",
    "wrap",
    "wrapped",
    "wrapping",
    "valid",
    "format",
    "formatted",
    "markdown",
    "tick",
    "ticks",
    "backtick",
    "backticks",
    "object",
    "syntax",
    "parse",
    "parseable",
    "parsable",
    "well",
    "structured",
    "encode",
    "encoded",
    "entire",
    "code",
    "block",
    "fence",
    "fences",
    "fenced",
    "document",
    "string",
    "serialized",
    "yml",
    "inside",
    "conform",
    "conforming",
    "output",
    "outputs",
    "correct",
    "correctly",
    "standard",
    "legal",
    "machine",
    "readable",
    "file",
    "array",
];

pub(super) fn json(reading: &Reading) -> Option<Found> {
    format(reading, "json", Family::Json)
}

pub(super) fn yaml(reading: &Reading) -> Option<Found> {
    if reading.has(&["yml"]) {
        return format(reading, "yml", Family::Yaml);
    }
    format(reading, "yaml", Family::Yaml)
}

fn format(reading: &Reading, name: &str, family: Family) -> Option<Found> {
    if !reading.has(&[name]) || reading.has_negation() || !reading.quantities.is_empty() {
        return None;
    }
    let ticks = |token: &super::token::Token| matches!(&token.kind, Kind::Literal(text) if text.chars().all(|c| c == '`'));
    let used: Vec<usize> =
        (0..reading.head).filter(|&at| reading.tokens.get(at).is_some_and(ticks)).collect();
    Some(Found::new(family, FORMAT).using(used))
}

/// Words that a demand for quotation marks around the reply may have.
const QUOTED: &[&str] = &[
    "wrap",
    "wrapped",
    "enclose",
    "enclosed",
    "surround",
    "surrounded",
    "inside",
    "within",
    "between",
    "double",
    "quotation",
    "quotations",
    "quote",
    "quotes",
    "quoted",
    "mark",
    "marks",
    "encase",
    "encased",
    "pair",
    "start",
    "begin",
    "end",
    "straight",
    "character",
    "placed",
];

pub(super) fn quoted(reading: &Reading) -> Option<Found> {
    let marks = reading.has(&["quotation", "quotations", "quote", "quotes", "quoted"])
        && !reading.has(&["single", "citation", "cite"]);
    let wraps = reading.has(&[
        "wrap",
        "wrapped",
        "enclose",
        "enclosed",
        "surround",
        "surrounded",
        "inside",
        "within",
        "between",
        "place",
        "put",
        "encase",
        "encased",
        "quoted",
        "start",
        "begin",
    ]);
    let whole = reading.has(&[
        "entire",
        "whole",
        "all",
        "response",
        "reply",
        "answer",
        "output",
        "everything",
        "full",
        "complete",
        "text",
    ]);
    if !marks
        || !wraps
        || !whole
        || reading.has_negation()
        || reading.has(&["title", "word", "phrase", "each", "every", "name", "dialogue"])
    {
        return None;
    }
    let used = reading
        .literals()
        .into_iter()
        .filter(|(_, text)| text.trim_matches(['"', '\'', ' ']).is_empty())
        .map(|(at, _)| at);
    Some(Found::new(Family::Quoted, QUOTED).using(used))
}

/// Words that a demand to repeat the request may have.
const REPEAT: &[&str] = &[
    "repeat",
    "repeating",
    "repeated",
    "restate",
    "copy",
    "echo",
    "reproduce",
    "request",
    "prompt",
    "question",
    "query",
    "instruction",
    "message",
    "word",
    "words",
    "for",
    "without",
    "change",
    "changing",
    "changes",
    "first",
    "before",
    "verbatim",
    "unchanged",
    "exactly",
    "character",
    "characters",
    "sentence",
    "same",
    "start",
    "begin",
    "beginning",
    "say",
    "answering",
    "original",
    "any",
    "1",
    "2",
    "above",
    "altering",
    "modification",
    "modifications",
    "task",
    "original",
    "after",
    "proceed",
    "afterwards",
    "following",
    "user",
    "user's",
    "by",
    "anything",
    "opening",
    "top",
];

pub(super) fn repeat_request(reading: &Reading) -> Option<Found> {
    reading.find(&["repeat", "repeating", "restate", "copy", "echo", "reproduce"])?;
    let what = reading.has(&[
        "request",
        "prompt",
        "question",
        "query",
        "instruction",
        "instructions",
        "message",
        "task",
    ]);
    let exactly = reading.has(&[
        "verbatim",
        "exactly",
        "unchanged",
        "exact",
        "change",
        "changing",
        "first",
        "before",
        "begin",
        "start",
        "same",
        "altering",
        "modification",
    ]);
    (what && exactly).then(|| {
        Found::new(Family::RepeatRequest { request: None }, REPEAT)
            .using(reading.quantities.iter().filter(|q| q.number <= 2).flat_map(|q| q.start..q.end))
    })
}

const EDGE: &[&str] = &[
    "begin",
    "begins",
    "beginning",
    "start",
    "starts",
    "starting",
    "open",
    "opens",
    "opening",
    "first",
    "phrase",
    "exact",
    "exactly",
    "word",
    "words",
    "come",
    "comes",
    "before",
    "precede",
    "finish",
    "finishes",
    "end",
    "ends",
    "ending",
    "conclude",
    "concluding",
    "close",
    "closing",
    "last",
    "follow",
    "follows",
    "after",
    "final",
    "line",
    "sentence",
    "text",
    "very",
    "commence",
    "prefix",
    "append",
    "precisely",
    "literal",
    "terminate",
    "verbatim",
    "follow",
    "followed",
    "conclusion",
    "wrap",
    "up",
    "statement",
    "thing",
    "no",
    "other",
    "quote",
    "words",
    "lead",
    "off",
    "ended",
    "nothing",
];

pub(super) fn begins(reading: &Reading) -> Option<Found> {
    edge(
        reading,
        &[
            "begin",
            "begins",
            "start",
            "starts",
            "open",
            "opens",
            "commence",
            "beginning",
            "opening",
            "starting",
            "first",
            "lead",
        ],
        |phrase| Family::BeginsWith { phrase },
    )
}

pub(super) fn ends(reading: &Reading) -> Option<Found> {
    edge(
        reading,
        &[
            "finish",
            "finishes",
            "end",
            "ends",
            "conclude",
            "concludes",
            "close",
            "closes",
            "ending",
            "last",
            "final",
            "terminate",
            "closing",
            "finally",
        ],
        |phrase| Family::EndsWith { phrase },
    )
}

fn edge(reading: &Reading, cues: &[&str], family: impl Fn(String) -> Family) -> Option<Found> {
    let cue = reading.find(cues)?;
    if reading.has(&[
        "paragraph",
        "each",
        "every",
        "section",
        "sentences",
        "letter",
        "bullet",
        "title",
        "postscript",
        "quotation",
        "capital",
    ]) || reading.has(&["don't", "not", "never", "avoid"])
    {
        return None;
    }
    let literals: Vec<_> = reading.literals();
    let (at, phrase) = match literals.as_slice() {
        [(at, phrase)] => (vec![*at], phrase.trim().to_owned()),
        [] => phrase_after(reading, cue)?,
        _ => return None,
    };
    (!phrase.is_empty()).then(|| Found::new(family(phrase), EDGE).using(at))
}

/// A phrase without quotation marks: what stands between `phrase` or a colon and the end of its sentence.
fn phrase_after(reading: &Reading, cue: usize) -> Option<(Vec<usize>, String)> {
    let head = reading.head();
    let colon = (cue..head.len()).find(|&at| head.get(at).is_some_and(|token| token.is_mark(':')));
    let phrase =
        (cue..head.len()).find(|&at| head.get(at).is_some_and(|token| token.is(&["phrase", "words"])));
    let start = colon.or(phrase)? + 1;
    let no_other = (start..head.len()).find(|&at| {
        head.get(at).is_some_and(|token| token.is(&["no", "nothing"]))
            && head
                .get(at + 1)
                .is_some_and(|token| token.is(&["other", "words", "more", "else", "word", "should", "may"]))
    });
    let end = no_other.unwrap_or(head.len());
    // The raw text between the two, so that marks stay as they are.
    let raw = head.get(start..end)?;
    let (first, last) = (raw.first()?, raw.last()?);
    let from = reading.text.find(first.raw.as_str())?;
    let text = crate::text::from(&reading.text, from);
    let text = match no_other.and_then(|at| head.get(at)).and_then(|token| text.find(token.raw.as_str())) {
        Some(until) => crate::text::to(text, until),
        None => text,
    };
    let _ = last;
    let text = text.trim();
    let text = if no_other.is_some() {
        text.strip_suffix('.').filter(|rest| !rest.ends_with(['.', '!', '?'])).map_or(text, |_| text)
    } else {
        text
    };
    (!text.is_empty()).then(|| ((start..end).collect(), text.to_owned()))
}
