//! How long: words, characters, sentences, words a sentence.

use crate::bound::Bound;
use crate::contract::Check;
use crate::limits::MAX_SPANS;
use crate::text::{Span, cut, words};
use crate::wording::{self, CHARACTERS, SENTENCES, WORDS, bounded, verb};

pub(super) fn words(words: usize, count: &Bound) -> Check {
    Check::counted(words, count, WORDS, Vec::new())
}

pub(super) fn characters(reply: &str, count: &Bound) -> Check {
    Check::counted(reply.chars().count(), count, CHARACTERS, Vec::new())
}

pub(super) fn sentences(found: &[Span], count: &Bound) -> Check {
    Check::counted(found.len(), count, SENTENCES, found.iter().take(MAX_SPANS).cloned().collect())
}

/// Every sentence that has a word is within the bound.
pub(super) fn sentence_length(reply: &str, sentences: &[Span], count: &Bound) -> Check {
    let wrong: Vec<_> = sentences
        .iter()
        .map(|span| (span.clone(), words::count(cut(reply, span.clone()))))
        .filter(|&(_, words)| words > 0 && !count.holds(words))
        .collect();
    let total = wording::count(sentences.len(), SENTENCES);
    let explanation = match wrong.first() {
        None => format!("{}, each of {}", total, bounded(count, WORDS)),
        Some((_, words)) => format!(
            "{} of {total} {} not of {}; the first of them has {words}",
            wrong.len(),
            verb(wrong.len(), "is", "are"),
            bounded(count, WORDS)
        ),
    };
    Check::new(wrong.is_empty(), explanation, wrong.into_iter().map(|(span, _)| span).collect())
}
