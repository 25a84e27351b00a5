//! Cutting a leaf into sentences, in any language that ends them with a sign.
//!
//! A sentence ends behind `.`, `!`, `?` or `…` (and closing quotes) before white space, behind their full-width forms,
//! at an empty line, at a tag that is not part of running text, and at a line break, unless the line was evidently
//! wrapped: the next one goes on in lower case, or the line is long and has no sign at its end. Abbreviations, initials
//! and numbers of lists end nothing.

use std::ops::Range;

use crate::limits;

/// A line at least this long may have been wrapped.
const WRAPPED_LINE: usize = 60;
/// Bytes of a tag between its angle brackets that are looked at.
const TAG_BYTES: usize = 256;

const ABBREVIATIONS: &[&str] = &[
    "approx", "bzw", "ca", "cf", "co", "corp", "dr", "e.g", "eg", "etc", "fig", "i.e", "ie", "inc", "jr",
    "ltd", "mr", "mrs", "ms", "no", "nr", "p.s", "prof", "rev", "sr", "st", "u.s", "vs", "z.b",
];

/// Tags that stand inside a sentence.
const INLINE_TAGS: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "code", "em", "font", "i", "kbd", "mark", "s", "small", "span", "strong",
    "sub", "sup", "u", "wbr",
];

/// The sentences of `leaf`, as ranges of its bytes: without white space around them, none empty, in order, none longer
/// than [`limits::SENTENCE_BYTES`]. Tags that are not part of running text belong to no sentence.
#[must_use]
pub fn sentences(leaf: &str) -> Sentences<'_> {
    Sentences { text: leaf, at: 0 }
}

/// The iterator of [`sentences`].
#[derive(Debug, Clone)]
pub struct Sentences<'t> {
    text: &'t str,
    at: usize,
}

/// Bytes that a sentence may end at.
#[expect(clippy::indexing_slicing, reason = "worked out by the compiler, which refuses what is wrong")]
const MAY_END: [bool; 256] = {
    let mut ends = [false; 256];
    let signs = b".!?\n<\xe2\xe3\xef";
    let mut number = 0;
    while number < signs.len() {
        ends[signs[number] as usize] = true;
        number += 1;
    }
    ends
};

fn may_end(byte: u8) -> bool {
    MAY_END.get(usize::from(byte)).copied().unwrap_or_default()
}

impl Iterator for Sentences<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.at < self.text.len() {
            let start = self.at;
            let (end, next) = self.cut(start);
            self.at = next.max(start.saturating_add(1)).min(self.text.len());
            while !self.text.is_char_boundary(self.at) {
                self.at = self.at.saturating_add(1);
            }
            let part = self.text.get(start..end).unwrap_or_default();
            let trimmed = part.trim();
            if !trimmed.is_empty() {
                let lead = part.len().saturating_sub(part.trim_start().len());
                let from = start.saturating_add(lead);
                return Some(from..from.saturating_add(trimmed.len()));
            }
        }
        None
    }
}

