//! Letters and their case.

use crate::bound::Bound;
use crate::contract::Check;
use crate::text::capitals::{self, is_lower, is_upper};
use crate::text::{Span, cut, language, words};
use crate::wording::{self, CAPITAL_WORDS, OCCURRENCES, WORDS, verb};

pub(super) fn letter_count(reply: &str, letter: char, count: &Bound) -> Check {
    let alike = |c: char| {
        c == letter
            || !c.is_ascii() && c.to_lowercase().any(|c| c == letter)
            || c.to_ascii_lowercase() == letter
    };
    let spans: Vec<Span> =
        reply.char_indices().filter(|&(_, c)| alike(c)).map(|(at, c)| at..at + c.len_utf8()).collect();
    Check::counted(spans.len(), count, OCCURRENCES, spans)
}

pub(super) fn capital_words(reply: &str, count: &Bound) -> Check {
    let spans = capitals::capital_words(reply);
    Check::counted(spans.len(), count, CAPITAL_WORDS, spans)
}

pub(super) fn all_capitals(reply: &str, english: bool) -> Check {
    if !is_upper(reply) {
        return wrong_case(reply, char::is_lowercase, "lower-case");
    }
    if english && language::is_long_and_not_english(reply) {
        return Check::new(false, "capital letters only, and not English".to_owned(), Vec::new());
    }
    Check::new(true, "capital letters only".to_owned(), Vec::new())
}

pub(super) fn all_lowercase(reply: &str, english: bool) -> Check {
    if !is_lower(reply) {
        return wrong_case(reply, char::is_uppercase, "capital");
    }
    match language::evidence_against(reply, "en").filter(|_| english) {
        Some(other) => {
            Check::new(false, format!("lower-case letters only, in {other} and not English"), Vec::new())
        }
        None => Check::new(true, "lower-case letters only".to_owned(), Vec::new()),
    }
}

fn wrong_case(reply: &str, wrong: fn(char) -> bool, name: &str) -> Check {
    let spans: Vec<Span> =
        words::words(reply).filter(|span| cut(reply, span.clone()).contains(wrong)).collect();
    if spans.is_empty() && !reply.contains(wrong) {
        return Check::new(false, "no letter that has a case".to_owned(), spans);
    }
    Check::new(
        false,
        format!(
            "{} {} a {name} letter",
            wording::count(spans.len(), WORDS),
            verb(spans.len(), "has", "have")
        ),
        spans,
    )
}

pub(super) fn no_sentence_capitals(reply: &str, sentences: &[Span]) -> Check {
    let spans = capitalised_openings(reply, sentences);
    let explanation = match spans.len() {
        0 => "no sentence starts with a capital".to_owned(),
        1 => "1 sentence starts with a capital".to_owned(),
        n => format!("{n} sentences start with a capital"),
    };
    Check::new(spans.is_empty(), explanation, spans)
}

/// First words of sentences that start with a capital.
fn capitalised_openings(reply: &str, sentences: &[Span]) -> Vec<Span> {
    sentences
        .iter()
        .filter_map(|sentence| {
            let word = words::words(cut(reply, sentence.clone())).next()?;
            let word = sentence.start + word.start..sentence.start + word.end;
            cut(reply, word.clone()).starts_with(char::is_uppercase).then_some(word)
        })
        .collect()
}
