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

/// Looks for the letter of the needle that texts have least, and compares the rest only where that stands.
fn find_ascii(text: &[u8], needle: &[u8], start: usize) -> Option<Span> {
    let (offset, rarest) = needle.iter().copied().enumerate().min_by_key(|&(_, byte)| commonness(byte))?;
    let (low, high) = (rarest.to_ascii_lowercase(), rarest.to_ascii_uppercase());
    let from = start.checked_add(offset)?;
    memchr::memchr2_iter(low, high, text.get(from..)?).find_map(|at| {
        let found = start + at..start + at + needle.len();
        text.get(found.clone())?.eq_ignore_ascii_case(needle).then_some(found)
    })
}

/// How common a byte is in prose: letters and the blank by their rank in English. What is not ranked counts as rare.
fn commonness(byte: u8) -> usize {
    const RANKED: &[u8] = b"zqxjkvbpygfwmucldrhsnioate ";
    memchr::memchr(byte.to_ascii_lowercase(), RANKED).unwrap_or_default()
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
    use proptest::prelude::*;

    use super::*;

    /// Every place of an ASCII needle, tried one after the other.
    fn one_by_one(text: &str, needle: &str) -> Vec<Span> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at + needle.len() <= text.len() {
            let here = text.as_bytes().get(at..at + needle.len()).unwrap();
            if here.eq_ignore_ascii_case(needle.as_bytes()) {
                found.push(at..at + needle.len());
                at += needle.len();
            } else {
                at += 1;
            }
        }
        found
    }

    proptest! {
        #[test]
        fn the_rarest_letter_leads_to_every_place(text in "[abAB *zé]{0,40}", needle in "[abzBZ *]{1,4}") {
            prop_assert_eq!(find_all(&text, &needle).collect::<Vec<_>>(), one_by_one(&text, &needle));
        }
    }

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
