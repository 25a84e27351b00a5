//! Words: runs of word characters, as the pattern `\w+` finds them. `don't` and `well-known` are two words each.

use unicode_normalization::char::is_combining_mark;

use super::Span;

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
    let mut chars = text.char_indices();
    std::iter::from_fn(move || {
        let (start, _) = chars.by_ref().find(|&(_, c)| is_word(c))?;
        let end = chars.by_ref().find(|&(_, c)| !is_word(c)).map_or(text.len(), |(at, _)| at);
        Some(start..end)
    })
}

/// How many words a text has.
#[must_use]
pub fn count(text: &str) -> usize {
    words(text).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_word_characters() {
        for (text, n) in [("", 0), ("don't", 2), ("well-known a_b", 3), ("  één  Straße ", 2), ("हिन्दी", 3)]
        {
            assert_eq!(count(text), n, "{text}");
        }
        assert_eq!(words("a bc").collect::<Vec<_>>(), [0..1, 2..4]);
    }
}
