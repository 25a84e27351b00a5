//! How long: words, characters, sentences, words a sentence.

use super::counted;
use crate::bound::Bound;
use crate::contract::Check;
use crate::text::{cut, sentences, words};

pub(super) fn words(reply: &str, count: &Bound) -> Check {
    counted(words::count(reply), count, "words", Vec::new())
}

pub(super) fn characters(reply: &str, count: &Bound) -> Check {
    counted(reply.chars().count(), count, "characters", Vec::new())
}

pub(super) fn sentences(reply: &str, count: &Bound) -> Check {
    let found = sentences::sentences(reply);
    counted(found.len(), count, "sentences", found)
}

/// Every sentence that has a word is within the bound.
pub(super) fn sentence_length(reply: &str, count: &Bound) -> Check {
    let sentences = sentences::sentences(reply);
    let wrong: Vec<_> = sentences
        .iter()
        .map(|span| (span.clone(), words::count(cut(reply, span.clone()))))
        .filter(|&(_, words)| words > 0 && !count.holds(words))
        .collect();
    let explanation = match wrong.first() {
        None => format!("{} sentences, each of {count} words", sentences.len()),
        Some((_, words)) => format!(
            "{} of {} sentences are not of {count} words; the first of them has {words}",
            wrong.len(),
            sentences.len()
        ),
    };
    Check::new(wrong.is_empty(), explanation, wrong.into_iter().map(|(span, _)| span).collect())
}
