//! Finding a literal in a text, letters of either case alike.

use super::words::is_word;
use super::{Span, from, to};

/// Every place of `needle`, not overlapping, letters of either case alike. An empty needle is nowhere.
pub fn find_all<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = Span> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = find_from(text, needle, at)?;
        at = found.end;
        Some(found)
    })
}

/// The first place of `needle` at or after `start`, letters of either case alike.
#[must_use]
pub fn find_from(text: &str, needle: &str, start: usize) -> Option<Span> {
    let first = needle.chars().next()?;
    if needle.is_ascii() {
        return find_ascii(text.as_bytes(), needle.as_bytes(), start);
    }
    from(text, start).char_indices().filter(|&(_, c)| same(c, first)).find_map(|(at, _)| {
        let at = start + at;
        prefix_length(from(text, at), needle).map(|length| at..at + length)
    })
}

fn find_ascii(text: &[u8], needle: &[u8], start: usize) -> Option<Span> {
    let (&first, rest) = needle.split_first()?;
    let (low, high) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut at = start;
    loop {
        at += text.get(at..)?.iter().position(|&byte| byte == low || byte == high)?;
        if text.get(at + 1..at + needle.len())?.eq_ignore_ascii_case(rest) {
            return Some(at..at + needle.len());
        }
        at += 1;
    }
}

/// How many bytes of `text` spell `prefix`, letters of either case alike.
#[must_use]
pub fn prefix_length(text: &str, prefix: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    for wanted in prefix.chars() {
        let (_, found) = chars.next()?;
        if !same(found, wanted) {
            return None;
        }
    }
    Some(chars.next().map_or(text.len(), |(at, _)| at))
}

fn same(a: char, b: char) -> bool {
    a == b || a.to_lowercase().eq(b.to_lowercase())
}

/// Whether both ends of a span are boundaries of words: a word character on one side and none on the other.
#[must_use]
pub fn at_word_boundaries(text: &str, span: &Span) -> bool {
    let inside = text.get(span.clone()).unwrap_or_default();
    let edge =
        |outer: Option<char>, inner: Option<char>| outer.is_some_and(is_word) != inner.is_some_and(is_word);
    edge(to(text, span.start).chars().next_back(), inside.chars().next())
        && edge(from(text, span.end).chars().next(), inside.chars().next_back())
}

/// Every place of `needle` that is a whole word.
pub fn find_words<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = Span> + 'a {
    find_all(text, needle).filter(move |span| at_word_boundaries(text, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_in_either_case() {
        assert_eq!(find_all("Apple le LE", "le").collect::<Vec<_>>(), [3..5, 6..8, 9..11]);
        assert_eq!(find_words("Apple le LE", "le").collect::<Vec<_>>(), [6..8, 9..11]);
        assert_eq!(find_all("aaa", "aa").count(), 1);
        assert_eq!(find_all("aaa", "").count(), 0);
        assert_eq!(find_all("ÉTÉ été", "été").collect::<Vec<_>>(), [0..5, 6..11]);
        assert_eq!(find_all("abc", "abcd").count(), 0);
    }
}
