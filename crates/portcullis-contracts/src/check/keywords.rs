//! Words that have to be there, that must not be, and how often.

use crate::bound::Bound;
use crate::contract::Check;
use crate::family::list;
use crate::text::search::{find_all, find_from, find_words};
use crate::text::{Span, one};
use crate::wording::{self, KEYWORDS, OCCURRENCES, WORDS, verb};

pub(super) fn includes(reply: &str, keywords: &[String]) -> Check {
    let (mut missing, mut spans) = (Vec::new(), Vec::new());
    for keyword in keywords {
        match find_from(reply, keyword, 0) {
            Some(span) => spans.push(span),
            None => missing.push(keyword.as_str()),
        }
    }
    spans.sort_by_key(|span| span.start);
    if missing.is_empty() {
        return Check::new(
            true,
            match keywords.len() {
                1 => "the keyword occurs".to_owned(),
                n => format!("all {n} keywords occur"),
            },
            spans,
        );
    }
    Check::new(
        false,
        format!(
            "{} of {} {} missing: {}",
            missing.len(),
            wording::count(keywords.len(), KEYWORDS),
            verb(missing.len(), "is", "are"),
            list(&missing)
        ),
        spans,
    )
}

pub(super) fn excludes(reply: &str, words: &[String]) -> Check {
    let mut present = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    for word in words {
        let before = spans.len();
        spans.extend(find_words(reply, word));
        if spans.len() > before {
            present.push(word.as_str());
        }
    }
    spans.sort_by_key(|span| span.start);
    if present.is_empty() {
        return Check::new(
            true,
            match words.len() {
                1 => "the word does not occur".to_owned(),
                n => format!("none of {n} words occurs"),
            },
            spans,
        );
    }
    Check::new(
        false,
        format!(
            "{} of {} {}: {}",
            present.len(),
            wording::count(words.len(), WORDS),
            verb(present.len(), "occurs", "occur"),
            list(&present)
        ),
        spans,
    )
}

pub(super) fn keyword_count(reply: &str, keyword: &str, count: &Bound) -> Check {
    let spans: Vec<Span> = find_all(reply, keyword).collect();
    Check::counted(spans.len(), count, OCCURRENCES, spans)
}

pub(super) fn options(reply: &str, options: &[String]) -> Check {
    match options.iter().find_map(|option| Some((reply.find(option.as_str())?, option))) {
        Some((at, option)) => {
            Check::new(true, format!("the answer is {}", list(&[option])), one(at..at + option.len()))
        }
        None => Check::new(false, format!("none of the answers is given: {}", list(options)), Vec::new()),
    }
}
