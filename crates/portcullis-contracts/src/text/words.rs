//! Words: runs of word characters, as the pattern `\w+` finds them. `don't` and `well-known` are two words each.

use unicode_normalization::char::is_combining_mark;

use super::{Span, from};

/// A letter, a number or `_`. Combining marks are none, so vowel signs of Indic scripts part words, as they do there.
#[must_use]
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || c == '_'
    } else {
        c.is_alphanumeric() && !is_combining_mark(c)
    }
}

/// Every word of a text, in order.
pub fn words(text: &str) -> impl Iterator<Item = Span> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = skip(text, at, false);
        let end = skip(text, start, true);
        at = end;
        (start < end).then_some(start..end)
    })
}

/// The first place from `at` on where a character is not of this kind: of words, or between them. Most of a text is
/// ASCII, whose bytes need not be decoded.
fn skip(text: &str, mut at: usize, of_words: bool) -> usize {
    while let Some(&byte) = text.as_bytes().get(at) {
        if byte.is_ascii() {
            if (byte.is_ascii_alphanumeric() || byte == b'_') != of_words {
                return at;
            }
            at += 1;
        } else {
            let Some(c) = from(text, at).chars().next() else { return at };
            if is_word(c) != of_words {
                return at;
            }
            at += c.len_utf8();
        }
    }
    at
}

/// How many words a text has.
#[must_use]
pub fn count(text: &str) -> usize {
    words(text).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule as it is written, character by character.
    fn by_characters(text: &str) -> Vec<Span> {
        let (mut found, mut start) = (Vec::new(), None);
        for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
            match (is_word(c), start) {
                (true, None) => start = Some(at),
                (false, Some(begun)) => {
                    found.push(begun..at);
                    start = None;
                }
                _ => {}
            }
        }
        found
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_rule(text in "([a-zA-Z_0-9 ,.é\u{301}हि]|\\PC){0,60}") {
            prop_assert_eq!(words(&text).collect::<Vec<_>>(), by_characters(&text));
        }
    }

    #[test]
    fn words_are_runs_of_word_characters() {
        for (text, n) in [("", 0), ("don't", 2), ("well-known a_b", 3), ("  één  Straße ", 2), ("हिन्दी", 3)]
        {
            assert_eq!(count(text), n, "{text}");
        }
        assert_eq!(words("a bc").collect::<Vec<_>>(), [0..1, 2..4]);
    }
}
