//! Whether quotations and numbers of a reply are in what it cites.
//!
//! What the prompt says, and what tools returned that give no documents, counts as well: a reply may repeat the question,
//! and give the result of a calculation.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use super::citation::{Cited, citations};
use super::reply::Reply;
use super::result::{Absence, Finding, count};
use crate::limits::{MAX_NUMBERS, MAX_QUOTATIONS};
use crate::text::{Span, cut, from};

/// Fewest words of a quotation; what is shorter is a name, or a word one keeps at a distance.
const QUOTED_WORDS_MIN: usize = 3;
/// Opening and closing marks. `"` opens and closes in turn, again in each paragraph.
const MARKS: [(char, &[char]); 4] = [('“', &['”']), ('"', &['"']), ('«', &['»']), ('„', &['“', '”'])];
/// Marks of what was left out.
const LEFT_OUT: [&str; 4] = ["[…]", "[...]", "…", "..."];

/// The quotations of a text without their marks: at least three words between “ ”, " ", « » or „ “, in one paragraph.
#[must_use]
pub fn quotations(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut start = 0;
    for paragraph in text.split("\n\n") {
        // Marks that are not closed in the rest of the paragraph; nobody looks for their ends again.
        let mut unclosed = Vec::new();
        let mut chars = paragraph.char_indices();
        while let Some((at, c)) = chars.next() {
            let Some((_, closing)) = MARKS.iter().find(|(open, _)| *open == c) else { continue };
            let inside = at + c.len_utf8();
            let length = if unclosed.contains(&c) { None } else { from(paragraph, inside).find(*closing) };
            let Some(length) = length else {
                if !unclosed.contains(&c) {
                    unclosed.push(c);
                }
                continue;
            };
            let span = start + inside..start + inside + length;
            if cut(text, span.clone()).split_whitespace().count() >= QUOTED_WORDS_MIN {
                found.push(span);
            }
            // On from behind the closing mark.
            chars.by_ref().find(|(place, _)| *place >= inside + length);
        }
        start += paragraph.len() + 2;
    }
    found
}

pub(super) fn quoted(cited: &Cited<'_>, reply: &Reply<'_>) -> Finding {
    let spans = quotations(reply.said.text);
    if spans.is_empty() {
        return Finding::not_applicable(Absence::Nothing, "the reply quotes nothing of three words or more");
    }
    if spans.len() > MAX_QUOTATIONS {
        let count = spans.len();
        return Finding::fail(format!("the reply has {count} quotations; the limit is {MAX_QUOTATIONS}"));
    }
    let sources: Vec<String> = sources(cited, reply).map(comparable).collect();
    let missing: Vec<Span> = spans
        .iter()
        .filter(|span| {
            let quotation = comparable(cut(reply.said.text, (*span).clone()));
            !sources.iter().any(|source| stands_in(source, &quotation))
        })
        .cloned()
        .collect();
    answer(cited, reply, &missing, spans.len(), ("quotation", "quotations"))
}

/// Whether the parts of a quotation are in a text in their order.
fn stands_in(source: &str, quotation: &str) -> bool {
    let mut parts = vec![quotation];
    for mark in LEFT_OUT {
        parts = parts.into_iter().flat_map(|part| part.split(mark)).collect();
    }
    let edge = |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '!' | '?');
    let mut rest = source;
    parts.into_iter().map(|part| part.trim_matches(edge)).filter(|part| !part.is_empty()).all(|part| {
        match rest.find(part) {
            Some(at) => {
                rest = from(rest, at + part.len());
                true
            }
            None => false,
        }
    })
}

