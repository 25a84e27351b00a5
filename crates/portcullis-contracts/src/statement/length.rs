//! Statements about length: words, characters, sentences, words a sentence, paragraphs.

use super::quantity::ordinal;
use super::reading::{Found, Reading};
use super::token::Kind;
use crate::family::{Divider, Family};

const LENGTH: &[&str] = &[
    "word",
    "words",
    "count",
    "length",
    "long",
    "longer",
    "shorter",
    "short",
    "wordcount",
    "brief",
    "reach",
    "span",
    "sized",
    "size",
    "cap",
    "exceed",
    "minimum",
    "maximum",
    "total",
];

pub(super) fn words(reading: &Reading) -> Option<Found> {
    if reading.has(&[
        "letter",
        "capital",
        "capitalized",
        "uppercase",
        "keyword",
        "sentence",
        "paragraph",
        "caps",
        "line",
        "bullet",
    ]) || !reading.has(&["word", "words", "wordcount"])
    {
        return None;
    }
    let quantity = reading.quantity()?;
    if quantity.is_times || reading.has(&["times", "time", "occurrences"]) {
        return None;
    }
    Some(Found::new(Family::Words { count: quantity.bound }, LENGTH).counting(quantity))
}

pub(super) fn characters(reading: &Reading) -> Option<Found> {
    if !reading.has(&["character", "characters", "chars"])
        || reading.has(&["word", "sentence", "paragraph", "line"])
    {
        return None;
    }
    let quantity = reading.quantity()?;
    Some(
        Found::new(
            Family::Characters { count: quantity.bound },
            &[
                "character",
                "characters",
                "chars",
                "count",
                "length",
                "long",
                "longer",
                "shorter",
                "spaces",
                "space",
                "including",
            ],
        )
        .counting(quantity),
    )
}

const EACH: &[&str] = &["each", "every", "all", "any", "no", "per", "individual", "single"];

pub(super) fn sentence_length(reading: &Reading) -> Option<Found> {
    if !reading.has(&["sentence", "sentences"])
        || !reading.has(&["word", "words"])
        || reading.has(&["first", "start", "begin", "capital", "paragraph"])
    {
        return None;
    }
    let quantity = reading.quantity().filter(|quantity| !quantity.is_times)?;
    let sentence = reading.find(&["sentence", "sentences"])?;
    // `Sentences should not exceed 18 words`: all of them, where no number stands before.
    let plural = reading.head().first().is_some_and(|token| token.raw.eq_ignore_ascii_case("sentences"));
    let each = plural || reading.has(EACH) || quantity.end <= sentence || reading.has(&["your", "the", "of"]);
    each.then(|| {
        Found::new(
            Family::SentenceLength { count: quantity.bound },
            &[
                "sentence",
                "sentences",
                "word",
                "words",
                "each",
                "every",
                "any",
                "individual",
                "long",
                "longer",
                "shorter",
                "length",
                "single",
                "per",
                "short",
                "exceed",
                "count",
            ],
        )
        .counting(quantity)
    })
}

pub(super) fn sentences(reading: &Reading) -> Option<Found> {
    if reading.has(&["word", "words", "letter", "paragraph", "capital", "line"])
        || reading.has(&["first", "last", "start", "begin"])
    {
        return None;
    }
    reading.find(&["sentence", "sentences"])?;
    let quantity = reading.quantity()?;
    Some(
        Found::new(
            Family::Sentences { count: quantity.bound },
            &[
                "sentence",
                "sentences",
                "count",
                "length",
                "long",
                "longer",
                "shorter",
                "exceed",
                "span",
                "short",
                "brief",
            ],
        )
        .counting(quantity),
    )
}

const PARAGRAPH: &[&str] = &[
    "each",
    "paragraph",
    "paragraphs",
    "separated",
    "separate",
    "separator",
    "divide",
    "divided",
    "divider",
    "markdown",
    "new",
    "line",
    "lines",
    "newline",
    "newlines",
    "blank",
    "empty",
    "python",
    "if",
    "was",
    "were",
    "asterisk",
    "asterisks",
    "symbol",
    "symbols",
    "break",
    "breaks",
    "double",
    "split",
    "two",
    "three",
    "star",
    "stars",
    "delimited",
    "between",
    "another",
    "exceed",
];

fn divider(reading: &Reading) -> Divider {
    let stars = reading.text.contains("***") || reading.has(&["asterisk", "asterisks", "divider", "stars"]);
    if stars { Divider::Stars } else { Divider::BlankLine }
}

pub(super) fn paragraphs(reading: &Reading) -> Option<Found> {
    let at = reading.find(&["paragraph", "paragraphs"])?;
    if reading.has(&["word", "words", "sentence", "sentences", "bullet", "letter"])
        || reading.pair(&["each", "every", "per", "any"], &["paragraph"]).is_some()
    {
        return None;
    }
    // The number belongs to the first mention: `two new lines` and `3 asterisks` are about the divider.
    let quantity = reading
        .quantities
        .iter()
        .find(|quantity| quantity.end <= at && quantity.end + 3 > at)
        .or_else(|| {
            reading.quantities.first().filter(|quantity| quantity.start > at && !reading.has(&["asterisks"]))
        });
    let single = reading.pair(&["single", "one"], &["paragraph", "paragraphs"]);
    let (bound, used) = match (quantity, single) {
        (Some(quantity), _) => (quantity.bound, quantity.start..quantity.end),
        (None, Some(at)) => (crate::Bound::exactly(1), at..at + 1),
        (None, None) => return None,
    };
    let divider = divider(reading);
    let mut found = Found::new(Family::Paragraphs { count: bound, divider }, PARAGRAPH)
        .using(used)
        .using(divider_tokens(reading, at));
    if let Some(quantity) = quantity {
        found = found.counting(quantity);
    }
    Some(found)
}

