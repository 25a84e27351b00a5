//! How long: words, characters, sentences, words a sentence.

use crate::bound::Bound;
use crate::contract::Check;
use crate::text::{cut, sentences, words};
use crate::wording::{self, CHARACTERS, SENTENCES, WORDS, bounded, verb};

pub(super) fn words(reply: &str, count: &Bound) -> Check {
    Check::counted(words::count(reply), count, WORDS, Vec::new())
}

pub(super) fn characters(reply: &str, count: &Bound) -> Check {
    Check::counted(reply.chars().count(), count, CHARACTERS, Vec::new())
}

pub(super) fn sentences(reply: &str, count: &Bound) -> Check {
    let found = sentences::sentences(reply);
    Check::counted(found.len(), count, SENTENCES, found)
}

/// Every sentence that has a word is within the bound.
pub(super) fn sentence_length(reply: &str, count: &Bound) -> Check {
    let sentences = sentences::sentences(reply);
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