/// A text as it is compared: compatibility forms, lower case, one kind of quotes and dashes, single spaces.
fn comparable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    // An ellipsis of one character would become three of another meaning.
    for c in text.chars() {
        match c {
            '…' => {
                out.push('…');
                space = false;
            }
            _ if c.is_whitespace() => {
                if !space {
                    out.push(' ');
                }
                space = true;
            }
            '\u{ad}' | '\u{200b}' | '\u{feff}' => {}
            _ => {
                space = false;
                for c in std::iter::once(c).nfkc().flat_map(char::to_lowercase) {
                    out.push(match c {
                        '‘' | '’' | '‚' | '`' | '´' => '\'',
                        '“' | '”' | '„' | '«' | '»' => '"',
                        '–' | '—' | '‐' | '‑' | '−' => '-',
                        c => c,
                    });
                }
            }
        }
    }
    out
}

/// The numbers of a text: runs of digits with what separates and divides them, outside of words and citations. What
/// numbers the points of a list is none.
#[must_use]
pub fn numbers(text: &str) -> Vec<Span> {
    let mut markers = citations(text).into_iter().map(|marker| marker.span).peekable();
    let mut found: Vec<Span> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut line = 0;
    let (mut before, mut two_before): (Option<char>, Option<char>) = (None, None);
    while let Some((start, c)) = chars.next() {
        let hyphened = before == Some('-') && two_before.is_some_and(char::is_alphabetic);
        let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_') || hyphened;
        if !c.is_ascii_digit() {
            if c == '\n' {
                line = start + 1;
            }
            (two_before, before) = (before, Some(c));
            continue;
        }
        let end = start + number_length(from(text, start));
        while chars.next_if(|(at, _)| *at < end).is_some() {}
        (two_before, before) = (None, Some('0'));
        while markers.next_if(|marker| marker.end <= start).is_some() {}
        let cited = markers.peek().is_some_and(|marker| marker.contains(&start));
        if !in_word && !cited && !is_identifier(from(text, end)) && !numbers_a_point(text, line, start..end) {
            found.push(start..end);
        }
    }
    found
}

/// How much of what begins with a digit is one number.
fn number_length(text: &str) -> usize {
    let mut length = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let divides = matches!(c, '.' | ',' | '\'' | '’' | '\u{a0}' | '\u{202f}' | '\u{2009}');
        let goes_on = divides && chars.peek().is_some_and(char::is_ascii_digit);
        if !c.is_ascii_digit() && !goes_on {
            break;
        }
        length += c.len_utf8();
    }
    length
}

/// Whether what follows a number makes it part of a name: letters with digits or `_` after them.
fn is_identifier(rest: &str) -> bool {
    let after = rest.trim_start_matches(char::is_alphabetic);
    rest.starts_with('_')
        || (after.len() < rest.len() && after.starts_with(|c: char| c.is_ascii_digit() || c == '_'))
}

/// `1.`, `2)` at the beginning of a line.
fn numbers_a_point(text: &str, line: usize, number: Span) -> bool {
    /// Digits of the number of a point.
    const DIGITS_MAX: usize = 3;
    let lead = cut(text, line..number.start);
    let first = lead.chars().all(|c| c.is_whitespace() || matches!(c, '#' | '*' | '-' | '(' | '>'));
    let mut after = from(text, number.end).chars();
    let marked = matches!(after.next(), Some('.' | ')'));
    first && marked && after.next().is_none_or(char::is_whitespace) && number.len() <= DIGITS_MAX
}

