//! Numbers with their nouns, for explanations: 1 word, 2 words.

use crate::bound::Bound;

/// A noun after one and after any other number.
pub(crate) type Noun = (&'static str, &'static str);

pub(crate) const BULLETS: Noun = ("bullet point", "bullet points");
pub(crate) const CAPITAL_WORDS: Noun = ("word in capitals", "words in capitals");
pub(crate) const CHARACTERS: Noun = ("character", "characters");
pub(crate) const HIGHLIGHTS: Noun = ("highlighted section", "highlighted sections");
pub(crate) const KEYWORDS: Noun = ("keyword", "keywords");
pub(crate) const OCCURRENCES: Noun = ("occurrence", "occurrences");
pub(crate) const PARAGRAPHS: Noun = ("paragraph", "paragraphs");
pub(crate) const PLACEHOLDERS: Noun = ("placeholder", "placeholders");
pub(crate) const RESPONSES: Noun = ("response", "responses");
pub(crate) const SECTIONS: Noun = ("section", "sections");
pub(crate) const SECTION_MARKERS: Noun = ("section marker", "section markers");
pub(crate) const SENTENCES: Noun = ("sentence", "sentences");
pub(crate) const TIMES: Noun = ("time", "times");
pub(crate) const WORDS: Noun = ("word", "words");

/// A number with its noun.
pub(crate) fn count(number: usize, noun: Noun) -> String {
    format!("{number} {}", if number == 1 { noun.0 } else { noun.1 })
}

/// The form of a verb that goes with a number.
pub(crate) const fn verb(number: usize, one: &'static str, many: &'static str) -> &'static str {
    if number == 1 { one } else { many }
}

/// How often: once, 2 times.
pub(crate) fn often(number: usize) -> String {
    if number == 1 { "once".to_owned() } else { count(number, TIMES) }
}

/// A bound with its noun, which goes by the number before it.
pub(crate) fn bounded(bound: &Bound, noun: Noun) -> String {
    let last = match (bound.at_least, bound.below) {
        (low, None) => low,
        (low, Some(below)) if low > 0 && below == low.saturating_add(1) => low,
        (_, Some(below)) => below,
    };
    format!("{bound} {}", if last == 1 { noun.0 } else { noun.1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            (&*count(1, WORDS), &*count(0, WORDS), &*count(21, WORDS)),
            ("1 word", "0 words", "21 words")
        );
        assert_eq!((&*often(1), &*often(2)), ("once", "2 times"));
        for (bound, text) in [
            (Bound::exactly(1), "exactly 1 time"),
            (Bound::at_least(1), "at least 1 time"),
            (Bound::at_most(1), "less than 2 times"),
            (Bound::less_than(1), "less than 1 time"),
            (Bound::between(1, 2), "at least 1 and less than 3 times"),
        ] {
            assert_eq!(bounded(&bound, TIMES), text);
        }
    }
}