impl Sentences<'_> {
    fn rest(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    /// Where the sentence that begins at `start` ends, and where the next one may begin.
    fn cut(&self, start: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let limit = start.saturating_add(limits::SENTENCE_BYTES);
        let mut at = start;
        while let Some(ahead) =
            bytes.get(at..limit.min(bytes.len())).and_then(|rest| rest.iter().position(|byte| may_end(*byte)))
        {
            at = at.saturating_add(ahead);
            match bytes.get(at) {
                Some(b'.' | b'!' | b'?') => {
                    if let Some(end) = self.ends_at(start, at) {
                        return (end, end);
                    }
                }
                Some(b'\n') if self.breaks(start, at) => return (at, at.saturating_add(1)),
                Some(b'<') => {
                    if let Some(end) = self.block_tag(at) {
                        return (at, end);
                    }
                }
                // Full-width signs and the ellipsis.
                _ if self.rest(at).starts_with(['。', '！', '？', '…', '｡']) => {
                    let end = at.saturating_add(3);
                    return (end, end);
                }
                _ => {}
            }
            at = at.saturating_add(1);
        }
        if limit >= bytes.len() {
            return (bytes.len(), bytes.len());
        }
        // Too long: cut at the last white space.
        let inside = bytes.get(start.saturating_add(1)..limit).unwrap_or_default();
        let gap = inside.iter().rposition(u8::is_ascii_whitespace);
        let cut = gap.map_or_else(|| self.boundary(limit), |gap| start.saturating_add(gap).saturating_add(1));
        (cut, cut)
    }

    fn boundary(&self, mut at: usize) -> usize {
        while !self.text.is_char_boundary(at) {
            at = at.saturating_add(1);
        }
        at
    }

    /// Where the sentence ends if the sign at `at` ends it: behind further signs and closing quotes.
    fn ends_at(&self, start: usize, at: usize) -> Option<usize> {
        const CLOSERS: &[char] = &['.', '!', '?', '"', '\'', ')', ']', '”', '’', '»', '*', '_'];
        const CLOSERS_READ: usize = 8;
        let rest = self.rest(at);
        let end = rest
            .char_indices()
            .take(CLOSERS_READ)
            .find(|(_, sign)| !CLOSERS.contains(sign))
            .map_or_else(|| rest.chars().take(CLOSERS_READ).map(char::len_utf8).sum(), |(end, _)| end);
        let end = at.saturating_add(end);
        let after = self.rest(end);
        if !after.is_empty() && !after.starts_with(char::is_whitespace) && !after.starts_with('<') {
            return None;
        }
        if self.text.as_bytes().get(at) != Some(&b'.') {
            return Some(end);
        }
        let next = after.trim_start_matches([' ', '\t']).chars().next();
        if next.is_some_and(char::is_lowercase) {
            return None;
        }
        let before = self.text.get(start..at).unwrap_or_default();
        let word = before.rsplit(|sign: char| sign.is_whitespace() || sign == '(').next().unwrap_or_default();
        let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase) && word != "I";
        let number = word.len() <= 3
            && word.len() == before.trim_start().len()
            && word.bytes().all(|b| b.is_ascii_digit());
        let short = word.len() <= 6 && ABBREVIATIONS.iter().any(|known| known.eq_ignore_ascii_case(word));
        (!initial && !number && !short).then_some(end)
    }

    /// Whether the line break at `at` ends the sentence that began at `start`.
    fn breaks(&self, start: usize, at: usize) -> bool {
        let after = self.rest(at.saturating_add(1)).trim_start_matches([' ', '\t', '\r']);
        let Some(next) = after.chars().next().filter(|next| *next != '\n') else { return true };
        let before = self.text.get(start..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default().trim_end();
        if line.ends_with(['.', '!', '?', ':', ';', '。']) || line.is_empty() {
            return true;
        }
        let wrapped = line.len() >= WRAPPED_LINE && next.is_alphabetic();
        !(next.is_lowercase() || next == '(' || wrapped)
    }

    /// The end of the tag at `at`, unless it is one that stands inside sentences.
    fn block_tag(&self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let inside = bytes.get(at.saturating_add(1)..)?;
        let inside = inside.get(..TAG_BYTES.min(inside.len()))?;
        let close = inside.iter().position(|byte| matches!(byte, b'>' | b'<' | b'\n'))?;
        if inside.get(close) != Some(&b'>') {
            return None;
        }
        let name = inside.get(..close)?;
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let length = name.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(name.len());
        let name = name.get(..length)?;
        let known = name.first().is_some_and(u8::is_ascii_alphabetic);
        let inline = INLINE_TAGS.iter().any(|tag| tag.as_bytes().eq_ignore_ascii_case(name));
        (known && !inline).then(|| at.saturating_add(close).saturating_add(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        sentences(text).map(|range| text.get(range).unwrap()).collect()
    }

    #[test]
    fn sentences_end_behind_their_signs() {
        assert_eq!(
            cut("Pay the bill. Then write to Bob!  Why? \"Yes.\" No"),
            ["Pay the bill.", "Then write to Bob!", "Why?", "\"Yes.\"", "No"]
        );
        assert_eq!(cut("你好。请付款！Done"), ["你好。", "请付款！", "Done"]);
    }

    #[test]
    fn abbreviations_initials_numbers_and_addresses_end_nothing() {
        for whole in [
            "Mr. Smith, e.g. J. R. Smith, paid 3.50 at www.shop.com today.",
            "1. Open the file",
            "see a.txt or v1.2.3 of it",
        ] {
            assert_eq!(cut(whole), [whole]);
        }
    }

    #[test]
    fn a_wrapped_line_goes_on_and_a_new_line_begins() {
        assert_eq!(
            cut("Some restaurant\n(visit website for details)"),
            ["Some restaurant\n(visit website for details)"]
        );
        assert_eq!(cut("Total 98\nVisit the site"), ["Total 98", "Visit the site"]);
        assert_eq!(cut("Dear Bob,\n\nPlease call.\nsoon"), ["Dear Bob,", "Please call.", "soon"]);
    }

    #[test]
    fn tags_of_blocks_separate_and_inline_tags_do_not() {
        assert_eq!(
            cut("<p>Click <b>here</b> now</p><div>Other</div> 1 < 2 > 0"),
            ["Click <b>here</b> now", "Other", "1 < 2 > 0"]
        );
    }

    #[test]
    fn a_long_sentence_is_cut_at_white_space() {
        let text = "word ".repeat(2000);
        let parts = cut(&text);
        assert!(parts.len() > 4 && parts.iter().all(|part| part.len() <= limits::SENTENCE_BYTES));
        let solid = "é".repeat(5000);
        assert_eq!(cut(&solid).concat(), solid);
    }
}