/// Quantities and literals that describe the divider.
fn divider_tokens(reading: &Reading, from: usize) -> Vec<usize> {
    let separated = reading
        .find(&["separated", "separate", "divided", "divide", "delimited", "split", "divider", "parted"])
        .unwrap_or(from);
    (separated..reading.head)
        .filter(|&at| {
            reading.tokens.get(at).is_some_and(|token| {
                matches!(token.kind, Kind::Literal(_) | Kind::List(_))
                    || token.is(&["two", "2", "one", "1", "three", "3", "double"])
            })
        })
        .collect()
}

/// Words that a demand on the first words of a paragraph may have.
const PARAGRAPH_WORD: &[&str] = &[
    "paragraph",
    "paragraphs",
    "word",
    "words",
    "start",
    "starts",
    "begin",
    "begins",
    "first",
    "open",
    "opens",
    "separated",
    "separate",
    "new",
    "line",
    "lines",
    "newline",
    "blank",
    "empty",
    "python",
    "if",
    "was",
    "two",
    "double",
    "another",
    "three",
    "opening",
    "beginning",
    "among",
    "divided",
    "break",
    "breaks",
    "between",
];

/// `Paragraph 3 must have the word 'show' in its first three words`, and similar with *starts with*.
pub(super) fn paragraph_word(reading: &Reading) -> Option<Found> {
    const OPENS: &[&str] =
        &["start", "starts", "begin", "begins", "open", "opens", "first", "beginning", "opening", "lead"];
    if !reading.has(OPENS) {
        return None;
    }
    let head = reading.head();
    let is_paragraph = |at: usize| head.get(at).is_some_and(|token| token.is(&["paragraph", "paragraphs"]));
    let number_at = |at: usize| {
        head.get(at).and_then(|token| token.raw.parse::<u32>().ok().or_else(|| small(&token.raw)))
    };
    let named = (0..head.len()).find_map(|at| {
        if !is_paragraph(at) {
            return None;
        }
        if let Some(n) = number_at(at + 1) {
            return Some((n, at, at + 1));
        }
        let before = at.checked_sub(1)?;
        let n = ordinal(&head.get(before)?.raw)?;
        Some((n, at, before))
    });
    let (nth, at, number_token) = named?;
    let (word_token, word) = meant_word(reading, at, number_token)?;
    let first = reading.find(&["first", "opening"]).filter(|&first| first != number_token);
    let within = first.and_then(|first| number_at(first + 1).map(|n| (n, first + 1)));
    let total = reading.quantities.iter().find(|quantity| {
        quantity.end <= number_token
            && head.get(quantity.end).is_some_and(|t| t.is(&["paragraph", "paragraphs"]))
    });
    let mut found = Found::new(
        Family::ParagraphWord {
            paragraph: nth,
            word: word.clone(),
            within: within.map_or(1, |(n, _)| n.max(1)),
            total: total
                .filter(|quantity| quantity.bound == crate::Bound::exactly(quantity.number))
                .map(|quantity| quantity.number),
        },
        PARAGRAPH_WORD,
    )
    .using([at, number_token, word_token])
    .using(divider_tokens(reading, at));
    if let Some((_, at)) = within {
        found = found.using([at]);
    }
    if let Some(total) = total {
        found = found.using(total.start..total.end);
    }
    Some(found)
}

fn small(word: &str) -> Option<u32> {
    let at = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        .iter()
        .position(|known| known.eq_ignore_ascii_case(word))?;
    u32::try_from(at + 1).ok()
}

/// The word that is demanded: a literal, or what follows `the word` or `starts with`.
fn meant_word(reading: &Reading, paragraph: usize, number: usize) -> Option<(usize, String)> {
    let line_break = |text: &str| text.contains('\\') || text.trim().is_empty();
    let literals = reading.literals();
    if let Some((at, text)) = literals.into_iter().find(|(_, text)| !line_break(text)) {
        return (text.split_whitespace().count() == 1).then_some((at, text));
    }
    let head = reading.head();
    let after = |words: &[&str]| {
        (paragraph.min(number)..head.len()).find_map(|at| {
            let opens = head.get(at).filter(|token| token.is(words))?;
            let mut next = at + 1;
            while head.get(next).is_some_and(|token| {
                token.is(&["with", "word", "the", "by", "is", "be", "must", "should", "a", "of"])
                    || token.is_mark(':')
            }) {
                next += 1;
            }
            let token = head
                .get(next)
                .filter(|token| token.kind == Kind::Word && !token.is(&["in", "among", "within", "first"]))?;
            opens.is_word().then(|| (next, token.raw.clone()))
        })
    };
    after(&["word"]).or_else(|| after(&["start", "starts", "begin", "begins", "open", "opens"]))
}