/// What a number can mean: `1,240` is 1240 or, as some write it, 1.24.
fn readings(number: &str) -> Vec<String> {
    let spaces = |c: char| matches!(c, '\'' | '’' | '\u{a0}' | '\u{202f}' | '\u{2009}');
    let number: String = number.chars().filter(|c| !spaces(*c)).collect();
    let marks: Vec<char> = number.chars().filter(|c| !c.is_ascii_digit()).collect();
    let thousands = |mark: char| {
        let mut groups = number.split(mark);
        let first = groups.next().unwrap_or_default();
        (1..=3).contains(&first.len()) && first != "0" && groups.all(|group| group.len() == 3)
    };
    let decimal = |mark: char| {
        let (whole, part) = number.rsplit_once(mark)?;
        let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
        Some(canonical(&whole, part))
    };
    match marks.as_slice() {
        [] => vec![canonical(&number, "")],
        [mark] => {
            let mut readings: Vec<String> = decimal(*mark).into_iter().collect();
            if thousands(*mark) {
                readings.push(canonical(&number.replace(*mark, ""), ""));
            }
            readings
        }
        [first, rest @ ..] => {
            let last = rest.last().copied().unwrap_or(*first);
            if rest.iter().all(|mark| mark == first) {
                // Groups of three, or several numbers such as a date or a version.
                let whole = number.replace(*first, "");
                return vec![if thousands(*first) { canonical(&whole, "") } else { number }];
            }
            decimal(last).into_iter().collect()
        }
    }
}

fn canonical(whole: &str, part: &str) -> String {
    let whole = whole.trim_start_matches('0');
    let part = part.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

pub(super) fn numbered(cited: &Cited<'_>, reply: &Reply<'_>) -> Finding {
    let spans = numbers(reply.said.text);
    if spans.is_empty() {
        return Finding::not_applicable(Absence::Nothing, "the reply has no numbers");
    }
    if spans.len() > MAX_NUMBERS {
        let count = spans.len();
        return Finding::fail(format!("the reply has {count} numbers; the limit is {MAX_NUMBERS}"));
    }
    let mut known = BTreeSet::new();
    for source in sources(cited, reply) {
        known.extend(numbers_of_source(source).flat_map(|span| readings(cut(source, span))));
    }
    let missing: Vec<Span> = spans
        .iter()
        .filter(|span| {
            let number = cut(reply.said.text, (*span).clone());
            !readings(number).iter().any(|reading| known.contains(reading))
        })
        .cloned()
        .collect();
    answer(cited, reply, &missing, spans.len(), ("number", "numbers"))
}

/// The numbers of a source, those that number its points included: a reply may well speak of rule 3.
fn numbers_of_source(text: &str) -> impl Iterator<Item = Span> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + from(text, at).find(|c: char| c.is_ascii_digit())?;
        at = start + number_length(from(text, start));
        Some(start..at)
    })
}

fn sources<'a>(cited: &Cited<'a>, reply: &Reply<'a>) -> impl Iterator<Item = &'a str> {
    let documents: Vec<&'a str> = cited.documents.iter().map(|document| document.text.as_str()).collect();
    let prompts: Vec<&'a str> = reply.prompts.iter().map(|prompt| prompt.text).collect();
    documents.into_iter().chain(prompts).chain(reply.others.iter().copied())
}

/// The answer on things of which some are missing in the sources.
fn answer(
    cited: &Cited<'_>,
    reply: &Reply<'_>,
    missing: &[Span],
    all: usize,
    (one, many): (&str, &str),
) -> Finding {
    let total = count(all, one, many);
    let rests_on = cited.events().chain(reply.prompts.iter().map(|prompt| prompt.event));
    if missing.is_empty() {
        let occur = if all == 1 { "occurs" } else { "occur" };
        let documents = if cited.documents.is_empty() { "" } else { "the cited documents, or in " };
        let explanation = format!("{total} {occur} in {documents}the prompts and retrieved text");
        return Finding::pass(explanation).resting_on(rests_on);
    }
    if reply.documents.is_none() || !cited.cites() {
        return Finding::not_applicable(
            Absence::Support,
            format!("the reply cites nothing that its {many} could be checked against"),
        );
    }
    let occur = if missing.len() == 1 { "does not occur" } else { "do not occur" };
    Finding::fail(format!("{} of {total} {occur} in the cited documents", missing.len()))
        .named(missing.iter().map(|span| cut(reply.said.text, span.clone())))
        .in_reply(reply, missing.iter().cloned())
        .resting_on(rests_on)
}
