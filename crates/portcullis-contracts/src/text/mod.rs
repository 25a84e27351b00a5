//! Cutting a text into words, sentences, paragraphs and marks, exactly as the published grader of instructions does.
//!
//! Its rules are regular expressions and a statistical sentence splitter, and some of them surprise: `don't` is two
//! words, `*emphasis*` at the start of a line is a bullet, a heading joins the sentence below it. Anyone who counts
//! otherwise reaches other verdicts, so each file states the rule it follows. All positions are bytes, and none of them
//! cuts a character.

pub mod capitals;
pub mod language;
pub mod marks;
mod openers;
pub mod paragraphs;
pub mod search;
pub mod sentences;
pub mod words;

use std::ops::Range;

/// A place in a text, in bytes.
pub type Span = Range<usize>;

/// The text at a span; empty where the span does not fit, which none of ours does.
pub(crate) fn cut(text: &str, span: Span) -> &str {
    text.get(span).unwrap_or_default()
}

/// The text from a position on.
pub(crate) fn from(text: &str, start: usize) -> &str {
    text.get(start..).unwrap_or_default()
}

/// The text up to a position.
pub(crate) fn to(text: &str, end: usize) -> &str {
    text.get(..end).unwrap_or_default()
}

/// The span of `part` without white space at its ends, where `part` starts at `offset`.
pub(crate) fn trimmed(part: &str, offset: usize) -> Span {
    let lead = part.len() - part.trim_start().len();
    let inner = part.trim();
    offset + lead..offset + lead + inner.len()
}

/// A list of one span.
pub(crate) fn one(span: Span) -> Vec<Span> {
    std::iter::once(span).collect()
}
